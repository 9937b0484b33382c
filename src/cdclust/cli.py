"""The shell's front door: one function a command. They parse, call and print; heavy imports wait until needed."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cdclust.errors import UsageError, UserError

if TYPE_CHECKING:
    from cdclust.recipe import Recipe
    from cdclust.run import Run

app = typer.Typer(
    help="Sort images nobody has labelled into groups that mean something.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_debug = False

Source = Annotated[
    str, typer.Argument(help="a folder, a .csv/.parquet/.txt manifest, a .npy/.npz, or a data set's name")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda[:i] or mps")]
Precision = Annotated[str, typer.Option(help="auto, fp32, bf16 or fp16")]
Root = Annotated[Path | None, typer.Option(help="where named data sets lie; else $CDCLUST_DATA or the cache")]
Labels = Annotated[str | None, typer.Option(help="'folders', or the label column; only ever used to score")]
Strict = Annotated[bool, typer.Option("--strict", help="an image that cannot be read ends the run")]
Backbone = Annotated[
    str | None, typer.Option(help="frozen: efficientnet-lite0, timm:NAME, torchvision:NAME, a file, a run; or scratch")
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for scripts")]


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="show tracebacks")] = False) -> None:
    global _debug
    _debug = debug


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="folder to write; else demo, demo-2, ...")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    seeds: Annotated[int | None, typer.Option(min=1, help="repeat with this many seeds")] = None,
    device: Device = "auto",
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
        console.show_summary(found)
    else:
        rows["CDC, from scratch"] = found
    console.show_comparison(rows)
    shown = path / "seed-0" if seeds else path
    console.out.print(f"The clusters as a picture: {shown / 'clusters.png'}")


@app.command()
def fit(
    source: Source,
    k: Annotated[int | None, typer.Option("-k", help="number of clusters")] = None,
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

    if resume and out is None:
        raise UsageError("--resume needs --out: the folder of the run to go on with")
    settings = _settings(source, recipe, out if resume else None, k, set_ or [], seed, backbone)
    path = out or free_folder(f"runs/{_stem(source)}-k{settings.n_clusters}")
    options = _Options(device, precision, seeds, resume, labels, root, strict)
    found = _fit(source, settings, path, _stem(source), options)
    if as_json:
        print(json.dumps(found | {"run": str(path)}))
    elif seeds:
        console.show_summary(found)
    else:
        console.show_metrics(found)
    if not as_json:
        console.out.print(f"Written to {path}")


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


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="show this recipe, with the origin of each value")] = None,
) -> None:
    """List the shipped recipes, or show one."""
    from cdclust import console, recipe

    if name is None:
        console.show_recipes({each: recipe.load(each).about for each in recipe.shipped()})
    else:
        console.show_recipe(recipe.load(name))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine offers, what would be used, and what is missing."""
    from cdclust import console
    from cdclust.jobs.doctor import examine

    found = examine()
    print(json.dumps(found)) if as_json else console.show_examination(found)


def _settings(
    source: str,
    name: str | None,
    resumed: Path | None,
    k: int | None,
    assignments: list[str],
    seed: int | None,
    backbone: str | None,
) -> "Recipe":
    from cdclust import recipe

    changes: dict[str, Any] = recipe.parse_set(assignments)
    if name is None and resumed is not None and (resumed / "recipe.yaml").exists():
        chosen = recipe.load(str(resumed / "recipe.yaml"))
    else:
        shipped = recipe.shipped()
        if name is None and source not in shipped and k is None and "n_clusters" not in changes:
            raise UsageError("-k is missing: say how many clusters, such as -k 10")
        chosen = recipe.load(name or recipe.usual(source, backbone))
    if backbone is not None:
        changes["network.pretrained"] = None if backbone == "scratch" else backbone
    if k is not None:
        changes["n_clusters"] = k
    if seed is not None:
        changes["seed"] = seed
    return chosen.changed(changes)


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


def _fit(source: str, recipe: "Recipe", out: Path, title: str, options: _Options) -> dict[str, Any]:
    from cdclust import console
    from cdclust.engine.compute import resolve_compute
    from cdclust.jobs import fit as job

    if options.resume and not out.exists():
        raise UserError(f"--resume: there is no run at {out}; leave --resume out to start one")
    compute = resolve_compute(
        options.device, recipe.training.precision if options.precision == "auto" else options.precision
    )

    def one(settings: "Recipe", path: Path) -> "Run":
        watcher = console.Watcher(f"{title} (seed {settings.seed})" if options.seeds else title, path)
        go_on = options.resume and path.exists()
        try:
            return job.fit(
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
        finally:
            watcher.close()

    if options.seeds:
        return job.fit_seeds(options.seeds, recipe, out, options.resume, one)
    return one(recipe, out).metrics()


def _stem(source: str) -> str:
    return Path(source).stem or "images"


def main() -> None:
    """Run a command; a failure is one line, and its kind is the exit status."""
    try:
        app()
    except UserError as error:
        if _debug:
            raise
        print(f"cdclust: {error}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, UsageError) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        if type(error).__name__ == "Interrupted":  # not imported: that would bring torch to every command
            print("cdclust: stopped, with a checkpoint; --out FOLDER --resume goes on", file=sys.stderr)
            raise SystemExit(130) from None
        if _debug:
            raise
        print(f"cdclust: {type(error).__name__}: {error} (cdclust --debug ... shows where)", file=sys.stderr)
        raise SystemExit(1) from None
