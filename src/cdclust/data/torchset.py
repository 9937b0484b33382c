"""Images handed over item by item: a torch Dataset, or a list of arrays or pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from cdclust.data.arrays import as_array, channels_first, pixel_scale
from cdclust.data.decode import Unreadable, to_pixels
from cdclust.data.imageset import (
    OK,
    ImageSet,
    IndexKeys,
    Progress,
    check_memory,
    encode_labels,
    refuse_if_mostly_bad,
    refuse_if_strict,
)
from cdclust.data.resize import square
from cdclust.data.stream import ImageStream, digest
from cdclust.errors import UserError

FINGERPRINT_ITEMS = 64


class Items(Protocol):
    """What is asked of a data set: a length, and items that are images or start with one."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


def load_items(
    items: Items,
    *,
    size: int | None,
    name: str = "the data set",
    max_bytes: int | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> ImageSet:
    """Every item once; an item that cannot be read gets a status. Items: image, (image, label, ...) or a mapping."""
    n = len(items)
    if n == 0:
        raise UserError(f"source: {name} holds no images; give at least one")
    images: Tensor | None = None
    status, labels = [OK] * n, np.full(n, None, dtype=object)
    rows: list[int] = []
    for i in range(n):
        try:
            image, label = _image_and_label(items[i])
            pixels = _pixels(image, size, f"item {i} of {name}")
        except UserError:
            raise
        except Exception as e:  # whatever a data set's own reading raises
            status[i] = f"unreadable: {_in_words(e)}"
            refuse_if_strict(strict, str(i), status[i], name)
            continue
        if images is None:
            check_memory(n, tuple(pixels.shape), name, max_bytes)
            images = torch.empty((n, *pixels.shape), dtype=torch.uint8)
        if pixels.shape != images.shape[1:]:
            raise UserError(
                f"size: the images of {name} differ in shape ({tuple(images.shape[1:])}, then "
                f"{tuple(pixels.shape)} at item {i}); give a size, such as 96, and images of one mode"
            )
        images[len(rows)] = pixels
        labels[i] = label
        rows.append(i)
        if progress:
            progress(i + 1, n)
    refuse_if_mostly_bad(status, IndexKeys(n), name)
    assert images is not None
    codes, names, notes = encode_labels(labels, name) if any(y is not None for y in labels) else (None, None, [])
    names = _class_names(items) if codes is not None and names is None else names
    return ImageSet(name, images[: len(rows)], IndexKeys(n), status, np.array(rows), codes, names, "all", notes)


class ItemStream(ImageStream):
    """Items read when they are asked for, in one thread: a data set need not stand more."""

    thread_safe = False

    def __init__(self, items: Items, *, labels: Any = None, name: str = "the data set", split: str = "all") -> None:
        n = len(items)
        if n == 0:
            raise UserError(f"source: {name} holds no images; give at least one")
        self._items = items
        labels = labels_beside(items) if labels is None else labels
        codes, names, notes = (None, None, []) if labels is None else encode_labels(labels, name)
        if codes is not None and len(codes) != n:
            raise UserError(f"labels: {len(codes):,} labels for {n:,} images; give one an image")
        names = _class_names(items) if codes is not None and names is None else names
        super().__init__(name, IndexKeys(n), labels=codes, class_names=names, split=split, notes=notes)

    def read(self, row: int, size: int | None) -> NDArray[np.uint8]:
        """One item, grey ones in RGB."""
        name = f"item {row} of {self.name}"
        try:
            pixels = _pixels(_image_and_label(self._items[row])[0], size, name)
        except UserError:
            raise
        except Exception as e:  # whatever a data set's own reading raises
            raise Unreadable(_in_words(e)) from e
        rgb: NDArray[np.uint8] = pixels.expand(3, -1, -1).numpy()
        return rgb

    def fingerprint(self) -> str:
        """Every item of a list; of a data set its length and a sample, since reading it may be slow."""
        n = len(self._items)
        every = 1 if isinstance(self._items, (list, tuple)) else max(1, n // FINGERPRINT_ITEMS)
        return digest([n, type(self._items).__qualname__, *(self._content(row) for row in range(0, n, every))])

    def _content(self, row: int) -> object:
        try:
            pixels = self.read(row, None)
        except Unreadable as reason:
            return reason
        return f"{pixels.shape}".encode() + pixels.tobytes()


def labels_beside(items: Items) -> Any:
    """The labels that can be had without reading an image: those of a list, or where torchvision keeps them."""
    if isinstance(items, (list, tuple)):
        labels = [_label(item) for item in items]
        return labels if any(label is not None for label in labels) else None
    for name in ("targets", "labels"):
        found = getattr(items, name, None)
        if isinstance(found, (list, tuple, np.ndarray, Tensor)) and np.ndim(found) == 1 and len(found) == len(items):
            return np.asarray(found)
    return None


def _class_names(items: Items) -> list[str] | None:
    names = getattr(items, "classes", None)
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else None


def _label(item: Any) -> Any:
    try:
        return _image_and_label(item)[1]
    except UserError:
        return None


def _in_words(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


def _image_and_label(item: Any) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        if "image" not in item:
            raise UserError(f"source: items with the keys {', '.join(map(str, item))} have no 'image'")
        item = (item["image"], item.get("label"))
    if not isinstance(item, (tuple, list)):
        return item, None
    label = item[1] if len(item) > 1 else None
    if isinstance(label, (Tensor, np.ndarray)):
        label = label.item() if label.ndim == 0 else None
    return item[0], label if isinstance(label, (int, np.integer, str)) else None


def _pixels(image: Any, size: int | None, name: str) -> Tensor:
    """One image as uint8 (C, H, W)."""
    if isinstance(image, Image.Image):
        return torch.from_numpy(to_pixels(image, size))
    array = as_array(image) if isinstance(image, Tensor) else np.asarray(image)
    batch = channels_first(array[None], name)
    scale, _ = pixel_scale(batch, name)
    if batch.dtype.kind == "f" and scale == 1:
        raise UserError(f"source: {name} has floats above 1; give uint8, or floats in 0..1 before normalisation")
    pixels = torch.from_numpy(np.rint(batch[0] * np.float32(scale)).astype(np.uint8))
    return square(pixels[None], size)[0] if size else pixels
