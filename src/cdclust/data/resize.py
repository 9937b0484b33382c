"""Images as squares of one size."""

from torch import Tensor
from torch.nn.functional import interpolate


def square(images: Tensor, size: int) -> Tensor:
    """The centre square of uint8 (N, C, H, W), resized with antialiasing to (N, C, size, size)."""
    h, w = images.shape[-2:]
    side = min(h, w)
    top, left = (h - side) // 2, (w - side) // 2
    images = images[..., top : top + side, left : left + side]
    return images if side == size else interpolate(images, (size, size), mode="bilinear", antialias=True)
