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
    as_json: AsJson = False,
) -> None:
    """Sort other images into the clusters of a run."""
    from cdclust import console
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs.predict import predict as do
    from cdclust.names import cluster_names
    from cdclust.run import open_run

    compute = resolve_compute(device, precision)
    opened, watcher = open_run(run), console.Watcher("predict")
    try:
        count = do(opened, source, out, compute, watcher, split=split, root=root, strict=strict)
    finally:
        watcher.close()
    if as_json:
        sizes = {str(cluster): size for cluster, size in sorted(count.sizes.items())}
        print(json.dumps({"out": str(out), "n_images": count.images, "n_unreadable": count.unreadable, "sizes": sizes}))
    else:
        console.show_sizes(count.sizes, cluster_names(opened))
        unreadable = f", {count.unreadable:,} unreadable" if count.unreadable else ""
        console.out.print(f"{count.images:,} images{unreadable}: {out}")


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
    from cdclust.names import cluster_names
    from cdclust.run import open_run

    if source is None and (run / "summary.json").exists():
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        print(json.dumps(summary)) if as_json else console.show_summary(summary)
        return
    opened = open_run(run)
    if source is None:
        metrics = opened.metrics()
        print(json.dumps(metrics)) if as_json else console.show_metrics(metrics, cluster_names(opened))
        return
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs.predict import evaluate as do

    compute = resolve_compute(device, precision)
    watcher = console.Watcher("evaluate")
    try:
        found = do(opened, source, compute, watcher, split=split, labels=labels, root=root)
    finally:
        watcher.close()
    print(json.dumps(found)) if as_json else console.show_scores(found, cluster_names(opened))
