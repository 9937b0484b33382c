"""Results at the end of a command."""

from typing import Any

from rich.table import Column, Table

from cdclust.console.screen import out
from cdclust.recipe import FIELDS, Recipe, described

MOST_OF_A_NAME = max(map(len, FIELDS))  # a field's name is to be typed, and so is never cut


def show_metrics(metrics: dict[str, Any]) -> None:
    """The scores, where there are labels, and a bar a cluster."""
    protocol = metrics["protocol"]
    out.print(f"{metrics['n_images']:,} images of {protocol['trained_on']}, {metrics['n_clusters']} clusters")
    if "acc" in metrics:
        scores = "  ".join(f"{name.upper()} {metrics[name]:.3f}" for name in ("acc", "nmi", "ari"))
        where = f"on {protocol['split']} ({protocol['n_scored']:,} images), last epoch"
        out.print(f"{scores}  {where}", style="bold")
    table = Table("cluster", "images", "", box=None, header_style="dim")
    sizes = metrics["cluster_sizes"]
    for cluster, size in sorted(enumerate(sizes), key=lambda pair: -pair[1])[:40]:
        table.add_row(str(cluster), f"{size:,}", "█" * round(30 * size / max(sizes)))
    out.print(table)
    if metrics["n_unreadable"]:
        out.print(
            f"{metrics['n_unreadable']:,} of {metrics['n_images']:,} images could not be read; see assignments.csv"
        )
    for note in (*metrics["notes"], *metrics["warnings"]):
        out.print(f"note: {note}", style="yellow")


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


def show_scores(found: dict[str, Any]) -> None:
    """Scores of an evaluation, and a row a class."""
    scores = "  ".join(f"{name.upper()} {found[name]:.3f}" for name in ("acc", "nmi", "ari"))
    purity = f"purity (many-to-one) {found['purity']:.3f}"
    out.print(f"{scores}  {purity}  on {found['split']} ({found['n_images']:,} images)", style="bold")
    table = Table("class", "images", "cluster", "recall", "precision", box=None, header_style="dim")
    names = found["class_names"]
    for row in found["classes"]:
        label = names[row["label"]] if names else str(row["label"])
        cluster = "-" if row["matched"] is None else str(row["matched"])
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
