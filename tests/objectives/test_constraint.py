import math

import pytest
import torch
from torch.autograd import gradcheck

from cdclust.objectives import cdc_objective, sinkhorn, swapped_cross_entropy
from oracles.equations import equation_6

B, K = 8, 5


def logits(seed: int) -> torch.Tensor:
    x = torch.randn(B, K, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(x, dim=1)


def codes(seed: int) -> torch.Tensor:
    return sinkhorn(logits(seed), 0.05, 3)


def test_it_is_equation_6_in_both_directions():
    z = logits(1), logits(2)
    q = codes(3), codes(4)
    expected = equation_6(*(x.numpy() for x in (*z, *q)), t=0.1)
    assert swapped_cross_entropy(*z, *q, t=0.1).item() == pytest.approx(expected, abs=1e-12)


def test_the_mean_over_clusters_is_k_times_weaker():
    z, q = (logits(1), logits(2)), (codes(3), codes(4))
    total, mean = (swapped_cross_entropy(*z, *q, t=0.1, reduction=r).item() for r in ("sum", "mean"))
    assert mean == pytest.approx(total / K)


def test_the_assignment_of_one_view_supervises_the_other():
    z_q, z_k = logits(1).requires_grad_(), logits(2).requires_grad_()
    only_k = swapped_cross_entropy(z_q, z_k, codes(3), torch.zeros(B, K), t=0.1)
    g_q, g_k = torch.autograd.grad(only_k, [z_q, z_k])
    assert g_q.abs().max() == 0
    assert g_k.abs().max() > 0


def test_gradients_are_right():
    z = [logits(s).requires_grad_() for s in (1, 2)]
    q = codes(3), codes(4)
    assert gradcheck(lambda a, b: swapped_cross_entropy(a, b, *q, t=0.1), z)


def test_indifferent_predictions_cost_ln_k():
    loss = swapped_cross_entropy(torch.zeros(B, K), torch.zeros(B, K), codes(1), codes(2), t=0.1)
    assert loss.item() == pytest.approx(math.log(K))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_certain_prediction_never_gives_nan(dtype):
    certain = torch.eye(K, dtype=dtype) * 100
    q = torch.eye(K).roll(1, dims=0)
    assert torch.isfinite(swapped_cross_entropy(certain, certain, q, q, t=0.1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_largest_numbers_do_not_give_nan(dtype):
    most = torch.finfo(dtype).max
    z = torch.tensor([[most, -most], [-most, -most]], dtype=dtype)
    q = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    loss = swapped_cross_entropy(z, z, q, q, t=0.1)
    assert torch.isfinite(loss)
    assert loss.item() == pytest.approx(0.25 * 2 * math.log(2), rel=1e-3)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="sum or mean"):
        swapped_cross_entropy(logits(1), logits(2), codes(1), codes(2), t=0.1, reduction="total")


def test_the_objective_is_equation_8():
    assert cdc_objective(torch.tensor(2.0), torch.tensor(0.5), alpha=5.0).item() == pytest.approx(4.5)
