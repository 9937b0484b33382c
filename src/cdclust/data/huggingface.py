"""Hugging Face data sets: `hf:NAME[:CONFIG][:SPLIT]`, or `hf:FOLDER` with what `save_to_disk` wrote or parquet files.

Rows stay where the library keeps them, mapped from the disk; an image is decoded here, under the bounds for all files.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.data.arrays import choose_splits
from cdclust.data.decode import Unreadable, decode
from cdclust.data.imageset import UNKNOWN, IndexKeys, encode_labels
from cdclust.data.stream import ImageStream, digest
from cdclust.errors import UserError

PREFIX = "hf:"
SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk leaves in a folder
SLICE = re.compile(r"(?P<split>[^\[\]]+)\[(?P<first>\d*)(?P<of>%?):(?P<last>\d*)(?P<to>%?)\]")
FINGERPRINT_ROWS = 64


def hub_splits(text: str) -> list[str]:
    """The splits of the data set, or none where the text says which."""
    parts, said = _opened(text)
    return [] if said or list(parts) == ["all"] else list(parts)


def open_hub(text: str, *, split: str | None = None, labels: str | None = None) -> HubStream:
    """The data set's images; labels are those of the column that is named, and none if none is."""
    parts, said = _opened(text)
    if said and split not in (None, "all", said):
        raise UserError(f"split: {split!r}, but the source says {said!r} already; say it once")
    cut = SLICE.fullmatch(said or split or "")
    chosen = choose_splits(cut["split"] if cut else said or split, [s for s in parts if s != "all"], text)
    data = [parts[each] for each in chosen]
    if cut:
        data = [data[0].select(_range(cut, len(data[0])))]
    return HubStream(text, data, "+".join(chosen), labels)


