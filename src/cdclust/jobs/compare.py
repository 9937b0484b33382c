"""`cdclust compare`: several methods on one feature cache, each seed by itself, results kept as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust import run as runs
from cdclust.data import OK, open_stream
from cdclust.engine.compute import Compute
from cdclust.engine.train import Listener
from cdclust.errors import UsageError, UserError
from cdclust.evaluation import comparison
from cdclust.evaluation.baselines import SAMPLE
from cdclust.evaluation.kmeans import unit_rows
from cdclust.jobs import frozen, setup
from cdclust.jobs.apart import run_apart
from cdclust.jobs.contender import METHODS, Answer, Task, contend, mean_clean, seeds_for
from cdclust.jobs.frozen import Embedded
from cdclust.networks.pretrained import Pretrained
from cdclust.recipe import Recipe
from cdclust.run import Run

SILHOUETTE = 2_000  # images whose silhouettes are averaged, the same for every method
RESULTS = "results"  # a file a method and seed: apart from their folders, which a failure may leave unmade

Watch = Callable[[str], Listener]


@dataclass(frozen=True)
class Board:
    """What all methods have in common."""

    run: Run
    recipe: Recipe
    images: Embedded
    backbone: Pretrained
    sample: tuple[NDArray[np.int64], NDArray[np.float32]]
    clusterings: dict[tuple[str, int], NDArray[np.int64]] = field(default_factory=dict)  # read or made so far


def compare(
    source: Any,
    recipe: Recipe,
    methods: Sequence[str],
    n_seeds: int,
    out: Path,
    compute: Compute,
    watch: Watch,
    *,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    command: Sequence[str] = (),
    tell: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Cluster the same images with every method and seed; compare.json as it stands at the end.

    Every method sees all images and is scored on all of them. What is there already under `out` is kept; a seed that
    fails is noted with its reason and tried again by the next call.
    """
    _refuse_unknown(methods)
    # All images of the split are clustered and scored by all: a split held back would be one more difference.
    recipe = recipe.changed({"data.test_split": None})
    board = _board(source, recipe, out, compute, watch("compare"), labels, root)
    wanted = [
        (method, recipe.seed + number)
        for method in methods
        for number in range(seeds_for(method, n_seeds, len(board.images), SAMPLE))
    ]
    for place, (method, seed) in enumerate(wanted):
        folder = board.run.file(f"{method}/seed-{seed}")
        result = _kept(board, method, seed)
        if result is None:
            cache = board.images.cache
            one = recipe.changed({"seed": seed})
            task = Task(method, one, folder, source, cache.folder, cache.key, compute, labels, root, tuple(command))
            result = _measured(board, task, watch(f"{method}, seed {seed} ({place + 1} of {len(wanted)})"))
            _write(board)
        tell(result)
    return _write(board)


def _refuse_unknown(methods: Sequence[str]) -> None:
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"--methods {method!r}: unknown; choose among {', '.join(METHODS)}")
    if not methods:
        raise UsageError(f"--methods: name at least one of {', '.join(METHODS)}")
    if len(set(methods)) < len(methods):
        raise UsageError("--methods: one of them stands there twice; name each once")


def _board(
    source: Any, recipe: Recipe, out: Path, compute: Compute, listener: Listener, labels: Any, root: Any
) -> Board:
    if recipe.network.pretrained is None:
        raise UsageError("compare works on features: name a --backbone, such as efficientnet-lite0 or pixels")
    if out.exists():
        runs.create(out, recipe, resume=True)  # says what differs before anything is embedded
    stream = open_stream(source, split=setup.training_split(source, recipe, root), labels=labels, root=root)
    setup.refuse_too_many_clusters(recipe, len(stream))
    embedder = frozen.load_embedder(recipe, compute)
    images, _ = frozen.embedded(stream, embedder, recipe, listener, strict=False)
    setup.refuse_too_many_clusters(recipe, len(images))
    if len(images) < 2:
        raise UserError(f"source: {images.name} has {len(images)} readable images; give at least two")
    run = runs.create(out, recipe, resume=True)
    there = _read_json(run.file("compare.json"))
    if there is not None and there.get("cache") != images.cache.key.digest():
        raise UserError(f"--out {out} compares methods on other images; give the same source, or choose another --out")
    return Board(run, recipe, images, embedder.backbone, _sample(images))


def _sample(images: Embedded) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    n = min(SILHOUETTE, len(images))
    places = np.sort(np.random.default_rng(0).choice(len(images), n, replace=False))
    features = images.cache.clean[images.rows[places]].astype(np.float32)
    return places, unit_rows(features - mean_clean(images.cache, images.rows))


def _result(method: str, seed: int) -> str:
    return f"{RESULTS}/{method}-{seed}.json"


def _kept(board: Board, method: str, seed: int) -> dict[str, Any] | None:
    """The result of an earlier call; none if it failed or never came to its end."""
    found = _read_json(board.run.file(_result(method, seed)))
    return found if found is not None and found.get("status") == "ok" else None


