"""From a source and a recipe to what the engine needs: images, views, a method, and settings with nothing left open."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cdclust.data import Catalogue, ImageSet, available_splits, load_source
from cdclust.data.features import FeatureCache
from cdclust.engine.compute import Compute
from cdclust.engine.feed import Feed, ImageFeed
from cdclust.engine.order import mix
from cdclust.engine.train import Listener
from cdclust.errors import UsageError, UserError
from cdclust.methods import Method, build_method
from cdclust.networks.pretrained import Pretrained
from cdclust.recipe import Recipe
from cdclust.views.pair import ViewPair
from cdclust.views.policy import resolve

SAMPLE = 10_000  # images whose pixels give the mean and deviation, where the recipe does not


@dataclass(frozen=True)
class Material:
    """The images of a run: those trained on, and those scored, which may be the same."""

    training: Catalogue
    scored: Catalogue | None  # none where there are no labels
    protocol: str  # which split is scored, in words


@dataclass(frozen=True)
class Frozen:
    """The backbone of a run that trains only a head."""

    backbone: Pretrained
    training: FeatureCache
    images_per_second: float | None  # embedded; none where the cache was complete already


@dataclass(frozen=True)
class Bench:
    """Everything a run works with."""

    recipe: Recipe  # with nothing left open
    material: Material
    training: Feed
    scored: Feed | None
    method: Method
    compute: Compute
    listener: Listener
    identity: str  # what must be the same for a checkpoint to be gone on with: settings and images
    picture: Callable[[int], Tensor]  # a training image uint8 (C, H, W), to be looked at
    frozen: Frozen | None = None


def build(
    source: Any,
    recipe: Recipe,
    compute: Compute,
    listener: Listener,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    strict: bool = False,
) -> Bench:
    """Read the images and build what trains on them; whatever can be known wrong is refused here."""
    progress = reading(listener)
    material = load_material(source, recipe, labels=labels, root=root, progress=progress, strict=strict)
    images, scored = material.training, material.scored
    assert isinstance(images, ImageSet)
    recipe = complete(recipe, images.images, compute)
    views, layout = build_views(recipe), recipe.training.channels_last
    training = feed = ImageFeed(images.images, views, compute, layout)
    if scored is not images and isinstance(scored, ImageSet):
        feed = ImageFeed(scored.images, views, compute, layout, keep=False)
    return Bench(
        recipe,
        material,
        training,
        None if scored is None else feed,
        build_network(recipe),
        compute,
        listener,
        identity(recipe, np.ascontiguousarray(images.images.numpy()).data),
        lambda row: images.images[row],
    )


def reading(listener: Listener) -> Callable[[int, int], None]:
    """Tells the listener how many images are read."""
    return lambda done, total: listener.on_work("reading images", done, total)


def load_material(source: Any, recipe: Recipe, root: str | PathLike[str] | None = None, **options: Any) -> Material:
    """Read the training split, and the test split where the source has one with labels."""
    return gathered(source, recipe, root, lambda split: load_images(source, recipe, split=split, root=root, **options))


def gathered(
    source: Any, recipe: Recipe, root: str | PathLike[str] | None, load: Callable[[str | None], Catalogue]
) -> Material:
    """Which splits are trained on and scored; `load` brings one by its name."""
    splits, wanted = available_splits(source, root), training_split(source, recipe, root)
    training = load(wanted)
    if len(training) < 2:
        raise UserError(f"source: {training.name} has {len(training)} readable images; give at least two")
    test = recipe.data.test_split
    if test and test in splits and test != wanted and training.labels is not None:
        return Material(training, load(test), test)
    if training.labels is None:
        return Material(training, None, "none: no labels")
    return Material(training, training, wanted or "all images, the same as trained on")


def load_images(source: Any, recipe: Recipe, **options: Any) -> ImageSet:
    """The images of a source at the recipe's size, grey or in colour as it says."""
    images = load_source(source, size=recipe.data.size, **options)
    there, wanted = images.images.shape[1], recipe.data.channels
    if wanted is None or wanted == there:
        return images
    pixels = images.images.expand(-1, 3, -1, -1) if wanted == 3 else grey(images.images)
    return replace(images, images=pixels.contiguous())


