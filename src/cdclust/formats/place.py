"""Putting an image in its place: a copy, a link, or a PNG where there is no file to copy."""

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from cdclust.data import ImageStream
from cdclust.data.decode import Unreadable, upright_size
from cdclust.errors import UserError

WAYS = ("copy", "hardlink", "symlink")
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class Gone(Exception):
    """Why the image cannot be had any more."""


@dataclass(frozen=True)
class Errand:
    """An image on its way: the row of the stream, the file it lies in if it is one, and where it goes."""

    row: int
    source: str | None
    target: Path
    as_png: bool


def place(errand: Errand, stream: ImageStream, way: str) -> None:
    """Bring one image to its place, which must be free; raises `Gone` if there is no image to bring."""
    if os.path.lexists(errand.target):
        raise UserError(f"--out: {errand.target} is there already; this file system holds two of its names for one")
    try:
        if errand.as_png or errand.source is None:
            _write_png(errand, stream)
        else:
            _WAYS[way](_there(errand.source), errand.target)
    except OSError as error:
        raise _in_words(error, errand, way) from error


def size_of(target: Path) -> tuple[int, int]:
    """Height and width of an image in its place."""
    try:
        return upright_size(os.fspath(target))
    except Unreadable as reason:
        raise Gone(str(reason)) from None


def _write_png(errand: Errand, stream: ImageStream) -> None:
    try:
        pixels = stream.read(errand.row, None)
    except Unreadable as reason:
        raise Gone(str(reason)) from None
    Image.fromarray(pixels.transpose(1, 2, 0)).save(errand.target, "PNG")


def _there(source: str) -> str:
    """The file itself, behind all links; it must be one that can be read."""
    real = os.path.realpath(source)
    try:
        if not os.path.isfile(real):  # noqa: PTH113
            raise Gone("no such file")
        os.close(os.open(real, os.O_RDONLY))
    except (OSError, ValueError) as error:
        raise Gone(getattr(error, "strerror", None) or str(error)) from None
    return real


def _copy(source: str, target: Path) -> None:
    shutil.copyfile(source, target)
    shutil.copystat(source, target)  # photographs are sorted by their time


_WAYS: dict[str, Callable[[str, Path], object]] = {"copy": _copy, "hardlink": os.link, "symlink": os.symlink}


def _in_words(error: OSError, errand: Errand, way: str) -> UserError:
    if error.errno in FULL:
        return UserError(
            f"--out: the disk is full ({errand.target}); nothing was kept. Make room, or write --files hardlink or "
            "--files symlink"
        )
    if way == "hardlink" and error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
        return UserError(
            f"--files hardlink: {errand.source} cannot be linked from {errand.target.parent} ({error.strerror}); both "
            "have to be on one disk that knows links. Write --files copy or --files symlink"
        )
    if way == "symlink" and error.errno in (errno.EPERM, errno.ENOTSUP):
        return UserError(f"--files symlink: there can be no links at {errand.target.parent}; write --files copy")
    return UserError(f"--out: {errand.target} cannot be written: {error.strerror or error}")
