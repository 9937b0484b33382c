"""A trained method over many images: who is in which cluster, how sure, and the features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdclust.engine.feed import Feed
from cdclust.engine.order import in_turn
from cdclust.methods import Method

BATCH = 512


@dataclass(frozen=True)
class Assigned:
    """One entry an image, in the order given."""

    clusters: NDArray[np.int64]  # (N,)
    probabilities: NDArray[np.float32]  # (N,)
    seconds: NDArray[np.int64]  # (N,) the second choice
    second_probabilities: NDArray[np.float32]  # (N,)
    features: NDArray[np.float32]  # (N, D), or (N, 0) where nobody asked
    table: NDArray[np.float32]  # (N, K) the probability of every cluster, or (N, 0)


@torch.no_grad()
def assign_all(
    method: Method, feed: Feed, tell: Callable[[int], None] | None = None, *, features: bool = True, table: bool = True
) -> Assigned:
    """Assign everything in a feed, clean and in eval mode; `tell` hears how many are done.

    Without `features` and `table`, an image takes a few bytes of memory however large K and D are.
    """
    method.eval()
    parts: list[tuple[Tensor, ...]] = []
    for rows in in_turn(torch.arange(len(feed)), BATCH):
        assignment = method.assign(feed.clean(rows))
        top, places = assignment.probabilities.topk(2, dim=1)
        kept = assignment.features[:, : None if features else 0], assignment.probabilities[:, : None if table else 0]
        parts.append(tuple(part.cpu() for part in (top, places, *kept)))
        if tell:
            tell(int(rows[-1]) + 1)
    sure, chosen, *whole = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
    return Assigned(chosen[:, 0], sure[:, 0], chosen[:, 1], sure[:, 1], whole[0], whole[1])


def joined(parts: Sequence[Assigned]) -> Assigned:
    """Several assignments one after the other."""
    return Assigned(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Assigned)))
