"""Names for files and folders that every file system takes, and no two of them the same on any."""

import os
import unicodedata

FORBIDDEN = '<>:"/\\|?*'  # on Windows and its file systems, which is what most memory sticks have
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{i}" for port in ("com", "lpt") for i in range(10))}
LONGEST = 120  # bytes of a folder's name, and of a stem that gets a number
JOINER = "\u200d"  # of emoji; other characters without a shape of their own are not kept


def safe(text: str) -> str:
    """Text as a name, or nothing where nothing of it is left: no separators, control or direction characters."""
    kept = "".join("_" if c in FORBIDDEN or not (c.isprintable() or c == JOINER) else c for c in text)
    name = shortened(kept.strip(" ."))  # hidden, or not to be opened on Windows
    if name.startswith("-"):  # an option to many commands
        name = f"_{name[1:]}"
    return f"_{name}" if name.partition(".")[0].strip().casefold() in DEVICES else name


def shortened(text: str, longest: int = LONGEST) -> str:
    """As much of the text as fits into so many bytes of UTF-8."""
    return text.encode()[:longest].decode(errors="ignore").rstrip(" .")


def stem_and_ending(path: str) -> tuple[str, str]:
    """The last part of a path, as it is wherever it can be written as text on one line."""
    name = os.path.basename(path)  # noqa: PTH119 - of a million strings
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    stem, ending = os.path.splitext(text)  # noqa: PTH122
    if text == name and text.isprintable():
        return stem, ending
    return safe(stem) or "image", ending if ending.isprintable() else ""


class Unique:
    """Gives each name out once: a second `a.jpg` is `a-2.jpg`, also where only case or composition differ."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._number: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        """The name, or another where it is taken."""
        stem, ending = os.path.splitext(name)  # noqa: PTH122
        given, number = name, self._number.get(_folded(name), 1)
        while _folded(given) in self._taken:
            number += 1
            given = f"{shortened(stem)}-{number}{ending}"
        self._number[_folded(name)] = number
        self._taken.add(_folded(given))
        return given


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
