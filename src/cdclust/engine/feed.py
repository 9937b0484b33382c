"""What training draws from: the rows of a set, as random views or clean, ready for the network.

Images are made into views here; features of a frozen backbone come from their cache.
"""

from typing import Protocol

import torch
from torch import Tensor

from cdclust.engine.compute import Compute
from cdclust.methods.base import Views
from cdclust.views.pair import ViewPair


class Feed(Protocol):
    """A set by its rows."""

    def __len__(self) -> int: ...

    def views(self, rows: Tensor, chance: torch.Generator, pretext: bool = True) -> Views:
        """Two random views of the rows."""

    def clean(self, rows: Tensor) -> Tensor:
        """The rows as they are assigned: nothing random."""


class Clean:
    """What is to be assigned and not trained on, ready-made."""

    def __init__(self, inputs: Tensor) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def views(self, rows: Tensor, chance: torch.Generator, pretext: bool = True) -> Views:  # noqa: ARG002
        """The same twice: there is nothing random here."""
        return self.clean(rows), self.clean(rows)

    def clean(self, rows: Tensor) -> Tensor:
        """The rows."""
        return self.inputs[rows.to(self.inputs.device)]


class ImageFeed:
    """Images uint8 (N, channels, H, W), augmented on the device in the layout that networks like."""

    def __init__(
        self, images: Tensor, views: ViewPair, compute: Compute, channels_last: bool, keep: bool = True
    ) -> None:
        # Training comes by every image many times, so they stay on the device; assigning comes by once.
        self.images = images.to(compute.device) if keep else images
        self.pair, self.device = views, compute.device
        self.layout = torch.channels_last if channels_last else torch.contiguous_format

    def __len__(self) -> int:
        return len(self.images)

    def views(self, rows: Tensor, chance: torch.Generator, pretext: bool = True) -> Views:
        """Two random views (B, channels, size, size), the same for the same chance."""
        first, second = self.pair(self._chosen(rows), chance, pretext)
        return first.to(memory_format=self.layout), second.to(memory_format=self.layout)

    def clean(self, rows: Tensor) -> Tensor:
        """Whole images (B, channels, whole, whole)."""
        return self.pair.clean(self._chosen(rows))

    def _chosen(self, rows: Tensor) -> Tensor:
        return self.images[rows.to(self.images.device)].to(self.device)
