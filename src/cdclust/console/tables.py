"""Results at the end of a command."""

from collections.abc import Mapping
from typing import Any

from rich.table import Column, Table

from cdclust.console.screen import out
from cdclust.names import called
from cdclust.recipe import FIELDS, Recipe, described

MOST_CLUSTERS = 40  # with a bar of their own
NAMELESS: Mapping[int, str] = {}
MOST_OF_A_NAME = max(map(len, FIELDS))  # a field's name is to be typed, and so is never cut


def show_metrics(metrics: dict[str, Any], names: Mapping[int, str] = NAMELESS) -> None:
    """The scores, where there are labels, and a bar a cluster."""
    protocol = metrics["protocol"]
    out.print(f"{metrics['n_images']:,} images of {protocol['trained_on']}, {metrics['n_clusters']} clusters")
    if "acc" in metrics:
        scores = "  ".join(f"{name.upper()} {metrics[name]:.3f}" for name in ("acc", "nmi", "ari"))
        where = f"on {protocol['split']} ({protocol['n_scored']:,} images), last epoch"
        out.print(f"{scores}  {where}", style="bold")
    show_sizes(dict(enumerate(metrics["cluster_sizes"])), names)
    if metrics["n_unreadable"]:
        out.print(
            f"{metrics['n_unreadable']:,} of {metrics['n_images']:,} images could not be read; see assignments.csv"
        )
    for note in (*metrics["notes"], *metrics["warnings"]):
        out.print(f"note: {note}", style="yellow")


def show_sizes(sizes: Mapping[int, int], names: Mapping[int, str] = NAMELESS) -> None:
    """A bar a cluster, the largest first, and how many clusters are not shown."""
    cluster, images = Column("cluster", no_wrap=True, max_width=40), Column("images", justify="right")
    table = Table(cluster, images, "", box=None, header_style="dim")
    order = sorted(sizes.items(), key=lambda pair: -pair[1])
    for number, size in order[:MOST_CLUSTERS]:
        table.add_row(called(number, names), f"{size:,}", "█" * round(30 * size / max(1, order[0][1])))
    out.print(table)
    if rest := order[MOST_CLUSTERS:]:
        out.print(f"and {len(rest):,} smaller clusters, of {rest[0][1]:,} images and fewer")


def show_taken(found: dict[str, Any], names: Mapping[int, str] = NAMELESS) -> None:
    """What was taken away, and what was not."""
    show_sizes({int(cluster): size for cluster, size in found["sizes"].items()}, names)
    said = [f"{found[f'n_{what}']:,} {what}" for what in ("sorted", "uncertain", "unreadable", "missing")]
    out.print(f"{', '.join(each for each in said if not each.startswith('0 '))}: {found['out']}")
    if found["n_new"]:
        out.print(f"note: {found['n_new']:,} images are new since the run; cdclust predict sorts them", style="yellow")


def show_comparison(rows: dict[str, dict[str, float]]) -> None:
    """Methods below each other, the best last."""
    table = Table("", "ACC", "NMI", "ARI", "seconds", box=None, header_style="dim")
    for name, row in rows.items():
        cells = [f"{row[key]:.3f}" for key in ("acc", "nmi", "ari")]
        table.add_row(name, *cells, f"{row['seconds']:.1f}")
    out.print(table)


def show_summary(summary: dict[str, Any]) -> None:
    """Mean and standard deviation over seeds."""
    table = Table("", "mean", "std", "each seed", box=None, header_style="dim")
    for name, entry in summary.items():
        values = " ".join(f"{value:.3f}" for value in entry["values"])
        table.add_row(name, f"{entry['mean']:.3f}", f"{entry['std']:.3f}", values)
    out.print(table)


def show_scores(found: dict[str, Any], names: Mapping[int, str] = NAMELESS) -> None:
    """Scores of an evaluation, and a row a class."""
    scores = "  ".join(f"{name.upper()} {found[name]:.3f}" for name in ("acc", "nmi", "ari"))
    purity = f"purity (many-to-one) {found['purity']:.3f}"
    out.print(f"{scores}  {purity}  on {found['split']} ({found['n_images']:,} images)", style="bold")
    table = Table("class", "images", "cluster", "recall", "precision", box=None, header_style="dim")
    classes = found["class_names"]
    for row in found["classes"]:
        label = classes[row["label"]] if classes else str(row["label"])
        cluster = "-" if row["matched"] is None else called(row["matched"], names)
        table.add_row(label, f"{row['size']:,}", cluster, f"{row['recall']:.3f}", f"{row['precision']:.3f}")
    out.print(table)


def show_recipes(about: dict[str, str]) -> None:
    """Names and what they are for."""
    table = Table("recipe", "", box=None, header_style="dim")
    for name, text in about.items():
        table.add_row(name, text)
    out.print(table)


def show_recipe(recipe: Recipe) -> None:
    """Every field with its value, where the value is from, and what the field means."""
    out.print(f"{recipe.name}: {recipe.about}", style="bold")
    table = Table(
        Column("field", no_wrap=True, min_width=MOST_OF_A_NAME),
        "value",
        "from",
        "meaning",
        box=None,
        header_style="dim",
    )
    for field, value, meaning in described(recipe):
        table.add_row(field, str(value), recipe.origin.get(field, "default"), meaning)
    out.print(table)


def show_examination(found: dict[str, Any]) -> None:
    """What the doctor found."""
    table = Table("", "", box=None, show_header=False)
    for name, value in found.items():
        table.add_row(name, str(value))
    out.print(table)
