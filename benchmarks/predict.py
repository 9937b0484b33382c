"""How much of the backbone's speed `predict` reaches: python benchmarks/predict.py RUN FOLDER [--images 512].

RUN is a finished run on a frozen backbone. In one process, the two take turns round by round, so that what else the
machine does falls on both alike: the whole of `predict`, from files to the written table, and the bare backbone on the
same images, decoded before. The ratio of a round is what counts; images a second say how fast this machine was.

--memory 2000 8000 measures the peak of memory instead, of a process for each number of images, over links to the
folder's files.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from cdclust.data import open_stream, read_batches
from cdclust.engine.compute import resolve_compute
from cdclust.engine.embed import BATCH
from cdclust.jobs.listeners import Silent
from cdclust.jobs.predict import Model, load_model, tabulate
from cdclust.run import open_run

PEAK = """
import sys, resource
from pathlib import Path
from cdclust.engine.compute import resolve_compute
from cdclust.jobs.listeners import Silent
from cdclust.jobs.predict import predict
from cdclust.run import open_run
predict(open_run(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3]), resolve_compute("cpu", "auto"), Silent())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def bare(model: Model, batches: list[torch.Tensor]) -> float:
    """Seconds that the backbone takes for batches that lie in memory."""
    assert model.embedder is not None
    start = time.perf_counter()
    for images in batches:
        model.embedder.clean(images)
    return time.perf_counter() - start


def whole(model: Model, folder: Path, target: Path) -> float:
    """Seconds that `predict` takes, from the list of files to the table, once the network is loaded."""
    target.unlink(missing_ok=True)
    start = time.perf_counter()
    tabulate(model, folder, target, Silent(), split="all")
    return time.perf_counter() - start


def links(folder: Path, n: int, into: Path) -> Path:
    """A folder of n links to the folder's photos, as often as need be."""
    paths = sorted(p.absolute() for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    into.mkdir()
    for i in range(n):
        (into / f"{i:07}{paths[i % len(paths)].suffix}").symlink_to(paths[i % len(paths)])
    return into


def memory(run: Path, folder: Path, numbers: list[int]) -> None:
    print("| images | peak MiB |\n|---|---|")
    for n in numbers:
        with tempfile.TemporaryDirectory() as place:
            album = links(folder, n, Path(place) / "album")
            words = [sys.executable, "-c", PEAK, str(run), str(album), str(Path(place) / "p.csv")]
            peak = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ}).stdout
        print(f"| {n:,} | {peak.split()[-1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory", type=int, nargs="+", default=[])
    asked = parser.parse_args()
    if asked.memory:
        memory(asked.run, asked.folder, asked.memory)
        return
    with tempfile.TemporaryDirectory() as place:
        album = links(asked.folder, asked.images, Path(place) / "album")
        model = load_model(open_run(asked.run), resolve_compute("cpu", "auto"))
        assert model.embedder is not None, "a run on a frozen backbone"
        stream = open_stream(album)
        batches = [images for _, images, _ in read_batches(stream, range(len(stream)), model.embedder.read_size, BATCH)]
        bare(model, batches[:1])
        alone, all_of_it = [0.0] * asked.rounds, [0.0] * asked.rounds
        for number in range(asked.rounds):
            for turn in (number, number + 1):
                if turn % 2:
                    alone[number] = bare(model, batches)
                else:
                    all_of_it[number] = whole(model, album, Path(place) / "p.csv")
    ratios = sorted(a / b for a, b in zip(alone, all_of_it, strict=True))
    print(f"{asked.images} photos, {asked.rounds} rounds, {platform.processor() or platform.machine()},")
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}\n")
    print("| | images/s, median |\n|---|---|")
    print(f"| bare backbone | {asked.images / statistics.median(alone):.0f} |")
    print(f"| predict | {asked.images / statistics.median(all_of_it):.0f} |")
    print(f"\npredict reaches {statistics.median(ratios):.2f} of the backbone ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
