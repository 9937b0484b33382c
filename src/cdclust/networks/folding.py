"""Batch normalisation folded into the convolution before it: the same function, fewer passes over memory."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

TOLERANCE = 1e-3  # of the largest feature; rounding alone stays far below


@torch.no_grad()
def folded(network: nn.Module, probe: Tensor) -> nn.Module:
    """A copy of a network in eval mode with what can be folded folded; the network itself where that changed `probe`'s
    features, which happens if layers are called in another order than they are listed."""
    try:
        candidate = copy.deepcopy(network)
        _fold(candidate)
        before, after = network(probe), candidate(probe)
    except (RuntimeError, TypeError, AttributeError):
        return network
    same = before.shape == after.shape and (before - after).abs().max() <= TOLERANCE * before.abs().max()
    return candidate if same else network


def _fold(network: nn.Module) -> None:
    for parent in list(network.modules()):
        before: tuple[str, nn.Conv2d] | None = None
        for name, child in list(parent.named_children()):
            if (
                isinstance(child, nn.BatchNorm2d)
                and before is not None
                and child.num_features == before[1].out_channels
            ):
                setattr(parent, before[0], fuse_conv_bn_eval(before[1], child))
                # timm's normalisation carries the activation that follows it.
                setattr(parent, name, getattr(child, "act", nn.Identity()))
            before = (name, child) if isinstance(child, nn.Conv2d) else None
