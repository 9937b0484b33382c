"""What the shell shows: progress while it works, tables at the end. A table of a new kind gets a file of its own."""

from cdclust.console.curve import show_proposal
from cdclust.console.notebook import NotebookWatcher, in_notebook
from cdclust.console.screen import err, out
from cdclust.console.tables import (
    show_comparison,
    show_examination,
    show_metrics,
    show_recipe,
    show_recipes,
    show_scores,
    show_sizes,
    show_summary,
    show_taken,
)
from cdclust.console.watcher import Watcher

__all__ = [
    "Watcher",
    "err",
    "out",
    "show_comparison",
    "show_examination",
    "show_metrics",
    "show_proposal",
    "show_recipe",
    "show_recipes",
    "show_scores",
    "show_sizes",
    "show_summary",
    "show_taken",
    "watcher",
]


def watcher(title: str) -> Watcher | NotebookWatcher:
    """Whoever shows progress where this runs."""
    return NotebookWatcher(title) if in_notebook() else Watcher(title)
