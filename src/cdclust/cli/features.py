"""`cdclust embed` and `cdclust compare`: what is done with a frozen backbone's features beside `fit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cdclust.cli.options import AsJson, Backbone, Device, Labels, Precision, Root, Source, Strict
from cdclust.cli.shell import app
from cdclust.errors import UsageError, UserError

Split = Annotated[str | None, typer.Option(help="train, test, ... where the source has splits; else all")]


@app.command()
def embed(
    source: Source,
    out: Annotated[Path, typer.Option(help="file to write: .npy (with names in a .csv beside), .npz or .parquet")],
    backbone: Backbone = None,
    size: Annotated[int | None, typer.Option(min=16, help="side of what the backbone sees; else the recipe's")] = None,
    views: Annotated[int, typer.Option(min=0, help="random views of each image beside the image itself")] = 0,
    split: Split = None,
    labels: Labels = None,
    strict: Strict = False,
    root: Root = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
) -> None:
    """Write what a frozen backbone makes of every image of SOURCE."""
    import json

    from cdclust import console, recipe
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs.embed import embed as do

    settings = recipe.load("photos").changed(_backbone(backbone) | ({} if size is None else {"features.size": size}))
    watcher = console.Watcher("embed")
    compute = resolve_compute(device, precision)
    try:
        found = do(
            source, settings, out, compute, watcher, views=views, split=split, labels=labels, root=root, strict=strict
        )
    finally:
        watcher.close()
    if as_json:
        print(json.dumps({key: str(value) if isinstance(value, Path) else value for key, value in vars(found).items()}))
        return
    names = f", names and statuses in {found.table}" if found.table else ""
    bad = f", {found.n_unreadable:,} of them unreadable and NaN" if found.n_unreadable else ""
    console.out.print(f"{found.n:,} images{bad}, {found.dim:,} features each: {found.out}{names}")


def _backbone(name: str | None) -> dict[str, Any]:
    if name == "scratch":
        raise UsageError("--backbone scratch: features come from a trained backbone; leave it out, or name a run")
    return {} if name is None else {"network.pretrained": name}


@app.command()
def compare(
    source: Source,
    k: Annotated[int, typer.Option("-k", help="number of clusters")],
    methods: Annotated[
        str, typer.Option(help="cdc, kmeans, spherical-kmeans, agglomerative, spectral, hdbscan, scan; or all")
    ] = "kmeans,spherical-kmeans,scan,cdc",
    backbone: Annotated[
        str | None, typer.Option(help="efficientnet-lite0, pixels, timm:NAME, torchvision:NAME, a file or a run")
    ] = None,
    recipe: Annotated[str, typer.Option(help="of cdc, and of the views that are embedded")] = "photos",
    set_: Annotated[list[str] | None, typer.Option("--set", help="field=value; any field of the recipe")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="the first seed")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="how many; mean and deviation")] = 1,
    split: Annotated[str | None, typer.Option(help="train, test, all, ... where the source has splits")] = None,
    labels: Labels = None,
    out: Annotated[Path | None, typer.Option(help="folder; called again with it, compare goes on")] = None,
    root: Root = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
) -> None:
    """Cluster the same features of SOURCE by several methods, and put them in one table."""
    import json
    import sys

    from cdclust import console
    from cdclust import recipe as recipes
    from cdclust.console.comparison import Watchers, show_methods, show_result
    from cdclust.engine.compute import resolve_compute
    from cdclust.engine.interrupt import Interrupted
    from cdclust.jobs import compare as job
    from cdclust.jobs.contender import METHODS
    from cdclust.jobs.fit import free_folder

    changes = recipes.parse_set(set_ or []) | _backbone(backbone) | {"n_clusters": k}
    changes |= ({} if split is None else {"data.train_split": split}) | ({} if seed is None else {"seed": seed})
    names = METHODS if methods == "all" else tuple(name.strip() for name in methods.split(",") if name.strip())
    path = out or free_folder(f"runs/{Path(source).stem or 'images'}-compare-k{k}")
    watchers = Watchers()
    try:
        found = job.compare(
            source,
            recipes.load(recipe).changed(changes),
            names,
            seeds,
            path,
            resolve_compute(device, precision),
            watchers,
            labels=labels,
            root=root,
            command=sys.argv,
            tell=show_result,
        )
    except (KeyboardInterrupt, Interrupted):
        print(f"cdclust: stopped; the same command with --out {path} goes on", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        watchers.close()
    if as_json:
        print(json.dumps(found | {"out": str(path)}))
    else:
        show_methods(found, job.read_as(found))
        console.out.print(f"Written to {path}")
    failed = [f"{name} seed {each['seed']}" for name in names for each in found["methods"][name]["failed"]]
    if failed:
        raise UserError(f"{len(failed)} of them failed ({', '.join(failed)}); the same command tries those again")
