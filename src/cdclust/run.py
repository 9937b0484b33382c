"""The run folder: what is in it, reading it, writing it so that no file is ever half there."""

import csv
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cdclust import recipe as recipes
from cdclust.errors import UserError
from cdclust.recipe import Recipe

COLUMNS = ("image", "cluster", "probability", "second", "second_probability", "status")


@dataclass(frozen=True)
class Run:
    """A run folder by its path; nothing is read or written before it is asked for."""

    path: Path

    def file(self, name: str) -> Path:
        """A file of the run."""
        return self.path / name

    @property
    def checkpoint(self) -> Path:
        """The last state, all of it."""
        return self.file("checkpoint.pt")

    @property
    def weights(self) -> Path:
        """The trained weights alone."""
        return self.file("model.safetensors")

    @property
    def finished(self) -> bool:
        """Whether the run came to its end; metrics.json is written last."""
        return self.file("metrics.json").exists()

    def recipe(self) -> Recipe:
        """The settings of the run."""
        return recipes.load(str(self.file("recipe.yaml")))

    def metrics(self) -> dict[str, Any]:
        """What the run measured at its end."""
        if not self.finished:
            raise UserError(f"{self.path} is not finished; go on with cdclust fit ... --out {self.path} --resume")
        try:
            found: dict[str, Any] = json.loads(self.file("metrics.json").read_text(encoding="utf-8"))
        except ValueError:
            raise UserError(f"{self.file('metrics.json')} is damaged; remove it and go on with --resume") from None
        return found

    def log(self) -> list[dict[str, Any]]:
        """The log's lines so far; a last line that was cut short is left out."""
        if not self.file("log.jsonl").exists():
            return []
        lines = self.file("log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        try:
            return [json.loads(line) for line in lines if line.endswith("\n")]
        except ValueError:
            raise UserError(f"{self.file('log.jsonl')} is damaged; remove it and go on with --resume") from None

    def append_log(self, figures: dict[str, Any]) -> None:
        """Add a line to the log."""
        try:
            with self.file("log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(figures) + "\n")
        except OSError as error:
            raise UserError(f"cannot write {self.file('log.jsonl')}: {error.strerror or error}") from error

    def trim_log(self, step: int) -> None:
        """Drop what was logged after a checkpoint's step: a resumed run will log it again."""
        kept = [line for line in self.log() if line["step"] <= step]
        self.write_text("log.jsonl", "".join(json.dumps(line) + "\n" for line in kept))

    def write(self, name: str, writer: Callable[[IO[bytes]], object]) -> None:
        """Replace a file as one act: a reader sees the old one or the new one, whole."""
        path = self.file(name)
        beside = path.with_name(path.name + ".part")
        try:
            with beside.open("wb") as file:
                writer(file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror or error}") from error
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file."""
        self.write(name, lambda file: file.write(text.encode("utf-8", "surrogateescape")))

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """Replace a JSON file."""
        self.write_text(name, json.dumps(content, indent=2) + "\n")

    def write_array(self, name: str, array: NDArray[Any]) -> None:
        """Replace a .npy file."""
        self.write(name, lambda file: np.save(file, array, allow_pickle=False))


def create(path: Path, recipe: Recipe, resume: bool) -> Run:
    """The run folder at `path`: new, or the one to resume, which must be of the same recipe."""
    run = Run(path)
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path} is a file; name a folder")
    leftover = path / "recipe.yaml.part"
    if path.exists() and [*path.iterdir()] == [leftover]:
        leftover.unlink()  # killed at the very start
    if path.exists() and any(path.iterdir()):
        if not resume:
            raise UserError(f"--out {path} exists already; add --resume to go on with it, or choose another folder")
        if not run.file("recipe.yaml").exists():
            raise UserError(f"--out {path} is not a run: it has no recipe.yaml; choose another folder")
        if difference := _difference(run.recipe(), recipe):
            raise UserError(f"--resume: {difference}; give the same settings, or choose another --out")
        return run
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {path} cannot be made: {error.strerror}") from error
    run.write_text("recipe.yaml", recipe.to_yaml())
    return run


def open_run(path: Path) -> Run:
    """A finished run to read."""
    run = Run(path)
    if not run.file("recipe.yaml").exists():
        raise UserError(f"{path} is not a run folder: it has no recipe.yaml")
    if not run.weights.exists():
        raise UserError(f"{path} has no trained weights yet; finish it with cdclust fit ... --out {path} --resume")
    return run


def _difference(there: Recipe, here: Recipe) -> str | None:
    ignored = {"name", "about", "origin"}
    old, new = (r.model_dump(mode="json", exclude=ignored) for r in (there, here))
    for field in recipes.leaves(old):
        a, b = old, new
        for part in field.split("."):
            a, b = a[part], b[part]
        if a != b:
            return f"{field} was {a!r} in this run and is {b!r} now"
    return None


def write_csv(file: IO[bytes], rows: Iterable[Sequence[str]], columns: Sequence[str] = COLUMNS) -> None:
    """Rows under their header, one after the other; whatever a file name holds is quoted."""
    text = TextIOWrapper(file, "utf-8", "surrogateescape", newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(rows)
    text.flush()
    text.detach()  # the file stays its owner's


def read_column(run: Run, name: str) -> list[str]:
    """A column of a run's assignments.csv, an entry an image of the source."""
    path = run.file("assignments.csv")
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            return [row[name] for row in csv.DictReader(file)]
    except (OSError, KeyError) as error:
        raise UserError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def environment(command: Sequence[str], recipe: Recipe, device: str) -> dict[str, Any]:
    """What a run was computed with."""
    import torch

    packages = ("cdclust", "torch", "torchvision", "numpy", "scikit-learn")
    return {
        "command": list(command),
        "seed": recipe.seed,
        "device": device,
        "precision": recipe.training.precision,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "byteorder": sys.byteorder,
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
