"""source.json in a run folder: where the images of a run lie, so that they can be found again."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from cdclust.data import DATA_SETS, ImageStream, data_root, open_stream
from cdclust.errors import UserError
from cdclust.run import Run

FILE = "source.json"
MOST_BYTES = 2**20


@dataclass(frozen=True)
class Origin:
    """A source as it was given, and where that was."""

    given: str | None  # none: handed over from Python as pixels
    path: str | None  # absolute, of a folder or file; of a list of paths, the folder that relative ones start from
    split: str  # of the source, that was trained on
    labels: str | None  # what --labels said
    root: str | None  # absolute, where the named data sets lay


def describe(source: Any, split: str, labels: Any = None, root: str | PathLike[str] | None = None) -> Origin:
    """What there is to say of a source; labels handed over as values are not recorded."""
    said = labels if isinstance(labels, str) else None
    if isinstance(source, (str, os.PathLike)):
        text = _text(source)
        path = Path(source).expanduser()
        named = text.split(":")[0] in DATA_SETS and not path.is_file()
        if not named and (path.exists() or "{" in text):  # a pattern of files' names is in braces
            return Origin(text, _text(path.absolute()), split, said, None)
        return Origin(text, None, split, said, _text(data_root(root).absolute()))
    if _are_paths(source):
        return Origin("a list of paths", _text(Path.cwd()), split, said, None)
    return Origin(None, None, split, said, None)


def record(run: Run, origin: Origin) -> None:
    """Write source.json."""
    run.write_json(FILE, asdict(origin))


def recorded(run: Run) -> Origin | None:
    """What source.json says; none for a run from before there was one."""
    path = run.file(FILE)
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
        origin = Origin(**found)
    except (OSError, ValueError, TypeError, RecursionError):
        raise UserError(f"{path} is damaged; remove it and say where the images are with --source") from None
    if not all(isinstance(value, str) or value is None for value in found.values()) or origin.split is None:
        raise UserError(f"{path} is damaged; remove it and say where the images are with --source")
    return origin


def open_images(run: Run, keys: Sequence[str], source: str | None, root: Path | None = None) -> ImageStream:
    """The images of a run, where they were, or where `source` says that they are now.

    `keys` are those of assignments.csv: what a list of paths is made from again.
    """
    origin = recorded(run)
    split = origin.split if origin else None
    if source is not None:
        return open_stream(source, split=split, root=root or (origin.root if origin else None))
    if origin is None or origin.given is None:
        why = "was trained on images handed over from Python" if origin else "does not say where its images are"
        raise UserError(f"{run.path} {why}; say where they are with --source, as a folder, a manifest or a .npy file")
    if origin.given == "a list of paths":
        stream = open_stream([os.fspath(Path(origin.path or ".", key)) for key in keys])
        stream.keys = keys
        return stream
    if origin.path is not None and "{" not in origin.path and not Path(origin.path).exists():
        raise UserError(f"the images of {run.path} are no longer at {origin.path}; say where they are with --source")
    return open_stream(origin.path or origin.given, split=split, root=root or origin.root)


def _are_paths(source: Any) -> bool:
    some = isinstance(source, (list, tuple)) and len(source) > 0
    return some and all(isinstance(path, (str, os.PathLike)) for path in source)


def _text(path: str | PathLike[str]) -> str:
    """A path as JSON holds it: bytes that are no UTF-8 stay what they are, as surrogates."""
    return os.fspath(path)
