import mmap
from pathlib import Path

import numpy as np
import pytest
import torch

from cdclust.data.features import CacheKey, FeatureCache, open_cache
from cdclust.engine import features
from cdclust.engine.features import FeatureFeed, mean_of, nearest, partners, two_of

CPU = torch.device("cpu")


def chance(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def cache(tmp_path: Path) -> FeatureCache:
    """60 rows whose features say which row and which view they are, 3 the whole image; row 0 could not be read."""
    key = CacheKey("s", "b", 32, 3, "[]", "fp32", n=60, dim=8)
    cache = open_cache(tmp_path, "x", key)
    cache.clean[:] = np.random.default_rng(0).normal(size=(60, 8))
    cache.clean[:, :2] = np.stack([np.arange(60), np.full(60, 3)], axis=1)
    cache.views[..., 0] = np.arange(60)[:, None]
    cache.views[..., 1] = np.arange(3)[None]
    cache.finish(0, {0: "unreadable: empty file"})
    return cache


ROWS = np.arange(1, 60)


def test_both_views_of_a_pair_are_of_the_image_and_differ(cache):
    feed = FeatureFeed(cache, ROWS, CPU)
    first, second = feed.views(torch.arange(59), chance())
    assert torch.equal(first[:, 0], torch.arange(1.0, 60))
    assert torch.equal(second[:, 0], torch.arange(1.0, 60))
    assert (first[:, 1] != second[:, 1]).all()


def test_the_whole_image_is_one_of_its_views(cache):
    first, _ = FeatureFeed(cache, ROWS, CPU).views(torch.arange(59).repeat(200), chance())
    shares = torch.bincount(first[:, 1].long(), minlength=4) / len(first)
    assert ((shares - 1 / 4).abs() < 0.02).all()


def test_every_pair_of_views_is_as_likely(cache):
    first, second = two_of(3, 60_000, chance())
    counts = torch.bincount(first * 3 + second, minlength=9).view(3, 3)
    assert (counts.diagonal() == 0).all()
    off = counts[~torch.eye(3, dtype=torch.bool)]
    assert ((off - 10_000).abs() < 500).all()


def test_the_same_chance_gives_the_same_views(cache):
    feed = FeatureFeed(cache, ROWS, CPU, 1.0, torch.arange(59).view(59, 1))
    assert torch.equal(feed.views(torch.arange(9), chance(3))[1], feed.views(torch.arange(9), chance(3))[1])


def test_views_on_disk_are_those_in_memory(cache, monkeypatch):
    there = FeatureFeed(cache, ROWS, CPU).views(torch.arange(20), chance())
    monkeypatch.setattr(features, "IN_MEMORY", 0)
    feed = FeatureFeed(cache, ROWS, CPU)
    assert feed.in_memory is None
    for mapped, held in zip(feed.views(torch.arange(20), chance()), there, strict=True):
        assert torch.equal(mapped, held)


def test_asking_ahead_reaches_the_pages_of_a_row_and_view_to_the_last(cache, monkeypatch):
    asked = []

    class Mapped:
        def madvise(self, option, start=0, length=None):
            asked.append((start, length))

    monkeypatch.setattr(cache.views, "_mmap", Mapped())
    cache.ask_for(np.array([0, 59]), np.array([1, 3]))
    header, size = cache.views.offset, 8 * 2
    first, last = header, header + (59 * 3 + 2) * size
    for (start, length), wanted in zip(asked, (first, last), strict=True):
        assert start % mmap.PAGESIZE == 0
        assert start <= wanted
        assert start + length == wanted + size


def test_clean_features_are_the_readable_rows(cache):
    feed = FeatureFeed(cache, ROWS, CPU)
    assert torch.equal(feed.clean(torch.tensor([0, 58])), torch.from_numpy(np.array(cache.clean[[1, 59]])).float())


@pytest.mark.parametrize("blocks_of", [1000, 25])
def test_neighbours_are_those_of_brute_force(cache, monkeypatch, blocks_of):
    monkeypatch.setattr(features, "SEARCHED", blocks_of)
    feed = FeatureFeed(cache, ROWS, CPU)
    found = nearest(feed, 4, mean_of(feed))
    x = np.array(cache.clean[1:], dtype=np.float64)
    x -= x.mean(axis=0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    blocks = np.array_split(np.arange(59), -(-59 // blocks_of))
    for block in blocks:
        for row in block:
            others = [int(o) for o in block if o != row]
            best = sorted(others, key=lambda o, row=row: -x[row] @ x[o])[:4]
            assert set(found[row].tolist()) == set(best)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_partners_are_neighbours(share):
    rows, near = torch.arange(10_000), (torch.arange(10_000) + 10_000)[:, None]
    drawn = partners(rows, share, near, chance())
    assert ((drawn >= 10_000).float().mean() - share).abs() < 0.02


def test_the_mean_is_that_of_the_readable_rows(cache):
    expected = np.array(cache.clean[1:], dtype=np.float64).mean(axis=0)
    torch.testing.assert_close(mean_of(FeatureFeed(cache, ROWS, CPU)).double(), torch.from_numpy(expected))
