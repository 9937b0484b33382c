"""The last step before the network: zero mean and unit variance by channel."""

from collections.abc import Sequence

import torch
from torch import Tensor


def normalise(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """`(images - mean) / std` by channel; images (B, C, H, W) in [0, 1]."""
    shape = (1, -1, 1, 1)
    centre = torch.tensor(mean, device=images.device, dtype=images.dtype).view(shape)
    width = torch.tensor(std, device=images.device, dtype=images.dtype).view(shape)
    return (images - centre).div_(width)