def _measured(board: Board, task: Task, listener: Listener) -> dict[str, Any]:
    """Run a task by itself and write what came out beside its clusters."""
    ended = run_apart(partial(contend, task), listener)
    result: dict[str, Any] = {"method": task.method, "seed": task.recipe.seed}
    if isinstance(ended.value, Answer):
        grouping = ended.value.grouping
        result |= {
            "status": "ok",
            **comparison.figures(
                grouping.clusters,
                task.recipe.n_clusters,
                board.images.image_labels,
                grouping.probabilities,
                board.sample,
            ),
            "seconds": round(ended.value.seconds, 3),
            "peak_memory_mb": None if ended.peak_memory is None else round(ended.peak_memory / 2**20, 1),
            "features": ended.value.features,
            "remarks": grouping.remarks,
        }
        task.folder.mkdir(parents=True, exist_ok=True)
        if not Run(task.folder).finished:  # a run of cdc has a fuller one already
            clusters = board.images.spread(grouping.clusters)
            Run(task.folder).write("assignments.csv", lambda f: runs.write_csv(f, _lines(board, clusters), _COLUMNS))
        board.clusterings[task.method, task.recipe.seed] = grouping.clusters
    else:
        result |= {"status": "failed", "reason": " ".join((ended.reason or "").split())}
    board.run.file(RESULTS).mkdir(exist_ok=True)
    board.run.write_json(_result(task.method, task.recipe.seed), result)
    return result


_COLUMNS = ("image", "cluster", "status")


def _lines(board: Board, clusters: NDArray[np.int64]) -> Iterator[tuple[str, str, str]]:
    for key, cluster, status in zip(board.images.keys, clusters.tolist(), board.images.status, strict=True):
        yield key, str(cluster) if status == OK else "", status


def _write(board: Board) -> dict[str, Any]:
    """compare.json, compare.csv and compare.md from all results that are there."""
    rows = [row for method in METHODS for row in _results(board, method)]
    found: dict[str, Any] = {
        "source": board.images.name,
        "n_images": board.images.n_total,
        "n_unreadable": board.images.n_unreadable,
        "n_clusters": board.recipe.n_clusters,
        "methods": {
            method: comparison.summed_up(
                [row for row in rows if row["method"] == method], _clusterings(board, method, rows)
            )
            for method in dict.fromkeys(row["method"] for row in rows)
        },
        "protocol": _protocol(board),
        "notes": board.images.notes,
        "cache": board.images.cache.key.digest(),
    }
    board.run.write_json("compare.json", found)
    board.run.write_text("compare.md", comparison.markdown(_title(found), found["methods"], read_as(found)))
    columns = ("method", "seed", "status", *(key for key, _, _ in comparison.COLUMNS if key != "agreement"), "n_found")
    lines = ([str(row.get(column, "")) for column in (*columns, "reason")] for row in rows)
    board.run.write("compare.csv", lambda file: runs.write_csv(file, lines, (*columns, "reason")))
    return found


def _results(board: Board, method: str) -> list[dict[str, Any]]:
    found = [_read_json(path) for path in board.run.file(RESULTS).glob(f"{method}-[0-9]*.json")]
    return sorted((row for row in found if row is not None), key=lambda row: int(row["seed"]))


def _clusterings(board: Board, method: str, rows: Sequence[dict[str, Any]]) -> list[NDArray[np.int64]]:
    return [_clusters(board, method, row["seed"]) for row in rows if row["method"] == method and row["status"] == "ok"]


def _clusters(board: Board, method: str, seed: int) -> NDArray[np.int64]:
    if (method, seed) not in board.clusterings:
        column = runs.read_column(Run(board.run.file(f"{method}/seed-{seed}")), "cluster")
        board.clusterings[method, seed] = np.array([int(cluster) for cluster in column if cluster])
    return board.clusterings[method, seed]


def _protocol(board: Board) -> dict[str, Any]:
    return {
        "split": board.images.split,
        "scored_on": "the images that were clustered, all of them",
        "labels_used_for_selection": False,
        "backbone": board.backbone.name,
        "backbone_trained_with": board.backbone.trained_with,
        "backbone_saw_labels": board.backbone.saw_labels,
        "features": board.images.cache.key.dim,
        "silhouette_of": f"{len(board.sample[0]):,} images, features around the mean with length 1",
        "seconds": "of one seed, from cached features to clusters, without the backbone",
        "memory": "the most a process had that did one seed and nothing else",
    }


def _title(found: dict[str, Any]) -> str:
    return f"{found['source']}: {found['n_images']:,} images, {found['n_clusters']} clusters"


def read_as(found: dict[str, Any]) -> list[str]:
    """What the table was measured on, a sentence each."""
    protocol = found["protocol"]
    seen: dict[str, list[str]] = {}
    for name, summary in found["methods"].items():
        seen.setdefault(summary["features"] or "nothing yet", []).append(name)
    given = "; ".join(f"{what}: {', '.join(names)}" for what, names in seen.items())
    n_seeds = ", ".join(f"{name} {len(summary['seeds'])}" for name, summary in found["methods"].items())
    lines = [
        f"features of {protocol['backbone']} (trained with {protocol['backbone_trained_with']}), embedded once for "
        f"all; {given}",
        f"split {protocol['split']}, scored on {protocol['scored_on']}; ± is the deviation over seeds: {n_seeds}",
        "even: entropy of the sizes over ln K; conf.: mean probability of the chosen cluster; agree: mean ARI between "
        f"seeds; silh.: mean silhouette of {protocol['silhouette_of']}",
        f"s: seconds {protocol['seconds']}; MB: {protocol['memory']}",
    ]
    if found["n_unreadable"]:
        lines.append(f"{found['n_unreadable']:,} images could not be read and belong to no cluster")
    return [*lines, *found["notes"]]


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
