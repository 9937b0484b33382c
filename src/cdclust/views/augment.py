"""Random views of a batch of images, and the clean view used for evaluation."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from cdclust.views import colour, filters, geometry
from cdclust.views.draw import BRIGHTNESS, CONTRAST, HUE, NOTHING, SATURATION, Draws, draw
from cdclust.views.policy import ViewPolicy

CACHE_BYTES = 3 << 18  # on a processor, planes that stay in its cache; much more or less is slower
MEMORY_BYTES = 1 << 30  # elsewhere, a bound on the working memory of one step
JITTER = {
    BRIGHTNESS: colour.brightness_,
    CONTRAST: colour.contrast_,
    SATURATION: colour.saturation_,
    HUE: colour.hue_,
}


def augment(images: Tensor, policy: ViewPolicy, generator: torch.Generator, size: int | None = None) -> Tensor:
    """A random view of each image: uint8 (B, C, H, W), C = 1 or 3, to float32 (B, C, size, size) in [0, 1].

    `size` is the short side unless given. The same generator state gives the same views, bit for bit.
    """
    if images.dtype != torch.uint8:
        raise TypeError(f"views are made of uint8 images, got {images.dtype}")
    batch, _, height, width = images.shape
    return apply(images, draw(policy, batch, height, width, generator), policy, size or min(height, width))


def apply(images: Tensor, draws: Draws, policy: ViewPolicy, size: int) -> Tensor:
    """The views that `draws` describe."""
    batch, channels = images.shape[:2]
    views = torch.empty(batch, channels, size, size, device=images.device)
    with torch.autocast(images.device.type, enabled=False):  # pixels stay float32 whatever the network runs in
        for rows in _chunks(images, draws, size):
            there = rows.to(images.device)
            planes = _view(images.index_select(0, there), draws.rows(rows), policy, size)
            views.index_copy_(0, there, planes.transpose(0, 1))
    return views


def clean(images: Tensor, size: int | None = None) -> Tensor:
    """The evaluation view: short side resized antialiased to `size`, centre cut out, in [0, 1]."""
    height, width = images.shape[-2:]
    short = min(height, width)
    size = size or short
    views = images / 255
    if short != size:
        shape = (size, size * width // height) if height <= width else (size * height // width, size)
        views = F.interpolate(views, shape, mode="bilinear", antialias=True, align_corners=False)
    top, left = (round((side - size) / 2) for side in views.shape[-2:])
    return views[:, :, top : top + size, left : left + size].clamp(0, 1)


def _chunks(images: Tensor, draws: Draws, size: int) -> Iterator[Tensor]:
    """Row numbers by jitter order, so that images that share an operation are neighbours, a cacheful at a time."""
    places = torch.tensor([125, 25, 5, 1])
    rows = ((draws.order - NOTHING) * places).sum(dim=1).argsort(stable=True)
    pixels = images.shape[1] * max(size * size, images.shape[2] * images.shape[3])
    limit = CACHE_BYTES if images.device.type == "cpu" else MEMORY_BYTES
    step = max(1, limit // (4 * pixels))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _view(images: Tensor, draws: Draws, policy: ViewPolicy, size: int) -> Tensor:
    """Every operation in its turn, on images that fit together: (B, C, H, W) to (C, B, size, size)."""
    planes = _cropped(images, draws, size)

    def warp_(part: Tensor, affine: Tensor, noise: Tensor) -> None:
        geometry.warp_(part, affine, noise, policy.elastic, policy.elastic_smoothness, policy.padding)

    def blur_(part: Tensor, sigma: Tensor) -> None:
        filters.blur_(part, sigma, filters.blur_radius(policy.blur_sigma[1], size))

    def solarise_(part: Tensor) -> None:
        colour.solarise_(part, policy.solarise_threshold)

    _on(planes, draws.warped, warp_, draws.affine, draws.noise)
    for position in range(draws.order.shape[1]):
        for operation, jitter_ in JITTER.items():
            _on(planes, draws.order[:, position] == operation, jitter_, draws.factors[:, operation])
    _on(planes, draws.grey, colour.greyscale_)
    _on(planes, draws.gamma != 1, colour.gamma_, draws.gamma)
    _on(planes, draws.thickness != 0, filters.thicken_, draws.thickness)
    _on(planes, draws.sigma > 0, blur_, draws.sigma)
    _on(planes, draws.solarised, solarise_)
    _on(planes, draws.hole[:, 2] > 0, filters.cutout_, draws.hole)
    return planes.clamp_(0, 1)


def _cropped(images: Tensor, draws: Draws, size: int) -> Tensor:
    whole = torch.tensor([0, 0, size, size])
    if images.shape[-2:] == (size, size) and not draws.flipped.any() and (draws.box == whole).all():
        planes = images.transpose(0, 1).to(torch.float32, memory_format=torch.contiguous_format)
    else:
        planes = geometry.resized_crop(images, draws.box, draws.flipped, size)
    return planes.mul_(1 / 255).clamp_(0, 1)


def _on(planes: Tensor, chosen: Tensor, operation: Callable[..., None], *parameters: Tensor) -> None:
    """Run an in-place operation on the chosen images alone; neighbours are not copied."""
    rows = chosen.nonzero().flatten()
    if not len(rows):
        return
    first, last = int(rows[0]), int(rows[-1]) + 1
    if last - first == len(rows):
        operation(planes[:, first:last], *(parameter[first:last] for parameter in parameters))
        return
    there = rows.to(planes.device)
    part = planes.index_select(1, there)
    operation(part, *(parameter[rows] for parameter in parameters))
    planes.index_copy_(1, there, part)
