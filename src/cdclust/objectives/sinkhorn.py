"""Equation 5: codes that spread a batch evenly over the clusters, by Sinkhorn-Knopp."""

import torch
from torch import Tensor

from cdclust.objectives.collective import Group, all_max, all_sum

# exp() of less than this is treated as this: far below anything a code can show in float32, yet far enough from zero
# that no sum over it vanishes. Scores in [-1, 1], as cosines are, never reach it while epsilon >= 2 / 60.
LINEAR_FLOOR = -60.0
# The same in the log domain, where only the resolution of float32 sets a limit.
LOG_FLOOR = -1e4


@torch.no_grad()
def sinkhorn(
    scores: Tensor,
    epsilon: float,
    iterations: int,
    domain: str = "auto",
    group: Group = None,
) -> Tensor:
    """The codes Q* (B, K) of equation 5 for scores (B, K), over the global batch of all processes.

    Each iteration scales the clusters first and the samples last (SwAV's order): every row of the result sums to 1
    exactly, every cluster holds its B/K share only approximately until many iterations have run. Adding a constant to
    all scores changes nothing.

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
    return (_linear if domain == "linear" else _logarithmic)(scores, epsilon, iterations, group)


def _linear(scores: Tensor, epsilon: float, iterations: int, group: Group) -> Tensor:
    q = (scores / epsilon).clamp_(min=LINEAR_FLOOR).exp_()  # (B, K)
    for _ in range(iterations):
        q /= all_sum(q.sum(dim=0, keepdim=True), group)  # every cluster weighs the same
        q /= q.sum(dim=1, keepdim=True)  # every sample sums to 1
    return q


def _logarithmic(scores: Tensor, epsilon: float, iterations: int, group: Group) -> Tensor:
    # A row's own maximum is kept apart while flooring, so that a row far below the others keeps its order.
    row = scores.amax(dim=1, keepdim=True)  # (B, 1)
    log_q = ((scores - row) / epsilon).clamp_(min=LOG_FLOOR) + (row / epsilon).clamp_(min=LOG_FLOOR)
    for _ in range(iterations):
        log_q = log_q - _log_sum_over_samples(log_q, group)
        log_q = log_q - log_q.logsumexp(dim=1, keepdim=True)
    return log_q.exp()


def _log_sum_over_samples(log_q: Tensor, group: Group) -> Tensor:
    if group is None:
        return log_q.logsumexp(dim=0, keepdim=True)
    largest = all_max(log_q.amax(dim=0, keepdim=True), group)
    return all_sum((log_q - largest).exp().sum(dim=0, keepdim=True), group).log() + largest
