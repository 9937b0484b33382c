"""Arrays of images, in memory and in .npy and .npz files, as one uint8 tensor (N, C, H, W)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from cdclust.data.imageset import OK, UNKNOWN, ImageSet, IndexKeys, check_memory, encode_labels
from cdclust.errors import UserError

CHUNK = 2048  # images converted at a time, so that a conversion costs little memory beside its result
SHAPES = "(N, H, W), (N, H, W, 1 or 3) or (N, 1 or 3, H, W)"
IMAGE_KEYS = ("x", "images", "X", "data", "arr_0")  # in an .npz without splits
LABEL_KEYS = ("y", "labels")

Array = NDArray[Any]
Part = tuple[str, Array, Any]  # split, images, labels or None


def image_set_from_parts(
    name: str,
    parts: Sequence[Part],
    *,
    size: int | None,
    max_bytes: int | None = None,
    class_names: list[str] | None = None,
) -> ImageSet:
    """The splits of one source as one set; where a split has no labels its images get -1."""
    images, notes = to_tensor([x for _, x, _ in parts], name, size=size, max_bytes=max_bytes)
    n = len(images)
    if n == 0:
        raise UserError(f"source: {name} holds no images; give at least one")
    labels = None
    if any(y is not None for _, _, y in parts):
        labels, names, more = encode_labels(_joined_labels(parts, name), name)
        class_names, notes = class_names or names, notes + more
    split = "+".join(s for s, _, _ in parts)
    return ImageSet(name, images, IndexKeys(n), [OK] * n, np.arange(n), labels, class_names, split, notes)


def _joined_labels(parts: Sequence[Part], name: str) -> Array:
    joined = []
    for split, x, y in parts:
        y = np.full(len(x), UNKNOWN) if y is None else np.asarray(y)
        if y.size != len(x):
            raise UserError(f"labels: {name} ({split}) has {y.size:,} labels for {len(x):,} images; give one an image")
        joined.append(y.reshape(-1))
    return np.concatenate(joined)


def to_tensor(
    arrays: Sequence[Array], name: str, *, size: int | None = None, max_bytes: int | None = None
) -> tuple[Tensor, list[str]]:
    """The arrays, one after the other, as uint8 (N, C, H, W); also says what was converted.

    With `size` the short side is resized to it, with antialiasing, and the centre is kept.
    """
    arrays = [channels_first(a, name) for a in arrays]
    shapes = {a.shape[1:] for a in arrays}
    if len(shapes) > 1:
        raise UserError(f"source: the splits of {name} differ in shape, {sorted(shapes)}; use them one by one")
    n, (c, h, w) = sum(len(a) for a in arrays), shapes.pop()
    if n and not (h and w):
        raise UserError(f"source: the images of {name} have the size {h} x {w}; they need at least one pixel")
    shape = (c, size, size) if size else (c, h, w)
    check_memory(n, shape, name, max_bytes)
    out = torch.empty((n, *shape), dtype=torch.uint8)
    notes, start = [], 0
    for array in arrays:
        scale, note = pixel_scale(array, name)
        notes += [note] if note and note not in notes else []
        for i in range(0, len(array), CHUNK):
            chunk = array[i : i + CHUNK]
            pixels = chunk if scale == 1 and chunk.dtype == np.uint8 else np.rint(chunk * np.float32(scale))
            tensor = torch.from_numpy(np.array(pixels, dtype=np.uint8, order="C"))
            out[start : start + len(chunk)] = square(tensor, size) if size else tensor
            start += len(chunk)
    return out, notes


def as_array(tensor: Tensor) -> Array:
    """A tensor of any device and type as numpy."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def channels_first(array: Array, name: str) -> Array:
    """A view of an array of images as (N, C, H, W)."""
    shape = array.shape
    if array.ndim == 3 and shape[2] not in (1, 3):
        return array[:, None]
    if array.ndim == 4:
        if shape[1] in (1, 3) and min(shape[2:]) > 3:
            return array
        if shape[3] in (1, 3):
            return array.transpose(0, 3, 1, 2)
    hint = "a single image needs a first axis of 1" if array.ndim == 3 else "reshape it"
    if array.ndim == 4 and shape[3] in (2, 4):
        hint = "drop the alpha channel"
    raise UserError(f"source: {name} has the shape {shape}; images are {SHAPES}; {hint}")


def pixel_scale(array: Array, name: str) -> tuple[float, str]:
    """What to multiply pixels with to get 0 to 255, and a sentence about it where it is not 1."""
    kind = array.dtype.kind
    if array.dtype == np.uint8 or not array.size:
        return 1.0, ""
    if kind == "b":
        return 255.0, f"the pixels of {name} are booleans: read as black and white"
    if array.dtype == np.uint16:
        return 1 / 257, f"the pixels of {name} are 16-bit: scaled to 0..255"
    if kind not in "iuf":
        raise UserError(
            f"source: {name} has the type {array.dtype}; pixels are uint8 in 0..255, or floats in 0..1 or 0..255"
        )
    low, high = _range(array, name)
    if low < 0 or high > 255:
        raise UserError(
            f"source: the pixels of {name} lie in {low:g}..{high:g}; give uint8 in 0..255 or floats in 0..1, "
            "before any normalisation"
        )
    if kind == "f" and high <= 1:
        return 255.0, f"the pixels of {name} are floats in {low:g}..{high:g}: scaled by 255"
    return 1.0, f"the pixels of {name} are {array.dtype} in {low:g}..{high:g}: read as 0..255"


