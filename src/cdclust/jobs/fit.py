"""`cdclust fit`: train on a source and leave a run folder that says what came out and how."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cdclust import origin
from cdclust import run as runs
from cdclust.engine.checkpoint import Checkpoints
from cdclust.engine.compute import Compute
from cdclust.engine.interrupt import stop_on_signals
from cdclust.engine.train import Listener, Progress, Trainer
from cdclust.errors import UserError
from cdclust.jobs import frozen, results, setup
from cdclust.jobs.listeners import Recorder
from cdclust.jobs.setup import Bench
from cdclust.recipe import Recipe
from cdclust.run import Run

SUMMARISED = ("acc", "nmi", "ari", "confidence", "seconds")


def fit(
    source: Any,
    recipe: Recipe,
    out: Path,
    compute: Compute,
    *,
    resume: bool = False,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
    strict: bool = False,
    listener: Listener,
    command: list[str] | None = None,
    report: bool = True,
) -> Run:
    """Train, assign every image, and write the run folder; a run that was cut short goes on with `resume`."""
    build = setup.build if recipe.network.pretrained is None else frozen.build
    bench = build(source, recipe, compute, listener, labels, root, strict)
    run = runs.create(out, bench.recipe, resume)
    where = origin.describe(source, bench.material.training.split, labels, root)
    attempts = recipe.training.attempts
    if run.finished:
        first = (run, bench) if attempts == 1 else _attempt(run, bench, 0)
        _checkpoints(*first).load(torch.device("cpu"))  # refuses images that are not the run's
        origin.record(run, where)  # which may lie elsewhere now
        return run
    trained = _train(run, bench, command or []) if attempts == 1 else _best_of(attempts, run, bench, command or [])
    origin.record(run, where)
    results.write(run, trained.bench, trained.progress, trained.cautions, trained.losses, report)
    return run


@dataclass(frozen=True)
class Trained:
    """A network at the end of its training, and the loss that each attempt came to."""

    bench: Bench
    progress: Progress
    cautions: list[str]
    losses: list[float]


def _best_of(attempts: int, run: Run, bench: Bench, command: list[str]) -> Trained:
    """Train networks from different weights in attempt-0, attempt-1, ...; the lowest loss of a last epoch is kept."""

    def trained(number: int) -> Trained:
        bench.listener.on_attempt(number, attempts)
        return _train(*_attempt(run, bench, number), command)

    losses, effort = [], Progress()
    for number in range(attempts):
        one = trained(number)
        losses += one.losses
        effort = Progress(effort.step + one.progress.step, effort.seconds + one.progress.seconds)
    best = int(np.argmin(losses))
    for name in ("log.jsonl", "environment.json"):
        run.write_text(name, run.file(f"attempt-{best}/{name}").read_text(encoding="utf-8"))
    kept = trained(best)
    return Trained(replace(kept.bench, recipe=bench.recipe), effort, kept.cautions, losses)


def _attempt(run: Run, bench: Bench, number: int) -> tuple[Run, Bench]:
    one = setup.attempt(bench, number)
    return runs.create(run.file(f"attempt-{number}"), one.recipe, resume=True), one


def _checkpoints(run: Run, bench: Bench) -> Checkpoints:
    return Checkpoints(run.checkpoint, bench.identity, bench.recipe.training.checkpoint_seconds)


def _train(run: Run, bench: Bench, command: list[str]) -> Trained:
    """Train to the end, from the last checkpoint where there is one."""
    recipe, compute = bench.recipe, bench.compute
    run.write_json("environment.json", runs.environment(command, recipe, str(compute.device)))
    recorder = Recorder(run, bench.listener)
    trainer = Trainer(
        bench.method, bench.training, recipe, compute, recorder, _checkpoints(run, bench), results.scorer(bench)
    )
    try:
        with stop_on_signals() as stop:
            progress = trainer.train(stop)
    finally:
        recorder.close()
    return Trained(bench, progress, recorder.cautions, [run.log()[-1]["loss"]])


def fit_seeds(
    n_seeds: int, recipe: Recipe, out: Path, resume: bool, fit_one: Callable[[Recipe, Path], Run]
) -> dict[str, Any]:
    """Repeat a run with seeds counted from the recipe's; write seed-0 to seed-<n-1> and their summary."""
    names = {f"seed-{number}" for number in range(n_seeds)}
    if out.exists() and (there := {path.name for path in out.iterdir()}):
        if not resume:
            raise UserError(f"--out {out} exists already; add --resume to go on with it, or choose another folder")
        if others := there - names - {"summary.json"}:
            raise UserError(f"--out {out} holds {min(others)}, which is none of {n_seeds} seeds; choose another folder")
    found: dict[str, list[float]] = {}
    for number in range(n_seeds):
        one = fit_one(recipe.changed({"seed": recipe.seed + number}), out / f"seed-{number}")
        metrics = one.metrics()
        for name in SUMMARISED:
            if name in metrics:
                found.setdefault(name, []).append(metrics[name])
    summary = {name: summarised(values) for name, values in found.items()}
    Run(out).write_json("summary.json", summary)
    return summary


def summarised(values: list[float]) -> dict[str, Any]:
    """Mean, standard deviation (of a sample) and the values themselves."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "std": spread, "values": values}


def free_folder(stem: str) -> Path:
    """`stem`, or `stem-2`, `stem-3`, ... if it is taken: where a run goes that nobody named a folder for."""
    number = 1
    while (path := Path(stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    return path
