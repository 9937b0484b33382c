"""Where z_c may start: directions that share a data set's features evenly, found by equation 5 itself."""

import torch
import torch.nn.functional as F
from torch import Tensor

from cdclust.objectives.sinkhorn import sinkhorn

ITERATIONS = 40  # of the alternation; it stands still well before
LAST = 20  # of Sinkhorn at the end, so that starts are compared on even codes


@torch.no_grad()
def balanced_codes(
    features: Tensor, n_clusters: int, epsilon: float, starts: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Codes (N, K) of features (N, D), and the value of equation 5 that every start reached, (starts,).

    Each start turns between the two unknowns of equation 5 over the whole set: codes given directions, by Sinkhorn,
    and directions given codes. The start with the largest value wins. No label is asked; the value is what training
    maximises from then on.
    """
    unit = F.normalize(features - features.mean(dim=0), dim=1)
    values, best, best_codes = [], -float("inf"), features.new_zeros(len(features), n_clusters)
    for _ in range(starts):
        centres = _spread_out(unit, n_clusters, generator)
        for _ in range(ITERATIONS - 1):
            codes = sinkhorn(unit @ centres.T, epsilon, 3)
            centres = F.normalize(codes.T @ unit, dim=1)
        scores = unit @ centres.T
        codes = sinkhorn(scores, epsilon, LAST)
        values.append(_value(codes, scores, epsilon))
        if values[-1] > best:
            best, best_codes = values[-1], codes
    return best_codes, torch.tensor(values)


def directions(features: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """Weight (K, D) and bias (K,) of the linear layer whose outputs are features' cosines, but for length, with codes.

    Row k is the mean direction, around the features' mean, of what code k holds.
    """
    mean = features.mean(dim=0)
    unit = F.normalize(features - mean, dim=1)
    weight = F.normalize(codes.T @ unit, dim=1)
    return weight, -weight @ mean


def _value(codes: Tensor, scores: Tensor, epsilon: float) -> float:
    """Tr(Q^T Z) + epsilon H(Q) a sample, up to a constant."""
    entropy = -torch.special.xlogy(codes, codes).sum()
    return float(((codes * scores).sum() + epsilon * entropy) / len(codes))


def _spread_out(unit: Tensor, n_clusters: int, generator: torch.Generator) -> Tensor:
    """Rows far from each other, drawn as k-means++ draws them: (K, D)."""
    chosen = torch.randint(len(unit), (1,), generator=generator)
    distance = torch.full((len(unit),), float("inf"), device=unit.device)
    centres = [unit[chosen[0]]]
    for _ in range(n_clusters - 1):
        distance = torch.minimum(distance, 1 - unit @ centres[-1]).clamp_min(1e-6)
        row = torch.multinomial(distance.cpu(), 1, generator=generator)
        centres.append(unit[row[0]])
    return torch.stack(centres)
