"""Images in tar files, as WebDataset writes them: `shards/{000000..000123}.tar`, a folder of .tar files, or one.

The headers are read once, at opening; from then on any image is one read at a known place.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from cdclust.data.decode import MAX_BYTES, Unreadable, decode, extensions
from cdclust.data.files import printable
from cdclust.data.imageset import encode_labels
from cdclust.data.stream import ImageStream, digest
from cdclust.data.tarfiles import Damaged, Member, members
from cdclust.errors import UserError

ENDING = ".tar"
PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
MAX_LABEL = 2**20  # bytes of a .cls, .txt or .json member
MAX_SHARDS = 1_000_000
BRACES = re.compile(r"\{([^{}]*)\}")
RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})")


def find_shards(text: str) -> list[Path] | None:
    """The tar files that a source's text names; None if it names none."""
    path = Path(text).expanduser()
    if text.lower().endswith(PACKED) and path.is_file():
        raise UserError(f"source: {path.name} is compressed as a whole, so no image can be reached; unpack it to .tar")
    if path.is_dir():
        return _in_folder(path)
    if not text.lower().endswith(ENDING):
        return None
    if path.is_file():
        return [path]
    shards = [Path(each).expanduser() for each in _expanded(text)]
    missing = [shard for shard in shards if not shard.is_file()]
    if missing and BRACES.search(text):
        raise UserError(
            f"source: {len(missing):,} of the {len(shards):,} tar files of {text} are missing (the first: "
            f"{missing[0]}); bring them, or name those that are there"
        )
    return None if missing else shards


def _in_folder(folder: Path) -> list[Path] | None:
    """Of a folder with .tar files and neither images nor folders beside them."""
    names = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                ending = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 - there may be millions
                if not entry.name.startswith(".") and (ending in extensions() or entry.is_dir()):
                    return None
                if ending == ENDING:
                    names.append(entry.name)
    except OSError:
        return None  # whoever lists it says what is wrong
    return [folder / name for name in sorted(names) if not name.startswith(".")] or None


def _expanded(text: str) -> Iterator[str]:
    """Every text that braces stand for: {000..123} counts, {a,b} lists."""
    parts = BRACES.split(text)
    choices = [_choices(part) if number % 2 else [part] for number, part in enumerate(parts)]
    if np.prod([float(len(each)) for each in choices]) > MAX_SHARDS:
        raise UserError(f"source: {text} stands for more than {MAX_SHARDS:,} files; name fewer")
    return ("".join(each) for each in product(*choices))


def _choices(inside: str) -> Sequence[str]:
    counted = RANGE.fullmatch(inside)
    if counted is None:
        return inside.split(",")
    first, last = counted.groups()
    if int(last) - int(first) >= MAX_SHARDS:
        raise UserError(f"source: {{{inside}}} stands for more than {MAX_SHARDS:,} files; name fewer")
    return [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]


class TarStream(ImageStream):
    """The images of tar files by row, none extracted; a damaged archive is a row of its own that cannot be read."""

    def __init__(self, shards: Sequence[Path], name: str, *, labels: str | None = None) -> None:
        self._shards = list(shards)
        self._bad: dict[int, str] = {}
        keys: list[str] = []
        places: list[tuple[int, int, int]] = []  # shard, offset, size
        values: list[object] = []
        notes: list[str] = []
        top = os.path.commonpath([shard.absolute().parent for shard in shards])
        for number, shard in enumerate(shards):
            called = printable(os.path.relpath(shard.absolute(), top))
            images, beside, damage = _scan(shard, labels)
            if damage == "it has no end":
                notes.append(f"{called} has no end: it may have been cut short behind its last image")
            elif damage:
                last = f" behind {printable(images[-1].name)}" if images else ""
                self._bad[len(keys)] = f"{damage}{last}: nothing further can be read of this file"
                keys.append(called)
                places.append((number, 0, 0))
                values.append("")
            keys += [f"{called}/{printable(image.name)}" for image in images]
            places += [(number, image.offset, image.size) for image in images]
            values += [beside.get(_sample(image.name), "") for image in images] if labels else []
        if not keys:
            raise UserError(f"source: {name} holds no images; give tar files with members such as 000001.jpg")
        self._places = np.array(places, dtype=np.int64)
        codes, names = None, None
        if labels is not None:
            if not any(value != "" for value in values):
                raise UserError(f"labels: {name} has no {labels!r} beside its images; leave it out, or say another")
            codes, names, more = encode_labels(np.array(values, dtype=object), name)
            notes += more
        super().__init__(name, keys, labels=codes, class_names=names, notes=notes)

    def read(self, row: int, size: int | None) -> NDArray[np.uint8]:
        """The image's bytes as they are in the archive now, decoded."""
        if row in self._bad:
            raise Unreadable(self._bad[row])
        shard, offset, length = self._places[row].tolist()
        if length > MAX_BYTES:
            raise Unreadable(f"too large ({length / 2**20:,.0f} MB, at most {MAX_BYTES / 2**20:.0f})")
        try:
            with self._shards[shard].open("rb") as file:
                content = _read(file, offset, length)
        except OSError as error:
            raise Unreadable((error.strerror or str(error)).lower()) from error
        if len(content) < length:
            raise Unreadable("cut short by the end of its tar file")
        return decode(content, size)

    def fingerprint(self) -> str:
        """Names, sizes and times of the tar files."""
        parts: list[object] = [*self.keys[:1], len(self)]
        for shard in self._shards:
            with suppress(OSError):
                info = shard.stat()
                parts += [shard.name, info.st_size, info.st_mtime_ns]
        return digest(parts)


def _read(file: IO[bytes], offset: int, length: int) -> bytes:
    # A length beyond the file's end must not be asked for: the room for it would be made first.
    length = max(0, min(length, os.fstat(file.fileno()).st_size - offset))
    file.seek(offset)
    return file.read(length)


def _sample(name: str) -> str:
    """What WebDataset calls the key: the path up to the first dot of its last part."""
    folder, slash, last = name.rpartition("/")
    return folder + slash + last.split(".", 1)[0]


def _scan(shard: Path, labels: str | None) -> tuple[list[Member], dict[str, object], str]:
    """The images of one archive, the label of each sample where asked for, and what is wrong with the archive."""
    images: list[Member] = []
    beside: dict[str, object] = {}
    kind, _, field = (labels or "").partition(".")
    try:
        with shard.open("rb") as file:
            for member in members(file):
                last = member.name.rsplit("/", 1)[-1]
                if last.startswith("."):
                    continue
                ending = os.path.splitext(last)[1].lower()  # noqa: PTH122 - a name in an archive, not a path
                if ending in extensions():
                    images.append(member)
                elif labels is not None and ending == f".{kind}" and member.size <= MAX_LABEL:
                    beside[_sample(member.name)] = _label(_read(file, member.offset, member.size), kind, field)
    except Damaged as reason:
        return images, beside, str(reason)
    except OSError as error:
        return images, beside, (error.strerror or str(error)).lower()
    return images, beside, ""


def _label(content: bytes, kind: str, field: str) -> object:
    """A label as text; what cannot be read is unknown."""
    text = content.decode("utf-8", "replace").strip()
    if kind != "json":
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if isinstance(found, dict):
        found = found.get(field or "label", "")
    return str(found) if isinstance(found, (str, int)) else ""
