"""The paper's mathematics as pure functions of tensors, each naming its equation.

No module state, no device calls; read this folder to check the implementation against the paper:
`representation` splits z, `contrast` holds equations 1-4 and 7, `sinkhorn` equation 5, `constraint` equation 6,
`total` equation 8.
"""

from cdclust.objectives.constraint import swapped_cross_entropy
from cdclust.objectives.contrast import (
    info_nce,
    info_nce_across_batch,
    info_nce_within_batch,
    negative_gradient,
    negative_weights,
)
from cdclust.objectives.representation import normalise_halves, split
from cdclust.objectives.seeding import balanced_codes, directions
from cdclust.objectives.sinkhorn import sinkhorn
from cdclust.objectives.total import cdc_objective

__all__ = [
    "balanced_codes",
    "cdc_objective",
    "directions",
    "info_nce",
    "info_nce_across_batch",
    "info_nce_within_batch",
    "negative_gradient",
    "negative_weights",
    "normalise_halves",
    "sinkhorn",
    "split",
    "swapped_cross_entropy",
]
