"""A view's random parameters, one row an image: drawn here, applied elsewhere."""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from cdclust.views.policy import ViewPolicy

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
IDENTITY = (0.0, 1.0, 0.0, 0.0, 0.0, 0.0)  # of `Draws.affine`
NOTHING = -1  # in `Draws.order`: this position does nothing
ATTEMPTS = 10  # torchvision's: so many tries for a crop that fits, then the whole image
# What `few` chooses from, in the order of its columns.
_JITTER = ("brightness", "contrast", "saturation", "hue")
_AFFINE = ("rotation", "scale", "shear", "translation")
_CHOICE = (*_JITTER, "greyscale", "gamma", "thickness", "blur", "solarise", *_AFFINE, "elastic")
_SCALARS = 2 * ATTEMPTS + 29 + len(_CHOICE)


@dataclass(frozen=True)
class Draws:
    """Parameters of a batch of views, on the CPU; row `i` depends on the seed and on `i` alone."""

    box: Tensor  # (B, 4) top, left, height, width in pixels of the source
    flipped: Tensor  # (B,) bool
    warped: Tensor  # (B,) bool: affine or elastic does something
    affine: Tensor  # (B, 6) rotation, scale, shear x, shear y, translation x, translation y
    noise: Tensor  # (B, 2, n, n) of unit variance: elastic's control points; n = 0 without it
    order: Tensor  # (B, 4) which jitter operation comes at each position
    factors: Tensor  # (B, 4) brightness, contrast, saturation, hue
    grey: Tensor  # (B,) bool
    gamma: Tensor  # (B,) exponent
    thickness: Tensor  # (B,) above 0 thicker, below thinner
    sigma: Tensor  # (B,) blur in pixels, 0 for none
    solarised: Tensor  # (B,) bool
    hole: Tensor  # (B, 3) centre y, centre x, side, as fractions of the view's side

    def __len__(self) -> int:
        return len(self.box)

    def rows(self, rows: Tensor | slice) -> "Draws":
        """The parameters of some of the images."""
        return Draws(*(getattr(self, field.name)[rows] for field in fields(self)))


class _Uniform:
    """Uniform numbers by column. Every column exists for every policy, so one field does not shift another's."""

    def __init__(self, batch: int, noise: int, generator: torch.Generator) -> None:
        shape = (batch, _SCALARS + noise)
        device = generator.device
        self._numbers = torch.rand(shape, generator=generator, device=device, dtype=torch.float64).cpu()
        self._next = 0

    def take(self, columns: int) -> Tensor:
        """The next columns, (B, columns) in [0, 1)."""
        self._next += columns
        return self._numbers[:, self._next - columns : self._next]

    def one(self) -> Tensor:
        """The next column, (B,)."""
        return self.take(1)[:, 0]

    def within(self, low: float, high: float) -> Tensor:
        """The next column, spread over [low, high)."""
        return low + (high - low) * self.one()

    def around(self, reach: float) -> Tensor:
        """The next column, spread over [-reach, reach)."""
        return self.within(-reach, reach)


def control_points(policy: ViewPolicy) -> int:
    """Side of elastic's noise: points a correlation length apart, three beyond each border."""
    return math.ceil(1 / policy.elastic_smoothness) + 7 if policy.elastic else 0


def draw(policy: ViewPolicy, batch: int, height: int, width: int, generator: torch.Generator) -> Draws:
    """Draw the parameters of `batch` views of images of height x width."""
    side = control_points(policy)
    uniform = _Uniform(batch, 2 * side * side, generator)
    kept = _kept(policy, uniform)
    box, flipped = _boxes(policy, height, width, uniform), uniform.one() < policy.flip
    affine = _affine(policy, uniform, kept)
    order, factors = _jitter(policy, uniform, kept)
    grey = (uniform.one() < policy.greyscale) & kept["greyscale"]
    gamma = torch.where(kept["gamma"], uniform.around(policy.gamma).exp(), 1.0).float()
    thickness = (uniform.around(policy.thickness) * kept["thickness"]).float()
    blurred, sigma = uniform.one() < policy.blur, uniform.within(*policy.blur_sigma)
    solarised = (uniform.one() < policy.solarise) & kept["solarise"]
    hole = torch.stack([uniform.one(), uniform.one(), uniform.within(0, policy.cutout)], dim=1).float()
    noise = (uniform.take(2 * side * side) - 0.5).mul_(math.sqrt(12)).view(batch, 2, side, side).float()
    noise = noise * kept["elastic"].view(-1, 1, 1, 1)
    return Draws(
        box=box,
        flipped=flipped,
        warped=(affine != torch.tensor(IDENTITY)).any(dim=1) | noise.bool().flatten(1).any(dim=1),
        affine=affine,
        noise=noise,
        order=order,
        factors=factors,
        grey=grey,
        gamma=gamma,
        thickness=thickness,
        sigma=torch.where(blurred & kept["blur"], sigma, 0.0).float(),
        solarised=solarised,
        hole=hole,
    )


