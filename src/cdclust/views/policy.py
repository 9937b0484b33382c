"""What a random view may do to an image: every operation's probability and range, as data."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cdclust.errors import UserError

Probability = Annotated[float, Field(ge=0, le=1)]
Fraction = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ViewPolicy(BaseModel):
    """One branch's random view; an operation is off where its probability or its range is 0.

    Order: crop and flip, affine and elastic, jitter, greyscale, gamma, thickness, blur, solarise, cutout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    crop_scale: tuple[Positive, Positive] | None = None  # share of the area; None: the whole short side
    crop_ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3)  # width / height, log-uniform
    flip: Probability = 0.0

    affine: Probability = 0.0
    rotation: NonNegative = 0.0  # radians, either way
    scale: Annotated[float, Field(ge=0, lt=1)] = 0.0  # factor in [1 - scale, 1 + scale]
    shear: Annotated[float, Field(ge=0, lt=1.5)] = 0.0  # radians, either way, both axes
    translation: Fraction = 0.0  # of the side, either way, both axes
    elastic: Fraction = 0.0  # standard deviation of the displacement, of the side
    elastic_smoothness: Annotated[float, Field(ge=0.02, le=1)] = 0.1  # correlation length, of the side
    padding: Literal["border", "zeros", "reflection"] = "border"  # what affine and elastic pull in

    jitter: Probability = 0.0  # of the four below together, in random order
    brightness: NonNegative = 0.0  # factor in [1 - x, 1 + x], not below 0; so are the next two
    contrast: NonNegative = 0.0
    saturation: NonNegative = 0.0
    hue: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # shift in turns, either way
    greyscale: Probability = 0.0
    gamma: NonNegative = 0.0  # exponent in exp(+-gamma)
    thickness: Fraction = 0.0  # how far lines are thickened or thinned by a pixel, either way

    blur: Probability = 0.0
    blur_sigma: tuple[Positive, Positive] = (0.1, 2.0)  # pixels of the view
    solarise: Probability = 0.0
    solarise_threshold: Fraction = 128 / 255
    cutout: Fraction = 0.0  # largest side of the hole, of the view's side

    few: Annotated[int, Field(ge=0)] = 0  # each image keeps this many operations, at random; 0: all of them

    @model_validator(mode="after")
    def _ranges_are_in_order(self) -> Self:
        for name in ("crop_scale", "crop_ratio", "blur_sigma"):
            limits = getattr(self, name)
            if limits is not None and limits[0] > limits[1]:
                raise ValueError(f"{name} is (low, high), got {limits}")
        if self.crop_scale is not None and self.crop_scale[1] > 1:
            raise ValueError(f"crop_scale is a share of the area, at most 1, got {self.crop_scale}")
        return self


_CIFAR = ViewPolicy(
    crop_scale=(0.2, 1.0),
    flip=0.5,
    jitter=0.8,
    brightness=0.4,
    contrast=0.4,
    saturation=0.4,
    hue=0.1,
    greyscale=0.2,
)
_MOCO_V2 = _CIFAR.model_copy(update={"blur": 0.5})
_MOCO_V3 = _CIFAR.model_copy(update={"crop_scale": (0.08, 1.0), "saturation": 0.2})
_DRAWINGS = ViewPolicy(
    affine=1.0,
    rotation=0.25,
    scale=0.2,
    shear=0.2,
    translation=0.075,
    elastic=0.03,
    elastic_smoothness=0.3,
    jitter=1.0,
    brightness=0.2,
    gamma=0.45,
    thickness=1.0,
    blur=0.5,
    blur_sigma=(0.1, 0.8),
)
_STRONG = ViewPolicy(
    crop_scale=(0.5, 1.0),
    flip=0.5,
    affine=1.0,
    rotation=0.5,
    scale=0.2,
    shear=0.2,
    translation=0.1,
    jitter=1.0,
    brightness=0.8,
    contrast=0.8,
    saturation=0.8,
    hue=0.1,
    gamma=0.5,
    blur=1.0,
    blur_sigma=(0.1, 1.0),
    solarise=1.0,
    cutout=0.5,
    few=4,
)

POLICIES: dict[str, tuple[ViewPolicy, ViewPolicy]] = {
    "cifar": (_CIFAR, _CIFAR),  # SimCLR's CIFAR views, no blur
    "moco-v2": (_MOCO_V2, _MOCO_V2),
    "moco-v3": (
        _MOCO_V3.model_copy(update={"blur": 1.0}),
        _MOCO_V3.model_copy(update={"blur": 0.1, "solarise": 0.2}),
    ),
    "drawings": (_DRAWINGS, _DRAWINGS),
    "strong": (_STRONG, _STRONG),  # a few of many, as SCAN's self-labelling, then cutout
}


def resolve(name: str, **overrides: object) -> tuple[ViewPolicy, ViewPolicy]:
    """The named pair with some fields replaced in both branches; a name nobody knows gets the nearest one."""
    if name not in POLICIES:
        raise UserError(f"views {name!r} is unknown: {_instead(name, POLICIES)}")
    fields = ViewPolicy.model_fields
    for field in overrides:
        if field not in fields:
            raise UserError(f"views field {field!r} is unknown: {_instead(field, fields)}")
    first, second = POLICIES[name]
    return _replaced(first, overrides), _replaced(second, overrides)


def _replaced(policy: ViewPolicy, overrides: dict[str, object]) -> ViewPolicy:
    try:
        return ViewPolicy.model_validate(policy.model_dump() | overrides)
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise UserError(f"views: {first['msg'].removeprefix('Value error, ')}") from None
        field = ".".join(map(str, first["loc"]))
        raise UserError(f"views field {field} cannot be {first['input']!r}: {first['msg']}") from None


def _instead(name: str, known: Iterable[str]) -> str:
    names = list(known)
    nearest = get_close_matches(name, names, n=1)
    return f"did you mean {nearest[0]!r}?" if nearest else f"choose from {', '.join(names)}"