class HubStream(ImageStream):
    """Rows of one or several parts of a data set, each read when it is asked for."""

    def __init__(self, name: str, parts: Sequence[Any], split: str, labels: str | None) -> None:
        import datasets

        whole = datasets.concatenate_datasets(list(parts)) if len(parts) > 1 else parts[0]
        if not len(whole):
            raise UserError(f"source: {name} ({split}) holds no images; give at least one")
        column, notes = _image_column(whole.features, name)
        codes, names, more = None, None, list[str]()
        if labels is not None:
            codes, names, more = _labels(whole, labels, column, name)
        super().__init__(
            name, IndexKeys(len(whole)), labels=codes, class_names=names, split=split, notes=[*notes, *more]
        )
        rows = whole.select_columns([column])
        stored = isinstance(whole.features[column], datasets.Value)
        self._rows = rows if stored else rows.cast_column(column, datasets.Image(decode=False))
        self._column, self._files = column, [file["filename"] for file in whole.cache_files]

    def read(self, row: int, size: int | None) -> NDArray[np.uint8]:
        """The row's image: its bytes, or the file it names."""
        try:
            found = self._rows[row][self._column]
        except Exception as error:  # whatever a damaged Arrow file raises
            raise Unreadable(" ".join(str(error).split())[:120] or type(error).__name__) from error
        path = found["path"] if isinstance(found, dict) else None
        found = found["bytes"] if isinstance(found, dict) else found
        if found is None and path and os.path.isabs(path):  # noqa: PTH117 - text of somebody else's
            return decode(path, size)
        if not isinstance(found, bytes):
            raise Unreadable("no image in this row")
        return decode(found, size)

    def fingerprint(self) -> str:
        """Sizes and times of the files that rows lie in, and some rows."""
        found: list[object] = [self.split, len(self), self._column]
        for file in self._files:
            with suppress(OSError):
                info = Path(file).stat()
                found += [Path(file).name, info.st_size, info.st_mtime_ns]
        every = max(1, len(self) // FINGERPRINT_ROWS)
        return digest(found + [str(self._rows[row][self._column]) for row in range(0, len(self), every)])


def _opened(text: str) -> tuple[dict[str, Any], str | None]:
    """The data set's parts by split, `all` where it has none, and the split that the text itself names."""
    if importlib.util.find_spec("datasets") is None:
        raise UserError(f"source: {text} needs Hugging Face's datasets; type pip install 'cdclust[hf]'")
    import datasets

    name, further = _words(text)
    if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
        raise UserError(f"source: {text}: there is no folder {name}; give one that save_to_disk wrote, or a name")
    try:
        if any((Path(name) / file).is_file() for file in SAVED):
            found = datasets.load_from_disk(name)
        else:
            found, further = _loaded(name, further)
    except Exception as error:  # of the network, of damaged files, of names: the library raises every kind
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(
            f"source: {text} cannot be opened ({reason}); a folder is one that save_to_disk wrote, or of parquet files"
        ) from error
    parts = dict(found) if isinstance(found, dict) else {"all": found}
    if len(further) > 1 or (further and "all" in parts and not SLICE.fullmatch(further[0])):
        raise UserError(f"source: {text}: write hf:NAME, hf:NAME:CONFIG, hf:NAME:SPLIT or hf:NAME:CONFIG:SPLIT")
    return parts, further[0] if further else None


def _words(text: str) -> tuple[str, list[str]]:
    """The name or folder, and what follows it; a folder's name may have colons itself."""
    words = re.split(r":(?![^\[]*\])", text.removeprefix(PREFIX))
    for n in range(len(words), 0, -1):
        folder = Path(":".join(words[:n])).expanduser()
        if folder.is_dir():
            return str(folder), words[n:]
    return words[0], words[1:]


def _loaded(name: str, further: list[str]) -> tuple[Any, list[str]]:
    """What follows the name is a configuration, or else a split."""
    import datasets

    if not further or "[" in further[0]:
        return datasets.load_dataset(name), further
    try:
        return datasets.load_dataset(name, further[0]), further[1:]
    except ValueError:
        if len(further) > 1:
            raise
        return datasets.load_dataset(name), further


def _range(cut: re.Match[str], n: int) -> range:
    first, last = (_place(cut[end], cut[unit], n) for end, unit in (("first", "of"), ("last", "to")))
    return range(first or 0, n if last is None else last)


def _place(digits: str, unit: str, n: int) -> int | None:
    if not digits:
        return None
    return min(n, round(int(digits) * n / 100) if unit else int(digits))


def _image_column(features: Any, name: str) -> tuple[str, list[str]]:
    """The column of images by its type: images, else files as bytes and path, else bytes."""
    import datasets

    def is_image(kind: Any) -> bool:
        return isinstance(kind, datasets.Image)

    def is_file(kind: Any) -> bool:
        return isinstance(kind, dict) and set(kind) == {"bytes", "path"}

    def is_bytes(kind: Any) -> bool:
        return isinstance(kind, datasets.Value) and kind.dtype in ("binary", "large_binary")

    for fits in (is_image, is_file, is_bytes):
        found = [column for column, kind in features.items() if fits(kind)]
        if found:
            rest = f"{name} has several columns of images; {found[0]} is read, not {', '.join(found[1:])}"
            return found[0], [rest] if len(found) > 1 else []
    raise UserError(f"source: {name} has no column of images; its columns are {', '.join(features)}")


def _labels(data: Any, column: str, images: str, name: str) -> tuple[NDArray[np.int64], list[str] | None, list[str]]:
    import datasets

    if column not in data.features or column == images:
        others = ", ".join(each for each in data.features if each != images) or "(none)"
        raise UserError(f"labels: {name} has no column {column!r} to take labels from; it has {others}")
    kind = data.features[column]
    if not isinstance(kind, (datasets.Value, datasets.ClassLabel)):
        raise UserError(f"labels: the column {column!r} of {name} holds no single value a row; say another")
    values = data.select_columns([column])[:][column]
    if isinstance(kind, datasets.ClassLabel):
        codes = np.array([UNKNOWN if value is None else value for value in values], dtype=np.int64)
        return codes, list(kind.names), []
    return encode_labels(np.array(values, dtype=object), name)
