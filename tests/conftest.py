import os
import sys

# The suite is run in parallel; one thread a process is faster, and reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cdclust.cli import main
from cdclust.recipe import Recipe

SMALL: dict[str, Any] = {
    "n_clusters": 4,
    "data.mean": [0.5, 0.5, 0.5],
    "data.std": [0.25, 0.25, 0.25],
    "data.size": 12,
    "data.channels": 3,
    "network.width": 4,
    "network.blocks": [1, 1],
    "head.hidden": 16,
    "head.z_n": 8,
    "method.queue": 40,  # no multiple of the batch: it wraps in the middle of one
    "method.split_batch_norm": 2,
    "method.predictor_hidden": 16,
    "training.batch_size": 16,
    "training.epochs": 2,
    "training.precision": "fp32",
}
FROM_IMAGES = ("data.mean", "data.std", "data.size", "data.channels")


@pytest.fixture(autouse=True)
def _one_thread_and_a_known_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def small() -> Callable[..., Recipe]:
    """A recipe that trains in a blink, with fields changed: small({"alpha": 1})."""
    return lambda changes=None: Recipe().changed(SMALL | (changes or {}))


@pytest.fixture(scope="session")
def settings() -> Callable[..., list[str]]:
    """The same for the shell: --set field=value ..., without what is measured on the images."""

    def words(changes: dict[str, Any] | None = None) -> list[str]:
        fields = {name: value for name, value in SMALL.items() if name not in FROM_IMAGES} | (changes or {})
        k = ["-k", str(fields.pop("n_clusters"))]
        return [*k, *(word for name, value in fields.items() for word in ("--set", f"{name}={value}"))]

    return words


@pytest.fixture(scope="session")
def pictures() -> np.ndarray:
    """48 colour images of noise, uint8 (48, 12, 12, 3)."""
    return np.random.default_rng(0).integers(0, 256, (48, 12, 12, 3), dtype=np.uint8)


@pytest.fixture(scope="session")
def classes() -> np.ndarray:
    """Their labels (48,)."""
    return np.arange(48) % 4


@pytest.fixture
def source(tmp_path: Path, pictures: np.ndarray, classes: np.ndarray) -> Path:
    """The images and their labels as a file."""
    np.savez(tmp_path / "noise.npz", x=pictures, y=classes)
    return tmp_path / "noise.npz"


@dataclass
class Said:
    """What a command ended with."""

    status: int
    out: str
    err: str


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """shell("fit", path, ...): a command in this process, as the installed script would run it."""
    monkeypatch.setenv("COLUMNS", "200")

    def command(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["cdclust", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        return Said(int(end.value.code or 0), said.out, said.err)

    return command