def grey(images: Tensor) -> Tensor:
    """The brightness (ITU-R 601) of colour images uint8 (N, 3, H, W), a chunk at a time: (N, 1, H, W)."""
    weights = torch.tensor([0.299, 0.587, 0.114])
    parts = [
        torch.einsum("nchw,c->nhw", part.float(), weights) for part in images.tensor_split(len(images) // 4096 + 1)
    ]
    return torch.cat([part.round().to(torch.uint8) for part in parts])[:, None]


def training_split(source: Any, recipe: Recipe, root: str | PathLike[str] | None = None) -> str | None:
    """The split that is trained on; none where the source is one set and the recipe asks for nothing special."""
    asked = recipe.data.train_split
    return None if asked == "train" and "train" not in available_splits(source, root) else asked


def complete(recipe: Recipe, pixels: Tensor, compute: Compute) -> Recipe:
    """The recipe with nothing left open: size, channels, the pixels' mean and deviation, precision."""
    n, channels, height, width = pixels.shape
    refuse_too_many_clusters(recipe, n)
    if recipe.training.batch_size > n:
        size = recipe.training.batch_size
        raise UserError(
            f"training.batch_size = {size} is more than the {n} images; write --set batch_size={largest_batch(n)}"
        )
    if height != width:
        raise UserError(f"images are {height} x {width}; write --set data.size={min(height, width)} for square ones")
    changes: dict[str, Any] = {"data.size": height, "data.channels": channels, "training.precision": compute.precision}
    if recipe.data.mean is None or recipe.data.std is None:
        mean, std = pixel_statistics(pixels)
        changes |= {"data.mean": mean, "data.std": std}
    elif len(recipe.data.mean) != channels or len(recipe.data.std) != channels:
        raise UsageError(f"data.mean and data.std need {channels} values for these images; write data.mean=null")
    return recipe.changed(changes)


def refuse_too_many_clusters(recipe: Recipe, n: int) -> None:
    """Every cluster needs an image."""
    if recipe.n_clusters > n:
        raise UsageError(f"-k {recipe.n_clusters} is more than the {n} images; write a smaller -k")


def largest_batch(n_images: int) -> int:
    """The largest power of two that still gives two steps an epoch."""
    return int(max(2, 2 ** math.floor(math.log2(max(2, n_images // 2)))))


def pixel_statistics(images: Tensor) -> tuple[list[float], list[float]]:
    """Mean and standard deviation a channel, of pixels in 0..1, over an even sample of the images."""
    sample = images[:: max(1, len(images) // SAMPLE)].double() / 255
    mean, std = sample.mean(dim=(0, 2, 3)), sample.std(dim=(0, 2, 3))
    return [round(float(m), 4) for m in mean], [round(max(float(s), 1e-3), 4) for s in std]


def build_views(recipe: Recipe) -> ViewPair:
    """The recipe's views of its images."""
    assert recipe.data.mean is not None
    assert recipe.data.std is not None
    v = recipe.views
    first, later = resolve(v.policy, **v.change), resolve(v.policy, **(v.change | v.change_later))
    return ViewPair(first, recipe.data.mean, recipe.data.std, v.size, recipe.data.size, later)


def build_network(recipe: Recipe) -> Method:
    """The recipe's method with random weights that follow from its seed; it must take images of both sizes."""
    torch.manual_seed(mix(recipe.seed, "weights"))
    if recipe.network.pretrained is not None:
        return build_method(recipe)
    channels, whole = recipe.data.channels or 3, recipe.data.size or 32
    seen = recipe.views.size or whole
    method = build_method(recipe, channels, seen)
    if seen != whole:
        try:
            method.eval().embed(torch.zeros(1, channels, whole, whole))
        except (RuntimeError, AssertionError):
            raise UserError(
                f"views.size = {seen} and data.size = {whole}: {recipe.network.backbone} with pool = "
                f"{recipe.network.pool} takes images of one size alone; write --set views.size=null"
            ) from None
    return method


def attempt(bench: Bench, number: int) -> Bench:
    """The same work with a network from other random weights, and all other chance in training different too."""
    chance = bench.recipe.seed if number == 0 else mix(bench.recipe.seed, "attempt", number)
    recipe = bench.recipe.changed({"seed": chance, "training.attempts": 1})
    method = build_network(recipe)
    if bench.frozen:
        method.encoder.backbone.load_state_dict(bench.method.encoder.backbone.state_dict())
    digest = hashlib.blake2b(f"{bench.identity} {number}".encode(), digest_size=16).hexdigest()
    return replace(bench, recipe=recipe, method=method, identity=digest)


def identity(recipe: Recipe, images: bytes | memoryview) -> str:
    """A digest of everything that a checkpoint depends on."""
    settings = recipe.model_dump(mode="json", exclude={"name", "about", "origin"})
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)
    digest.update(images)
    return digest.hexdigest()
