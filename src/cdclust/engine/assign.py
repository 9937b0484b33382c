"""A trained method over many images: who is in which cluster, how sure, and the features."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

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
    features: NDArray[np.float32]  # (N, D)
    table: NDArray[np.float32]  # (N, K) the probability of every cluster


@torch.no_grad()
def assign_all(method: Method, feed: Feed, tell: Callable[[int], None] | None = None) -> Assigned:
    """Assign everything in a feed, clean and in eval mode; `tell` hears how many are done."""
    method.eval()
    tables, features = [], []
    for rows in in_turn(torch.arange(len(feed)), BATCH):
        assignment = method.assign(feed.clean(rows))
        tables.append(assignment.probabilities.cpu())
        features.append(assignment.features.cpu())
        if tell:
            tell(int(rows[-1]) + 1)
    table = torch.cat(tables)
    top, places = (both.numpy() for both in table.topk(2, dim=1))
    return Assigned(places[:, 0], top[:, 0], places[:, 1], top[:, 1], torch.cat(features).numpy(), table.numpy())
