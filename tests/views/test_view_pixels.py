"""Each operation, with its parameters fixed, paints the pixels torchvision paints."""

import colorsys
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as reference

from cdclust.views import colour, filters, geometry
from cdclust.views.augment import apply, clean
from cdclust.views.draw import BRIGHTNESS, CONTRAST, HUE, SATURATION, draw
from cdclust.views.policy import ViewPolicy


def some_images(batch: int, channels: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(batch + channels + height + width)
    return torch.randint(0, 256, (batch, channels, height, width), generator=generator, dtype=torch.uint8)


def by_planes(operation: Callable[..., None], images: Tensor, *parameters: object) -> Tensor:
    """The in-place operation on (C, B, H, W), as a function of (B, C, H, W)."""
    planes = images.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    operation(planes, *parameters)
    return planes.transpose(0, 1)


def one_by_one(operation: Callable[..., Tensor], images: Tensor, parameters: Tensor) -> Tensor:
    return torch.stack([operation(*pair) for pair in zip(images, parameters.tolist(), strict=True)])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 32), (40, 61, 33), (28, 28, 64), (200, 120, 31)])
def test_a_crop_is_torchvisions_antialiased_resized_crop(channels: int, height: int, width: int, size: int) -> None:
    images = some_images(5, channels, height, width)
    whole, corner = [0, 0, height, width], [height - 5, width - 3, 5, 3]
    box = torch.tensor([whole, corner, [3, 2, 20, 17], [0, 7, 1, 20], [9, 0, height - 9, 4]])
    flipped = torch.tensor([False, True, True, False, False])
    crops = geometry.resized_crop(images, box, flipped, size).transpose(0, 1)
    alone = [geometry.resized_crop(images[i : i + 1], box[i : i + 1], flipped[i : i + 1], size) for i in range(5)]
    torch.testing.assert_close(torch.cat(alone, dim=1).transpose(0, 1), crops, rtol=0, atol=2e-3)
    for image, place, mirrored, crop in zip(images.float(), box.tolist(), flipped, crops, strict=True):
        expected = reference.resized_crop(image, *place, [size, size], antialias=True)
        expected = expected.flip(-1) if mirrored else expected
        torch.testing.assert_close(crop, expected, rtol=0, atol=2e-3)  # of 255


