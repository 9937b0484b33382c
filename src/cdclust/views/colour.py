"""Operations on a pixel's colour, in place on planes (C, B, H, W) in [0, 1]; one factor an image.

Planes come first so that each channel of a whole batch is one run of memory.
With one channel, saturation, hue and greyscale have nothing to do.
"""

import torch
from torch import Tensor

LUMA = (0.2989, 0.587, 0.114)


def per_image(values: Tensor, planes: Tensor) -> Tensor:
    """Values (B,) against (..., B, H, W)."""
    return values.to(planes).view(-1, 1, 1)


def luma(planes: Tensor) -> Tensor:
    """Grey value, (B, H, W), or (B, 1, 1) from means."""
    if len(planes) != len(LUMA):
        return planes[0].clone()
    red, green, blue = planes.unbind()
    grey = red * LUMA[0]
    return grey.add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])


def brightness_(planes: Tensor, factor: Tensor) -> None:
    """Blend with black."""
    planes.mul_(per_image(factor, planes)).clamp_(0, 1)


def contrast_(planes: Tensor, factor: Tensor) -> None:
    """Blend with the image's mean grey."""
    factor = per_image(factor, planes)
    mean = luma(planes.mean(dim=(2, 3), keepdim=True))
    planes.mul_(factor).add_(mean * (1 - factor)).clamp_(0, 1)


def saturation_(planes: Tensor, factor: Tensor) -> None:
    """Blend with the image's own grey."""
    if len(planes) != 3:
        return
    factor = per_image(factor, planes)
    planes_grey = luma(planes).mul_(1 - factor)
    planes.mul_(factor).add_(planes_grey).clamp_(0, 1)


def greyscale_(planes: Tensor) -> None:
    """Every channel becomes the grey value."""
    if len(planes) == 3:
        planes.copy_(luma(planes).expand_as(planes))


def hue_(planes: Tensor, shift: Tensor) -> None:
    """Turn the hue of HSV by `shift` turns, leaving saturation and value.

    A channel at hue distance `d` (in turns) from its own primary is `max - chroma * clamp(6 d - 1, 0, 1)`, so the
    way back needs no table of six sectors. Comparisons write 0 and 1 as floats: much faster here than `where`.
    """
    if len(planes) != 3:
        return
    red, green, blue = planes.unbind()
    largest = torch.maximum(green, blue)
    is_red = red.ge(largest).to(planes.dtype)
    chroma_low = torch.minimum(green, blue)
    is_green = green.ge(blue).to(planes.dtype)
    torch.maximum(largest, red, out=largest)
    chroma = largest - torch.minimum(chroma_low, red, out=chroma_low)
    # chroma * 6 * hue, as seen from the primary that is largest
    turn = (red - green).add_(chroma, alpha=4)
    turn.lerp_((blue - red).add_(chroma, alpha=2), is_green)
    turn.lerp_(green - blue, is_red)
    turn.div_(chroma.clamp(min=1e-12).mul_(6)).add_(per_image(shift, planes))
    for plane, primary in zip(planes, (0, 1 / 3, 2 / 3), strict=True):
        away = turn - primary
        away.sub_(away.round()).abs_().mul_(6).sub_(1).clamp_(0, 1)
        torch.addcmul(largest, chroma, away, value=-1, out=plane)


def gamma_(planes: Tensor, exponent: Tensor) -> None:
    """Raise every value to the image's exponent."""
    planes.pow_(per_image(exponent, planes))


def solarise_(planes: Tensor, threshold: float) -> None:
    """Invert every value at or above the threshold."""
    planes.copy_(torch.where(planes >= threshold, 1 - planes, planes))
