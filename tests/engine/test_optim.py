import math

import numpy as np
import pytest
import torch
from torch import nn

from cdclust.engine.optim import LARS, build_optimizer, lr_factor
from cdclust.recipe import OptimizerSettings


def lars_by_hand(weight, gradients, lr, momentum, decay, trust=0.001):
    """You et al. 2017, one matrix, in NumPy."""
    w, m = weight.copy(), np.zeros_like(weight)
    for g in gradients:
        u = g + decay * w
        u = trust * np.linalg.norm(w) / np.linalg.norm(u) * u
        m = momentum * m + u
        w = w - lr * m
    return w


def moved_by(optimizer, parameter, gradients):
    for g in gradients:
        parameter.grad = torch.tensor(g)
        optimizer.step()
    return parameter.detach().numpy()


RNG = np.random.default_rng(0)
GRADIENTS = [RNG.standard_normal((3, 4)) for _ in range(4)]


def test_lars_is_the_papers_for_matrices():
    start = RNG.standard_normal((3, 4))
    p = nn.Parameter(torch.tensor(start))
    ours = moved_by(LARS([p], lr=0.3, momentum=0.9, weight_decay=0.01), p, GRADIENTS)
    np.testing.assert_allclose(ours, lars_by_hand(start, GRADIENTS, 0.3, 0.9, 0.01), rtol=1e-12)


def test_lars_neither_decays_nor_adapts_vectors():
    start = RNG.standard_normal(4)
    p, plain = (nn.Parameter(torch.tensor(start)) for _ in range(2))
    gradients = [g[0] for g in GRADIENTS]
    ours = moved_by(LARS([p], lr=0.3, momentum=0.9, weight_decay=0.5), p, gradients)
    np.testing.assert_allclose(ours, moved_by(torch.optim.SGD([plain], lr=0.3, momentum=0.9), plain, gradients))


@pytest.mark.parametrize(("weight", "gradient"), [(0.0, 1.0), (1.0, 0.0)])
def test_lars_does_not_divide_by_nothing(weight, gradient):
    p = nn.Parameter(torch.full((2, 2), weight))
    p.grad = torch.full((2, 2), gradient)
    LARS([p], lr=0.1).step()
    torch.testing.assert_close(p.detach(), torch.full((2, 2), weight - 0.1 * gradient))


def test_lars_leaves_what_has_no_gradient():
    p = nn.Parameter(torch.ones(2, 2))
    LARS([p], lr=0.1).step()
    assert torch.equal(p, torch.ones(2, 2))


NETWORK = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


@pytest.mark.parametrize("name", ["sgd", "adamw"])
@pytest.mark.parametrize(("decay_norms", "decayed"), [(True, 4), (False, 1)])
def test_biases_and_norms_are_decayed_only_where_the_recipe_says_so(name, decay_norms, decayed):
    settings = OptimizerSettings(name=name, weight_decay=0.1, decay_norms=decay_norms)
    groups = build_optimizer(settings, NETWORK).param_groups
    with_decay = [p for group in groups if group["weight_decay"] == 0.1 for p in group["params"]]
    assert len(with_decay) == decayed
    assert sum(len(group["params"]) for group in groups) == 4


@pytest.mark.parametrize(("name", "kind"), [("sgd", torch.optim.SGD), ("adamw", torch.optim.AdamW), ("lars", LARS)])
def test_the_recipe_names_the_optimiser(name, kind):
    assert isinstance(build_optimizer(OptimizerSettings(name=name), NETWORK), kind)


def test_what_is_frozen_is_not_optimised():
    network = nn.Linear(3, 4)
    network.bias.requires_grad_(False)
    groups = build_optimizer(OptimizerSettings(), network).param_groups
    assert [p is network.weight for group in groups for p in group["params"]] == [True]


def test_the_learning_rate_rises_in_a_line_that_starts_above_zero():
    assert [lr_factor(step, 100, 4, "cosine") for step in range(4)] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("step", "factor"), [(0, 1.0), (25, (1 + math.sqrt(0.5)) / 2), (50, 0.5), (75, (1 - math.sqrt(0.5)) / 2), (100, 0)]
)
def test_the_learning_rate_falls_by_a_half_cosine(step, factor):
    assert lr_factor(step, 100, 0, "cosine") == pytest.approx(factor)


def test_the_cosine_starts_behind_the_warmup():
    assert lr_factor(10, 110, 10, "cosine") == 1.0
    assert lr_factor(60, 110, 10, "cosine") == pytest.approx(0.5)


def test_a_constant_rate_stays_after_its_warmup():
    assert {lr_factor(step, 10, 2, "constant") for step in range(1, 10)} == {1.0}
