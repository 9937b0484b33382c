"""A run on a frozen backbone: images embedded once into the feature cache, and a head trained on what lies there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdclust.data import Catalogue, ImageStream, data_root, open_stream
from cdclust.data.arrays import ArrayStream
from cdclust.data.decode import Unreadable
from cdclust.data.features import CacheKey, FeatureCache, open_cache
from cdclust.data.imageset import OK, refuse_if_mostly_bad
from cdclust.engine.compute import Compute
from cdclust.engine.embed import Embedder, fill
from cdclust.engine.features import ExactFeed, FeatureFeed, mean_of, nearest
from cdclust.engine.interrupt import stop_on_signals
from cdclust.engine.train import Listener
from cdclust.errors import UserError
from cdclust.jobs import setup
from cdclust.jobs.setup import Bench, Frozen
from cdclust.methods import Method
from cdclust.networks.encoder import Features
from cdclust.networks.pretrained import load_pretrained
from cdclust.recipe import Recipe
from cdclust.views.policy import resolve

SHOWN = 160  # side of the images of clusters.png and report.html
SHARES = {"views": 0.0, "both": 0.5, "neighbours": 1.0}


@dataclass
class Embedded(Catalogue):
    """A stream of which every readable image is in the cache."""

    stream: ImageStream
    cache: FeatureCache
    name: str
    keys: Any
    status: list[str]
    rows: NDArray[np.int64]
    labels: NDArray[np.int64] | None
    class_names: list[str] | None
    split: str
    notes: list[str]

    def picture(self, row: int) -> Tensor:
        """A readable image, to be looked at; black if it has gone since."""
        try:
            return torch.from_numpy(to_be_seen(self.stream, int(self.rows[row])))
        except Unreadable:
            return torch.zeros(3, SHOWN, SHOWN, dtype=torch.uint8)


def to_be_seen(stream: ImageStream, row: int) -> NDArray[np.uint8]:
    """An image at a size to be looked at; a small one of an array as it is, and so sharp."""
    if isinstance(stream, ArrayStream):
        pixels = stream.read(row, None)
        if max(pixels.shape[1:]) <= SHOWN:
            return pixels
    return stream.read(row, SHOWN)


def cache_root() -> Path:
    """Where feature caches lie: the variable CDCLUST_CACHE, else `features` beside the data sets."""
    named = os.environ.get("CDCLUST_CACHE")
    return Path(named).expanduser() if named else data_root() / "features"


def build(
    source: Any,
    recipe: Recipe,
    compute: Compute,
    listener: Listener,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    strict: bool = False,
) -> Bench:
    """Embed the images, or find them embedded, and build the head that trains on them."""
    embedder = load_embedder(recipe, compute)
    speeds: list[float] = []

    def load(split: str | None) -> Embedded:
        stream = open_stream(source, split=split, labels=labels, root=root)
        setup.refuse_too_many_clusters(recipe, len(stream))
        found, speed = embedded(stream, embedder, recipe, listener, strict)
        speeds.extend([speed] if speed else [])
        return found

    material = setup.gathered(source, recipe, root, load)
    training, scored = material.training, material.scored
    assert isinstance(training, Embedded)
    recipe = _complete(recipe, training, embedder)
    feed = _training_feed(training, embedder, recipe, listener)
    method = setup.build_network(recipe)
    _backbone(method).mean.copy_(mean_of(feed))
    scored_feed = feed if scored is training else None
    if isinstance(scored, Embedded) and scored is not training:
        scored_feed = FeatureFeed(scored.cache, scored.rows, compute.device)
    digest = (training.cache.key.digest() + str(len(training))).encode()
    frozen = Frozen(embedder.backbone, training.cache, speeds[0] if speeds else None)
    identity = setup.identity(recipe, digest)
    return Bench(recipe, material, feed, scored_feed, method, compute, listener, identity, training.picture, frozen)


def load_embedder(recipe: Recipe, compute: Compute) -> Embedder:
    """The recipe's backbone, ready to embed."""
    assert recipe.network.pretrained is not None
    backbone = load_pretrained(recipe.network.pretrained, recipe.features.size)
    return Embedder(backbone, recipe.features.size or backbone.size, compute)