def _kept(policy: ViewPolicy, uniform: _Uniform) -> dict[str, Tensor]:
    """Which operations each image keeps: `few` of those the policy has, or all."""
    lots = uniform.take(len(_CHOICE))  # (B, operations)
    gates = dict.fromkeys(_JITTER, policy.jitter) | dict.fromkeys(_AFFINE, policy.affine)
    has = torch.tensor([getattr(policy, name) > 0 and gates.get(name, 1) > 0 for name in _CHOICE])
    rank = torch.where(has, lots, 2.0).argsort(dim=1).argsort(dim=1)
    kept = (rank < policy.few) if policy.few else torch.ones_like(rank, dtype=torch.bool)
    return dict(zip(_CHOICE, kept.unbind(dim=1), strict=True))


def _boxes(policy: ViewPolicy, height: int, width: int, uniform: _Uniform) -> Tensor:
    """Random resized crop's boxes, as torchvision draws them, (B, 4)."""
    areas, ratios, corner = uniform.take(ATTEMPTS), uniform.take(ATTEMPTS), uniform.take(2)
    if policy.crop_scale is None:
        side = min(height, width)
        centre = torch.tensor([round((height - side) / 2), round((width - side) / 2), side, side])
        return centre.expand(len(areas), 4)
    (smallest, largest), (low, high) = policy.crop_scale, map(math.log, policy.crop_ratio)
    area = height * width * (smallest + (largest - smallest) * areas)  # (B, attempts)
    ratio = (low + (high - low) * ratios).exp()
    sides = torch.stack([(area / ratio).sqrt().round(), (area * ratio).sqrt().round()], dim=2)
    limits = torch.tensor([height, width], dtype=torch.float64)
    fits = ((sides > 0) & (sides <= limits)).all(dim=2)
    first = fits.int().argmax(dim=1)  # (B,) first attempt that fits
    chosen = sides[torch.arange(len(sides)), first]  # (B, 2)
    top_left = (corner * (limits - chosen + 1)).floor()
    fallback = _largest_box(height, width, *policy.crop_ratio)
    return torch.where(fits.any(dim=1, keepdim=True), torch.cat([top_left, chosen], dim=1), fallback).long()


def _largest_box(height: int, width: int, low: float, high: float) -> Tensor:
    """The largest central box with an allowed ratio."""
    ratio = min(max(width / height, low), high)
    if width / height < ratio:
        h, w = round(width / ratio), width
    else:
        h, w = height, round(height * ratio)
    h, w = max(h, 1), max(w, 1)
    return torch.tensor([(height - h) // 2, (width - w) // 2, h, w], dtype=torch.float64)


def _affine(policy: ViewPolicy, uniform: _Uniform, kept: dict[str, Tensor]) -> Tensor:
    """Rotation, scale, shear and translation, identity where not applied, (B, 6)."""
    applied = uniform.one() < policy.affine
    columns = [
        uniform.around(policy.rotation) * kept["rotation"],
        1 + uniform.around(policy.scale) * kept["scale"],
        uniform.around(policy.shear) * kept["shear"],
        uniform.around(policy.shear) * kept["shear"],
        uniform.around(policy.translation) * kept["translation"],
        uniform.around(policy.translation) * kept["translation"],
    ]
    return torch.where(applied[:, None], torch.stack(columns, dim=1), torch.tensor(IDENTITY)).float()


def _jitter(policy: ViewPolicy, uniform: _Uniform, kept: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The order of the four operations, with those that do nothing struck out, and their factors, (B, 4) each."""
    applied, order = uniform.one() < policy.jitter, uniform.take(4).argsort(dim=1)
    reaches = (policy.brightness, policy.contrast, policy.saturation)
    columns = [uniform.within(max(0.0, 1 - reach), 1 + reach) for reach in reaches] + [uniform.around(policy.hue)]
    factors = torch.stack(columns, dim=1).float()
    active = torch.stack([kept[name] & applied & (getattr(policy, name) > 0) for name in _JITTER], dim=1)
    return torch.where(active.gather(1, order), order, NOTHING), factors
