"""Any data set of torchvision by name: `torchvision:FashionMNIST`, from files that are there; nothing is fetched."""

from __future__ import annotations

import difflib
import inspect
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import ConcatDataset

from cdclust.data.arrays import choose_splits
from cdclust.data.named import data_root
from cdclust.data.torchset import labels_beside
from cdclust.errors import UserError

PREFIX = "torchvision:"
GIVEN = {"self", "root", "split", "train", "download"}
TOOLS = ("ImageFolder", "VisionDataset")  # they read any folder, or nothing


def vision_splits(text: str) -> list[str]:
    """The splits of the data set, as torchvision calls them."""
    return list(_splits(_kind(text)))


def open_vision(text: str, *, split: str | None, root: str | os.PathLike[str] | None) -> tuple[Any, Any, str]:
    """The data set's items, their labels where they can be had without reading images, and the split."""
    kind, folder = _kind(text), data_root(root)
    splits = _splits(kind)
    chosen = choose_splits(split, splits, text)
    parts = [_opened(kind, folder, splits.get(each, {})) for each in chosen]
    if len(parts) == 1:
        return parts[0], None, chosen[0]
    labels = [labels_beside(part) for part in parts]
    known = None if any(each is None for each in labels) else [label for each in labels for label in each]
    whole: Any = ConcatDataset(parts)
    whole.classes = getattr(parts[0], "classes", None)
    return whole, known, "+".join(chosen)


def _kind(text: str) -> Any:
    """The class of that name, if its images can be had with nothing but files and a split."""
    from torchvision import datasets

    name = text.removeprefix(PREFIX)
    kinds = {each: getattr(datasets, each) for each in datasets.__all__ if inspect.isclass(getattr(datasets, each))}
    there = {each: kind for each, kind in kinds.items() if _needs_no_more(kind) and each not in TOOLS}
    if name not in there:
        lower = {each.lower(): each for each in there}
        near = difflib.get_close_matches(name.lower(), lower, 1)
        meant = f"did you mean {PREFIX}{lower[near[0]]}?" if near else f"there are {', '.join(sorted(there))}"
        raise UserError(f"source: {text!r} is no data set of images that torchvision can open by name; {meant}")
    return there[name]


def _needs_no_more(kind: Any) -> bool:
    needed = [
        each.name
        for each in inspect.signature(kind.__init__).parameters.values()
        if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    return "root" in needed and set(needed) <= GIVEN


def _splits(kind: Any) -> dict[str, dict[str, Any]]:
    """What to say to torchvision for each split; it lists them when it is asked for one that it does not have."""
    known = inspect.signature(kind.__init__).parameters
    if "train" in known:
        return {"train": {"train": True}, "test": {"train": False}}
    if "split" not in known:
        return {}
    try:
        kind(os.devnull, split="?")
    except ValueError as refusal:
        return {each: {"split": each} for each in re.findall(r"'([\w+-]+)'", str(refusal).partition("values are")[2])}
    except Exception:  # it looks for its files first, and has the usual three
        pass
    return {each: {"split": each} for each in ("train", "valid", "test")}


def _opened(kind: Any, folder: Path, options: dict[str, Any]) -> Any:
    make = partial(kind, str(folder), **options)
    try:
        quiet = "download" in inspect.signature(kind.__init__).parameters
        return make(download=False) if quiet else make()
    except Exception as error:  # whatever is missing or damaged
        name, words = kind.__name__, ", ".join(f"{key}={value!r}" for key, value in options.items())
        reason = " ".join(str(error).split())[:120]
        raise UserError(
            f"source: {PREFIX}{name} is not under {folder} ({reason}); fetch it with: python -c "
            f'"from torchvision.datasets import {name}; {name}({str(folder)!r}, {words or "..."}, download=True)", or '
            "name another place with --root or CDCLUST_DATA"
        ) from error
