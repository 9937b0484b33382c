"""One method on one seed, from the feature cache to its clusters; `compare` runs each in a process of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.data.features import CacheKey, FeatureCache
from cdclust.data.imageset import OK, memory_bound
from cdclust.engine.compute import Compute
from cdclust.engine.features import FeatureFeed
from cdclust.engine.scan import ScanSettings, train_scan
from cdclust.engine.train import Listener
from cdclust.errors import UserError
from cdclust.evaluation.baselines import BASELINES, NO_CHANCE, Grouping, prepared
from cdclust.evaluation.kmeans import STARTS
from cdclust.jobs.fit import fit
from cdclust.recipe import Recipe
from cdclust.run import COLUMNS, read_column

CDC, SCAN = "cdc", "scan"
AT_ONCE = 8192  # rows in memory while their mean is taken
# Whoever adds a method adds its name here, its function to `contend`, and nothing else.
METHODS = (*BASELINES, SCAN, CDC)


@dataclass(frozen=True)
class Task:
    """What is to be done; a process can be handed it."""

    method: str
    recipe: Recipe  # with the seed
    folder: Path  # where this method and seed leave their clusters
    source: Any
    cache: Path
    key: CacheKey
    compute: Compute
    labels: Any = None
    root: str | PathLike[str] | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The clusters of the readable images, and how long it took."""

    grouping: Grouping
    features: str  # what the method saw, in words
    seconds: float


def seeds_for(method: str, n_seeds: int, n_images: int, sample: int) -> int:
    """How many seeds say something: one where nothing is left to chance."""
    return 1 if method in NO_CHANCE and n_images <= sample else n_seeds


def contend(task: Task, listener: Listener) -> Answer:
    """Run the method; its time includes reading the features, and not the backbone."""
    start = time.perf_counter()
    if task.method == CDC:
        grouping, features = _cdc(task, listener), "random views"
    elif task.method == SCAN:
        grouping, features = _scan(task, listener), "random views"
    else:
        grouping, features = _baseline(task, listener)
    return Answer(grouping, features, time.perf_counter() - start)


def _cdc(task: Task, listener: Listener) -> Grouping:
    """An ordinary run on the same cache, all images both trained on and assigned."""
    run = fit(
        task.source,
        task.recipe,
        task.folder,
        task.compute,
        resume=task.folder.exists(),
        labels=task.labels,
        root=task.root,
        listener=listener,
        command=list(task.command),
    )
    good = np.array([status == OK for status in read_column(run, COLUMNS[-1])])
    clusters, sure = (np.array(read_column(run, name), dtype=object)[good] for name in COLUMNS[1:3])
    remarks = list(run.metrics()["warnings"])
    return Grouping(clusters.astype(np.int64), remarks, sure.astype(np.float32))


def _opened(task: Task) -> tuple[FeatureCache, NDArray[np.int64]]:
    """The cache, and the rows that could be read."""
    cache = FeatureCache(task.cache, task.key)
    return cache, np.flatnonzero(np.array([status == OK for status in cache.status_list()]))


def mean_clean(cache: FeatureCache, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean (D,) of whole images' features, of which a part is in memory at a time."""
    total = np.zeros(cache.key.dim)
    for part in np.array_split(rows, len(rows) // AT_ONCE + 1):
        total += cache.clean[part].sum(axis=0, dtype=np.float64)
    return (total / len(rows)).astype(np.float32)


def _scan(task: Task, listener: Listener) -> Grouping:
    settings = replace(ScanSettings(), neighbours=task.recipe.features.neighbours)
    cache, rows = _opened(task)
    found = train_scan(
        FeatureFeed(cache, rows, task.compute.device),
        task.recipe.n_clusters,
        task.recipe.seed,
        settings,
        lambda done, total: listener.on_work("training heads, epochs", done, total),
    )
    sure, chosen = found.probabilities.max(dim=1)
    return Grouping(chosen.numpy(), [f"the best of {settings.heads} heads by its loss"], sure.numpy())


def _baseline(task: Task, listener: Listener) -> tuple[Grouping, str]:
    cache, there = _opened(task)
    _refuse_what_does_not_fit(len(there), task.key.dim)
    rows, words = prepared(task.method, cache.clean[there].astype(np.float32), mean_clean(cache, there))
    listener.on_work("clustering", 0, STARTS)  # those that start but once tell nothing in between
    found = BASELINES[task.method](
        rows, task.recipe.n_clusters, task.recipe.seed, lambda done, total: listener.on_work("clustering", done, total)
    )
    listener.on_work("clustering", STARTS, STARTS)
    return found, words


def _refuse_what_does_not_fit(n: int, dim: int) -> None:
    need = 3 * 4 * n * dim  # the features, what is made of them, and what the method copies
    if need > memory_bound(None):
        raise UserError(
            f"{n:,} images x {dim:,} features need about {need / 2**30:,.0f} GiB of memory here, of which "
            f"{memory_bound(None) / 2**30:,.0f} may be used; compare on fewer images"
        )
