"""The step between pretext and clustering: z_c starts from what the features already show."""

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from cdclust.engine.feed import Feed
from cdclust.engine.order import in_turn
from cdclust.methods import Method
from cdclust.objectives import balanced_codes, directions

SAMPLE = 20_000  # images that z_c is seeded from
BATCH = 512
FIRST_MOMENTS = {"momentum_buffer", "exp_avg", "momentum"}  # of SGD, AdamW and LARS


@torch.no_grad()
def seed_clusters(
    method: Method,
    feed: Feed,
    optimizer: Optimizer,
    generator: torch.Generator,
) -> float:
    """Set the rows of the layers that end in z_c from balanced codes of what enters them; the codes' value.

    All branches get the same codes, each from its own input. Their momentum starts anew; Adam's second moments stay,
    since from zero they would make the first moves the largest of all.
    """
    method.eval()
    o, codes, value = method.objective, None, 0.0
    sample = torch.randperm(len(feed), generator=generator)[:SAMPLE]
    # From the images on: what enters a later layer depends on the rows of those before it.
    for number, layers in enumerate(method.z_c_layers()):
        features = _entering(number, method, feed, sample)
        if codes is None:
            codes, values = balanced_codes(features, method.n_logits, o.epsilon, o.seeding_starts, generator)
            value = float(values.max())
        weight, bias = directions(features, codes)
        for layer in layers:
            _set_rows(layer, weight, bias, optimizer)
    method.forget_recent()
    method.train()
    return value


def _entering(number: int, method: Method, feed: Feed, sample: Tensor) -> Tensor:
    return torch.cat([method.before_z_c(feed.clean(rows))[number].float() for rows in in_turn(sample, BATCH)])


def _set_rows(layer: nn.Linear, weight: Tensor, bias: Tensor, optimizer: Optimizer) -> None:
    """The first rows of a layer are z_c's."""
    for parameter, value in ((layer.weight, weight), (layer.bias, bias)):
        if parameter is not None:
            parameter[: len(value)] = value
            state = optimizer.state.get(parameter, {})
            for name in FIRST_MOMENTS & state.keys():
                state[name][: len(value)] = 0
