"""MoCo v2: one view through the encoder, the other through its momentum twin, negatives from a queue."""

import torch
from torch import Tensor, nn

from cdclust.methods.base import Losses, Method, Views, averaged
from cdclust.networks.batchnorm import forward_in_parts, keep_running_statistics_slow, shuffled_forward
from cdclust.networks.encoder import last_linear
from cdclust.networks.queue import Queue
from cdclust.networks.twin import Twin
from cdclust.objectives import info_nce
from cdclust.objectives.collective import Group
from cdclust.recipe import Recipe

SMALLEST_PART = 16  # images; statistics of fewer are mostly noise


class MoCoV2(Method):
    """He et al. 2020, Chen et al. 2020b; the frameworks' figure 1 in the paper."""

    def __init__(self, recipe: Recipe, channels: int = 3, size: int | None = None, group: Group = None) -> None:
        super().__init__(recipe, channels, size, group)
        self.twin = Twin(self.encoder)
        self.queue = Queue(self.settings.queue, self.halves)
        self._newest: list[Tensor] = []
        self.parts = max(1, min(self.settings.split_batch_norm, recipe.training.batch_size // SMALLEST_PART))
        for network in (self.encoder, self.twin):
            keep_running_statistics_slow(network, self.parts)

    def step(self, views: Views) -> Losses:
        """Contrast the first view with the second and the queue; with `symmetric`, also the other way round."""
        x_q, x_k = views
        there = self._one_way(x_q, x_k)
        return averaged(there, self._one_way(x_k, x_q)) if self.settings.symmetric else there

    def _one_way(self, x_q: Tensor, x_k: Tensor) -> Losses:
        q = self.represent(lambda x: forward_in_parts(self.encoder, x, self.parts), x_q)  # (B, K + C)
        k = self.represent(lambda x: shuffled_forward(self.twin, x, self.parts), x_k)  # (B, K + C), without gradient
        self._newest.append(k)
        return self.losses(info_nce(q, k, self.queue.vectors, self.objective.tau), q, k)

    def z_c_layers(self) -> list[list[nn.Linear]]:
        """The twin's too: what it assigns must mean the same clusters."""
        return [[last_linear(self.encoder.head), last_linear(self.twin.network.head)]]

    def n_negatives(self, batch_size: int) -> int:  # noqa: ARG002 - the queue is as long as it is
        """All of the queue."""
        return len(self.queue.vectors)

    @torch.no_grad()
    def after_step(self) -> None:
        """The twin follows; the newest keys become negatives."""
        self.twin.follow(self.encoder, self.settings.momentum)
        for k in self._newest:
            self.queue.push(k)
        self._newest.clear()
