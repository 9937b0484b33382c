"""Equation 8: the whole objective, L = L_InfoNCE + alpha L_CE."""

from torch import Tensor


def cdc_objective(contrast: Tensor, constraint: Tensor, alpha: float) -> Tensor:
    """The sum; alpha = 0 leaves plain contrastive learning on the concatenation."""
    return contrast + alpha * constraint
