"""`cdclust demo` and `cdclust fit`."""

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclust.cli.options import AsJson, Backbone, Device, Labels, Precision, Root, Source, Strict
from cdclust.cli.shell import app
from cdclust.errors import UsageError, UserError

if TYPE_CHECKING:
    from cdclust.evaluation.unknown_k import Proposal
    from cdclust.recipe import Recipe
    from cdclust.run import Run


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="folder to write; else demo, demo-2, ...")] = None,
    seed: Annotated[int, typer.Option(min=0, help="everything random follows from it")] = 0,
    seeds: Annotated[int | None, typer.Option(min=1, help="repeat with this many seeds")] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Sort 1,797 embedded handwritten digits from scratch, next to k-means on the same images: about a minute."""
    from cdclust import console
    from cdclust.jobs.demo import baselines, load_digits_recipe
    from cdclust.jobs.fit import free_folder

    recipe = load_digits_recipe(seed)
    path = out or free_folder("demo")
    found = _fit("digits", recipe, path, "digits", _Options(device, seeds=seeds))
    rows = baselines(seed)
    if seeds:
        rows["CDC, mean over seeds"] = {key: found[key]["mean"] for key in ("acc", "nmi", "ari", "seconds")}
    else:
        rows["CDC, from scratch"] = found
    if as_json:
        print(json.dumps({"run": str(path), "methods": rows}))
        return
    if seeds:
        console.show_summary(found)
    console.show_comparison(rows)
    shown = path / "seed-0" if seeds else path
    console.out.print(f"The clusters to look at: {shown / 'report.html'}")


@app.command()
def fit(
    source: Source,
    k: Annotated[str | None, typer.Option("-k", help="number of clusters, or auto: let the images propose it")] = None,
    recipe: Annotated[str | None, typer.Option(help="a shipped recipe's name, or a file; see: cdclust recipes")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="field=value; any field of the recipe")] = None,
    out: Annotated[Path | None, typer.Option(help="run folder; else made from the source's name")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="everything random follows from it")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="repeat with this many seeds; mean and deviation")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in --out")] = False,
    labels: Labels = None,
    backbone: Backbone = None,
    strict: Strict = False,
    root: Root = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
) -> None:
    """Train on the images of SOURCE and sort them into K clusters."""
    from cdclust import console
    from cdclust.jobs.fit import free_folder
    from cdclust.names import cluster_names
    from cdclust.run import Run

    if resume and out is None:
        raise UsageError("--resume needs --out: the folder of the run to go on with")
    automatic = k == "auto"
    number = None if automatic else _number_of_clusters(k)
    settings = _settings(source, recipe, out if resume else None, number, set_ or [], seed, backbone, automatic)
    options = _Options(device, precision, seeds, resume, labels, root, strict)
    if automatic:
        settings, proposal = _proposed(source, settings, out, options)
        console.show_proposal(proposal, to_err=as_json)
        options = replace(options, proposal=proposal)
    path = out or free_folder(f"runs/{_stem(source)}-k{settings.n_clusters}")
    found = _fit(source, settings, path, _stem(source), options)
    if as_json:
        print(json.dumps(found | {"run": str(path)}))
    elif seeds:
        console.show_summary(found)
    else:
        console.show_metrics(found, cluster_names(Run(path)))
    if not as_json:
        console.out.print(f"Written to {path}")


def _settings(
    source: str,
    name: str | None,
    resumed: Path | None,
    k: int | None,
    assignments: list[str],
    seed: int | None,
    backbone: str | None,
    automatic: bool = False,
) -> "Recipe":
    from cdclust import recipe

    changes: dict[str, Any] = recipe.parse_set(assignments)
    if name is None and resumed is not None and (resumed / "recipe.yaml").exists():
        chosen = recipe.load(str(resumed / "recipe.yaml"))
    else:
        shipped = recipe.shipped()
        if name is None and source not in shipped and k is None and not automatic and "n_clusters" not in changes:
            raise UsageError("-k is missing: say how many clusters, such as -k 10, or -k auto")
        chosen = recipe.load(name or recipe.usual(source, backbone))
    if backbone is not None:
        changes["network.pretrained"] = None if backbone == "scratch" else backbone
    if k is not None:
        changes["n_clusters"] = k
    if seed is not None:
        changes["seed"] = seed
    return chosen.changed(changes)


def _number_of_clusters(k: str | None) -> int | None:
    if k is not None and not k.strip().lstrip("+-").isdecimal():
        raise UsageError(f"-k {k}: write a whole number, such as -k 10, or -k auto")
    return None if k is None else int(k)


def _proposed(source: str, recipe: "Recipe", out: Path | None, options: "_Options") -> "tuple[Recipe, Proposal]":
    """The recipe with the number of clusters that the images propose."""
    from cdclust import console
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs.unknown_k import choose

    if out is not None and not options.resume and out.is_dir() and any(out.iterdir()):
        raise UserError(f"--out {out} exists already; add --resume to go on with it, or choose another folder")
    asked = recipe.training.precision if options.precision == "auto" else options.precision
    watcher = console.Watcher(_stem(source))
    try:
        return choose(
            source,
            recipe,
            resolve_compute(options.device, asked),
            watcher,
            labels=options.labels,
            root=options.root,
            strict=options.strict,
        )
    finally:
        watcher.close()


@dataclass(frozen=True)
class _Options:
    """What `fit` passes on."""

    device: str = "auto"
    precision: str = "auto"
    seeds: int | None = None
    resume: bool = False
    labels: str | None = None
    root: Path | None = None
    strict: bool = False
    proposal: "Proposal | None" = None  # of the number of clusters


def _fit(source: str, recipe: "Recipe", out: Path, title: str, options: _Options) -> dict[str, Any]:
    from cdclust import console
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs import fit as job
    from cdclust.jobs.unknown_k import record

    if options.resume and not out.exists():
        raise UserError(f"--resume: there is no run at {out}; leave --resume out to start one")
    compute = resolve_compute(
        options.device, recipe.training.precision if options.precision == "auto" else options.precision
    )

    def one(settings: "Recipe", path: Path) -> "Run":
        watcher = console.Watcher(f"{title} (seed {settings.seed})" if options.seeds else title, path)
        go_on = options.resume and path.exists()
        try:
            run = job.fit(
                source,
                settings,
                path,
                compute,
                resume=go_on,
                labels=options.labels,
                root=options.root,
                strict=options.strict,
                listener=watcher,
                command=sys.argv,
            )
            if options.proposal is not None:
                record(run, options.proposal)
            return run
        finally:
            watcher.close()

    if options.seeds:
        return job.fit_seeds(options.seeds, recipe, out, options.resume, one)
    return one(recipe, out).metrics()


def _stem(source: str) -> str:
    """A name for the run: a data set's, or that of the folder or file."""
    return re.sub(r'[:{}\[\]*?"<>|]+', "-", Path(source).stem).strip("-") or "images"
