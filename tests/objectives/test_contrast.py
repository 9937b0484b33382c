import math

import numpy as np
import pytest
import torch
from torch.autograd import grad, gradcheck

from cdclust.objectives import (
    info_nce,
    info_nce_across_batch,
    info_nce_within_batch,
    negative_gradient,
    negative_weights,
    normalise_halves,
    split,
)
from oracles import equations

K, C, B, M, TAU = 5, 7, 6, 11, 0.15


def raw(rows: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(rows, K + C, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_each_half_has_unit_length_and_is_not_normalised_again():
    z_c, z_n = split(normalise_halves(raw(B), K), K)
    torch.testing.assert_close(z_c.norm(dim=1), torch.ones(B, dtype=torch.float64))
    torch.testing.assert_close(z_n.norm(dim=1), torch.ones(B, dtype=torch.float64))


def test_the_similarity_of_the_whole_is_the_sum_of_the_halves():
    q, k = normalise_halves(raw(B, 1), K), normalise_halves(raw(B, 2), K)
    (q_c, q_n), (k_c, k_n) = split(q, K), split(k, K)
    torch.testing.assert_close(q @ k.T, q_c @ k_c.T + q_n @ k_n.T)


def test_without_normalisation_z_c_is_left_as_it_is():
    z = raw(B)
    z_c, z_n = split(normalise_halves(z, K, normalise_z_c=False), K)
    torch.testing.assert_close(z_c, z[:, :K])
    torch.testing.assert_close(z_n.norm(dim=1), torch.ones(B, dtype=torch.float64))


def test_equations_2_3_and_4_are_the_same_number_and_ours():
    z_q, z_k, z_neg = raw(B, 1), raw(B, 2), raw(M, 3)
    ours = info_nce(*(normalise_halves(z, K) for z in (z_q, z_k, z_neg)), TAU).item()
    by_equation = {2: [], 3: [], 4: []}
    for q, k in zip(z_q.numpy(), z_k.numpy(), strict=True):
        c_pos, c, n_pos, n = equations.similarities(q, k, z_neg.numpy(), K)
        by_equation[2].append(equations.equation_2(c_pos + n_pos, c + n, TAU))
        by_equation[3].append(equations.equation_3(n_pos, n, c_pos, c, TAU))
        by_equation[4].append(equations.equation_3(c_pos, c, n_pos, n, TAU))
    for values in by_equation.values():
        assert ours == pytest.approx(np.mean(values), abs=1e-12)


def test_negatives_across_the_batch_are_the_other_images_keys():
    z_q, z_k = raw(B, 1), raw(B, 2)
    ours = info_nce_across_batch(normalise_halves(z_q, K), normalise_halves(z_k, K), TAU).item()
    expected = []
    for i in range(B):
        others = np.delete(z_k.numpy(), i, axis=0)
        c_pos, c, n_pos, n = equations.similarities(z_q[i].numpy(), z_k[i].numpy(), others, K)
        expected.append(equations.equation_2(c_pos + n_pos, c + n, TAU))
    assert ours == pytest.approx(np.mean(expected), abs=1e-12)


def test_negatives_within_the_batch_are_both_views_of_the_other_images():
    views = [raw(B, 1), raw(B, 2)]
    ours = info_nce_within_batch(*(normalise_halves(z, K) for z in views), TAU).item()
    expected = []
    for a, b in ((0, 1), (1, 0)):
        for i in range(B):
            others = np.concatenate([np.delete(z.numpy(), i, axis=0) for z in views])
            c_pos, c, n_pos, n = equations.similarities(views[a][i].numpy(), views[b][i].numpy(), others, K)
            expected.append(equations.equation_2(c_pos + n_pos, c + n, TAU))
    assert ours == pytest.approx(np.mean(expected), abs=1e-12)


def test_the_weights_are_those_of_equation_3():
    q, k, neg = (normalise_halves(raw(rows, seed), K) for rows, seed in ((B, 1), (B, 2), (M, 3)))
    ours = negative_weights(q[:, :K], k[:, :K], neg[:, :K], TAU)
    for i in range(B):
        for j in range(M):
            s_c_ij, s_c_ii = float(q[i, :K] @ neg[j, :K]), float(q[i, :K] @ k[i, :K])
            assert ours[i, j].item() == pytest.approx(math.exp((s_c_ij - s_c_ii) / TAU))


def test_equation_7_is_what_autograd_finds():
    q, k, neg = (normalise_halves(raw(rows, seed), K) for rows, seed in ((B, 1), (B, 2), (M, 3)))
    weights = negative_weights(q[:, :K], k[:, :K], neg[:, :K], TAU)
    s_n = (q[:, K:] @ neg[:, K:].T).requires_grad_()
    s_n_positive = (q[:, K:] * k[:, K:]).sum(1, keepdim=True)
    loss = -torch.log(
        (s_n_positive / TAU).exp() / ((weights * (s_n / TAU).exp()).sum(1, keepdim=True) + (s_n_positive / TAU).exp())
    ).sum()
    torch.testing.assert_close(
        negative_gradient(s_n.detach(), s_n_positive, weights, TAU), grad(loss, s_n)[0], rtol=1e-10, atol=1e-12
    )


def test_the_gradient_on_a_negative_grows_with_its_weight():
    s_n, positive, weights = torch.zeros(1, 3), torch.ones(1, 1), torch.tensor([[0.5, 1.0, 2.0]])
    share = negative_gradient(s_n, positive, weights, TAU)[0]
    torch.testing.assert_close(share / share[0], torch.tensor([1.0, 2.0, 4.0]))


@pytest.mark.parametrize("loss", [info_nce_across_batch, info_nce_within_batch])
def test_gradients_in_the_batch_are_right(loss):
    z = [raw(B, seed).requires_grad_() for seed in (1, 2)]
    assert gradcheck(lambda a, b: loss(normalise_halves(a, K), normalise_halves(b, K), TAU), z)


def test_gradients_with_a_queue_are_right():
    z, neg = raw(B, 1).requires_grad_(), normalise_halves(raw(M, 3), K)
    k = normalise_halves(raw(B, 2), K)
    assert gradcheck(lambda a: info_nce(normalise_halves(a, K), k, neg, TAU), [z])


def test_constant_features_give_the_plateau_ln_1_plus_negatives():
    q, neg = torch.ones(B, 4) / 2, torch.ones(M, 4) / 2
    assert info_nce(q, q, neg, TAU).item() == pytest.approx(math.log(1 + M), abs=1e-5)
