"""`-k auto`: the number of clusters is proposed from the frozen backbone's features, and the run goes on with it."""

from os import PathLike
from typing import Any

import numpy as np

from cdclust.data import open_stream
from cdclust.engine.compute import Compute
from cdclust.engine.train import Listener
from cdclust.errors import UsageError
from cdclust.evaluation.unknown_k import SAMPLE, Proposal, propose
from cdclust.jobs import frozen, setup
from cdclust.recipe import Recipe
from cdclust.run import Run

AUTO = "auto"
CRITERION = "separation and prediction strength of k-means, beyond those of a cloud without clusters; no labels"


def choose(
    source: Any,
    recipe: Recipe,
    compute: Compute,
    listener: Listener,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    strict: bool = False,
) -> tuple[Recipe, Proposal]:
    """Embed the images that will be trained on, and propose; the recipe with that number of clusters.

    What is embedded here is what the run then finds in the cache.
    """
    if recipe.network.pretrained is None:
        raise UsageError(
            "-k auto needs a frozen backbone's features, and a run from scratch has none; say how many clusters, such "
            "as -k 10, or add --backbone efficientnet-lite0"
        )
    embedder = frozen.load_embedder(recipe, compute)
    stream = open_stream(source, split=setup.training_split(source, recipe, root), labels=labels, root=root)
    found, _ = frozen.embedded(stream, embedder, recipe, listener, strict)
    rows = found.rows
    if len(rows) > SAMPLE:
        rows = np.sort(np.random.default_rng(recipe.seed).choice(rows, SAMPLE, replace=False))
    features = found.cache.clean[rows].astype(np.float32)
    proposal = propose(
        features, recipe.seed, lambda done, total: listener.on_work("looking for the number of clusters", done, total)
    )
    return recipe.changed({"n_clusters": proposal.k}), proposal


def record(run: Run, proposal: Proposal) -> None:
    """Write into metrics.json how the number was chosen, with the curve; a doubtful one is a warning."""
    metrics = run.metrics() | {"k_chosen_by": CRITERION, "k_curve": proposal.curve()}
    if not proposal.sure:
        said = doubt(proposal)
        metrics["warnings"] = [each for each in metrics["warnings"] if each != said] + [said]
    run.write_json("metrics.json", metrics)


def doubt(proposal: Proposal) -> str:
    """What is said of a number that is not sure."""
    return f"-k auto is unsure of {proposal.k} clusters: {proposal.why}; look at the clusters, and say -k yourself"
