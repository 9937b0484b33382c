"""`cdclust apply`: the result taken away."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cdclust.cli.options import AsJson, Root
from cdclust.cli.shell import app


@app.command()
def apply(
    run: Annotated[Path, typer.Argument(help="a finished run folder")],
    format_: Annotated[
        str | None,
        typer.Option("--format", help="folders, labels, imagefolder, huggingface, fiftyone or coco; else by --out"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="folder to make, or table (.csv, .parquet, .jsonl); else named like the run"),
    ] = None,
    files: Annotated[str, typer.Option(help="copy, hardlink or symlink")] = "copy",
    min_confidence: Annotated[
        float, typer.Option(help="an image less sure than this, 0 to 1, is set apart or left out")
    ] = 0.0,
    source: Annotated[str | None, typer.Option(help="where the images are now, if they have moved")] = None,
    root: Root = None,
    strict: Annotated[bool, typer.Option("--strict", help="an image that is no longer there ends the command")] = False,
    as_json: AsJson = False,
) -> None:
    """Take the clusters away: as labels, as folders of images, or as a data set for other tools."""
    from cdclust import console
    from cdclust.jobs.apply import How
    from cdclust.jobs.apply import apply as do
    from cdclust.names import cluster_names
    from cdclust.run import open_run

    opened, watcher = open_run(run), console.Watcher("apply")
    try:
        found = do(opened, out, How(format_, files, min_confidence, source, root, strict), watcher)
    finally:
        watcher.close()
    print(json.dumps(found)) if as_json else console.show_taken(found, cluster_names(opened))
