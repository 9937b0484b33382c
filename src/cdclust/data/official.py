"""CIFAR-10, CIFAR-100 and STL-10 from the files their authors publish.

The binary versions are preferred; the pickled ones are read by an unpickler that can build arrays and nothing else.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdclust.data.arrayfiles import DAMAGED, NpzFile, npz_parts
from cdclust.data.arrays import Array, Part, choose_splits
from cdclust.errors import UserError


@dataclass(frozen=True)
class Official:
    """Where a data set's files come from and what they are called."""

    url: str
    md5: str
    binary: str  # folder
    files: dict[str, list[str]]  # split -> binary files
    pickled: str = ""
    pickled_files: dict[str, list[str]] | None = None

    @property
    def archive(self) -> str:
        """The file's name in its address."""
        return self.url.rsplit("/", 1)[1]


BATCHES = [f"data_batch_{i}" for i in range(1, 6)]
OFFICIAL = {
    "cifar10": Official(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c32a1d4ab5d03f1284b67883e8d87530",
        "cifar-10-batches-bin",
        {"train": [f"{b}.bin" for b in BATCHES], "test": ["test_batch.bin"]},
        "cifar-10-batches-py",
        {"train": BATCHES, "test": ["test_batch"]},
    ),
    "cifar100": Official(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "03b5dce01913d631647c71ecec9e9cb8",
        "cifar-100-binary",
        {"train": ["train.bin"], "test": ["test.bin"]},
        "cifar-100-python",
        {"train": ["train"], "test": ["test"]},
    ),
    "stl10": Official(
        "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
        "91f7769df0f17e558f3565bffb0c7dfb",
        "stl10_binary",
        {"train": ["train_X.bin"], "test": ["test_X.bin"], "unlabeled": ["unlabeled_X.bin"]},
    ),
}
CIFAR10_NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
LABEL_NAMES = {"cifar10": "batches.meta.txt", "fine": "fine_label_names.txt", "coarse": "coarse_label_names.txt"}
SECONDS_TO_CONNECT = 10


def official_parts(base: str, root: Path, *, coarse: bool, split: str | None) -> tuple[list[Part], list[str] | None]:
    """The splits asked for, from whichever version of the files lies under `root`; fetched where none does."""
    files = OFFICIAL[base]
    if not _present(base, root):
        download(base, root)
    if (root / files.binary).is_dir():
        if base == "stl10":
            return _stl10(root / files.binary, split)
        return _cifar_binary(base, root / files.binary, coarse, split)
    if files.pickled and (root / files.pickled).is_dir():
        return _cifar_pickled(base, root / files.pickled, coarse, split)
    path = root / f"{base}.npz"
    try:
        file = NpzFile(path)
        stem = "y_coarse" if coarse else "y"
        parts, names = npz_parts(file, path.name, split=split, label_stem=stem)
        named = "coarse_names" if coarse else "fine_names"
        names = [str(n) for n in file[named]] if named in file.files else names
        names = CIFAR10_NAMES if base == "cifar10" and names is None else names
    except DAMAGED as e:
        raise UserError(f"source: {path} cannot be read: {e}; put the official files there instead") from e
    if coarse and all(y is None for _, _, y in parts):
        raise UserError(f"source: {path} has no coarse labels; add y_coarse_train and y_coarse_test")
    return parts, names


def _present(base: str, root: Path) -> bool:
    files = OFFICIAL[base]
    folders = [f for f in (files.binary, files.pickled) if f]
    return any((root / f).is_dir() for f in folders) or (root / f"{base}.npz").is_file()


def download(base: str, root: Path) -> None:
    """Fetch, check and unpack the official archive; one line says what to put where if that fails."""
    files = OFFICIAL[base]
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as fresh:
            if not (root / files.archive).is_file():
                # Without this a silent network would be waited for without end.
                request = urllib.request.Request(files.url, method="HEAD")
                urllib.request.urlopen(request, timeout=SECONDS_TO_CONNECT).close()
            from torchvision.datasets.utils import download_and_extract_archive  # slow to import, seldom needed

            download_and_extract_archive(files.url, str(root), extract_root=fresh, md5=files.md5)
            shutil.move(Path(fresh) / files.binary, root / files.binary)
    except (OSError, RuntimeError, ValueError) as e:
        raise UserError(
            f"source: {base} is not under {root} and could not be fetched ({' '.join(str(e).split())[:100]}); put "
            f"{files.archive} (from {files.url}), its folder {files.binary} or {base}.npz there, or name another "
            "place with --root or CDCLUST_DATA"
        ) from e


