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
# Sides in pixels with qualities of WebP, the best first; an image is never enlarged.
LEVELS = ((160, 78), (128, 78), (96, 78), (80, 78), (64, 78), (48, 78), (48, 60), (40, 50), (32, 45), (24, 40))
LEVELS_OF_TINY = ((40, 92), (40, 78), (40, 60), (32, 45), (24, 40))
TINY = 40  # images that are no larger as they are
PROBED = 64  # images that tell how many bytes one takes
SMALL_SHARE = 0.75  # of the budget, for those outside the galleries

Pixels = NDArray[np.uint8]  # (H, W, 3)


Level = tuple[int, int]


@dataclass(frozen=True)
class Levels:
    """Side and quality of the images in a gallery, and of those elsewhere."""

    gallery: Level
    elsewhere: Level


def encode(pixels: Pixels, level: Level) -> bytes:
    """An image as WebP, no wider or higher than the level's side."""
    side, quality = level
    image = Image.fromarray(pixels)
    largest = max(image.size)
    if largest > side:
        shape = max(1, round(image.width * side / largest)), max(1, round(image.height * side / largest))
        image = image.resize(shape, Image.Resampling.LANCZOS)
    file = BytesIO()
    image.save(file, "WEBP", quality=quality, method=4)
    return file.getvalue()


def decode(content: bytes, side: int) -> NDArray[np.float32] | None:
    """A thumbnail at a side, in grey 0..1, or None if it is no image."""
    try:
        with Image.open(BytesIO(content), formats=["WEBP"]) as image:
            small = image.convert("L").resize((side, side), Image.Resampling.BOX)
    except Exception:  # a damaged file fails with nearly every exception there is
        return None
    return np.asarray(small, dtype=np.float32) / np.float32(255)


def choose_levels(probes: Sequence[Pixels], n_gallery: int, n: int, budget: int = BUDGET) -> Levels:
    """The best levels at which all images fit the budget, by the bytes that a few of them take."""
    tiny = max((max(pixels.shape[:2]) for pixels in probes), default=0) <= TINY
    levels = LEVELS_OF_TINY if tiny else LEVELS
    cost = {level: float(np.mean([len(encode(pixels, level)) for pixels in probes] or [0])) for level in levels}

    def best(count: int, room: float) -> Level:
        return next((level for level in levels if cost[level] * count <= room), levels[-1])

    if (of_all := best(n, budget)) == levels[0]:
        return Levels(of_all, of_all)
    rest = n - n_gallery
    small = best(rest, SMALL_SHARE * budget)
    large = best(n_gallery, budget - cost[small] * rest)
    return Levels(min(large, small, key=levels.index), small)


def thumbnails(
    picture: Callable[[int], Any],
    n: int,
    in_gallery: NDArray[np.bool_],
    threads: int,
    tell: Callable[[int, int], None] | None = None,
) -> Iterator[bytes]:
    """The thumbnails of images 0 to n - 1; `picture` brings one, uint8 (C, H, W)."""
    spread = np.linspace(0, n - 1, min(n, PROBED)).astype(int).tolist()
    levels = choose_levels([to_rgb(picture(i)) for i in spread], int(in_gallery.sum()), n)

    def one(i: int) -> bytes:
        return encode(to_rgb(picture(i)), levels.gallery if in_gallery[i] else levels.elsewhere)

    for done, content in enumerate(in_threads(one, range(n), threads), 1):
        if tell and (done % 100 == 0 or done == n):
            tell(done, n)
        yield content


def to_rgb(image: Any) -> Pixels:
    """uint8 (C, H, W), grey or in colour, as (H, W, 3)."""
    pixels = np.asarray(image)
    return np.ascontiguousarray(np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0))
