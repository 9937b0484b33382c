"""What a batch of views promises, whatever the policy."""

import pytest
import torch
from torch import Tensor

from cdclust.views import augment as module
from cdclust.views.augment import augment, clean
from cdclust.views.draw import draw
from cdclust.views.normalise import normalise
from cdclust.views.policy import POLICIES, ViewPolicy, resolve


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_images(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, generator=seeded(7), dtype=torch.uint8)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width", "size"), [(28, 28, None), (32, 32, 32), (96, 80, 64), (31, 45, 96)])
def test_every_policy_gives_finite_views_within_0_and_1(
    name: str, channels: int, height: int, width: int, size: int | None
) -> None:
    images = some_images(9, channels, height, width)
    before = images.clone()
    side = size or min(height, width)
    for policy in POLICIES[name]:
        views = augment(images, policy, seeded(), size)
        assert views.shape == (9, channels, side, side)
        assert views.dtype == torch.float32
        assert views.is_contiguous()
        assert views.isfinite().all()
        assert views.min() >= 0
        assert views.max() <= 1
    assert torch.equal(images, before)


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_seed_gives_the_same_views_and_another_seed_others(name: str) -> None:
    images, policy = some_images(70, 3, 32, 32), POLICIES[name][0]
    views = augment(images, policy, seeded(1))
    assert torch.equal(views, augment(images, policy, seeded(1)))
    others = augment(images, policy, seeded(2))
    assert ((views - others).abs().flatten(1).max(dim=1).values > 0.01).all()


@pytest.mark.parametrize("name", POLICIES)
def test_copies_of_one_image_all_get_their_own_view(name: str) -> None:
    views = augment(some_images(1, 3, 32, 32).expand(40, 3, 32, 32), POLICIES[name][0], seeded())
    assert len({tuple(view.flatten().tolist()) for view in views}) == 40


def test_the_generator_moves_on() -> None:
    images, generator = some_images(4, 3, 32, 32), seeded()
    first, second = (augment(images, POLICIES["cifar"][0], generator) for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", POLICIES)
def test_a_view_depends_on_its_image_and_place_alone(name: str) -> None:
    images, policy = some_images(50, 3, 32, 32), POLICIES[name][0]
    views = augment(images, policy, seeded())
    for few in (1, 2, 17):
        torch.testing.assert_close(augment(images[:few], policy, seeded()), views[:few], rtol=0, atol=1e-4)
    other = images.clone()
    other[1:] = 255 - other[1:]
    torch.testing.assert_close(augment(other, policy, seeded())[0], views[0], rtol=0, atol=1e-4)


def test_the_size_of_a_chunk_does_not_change_the_views(monkeypatch: pytest.MonkeyPatch) -> None:
    images, policy = some_images(50, 3, 40, 32), POLICIES["moco-v2"][0]
    views = augment(images, policy, seeded())
    for size in (1, 1 << 30):
        monkeypatch.setattr("cdclust.views.augment.CACHE_BYTES", size)
        torch.testing.assert_close(augment(images, policy, seeded()), views, rtol=0, atol=1e-5)


def test_a_policy_that_does_nothing_is_the_clean_view() -> None:
    for shape in ((3, 3, 32, 32), (3, 3, 40, 33), (2, 1, 28, 28)):
        images = some_images(*shape)
        torch.testing.assert_close(augment(images, ViewPolicy(), seeded()), clean(images), rtol=0, atol=1e-6)


def test_a_constant_image_stays_constant_where_pixels_only_move_or_mix() -> None:
    policy = ViewPolicy(crop_scale=(0.1, 1), flip=0.5, affine=1, rotation=0.5, scale=0.3, shear=0.3)
    policy = policy.model_copy(update={"translation": 0.3, "elastic": 0.05, "blur": 1.0, "cutout": 0.5})
    images = torch.tensor([[10, 100, 255]], dtype=torch.uint8)[:, :, None, None].expand(16, 3, 30, 41)
    expected = (images / 255)[..., :30]
    torch.testing.assert_close(augment(images, policy, seeded()), expected, rtol=0, atol=1e-5)


def test_jitter_of_one_channel_is_brightness_and_contrast_alone() -> None:
    images = some_images(20, 1, 28, 28)
    fields = {"jitter": 1.0, "brightness": 0.4, "contrast": 0.4}
    plain = augment(images, ViewPolicy(**fields), seeded())
    full = augment(images, ViewPolicy(**fields, saturation=0.9, hue=0.5, greyscale=1.0), seeded())
    torch.testing.assert_close(plain, full, rtol=0, atol=1e-6)


def test_flip_alone_mirrors_half_of_the_images() -> None:
    images = some_images(200, 3, 16, 16)
    views = augment(images, ViewPolicy(flip=0.5), seeded())
    kept = (views - images / 255).abs().flatten(1).max(dim=1).values < 1e-5
    mirrored = (views - images.flip(-1) / 255).abs().flatten(1).max(dim=1).values < 1e-5
    assert (kept ^ mirrored).all()
    assert 70 < mirrored.sum() < 130


def test_views_are_made_in_float32_under_autocast_too() -> None:
    images = some_images(20, 3, 32, 32)
    for name in POLICIES:
        expected = augment(images, POLICIES[name][0], seeded())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(augment(images, POLICIES[name][0], seeded()), expected)


def test_an_empty_batch_gives_an_empty_batch() -> None:
    for name in POLICIES:
        assert augment(some_images(0, 3, 32, 32), POLICIES[name][0], seeded()).shape == (0, 3, 32, 32)


def test_tiny_images_are_seen_too() -> None:
    for name in POLICIES:
        assert augment(some_images(5, 3, 1, 2), POLICIES[name][0], seeded(), 4).isfinite().all()


def test_float_images_are_refused() -> None:
    with pytest.raises(TypeError, match="uint8"):
        augment(torch.rand(2, 3, 8, 8), ViewPolicy(), seeded())


def test_views_need_no_python_loop_over_images(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    inner = module._view

    def counted(*arguments: object) -> Tensor:
        nonlocal calls
        calls += 1
        return inner(*arguments)

    monkeypatch.setattr(module, "_view", counted)
    augment(some_images(256, 3, 32, 32), resolve("cifar")[0], seeded())
    assert calls <= 8


def test_a_generator_on_the_cpu_serves_any_batch_size_alike() -> None:
    policy = POLICIES["drawings"][0]
    long, short = (draw(policy, batch, 28, 28, seeded()) for batch in (33, 5))
    assert torch.equal(long.rows(slice(0, 5)).noise, short.noise)
    assert torch.equal(long.rows(slice(0, 5)).affine, short.affine)


def test_normalise_gives_zero_mean_and_unit_variance_by_channel() -> None:
    images = torch.rand(50, 3, 8, 8, generator=seeded()) * torch.tensor([1.0, 0.5, 0.1])[:, None, None]
    mean, std = images.mean(dim=(0, 2, 3)), images.std(dim=(0, 2, 3))
    result = normalise(images, mean.tolist(), std.tolist())
    torch.testing.assert_close(result.mean(dim=(0, 2, 3)), torch.zeros(3), rtol=0, atol=1e-4)
    torch.testing.assert_close(result.std(dim=(0, 2, 3)), torch.ones(3), rtol=0, atol=1e-4)
