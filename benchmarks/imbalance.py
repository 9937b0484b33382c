"""Make a data set uneven: python benchmarks/imbalance.py SOURCE OUT --ratio 10

SOURCE is an .npz of `x` and `y`, or a folder of class folders; OUT an .npz, or a .csv manifest. Class i of C keeps
n * ratio ** (-i / (C - 1)) of its images, classes in a random order; the largest keeps all that the smallest class has.
Then: cdclust compare OUT -k C --methods kmeans,cdc --seeds 3 --set sizes=estimated [--labels label]
"""

import argparse
import csv
from pathlib import Path

import numpy as np


def uneven(labels: np.ndarray, ratio: float, seed: int) -> np.ndarray:
    """The rows that are kept, in order."""
    chance = np.random.default_rng(seed)
    classes, counts = np.unique(labels, return_counts=True)
    steps = np.arange(len(classes)) / max(1, len(classes) - 1)
    wanted = np.maximum(1, np.rint(counts.min() * ratio**-steps)).astype(int)
    kept = [
        chance.choice(np.flatnonzero(labels == each), n, replace=False)
        for each, n in zip(chance.permutation(classes), wanted, strict=True)
    ]
    return np.sort(np.concatenate(kept))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ratio", type=float, default=10, help="largest class to smallest")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.source.is_dir():
        paths = sorted(path for path in asked.source.glob("*/*") if path.is_file())
        labels = np.array([path.parent.name for path in paths])
        rows = uneven(labels, asked.ratio, asked.seed)
        with asked.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "label"])
            writer.writerows([str(paths[row].resolve()), labels[row]] for row in rows)
    else:
        content = np.load(asked.source)
        labels = content["y"]
        rows = uneven(labels, asked.ratio, asked.seed)
        np.savez(asked.out, x=content["x"][rows], y=labels[rows])
    print(f"{len(rows):,} of {len(labels):,} images in {asked.out}")


if __name__ == "__main__":
    main()
