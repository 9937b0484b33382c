"""`cdclust report`: a run as a page, and as figures for papers."""

from pathlib import Path
from typing import Annotated

import typer

from cdclust.cli.options import Labels, Root
from cdclust.cli.shell import app
from cdclust.errors import UsageError


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="run folders, or one of several seeds")],
    out: Annotated[Path | None, typer.Option(help="page to write; else report.html in the run folder")] = None,
    figures: Annotated[Path | None, typer.Option(help="folder to write every figure to, for papers")] = None,
    form: Annotated[str, typer.Option("--format", help="of the figures: svg or pdf")] = "svg",
    source: Annotated[str | None, typer.Option(help="the run's images, to read them again")] = None,
    labels: Labels = None,
    root: Root = None,
) -> None:
    """Draw report.html: the clusters, how sure they are, a map, and what does not belong."""
    from cdclust import console
    from cdclust.jobs import report as job

    if labels is not None and source is None:
        raise UsageError("--labels goes with --source: the images are read again, with their labels")
    if figures is not None:
        job.check_figures(figures, form)
    opened = job.open_all(runs)
    if len(opened) > 1 and (out is not None or source is not None):
        raise UsageError(f"--out and --source are for one run, and there are {len(opened)}; leave them out")
    watcher = console.Watcher("report")
    try:
        for run in opened:
            path = job.report(run, watcher, out=out, source=source, labels=labels, root=root)
            console.out.print(f"Written to {path}")
        if figures is not None:
            for path in job.write_figures(opened, figures, form):
                console.out.print(f"Written to {path}")
    finally:
        watcher.close()
