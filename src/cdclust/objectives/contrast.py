"""InfoNCE on the concatenated halves, the weight it gives a negative, and its gradient (equations 1-4 and 7).

Every function takes representations whose halves are already normalised (`normalise_halves`); q.k = s_c + s_n then
makes equations 2, 3 and 4 one and the same number.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from cdclust.objectives.collective import Group, all_gather_with_gradient, rank_and_world


def info_nce(q: Tensor, k: Tensor, negatives: Tensor, tau: float) -> Tensor:
    """Equation 2 with a queue of negatives (MoCo): q, k (B, D), negatives (M, D), mean over the batch."""
    positive = (q * k).sum(dim=1, keepdim=True)  # (B, 1)
    logits = torch.cat([positive, q @ negatives.T], dim=1) / tau  # (B, 1 + M)
    return F.cross_entropy(logits, logits.new_zeros(len(q), dtype=torch.long))


def info_nce_across_batch(q: Tensor, k: Tensor, tau: float, group: Group = None) -> Tensor:
    """Equation 2 with the other images' k of the global batch as negatives (MoCo v3): q, k (B, D)."""
    rank, _ = rank_and_world(group)
    logits = q @ all_gather_with_gradient(k, group).T / tau  # (B, B * world)
    return F.cross_entropy(logits, torch.arange(len(q), device=q.device) + rank * len(q))


def info_nce_within_batch(z_1: Tensor, z_2: Tensor, tau: float, group: Group = None) -> Tensor:
    """Equation 2 with both views of the other images of the global batch as negatives (SimCLR): z_1, z_2 (B, D)."""
    rank, world = rank_and_world(group)
    batch, everything = len(z_1), len(z_1) * world
    candidates = torch.cat([all_gather_with_gradient(z, group) for z in (z_1, z_2)])  # (2 B world, D)
    logits = torch.cat([z_1, z_2]) @ candidates.T / tau  # (2 B, 2 B world)
    own = torch.arange(batch, device=z_1.device) + rank * batch
    itself, positive = torch.cat([own, own + everything]), torch.cat([own + everything, own])
    logits = logits.scatter(1, itself[:, None], float("-inf"))
    return F.cross_entropy(logits, positive)


def negative_weights(z_c_q: Tensor, z_c_k: Tensor, z_c_negatives: Tensor, tau: float) -> Tensor:
    """Equation 3's weight of each negative, lambda_ij = exp((s_c_ij - s_c_ii) / tau): (B, M).

    InfoNCE on the concatenation is InfoNCE on z_n whose negatives carry these weights; plain InfoNCE has 1 everywhere.
    """
    s_c_positive = (z_c_q * z_c_k).sum(dim=1, keepdim=True)  # (B, 1)
    return ((z_c_q @ z_c_negatives.T - s_c_positive) / tau).exp()


def negative_gradient(s_n: Tensor, s_n_positive: Tensor, weights: Tensor, tau: float) -> Tensor:
    """Equation 7: the gradient of one image's loss on the instance similarity of each of its negatives.

    s_n (B, M) are similarities to negatives, s_n_positive (B, 1) those of the positives, weights (B, M) the lambda of
    equation 3. A larger lambda means a larger share: the negative counts as harder.
    """
    # Numerator and denominator are both divided by the largest exponential, which none of them then exceeds.
    exponents = torch.cat([weights.log() + s_n / tau, s_n_positive / tau], dim=1)
    return exponents.softmax(dim=1)[:, :-1] / tau
