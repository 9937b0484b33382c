"""Equation 5 with other sizes than even ones: against POT, which solves the same problems by itself."""

import numpy as np
import ot
import pytest
import torch

from cdclust.objectives import sinkhorn

DOMAINS = ["linear", "log"]
B, K, EPSILON = 32, 8, 0.05


def cosines(b: int = B, k: int = K) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(b, k, generator=torch.Generator().manual_seed(0)), dim=1).double()


def uneven(k: int = K) -> torch.Tensor:
    shares = torch.linspace(1.0, 10.0, k, dtype=torch.float64)
    return shares / shares.sum()


@pytest.mark.parametrize("domain", DOMAINS)
def test_given_shares_are_the_transport_plans_marginal_as_in_pot(domain):
    plan = ot.sinkhorn(
        np.full(B, 1 / B), uneven().numpy(), -cosines().numpy(), reg=EPSILON, numItermax=20_000, stopThr=1e-15
    )
    codes = sinkhorn(cosines(), EPSILON, 5_000, domain, shares=uneven())
    np.testing.assert_allclose(codes.numpy(), plan * B, atol=1e-9)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("shares", [None, uneven()], ids=["even", "uneven"])
@pytest.mark.parametrize("rho", [0.05, 0.3, 2.0])
@pytest.mark.filterwarnings("ignore:If reg_type")
def test_shares_at_a_price_solve_unbalanced_transport_as_pot_does(domain, shares, rho):
    target = torch.full((K,), 1 / K, dtype=torch.float64) if shares is None else shares
    plan = ot.unbalanced.sinkhorn_unbalanced(
        np.full(B, 1 / B),
        target.numpy(),
        -cosines().numpy(),
        reg=EPSILON,
        reg_m=(float("inf"), rho),
        reg_type="entropy",
        numItermax=100_000,
        stopThr=1e-16,
    )
    codes = sinkhorn(cosines(), EPSILON, 2_000, domain, shares=shares, rho=rho)
    np.testing.assert_allclose(codes.numpy(), plan * B, atol=1e-9)


@pytest.mark.parametrize("domain", DOMAINS)
def test_even_shares_are_the_papers_codes(domain):
    even = sinkhorn(cosines(), EPSILON, 3, domain, shares=torch.full((K,), 1 / K))
    torch.testing.assert_close(even, sinkhorn(cosines(), EPSILON, 3, domain))


@pytest.mark.parametrize("domain", DOMAINS)
def test_shares_need_not_sum_to_one(domain):
    torch.testing.assert_close(
        sinkhorn(cosines(), EPSILON, 3, domain, shares=7 * uneven()),
        sinkhorn(cosines(), EPSILON, 3, domain, shares=uneven()),
    )


@pytest.mark.parametrize("domain", DOMAINS)
def test_at_no_price_every_image_goes_where_it_likes(domain):
    free = sinkhorn(cosines(), EPSILON, 3, domain, rho=0.0)
    torch.testing.assert_close(free, (cosines() / EPSILON).softmax(dim=1))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("rho", [0.1, float("inf")])
def test_extreme_shares_give_no_nan(domain, rho):
    shares = torch.tensor([1.0, 1e-12, 1e-30])
    codes = sinkhorn(torch.eye(3).repeat(4, 1) * 2 - 1, EPSILON, 3, domain, shares=shares, rho=rho)
    assert torch.isfinite(codes).all()
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(12))
