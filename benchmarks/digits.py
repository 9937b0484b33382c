"""What other ways make of the digits, five seeds each: python benchmarks/digits.py (needs umap-learn).

`cdclust demo --seeds 5` is the other side of this table.
"""

import statistics
import time
import warnings

from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from cdclust.evaluation.metrics import scores
from cdclust.jobs.demo import baselines

SEEDS = range(5)


def umap_then_k_means(seed: int) -> dict[str, float]:
    from umap import UMAP

    digits, start = load_digits(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seed costs it its threads, which it says at length
        plane = UMAP(n_neighbors=15, min_dist=0.0, random_state=seed).fit_transform(digits.data)
    clusters = KMeans(10, n_init=10, random_state=seed).fit_predict(plane)
    return {**scores(clusters, digits.target), "seconds": time.perf_counter() - start}


def main() -> None:
    found: dict[str, list[dict[str, float]]] = {}
    for seed in SEEDS:
        for name, row in {**baselines(seed), "UMAP + k-means": umap_then_k_means(seed)}.items():
            found.setdefault(name, []).append(row)
    print("| way | ACC, mean | least | NMI, mean | ARI, mean | seconds, median |\n|---|---|---|---|---|---|")
    for name, rows in found.items():
        mean = {key: statistics.mean(row[key] for row in rows) for key in ("acc", "nmi", "ari")}
        least, seconds = min(row["acc"] for row in rows), statistics.median(row["seconds"] for row in rows)
        print(f"| {name} | {mean['acc']:.3f} | {least:.3f} | {mean['nmi']:.3f} | {mean['ari']:.3f} | {seconds:.1f} |")


if __name__ == "__main__":
    main()
