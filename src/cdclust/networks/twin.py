"""The momentum twin: a copy of a network that follows it slowly."""

import copy
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

N = TypeVar("N", bound=nn.Module)


class Twin(nn.Module, Generic[N]):
    """A copy of `network` whose parameters are a moving average of its own; batch statistics are its own."""

    network: N

    def __init__(self, network: N) -> None:
        super().__init__()
        self.network = copy.deepcopy(network)
        self.network.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        """What the copy makes of the images."""
        result: Tensor = self.network(images)
        return result

    @torch.no_grad()
    def follow(self, network: nn.Module, momentum: float) -> None:
        """copy = momentum * copy + (1 - momentum) * network, all parameters at once."""
        torch._foreach_lerp_(list(self.network.parameters()), list(network.parameters()), 1 - momentum)
