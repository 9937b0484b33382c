"""The two views a contrastive step compares, and the clean one that is assigned."""

from collections.abc import Sequence

import torch
from torch import Tensor

from cdclust.views.augment import augment, clean
from cdclust.views.normalise import normalise
from cdclust.views.policy import ViewPolicy


class ViewPair:
    """Makes what a network sees of images uint8 (B, C, H, W): `size` in training, `whole` in evaluation."""

    def __init__(
        self,
        policies: tuple[ViewPolicy, ViewPolicy],
        mean: Sequence[float],
        std: Sequence[float],
        size: int | None = None,
        whole: int | None = None,
    ) -> None:
        self.policies, self.mean, self.std, self.size, self.whole = policies, mean, std, size, whole

    def __call__(self, images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Two random views, normalised, (B, C, size, size) each."""
        first, second = (self._normalised(augment(images, p, generator, self.size)) for p in self.policies)
        return first, second

    def clean(self, images: Tensor) -> Tensor:
        """The view that is assigned: nothing random, (B, C, whole, whole)."""
        return self._normalised(clean(images, self.whole))

    def _normalised(self, images: Tensor) -> Tensor:
        return normalise(images, self.mean, self.std)
