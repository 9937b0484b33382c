"""What all frameworks share: the encoder, the constraint on z_c, the sum, and how an image is assigned."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cdclust.methods.sizes import Sizes
from cdclust.networks.encoder import Encoder, before_last_linear, build_backbone, build_head, last_linear
from cdclust.networks.queue import Queue
from cdclust.objectives import cdc_objective, normalise_halves, sinkhorn, split, swapped_cross_entropy
from cdclust.objectives.collective import Group
from cdclust.recipe import Recipe

Views = tuple[Tensor, Tensor]
SOFTNESS = 1.0  # rho over epsilon where sizes are soft; see docs/experiments/imbalance.md


@dataclass
class Losses:
    """What a step computes: `total` is minimised, `terms` are named scalars to log, without gradient."""

    total: Tensor
    terms: dict[str, Tensor]
    probabilities: Tensor | None = None  # (B, K) of the first view, without gradient


def averaged(there: Losses, back: Losses) -> Losses:
    """The mean of the two directions of a contrast, so that alpha weighs the same in either."""
    terms = {name: (value + back.terms[name]) / 2 for name, value in there.terms.items()}
    return Losses((there.total + back.total) / 2, terms, there.probabilities)


@dataclass
class Assignment:
    """What a batch of clean images is taken for."""

    probabilities: Tensor  # (B, K)
    features: Tensor  # (B, D) of the backbone


class Method(nn.Module, ABC):
    """A contrastive framework with the split head; without it (`head.split: false`) the plain pretext method."""

    centroids: Tensor

    def __init__(self, recipe: Recipe, channels: int = 3, size: int | None = None, group: Group = None) -> None:
        super().__init__()
        self.objective = recipe.objective
        self.settings = recipe.method
        self.group = group
        self.n_clusters = recipe.n_clusters
        self.n_logits = recipe.n_clusters if recipe.head.split else 0
        self.progress = 0.0  # share of training done; the engine keeps it
        self.autocast: torch.dtype | None = None  # precision of the networks; the engine decides it
        backbone = build_backbone(recipe.network, channels, size)
        features = int(backbone.out_features)  # type: ignore[arg-type]
        self.n_features = features
        self.encoder = Encoder(backbone, build_head(recipe.head, features, self.n_logits))
        self.halves = (self.n_logits, recipe.head.z_n)
        if self.objective.sinkhorn_queue and self.n_logits:
            self.recent = Queue(self.objective.sinkhorn_queue, (self.n_logits,))
        if not isinstance(self.objective.sizes, str) and self.n_logits:
            self.sizes = Sizes(self.n_logits)
        if not self.n_logits:
            self.register_buffer("centroids", torch.zeros(self.n_clusters, features))

    @abstractmethod
    def step(self, views: Views) -> Losses:
        """The losses of two views (B, channels, H, W) of the same images."""

    def before_z_c(self, images: Tensor) -> list[Tensor]:
        """What enters each group of `z_c_layers`: (B, hidden) each; call it in eval mode."""
        with self.in_precision(images):
            return [before_last_linear(self.encoder.head)(self.encoder.backbone(images))]

    def z_c_layers(self) -> list[list[nn.Linear]]:
        """The linear layers whose first K outputs are z_c, from the images on; those of a group get the same rows."""
        return [[last_linear(self.encoder.head)]]

    def forget_recent(self) -> None:
        """Keep no z_c from before it was seeded."""
        if self.objective.sinkhorn_queue and self.n_logits:
            self.recent.seen.zero_()

    @abstractmethod
    def n_negatives(self, batch_size: int) -> int:
        """How many negatives a positive stands against."""

    def after_step(self) -> None:
        """Move what follows the weights: twin and queue."""

    def query(self, images: Tensor) -> Tensor:
        """The branch that is trained and that assigns: z (B, K + C) before normalisation."""
        z: Tensor = self.encoder(images)
        return z

    def represent(self, network: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
        """z = [z_c, z_n] of images, each half normalised, in float32 whatever the network computes in."""
        with self.in_precision(images):
            z = network(images)
        return self.normalised(z)

    def normalised(self, z: Tensor) -> Tensor:
        """Each half of z by itself."""
        return normalise_halves(z, self.n_logits, self.objective.normalise_z_c)

    def in_precision(self, images: Tensor) -> torch.autocast:
        """The context networks run in."""
        return torch.autocast(images.device.type, self.autocast, enabled=self.autocast is not None)

    def losses(self, contrast: Tensor, q: Tensor, k: Tensor) -> Losses:
        """Equation 8 from the contrast of q and k (B, K + C) and the constraint on their z_c."""
        (z_c_q, z_n_q), (z_c_k, z_n_k) = split(q, self.n_logits), split(k, self.n_logits)
        terms = {"info_nce": contrast.detach(), "positive_n": (z_n_q * z_n_k).sum(1).mean().detach()}
        if not self.n_logits:
            return Losses(contrast, terms)
        constraint = self._constraint(z_c_q, z_c_k)
        terms["cross_entropy"] = constraint.detach()
        terms["positive_c"] = F.cosine_similarity(z_c_q, z_c_k).mean().detach()
        total = cdc_objective(contrast if self.objective.info_nce else contrast.detach(), constraint, self.alpha)
        return Losses(total, terms, self._probabilities(z_c_q.detach()))

    @property
    def alpha(self) -> float:
        """The constraint's weight now: 0 during the pretext part of training, then it may rise slowly."""
        since, ramp = self.progress - self.objective.pretext, self.objective.alpha_warmup
        if since < 0:
            return 0.0
        return self.objective.alpha * (min(1.0, since / ramp) if ramp else 1.0)

    def _constraint(self, z_c_q: Tensor, z_c_k: Tensor) -> Tensor:
        codes_q, codes_k = self.codes(z_c_q.detach()), self.codes(z_c_k.detach())
        if self.objective.sinkhorn_queue:
            self.recent.push(z_c_q.detach())
        o = self.objective
        return swapped_cross_entropy(z_c_q, z_c_k, codes_q, codes_k, o.t, o.cross_entropy)

    def codes(self, z_c: Tensor) -> Tensor:
        """Equation 5's assignment of a batch z_c (B, K), spread over the batch and the recent ones."""
        o = self.objective
        scores = z_c
        if o.sinkhorn_queue and int(self.recent.seen) >= o.sinkhorn_queue:
            scores = torch.cat([z_c, self.recent.vectors])
        cosines = o.sinkhorn_input == "logits" and o.normalise_z_c
        scores = scores if o.sinkhorn_input == "logits" else scores / o.t
        domain = "auto" if cosines else "log"
        rho = o.epsilon * SOFTNESS if o.sizes == "soft" else math.inf
        return sinkhorn(scores, o.epsilon, o.sinkhorn_iterations, domain, self.group, self._shares(z_c), rho)[
            : len(z_c)
        ]

    def _shares(self, z_c: Tensor) -> Tensor | None:
        """What part of the images each cluster is to hold; none is the same for all."""
        given = self.objective.sizes
        if isinstance(given, str):
            return None
        self.sizes.follow(self._probabilities(z_c), self.group)
        return self.sizes.ranked(given)

    def _probabilities(self, z_c: Tensor) -> Tensor:
        return (z_c / self.objective.t).softmax(dim=1)

    @torch.no_grad()
    def assign(self, images: Tensor) -> Assignment:
        """p = softmax(z_c / t) of clean images; call it in eval mode.

        The plain methods have no z_c: there p falls with the distance from k-means' centroids of their features.
        """
        with self.in_precision(images):
            features = self.encoder.backbone(images)
            z = self._from_features(features) if self.n_logits else features
        if not self.n_logits:
            cosine = F.normalize(features.float(), dim=1) @ F.normalize(self.centroids, dim=1).T
            return Assignment(self._probabilities(cosine), features.float())
        z_c, _ = split(self.normalised(z), self.n_logits)
        return Assignment(self._probabilities(z_c), features.float())

    def _from_features(self, features: Tensor) -> Tensor:
        z: Tensor = self.encoder.head(features)
        return z

    @torch.no_grad()
    def embed(self, images: Tensor) -> Tensor:
        """Backbone features (B, D) of clean images; call it in eval mode."""
        with self.in_precision(images):
            features: Tensor = self.encoder.backbone(images)
        return features.float()
