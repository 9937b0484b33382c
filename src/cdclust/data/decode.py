"""One image file as a square of RGB pixels, or the reason why not.

Bounded before decoding, so that a hostile header costs nothing.
"""

from __future__ import annotations

import stat
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

MAX_PIXELS = 100_000_000
MIN_SIDE = 2  # one row of pixels is a tracking dot, not a photo
# Formats that run another program, are stubs, or have endings that seldom mean an image.
NOT_READ = {"BUFR", "EPS", "FITS", "GRIB", "HDF5", "IPTC", "MPEG", "PCD", "WMF"}
ORIENTATION = 0x0112
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Unreadable(Exception):
    """Why one image cannot be used; becomes its status."""


@cache
def extensions() -> dict[str, str]:
    """The endings of files that are looked at, in lower case, and the format each stands for."""
    Image.init()
    known = Image.registered_extensions().items()
    return {e.lower(): f for e, f in known if f in Image.OPEN and f not in NOT_READ}


@cache
def formats() -> list[str]:
    """The formats a file may turn out to have, whatever its ending says."""
    return sorted(set(extensions().values()))


def decode(path: str, size: int | None, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """The image as (3, size, size), or (3, H, W) without `size`; raises `Unreadable` and nothing else."""
    try:
        with _open(path, max_pixels) as image:
            return np.asarray(to_rgb(image, size)).transpose(2, 0, 1)
    except Unreadable:
        raise
    except UnidentifiedImageError:
        raise Unreadable(_what_it_is(path)) from None
    except Exception as e:
        # Decoders fail on damaged files with nearly every exception there is.
        raise Unreadable(_in_words(e)) from e


def upright_size(path: str, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Height and width from the header, as the image will be seen; raises `Unreadable` and nothing else."""
    try:
        with _open(path, max_pixels) as image:
            width, height = image.size
            turned = _orientation(image) >= 5
            return (width, height) if turned else (height, width)
    except Unreadable:
        raise
    except UnidentifiedImageError:
        raise Unreadable(_what_it_is(path)) from None
    except Exception as e:
        raise Unreadable(_in_words(e)) from e


def to_rgb(image: Image.Image, size: int | None) -> Image.Image:
    """Upright, in RGB; with `size` the short side is resized to it, with antialiasing, and the centre kept."""
    if size:
        image.draft("RGB", (2 * size, 2 * size))  # JPEG: decode at a fraction, at least twice what is needed
    image.load()
    orientation = _orientation(image)
    image = _rgb(image)
    if size:
        side = min(image.size)
        left, top = (image.width - side) / 2, (image.height - side) / 2
        box = (left, top, left + side, top + side)
        image = image.resize((size, size), Image.Resampling.BILINEAR, box=box, reducing_gap=2.0)
    return image.transpose(UPRIGHT[orientation]) if orientation in UPRIGHT else image


def _open(path: str, max_pixels: int) -> Image.Image:
    info = Path(path).stat()
    if stat.S_ISDIR(info.st_mode):
        raise Unreadable("a folder, not a file")
    if not stat.S_ISREG(info.st_mode):
        raise Unreadable("not a regular file")  # opening a pipe would wait for ever
    if info.st_size == 0:
        raise Unreadable("empty file")
    image = Image.open(path, formats=formats())
    width, height = image.size
    if width * height > max_pixels:
        image.close()
        raise Unreadable(f"too large ({width} x {height}, at most {max_pixels / 1e6:g} million pixels)")
    if min(width, height) < MIN_SIDE:
        image.close()
        raise Unreadable(f"too small ({width} x {height})")
    return image


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(ORIENTATION, 1))
    except Exception:  # damaged metadata does not make the pixels unreadable
        return 1


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray(_eight_bits(np.asarray(image)))
    if image.mode in ("RGBA", "RGBa", "LA", "La", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def _eight_bits(pixels: NDArray[np.generic]) -> NDArray[np.uint8]:
    """16-bit, 32-bit and float greyscale: by the range the type or else the values suggest."""
    values = pixels.astype(np.float32)
    high = float(values.max())
    if not np.isfinite(high) or not np.isfinite(values.min()):
        raise Unreadable("NaN or infinite pixels")
    if pixels.dtype.kind == "f":
        scale = 255 if high <= 1 else 1 if high <= 255 else 255 / high
    elif pixels.dtype.itemsize == 2:
        scale = 1 / 257
    else:
        scale = 1 if high <= 255 else 1 / 257 if high <= 65535 else 255 / high
    scaled: NDArray[np.uint8] = np.rint(np.clip(values * scale, 0, 255)).astype(np.uint8)
    return scaled


def _what_it_is(path: str) -> str:
    with Path(path).open("rb") as file:
        head = file.read(256).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return "a web page, not an image"
    return "not an image in a format that can be read"


def _in_words(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, Image.DecompressionBombError):
        return f"too large (more than {MAX_PIXELS / 1e6:g} million pixels)"
    text = " ".join(str(error).split())
    return text[:120] or type(error).__name__
