"""Equation 6: the assignment of one view supervises the probability of the other."""

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
    log_p_q, log_p_k = (z_c_q / t).log_softmax(dim=1), (z_c_k / t).log_softmax(dim=1)
    per_image = -0.5 * (codes_q * log_p_k + codes_k * log_p_q).sum(dim=1)
    return per_image.mean() / (z_c_q.shape[1] if reduction == "mean" else 1)
