"""SCAN's heads on a feature cache of four directions."""

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from cdclust.data.features import CacheKey, open_cache
from cdclust.engine.features import FeatureFeed
from cdclust.engine.scan import ScanSettings, train_scan
from cdclust.methods.scan import ScanHeads

N, K, D, V = 120, 4, 16, 2
LABELS = np.arange(N) % K
QUICK = ScanSettings(heads=3, epochs=30, neighbours=5, batch_size=40, lr=0.01)


def quiet(done: int, total: int) -> None:
    pass


@pytest.fixture
def feed(tmp_path) -> FeatureFeed:
    chance = np.random.default_rng(0)
    cache = open_cache(tmp_path, "x", CacheKey("s", "b", 32, V, "[]", "fp32", n=N, dim=D))
    place = 5 + 3 * np.eye(D)[LABELS]
    cache.clean[:] = place + 0.2 * chance.normal(size=(N, D))
    cache.views[:] = place[:, None] + 0.2 * chance.normal(size=(N, V, D))
    cache.finish(0, {})
    return FeatureFeed(cache, np.arange(N), torch.device("cpu"))


def test_groups_that_lie_apart_are_found(feed):
    found = train_scan(feed, K, 0, QUICK, quiet)
    assert adjusted_rand_score(LABELS, found.probabilities.argmax(1)) == 1


def test_the_head_with_the_lowest_loss_over_all_images_is_kept(feed):
    short = ScanSettings(heads=5, epochs=1, neighbours=5, batch_size=40)
    found = train_scan(feed, K, 0, short, quiet)
    p = found.probabilities.double().numpy()
    near = feed.neighbours.numpy()
    agreement = (p[:, None] * p[near]).sum(axis=2)
    mean = p.mean(axis=0)
    loss = -np.log(agreement).mean() + 5 * (mean * np.log(mean)).sum()
    assert loss == pytest.approx(min(found.losses), abs=1e-4)
    assert len(set(found.losses)) == 5


def test_the_same_seed_gives_the_same_and_another_seed_another(feed):
    short = ScanSettings(heads=2, epochs=1, neighbours=5, batch_size=40)
    first, same, other = (train_scan(feed, K, seed, short, quiet).probabilities for seed in (0, 0, 1))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_a_head_learns_as_if_it_were_alone():
    """The gradient of one head's loss is nothing but zero in the weights of the others."""
    heads = ScanHeads(D, K, 3, 5.0)
    x = torch.randn(8, D, generator=torch.Generator().manual_seed(0))
    heads.losses(x, x.flip(0))[1].backward()
    moved = heads.head.weight.grad.view(3, K, D).abs().sum(dim=(1, 2))
    assert moved[1] > 0
    assert moved[0] == moved[2] == 0
