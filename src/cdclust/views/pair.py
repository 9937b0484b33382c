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
        later: tuple[ViewPolicy, ViewPolicy] | None = None,
    ) -> None:
        self.policies, self.later = policies, later or policies
        self.mean, self.std, self.size, self.whole = mean, std, size, whole

    def __call__(self, images: Tensor, generator: torch.Generator, pretext: bool = True) -> tuple[Tensor, Tensor]:
        """Two random views, normalised, (B, C, size, size) each; they may be others once the pretext part is over."""
        policies = self.policies if pretext else self.later
        first, second = (self._normalised(augment(images, p, generator, self.size)) for p in policies)
        return first, second

    def clean(self, images: Tensor) -> Tensor:
        """The view that is assigned: nothing random, (B, C, whole, whole)."""
        return self._normalised(clean(images, self.whole))

    def _normalised(self, images: Tensor) -> Tensor:
        return normalise(images, self.mean, self.std)
