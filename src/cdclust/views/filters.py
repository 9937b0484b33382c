"""Operations on a pixel's surroundings, in place on planes (C, B, S, S): line thickness, blur, cutout."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from cdclust.views.geometry import sandwich


def blur_(planes: Tensor, sigma: Tensor, radius: int) -> None:
    """Gaussian blur with reflected borders; `sigma` in pixels, the kernel `2 radius + 1` wide."""
    sigma = sigma.to(planes)
    offsets = torch.arange(-radius, radius + 1, device=planes.device, dtype=planes.dtype)
    kernel = (-0.5 * (offsets / sigma[:, None]) ** 2).exp()
    kernel /= kernel.sum(dim=1, keepdim=True)  # (B, taps)
    size = planes.shape[-1]
    weights = (kernel @ _reflected_taps(size, radius, planes.device)).view(-1, size, size)
    planes.copy_(sandwich(planes.transpose(0, 1), weights, weights))


def blur_radius(largest_sigma: float, size: int) -> int:
    """Four standard deviations, as far as a reflected border reaches."""
    return min(math.ceil(4 * largest_sigma), size - 1)


@lru_cache(maxsize=8)
def _reflected_taps(size: int, radius: int, device: torch.device) -> Tensor:
    """Which source pixel each tap of each output pixel reads, as 0 and 1, (taps, size * size)."""
    place = torch.arange(size) + torch.arange(-radius, radius + 1)[:, None]  # (taps, size)
    place = (size - 1) - ((size - 1) - place.abs()).abs()
    return torch.nn.functional.one_hot(place, size).flatten(1).float().to(device)


def thicken_(planes: Tensor, amount: Tensor) -> None:
    """Bright lines a pixel thicker (amount 1) or thinner (-1), or part of the way; dark lines the other way round."""
    brightest = F.max_pool2d(planes, 3, stride=1, padding=1)
    darkest = -F.max_pool2d(-planes, 3, stride=1, padding=1)
    amount = amount.to(planes).view(1, -1, 1, 1)
    planes.lerp_(torch.where(amount > 0, brightest, darkest), amount.abs().expand_as(planes))


def cutout_(planes: Tensor, hole: Tensor) -> None:
    """Fill a square with the image's mean colour; `hole` (B, 3) is centre y, centre x, side, of the view's side."""
    size = planes.shape[-1]
    centre_y, centre_x, side = hole.to(planes).mul(size).unbind(dim=1)
    place = torch.arange(size, device=planes.device) + 0.5
    half = (side / 2)[:, None]
    rows = (place - centre_y[:, None]).abs() < half  # (B, S)
    columns = (place - centre_x[:, None]).abs() < half
    inside = (rows[:, :, None] & columns[:, None, :]).to(planes.dtype)
    planes.lerp_(planes.mean(dim=(2, 3), keepdim=True).expand_as(planes), inside.expand_as(planes))
