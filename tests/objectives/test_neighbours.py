import math

import numpy as np
import torch

from cdclust.objectives.neighbours import entropy_of_mean, neighbour_consistency


def some(seed: int) -> torch.Tensor:
    return torch.randn(6, 2, 4, generator=torch.Generator().manual_seed(seed)).double().softmax(dim=-1)


def test_consistency_is_the_mean_log_dot_product_of_each_head():
    a, b = some(0).numpy(), some(1).numpy()
    expected = [
        -np.mean([math.log(sum(a[i, h, c] * b[i, h, c] for c in range(4))) for i in range(6)]) for h in range(2)
    ]
    np.testing.assert_allclose(neighbour_consistency(some(0), some(1)).numpy(), expected)


def test_entropy_is_that_of_the_mean_prediction():
    mean = some(0).numpy().mean(axis=0)
    np.testing.assert_allclose(entropy_of_mean(some(0)).numpy(), -(mean * np.log(mean)).sum(axis=1))


def test_sure_and_equal_neighbours_spread_over_all_clusters_are_the_best_there_is():
    sure = torch.eye(4)[torch.arange(8) % 4]
    assert neighbour_consistency(sure, sure) == 0
    torch.testing.assert_close(entropy_of_mean(sure), torch.tensor(math.log(4)))


def test_sure_and_different_neighbours_have_a_finite_loss_with_a_gradient():
    logits = (torch.eye(4)[torch.arange(8) % 4] * 200).requires_grad_()
    loss = neighbour_consistency(logits.softmax(dim=1), torch.eye(4)[(torch.arange(8) + 1) % 4])
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(logits.grad).all()