def embedded(
    stream: ImageStream,
    embedder: Embedder,
    recipe: Recipe,
    listener: Listener,
    strict: bool,
    views: int | None = None,
) -> tuple[Embedded, float | None]:
    """The stream with its features, and how many images a second went through the backbone if any had to.

    `views` None are as many as the recipe asks for; 0 embeds the whole images alone.
    """
    policies = resolve(recipe.views.policy, **recipe.views.change)
    key = CacheKey(
        source=stream.fingerprint(),
        backbone=f"{embedder.backbone.name} {embedder.backbone.digest}",
        size=embedder.size,
        views=recipe.features.views if views is None else views,
        policy=json.dumps([policy.model_dump(mode="json") for policy in policies]),
        precision=embedder.compute.precision,
        n=len(stream),
        dim=embedder.backbone.dim,
    )
    cache = open_cache(cache_root(), stream.name, key)
    speed = None
    if not cache.complete:
        tell = _telling(listener, cache.n_done, key.n)
        with stop_on_signals() as stop:
            speed = fill(cache, stream, embedder, policies, tell, strict=strict, stop=stop)
    status = cache.status_list()
    refuse_if_mostly_bad(status, stream.keys, stream.name)
    bad = next((row for row, each in enumerate(status) if each != OK), None) if strict else None
    if bad is not None:
        raise UserError(
            f"--strict: {stream.keys[bad]!r} of {stream.name} is {status[bad]}; mend it or leave --strict out"
        )
    rows = np.flatnonzero(np.array([each == OK for each in status]))
    found = Embedded(
        stream, cache, stream.name, stream.keys, status, rows, stream.labels, stream.class_names, stream.split,
        list(stream.notes),
    )  # fmt: skip
    return found, speed


def _telling(listener: Listener, before: int, total: int) -> Callable[[int, int], None]:
    return lambda done, _: listener.on_work("embedding images", before + done, total)


def _complete(recipe: Recipe, training: Embedded, embedder: Embedder) -> Recipe:
    """The recipe with nothing left open; a batch that is too large for a small folder is made smaller, and said."""
    n = len(training)
    setup.refuse_too_many_clusters(recipe, n)
    changes: dict[str, Any] = {
        "data.size": embedder.size,
        "data.channels": 3,
        "data.mean": list(embedder.backbone.mean),
        "data.std": list(embedder.backbone.std),
        "features.size": embedder.size,
        "network.features": training.cache.key.dim,
        "training.precision": embedder.compute.precision,
        "features.neighbours": min(recipe.features.neighbours, n - 1),
    }
    if 2 * recipe.training.batch_size > n:
        changes["training.batch_size"] = smaller = setup.largest_batch(n)
        training.notes.append(f"training.batch_size is {smaller} here, not {recipe.training.batch_size}: {n} images")
    return recipe.changed(changes)


def _training_feed(training: Embedded, embedder: Embedder, recipe: Recipe, listener: Listener) -> FeatureFeed:
    settings, device = recipe.features, embedder.compute.device
    feed = FeatureFeed(training.cache, training.rows, device)
    share, near = SHARES[settings.positives], None
    if share:
        listener.on_work("looking for neighbours", 0, len(feed))
        near = nearest(feed, settings.neighbours, mean_of(feed))
        listener.on_work("looking for neighbours", len(feed), len(feed))
    if settings.exact:
        policies = resolve(recipe.views.policy, **recipe.views.change)
        return ExactFeed(training.cache, training.rows, embedder, training.stream, policies, share, near)
    feed.share, feed.neighbours = share, near
    return feed


def _backbone(method: Method) -> Features:
    backbone = method.encoder.backbone
    assert isinstance(backbone, Features)
    return backbone
