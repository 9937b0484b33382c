"""Clusters that are not taken to be even."""

import numpy as np
import ot
import pytest
import torch

from cdclust.errors import UsageError
from cdclust.methods import FRAMEWORKS, build_method
from cdclust.methods.sizes import MOMENTUM, Sizes
from cdclust.recipe import Recipe

K, B = 4, 64
GIVEN = [1.0, 4.0, 2.0, 3.0]
VIEWS = tuple(torch.randn(2, 8, 3, 12, 12, generator=torch.Generator().manual_seed(0)))


def z_c(tilt: float = 0.0) -> torch.Tensor:
    """Cosines (B, K); a tilt makes later clusters likelier."""
    x = torch.randn(B, K, generator=torch.Generator().manual_seed(0)) + tilt * torch.arange(K)
    return torch.nn.functional.normalize(x, dim=1)


@pytest.fixture
def method(small):
    return lambda sizes, **changes: build_method(small({"sizes": sizes, **changes}), 3, 12)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("sizes", ["soft", GIVEN], ids=str)
def test_every_framework_trains_with_any_sizes(method, framework, sizes):
    losses = method(sizes, framework=framework).step(VIEWS)
    assert torch.isfinite(losses.total)


def test_the_followed_shares_start_even_and_move_to_the_mean_probability():
    sizes, p = Sizes(K), torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.5, 0.3, 0.1, 0.1]])
    torch.testing.assert_close(sizes.share, torch.full((K,), 0.25))
    sizes.follow(p)
    expected = MOMENTUM * 0.25 + (1 - MOMENTUM) * np.array([0.6, 0.2, 0.1, 0.1])
    np.testing.assert_allclose(sizes.share.numpy(), expected, rtol=1e-6)


def test_given_shares_go_by_rank_whatever_their_order():
    sizes = Sizes(K)
    sizes.share.copy_(torch.tensor([0.2, 0.1, 0.4, 0.3]))
    for given in ((4.0, 3.0, 2.0, 1.0), (1.0, 2.0, 3.0, 4.0)):
        assert sizes.ranked(given).tolist() == [2.0, 1.0, 4.0, 3.0]


def test_codes_hold_the_given_shares(method):
    m = method(GIVEN, sinkhorn_iterations=200)
    shares = m.codes(z_c(tilt=0.3)).mean(dim=0)
    torch.testing.assert_close(shares.sort().values, torch.tensor([0.1, 0.2, 0.3, 0.4]), atol=1e-3, rtol=0)


@pytest.mark.filterwarnings("ignore:If reg_type")
def test_soft_codes_pay_for_unevenness_what_they_gain_in_entropy(method):
    """rho = epsilon: the codes of unbalanced transport, as POT finds them."""
    leaning, price = z_c(tilt=0.5).double(), 0.05
    plan = ot.unbalanced.sinkhorn_unbalanced(
        np.full(B, 1 / B), np.full(K, 1 / K), -leaning.numpy(), price, (float("inf"), price), reg_type="entropy"
    )
    codes = method("soft", sinkhorn_iterations=300, epsilon=price).codes(leaning)
    np.testing.assert_allclose(codes.numpy(), plan * B, atol=1e-5)


def test_what_was_followed_is_in_the_checkpoint_and_even_sizes_need_nothing(method):
    assert "sizes.share" in method(GIVEN).state_dict()
    assert not any(name.startswith("sizes.") for name in method("even").state_dict())


@pytest.mark.parametrize("sizes", ["uneven", [1, 0, 2, 1], [1, -1, 1, 1], 0.5, ["a", "b"], {}, [1, float("inf"), 1, 1]])
def test_what_are_no_sizes_is_refused_in_words(sizes):
    with pytest.raises(UsageError, match="even, soft, or a share above 0"):
        Recipe().changed({"sizes": sizes})


def test_shares_for_another_number_of_clusters_are_refused():
    with pytest.raises(UsageError, match="2 shares for -k 10"):
        Recipe().changed({"sizes": [1, 2]})


def test_a_run_with_given_sizes_can_be_used_without_what_was_followed(shell, settings, source, tmp_path):
    run = tmp_path / "run"
    said = shell("fit", source, *settings({"sizes": GIVEN}), "--out", run, "--device", "cpu")
    assert said.status == 0, said.err
    said = shell("predict", run, source, "--out", tmp_path / "p.csv", "--device", "cpu")
    assert said.status == 0, said.err
