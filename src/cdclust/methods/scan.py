"""SCAN's clustering heads on frozen features: what CDC is compared with. Not one of the contrastive frameworks."""

import torch
from torch import Tensor, nn

from cdclust.networks.encoder import Features
from cdclust.objectives.neighbours import entropy_of_mean, neighbour_consistency


class ScanHeads(nn.Module):
    """Several linear heads side by side, as independent as if each were alone (Van Gansbeke et al. 2020, section 3)."""

    def __init__(self, features: int, n_clusters: int, heads: int, entropy_weight: float) -> None:
        super().__init__()
        self.shape = (heads, n_clusters)
        self.entropy_weight = entropy_weight
        self.backbone = Features(features)
        self.head = nn.Linear(features, heads * n_clusters)
        # From any smaller weights all probabilities are alike at first, and heads of many clusters stay there long.
        nn.init.normal_(self.head.weight, std=features**-0.5)
        nn.init.zeros_(self.head.bias)

    def forward(self, features: Tensor) -> Tensor:
        """Probabilities (B, heads, K)."""
        logits: Tensor = self.head(self.backbone(features))
        return logits.view(-1, *self.shape).softmax(dim=-1)

    def losses(self, anchors: Tensor, neighbours: Tensor) -> Tensor:
        """Each head's loss (heads,) on features (B, D) of images and of one neighbour each; their sum is minimised."""
        p = self(anchors)
        return neighbour_consistency(p, self(neighbours)) - self.entropy_weight * entropy_of_mean(p)

    @torch.no_grad()
    def standing(self, p: Tensor, near: Tensor) -> Tensor:
        """Each head's loss (heads,) over a whole set: probabilities (N, heads, K), neighbours' rows (N, k)."""
        consistency = torch.stack([neighbour_consistency(p, p[rows]) for rows in near.long().T]).mean(dim=0)
        return consistency - self.entropy_weight * entropy_of_mean(p)
