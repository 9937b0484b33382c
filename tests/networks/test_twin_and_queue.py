from collections import deque

import pytest
import torch
from torch import nn

from cdclust.networks.queue import Queue
from cdclust.networks.twin import Twin


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2, bias=False))


@pytest.mark.parametrize("momentum", [0.0, 0.9, 0.996, 1.0])
def test_the_twin_follows_by_the_formula(momentum):
    before, after = network(1), network(2)
    twin = Twin(before)
    old = [p.detach().clone().double() for p in before.parameters()]
    twin.follow(after, momentum)
    for copy, was, now in zip(twin.parameters(), old, after.parameters(), strict=True):
        torch.testing.assert_close(copy.double(), momentum * was + (1 - momentum) * now.detach().double())


def test_the_twin_starts_equal_and_does_not_share_memory():
    original = network(1)
    twin = Twin(original)
    with torch.no_grad():
        original[0].weight.zero_()
    assert twin.network[0].weight.abs().min() > 0


def test_the_twin_has_no_gradient_and_the_network_keeps_its_own():
    original = network(1)
    twin = Twin(original)
    assert not any(p.requires_grad for p in twin.parameters())
    assert all(p.requires_grad for p in original.parameters())
    assert not twin(torch.randn(4, 3)).requires_grad


def test_the_twins_batch_statistics_are_its_own():
    original = network(1)
    twin = Twin(original)
    original(torch.randn(8, 3) + 5)
    twin.follow(original, momentum=0.5)
    assert twin.network[1].running_mean.abs().max() == 0
    twin(torch.randn(8, 3))
    assert twin.network[1].running_mean.abs().max() > 0


@pytest.mark.parametrize("capacity", [1, 5, 12])
@pytest.mark.parametrize("sizes", [[4, 4, 4, 4], [1, 3, 5, 2, 7], [13, 2], [12, 12], [40]])
def test_the_queue_holds_the_last_vectors_as_a_deque_does(capacity, sizes):
    queue, oracle = Queue(capacity, (2, 1)), deque(maxlen=capacity)
    oracle.extend(map(tuple, queue.vectors.tolist()))
    for number, size in enumerate(sizes):
        batch = torch.arange(size * 3.0).view(size, 3) + 100 * number
        queue.push(batch)
        oracle.extend(map(tuple, batch.tolist()))
        in_order = queue.vectors.roll(-int(queue.place), dims=0)  # the oldest stands where the next one goes
        assert [tuple(v) for v in in_order.tolist()] == list(oracle)
        assert int(queue.seen) == sum(sizes[: number + 1])


def test_the_queue_starts_with_each_part_normalised_by_itself():
    start = Queue(50, (4, 6)).vectors
    torch.testing.assert_close(start[:, :4].norm(dim=1), torch.ones(50))
    torch.testing.assert_close(start[:, 4:].norm(dim=1), torch.ones(50))


def test_without_z_c_the_queue_holds_the_other_half_alone():
    start = Queue(50, (0, 6)).vectors
    assert start.shape == (50, 6)
    torch.testing.assert_close(start.norm(dim=1), torch.ones(50))


def test_the_queue_and_its_place_are_saved_with_the_model():
    queue, other = Queue(5, (2,)), Queue(5, (2,))
    queue.push(torch.randn(3, 2))
    other.load_state_dict(queue.state_dict())
    for each in (queue, other):
        each.push(torch.ones(4, 2))
    assert torch.equal(queue.vectors, other.vectors)
    assert (int(other.place), int(other.seen)) == (2, 7)


def test_pushing_keeps_no_gradient():
    queue = Queue(5, (2,))
    queue.push(torch.randn(3, 2, requires_grad=True))
    assert not queue.vectors.requires_grad
