"""A run's figures for papers, as SVG or PDF, by matplotlib: an optional extra."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdclust.errors import UsageError, UserError
from cdclust.evaluation import metrics
from cdclust.report import similarity
from cdclust.report.build import BINS, Material, curves
from cdclust.report.page import visible
from cdclust.report.sweep import Sweep, sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf")
WIDTH = 3.4  # inches, a column of a paper
COMPARED = 20_000  # pairs of images whose similarities make a histogram
STYLE: Any = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "cdclust",  # the same figure twice is the same file
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a dollar in a name is a dollar
}

Runs = list[tuple[str, Material]]


def check(folder: Path, ending: str) -> None:
    """Refuse, before long work, what could not be written."""
    if ending not in FORMATS:
        raise UsageError(f"--format {ending}: figures are {' or '.join(FORMATS)}")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--figures {folder} is a file; name a folder")
    try:
        import matplotlib  # noqa: F401 - asked for before long work begins
    except ImportError:
        raise UserError("--figures needs matplotlib: pip install 'cdclust[figures]'") from None


def write(runs: Runs, folder: Path, ending: str) -> list[Path]:
    """Write every figure there is something to draw for; the paths written."""
    import matplotlib
    from matplotlib.figure import Figure

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--figures {folder} cannot be made: {error.strerror}") from error
    found = []
    with matplotlib.rc_context(STYLE):
        for name, figure in _drawn(Figure, runs):
            path = folder / f"{name}.{ending}"
            try:
                figure.savefig(
                    path, bbox_inches="tight", metadata={"Date" if ending == "svg" else "CreationDate": None}
                )
            except OSError as error:
                raise UserError(f"cannot write {path}: {error.strerror or error}") from error
            found.append(path)
    return found


def _drawn(new: type[Figure], runs: Runs) -> list[tuple[str, Figure]]:
    names = _distinct([name for name, _ in runs])
    figures = [("curves", figure)] if (figure := training_curves(new, runs)) else []
    if found := sweep([m.settings for _, m in runs], [m.metrics.get("acc") for _, m in runs]):
        figures.append(("sweep", sweep_of(new, found)))
    if len(runs) > 1 and all(m.kept.places is not None for _, m in runs):
        figures.append(("map-pair", maps(new, runs)))
    for name, (_, m) in zip(names, runs, strict=True):
        suffix = f"-{name}" if len(runs) > 1 else ""
        figures += [(f"sizes{suffix}", sizes(new, m)), (f"confidence{suffix}", confidence(new, m))]
        figures.append((f"similarity{suffix}", similarities(new, m)))
        if m.kept.places is not None:
            figures.append((f"map{suffix}", one_map(new, m)))
        if m.kept.labels is not None and (drawn := confusion(new, m)):
            figures.append((f"confusion{suffix}", drawn))
    return figures


def _distinct(names: list[str]) -> list[str]:
    """File names from names of runs, none twice."""
    plain = [re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run" for name in names]
    return [name if plain.count(name) == 1 else f"{name}-{i}" for i, name in enumerate(plain)]


def training_curves(new: type[Figure], runs: Runs) -> Figure | None:
    """Each figure of the logs over epochs, a line a run."""
    lines = [(visible(name), curves(m.log)) for name, m in runs]
    titles = {curve.key: curve.title for _, of in lines for curve in of if curve.key != "lr"}
    if not titles:
        return None
    columns = min(3, len(titles))
    rows = -(-len(titles) // columns)
    figure = new(figsize=(WIDTH * 0.72 * columns, 1.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, (key, title) in zip(panels, titles.items(), strict=False):
        for name, of in lines:
            for curve in of:
                if curve.key == key:
                    panel.plot(
                        curve.epochs, curve.values, lw=1.2, label=name, marker="o" if len(curve.epochs) == 1 else ""
                    )
        panel.set(title=title, xlabel="epoch")
    for panel in panels[len(titles) :]:
        panel.set_axis_off()
    if len(runs) > 1:
        panels[0].legend()
    return figure


def sweep_of(new: type[Figure], found: Sweep) -> Figure:
    """Accuracy over a setting, mean and deviation of the seeds."""
    figure, panel = _panel(new)
    for value, points in found.lines.items():
        x, mean, deviation = zip(*points, strict=True)
        label = None if found.second is None else f"{found.second} = {value:g}"
        panel.errorbar(x, mean, yerr=deviation, marker="o", ms=3, lw=1.2, capsize=2, label=label)
    panel.set(xlabel=found.setting, ylabel="ACC, last epoch")
    if found.second is not None:
        panel.legend()
    return figure


def sizes(new: type[Figure], m: Material) -> Figure:
    """Cluster sizes, largest first, against the equal share."""
    figure, panel = _panel(new)
    found = np.sort(m.health.sizes)[::-1]
    panel.bar(np.arange(len(found)), found, width=0.85, color="#7b94b8")
    panel.axhline(m.health.n / len(found), color="black", lw=0.8, ls="--", label="equal share")
    panel.set(xlabel="clusters, largest first", ylabel="images")
    panel.legend()
    return figure


def confidence(new: type[Figure], m: Material) -> Figure:
    """Histogram of the probability of the chosen cluster."""
    figure, panel = _panel(new)
    panel.hist(m.table.probabilities[m.table.rows], bins=BINS, range=(0, 1), color="#7b94b8", edgecolor="white", lw=0.4)
    panel.set(xlabel="probability of the chosen cluster", ylabel="images", xlim=(0, 1))
    return figure


def similarities(new: type[Figure], m: Material) -> Figure:
    """Similarity of features of two images: in one cluster and in two, and with labels, of one class and of two."""
    first, second, alike = random_pairs(m)
    groups = [("cluster", m.table.clusters)]
    if m.kept.labels is not None:
        groups.append(("class", m.kept.labels))
    figure = new(figsize=(WIDTH * len(groups), 2.2), layout="constrained")
    for panel, (what, of) in zip(np.ravel(figure.subplots(1, len(groups), squeeze=False)), groups, strict=True):
        known = (of[first] >= 0) & (of[second] >= 0)
        same = of[first] == of[second]
        for chosen, said, colour in ((same, "same", "#1c5bb8"), (~same, "another", "#d79b00")):
            values = alike[known & chosen]
            if len(values):
                panel.hist(
                    values, bins=60, range=(-1, 1), density=True, alpha=0.6, color=colour, label=f"{said} {what}"
                )
        panel.set(xlabel="cosine of features, centred", ylabel="density")
        panel.legend()
    return figure


def random_pairs(m: Material, seed: int = 0) -> tuple[Any, Any, Any]:
    """Rows of random pairs, half of them within a cluster, and how similar the two images are."""
    rows = m.kept.rows
    chance = np.random.default_rng(seed)
    first = chance.integers(0, len(rows), COMPARED)
    second = chance.integers(0, len(rows), COMPARED)
    clusters = m.table.clusters[rows]
    order = np.argsort(clusters, kind="stable")
    starts = np.searchsorted(clusters[order], clusters[first[: COMPARED // 2]], side="left")
    counts = np.searchsorted(clusters[order], clusters[first[: COMPARED // 2]], side="right") - starts
    second[: COMPARED // 2] = order[starts + (chance.random(COMPARED // 2) * counts).astype(int)]
    different = first != second
    first, second = first[different], second[different]
    of = similarity.centres(m.features, m.table.clusters, m.n_clusters)
    unit = similarity.directions(m.features[rows], of.mean)
    alike = np.concatenate(
        [
            (unit[a] * unit[b]).sum(axis=1)
            for a, b in zip(np.array_split(first, 10), np.array_split(second, 10), strict=True)
        ]
    )
    return rows[first], rows[second], alike


def one_map(new: type[Figure], m: Material) -> Figure:
    """The map by cluster, and with labels by class beside it."""
    with_labels = m.kept.labels is not None
    figure = new(figsize=(WIDTH * (2 if with_labels else 1), WIDTH), layout="constrained")
    panels = np.ravel(figure.subplots(1, 2 if with_labels else 1, squeeze=False))
    _scatter(panels[0], m, m.table.clusters, "clusters")
    if m.kept.labels is not None:
        _scatter(panels[1], m, m.kept.labels, "classes")
    return figure


def maps(new: type[Figure], runs: Runs) -> Figure:
    """The maps of several runs side by side, by class where there are labels, as the paper shows two methods."""
    figure = new(figsize=(WIDTH * len(runs), WIDTH), layout="constrained")
    for panel, (name, m) in zip(np.ravel(figure.subplots(1, len(runs), squeeze=False)), runs, strict=True):
        _scatter(panel, m, m.table.clusters if m.kept.labels is None else m.kept.labels, visible(name))
    return figure


def _scatter(panel: Axes, m: Material, groups: Any, title: str) -> None:
    assert m.kept.places is not None
    x, y = m.kept.places.T
    of = groups[m.kept.rows]
    _, codes = np.unique(of, return_inverse=True)
    n = int(codes.max(initial=0)) + 1
    colours = "tab10" if n <= 10 else "tab20" if n <= 20 else "gist_ncar"
    panel.scatter(
        x, y, c=codes, cmap=colours, vmin=0, vmax=max(n - 1, 9 if n <= 10 else 1), s=2, lw=0, rasterized=len(x) > 3000
    )
    panel.set(title=title, xticks=[], yticks=[], aspect="equal")
    panel.spines[:].set_visible(False)


def confusion(new: type[Figure], m: Material) -> Figure | None:
    """Classes by clusters, matched on the diagonal; a row sums to 1."""
    assert m.kept.labels is not None
    known = (m.table.clusters >= 0) & (m.kept.labels >= 0)
    if not known.any():
        return None
    table = metrics.contingency(m.table.clusters[known], m.kept.labels[known])
    matrix, columns = metrics.confusion(table)
    shares = matrix / matrix.sum(axis=1, keepdims=True)
    figure = new(figsize=(WIDTH * 1.2, WIDTH * 1.2 * len(matrix) / matrix.shape[1]), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=panel, shrink=0.7, label="share of the class")
    given = m.kept.class_names or []
    classes = [given[c] if 0 <= c < len(given) else str(c) for c in table.classes.tolist()]
    if len(classes) <= 40:
        panel.set_yticks(
            range(len(classes)), [visible(name) for name in classes], fontsize=8 if len(classes) <= 15 else 5
        )
        panel.set_xticks(
            range(len(columns)), ["" if c is None else str(c) for c in columns], fontsize=8 if len(columns) <= 15 else 5
        )
    panel.set(xlabel="cluster", ylabel="class")
    panel.spines[:].set_visible(True)
    return figure


def _panel(new: type[Figure]) -> tuple[Figure, Axes]:
    figure = new(figsize=(WIDTH, 2.2), layout="constrained")
    return figure, figure.subplots()
