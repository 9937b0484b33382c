"""`load_source` and `open_stream`: whatever a user can name or hand over, in memory at once or image by image."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from cdclust.data.arrays import ArrayParts, ArrayStream, load_parts
from cdclust.data.files import FileList, FileStream, decode_files
from cdclust.data.imageset import ImageSet, Progress, encode_labels
from cdclust.data.sources import Handed, find_source
from cdclust.data.stream import ImageStream, load_stream
from cdclust.data.torchset import ItemStream, load_items
from cdclust.errors import UserError


def load_source(
    spec: Any,
    *,
    split: str | None = None,
    labels: Any = None,
    root: str | os.PathLike[str] | None = None,
    size: int | None = None,
    max_bytes: int | None = None,
    progress: Progress | None = None,
    strict: bool = False,
) -> ImageSet:
    """Load all images of a source into memory.

    `spec`: a data set's name, `torchvision:NAME` or `hf:NAME`; a folder; a .txt, .csv or .parquet manifest; a .npy or
    .npz file; .tar files, `{000..123}.tar`; one image file; an array or tensor; a list of paths or of images; a torch
    Dataset.
    `split`: train, test, ..., joined by +, or all; None is train where there is one, else all.
    `labels`: "folders" for a folder; a column or array by name for manifests, .npz and `hf:`; cls, txt or json.FIELD
    for .tar files; the labels themselves for arrays and lists. `size`: bring every image to this square.
    `max_bytes`: None is half the machine's memory.
    `strict`: an image that cannot be read is an error, not a status.
    """
    if size is not None and size < 2:
        raise UserError(f"size: {size} is too small; give the side of the images in pixels, such as 32")
    source = find_source(spec, split, labels, root, max_bytes)
    if isinstance(source, ArrayParts):
        return load_parts(source, size=size, max_bytes=max_bytes)
    if isinstance(source, FileList):
        return decode_files(source, size, max_bytes=max_bytes, progress=progress, strict=strict)
    if isinstance(source, ImageStream):
        return load_stream(source, size, max_bytes=max_bytes, progress=progress, strict=strict)
    images = load_items(
        source.items, size=size, name=source.name, max_bytes=max_bytes, progress=progress, strict=strict
    )
    images = replace(images, split=source.split)
    return images if source.labels is None else _with_labels(images, source.labels)


def open_stream(
    spec: Any,
    *,
    split: str | None = None,
    labels: Any = None,
    root: str | os.PathLike[str] | None = None,
) -> ImageStream:
    """Any source of `load_source`, to be read image by image with `read_batches`; nothing is decoded yet."""
    source = find_source(spec, split, labels, root)
    if isinstance(source, ArrayParts):
        return ArrayStream(source)
    if isinstance(source, Handed):
        return ItemStream(source.items, labels=source.labels, name=source.name, split=source.split)
    return source if isinstance(source, ImageStream) else FileStream(source)


def _with_labels(images: ImageSet, labels: Any) -> ImageSet:
    codes, names, notes = encode_labels(labels, images.name)
    if len(codes) != images.n_total:
        raise UserError(f"labels: {len(codes):,} labels for {images.n_total:,} images; give one an image")
    return replace(images, labels=codes, class_names=names, notes=images.notes + notes)
