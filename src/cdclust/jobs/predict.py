"""`cdclust predict` and `cdclust evaluate`: a trained run on other images."""

import json
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from cdclust import run as runs
from cdclust.data import ImageSet, available_splits
from cdclust.engine.assign import Assigned, assign_all
from cdclust.engine.compute import Compute
from cdclust.engine.feed import ImageFeed
from cdclust.engine.train import Listener, prepare
from cdclust.errors import UsageError, UserError
from cdclust.evaluation import metrics
from cdclust.jobs import results, setup
from cdclust.methods import Method
from cdclust.recipe import Recipe
from cdclust.run import Run

FORMATS = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True)
class Model:
    """A trained run, ready to assign images."""

    recipe: Recipe
    method: Method
    compute: Compute

    def assign(self, images: ImageSet, listener: Listener | None = None) -> Assigned:
        """Assign images that `load` brought to this model's size."""
        views, layout = setup.build_views(self.recipe), self.recipe.training.channels_last
        feed = ImageFeed(images.images, views, self.compute, layout, keep=False)
        return assign_all(self.method, feed, results.assigning(listener, len(images)) if listener else None)

    def load(self, source: Any, **options: Any) -> ImageSet:
        """The images of a source at this model's size."""
        return setup.load_images(source, self.recipe, **options)


def load_model(run: Run, compute: Compute) -> Model:
    """The network of a run with its weights; every tensor has to be there."""
    recipe = run.recipe()
    method = setup.build_network(recipe)
    try:
        state = load_file(run.weights)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{run.weights} cannot be read: {error}") from error
    missing, unexpected = method.load_state_dict(state, strict=False)
    missing = [name for name in missing if not name.startswith(results.FOLLOWERS)]
    if missing or unexpected:
        raise UserError(
            f"{run.weights} does not fit its recipe: {len(missing)} tensors missing, {len(unexpected)} extra"
        )
    prepare(method, compute, recipe.training.channels_last)
    method.eval()
    return Model(recipe, method, compute)


def predict(
    run: Run,
    source: Any,
    out: Path,
    compute: Compute,
    listener: Listener,
    *,
    split: str | None = None,
    root: str | PathLike[str] | None = None,
) -> ImageSet:
    """Assign every image of a source and write the table, in the format of its ending."""
    if out.suffix not in FORMATS:
        raise UsageError(f"--out {out}: the ending must be one of {', '.join(FORMATS)}")
    if out.suffix == ".parquet":
        _need_pyarrow()
    if out.exists():
        raise UserError(f"--out {out} exists already; choose another name")
    if not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}; make it first")
    model = load_model(run, compute)
    images = model.load(source, split=split or "all", root=root, progress=setup.reading(listener))
    assigned = model.assign(images, listener)
    rows = list(results.rows(images, assigned))
    Run(out.parent).write(out.name, lambda file: _write_table(file, rows, out.suffix))
    return images


def evaluate(
    run: Run,
    source: Any,
    compute: Compute,
    listener: Listener,
    *,
    split: str | None = None,
    labels: Any = None,
    root: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Scores of a run on a labelled source, with a table a cluster and a class; on the test split if there is one."""
    model = load_model(run, compute)
    test = model.recipe.data.test_split
    if split is None:
        split = test if test in available_splits(source, root) else "all"
    images = model.load(source, split=split, labels=labels, root=root, progress=setup.reading(listener))
    if images.image_labels is None:
        raise UserError(
            f"{images.name} has no labels to score against; for a folder of class folders add --labels folders"
        )
    clusters = model.assign(images, listener).clusters
    table = metrics.contingency(clusters, images.image_labels, ignore_unknown=True)
    return {
        **metrics.scores(clusters, images.image_labels, ignore_unknown=True),
        "n_images": images.n_total,
        "n_unreadable": images.n_unreadable,
        "split": images.split,
        "class_names": images.class_names,
        "clusters": [vars(row) for row in metrics.per_cluster(table)],
        "classes": [vars(row) for row in metrics.per_class(table)],
    }


def _need_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401 - asked for before long work begins
    except ImportError:
        raise UserError("parquet needs pyarrow: pip install 'cdclust[parquet]'; or write .csv or .jsonl") from None


def _write_table(file: IO[bytes], rows: list[tuple[str, ...]], ending: str) -> None:
    if ending == ".csv":
        file.write(runs.as_csv(rows).encode("utf-8", "surrogateescape"))
        return
    records = [_typed(row) for row in rows]
    if ending == ".jsonl":
        file.write("".join(json.dumps(record) + "\n" for record in records).encode())
        return
    import pyarrow
    import pyarrow.parquet

    buffer = BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), buffer)
    file.write(buffer.getvalue())


def _typed(row: tuple[str, ...]) -> dict[str, Any]:
    kinds = (str, int, float, int, float, str)
    return {name: kind(text) if text else None for name, kind, text in zip(runs.COLUMNS, kinds, row, strict=True)}
