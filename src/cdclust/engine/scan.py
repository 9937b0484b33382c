"""Training SCAN's heads on the feature cache."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from cdclust.engine.features import FeatureFeed, mean_of, nearest
from cdclust.engine.order import batches, generator, in_turn, mix
from cdclust.methods.scan import ScanHeads


@dataclass(frozen=True)
class ScanSettings:
    """As in SCAN's settings for ImageNet, where too the backbone is frozen, but for the optimiser (Adam, not SGD with
    a rate of 5 that only fits features of one scale)."""

    heads: int = 10
    entropy_weight: float = 5.0
    neighbours: int = 20
    epochs: int = 100
    batch_size: int = 512
    lr: float = 1e-3


@dataclass(frozen=True)
class ScanResult:
    """What the head with the lowest loss makes of the images."""

    probabilities: Tensor  # (N, K) of clean features
    losses: list[float]  # of every head over the whole set; the lowest is kept


def train_scan(
    feed: FeatureFeed, n_clusters: int, seed: int, settings: ScanSettings, tell: Callable[[int, int], None]
) -> ScanResult:
    """Train all heads on views of images and of their neighbours, and keep the one with the lowest loss."""
    mean = mean_of(feed)
    near = nearest(feed, min(settings.neighbours, len(feed) - 1), mean)
    feed.share, feed.neighbours = 1.0, near  # a positive pair: a view of an image, and one of a neighbour
    torch.manual_seed(mix(seed, "scan"))
    heads = ScanHeads(feed.cache.key.dim, n_clusters, settings.heads, settings.entropy_weight)
    heads.backbone.mean.copy_(mean)
    heads.to(feed.device)
    optimizer = torch.optim.Adam(heads.head.parameters(), lr=settings.lr)
    batch, step = min(settings.batch_size, len(feed)), 0
    for epoch in range(settings.epochs):
        for rows in batches(len(feed), batch, seed, epoch):
            anchors, partners = feed.views(rows, generator(seed, "scan", step))
            optimizer.zero_grad()
            heads.losses(anchors, partners).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
        tell(epoch + 1, settings.epochs)
    return _best(heads, feed, near)


@torch.no_grad()
def _best(heads: ScanHeads, feed: FeatureFeed, near: Tensor) -> ScanResult:
    p = torch.cat([heads(feed.clean(rows)).cpu() for rows in in_turn(torch.arange(len(feed)), 4096)])
    losses = heads.standing(p, near)
    return ScanResult(p[:, int(losses.argmin())], losses.tolist())
