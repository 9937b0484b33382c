"""MoCo v3: encoder and predictor against the momentum twin, both ways, negatives from the same batch."""

import math

import torch
from torch import Tensor, nn

from cdclust.methods.base import Losses, Method, Views, averaged
from cdclust.networks.encoder import MLP, before_last_linear, last_linear
from cdclust.networks.twin import Twin
from cdclust.objectives import info_nce_across_batch
from cdclust.objectives.collective import Group
from cdclust.recipe import Recipe


class MoCoV3(Method):
    """Chen et al. 2021. z is split at the end of each branch: behind the predictor, and behind the twin's head.

    InfoNCE is not multiplied by 2 tau as in the official code, and the two directions are averaged, so that alpha
    weighs the constraint as in the other frameworks.
    """

    def __init__(self, recipe: Recipe, channels: int = 3, size: int | None = None, group: Group = None) -> None:
        super().__init__(recipe, channels, size, group)
        self.twin = Twin(self.encoder)
        z = sum(self.halves)
        self.predictor = MLP(z, self.settings.predictor_hidden, z, 2, batch_norm=True, batch_norm_out=False)

    def query(self, images: Tensor) -> Tensor:
        """The encoder's branch ends behind the predictor."""
        z: Tensor = self.predictor(self.encoder(images))
        return z

    def _from_features(self, features: Tensor) -> Tensor:
        z: Tensor = self.predictor(self.encoder.head(features))
        return z

    def step(self, views: Views) -> Losses:
        """Contrast each view's prediction with the twin's z of the other view."""
        x_1, x_2 = views
        there = self._one_way(x_1, x_2)
        return there if self.settings.symmetric is False else averaged(there, self._one_way(x_2, x_1))

    def _one_way(self, x_q: Tensor, x_k: Tensor) -> Losses:
        q = self.represent(self.query, x_q)  # (B, K + C)
        with torch.no_grad():
            k = self.represent(self.twin, x_k)  # (B, K + C)
        return self.losses(info_nce_across_batch(q, k, self.objective.tau, self.group), q, k)

    def before_z_c(self, images: Tensor) -> list[Tensor]:
        """What enters the head's last layer, and the predictor's."""
        with self.in_precision(images):
            features = self.encoder.backbone(images)
            z = self.encoder.head(features)
            return [before_last_linear(self.encoder.head)(features), before_last_linear(self.predictor)(z)]

    def z_c_layers(self) -> list[list[nn.Linear]]:
        """Those of the head and its twin, then the predictor's."""
        return [
            [last_linear(self.encoder.head), last_linear(self.twin.network.head)],
            [last_linear(self.predictor)],
        ]

    def n_negatives(self, batch_size: int) -> int:
        """The other images' keys."""
        return batch_size - 1

    @torch.no_grad()
    def after_step(self) -> None:
        """The twin follows, more slowly towards the end where the recipe says so."""
        momentum = self.settings.momentum
        if self.settings.momentum_to_one:
            momentum = 1 - (1 - momentum) * 0.5 * (1 + math.cos(math.pi * self.progress))
        self.twin.follow(self.encoder, momentum)
