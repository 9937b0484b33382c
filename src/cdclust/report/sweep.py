"""What runs that differ in a setting or two show together: accuracy over t, say, with a line for each tau."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

IGNORED = ("seed", "name", "about")  # what may differ without being what is swept
Settings = Mapping[str, Any]  # a run's fields by their dotted names


@dataclass(frozen=True)
class Sweep:
    """Accuracy over the values of a setting: a line for each value of a second one, or a single line."""

    setting: str
    second: str | None
    lines: dict[float | None, list[tuple[float, float, float]]]  # (value, mean over seeds, deviation), in order


def sweep(settings: Sequence[Settings], accuracies: Sequence[float | None]) -> Sweep | None:
    """The sweep that runs make, or none: labels are missing, or no setting, a word, or more than two settings differ.

    The setting with the most values runs along the axis.
    """
    values = {field: {_key(one.get(field)) for one in settings} for field in settings[0]} if settings else {}
    swept = [field for field, found in values.items() if len(found) > 1 and field not in IGNORED]
    if any(accuracy is None for accuracy in accuracies) or not 1 <= len(swept) <= 2:
        return None
    if not all(_is_number(one[field]) for one in settings for field in swept):
        return None
    swept.sort(key=lambda field: -len(values[field]))
    along, second = swept[0], swept[1] if len(swept) == 2 else None
    found: dict[float | None, dict[float, list[float]]] = {}
    for one, accuracy in zip(settings, accuracies, strict=True):
        assert accuracy is not None
        line = found.setdefault(None if second is None else float(one[second]), {})
        line.setdefault(float(one[along]), []).append(accuracy)
    lines = {
        which: [(value, float(np.mean(of)), float(np.std(of, ddof=len(of) > 1))) for value, of in sorted(line.items())]
        for which, line in sorted(found.items(), key=lambda pair: pair[0] or 0.0)
    }
    return Sweep(along, second, lines)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _key(value: Any) -> str:
    return repr(value)
