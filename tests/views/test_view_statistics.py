"""What is drawn has torchvision's distributions. The samples are fixed by seed, so these do not flicker."""

import pytest
import torch
from scipy.stats import chisquare, ks_2samp, kstest, uniform
from torch import Tensor
from torchvision.transforms import RandomResizedCrop, v2

from cdclust.views.draw import BRIGHTNESS, CONTRAST, HUE, NOTHING, SATURATION, Draws, draw
from cdclust.views.policy import ViewPolicy, resolve

N = 4000


def drawn(policy: ViewPolicy, height: int = 32, width: int = 32) -> Draws:
    return draw(policy, N, height, width, torch.Generator().manual_seed(0))


def agree(ours: Tensor, theirs: Tensor) -> None:
    assert ks_2samp(ours.numpy(), theirs.numpy()).pvalue > 0.01


@pytest.mark.parametrize(
    ("height", "width", "scale"), [(32, 32, (0.2, 1.0)), (224, 300, (0.08, 1.0)), (20, 90, (0.5, 1.0))]
)
def test_crops_are_drawn_as_random_resized_crop_draws_them(height: int, width: int, scale: tuple[float, float]) -> None:
    torch.manual_seed(1)
    image = torch.empty(3, height, width)
    theirs = torch.tensor([RandomResizedCrop.get_params(image, list(scale), [3 / 4, 4 / 3]) for _ in range(N)])
    ours = drawn(ViewPolicy(crop_scale=scale), height, width).box
    for box in (ours, theirs):
        assert (box[:, :2] >= 0).all()
        assert (box[:, :2] + box[:, 2:] <= torch.tensor([height, width])).all()
    area, log_ratio = (lambda b: b[:, 2] * b[:, 3]), (lambda b: (b[:, 3] / b[:, 2]).log())
    for statistic in (area, log_ratio, lambda b: b[:, 0], lambda b: b[:, 1]):
        agree(statistic(ours), statistic(theirs))


def test_a_crop_that_never_fits_is_torchvisions_central_one() -> None:
    image = torch.empty(3, 10, 200)
    theirs = RandomResizedCrop.get_params(image, [0.9, 1.0], [3 / 4, 4 / 3])
    ours = drawn(ViewPolicy(crop_scale=(0.9, 1.0)), 10, 200).box
    assert (ours == torch.tensor(theirs)).all()


def test_jitter_factors_and_order_are_drawn_as_color_jitter_draws_them() -> None:
    policy = ViewPolicy(jitter=1, brightness=0.4, contrast=1.5, saturation=0.2, hue=0.1)
    transform = v2.ColorJitter(0.4, 1.5, 0.2, 0.1)
    torch.manual_seed(1)
    theirs = [transform.make_params([]) for _ in range(N)]
    ours = drawn(policy)
    names = {BRIGHTNESS: "brightness", CONTRAST: "contrast", SATURATION: "saturation", HUE: "hue"}
    for operation, name in names.items():
        agree(ours.factors[:, operation], torch.tensor([p[f"{name}_factor"] for p in theirs]))
    assert (ours.order.sort(dim=1).values == torch.arange(4)).all()
    permutation = (ours.order * torch.tensor([64, 16, 4, 1])).sum(dim=1)
    counts = torch.unique(permutation, return_counts=True)[1]
    assert len(counts) == 24
    assert chisquare(counts.numpy()).pvalue > 0.01


@pytest.mark.parametrize("name", ["cifar", "moco-v2", "moco-v3"])
def test_each_operation_is_applied_as_often_as_its_probability_says(name: str) -> None:
    for policy in resolve(name):
        draws = drawn(policy)
        rates = {
            "flip": draws.flipped,
            "jitter": (draws.order != NOTHING).all(dim=1),
            "greyscale": draws.grey,
            "blur": draws.sigma > 0,
            "solarise": draws.solarised,
        }
        for field, happened in rates.items():
            assert happened.float().mean() == pytest.approx(getattr(policy, field), abs=0.025), field
        pairs = torch.stack([draws.flipped, draws.grey, (draws.order != NOTHING).any(dim=1)]).float()
        assert torch.corrcoef(pairs).triu(1).abs().max() < 0.05


def test_affine_blur_gamma_and_hole_are_uniform_over_their_ranges() -> None:
    policy = ViewPolicy(
        affine=0.5, rotation=0.25, scale=0.2, shear=0.3, translation=0.15, gamma=0.4, blur=1, cutout=0.5
    )
    draws = drawn(policy)
    applied = (draws.affine != torch.tensor([0.0, 1, 0, 0, 0, 0])).any(dim=1)
    assert applied.float().mean() == pytest.approx(0.5, abs=0.025)
    reaches, centre = (0.25, 0.2, 0.3, 0.3, 0.15, 0.15), (0, 1, 0, 0, 0, 0)
    columns = [(draws.affine[applied, i], centre[i] - reaches[i], 2 * reaches[i]) for i in range(6)]
    columns += [(draws.gamma.log(), -0.4, 0.8), (draws.sigma, 0.1, 1.9), (draws.hole[:, 2], 0, 0.5)]
    for values, low, spread in columns:
        assert kstest(values.numpy(), uniform(low, spread).cdf).pvalue > 0.01


def test_few_keeps_that_many_operations_and_each_equally_often() -> None:
    policy = resolve("strong", elastic=0.02, greyscale=1)[0]
    draws = drawn(policy)
    affine = draws.affine != torch.tensor([0.0, 1, 0, 0, 0, 0])
    kept = [(draws.order == operation).any(dim=1) for operation in (BRIGHTNESS, CONTRAST, SATURATION, HUE)]
    kept += [draws.grey, draws.gamma != 1, draws.sigma > 0, draws.solarised]
    kept += [affine[:, 0], affine[:, 1], affine[:, 2], affine[:, 4], draws.noise.flatten(1).any(dim=1)]
    table = torch.stack(kept)
    assert (table.sum(dim=0) == policy.few).all()
    assert table.float().mean(dim=1).sub(policy.few / len(kept)).abs().max() < 0.03


def test_few_does_not_choose_operations_that_are_off() -> None:
    draws = drawn(ViewPolicy(few=1, rotation=1, brightness=0.5, gamma=0.5, solarise=1))
    assert ((draws.gamma != 1) ^ draws.solarised).all()


def test_changing_one_field_leaves_the_others_draws() -> None:
    plain, changed = (drawn(resolve("cifar", **fields)[0]) for fields in ({}, {"jitter": 0.1, "gamma": 0.2}))
    assert torch.equal(plain.box, changed.box)
    assert torch.equal(plain.grey, changed.grey)
    assert torch.equal(plain.factors, changed.factors)
