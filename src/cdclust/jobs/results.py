"""What a trained method makes of the images, scored and written into the run folder."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as to_safetensors

from cdclust import run as runs
from cdclust.data import OK, Catalogue
from cdclust.engine.assign import Assigned, assign_all
from cdclust.engine.feed import Feed
from cdclust.engine.train import Listener, Progress
from cdclust.evaluation.health import Health, health, looks_collapsed, sizes_disagree
from cdclust.evaluation.kmeans import centroids
from cdclust.evaluation.metrics import scores
from cdclust.jobs.report import after_fit
from cdclust.jobs.setup import Bench
from cdclust.methods import Method
from cdclust.report.sheet import draw_sheet
from cdclust.run import Run

FOLLOWERS = ("twin.", "queue.", "recent.", "sizes.")  # what training needs and using the model does not


def scorer(bench: Bench) -> Callable[[], dict[str, float]] | None:
    """Scores of the method as it stands, or none without labels."""
    there, feed = bench.material.scored, bench.scored
    labels = None if there is None else there.image_labels
    if feed is None or labels is None:
        return None

    def score() -> dict[str, float]:
        settle(bench)
        return _scores(_assign(bench, feed).clusters, labels)

    return score


def settle(bench: Bench) -> None:
    """Give a plain pretext method its clusters: k-means on the features of the training images."""
    method = bench.method
    if not method.n_logits:
        features = _assign(bench, bench.training, features=True).features
        method.centroids.copy_(torch.from_numpy(centroids(features, method.n_clusters, bench.recipe.seed)))


def write(
    run: Run, bench: Bench, progress: Progress, cautions: list[str], losses: list[float], report: bool = True
) -> None:
    """Write what came out; metrics.json comes last and marks the run as finished.

    `losses` are those of all networks that were trained, of which this one was kept.
    """
    settle(bench)
    save_weights(run, bench.method)
    training = bench.material.training
    assigned = _assign(bench, bench.training, features=bench.frozen is None)
    run.write("assignments.csv", lambda file: runs.write_csv(file, rows(training, assigned)))
    if bench.frozen is None:
        run.write_array("embeddings.npy", training.spread(assigned.features, 0))
    else:
        run.write_array("embeddings.npy", bench.frozen.training.clean)  # mapped, and zeros where nothing was readable
    run.write("clusters.png", lambda file: draw_sheet(bench.picture, assigned).save(file, "PNG"))
    found = health(assigned.clusters, assigned.probabilities, bench.recipe.n_clusters)
    said = looks_collapsed(found) or _other_sizes(bench, found)
    batch = bench.recipe.training.batch_size
    metrics = {
        **_final_scores(bench, assigned),
        "n_images": training.n_total,
        "n_unreadable": training.n_unreadable,
        "n_clusters": bench.recipe.n_clusters,
        "cluster_sizes": found.sizes.tolist(),
        "confidence": round(found.confidence, 6),
        "seconds": round(progress.seconds, 3),
        "images_per_second": round(progress.step * batch / max(progress.seconds, 1e-9), 1),
        **_embedding_speed(bench),
        "warnings": [*cautions, said] if said else cautions,
        "notes": training.notes,
        "protocol": _protocol(bench) | _choice(losses),
    }
    if report:
        metrics["notes"] = [*training.notes, *after_fit(run, bench, metrics)]
    run.write_json("metrics.json", metrics)


def save_weights(run: Run, method: Method) -> None:
    """model.safetensors: encoder, head, predictor or centroids; not twin or queue."""
    state = {
        name: value.contiguous().cpu() for name, value in method.state_dict().items() if not name.startswith(FOLLOWERS)
    }
    content = to_safetensors(state, metadata={"format": "cdclust-1"})
    run.write("model.safetensors", lambda file: file.write(content))


def rows(images: Catalogue, assigned: Assigned) -> Iterator[tuple[str, ...]]:
    """Lines of assignments.csv: every image of the source, the unreadable ones with their reason alone."""
    bad = {row: status for row, status in enumerate(images.status) if status != OK}
    return lines(images.keys, images.rows, assigned, bad)


def lines(
    keys: Sequence[str], there: NDArray[np.int64], assigned: Assigned, bad: dict[int, str]
) -> Iterator[tuple[str, ...]]:
    """A line an image, in the order of the source; `there` are the rows that `assigned` speaks of."""
    place = dict(zip(there.tolist(), range(len(there)), strict=True))
    for row in sorted([*place, *bad]):
        if row in bad:
            yield keys[row], "", "", "", "", bad[row]
            continue
        at = place[row]
        p, p2 = f"{assigned.probabilities[at]:.6f}", f"{assigned.second_probabilities[at]:.6f}"
        yield keys[row], str(assigned.clusters[at]), p, str(assigned.seconds[at]), p2, OK


def assigning(listener: Listener, total: int) -> Callable[[int], None]:
    """Tells the listener how many images are assigned."""
    return lambda done: listener.on_work("assigning images", done, total)


def _assign(bench: Bench, feed: Feed, features: bool = False) -> Assigned:
    tell = assigning(bench.listener, len(feed))
    return assign_all(bench.method, feed, tell, features=features, table=False)


def _scores(clusters: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in scores(clusters, labels, ignore_unknown=True).items()}


def _final_scores(bench: Bench, of_training: Assigned) -> dict[str, float]:
    there, feed = bench.material.scored, bench.scored
    if there is None or feed is None or there.image_labels is None:
        return {}
    assigned = of_training if feed is bench.training else _assign(bench, feed)
    return _scores(assigned.clusters, there.image_labels)


def _embedding_speed(bench: Bench) -> dict[str, float]:
    speed = bench.frozen.images_per_second if bench.frozen else None
    return {"embedded_images_per_second": round(speed, 1)} if speed else {}


def _other_sizes(bench: Bench, found: Health) -> str | None:
    """Where the clusters' sizes are not those that equation 5 was given; soft ones may be any."""
    sizes = bench.recipe.objective.sizes
    if sizes == "soft" or not bench.recipe.head.split:
        return None
    return sizes_disagree(found, None if isinstance(sizes, str) else sizes)


def _backbone(bench: Bench) -> dict[str, Any]:
    """What the backbone has seen: labels, if somebody trained it with them."""
    if bench.frozen is None:
        return {"backbone": "from scratch", "backbone_saw_labels": False}
    backbone = bench.frozen.backbone
    return {
        "backbone": backbone.name,
        "backbone_digest": backbone.digest,
        "backbone_trained_with": backbone.trained_with,
        "backbone_saw_labels": backbone.saw_labels,
        "backbone_weights": backbone.matched,
        "features": "fresh views at every step" if bench.recipe.features.exact else "views embedded once",
    }


def _choice(losses: list[float]) -> dict[str, Any]:
    """How one of several networks was chosen."""
    if len(losses) == 1:
        return {}
    return {"attempts": len(losses), "chosen_by": "lowest loss of the last epoch", "losses_of_attempts": losses}


def _protocol(bench: Bench) -> dict[str, Any]:
    recipe, training, scored = bench.recipe, bench.material.training, bench.material.scored
    framework = recipe.method.framework
    return {
        "method": framework if recipe.head.split else f"{framework} without z_c, k-means on its features",
        "trained_on": f"{training.name}: {training.split}",
        "split": bench.material.protocol,
        "n_scored": 0 if scored is None else len(scored),
        "epoch": recipe.training.epochs,
        "seed": recipe.seed,
        "labels_used_for_selection": False,
        **_backbone(bench),
        "nmi_averaging": "arithmetic",
    }
