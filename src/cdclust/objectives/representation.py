"""z = [z_c, z_n]: the categorical half and the instance half of a representation (section 2.1)."""

import torch
import torch.nn.functional as F
from torch import Tensor


def split(z: Tensor, n_clusters: int) -> tuple[Tensor, Tensor]:
    """z (B, K + C) as its categorical logits z_c (B, K) and its instance factors z_n (B, C)."""
    return z[:, :n_clusters], z[:, n_clusters:]


def normalise_halves(z: Tensor, n_clusters: int, normalise_z_c: bool = True) -> Tensor:
    """[z_c / |z_c|, z_n / |z_n|], so that q.k = s_c + s_n with each similarity in [-1, 1].

    The concatenation is not normalised again: that would halve both similarities, and so double tau.
    `normalise_z_c=False` is the paper's ablation. With n_clusters = 0 this is the usual z / |z|.
    """
    z = z if z.dtype == torch.float64 else z.float()
    z_c, z_n = split(z, n_clusters)
    z_n = F.normalize(z_n, dim=1)
    if n_clusters == 0:
        return z_n
    return torch.cat([F.normalize(z_c, dim=1) if normalise_z_c else z_c, z_n], dim=1)
