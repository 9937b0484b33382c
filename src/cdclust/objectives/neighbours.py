"""SCAN's objective (Van Gansbeke et al. 2020, equation 2): near images agree, and all clusters are used."""

import torch
from torch import Tensor


def neighbour_consistency(p: Tensor, p_near: Tensor) -> Tensor:
    """-mean log <p, p_near> over images, for probabilities (B, ..., K) of images and of one neighbour each: (...)."""
    agreement = (p * p_near).sum(dim=-1)
    return -agreement.clamp_min(torch.finfo(p.dtype).tiny).log().mean(dim=0)


def entropy_of_mean(p: Tensor) -> Tensor:
    """The entropy of the mean prediction over a batch (B, ..., K): (...). ln K where all clusters are as large."""
    mean = p.mean(dim=0)
    entropy: Tensor = -torch.special.xlogy(mean, mean).sum(dim=-1)
    return entropy
