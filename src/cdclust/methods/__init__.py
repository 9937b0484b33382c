"""One file a contrastive framework: what a step computes and how an image is assigned.

Nothing here loops over data or steps an optimiser.
"""

from cdclust.methods.base import Assignment, Losses, Method
from cdclust.methods.moco_v2 import MoCoV2
from cdclust.methods.moco_v3 import MoCoV3
from cdclust.methods.simclr import SimCLR
from cdclust.objectives.collective import Group
from cdclust.recipe import Recipe

FRAMEWORKS: dict[str, type[Method]] = {"moco-v2": MoCoV2, "simclr": SimCLR, "moco-v3": MoCoV3}


def build_method(recipe: Recipe, channels: int = 3, size: int | None = None, group: Group = None) -> Method:
    """The recipe's framework with its networks, from random weights (torch's global generator draws them)."""
    return FRAMEWORKS[recipe.method.framework](recipe, channels, size, group)


__all__ = ["FRAMEWORKS", "Assignment", "Losses", "Method", "build_method"]
