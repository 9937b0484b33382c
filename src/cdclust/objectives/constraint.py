"""Equation 6: the assignment of one view supervises the probability of the other."""

import torch
from torch import Tensor


def swapped_cross_entropy(
    z_c_q: Tensor, z_c_k: Tensor, codes_q: Tensor, codes_k: Tensor, t: float, reduction: str = "sum"
) -> Tensor:
    """-1/2 mean over images of sum over clusters of (codes_q log p_k + codes_k log p_q), with p = softmax(z_c / t).

    All arguments are (B, K). Whichever z_c carries no gradient makes its half of the loss a constant.
    reduction: "sum" over the clusters as in equation 6; "mean" over them as in the paper's pseudo-code, which makes
    the same alpha K times weaker.
    """
    if reduction not in ("sum", "mean"):
        raise ValueError(f"reduction is {reduction!r}; it must be sum or mean")
    log_p_q, log_p_k = _log_p(z_c_q, t), _log_p(z_c_k, t)
    per_image = -0.5 * (codes_q * log_p_k + codes_k * log_p_q).sum(dim=1)
    return per_image.mean() / (z_c_q.shape[1] if reduction == "mean" else 1)


def _log_p(z_c: Tensor, t: float) -> Tensor:
    # The largest logit is taken off before dividing by t, which could overflow.
    z_c = z_c if z_c.dtype == torch.float64 else z_c.float()
    floor = torch.finfo(z_c.dtype).min
    above = (z_c - z_c.detach().amax(dim=1, keepdim=True)).clamp(min=floor * min(1.0, t))
    return (above / t).log_softmax(dim=1).clamp(min=floor)
