"""The step between pretext and clustering: z_c starts from what the features already show."""

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from cdclust.engine.compute import Compute
from cdclust.methods import Method
from cdclust.objectives import balanced_codes, directions
from cdclust.views.pair import ViewPair

SAMPLE = 20_000  # images that z_c is seeded from
BATCH = 512
FIRST_MOMENTS = {"momentum_buffer", "exp_avg", "momentum"}  # of SGD, AdamW and LARS


@torch.no_grad()
def seed_clusters(
    method: Method,
    images: Tensor,
    views: ViewPair,
    compute: Compute,
    optimizer: Optimizer,
    generator: torch.Generator,
) -> float:
    """Set the rows of the layers that end in z_c from balanced codes of what enters them; the codes' value.

    All branches get the same codes, each from its own input. Their momentum starts anew; Adam's second moments stay,
    since from zero they would make the first moves the largest of all.
    """
    method.eval()
    sample = torch.randperm(len(images), generator=generator)[:SAMPLE]
    inputs: list[list[Tensor]] = []
    for rows in sample.split(BATCH):  # type: ignore[no-untyped-call]
        batch = views.clean(images[rows.to(images.device)].to(compute.device))
        inputs.append(method.before_z_c(batch))
    entering = [torch.cat(parts).float() for parts in zip(*inputs, strict=True)]
    o = method.objective
    codes, values = balanced_codes(entering[0], method.n_logits, o.epsilon, o.seeding_starts, generator)
    for layers, features in zip(method.z_c_layers(), entering, strict=True):
        weight, bias = directions(features, codes)
        for layer in layers:
            _set_rows(layer, weight, bias, optimizer)
    method.forget_recent()
    method.train()
    return float(values.max())


def _set_rows(layer: nn.Linear, weight: Tensor, bias: Tensor, optimizer: Optimizer) -> None:
    """The first rows of a layer are z_c's."""
    for parameter, value in ((layer.weight, weight), (layer.bias, bias)):
        if parameter is not None:
            parameter[: len(value)] = value
            state = optimizer.state.get(parameter, {})
            for name in FIRST_MOMENTS & state.keys():
                state[name][: len(value)] = 0
