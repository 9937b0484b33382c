"""Images through a frozen backbone, once: clean and as random views, into the feature cache."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from cdclust.data.features import FeatureCache
from cdclust.data.stream import ImageStream, read_batches
from cdclust.engine.compute import Compute
from cdclust.engine.interrupt import Interrupted, StopFlag
from cdclust.engine.order import generator
from cdclust.networks.pretrained import Pretrained
from cdclust.views.augment import augment, clean
from cdclust.views.policy import ViewPolicy

BATCH = 64
MARGIN = 1.15  # images are read a little larger than the backbone sees them, so that crops are no enlargements

Tell = Callable[[int, int], None]


class Embedder:
    """A frozen backbone on its device, over images uint8 (B, 3, S, S) as they are read."""

    def __init__(self, backbone: Pretrained, size: int, compute: Compute) -> None:
        self.backbone, self.size, self.compute = backbone, size, compute
        backbone.network.to(compute.device)
        backbone.network.to(memory_format=torch.channels_last)

    @property
    def read_size(self) -> int:
        """The side that images are read at."""
        return round(self.size * MARGIN)

    def clean(self, images: Tensor) -> Tensor:
        """Features (B, D) of whole images."""
        return self._features(clean(images.to(self.compute.device), self.size))

    def view(self, images: Tensor, policy: ViewPolicy, chance: torch.Generator) -> Tensor:
        """Features (B, D) of a random view of each image."""
        return self._features(augment(images.to(self.compute.device), policy, chance, self.size))

    @torch.inference_mode()
    def _features(self, images: Tensor) -> Tensor:
        images = images.to(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, self.compute.autocast, enabled=self.compute.autocast is not None):
            return self.backbone(images).float()


def fill(
    cache: FeatureCache,
    stream: ImageStream,
    embedder: Embedder,
    policies: tuple[ViewPolicy, ViewPolicy],
    tell: Tell,
    *,
    strict: bool = False,
    stop: StopFlag | None = None,
    rank: int = 0,
    world: int = 1,
) -> float:
    """Embed what the cache still misses, this process's share of it; images a second.

    A chunk's chance follows from its number alone, so a cache that was cut short and gone on with is the same cache.
    """
    missing, start, done = list(cache.missing(rank, world)), time.perf_counter(), 0
    total = sum(len(cache.rows_of(chunk)) for chunk in missing)
    for chunk in missing:
        chance, bad = generator("views", chunk), dict[int, str]()
        for rows, images, unreadable in read_batches(
            stream, cache.rows_of(chunk), embedder.read_size, BATCH, strict=strict
        ):
            bad |= unreadable
            done += len(rows) + len(unreadable)
            if rows:
                cache.clean[rows] = _half(embedder.clean(images))
                for view in range(cache.key.views):
                    cache.views[rows, view] = _half(embedder.view(images, policies[view % 2], chance))
            tell(done, total)
            if stop is not None and stop.set:
                raise Interrupted
        cache.finish(chunk, bad)
    return done / max(time.perf_counter() - start, 1e-9)


def _half(features: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float16]]:
    limit = torch.finfo(torch.float16).max
    return features.clamp(-limit, limit).half().cpu().numpy()
