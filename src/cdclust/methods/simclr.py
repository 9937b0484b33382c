"""SimCLR: both views through one encoder, negatives from the same batch."""

import torch

from cdclust.methods.base import Losses, Method, Views
from cdclust.objectives import info_nce_within_batch


class SimCLR(Method):
    """Chen et al. 2020a."""

    def step(self, views: Views) -> Losses:
        """Contrast each view with the other and with both views of all other images."""
        z = self.represent(self.query, torch.cat(views))  # (2 B, K + C)
        q, k = z.chunk(2)
        return self.losses(info_nce_within_batch(q, k, self.objective.tau, self.group), q, k)

    def n_negatives(self, batch_size: int) -> int:
        """Both views of the other images."""
        return 2 * batch_size - 2
