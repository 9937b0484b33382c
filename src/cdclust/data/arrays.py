"""Arrays of images, in memory or mapped from a file, as one uint8 tensor (N, C, H, W) or image by image."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cdclust.data.decode import Unreadable
from cdclust.data.imageset import OK, UNKNOWN, ImageSet, IndexKeys, check_memory, encode_labels
from cdclust.data.resize import square
from cdclust.data.stream import ImageStream, digest
from cdclust.errors import UserError

CHUNK = 2048  # images converted at a time, so that a conversion costs little memory beside its result
FINGERPRINT_IMAGES = 256  # of an array too large to be read for it
SHAPES = "(N, H, W), (N, H, W, 1 or 3) or (N, 1 or 3, H, W)"

Array = NDArray[Any]
Part = tuple[str, Array, Any]  # split, images, labels or None


@dataclass
class ArrayParts:
    """Arrays of images, in memory or mapped from files; several may belong to one split."""

    name: str
    parts: Sequence[Part]
    class_names: list[str] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def split(self) -> str:
        """The splits, joined by +."""
        return "+".join(dict.fromkeys(s for s, _, _ in self.parts))

    def encoded_labels(self) -> tuple[NDArray[np.int64] | None, list[str] | None, list[str]]:
        """Labels, class names and notes; where a split has no labels its images get -1."""
        if all(y is None for _, _, y in self.parts):
            return None, self.class_names, []
        labels, names, notes = encode_labels(_joined_labels(self.parts, self.name), self.name)
        return labels, self.class_names or names, notes


def load_parts(source: ArrayParts, *, size: int | None, max_bytes: int | None = None) -> ImageSet:
    """The parts as one set."""
    images, notes = to_tensor([x for _, x, _ in source.parts], source.name, size=size, max_bytes=max_bytes)
    n = len(images)
    if n == 0:
        raise _no_images(source.name)
    labels, names, more = source.encoded_labels()
    notes = [*source.notes, *notes, *more]
    return ImageSet(source.name, images, IndexKeys(n), [OK] * n, np.arange(n), labels, names, source.split, notes)


def _no_images(name: str) -> UserError:
    return UserError(f"source: {name} holds no images; give at least one")


class ArrayStream(ImageStream):
    """Arrays one image at a time, grey ones in RGB."""

    def __init__(self, source: ArrayParts) -> None:
        self._arrays = common_shape([x for _, x, _ in source.parts], source.name)
        self._starts = np.cumsum([0, *(len(a) for a in self._arrays)]).tolist()
        n = self._starts[-1]
        if n == 0:
            raise _no_images(source.name)
        pairs = zip(self._arrays, self._samples(), strict=True)
        samples = [sample if _file_of(array) else array for array, sample in pairs]
        self._scales, notes = pixel_scales(samples, source.name)
        labels, names, more = source.encoded_labels()
        super().__init__(
            source.name,
            IndexKeys(n),
            labels=labels,
            class_names=names,
            split=source.split,
            notes=[*source.notes, *notes, *more],
        )

    def read(self, row: int, size: int | None) -> NDArray[np.uint8]:
        """One image of its array, as `load_parts` would give it."""
        part = bisect_right(self._starts, row) - 1
        image = self._arrays[part][row - self._starts[part]]
        if image.dtype.kind in "if":
            _refuse_out_of_range(image, 255 / self._scales[part])
        pixels = _eight_bits(image[None], self._scales[part])
        whole: NDArray[np.uint8] = (square(pixels, size) if size else pixels)[0].expand(3, -1, -1).numpy()
        return whole

    def _samples(self) -> list[Array]:
        """Some images of each array: one that is mapped from a file is never read whole."""
        return [array[:: max(1, len(array) // FINGERPRINT_IMAGES)] for array in self._arrays]

    def fingerprint(self) -> str:
        """Every byte of what is in memory; of what is mapped, the file's size and time and a sample of its images."""
        return digest(self._content())

    def _content(self) -> Iterator[object]:
        yield self.split
        for array, sample in zip(self._arrays, self._samples(), strict=True):
            yield from (array.shape, array.dtype.str)
            mapped = _file_of(array)
            if mapped is not None:
                info = mapped.stat()
                yield from (info.st_size, info.st_mtime_ns)
            yield from (image.tobytes() for image in (array if mapped is None else sample))


def _refuse_out_of_range(image: Array, most: float) -> None:
    """What a sample of a mapped array did not show."""
    low, high = float(image.min()), float(image.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise Unreadable("NaN or infinite pixels")
    if low < 0 or high > most:
        raise Unreadable(f"pixels in {low:g}..{high:g}, where others lie in 0..{most:g}")


def _file_of(array: Array) -> Path | None:
    """The file an array is mapped from, also where it is a view of such an array."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap) and base.filename is not None and Path(base.filename).is_file():
            return Path(base.filename)
        base = base.base
    return None


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
    arrays = common_shape(arrays, name)
    n, (c, h, w) = sum(len(a) for a in arrays), arrays[0].shape[1:]
    shape = (c, size, size) if size else (c, h, w)
    check_memory(n, shape, name, max_bytes)
    out = torch.empty((n, *shape), dtype=torch.uint8)
    scales, notes = pixel_scales(arrays, name)
    start = 0
    for array, scale in zip(arrays, scales, strict=True):
        for i in range(0, len(array), CHUNK):
            pixels = _eight_bits(array[i : i + CHUNK], scale)
            out[start : start + len(pixels)] = square(pixels, size) if size else pixels
            start += len(pixels)
    return out, notes


def common_shape(arrays: Sequence[Array], name: str) -> list[Array]:
    """Views of the arrays as (N, C, H, W), all of one image shape."""
    arrays = [channels_first(a, name) for a in arrays]
    shapes = {a.shape[1:] for a in arrays}
    if len(shapes) > 1:
        raise UserError(f"source: the splits of {name} differ in shape, {sorted(shapes)}; use them one by one")
    _, h, w = shapes.pop()
    if any(len(a) for a in arrays) and not (h and w):
        raise UserError(f"source: the images of {name} have the size {h} x {w}; they need at least one pixel")
    return arrays


def pixel_scales(arrays: Sequence[Array], name: str) -> tuple[list[float], list[str]]:
    """What to multiply each array with to get 0 to 255, and what is said about it, once."""
    found = [pixel_scale(array, name) for array in arrays]
    return [scale for scale, _ in found], list(dict.fromkeys(note for _, note in found if note))


def _eight_bits(images: Array, scale: float) -> Tensor:
    pixels = images if scale == 1 and images.dtype == np.uint8 else np.rint(images * np.float32(scale))
    return torch.from_numpy(np.array(pixels, dtype=np.uint8, order="C"))


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
