"""Clusters of given shares: which of them is to be how large."""

import torch
from torch import Tensor, nn

from cdclust.objectives.collective import Group, all_sum, rank_and_world

MOMENTUM = 0.95  # of a step: some twenty steps are remembered, an epoch or two of a small folder


class Sizes(nn.Module):
    """A moving average of the clusters' shares of the images, from even ones on."""

    share: Tensor  # (K,)

    def __init__(self, n_clusters: int) -> None:
        super().__init__()
        self.register_buffer("share", torch.full((n_clusters,), 1 / n_clusters))

    @torch.no_grad()
    def follow(self, p: Tensor, group: Group = None) -> None:
        """Move towards the mean of a batch's probabilities (B, K), of all processes."""
        mean = all_sum(p.mean(dim=0), group) / rank_and_world(group)[1]
        self.share.lerp_(mean, 1 - MOMENTUM)

    def ranked(self, given: tuple[float, ...]) -> Tensor:
        """Given shares (K,), the largest for the cluster that is largest now, and so on down."""
        shares = torch.empty_like(self.share)
        shares[self.share.argsort(descending=True)] = shares.new_tensor(sorted(given, reverse=True))
        return shares
