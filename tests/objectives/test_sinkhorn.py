import numpy as np
import ot
import pytest
import torch

from cdclust.objectives import sinkhorn
from oracles.equations import sinkhorn_as_written

DOMAINS = ["linear", "log"]


def cosines(b: int = 64, k: int = 10, seed: int = 0) -> torch.Tensor:
    x = torch.randn(b, k, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(x, dim=1)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("iterations", [1, 3, 20])
def test_it_is_the_scaling_of_the_papers_kernel(domain, iterations):
    scores = cosines().double()
    expected = sinkhorn_as_written(scores.numpy(), 0.05, iterations)
    np.testing.assert_allclose(sinkhorn(scores, 0.05, iterations, domain).numpy(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("domain", DOMAINS)
def test_at_many_iterations_it_solves_the_transport_problem_as_pot_does(domain):
    scores = cosines(32, 8).double()
    plan = ot.sinkhorn(
        np.full(32, 1 / 32), np.full(8, 1 / 8), -scores.numpy(), reg=0.05, numItermax=20_000, stopThr=1e-14
    )
    np.testing.assert_allclose(sinkhorn(scores, 0.05, 20_000, domain).numpy(), plan * 32, atol=1e-8)


@pytest.mark.parametrize("domain", DOMAINS)
def test_rows_sum_to_one_exactly_and_clusters_are_about_even_after_three_iterations(domain):
    codes = sinkhorn(cosines(512, 10), 0.05, 3, domain)
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(512), rtol=0, atol=1e-6)
    assert (codes.sum(dim=0) / 51.2 - 1).abs().max() < 0.2


def test_clusters_are_even_at_many_iterations():
    codes = sinkhorn(cosines(512, 10), 0.05, 500)
    torch.testing.assert_close(codes.sum(dim=0), torch.full((10,), 51.2), rtol=1e-4, atol=0)


@pytest.mark.parametrize("domain", DOMAINS)
def test_adding_a_constant_changes_nothing(domain):
    scores = cosines().double()
    torch.testing.assert_close(sinkhorn(scores + 7.5, 0.05, 3, domain), sinkhorn(scores, 0.05, 3, domain))


def test_both_domains_agree_on_cosines():
    torch.testing.assert_close(
        sinkhorn(cosines(), 0.05, 3, "log"), sinkhorn(cosines(), 0.05, 3, "linear"), rtol=1e-4, atol=1e-6
    )


def test_the_literal_reading_on_z_over_t_matches_extended_precision():
    scores = cosines().double() / 0.1
    expected = sinkhorn_as_written(scores.numpy(), 0.05, 3)  # exp(200): beyond float32, within long double
    np.testing.assert_allclose(sinkhorn(scores, 0.05, 3, "log").numpy(), expected, rtol=1e-8, atol=1e-12)


def test_auto_takes_the_log_domain_when_exponentials_would_not_fit():
    scores = cosines().double()
    expected = sinkhorn_as_written(scores.numpy(), 0.01, 3)
    np.testing.assert_allclose(sinkhorn(scores, 0.01, 3).numpy(), expected, rtol=1e-8, atol=1e-12)


HOSTILE = {
    "huge and far apart": lambda: torch.tensor([[3e4, -3e4, 0.0], [-6e4, -6e4, -6e4], [1.0, 2.0, 3.0]]),
    "one row far below": lambda: torch.cat([cosines(7, 3), cosines(1, 3) - 6e4]),
    "one column far below": lambda: cosines(8, 3) - torch.tensor([0.0, 0.0, 6e4]),
    "all equal": lambda: torch.zeros(8, 3),
    "one image": lambda: cosines(1, 3),
    "one-hot at the cosines' limits": lambda: torch.eye(3).repeat(4, 1) * 2 - 1,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("epsilon", [0.001, 0.05, 1.0])
@pytest.mark.parametrize("case", HOSTILE)
def test_no_finite_scores_give_nan(case, epsilon, domain, dtype):
    codes = sinkhorn(HOSTILE[case]().to(dtype), epsilon, 3, domain)
    assert codes.dtype == torch.float32
    assert torch.isfinite(codes).all()
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(len(codes)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("epsilon", [0.001, 0.05])
def test_the_largest_numbers_do_not_give_nan(domain, dtype, epsilon):
    most = torch.finfo(dtype).max
    scores = torch.tensor([[most, -most], [-most, -most], [most, most], [-most, most]], dtype=dtype)
    codes = sinkhorn(scores, epsilon, 3, domain)
    assert torch.isfinite(codes).all()
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(4), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_scores_give_the_codes_of_their_rounded_values(dtype):
    scores = cosines(512, 10).to(dtype)
    torch.testing.assert_close(sinkhorn(scores, 0.05, 3), sinkhorn(scores.float(), 0.05, 3), rtol=0, atol=0)


def test_a_uniform_row_of_scores_gets_uniform_codes():
    codes = sinkhorn(torch.zeros(6, 3), 0.05, 3)
    torch.testing.assert_close(codes, torch.full((6, 3), 1 / 3))


def test_an_unknown_domain_is_refused():
    with pytest.raises(ValueError, match="auto, linear or log"):
        sinkhorn(cosines(), 0.05, 3, "logarithmic")
