import numpy as np
import pytest

from cdclust.report.layout import lay_out


def test_images_of_one_kind_lie_together_on_the_map():
    chance = np.random.default_rng(0)
    kinds = np.repeat(np.arange(3), 40)
    features = (chance.normal(0, 1, (3, 20))[kinds] + chance.normal(0, 0.1, (120, 20))).astype(np.float32)
    places = lay_out(features / np.linalg.norm(features, axis=1, keepdims=True))
    middles = np.stack([places[kinds == k].mean(axis=0) for k in range(3)])
    nearest = ((places[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == kinds).all()


@pytest.mark.parametrize("n", [0, 1, 2, 5, 9, 30])
def test_a_map_of_any_number_of_images_fills_the_unit_square(n):
    features = np.random.default_rng(0).normal(0, 1, (n, 4)).astype(np.float32)
    places = lay_out(features)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
    assert ((places >= -1e-6) & (places <= 1 + 1e-6)).all()


def test_images_that_are_all_alike_can_still_be_told_apart_on_the_map():
    places = lay_out(np.ones((20, 4), dtype=np.float32))
    assert len(np.unique(places.round(4), axis=0)) == 20


def test_a_map_is_the_same_every_time():
    features = np.random.default_rng(0).normal(0, 1, (30, 4)).astype(np.float32)
    np.testing.assert_array_equal(lay_out(features), lay_out(features))
