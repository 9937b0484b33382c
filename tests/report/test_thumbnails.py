from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from cdclust.report import thumbnails


def noise(n, side):
    return list(np.random.default_rng(0).integers(0, 256, (n, side, side, 3), dtype=np.uint8))


def size(content):
    return Image.open(BytesIO(content)).size


def test_a_thumbnail_is_no_larger_than_asked_and_keeps_its_shape():
    assert size(thumbnails.encode(np.zeros((100, 200, 3), np.uint8), (50, 78))) == (50, 25)


def test_a_small_image_is_not_enlarged():
    assert size(thumbnails.encode(np.zeros((16, 16, 3), np.uint8), (96, 78))) == (16, 16)


def test_a_thumbnail_looks_like_its_image():
    ramp = np.repeat(np.linspace(0, 255, 64).astype(np.uint8)[None, :, None], 64, axis=0).repeat(3, axis=2)
    found = np.asarray(Image.open(BytesIO(thumbnails.encode(ramp, (64, 78)))).convert("RGB"), dtype=float)
    assert np.abs(found - ramp).mean() < 4


@pytest.mark.parametrize(("n", "in_gallery"), [(50, 50), (400, 40), (3000, 100)])
def test_images_that_are_hard_to_compress_stay_within_the_budget(n, in_gallery):
    pictures = noise(20, 160)
    levels = thumbnails.choose_levels(pictures, in_gallery, n, budget=2_000_000)
    mean = {s: np.mean([len(thumbnails.encode(p, s)) for p in pictures]) for s in (levels.gallery, levels.elsewhere)}
    assert mean[levels.gallery] * in_gallery + mean[levels.elsewhere] * (n - in_gallery) <= 2_100_000
    assert levels.gallery >= levels.elsewhere


def test_a_few_images_are_kept_at_the_largest_side():
    assert thumbnails.choose_levels(noise(4, 200), 4, 4).elsewhere[0] == 160


def test_grey_images_become_colour():
    grey = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    np.testing.assert_array_equal(thumbnails.to_rgb(grey), np.stack([grey[0]] * 3, axis=-1))


def test_thumbnails_come_in_the_order_of_the_images():
    pictures = [np.full((3, 8, 8), 20 * i, np.uint8) for i in range(12)]
    found = list(thumbnails.thumbnails(pictures.__getitem__, 12, np.ones(12, bool), threads=4))
    means = [float(np.asarray(Image.open(BytesIO(content)).convert("L")).mean()) for content in found]
    np.testing.assert_allclose(means, 20 * np.arange(12), atol=2)


@pytest.mark.parametrize("content", [b"", b"not an image", b"RIFF\x00\x00\x00\x00WEBPVP8 "])
def test_a_damaged_thumbnail_is_no_image_and_no_error(content):
    assert thumbnails.decode(content, 8) is None
