"""`cdclust report`, and the page that `cdclust fit` leaves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cdclust.data import Catalogue, ImageStream, open_stream
from cdclust.data.decode import Unreadable
from cdclust.data.stream import n_cores, threads_for
from cdclust.engine.train import Listener
from cdclust.errors import UserError
from cdclust.jobs.frozen import SHOWN, to_be_seen
from cdclust.jobs.setup import Bench, training_split
from cdclust.report import build, figures, kept, layout, page, sample, similarity, thumbnails
from cdclust.report.kept import Kept
from cdclust.report.table import read_features, read_names, read_table
from cdclust.run import Run, open_run

T = TypeVar("T")
PAGE = "report.html"


def after_fit(run: Run, bench: Bench, metrics: dict[str, Any]) -> list[str]:
    """Write report.html and what it can be drawn from again; a page never fails a run: why not is returned."""
    training = bench.material.training
    stream = getattr(training, "stream", None)
    try:
        threads = n_cores() if stream is None else threads_for(stream, None)
        keep(run, metrics, training, bench.picture, threads, bench.listener)
        run.write_text(PAGE, drawn(run, metrics))
    except Exception as error:  # whatever it is, the clusters are worth more than their picture
        return [f"report.html could not be made ({_in_words(error)}); cdclust report {run.path} tries again"]
    return []


def report(
    run: Run,
    listener: Listener,
    *,
    out: Path | None = None,
    source: Any = None,
    labels: Any = None,
    root: Path | None = None,
) -> Path:
    """Draw the page of a finished run anew; with `source` its images are read again."""
    path = out or run.file(PAGE)
    if path.is_dir():
        raise UserError(f"--out {path} is a folder; name a file, such as {path / PAGE}")
    if not path.parent.is_dir():
        raise UserError(f"--out {path}: there is no folder {path.parent}; make it first")
    metrics = run.metrics()
    if source is not None:
        _keep_from(run, metrics, source, labels, root, listener)
    elif not run.file(kept.NAME).exists():
        said = f"The images are not at hand: cdclust report {run.path} --source IMAGES adds them."
        keep(run, metrics, _Nameless(run), None, 1, listener, said)
    text = drawn(run, metrics)
    Run(path.parent).write_text(path.name, text)
    return path


def drawn(run: Run, metrics: dict[str, Any]) -> str:
    """The page as HTML, from what lies in the run folder."""
    return page.draw(build.build(build.gather(run, metrics)))


def keep(
    run: Run,
    metrics: dict[str, Any],
    images: Catalogue,
    picture: Callable[[int], Any] | None,
    threads: int,
    listener: Listener,
    *said: str,
) -> None:
    """Write report.npz; `picture` brings a readable image by its place among them."""
    k = _n_clusters(run, metrics)
    table = read_table(run, k)
    features = read_features(run, len(table.clusters))
    of = similarity.centres(features, table.clusters, k)
    typical = similarity.typicality(features, table.clusters, of)
    rows = sample.choose(table.clusters, table.probabilities, typical)
    troubles = list(said)
    pictures: list[bytes] = []
    if picture is not None:
        large = sample.choose_galleries(table.clusters[rows], table.probabilities[rows], typical[rows])
        place = np.searchsorted(table.rows, rows).tolist()
        tell = _telling(listener, "drawing the report's images")
        shown = thumbnails.thumbnails(
            lambda i: picture(place[i]), len(rows), np.isin(np.arange(len(rows)), large), threads, tell
        )
        pictures = _tried("The images", lambda: list(shown), troubles) or []
    tell = _telling(listener, "drawing the report's map")
    tell(0, 1)
    places = _tried("The map", lambda: layout.lay_out(similarity.directions(features[rows], of.mean)), troubles)
    tell(1, 1)
    kept.write(run, Kept(rows, pictures, places, images.labels, images.class_names, images.name, troubles))


def _n_clusters(run: Run, metrics: dict[str, Any]) -> int:
    k = metrics.get("n_clusters")
    if not isinstance(k, int) or k < 1:
        raise UserError(f"{run.file('metrics.json')} is damaged: it does not say how many clusters there are")
    return k


def _telling(listener: Listener, what: str) -> Callable[[int, int], None]:
    return lambda done, total: listener.on_work(what, done, total)


def _tried(what: str, work: Callable[[], T], troubles: list[str]) -> T | None:
    """The result, or none and a sentence that says why."""
    try:
        return work()
    except Exception as error:
        troubles.append(f"{what} could not be drawn: {_in_words(error)}.")
        return None


def _in_words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _keep_from(
    run: Run, metrics: dict[str, Any], source: Any, labels: Any, root: Path | None, listener: Listener
) -> None:
    """Read the images of the run's source again; those that have gone since are black."""
    stream = open_stream(source, split=training_split(source, run.recipe(), root), labels=labels, root=root)
    table = read_table(run, _n_clusters(run, metrics))
    names = read_names(run, np.arange(len(table.clusters)))
    if list(stream.keys) != names:
        raise UserError(
            f"--source {source}: its {len(stream):,} images are not the {len(names):,} of {run.path}; "
            "give the source that the run was made from"
        )
    rows = table.rows

    def picture(i: int) -> Any:
        try:
            return to_be_seen(stream, int(rows[i]))
        except Unreadable:
            return np.zeros((3, SHOWN, SHOWN), dtype=np.uint8)

    keep(run, metrics, _Listed(stream), picture, threads_for(stream, None), listener)


class _Listed(Catalogue):
    """A stream as a catalogue."""

    def __init__(self, stream: ImageStream) -> None:
        self.name, self.labels, self.class_names = stream.name, stream.labels, stream.class_names


class _Nameless(Catalogue):
    """A source of which only the run is left."""

    def __init__(self, run: Run) -> None:
        self.name, self.labels, self.class_names = run.path.resolve().name, None, None


def open_all(paths: list[Path]) -> list[Run]:
    """The runs of these folders; a folder of several seeds stands for its seeds."""
    found = []
    for path in paths:
        seeds = sorted(path.glob("seed-*"), key=lambda each: (len(each.name), each.name))
        found += seeds if (path / "summary.json").exists() and seeds else [path]
    return [open_run(path) for path in found]


def check_figures(folder: Path, ending: str) -> None:
    """Refuse figures that could not be written, before long work."""
    figures.check(folder, ending)


def write_figures(opened: list[Run], folder: Path, ending: str) -> list[Path]:
    """Every figure of the runs, for papers."""
    runs = [(run.path.resolve().name, build.gather(run, run.metrics())) for run in opened]
    return figures.write(runs, folder, ending)
