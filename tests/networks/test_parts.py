import pytest
import torch
from torch import nn

from cdclust.networks import batchnorm
from cdclust.networks.batchnorm import forward_in_parts, shuffled_forward


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=True), nn.Linear(4, 2))


def images(n: int = 12) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("parts", [1, 2, 3, 6])
def test_it_is_the_parts_run_by_hand(parts):
    ours = forward_in_parts(network(), images(), parts)
    by_hand, size = network(), 12 // parts
    expected = torch.cat([by_hand(images()[start : start + size]) for start in range(0, 12, size)])
    assert torch.equal(ours, expected)


def test_batch_statistics_stay_within_a_part():
    changed = images()
    changed[6] += 10
    before, after = forward_in_parts(network(), images(), 2), forward_in_parts(network(), changed, 2)
    assert torch.equal(before[:6], after[:6])
    assert not torch.allclose(before[6:], after[6:])


@pytest.mark.parametrize(("n", "parts"), [(10, 4), (13, 4), (25, 8), (5, 2)])
def test_no_part_is_left_with_a_single_image(n, parts):
    sizes = []
    forward_in_parts(lambda x: (sizes.append(len(x)), x)[1], images(n), parts)
    assert sum(sizes) == n
    assert min(sizes) >= 2


def test_a_shuffled_forward_gives_rows_in_their_own_order():
    net = network().eval()
    torch.testing.assert_close(shuffled_forward(net, images(), 3), net(images()))


@pytest.mark.parametrize("parts", [1, 3])
def test_a_shuffled_forward_has_no_gradient_of_its_own(parts):
    assert not shuffled_forward(network(), images(), parts).requires_grad


def test_shuffling_changes_an_images_company_from_call_to_call():
    companies = set()

    def spy(x: torch.Tensor) -> torch.Tensor:
        companies.update(frozenset(map(int, row)) for row in [x[:, 0]])
        return x

    rows = torch.arange(12.0)[:, None]
    for _ in range(5):
        assert torch.equal(shuffled_forward(spy, rows, 3), rows)
    assert len(companies) > 10  # of 15 parts seen; unshuffled there would be 3


def test_the_shuffle_follows_from_the_seed():
    def result(seed: int) -> torch.Tensor:
        net = network()
        torch.manual_seed(seed)
        return shuffled_forward(net, images(), 3)

    assert torch.equal(result(3), result(3))
    assert not torch.equal(result(3), result(4))


def test_parts_side_by_side_compute_what_parts_one_by_one_do():
    one, other, x = network().double(), network().double(), images(24).double()
    expected = forward_in_parts(one, x, 3)  # on a processor, part by part
    with batchnorm._statistics_of_parts(other, 3):
        found = other(x)
    torch.testing.assert_close(found, expected)
    expected.square().sum().backward()
    found.square().sum().backward()
    for ours, theirs in zip(other.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    for ours, theirs in zip(other.buffers(), one.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_network_is_its_own_again_after_parts_side_by_side():
    net, x = network(), images(24)
    expected = net(x)
    with batchnorm._statistics_of_parts(net, 3):
        net(x)
    torch.testing.assert_close(net(x), expected)
