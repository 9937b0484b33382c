"""How many clusters each criterion sees in features of known classes: python benchmarks/unknown_k.py NAME=FILE ...

FILE is an .npz with `x`, features (N, D), and `y`, labels that are only compared with; `NAME/20=FILE` keeps 20 random
classes (seed 0), and at most 4,000 rows count. --embed SOURCE OUT [--labels WORD] makes such a file with the default
backbone. Every proposal within 20 % of the number of classes has a star.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import eigsh
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import adjusted_rand_score, calinski_harabasz_score, davies_bouldin_score, silhouette_score
from sklearn.neighbors import NearestNeighbors

from cdclust.evaluation.kmeans import unit_rows
from cdclust.evaluation.unknown_k import propose

ROWS, NEAR = 4000, 40
Array = np.ndarray[Any, Any]


def numbers(n: int) -> list[int]:
    found, k = [], 2.0
    while k <= min(150, n / 8):
        found.append(round(k))
        k = max(k * 1.1, k + 1)
    return sorted(set(found))


def kmeans(points: Array, k: int, seed: int, starts: int = 1) -> KMeans:
    return KMeans(k, n_init=starts, random_state=seed, max_iter=60).fit(points)


def matched(a: Array, b: Array, k: int) -> float:
    """The share of rows that two clusterings agree on, clusters matched one to one."""
    table = np.zeros((k, k))
    np.add.at(table, (a, b), 1)
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(a))


def halves(points: Array, axes: Array, k: int, splits: list[tuple[Array, Array]], chance: Any) -> dict[str, float]:
    """One half's clusters carried to the other, by its centres or by a linear classifier, against the other's own."""
    agree, generalises, ari, strong = [], [], [], []
    for here, there in splits:
        a, b = kmeans(points[here], k, 0, 2), kmeans(points[there], k, 1, 2)
        carried, own = a.predict(points[there]), b.labels_
        table = np.zeros((k, k))
        np.add.at(table, (own, carried), 1)
        sizes = table.sum(1)
        strong.append(
            (np.where(sizes > 1, (table * (table - 1)).sum(1) / np.maximum(sizes * (sizes - 1), 1), 0)).mean()
        )
        by_chance = matched(own, chance.permutation(carried), k)
        agree.append((1 - matched(own, carried, k)) / (1 - by_chance))
        ari.append(adjusted_rand_score(own, carried))
        linear = RidgeClassifier(alpha=1.0).fit(axes[here], a.labels_)
        generalises.append(matched(own, linear.predict(axes[there]), k))
    return {
        "stability of halves (Lange)": -float(np.mean(agree)),
        "stability of halves (ARI)": float(np.mean(ari)),
        "linear generalisation (TURTLE)": float(np.mean(generalises)),
        "strength": float(np.mean(strong)),
    }


def bic(fitted: KMeans, n: int, dim: int) -> float:
    k = fitted.n_clusters
    variance = fitted.inertia_ / max(dim * (n - k), 1)
    sizes = np.bincount(fitted.labels_, minlength=k)
    share = (sizes[sizes > 0] * np.log(sizes[sizes > 0] / n)).sum()
    likelihood = share - n * dim / 2 * np.log(2 * np.pi * variance) - dim * (n - k) / 2
    return float(likelihood - k * (dim + 1) / 2 * np.log(n))


def by_curve(points: Array, axes: Array) -> dict[str, int]:
    """Criteria that are computed for every K."""
    chance, n, ks = np.random.default_rng(1), len(points), numbers(len(points))
    orders = [chance.permutation(n) for _ in range(4)]
    splits = [(order[: n // 2], order[n // 2 :]) for order in orders]
    curves: dict[str, list[float]] = {}
    inertia = []
    for k in ks:
        starts = [kmeans(points, k, seed) for seed in range(4)]
        best = min(starts, key=lambda each: each.inertia_)
        inertia.append(best.inertia_)
        pairs = [(a.labels_, b.labels_) for i, a in enumerate(starts) for b in starts[:i]]
        found = {
            "silhouette": silhouette_score(points, best.labels_),
            "Calinski-Harabasz": calinski_harabasz_score(points, best.labels_),
            "Davies-Bouldin": -davies_bouldin_score(points, best.labels_),
            "BIC of a spherical mixture": bic(best, n, points.shape[1]),
            "stability of seeds (ARI)": float(np.mean([adjusted_rand_score(a, b) for a, b in pairs])),
            **halves(points, axes, k, splits, chance),
        }
        for name, value in found.items():
            curves.setdefault(name, []).append(float(value))
    clouds = [unit_rows((chance.standard_normal(axes.shape) * axes.std(0)).astype("f4")) for _ in range(2)]
    expected = np.mean([[np.log(kmeans(cloud, k, 0).inertia_) for k in ks] for cloud in clouds], axis=0)
    curves["gap"] = (expected - np.log(inertia)).tolist()
    strength = curves.pop("strength")
    proposed = {name: ks[int(np.argmax(curve))] for name, curve in curves.items()}
    return proposed | {
        "prediction strength above 0.8": max((k for k, s in zip(ks, strength, strict=True) if s > 0.8), default=0)
    }


def by_graph(points: Array, axes: Array) -> dict[str, int]:
    """Criteria that read a number off the neighbours."""
    n = len(points)
    distances, near = NearestNeighbors(n_neighbors=NEAR + 1).fit(points).kneighbors(points)
    near = near[:, 1:]
    graph = csr_matrix((np.ones(n * NEAR), (np.repeat(np.arange(n), NEAR), near.ravel())), shape=(n, n))
    graph = (graph + graph.T) / 2
    degree = diags(np.asarray(graph.sum(1)).ravel() ** -0.5)
    values = np.sort(eigsh(degree @ graph @ degree, k=min(160, n - 2), which="LA", return_eigenvectors=False))[::-1]
    density, around = -distances[:, -1], np.concatenate([np.arange(n)[:, None], near], 1)
    up = around[np.arange(n), density[around].argmax(1)]
    for _ in range(30):
        up = up[up]
    communities = networkx.community.louvain_communities(networkx.from_scipy_sparse_array(graph), seed=0)
    trees = HDBSCAN(min_cluster_size=max(5, n // 150), min_samples=5).fit(unit_rows(axes[:, :16]))
    return {
        "eigen-gap": int(np.argmax((values[:-1] - values[1:])[1:]) + 2),
        "modes of density": len(np.unique(up)),
        "Louvain communities": len(communities),
        "HDBSCAN": int(trees.labels_.max() + 1),
    }


def examined(features: Array) -> dict[str, tuple[int, str]]:
    around = unit_rows(features - features.mean(0))
    axes = PCA(min(64, features.shape[1] - 1), random_state=0).fit_transform(around).astype("f4")
    points = unit_rows(axes)
    ways: tuple[Callable[[Array, Array], dict[str, int]], ...] = (by_curve, by_graph)
    found = {name: (k, "") for way in ways for name, k in way(points, axes).items()}
    start = time.process_time()
    proposal = propose(features)
    seconds = time.process_time() - start
    sure = "sure" if proposal.sure else "unsure"
    return found | {"**-k auto**": (proposal.k, f" {sure}, {seconds:.0f} s")}


def rows_of(word: str) -> tuple[str, Array, Array]:
    name, _, path = word.partition("=")
    file = np.load(path, allow_pickle=False)
    x, y = file["x"].astype("f4"), np.unique(file["y"], return_inverse=True)[1]
    if "/" in name:
        kept = np.isin(y, np.random.default_rng(0).permutation(y.max() + 1)[: int(name.split("/")[1])])
        x, y = x[kept], y[kept]
    some = np.random.default_rng(0).permutation(len(x))[:ROWS]
    return name, x[some], y[some]


def embed(source: str, out: Path, labels: str | None) -> None:
    from cdclust.data import open_stream, read_batches
    from cdclust.engine.compute import resolve_compute
    from cdclust.engine.embed import BATCH, Embedder
    from cdclust.networks.pretrained import DEFAULT, load_pretrained

    stream = open_stream(source, labels=labels)
    if stream.labels is None:
        raise SystemExit("there are no labels to compare with; add --labels")
    embedder = Embedder(load_pretrained(DEFAULT), 160, resolve_compute("cpu", "auto"))
    some = np.sort(np.random.default_rng(0).permutation(len(stream))[:ROWS])
    rows: list[int] = []
    features = []
    for read, images, _ in read_batches(stream, some, embedder.read_size, BATCH):
        rows += read
        features.append(embedder.clean(images).half().numpy())
    np.savez(out, x=np.concatenate(features), y=stream.labels[rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--embed", nargs=2, metavar=("SOURCE", "OUT"))
    parser.add_argument("--labels")
    asked = parser.parse_args()
    if asked.embed:
        embed(asked.embed[0], Path(asked.embed[1]), asked.labels)
        return
    sets = [rows_of(word) for word in asked.files]
    found = [examined(x) for _, x, _ in sets]
    print(f"| criterion | {' | '.join(name for name, _, _ in sets)} |\n|---|{'---|' * len(sets)}")
    print(f"| classes | {' | '.join(str(len(np.unique(y))) for _, _, y in sets)} |")
    for criterion in found[0]:
        cells = []
        for each, (_, _, y) in zip(found, sets, strict=True):
            k, said = each[criterion]
            truth = len(np.unique(y))
            cells.append(f"{k}{'*' if abs(k - truth) <= 0.2 * truth else ''}{said}")
        print(f"| {criterion} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
