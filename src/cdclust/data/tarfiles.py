"""Where the members of a tar file lie, found from their headers alone.

An archive is untrusted: nothing is extracted, no link followed, no length believed that the file does not bear out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

BLOCK = 512
MOST_OF_A_NAME = 2**20  # bytes of an extended header; a real one has some hundred
MOST_OF_A_FILE = 2**60  # what a place in a file can still be added to
EMPTY = bytes(BLOCK)
REGULAR, SPARSE = b"07\0", b"S"
POSIX_NAME, GNU_NAME = b"x", b"L"
NO_CONTENT = b"123456"  # links, devices, folders and pipes have none, whatever their size says


class Damaged(Exception):
    """Why no further member can be found."""


@dataclass(frozen=True)
class Member:
    """A regular file in an archive."""

    name: str
    offset: int  # of its content
    size: int


def members(file: IO[bytes]) -> Iterator[Member]:
    """Every regular file, in its order; raises `Damaged` where an archive has no proper next header and no end."""
    where, extended = 0, dict[str, str]()
    while (header := _header(file, where)) != EMPTY:
        kind, size = header[156:157], _number(header[124:136])
        content = where + BLOCK
        if kind in POSIX_NAME + GNU_NAME:
            text = _text(file, content, size)
            extended |= {"path": _decoded(text)} if kind == GNU_NAME else _records(text)
        elif kind != b"g":
            size, name = int(extended.get("size", size)), extended.get("path") or _name(header)
            extended = {}
            if size > MOST_OF_A_FILE:
                raise Damaged("damaged")
            if kind in REGULAR and not name.endswith("/"):
                yield Member(name, content, size)
            content += _more_headers(file, content) if kind == SPARSE and header[482] else 0
            size = 0 if kind in NO_CONTENT else size
        where = content + -(-size // BLOCK) * BLOCK


def _header(file: IO[bytes], where: int) -> bytes:
    file.seek(where)
    header = file.read(BLOCK)
    if not header and where:
        raise Damaged("it has no end")
    if len(header) < BLOCK:
        raise Damaged("cut short" if where else "not a tar file")
    # The sum is over the header with its own field as blanks.
    total = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if header != EMPTY and _octal(header[148:156]) != total:
        raise Damaged("damaged" if where else "not a tar file")
    return header


def _number(field: bytes) -> int:
    """A length: octal digits, or bytes where the first says so; never negative."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise Damaged("damaged")  # a length below zero
        return int.from_bytes(field[1:], "big")
    found = _octal(field)
    if found is None:
        raise Damaged("damaged")
    return found


def _octal(field: bytes) -> int | None:
    digits = field.split(b"\0")[0].strip()
    return None if digits.strip(b"01234567") else int(digits or b"0", 8)


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _decoded(prefix + b"/" + name if prefix else name)


def _decoded(text: bytes) -> str:
    return text.rstrip(b"\0").decode("utf-8", "surrogateescape")


def _text(file: IO[bytes], where: int, size: int) -> bytes:
    if size > MOST_OF_A_NAME:
        raise Damaged("damaged")
    file.seek(where)
    text = file.read(size)
    if len(text) < size:
        raise Damaged("cut short")
    return text


def _records(text: bytes) -> dict[str, str]:
    """The name and size of a POSIX extended header: lines of `length key=value`."""
    found: dict[str, str] = {}
    while text:
        digits = text.split(b" ", 1)[0]
        length = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        if not 0 < length <= len(text):
            raise Damaged("damaged")
        key, _, value = text[len(digits) + 1 : length - 1].partition(b"=")
        if key == b"path" or (key == b"size" and value.isdigit() and len(value) < 20):
            found[key.decode()] = _decoded(value)
        text = text[length:]
    return found


def _more_headers(file: IO[bytes], where: int) -> int:
    """The length of the further headers of a sparse file."""
    length = 0
    while True:
        file.seek(where + length)
        header = file.read(BLOCK)
        length += BLOCK
        if len(header) < BLOCK:
            raise Damaged("cut short")
        if not header[504]:
            return length
