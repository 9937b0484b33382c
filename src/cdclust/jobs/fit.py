"""`cdclust fit`: train on a source and leave a run folder that says what came out and how."""

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as to_safetensors
from torch import Tensor

from cdclust import run as runs
from cdclust.data import ImageSet
from cdclust.engine.assign import Assigned, assign_all
from cdclust.engine.checkpoint import Checkpoints
from cdclust.engine.compute import Compute
from cdclust.engine.interrupt import stop_on_signals
from cdclust.engine.train import Listener, Progress, Trainer
from cdclust.errors import UserError
from cdclust.evaluation.kmeans import centroids
from cdclust.evaluation.metrics import scores
from cdclust.jobs import setup
from cdclust.jobs.listeners import Recorder
from cdclust.methods import Method
from cdclust.recipe import Recipe
from cdclust.report.sheet import draw_sheet
from cdclust.run import Run
from cdclust.views.pair import ViewPair

FOLLOWERS = ("twin.", "queue.", "recent.")  # what training needs and using the model does not


def fit(
    source: Any,
    recipe: Recipe,
    out: Path,
    compute: Compute,
    *,
    resume: bool = False,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    listener: Listener,
    command: list[str] | None = None,
) -> Run:
    """Train, assign every image, and write the run folder; a run that was cut short goes on with `resume`."""
    material = setup.load_material(source, recipe, labels, root)
    recipe = setup.complete(recipe, material.training, compute)
    views, method = setup.build_views(recipe), setup.build_network(recipe)
    run = runs.create(out, recipe, resume)
    if run.finished:
        return run
    environment = runs.environment(
        command or [], recipe.seed, str(compute.device), compute.precision, torch.get_num_threads()
    )
    run.write_json("environment.json", environment)
    checkpoints = Checkpoints(
        run.checkpoint, setup.identity(recipe, material.training, compute), recipe.training.checkpoint_seconds
    )
    recorder = Recorder(run, listener)
    trainer = Trainer(
        method,
        material.training.images,
        views,
        recipe,
        compute,
        recorder,
        checkpoints,
        _scorer(method, material, views, compute, recipe),
    )
    with stop_on_signals() as stop:
        progress = trainer.train(stop)
    recorder.close()
    _finish(run, method, material, views, compute, recipe, progress, recorder.cautions)
    return run


def fit_seeds(n_seeds: int, recipe: Recipe, out: Path, fit_one: Callable[[Recipe, Path], Run]) -> dict[str, Any]:
    """Repeat a run with seeds counted from the recipe's; write seed-0 to seed-<n-1> and their summary."""
    found: dict[str, list[float]] = {}
    for number in range(n_seeds):
        one = fit_one(recipe.changed({"seed": recipe.seed + number}), out / f"seed-{number}")
        for name in ("acc", "nmi", "ari", "confidence", "seconds"):
            if name in (metrics := one.metrics()):
                found.setdefault(name, []).append(metrics[name])
    summary = {name: summarised(values) for name, values in found.items()}
    Run(out).write_json("summary.json", summary)
    return summary


def summarised(values: list[float]) -> dict[str, Any]:
    """Mean, standard deviation (of a sample) and the values themselves."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "std": spread, "values": values}


def settle(method: Method, images: Tensor, views: ViewPair, compute: Compute, seed: int) -> None:
    """Give a plain pretext method its clusters: k-means on the features of the training images."""
    if method.n_logits:
        return
    features = assign_all(method, images, views, compute).features
    method.centroids.copy_(torch.from_numpy(centroids(features, method.n_clusters, seed)))


def _scorer(
    method: Method, material: setup.Material, views: ViewPair, compute: Compute, recipe: Recipe
) -> Callable[[], dict[str, float]] | None:
    scored = material.scored
    if scored is None or scored.image_labels is None:
        return None
    labels = scored.image_labels

    def score() -> dict[str, float]:
        settle(method, material.training.images, views, compute, recipe.seed)
        return _scores(assign_all(method, scored.images, views, compute).clusters, labels)

    return score


def _scores(clusters: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in scores(clusters, labels, ignore_unknown=True).items()}


def _finish(
    run: Run,
    method: Method,
    material: setup.Material,
    views: ViewPair,
    compute: Compute,
    recipe: Recipe,
    progress: Progress,
    cautions: list[str],
) -> None:
    """Write what came out; metrics.json comes last and marks the run as finished."""
    settle(method, material.training.images, views, compute, recipe.seed)
    save_weights(run, method)
    training = material.training
    assigned = assign_all(method, training.images, views, compute)
    write_assignments(run, "assignments.csv", training, assigned)
    run.write_array("embeddings.npy", training.spread(assigned.features, 0))
    run.write("clusters.png", lambda file: draw_sheet(training.images, assigned).save(file, "PNG"))
    metrics: dict[str, Any] = {}
    if material.scored is not None and material.scored.image_labels is not None:
        same = material.scored is training
        clusters = (assigned if same else assign_all(method, material.scored.images, views, compute)).clusters
        metrics |= _scores(clusters, material.scored.image_labels)
    sizes = np.bincount(assigned.clusters, minlength=recipe.n_clusters)
    metrics |= {
        "n_images": training.n_total,
        "n_unreadable": training.n_unreadable,
        "n_clusters": recipe.n_clusters,
        "cluster_sizes": sizes.tolist(),
        "confidence": round(float(assigned.probabilities.mean()), 6),
        "seconds": round(progress.seconds, 3),
        "images_per_second": round(progress.step * recipe.training.batch_size / max(progress.seconds, 1e-9), 1),
        "warnings": cautions,
        "notes": training.notes,
        "protocol": {
            "method": recipe.method.framework if recipe.head.split else f"{recipe.method.framework} + k-means",
            "trained_on": f"{training.name}: {training.split}",
            "split": material.protocol,
            "n_scored": 0 if material.scored is None else len(material.scored),
            "epoch": recipe.training.epochs,
            "seed": recipe.seed,
            "labels_used_for_selection": False,
            "backbone_saw_labels": False,
            "nmi_averaging": "arithmetic",
        },
    }
    run.write_json("metrics.json", metrics)


def save_weights(run: Run, method: Method) -> None:
    """model.safetensors: encoder, head, predictor or centroids; not twin or queue."""
    state = {
        name: value.contiguous().cpu() for name, value in method.state_dict().items() if not name.startswith(FOLLOWERS)
    }
    content = to_safetensors(state, metadata={"format": "cdclust-1"})
    run.write("model.safetensors", lambda file: file.write(content))


def write_assignments(run: Run, name: str, images: ImageSet, assigned: Assigned) -> None:
    """assignments.csv: every image of the source, the unreadable ones with their reason."""
    rows = runs.assignment_rows(
        images.keys,
        images.status,
        images.spread(assigned.clusters),
        images.spread(assigned.probabilities, 0),
        images.spread(assigned.seconds),
        images.spread(assigned.second_probabilities, 0),
    )
    run.write_text(name, runs.as_csv(rows))


def free_folder(stem: str) -> Path:
    """`stem`, or `stem-2`, `stem-3`, ... if it is taken: where a run goes that nobody named a folder for."""
    number = 1
    while (path := Path(stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    return path


def load_summary(out: Path) -> dict[str, Any]:
    """summary.json of a folder of seeds."""
    try:
        found: dict[str, Any] = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{out} has no summary.json: it is no folder of seeds") from error
    return found
