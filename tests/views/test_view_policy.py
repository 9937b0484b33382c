"""Policies are data: typed, named, and clear about a mistake."""

import pytest
from pydantic import ValidationError

from cdclust.errors import UserError
from cdclust.views.policy import POLICIES, ViewPolicy, resolve


def test_the_named_policies_are_the_published_ones() -> None:
    assert set(POLICIES) == {"cifar", "moco-v2", "moco-v3", "drawings", "strong"}
    simclr, moco_v2, (first, second) = POLICIES["cifar"][0], POLICIES["moco-v2"][0], POLICIES["moco-v3"]
    assert (simclr.crop_scale, simclr.flip, simclr.jitter, simclr.greyscale) == ((0.2, 1.0), 0.5, 0.8, 0.2)
    assert (simclr.brightness, simclr.contrast, simclr.saturation, simclr.hue) == (0.4, 0.4, 0.4, 0.1)
    assert (simclr.blur, simclr.solarise) == (0, 0)
    assert moco_v2 == simclr.model_copy(update={"blur": 0.5})
    assert (first.blur, first.solarise, second.blur, second.solarise) == (1.0, 0, 0.1, 0.2)
    assert (first.crop_scale, first.saturation, first.blur_sigma) == ((0.08, 1.0), 0.2, (0.1, 2.0))
    drawings = POLICIES["drawings"][0]
    assert (drawings.flip, drawings.crop_scale, drawings.hue, drawings.saturation) == (0, None, 0, 0)


def test_every_named_policy_survives_a_round_trip() -> None:
    for pair in POLICIES.values():
        for policy in pair:
            assert ViewPolicy.model_validate_json(policy.model_dump_json()) == policy


def test_an_override_changes_both_branches_and_nothing_else() -> None:
    changed = resolve("moco-v3", crop_scale=[0.3, 1.0], flip=0)
    for policy, original in zip(changed, POLICIES["moco-v3"], strict=True):
        assert policy == original.model_copy(update={"crop_scale": (0.3, 1.0), "flip": 0.0})
    assert POLICIES["moco-v3"][0].crop_scale == (0.08, 1.0)


def test_a_misspelt_policy_or_field_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'moco-v2'"):
        resolve("moco_v2")
    with pytest.raises(UserError, match="choose from cifar"):
        resolve("xyzzy")
    with pytest.raises(UserError, match="did you mean 'brightness'"):
        resolve("cifar", brightnes=0.2)


@pytest.mark.parametrize(
    "field",
    [
        {"flip": 1.5},
        {"hue": 0.6},
        {"crop_scale": (0.5, 0.2)},
        {"crop_scale": (0.0, 1.0)},
        {"crop_scale": (0.2, 1.1)},
        {"blur_sigma": (2.0, 0.1)},
        {"brightness": -0.1},
        {"scale": 1.0},
        {"gamma": float("nan")},
        {"padding": "wrap"},
    ],
)
def test_a_value_outside_its_range_is_refused_in_words(field: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(field))) as refusal:
        resolve("cifar", **field)
    assert "\n" not in str(refusal.value)


def test_a_policy_is_frozen_and_knows_its_fields() -> None:
    with pytest.raises(ValidationError):
        POLICIES["cifar"][0].flip = 0.1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        ViewPolicy.model_validate({"flipp": 0.5})
