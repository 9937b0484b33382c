"""The momentum twin: a copy of a network that follows it slowly."""

import copy

import torch
from torch import Tensor, nn


class Twin(nn.Module):
    """A copy of `network` whose parameters are a moving average of its own; batch statistics are its own."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """What the copy makes of the images."""
        result: Tensor = self.network(images)
        return result

    @torch.no_grad()
    def follow(self, network: nn.Module, momentum: float) -> None:
        """copy = momentum * copy + (1 - momentum) * network, all parameters at once."""
        torch._foreach_lerp_(list(self.network.parameters()), list(network.parameters()), 1 - momentum)
