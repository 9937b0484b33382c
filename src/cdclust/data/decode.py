"""One image file as a square of RGB pixels, or the reason why not.

What a file says of itself is bounded before it is decoded, in memory and in time, so that a hostile one costs little.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from cdclust.data.resize import square

T = TypeVar("T")
MAX_PIXELS = 100_000_000
MAX_BYTES = 512 * 2**20  # of one file: some headers are searched byte by byte, in Python
# A decoder of Pillow's that is written in Python takes a microsecond a pixel and stops all other threads.
MAX_PIXELS_IN_PYTHON = 16_000_000
# A progressive JPEG goes over its pixels once a scan, and a scan may be a dozen bytes.
MAX_SCANNED = 2_500_000_000
BYTES_OF_A_SCAN = 12
START_OF_SCAN = b"\xff\xda"
LARGE = 16_000_000  # pixels; of images beyond it one is decoded at a time, to bound the memory of all threads together
MIN_SIDE = 2  # one row of pixels is a tracking dot, not a photo
# Formats that run another program, are stubs, or have endings that seldom mean an image.
NOT_READ = {"BUFR", "EPS", "FITS", "GRIB", "HDF5", "IPTC", "MPEG", "PCD", "WMF"}
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
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
_one_large = threading.Lock()


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


def decode(source: str | bytes, size: int | None, max_pixels: int = MAX_PIXELS) -> NDArray[np.uint8]:
    """The file at a path, or the bytes of one, as (3, size, size), or (3, H, W) without `size`.

    Raises `Unreadable` and nothing else.
    """
    return _with_image(source, max_pixels, lambda image: to_pixels(image, size))


def upright_size(path: str, max_pixels: int = MAX_PIXELS) -> tuple[int, int]:
    """Height and width from the header, as the image will be seen; raises `Unreadable` and nothing else."""
    return _with_image(path, max_pixels, _upright_size)


def to_pixels(image: Image.Image, size: int | None) -> NDArray[np.uint8]:
    """Upright, in RGB (3, H, W); with `size` the short side is resized to it, antialiased, and the centre kept."""
    if size:
        image.draft("RGB", (2 * size, 2 * size))  # JPEG: decode at a fraction, at least twice what is needed
    large = image.width * image.height > LARGE
    with _one_large if large else nullcontext():
        image.load()
        orientation = _orientation(image)
        image = _rgb(image)
        if size and large and (factor := min(image.size) // (2 * size)) > 1:
            image = image.reduce(factor)
        pixels = np.array(_centre(image) if size else image)
    if size:
        # Of a tensor that is a part of another, torch would make a copy with threads of its own, in each of ours.
        pixels = square(torch.from_numpy(pixels).permute(2, 0, 1)[None], size)[0].permute(1, 2, 0).numpy()
    return _turned(pixels, orientation).transpose(2, 0, 1)


def _centre(image: Image.Image) -> Image.Image:
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def _turned(pixels: NDArray[np.uint8], orientation: int) -> NDArray[np.uint8]:
    if orientation not in UPRIGHT:
        return pixels
    return np.array(Image.fromarray(pixels).transpose(UPRIGHT[orientation]))


def _upright_size(image: Image.Image) -> tuple[int, int]:
    width, height = image.size
    return (width, height) if _orientation(image) >= 5 else (height, width)


def _with_image(source: str | bytes, max_pixels: int, work: Callable[[Image.Image], T]) -> T:
    head = b""
    try:
        with _file(source) as file:
            head = file.read(256)
            file.seek(0)
            with Image.open(file, formats=formats()) as image:
                _check(image, file, max_pixels)
                return work(image)
    except Unreadable:
        raise
    except UnidentifiedImageError:
        raise Unreadable(_what_it_is(head)) from None
    except Exception as e:
        # Decoders fail on damaged files with nearly every exception there is.
        raise Unreadable(_in_words(e)) from e


def _file(source: str | bytes) -> IO[bytes]:
    if isinstance(source, bytes):
        _check_bytes(len(source))
        return BytesIO(source)
    # Opened first and asked then, so that it cannot become a pipe in between; a pipe would be waited for.
    try:
        file = os.fdopen(os.open(source, OPEN_FLAGS), "rb")
    except OSError:
        if Path(source).is_dir():
            raise Unreadable("a folder, not a file") from None
        raise
    try:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("not a regular file")
        _check_bytes(info.st_size)
    except BaseException:
        file.close()
        raise
    return file


def _check_bytes(n: int) -> None:
    if n == 0:
        raise Unreadable("empty file")
    if n > MAX_BYTES:
        raise Unreadable(f"too large ({n / 2**20:,.0f} MB, at most {MAX_BYTES / 2**20:.0f})")


def _check(image: Image.Image, file: IO[bytes], max_pixels: int) -> None:
    width, height = image.size
    n = width * height
    if n > max_pixels:
        raise Unreadable(f"too large ({width} x {height}, at most {max_pixels / 1e6:g} million pixels)")
    if min(width, height) < MIN_SIDE:
        raise Unreadable(f"too small ({width} x {height})")
    if n > MAX_PIXELS_IN_PYTHON and any(tile[0] in Image.DECODERS for tile in getattr(image, "tile", ())):
        raise Unreadable(
            f"too large ({width} x {height}, at most {MAX_PIXELS_IN_PYTHON / 1e6:g} million pixels in this kind of "
            f"{image.format})"
        )
    if "progressive" in image.info and _scans(file, MAX_SCANNED // n) > MAX_SCANNED // n:
        raise Unreadable("too many scans for its size")


def _scans(file: IO[bytes], enough: int) -> int:
    """How many scans a JPEG has, at most; the file is read only if its length allows more than `enough`."""
    here = file.tell()
    most = file.seek(0, os.SEEK_END) // BYTES_OF_A_SCAN
    if most > enough:
        file.seek(0)
        most = file.read().count(START_OF_SCAN)
    file.seek(here)
    return most


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
    low, high = float(np.min(pixels)), float(np.max(pixels))
    if not np.isfinite(high) or not np.isfinite(low):
        raise Unreadable("NaN or infinite pixels")
    if pixels.dtype.kind == "f":
        scale = 255 if high <= 1 else 1 if high <= 255 else 255 / high
    elif pixels.dtype.itemsize == 2:
        scale = 1 / 257
    else:
        scale = 1 if high <= 255 else 1 / 257 if high <= 65535 else 255 / high
    scaled = np.empty(pixels.shape, np.uint8)
    for row, out in zip(pixels, scaled, strict=True):  # row by row: floats of all of it would be four times its memory
        out[:] = np.rint(np.clip(row.astype(np.float32) * scale, 0, 255))
    return scaled


def _what_it_is(head: bytes) -> str:
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
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
