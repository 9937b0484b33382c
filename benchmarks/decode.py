"""How fast JPEG photos become squares, one thread: python benchmarks/decode.py FOLDER [--size 184] [--images 200].

The ways take turns photo by photo, so that what else the machine does falls on all of them alike; the difference is
to a whole decode that Pillow shrinks in one step.
"""

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL
import torch
import torchvision
from PIL import Image
from torch import Tensor
from torchvision.io import ImageReadMode, decode_jpeg

from cdclust.data.decode import decode, to_pixels
from cdclust.data.resize import square

ROUNDS = 5
Way = Callable[[str, int], np.ndarray]


def reference(path: str, size: int) -> np.ndarray:
    with Image.open(path) as image:
        rgb = image.convert("RGB")
        side = min(rgb.size)
        left, top = (rgb.width - side) / 2, (rgb.height - side) / 2
        box = (left, top, left + side, top + side)
        return np.asarray(rgb.resize((size, size), Image.Resampling.BILINEAR, box=box)).transpose(2, 0, 1)


def reader(path: str, size: int) -> np.ndarray:
    return decode(path, size)


def draft(factor: float) -> Way:
    def way(path: str, size: int) -> np.ndarray:
        with Image.open(path) as image:
            image.draft("RGB", (int(factor * size), int(factor * size)))
            return to_pixels(image, size)

    return way


def torchvision_then_torch(path: str, size: int) -> np.ndarray:
    return square(_decoded(path)[None], size)[0].numpy()


def torchvision_then_pillow(path: str, size: int) -> np.ndarray:
    image = Image.fromarray(_decoded(path).permute(1, 2, 0).numpy())
    return to_pixels(image, size)


def _decoded(path: str) -> Tensor:
    data = torch.from_numpy(np.fromfile(path, dtype=np.uint8))
    pixels: Tensor = decode_jpeg(data, mode=ImageReadMode.RGB, apply_exif_orientation=True)
    return pixels


WAYS: dict[str, Way] = {
    "reader (cdclust)": reader,
    "Pillow, whole": reference,
    "Pillow, draft 1x": draft(1),
    "torchvision, torch resize": torchvision_then_torch,
    "torchvision, Pillow resize": torchvision_then_pillow,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=184)
    parser.add_argument("--images", type=int, default=200)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    paths = [str(p) for p in sorted(asked.folder.rglob("*.jpg"))]
    paths = paths[:: max(1, len(paths) // asked.images)][: asked.images]
    seconds: dict[str, list[float]] = {name: [0.0] * ROUNDS for name in WAYS}
    apart: dict[str, list[float]] = {name: [] for name in WAYS}
    for number in range(ROUNDS):
        for turn, path in enumerate(paths):
            whole = reference(path, asked.size).astype(int)
            names = [*WAYS]
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                way = WAYS[name]
                start = time.perf_counter()
                pixels = way(path, asked.size)
                seconds[name][number] += time.perf_counter() - start
                if number == 0:
                    apart[name].append(float(np.abs(pixels - whole).mean()))
    print(f"{len(paths)} photos to {asked.size} px, {ROUNDS} rounds, {platform.processor() or platform.machine()},")
    print(f"Pillow {PIL.__version__}, torch {torch.__version__}, torchvision {torchvision.__version__}\n")
    print("| way | images/s, median | least to most | mean difference, of 255 | largest |\n|---|---|---|---|---|")
    for name in WAYS:
        rates = sorted(len(paths) / s for s in seconds[name])
        spread, level = f"{rates[0]:.0f} to {rates[-1]:.0f}", f"{statistics.mean(apart[name]):.2f}"
        print(f"| {name} | {statistics.median(rates):.0f} | {spread} | {level} | {max(apart[name]):.2f} |")


if __name__ == "__main__":
    main()
