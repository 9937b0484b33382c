"""Operations that move pixels: crop, flip, resize, affine, elastic."""

import torch
import torch.nn.functional as F
from torch import Tensor


def triangle_weights(start: Tensor, length: Tensor, source: int, target: int, flipped: Tensor | None = None) -> Tensor:
    """One axis of an antialiased crop-and-resize as a matrix an image, (B, target, source); rows sum to 1.

    Output pixel `i` averages the source under a triangle centred on it, cut off at the borders of the crop.
    """
    device = start.device
    step = (length / target).float()  # (B,)
    place = torch.arange(target, device=device) + 0.5
    if flipped is not None:
        place = torch.where(flipped[:, None], target - place, place)  # (B, target)
    centre = place * step[:, None]
    pixel = torch.arange(source, device=device) + 0.5 - start[:, None]  # (B, source), from the crop's border
    inside = ((pixel > 0) & (pixel < length[:, None])).float()
    reach = step.clamp(min=1)[:, None, None]
    weights = (pixel[:, None, :] - centre[:, :, None]).abs_()
    weights.mul_(-1 / reach).add_(1).clamp_(min=0).mul_(inside[:, None, :])
    return weights.div_(weights.sum(dim=2, keepdim=True))


def sandwich(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """`rows @ image @ columns.T` for each image: (B, C, H, W) to (C, B, rows, columns)."""
    batch, channels, height, width = images.shape
    wide = torch.bmm(images.reshape(batch, channels * height, width), columns.mT)
    wide = wide.view(batch, channels, height, -1)
    planes = wide.new_empty(channels, batch, rows.shape[1], columns.shape[1])
    for channel in range(channels):
        torch.bmm(rows, wide[:, channel], out=planes[channel])
    return planes


def resized_crop(images: Tensor, box: Tensor, flipped: Tensor, size: int) -> Tensor:
    """Cut each image's box out, resize it antialiased to size x size, mirror it where `flipped`.

    Images uint8 or float (B, C, H, W); the result is float32 (C, B, size, size), on the scale of the images.
    `box` is on the CPU: only the part of the images that some box needs is read.
    """
    top, left, height, width = box.unbind(dim=1)
    (y0, y1), (x0, x1) = _span(top, height), _span(left, width)
    images = images[:, :, y0:y1, x0:x1].float()
    if len(images) == 1:  # large images come one by one, and there the same sum is cheaper tap by tap
        crop = F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)
        return (crop.flip(-1) if flipped else crop).transpose(0, 1).contiguous()
    box, flipped = box.to(images.device), flipped.to(images.device)
    top, left, height, width = box.unbind(dim=1)
    rows = triangle_weights(top - y0, height, y1 - y0, size)
    columns = triangle_weights(left - x0, width, x1 - x0, size, flipped)
    return sandwich(images, rows, columns)


def _span(start: Tensor, length: Tensor) -> tuple[int, int]:
    return int(start.min()), int((start + length).max())


def affine_matrix(affine: Tensor) -> Tensor:
    """From output to input coordinates in [-1, 1], (B, 2, 3): turned, sheared, scaled about the centre, then shifted.

    `affine` (B, 6): rotation (radians, clockwise), scale, shear x, y (radians), translation x, y (of the side).
    """
    rotation, scale, shear_x, shear_y, shift_x, shift_y = affine.unbind(dim=1)
    lean = rotation - shear_y
    a = lean.cos() / shear_y.cos()
    b = -lean.cos() * shear_x.tan() / shear_y.cos() - rotation.sin()
    c = lean.sin() / shear_y.cos()
    d = -lean.sin() * shear_x.tan() / shear_y.cos() + rotation.cos()
    inverse = torch.stack([d, -b, -c, a], dim=1).view(-1, 2, 2) / scale.view(-1, 1, 1)
    shift = torch.stack([shift_x, shift_y], dim=1) * 2
    return torch.cat([inverse, -inverse @ shift[:, :, None]], dim=2)


def smooth_field(noise: Tensor, size: int, smoothness: float) -> Tensor:
    """A Gaussian field of unit variance from control points one `smoothness` apart, (B, 2, size, size)."""
    points = noise.shape[-1]
    place = (torch.arange(size, device=noise.device) + 0.5) / size
    knots = (torch.arange(points, device=noise.device) - 3) * smoothness
    weights = (-0.5 * ((place[:, None] - knots) / smoothness) ** 2).exp()
    weights /= weights.square().sum(dim=1, keepdim=True).sqrt()  # (size, points)
    return weights @ noise @ weights.mT


def warp_(
    planes: Tensor, affine: Tensor, noise: Tensor, elastic: float, smoothness: float, padding: str = "border"
) -> None:
    """Move the pixels of (C, B, S, S) once by affine and elastic displacement together, bilinear."""
    images = planes.transpose(0, 1)
    matrix = affine_matrix(affine.double()).to(planes)
    grid = F.affine_grid(matrix, list(images.shape), align_corners=False)  # (B, S, S, 2)
    if noise.numel():
        field = smooth_field(noise.to(planes), planes.shape[-1], smoothness)
        grid += field.permute(0, 2, 3, 1) * (2 * elastic)
    images.copy_(F.grid_sample(images, grid, mode="bilinear", padding_mode=padding, align_corners=False))
