"""Training on the feature cache: which features of which rows are a positive pair."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdclust.data.features import FeatureCache
from cdclust.data.stream import ImageStream
from cdclust.engine.embed import Embedder
from cdclust.engine.order import in_turn
from cdclust.methods.base import Views
from cdclust.views.policy import ViewPolicy

IN_MEMORY = 2**31  # bytes of views; more stay on disk and are read by the batch
SEARCHED = 50_000  # rows among which neighbours are looked for; of a larger set each block of as many by itself
QUERIES = 1024

Rows = NDArray[np.int64]


class FeatureFeed:
    """The readable rows of a cache. A pair is two views of an image, or views of an image and of a neighbour.

    The whole image counts as a view: it is embedded anyway, and is as good a view as any.
    """

    def __init__(
        self,
        cache: FeatureCache,
        rows: Rows,
        device: torch.device,
        share: float = 0.0,
        neighbours: Tensor | None = None,
    ) -> None:
        """`share` of the pairs are of neighbours (N, k), numbered as in `rows`."""
        self.cache, self.rows, self.device = cache, rows, device
        self.share, self.neighbours = share, neighbours
        self.n_views = 1 + cache.key.views
        small = cache.clean.nbytes + cache.views.nbytes <= IN_MEMORY
        self.in_memory = (
            torch.from_numpy(np.concatenate([cache.clean[rows, None], cache.views[rows]], 1)) if small else None
        )

    def __len__(self) -> int:
        return len(self.rows)

    def views(self, rows: Tensor, chance: torch.Generator, pretext: bool = True) -> Views:  # noqa: ARG002
        """Features (B, D) of two views."""
        first, second = two_of(self.n_views, len(rows), chance)
        return self._view(rows, first), self._view(partners(rows, self.share, self.neighbours, chance), second)

    def clean(self, rows: Tensor) -> Tensor:
        """Features (B, D) of the whole images."""
        return torch.from_numpy(self.cache.clean[self.rows[rows.numpy()]]).to(self.device).float()

    def _view(self, rows: Tensor, which: Tensor) -> Tensor:
        if self.in_memory is not None:
            return self.in_memory[rows, which].to(self.device).float()
        places, number = self.rows[rows.numpy()], which.numpy()
        self.cache.at_random()
        self.cache.ask_for(places, number)
        there = self.cache.clean[places]
        random = np.flatnonzero(number)
        there[random] = self.cache.views[places[random], number[random] - 1]
        return torch.from_numpy(there).to(self.device).float()


class ExactFeed(FeatureFeed):
    """As the paper does it: fresh views of the images through the frozen backbone at every step."""

    def __init__(
        self,
        cache: FeatureCache,
        rows: Rows,
        embedder: Embedder,
        stream: ImageStream,
        policies: tuple[ViewPolicy, ViewPolicy],
        share: float = 0.0,
        neighbours: Tensor | None = None,
    ) -> None:
        super().__init__(cache, rows, embedder.compute.device, share, neighbours)
        self.embedder, self.stream, self.policies = embedder, stream, policies

    def views(self, rows: Tensor, chance: torch.Generator, pretext: bool = True) -> Views:  # noqa: ARG002
        """Features (B, D) of two fresh views."""
        there = partners(rows, self.share, self.neighbours, chance)
        first, second = self._fresh(rows, 0, chance), self._fresh(there, 1, chance)
        return first, second

    def _fresh(self, rows: Tensor, branch: int, chance: torch.Generator) -> Tensor:
        images = np.stack([self.stream.read(int(row), self.embedder.read_size) for row in self.rows[rows.numpy()]])
        return self.embedder.view(torch.from_numpy(images), self.policies[branch], chance).clone()


def two_of(n_views: int, batch: int, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two different views an image, evenly; with one view, that one twice."""
    first = torch.randint(n_views, (batch,), generator=chance)
    further = torch.randint(1, max(2, n_views), (batch,), generator=chance)
    return first, (first + further) % n_views


def partners(rows: Tensor, share: float, neighbours: Tensor | None, chance: torch.Generator) -> Tensor:
    """Each row itself, or, for a share of them, one of its neighbours."""
    if neighbours is None or share <= 0:
        return rows
    drawn = neighbours[rows, torch.randint(neighbours.shape[1], (len(rows),), generator=chance)].long()
    return torch.where(torch.rand(len(rows), generator=chance) < share, drawn, rows)


@torch.no_grad()
def nearest(feed: FeatureFeed, k: int, mean: Tensor) -> Tensor:
    """The k rows of the largest cosine with each row, around the mean, itself left out: int32 (N, k).

    Exact for up to 50,000 rows; of more, exact within even blocks of at most as many.
    """
    n_blocks = -(-len(feed) // SEARCHED)
    found = torch.empty(len(feed), k, dtype=torch.int32)
    for block in torch.arange(len(feed)).tensor_split(n_blocks):
        unit = torch.cat([unit_around(feed.clean(rows), mean) for rows in in_turn(block, QUERIES)])
        half = unit.to(torch.bfloat16) if unit.device.type == "cuda" else unit
        for place in in_turn(torch.arange(len(block)), QUERIES):
            cosine = (half[place] @ half.T).float()
            cosine[torch.arange(len(place)), place] = -2.0
            found[block[place]] = block[cosine.topk(k, dim=1).indices.cpu()].int()
    return found


def mean_of(feed: FeatureFeed) -> Tensor:
    """The mean of the clean features (D,)."""
    total = sum(feed.clean(rows).double().sum(dim=0) for rows in in_turn(torch.arange(len(feed)), QUERIES))
    assert isinstance(total, Tensor)
    return (total / len(feed)).float()


def unit_around(features: Tensor, mean: Tensor) -> Tensor:
    """Rows of length 1, seen from the mean."""
    return torch.nn.functional.normalize(features - mean, dim=1)
