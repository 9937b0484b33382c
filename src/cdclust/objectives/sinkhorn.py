"""Equation 5: codes that spread a batch over the clusters, evenly or by given shares, by Sinkhorn-Knopp."""

import torch
from torch import Tensor

from cdclust.objectives.collective import Group, all_max, all_sum

# exp() of less than this is treated as this: far below anything a code can show in float32, yet far enough from zero
# that no sum over it vanishes. Scores in [-1, 1], as cosines are, never reach it while epsilon >= 2 / 60.
LINEAR_FLOOR = -60.0
# The same in the log domain, where only the resolution of float32 sets a limit.
LOG_FLOOR = -1e4
LEAST_SHARE = 1e-8  # of a cluster; a smaller one would be one image in more than any batch has


@torch.no_grad()
def sinkhorn(
    scores: Tensor,
    epsilon: float,
    iterations: int,
    domain: str = "auto",
    group: Group = None,
    shares: Tensor | None = None,
    rho: float = float("inf"),
) -> Tensor:
    """The codes Q* (B, K) of equation 5 for scores (B, K), over the global batch of all processes.

    Each iteration scales the clusters first and the samples last (SwAV's order): every row of the result sums to 1
    exactly, every cluster holds its share only approximately until many iterations have run. Adding a constant to all
    scores changes nothing.

    shares (K,), above 0, in proportion: what part of the batch each cluster gets; None is 1/K, as in the paper.
    rho: the price of leaving these shares, rho KL(sizes | shares) beside epsilon's entropy (unbalanced transport,
    Chizat et al. 2018); infinite is equation 5, 0 lets every image go where it likes.
    domain: "linear" works on exp(scores / epsilon), "log" on its logarithm, which any finite scores survive;
    "auto" is linear for cosines (|scores| <= 1) unless epsilon is so small that their exponentials would not fit.
    """
    if domain not in ("auto", "linear", "log"):
        raise ValueError(f"domain is {domain!r}; it must be auto, linear or log")
    if domain == "auto":
        domain = "linear" if 2.0 / epsilon <= -LINEAR_FLOOR else "log"
    scores = scores if scores.dtype == torch.float64 else scores.float()
    # One maximum for everybody. Each row's own would be another start, and so another result after 3 iterations.
    scores = (scores - all_max(scores.max(), group)).clamp_(min=torch.finfo(scores.dtype).min)
    power = 1.0 if rho == float("inf") else rho / (rho + epsilon)
    wanted = None  # of every cluster, where that is not simply the same
    if shares is not None or power != 1:
        wanted = scores.new_ones(scores.shape[1]) if shares is None else shares.to(scores)
        wanted = (wanted / wanted.sum()).clamp_min(LEAST_SHARE)
    return (_linear if domain == "linear" else _logarithmic)(scores, epsilon, iterations, group, wanted, power)


def _linear(
    scores: Tensor, epsilon: float, iterations: int, group: Group, wanted: Tensor | None, power: float
) -> Tensor:
    q = (scores / epsilon).clamp_(min=LINEAR_FLOOR).exp_()  # (B, K)
    scale = scores.new_ones(1, scores.shape[1])  # (1, K) what each cluster's column has been multiplied by
    for _ in range(iterations):
        sums = all_sum(q.sum(dim=0, keepdim=True), group)
        if wanted is None:
            q /= sums  # every cluster weighs the same
        else:
            before, scale = scale, (wanted * scale / sums) ** power
            scale /= scale.amax()  # what all clusters have in common is the samples' to undo
            q *= scale / before
        q /= q.sum(dim=1, keepdim=True)  # every sample sums to 1
    return q


def _logarithmic(
    scores: Tensor, epsilon: float, iterations: int, group: Group, wanted: Tensor | None, power: float
) -> Tensor:
    # A row's own maximum is kept apart while flooring, so that a row far below the others keeps its order.
    row = scores.amax(dim=1, keepdim=True)  # (B, 1)
    log_q = ((scores - row) / epsilon).clamp_(min=LOG_FLOOR) + (row / epsilon).clamp_(min=LOG_FLOOR)
    scale = scores.new_zeros(1, scores.shape[1])
    for _ in range(iterations):
        sums = _log_sum_over_samples(log_q, group)
        if wanted is None:
            log_q = log_q - sums
        else:
            before, scale = scale, power * (wanted.log() + scale - sums)
            log_q = log_q + (scale - before)
        log_q = log_q - log_q.logsumexp(dim=1, keepdim=True)
    return log_q.exp()


def _log_sum_over_samples(log_q: Tensor, group: Group) -> Tensor:
    if group is None:
        return log_q.logsumexp(dim=0, keepdim=True)
    largest = all_max(log_q.amax(dim=0, keepdim=True), group)
    return all_sum((log_q - largest).exp().sum(dim=0, keepdim=True), group).log() + largest
