"""`cdclust predict` and `cdclust evaluate`: what is done with a run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cdclust.cli.options import AsJson, Device, Labels, Precision, Root, Source, Strict
from cdclust.cli.shell import app


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    source: Source,
    out: Annotated[Path, typer.Option(help="table to write: .csv, .parquet or .jsonl")] = Path("predictions.csv"),
    split: Annotated[str | None, typer.Option(help="train, test, ... where the source has splits; else all")] = None,
    root: Root = None,
    strict: Strict = False,
    device: Device = "auto",
    precision: Precision = "auto",
) -> None:
    """Sort other images into the clusters of a run."""
    from cdclust import console
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs.predict import predict as do
    from cdclust.run import open_run

    watcher = console.Watcher("predict")
    compute = resolve_compute(device, precision)
    n, bad = do(open_run(run), source, out, compute, watcher, split=split, root=root, strict=strict)
    unreadable = f", {bad:,} unreadable" if bad else ""
    console.out.print(f"{n:,} images{unreadable}: {out}")


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(help="a run folder")],
    source: Annotated[str | None, typer.Argument(help="labelled images; without it, the run's own scores")] = None,
    split: Annotated[str | None, typer.Option(help="train, test, ... where the source has splits; else test")] = None,
    labels: Labels = None,
    root: Root = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a run against labels: ACC, NMI, ARI, purity, and a row a class."""
    from cdclust import console
    from cdclust.run import open_run

    if source is None and (run / "summary.json").exists():
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        print(json.dumps(summary)) if as_json else console.show_summary(summary)
        return
    opened = open_run(run)
    if source is None:
        metrics = opened.metrics()
        print(json.dumps(metrics)) if as_json else console.show_metrics(metrics)
        return
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs.predict import evaluate as do

    compute = resolve_compute(device, precision)
    found = do(opened, source, compute, console.Watcher("evaluate"), split=split, labels=labels, root=root)
    print(json.dumps(found)) if as_json else console.show_scores(found)
