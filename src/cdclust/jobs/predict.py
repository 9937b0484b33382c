"""`cdclust predict` and `cdclust evaluate`: a trained run on other images."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from cdclust.data import OK, Catalogue, ImageSet, ImageStream, available_splits, open_stream, read_batches
from cdclust.engine.assign import Assigned, assign_all, joined
from cdclust.engine.compute import Compute
from cdclust.engine.embed import BATCH, Embedder
from cdclust.engine.feed import Clean, ImageFeed
from cdclust.engine.train import Listener, prepare
from cdclust.errors import UserError
from cdclust.evaluation import metrics
from cdclust.jobs import frozen, results, setup, tables
from cdclust.jobs.listeners import Silent
from cdclust.methods import Method
from cdclust.names import cluster_names
from cdclust.recipe import Recipe
from cdclust.run import Run


@dataclass(frozen=True)
class Part:
    """Some of a source's images, assigned; `rows` are the places of those that could be read."""

    rows: NDArray[np.int64]
    assigned: Assigned
    bad: dict[int, str]


@dataclass(frozen=True)
class Model:
    """A trained run, ready to assign images."""

    recipe: Recipe
    method: Method
    compute: Compute
    embedder: Embedder | None = None  # of a run on a frozen backbone

    def parts(
        self, source: Any, listener: Listener, *, strict: bool = False, **options: Any
    ) -> tuple[Catalogue, Iterator[Part]]:
        """What is known of a source, and its images in turn; on a frozen backbone a batch in memory at a time."""
        if self.embedder is not None:
            stream = open_stream(source, **options)
            return Streamed(stream), self._streamed(stream, self.embedder, listener, strict)
        images = setup.load_images(source, self.recipe, progress=setup.reading(listener), strict=strict, **options)
        bad = {row: status for row, status in enumerate(images.status) if status != OK}
        return images, (Part(images.rows, self._assigned(images, listener), bad) for _ in range(1))

    def assign(self, source: Any, listener: Listener | None = None, **options: Any) -> tuple[Catalogue, Assigned]:
        """All of a source at once."""
        catalogue, found = self.parts(source, listener or Silent(), **options)
        parts = list(found)
        if isinstance(catalogue, Streamed):
            for part in parts:
                catalogue.take(part.bad)
        return catalogue, joined([part.assigned for part in parts])

    def _assigned(self, images: ImageSet, listener: Listener) -> Assigned:
        views, layout = setup.build_views(self.recipe), self.recipe.training.channels_last
        feed = ImageFeed(images.images, views, self.compute, layout, keep=False)
        return assign_all(self.method, feed, results.assigning(listener, len(images)))

    def _streamed(self, stream: ImageStream, embedder: Embedder, listener: Listener, strict: bool) -> Iterator[Part]:
        done = 0
        for rows, images, bad in read_batches(stream, range(len(stream)), embedder.read_size, BATCH, strict=strict):
            feed = Clean(embedder.clean(images) if rows else torch.zeros(0, self.method.n_features))
            done += len(rows) + len(bad)
            listener.on_work("assigning images", done, len(stream))
            yield Part(np.array(rows, dtype=np.int64), assign_all(self.method, feed), bad)


class Streamed(Catalogue):
    """A stream's images; which of them could be read comes out as they are."""

    def __init__(self, stream: ImageStream) -> None:
        self.name, self.keys, self.labels = stream.name, stream.keys, stream.labels
        self.class_names, self.split, self.notes = stream.class_names, stream.split, list(stream.notes)
        self._status = [OK] * len(stream)
        self.status, self.rows = self._status, np.arange(len(stream))

    def take(self, bad: dict[int, str]) -> None:
        """Note what could not be read."""
        for row, reason in bad.items():
            self._status[row] = reason
        self.rows = self.rows[~np.isin(self.rows, list(bad))]


def load_model(run: Run, compute: Compute) -> Model:
    """The network of a run with its weights; every tensor has to be there."""
    recipe = run.recipe()
    method = setup.build_network(recipe)
    try:
        state = load_file(run.weights)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{run.weights} cannot be read: {error}") from error
    missing, unexpected = method.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.startswith(results.FOLLOWERS)]
    if missing or unexpected:
        raise UserError(
            f"{run.weights} does not fit its recipe: {len(missing)} tensors missing, {len(unexpected)} extra"
        )
    prepare(method, compute, recipe.training.channels_last)
    method.eval()
    return Model(recipe, method, compute, _embedder(run, recipe, compute))


def _embedder(run: Run, recipe: Recipe, compute: Compute) -> Embedder | None:
    """The backbone that the run's head was trained on, and no other."""
    if recipe.network.pretrained is None:
        return None
    embedder = frozen.load_embedder(recipe, compute)
    trained_on = run.metrics()["protocol"].get("backbone_digest") if run.finished else None
    if trained_on not in (None, embedder.backbone.digest):
        raise UserError(
            f"{run.path} was trained on other weights of {recipe.network.pretrained} than are there now; bring the old "
            "ones back, or fit again"
        )
    return embedder


def predict(
    run: Run,
    source: Any,
    out: Path,
    compute: Compute,
    listener: Listener,
    *,
    split: str | None = None,
    root: str | PathLike[str] | None = None,
    strict: bool = False,
) -> "Count":
    """Assign every image of a source and write the table, with a column of names where clusters have them."""
    tables.check_table(out)
    model, names = load_model(run, compute), cluster_names(run)
    return tabulate(model, source, out, listener, names, split=split or "all", root=root, strict=strict)


def tabulate(
    model: Model, source: Any, out: Path, listener: Listener, names: dict[int, str] | None = None, **options: Any
) -> "Count":
    """Assign every image of a source and write the table."""
    catalogue, parts = model.parts(source, listener, **options)
    count = Count()
    lines = (line for part in parts for line in count.over(part, catalogue.keys))
    tables.write_table(out, tables.named(lines, names or {}), names=bool(names))
    return count


@dataclass
class Count:
    """How many images went by."""

    images: int = 0
    unreadable: int = 0
    sizes: Counter[int] = field(default_factory=Counter)  # of each cluster that got an image

    def over(self, part: Part, keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Lines of a part, which is counted."""
        self.images += len(part.rows) + len(part.bad)
        self.unreadable += len(part.bad)
        self.sizes.update(part.assigned.clusters.tolist())
        return results.lines(keys, part.rows, part.assigned, part.bad)


def evaluate(
    run: Run,
    source: Any,
    compute: Compute,
    listener: Listener,
    *,
    split: str | None = None,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Scores of a run on a labelled source, with a table a cluster and a class; on the test split if there is one."""
    model = load_model(run, compute)
    test = model.recipe.data.test_split
    if split is None:
        split = test if test in available_splits(source, root) else "all"
    images, assigned = model.assign(source, listener, split=split, labels=labels, root=root)
    if images.image_labels is None:
        raise UserError(
            f"{images.name} has no labels to score against; for a folder of class folders add --labels folders"
        )
    clusters = assigned.clusters
    table = metrics.contingency(clusters, images.image_labels, ignore_unknown=True)
    return {
        **metrics.scores(clusters, images.image_labels, ignore_unknown=True),
        "n_images": images.n_total,
        "n_unreadable": images.n_unreadable,
        "split": images.split,
        "class_names": images.class_names,
        "clusters": [vars(row) for row in metrics.per_cluster(table)],
        "classes": [vars(row) for row in metrics.per_class(table)],
    }