def _missing(path: Path) -> UserError:
    return UserError(f"source: {path} is missing; unpack the official archive again")


def _records(path: Path, length: int) -> Array:
    if not path.is_file():
        raise _missing(path)
    size = path.stat().st_size
    if size == 0 or size % length:
        raise UserError(
            f"source: {path} is damaged: {size:,} bytes are not a whole number of images of {length:,} bytes; "
            "unpack the official archive again"
        )
    return np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, length)


def _names(path: Path) -> list[str] | None:
    lines = path.read_text("utf-8", "replace").split("\n") if path.is_file() else []
    return [line.strip() for line in lines if line.strip()] or None


def _cifar_binary(base: str, folder: Path, coarse: bool, split: str | None) -> tuple[list[Part], list[str] | None]:
    """CIFAR-10: label, 3,072 pixels. CIFAR-100: coarse label, fine label, 3,072 pixels."""
    n_labels = 1 if base == "cifar10" else 2
    column = 0 if base == "cifar10" or coarse else 1
    parts: list[Part] = []
    for s in choose_splits(split, OFFICIAL[base].files, base):
        for file in OFFICIAL[base].files[s]:
            data = _records(folder / file, n_labels + 3072)
            parts.append((s, data[:, n_labels:].reshape(-1, 3, 32, 32), data[:, column]))
    kind = base if base == "cifar10" else "coarse" if coarse else "fine"
    return parts, _names(folder / LABEL_NAMES[kind])


def _stl10(folder: Path, split: str | None) -> tuple[list[Part], list[str] | None]:
    """3 x 96 x 96 pixels an image, column by column; labels 1 to 10, none for `unlabeled`."""
    parts: list[Part] = []
    for s in choose_splits(split, OFFICIAL["stl10"].files, "stl10"):
        pixels = _records(folder / OFFICIAL["stl10"].files[s][0], 3 * 96 * 96).reshape(-1, 3, 96, 96)
        labels = None if s == "unlabeled" else _records(folder / f"{s}_y.bin", 1)[:, 0].astype(np.int64) - 1
        parts.append((s, pixels.transpose(0, 1, 3, 2), labels))
    return parts, _names(folder / "class_names.txt")


def _cifar_pickled(base: str, folder: Path, coarse: bool, split: str | None) -> tuple[list[Part], list[str] | None]:
    files = OFFICIAL[base].pickled_files or {}
    key = "labels" if base == "cifar10" else "coarse_labels" if coarse else "fine_labels"
    parts: list[Part] = []
    for s in choose_splits(split, files, base):
        batches = [_unpickle(folder / f) for f in files[s]]
        try:
            pixels = np.concatenate([np.asarray(b["data"], np.uint8).reshape(-1, 3, 32, 32) for b in batches])
            parts.append((s, pixels, np.concatenate([np.asarray(b[key], np.int64) for b in batches])))
        except (KeyError, TypeError, ValueError) as e:
            raise UserError(f"source: {folder} is not what {base}'s authors publish ({e}); unpack it again") from e
    meta = folder / ("batches.meta" if base == "cifar10" else "meta")
    names = _unpickle(meta) if meta.is_file() else {}
    kind = "label_names" if base == "cifar10" else f"{key.removesuffix('s')}_names"
    return parts, [str(n) for n in names[kind]] if kind in names else None


class _ArraysOnly(pickle.Unpickler):
    """Builds numpy arrays and Python's own containers; whatever else a file names is refused."""

    def find_class(self, module: str, name: str) -> Any:
        numpy_core = module in ("numpy.core.multiarray", "numpy._core.multiarray")
        if numpy_core and name == "_reconstruct":
            return np.zeros(0).__reduce__()[0]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if module == "_codecs" and name == "encode":
            return _encode
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _encode(text: str, encoding: str) -> bytes:
    return text.encode("latin1" if encoding == "latin1" else "utf-8")


def _unpickle(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise _missing(path)
    try:
        with path.open("rb") as file:
            content = _ArraysOnly(file, encoding="latin1").load()
    except Exception as e:  # a damaged pickle fails with nearly every exception there is
        raise UserError(f"source: {path} cannot be read safely: {e}; use the binary version of the data") from e
    if not isinstance(content, dict):
        raise UserError(f"source: {path} is not what the data set's authors publish; unpack it again")
    return content
