"""Small copies of images, within a budget of bytes for the whole page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cdclust.data.stream import in_threads

BUDGET = 7_500_000  # bytes of all images of a page; in base64 they take a third more
SIDES = (160, 128, 96, 80, 64, 48, 40, 32)  # of a thumbnail, largest first; never more than the image has
QUALITY = 78
FAITHFUL = 92  # for images that are tiny as they are
TINY = 40
PROBED = 64  # images that tell how many bytes one takes
SMALL_SHARE = 0.75  # of the budget, for those outside the galleries

Pixels = NDArray[np.uint8]  # (H, W, 3)


@dataclass(frozen=True)
class Sides:
    """How large images are drawn in a gallery, and elsewhere."""

    gallery: int
    elsewhere: int


def encode(pixels: Pixels, side: int) -> bytes:
    """An image as WebP, no wider or higher than `side`."""
    image = Image.fromarray(pixels)
    largest = max(image.size)
    if largest > side:
        shape = max(1, round(image.width * side / largest)), max(1, round(image.height * side / largest))
        image = image.resize(shape, Image.Resampling.LANCZOS)
    file = BytesIO()
    image.save(file, "WEBP", quality=FAITHFUL if max(image.size) <= TINY else QUALITY, method=4)
    return file.getvalue()


def decode(content: bytes, side: int) -> NDArray[np.float32] | None:
    """A thumbnail at a side, in grey 0..1, or None if it is no image."""
    try:
        with Image.open(BytesIO(content), formats=["WEBP"]) as image:
            small = image.convert("L").resize((side, side), Image.Resampling.BOX)
    except Exception:  # a damaged file fails with nearly every exception there is
        return None
    return np.asarray(small, dtype=np.float32) / np.float32(255)


def choose_sides(probes: Sequence[Pixels], n_gallery: int, n: int, budget: int = BUDGET) -> Sides:
    """The largest sides at which all images fit the budget, by the bytes that a few of them take."""
    if not probes:
        return Sides(SIDES[0], SIDES[0])
    cost = {side: float(np.mean([len(encode(pixels, side)) for pixels in probes])) for side in SIDES}
    if (largest := next((s for s in SIDES if cost[s] * n <= budget), None)) == SIDES[0]:
        return Sides(largest, largest)
    rest = n - n_gallery
    small = next((s for s in SIDES if cost[s] * rest <= SMALL_SHARE * budget), SIDES[-1])
    left = budget - cost[small] * rest
    large = next((s for s in SIDES if cost[s] * n_gallery <= left), small)
    return Sides(max(large, small), small)


def thumbnails(
    picture: Callable[[int], Any],
    n: int,
    in_gallery: NDArray[np.bool_],
    threads: int,
    tell: Callable[[int, int], None] | None = None,
) -> Iterator[bytes]:
    """The thumbnails of images 0 to n - 1; `picture` brings one, uint8 (C, H, W)."""
    spread = np.linspace(0, n - 1, min(n, PROBED)).astype(int).tolist()
    sides = choose_sides([to_rgb(picture(i)) for i in spread], int(in_gallery.sum()), n)

    def one(i: int) -> bytes:
        return encode(to_rgb(picture(i)), sides.gallery if in_gallery[i] else sides.elsewhere)

    for done, content in enumerate(in_threads(one, range(n), threads), 1):
        if tell and (done % 100 == 0 or done == n):
            tell(done, n)
        yield content


def to_rgb(image: Any) -> Pixels:
    """uint8 (C, H, W), grey or in colour, as (H, W, 3)."""
    pixels = np.asarray(image)
    return np.ascontiguousarray(np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0))