def _range(array: Array, name: str) -> tuple[float, float]:
    lows, highs = [], []
    for i in range(0, len(array), CHUNK):
        low, high = float(array[i : i + CHUNK].min()), float(array[i : i + CHUNK].max())
        if not (np.isfinite(low) and np.isfinite(high)):
            bad = ~np.isfinite(array[i : i + CHUNK]).reshape(len(array[i : i + CHUNK]), -1).all(1)
            raise UserError(
                f"source: image {i + int(bad.argmax())} of {name} has NaN or infinite pixels; "
                "replace them, for instance with numpy.nan_to_num, or leave the image out"
            )
        lows.append(low)
        highs.append(high)
    return min(lows), max(highs)


def square(images: Tensor, size: int) -> Tensor:
    """The centre square of uint8 (N, C, H, W), resized with antialiasing to (N, C, size, size)."""
    h, w = images.shape[-2:]
    side = min(h, w)
    top, left = (h - side) // 2, (w - side) // 2
    images = images[..., top : top + side, left : left + side]
    return images if side == size else interpolate(images, (size, size), mode="bilinear", antialias=True)


def load_array_file(
    path: Path, *, split: str | None, labels: str | None, size: int | None, max_bytes: int | None
) -> ImageSet:
    """A .npy file (never more than a chunk of it in memory beside the result) or an .npz file."""
    name = path.name
    try:
        if path.suffix.lower() == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            parts: list[Part] = [("all", array, None)]
            choose_splits(split, [], name)
            if labels is not None:
                raise UserError(f"labels: {labels!r}, but {name} holds images alone; use .npz with x and y")
            class_names = None
        else:
            with np.load(path, allow_pickle=False) as file:
                parts, class_names = npz_parts(file, name, split=split, labels=labels)
    except (ValueError, OSError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, NotImplementedError) as e:
        reason = (
            "it holds pickled objects"
            if "allow_pickle" in str(e) or "Python objects" in str(e)
            else str(e) or type(e).__name__
        )
        raise UserError(f"source: {path} cannot be read: {reason}; save it again with numpy.save or savez") from e
    return image_set_from_parts(name, parts, size=size, max_bytes=max_bytes, class_names=class_names)


def npz_parts(
    file: Any, name: str, *, split: str | None, labels: str | None = None, label_stem: str = "y"
) -> tuple[list[Part], list[str] | None]:
    """The arrays of an .npz: x_train, y_train, x_test, y_test; or x and y; or images and labels; or one array.

    `label_stem` picks among several labels (y, y_coarse), `labels` names the array of labels outright.
    """
    keys = list(file.files)
    class_names = [str(c) for c in file["class_names"]] if "class_names" in keys else None
    splits = [k.removeprefix("x_") for k in keys if k.startswith("x_")]
    if splits:
        chosen = choose_splits(split, splits, name)
        stem = labels or label_stem
        if labels is not None and not any(f"{labels}_{s}" in keys for s in chosen):
            raise UserError(f"labels: {name} has no {labels}_{chosen[0]}; its arrays are {', '.join(keys)}")
        return [
            (s, file[f"x_{s}"], file[f"{stem}_{s}"] if f"{stem}_{s}" in keys else None) for s in chosen
        ], class_names
    choose_splits(split, [], name)
    found = [k for k in IMAGE_KEYS if k in keys] or (keys if len(keys) == 1 else [])
    if not found:
        raise UserError(
            f"source: {name} has the arrays {', '.join(keys) or '(none)'}; call the images x_train and x_test, "
            "or x, or images"
        )
    if labels is not None and labels not in keys:
        raise UserError(f"labels: {name} has no array {labels!r}; its arrays are {', '.join(keys)}")
    label_keys = [labels] if labels else [k for k in LABEL_KEYS if k in keys]
    return [("all", file[found[0]], file[label_keys[0]] if label_keys else None)], class_names


def choose_splits(split: str | None, available: Iterable[str], name: str) -> list[str]:
    """The splits that `split` asks for: a name, names joined by "+", or "all"; None is train where there is one."""
    available = list(available)
    if not available:
        if split in (None, "all"):
            return ["all"]
        raise UserError(f"split: {split!r}, but {name} has no splits; leave it out or say all")
    if split is None:
        return ["train"] if "train" in available else available
    chosen = available if split == "all" else split.split("+")
    for s in chosen:
        if s not in available:
            raise UserError(f"split: {name} has no {s!r}; it has {', '.join(available)} (joined by +, or all)")
    return list(dict.fromkeys(chosen))