@pytest.mark.parametrize(
    ("ours", "theirs", "factors"),
    [
        (colour.brightness_, reference.adjust_brightness, [0.0, 0.6, 1.0, 1.9]),
        (colour.contrast_, reference.adjust_contrast, [0.0, 0.6, 1.0, 1.9]),
        (colour.saturation_, reference.adjust_saturation, [0.0, 0.6, 1.0, 1.9]),
        (colour.hue_, reference.adjust_hue, [-0.5, -0.1, 0.07, 0.5]),
        (colour.gamma_, reference.adjust_gamma, [0.5, 0.9, 1.0, 2.2]),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_a_colour_operation_is_torchvisions(
    ours: Callable[..., None], theirs: Callable[..., Tensor], factors: list[float], channels: int
) -> None:
    images = some_images(4, channels, 17, 24) / 255
    factor = torch.tensor(factors)
    expected = one_by_one(theirs, images, factor)
    torch.testing.assert_close(by_planes(ours, images, factor), expected, rtol=0, atol=2e-6)


def test_hue_is_right_on_greys_primaries_and_ties() -> None:
    levels = torch.tensor([0.0, 0.25, 0.5, 1.0])
    image = torch.cartesian_prod(levels, levels, levels).T.reshape(3, 8, 8)
    for shift in (-0.5, -0.2, 0.0, 0.1, 1 / 3, 0.5):
        turned = by_planes(colour.hue_, image[None], torch.tensor([shift]))[0].flatten(1).T
        for before, after in zip(image.flatten(1).T.tolist(), turned, strict=True):
            hue, saturation, value = colorsys.rgb_to_hsv(*before)
            expected = torch.tensor(colorsys.hsv_to_rgb((hue + shift) % 1, saturation, value))
            torch.testing.assert_close(after, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_greyscale_and_solarise_are_torchvisions(channels: int) -> None:
    images = some_images(3, channels, 16, 20) / 255
    grey = reference.rgb_to_grayscale(images, num_output_channels=channels)
    torch.testing.assert_close(by_planes(colour.greyscale_, images), grey, rtol=0, atol=1e-6)
    inverted = reference.solarize(images, 0.5)
    torch.testing.assert_close(by_planes(colour.solarise_, images, 0.5), inverted, rtol=0, atol=0)


@pytest.mark.parametrize(("size", "radius"), [(32, 8), (33, 1), (9, 8), (96, 11)])
def test_blur_is_torchvisions(size: int, radius: int) -> None:
    images = some_images(3, 3, size, size) / 255
    sigma = torch.tensor([0.1, 1.0, 2.0])
    kernel = [2 * radius + 1] * 2
    expected = one_by_one(lambda image, s: reference.gaussian_blur(image, kernel, [s, s]), images, sigma)
    torch.testing.assert_close(by_planes(filters.blur_, images, sigma, radius), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("size", [28, 33])
@pytest.mark.parametrize(
    "affine",
    [
        (0.4, 1.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 0.8, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 0.3, 0.0, 0.0, 0.0),
        (0.0, 1.0, 0.0, -0.3, 0.0, 0.0),
        (0.0, 1.0, 0.0, 0.0, 0.1, -0.2),
        (-0.3, 1.2, 0.2, -0.1, -0.15, 0.1),
    ],
)
def test_affine_is_torchvisions(size: int, affine: tuple[float, ...]) -> None:
    images = some_images(2, 3, size, size) / 255
    rotation, scale, shear_x, shear_y, shift_x, shift_y = affine
    expected = reference.affine(
        images,
        angle=math.degrees(rotation),
        translate=[shift_x * size, shift_y * size],
        scale=scale,
        shear=[math.degrees(shear_x), math.degrees(shear_y)],
        interpolation=reference.InterpolationMode.BILINEAR,
    )
    rows = torch.tensor([affine, affine])
    warped = by_planes(geometry.warp_, images, rows, torch.zeros(2, 2, 0, 0), 0.0, 0.1, "zeros")
    torch.testing.assert_close(warped, expected, rtol=0, atol=5e-5)


def test_elastic_moves_pixels_by_the_fraction_it_is_given_and_smoothly() -> None:
    noise = (torch.rand(400, 2, 17, 17, generator=torch.Generator().manual_seed(0)) - 0.5) * math.sqrt(12)
    field = geometry.smooth_field(noise, 32, 0.1)
    assert field.std(dim=0).mean() == pytest.approx(1, abs=0.02)
    assert field.std(dim=0).min() > 0.85  # nowhere calm, the borders included
    step = (field[..., 1:] - field[..., :-1]).std()
    assert step == pytest.approx(1 / (32 * 0.1 * math.sqrt(2)), rel=0.1)  # of a Gaussian field's derivative


def test_elastic_of_a_ramp_shows_its_displacement() -> None:
    size, elastic = 32, 0.05
    ramp = (torch.arange(size) / size).expand(1, 1, size, size)
    noise = (torch.rand(1, 2, 17, 17, generator=torch.Generator().manual_seed(0)) - 0.5) * math.sqrt(12)
    identity = torch.tensor([[0.0, 1, 0, 0, 0, 0]])
    moved = by_planes(geometry.warp_, ramp, identity, noise, elastic, 0.1)
    expected = ramp + elastic * geometry.smooth_field(noise, size, 0.1)[:, :1]
    inner = (..., slice(None), slice(8, -8))
    torch.testing.assert_close(moved[inner], expected[inner], rtol=0, atol=1e-5)


def test_cutout_fills_one_square_with_the_mean_colour() -> None:
    images = some_images(2, 3, 20, 20) / 255
    cut = by_planes(filters.cutout_, images, torch.tensor([[0.5, 0.25, 0.3], [0.0, 0.0, 0.4]]))
    expected = images.clone()
    expected[0, :, 7:13, 2:8] = images[0].mean(dim=(1, 2))[:, None, None]
    expected[1, :, :4, :4] = images[1].mean(dim=(1, 2))[:, None, None]
    torch.testing.assert_close(cut, expected, rtol=0, atol=1e-6)


def test_a_whole_view_is_torchvisions_operations_in_the_drawn_order() -> None:
    policy = ViewPolicy(
        crop_scale=(0.2, 1), flip=0.5, jitter=0.8, brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1
    ).model_copy(update={"greyscale": 0.2, "blur": 0.5, "solarise": 0.2})
    images = some_images(60, 3, 40, 48)
    draws = draw(policy, 60, 40, 48, torch.Generator().manual_seed(3))
    views = apply(images, draws, policy, 32)
    adjust = {
        BRIGHTNESS: reference.adjust_brightness,
        CONTRAST: reference.adjust_contrast,
        SATURATION: reference.adjust_saturation,
        HUE: reference.adjust_hue,
    }
    for row, view in enumerate(views):
        expected = reference.resized_crop(images[row] / 255, *draws.box[row].tolist(), [32, 32], antialias=True)
        for operation in draws.order[row].tolist():
            if operation in adjust:
                expected = adjust[operation](expected, float(draws.factors[row, operation]))
        if draws.grey[row]:
            expected = reference.rgb_to_grayscale(expected, num_output_channels=3)
        if draws.sigma[row]:
            expected = reference.gaussian_blur(expected, [17, 17], [float(draws.sigma[row])] * 2)
        if draws.solarised[row]:
            expected = reference.solarize(expected, policy.solarise_threshold)
        if draws.flipped[row]:
            expected = expected.flip(-1)
        wrong = (view - expected).abs() > 1e-4  # solarise may fall on either side of its threshold
        assert wrong.float().mean() < (2e-3 if draws.solarised[row] else 1e-9)


@pytest.mark.parametrize(("height", "width", "size"), [(32, 32, 32), (50, 70, 32), (70, 51, 33), (20, 30, 28)])
def test_the_clean_view_is_torchvisions_resize_and_centre_crop(height: int, width: int, size: int) -> None:
    images = some_images(2, 3, height, width)
    resized = reference.resize(images / 255, [size], antialias=True)
    expected = reference.center_crop(resized, [size, size])
    torch.testing.assert_close(clean(images, size), expected, rtol=0, atol=2e-6)
    assert clean(images).shape[-2:] == (min(height, width),) * 2


def test_thicker_and_thinner_lines_are_dilation_and_erosion():
    from scipy.ndimage import grey_dilation, grey_erosion

    image = torch.rand(1, 3, 9, 9, generator=torch.Generator().manual_seed(0))  # (C, B, S, S): three images
    planes = image.clone()
    filters.thicken_(planes, torch.tensor([1.0, -1.0, 0.5]))
    pixels = image[0].numpy()
    whole = {"footprint": np.ones((3, 3)), "mode": "nearest"}
    np.testing.assert_allclose(planes[0, 0].numpy(), grey_dilation(pixels[0], **whole), atol=1e-6)
    np.testing.assert_allclose(planes[0, 1].numpy(), grey_erosion(pixels[1], **whole), atol=1e-6)
    half = (pixels[2] + grey_dilation(pixels[2], **whole)) / 2
    np.testing.assert_allclose(planes[0, 2].numpy(), half, atol=1e-6)
