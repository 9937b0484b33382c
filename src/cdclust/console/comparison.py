"""The table of `cdclust compare`."""

from typing import Any

from rich.table import Column, Table

from cdclust.console.screen import err, out
from cdclust.console.watcher import Watcher
from cdclust.evaluation import comparison


class Watchers:
    """One after the other, each for one piece of work: two bars cannot be drawn at once."""

    def __init__(self) -> None:
        self._now: Watcher | None = None

    def __call__(self, title: str) -> Watcher:
        """The next one."""
        self.close()
        self._now = Watcher(title)
        return self._now

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._now is not None:
            self._now.close()


def show_methods(found: dict[str, Any], sentences: list[str]) -> None:
    """A row a method, then what has to be known to read it."""
    out.print(f"{found['n_images']:,} images of {found['source']}, {found['n_clusters']} clusters")
    heading, rows = comparison.table(found["methods"])
    columns = [Column(title, justify="left" if title == "method" else "right", no_wrap=True) for title in heading]
    shown = Table(*columns, box=None, header_style="dim")
    for row in rows:
        shown.add_row(*row)
    out.print(shown, width=max(out.width, 100), crop=False)  # rather wrapped than cut
    for remark in comparison.remarks(found["methods"]):
        out.print(f"note: {remark}", style="yellow")
    for sentence in sentences:
        out.print(sentence, style="dim")


def show_result(result: dict[str, Any]) -> None:
    """One method and seed, as soon as it is done."""
    if result["status"] != "ok":
        err.print(f"{result['method']}, seed {result['seed']}: failed: {result['reason']}", style="yellow")
        return
    score = f"ACC {result['acc']:.3f}" if "acc" in result else f"silhouette {result.get('silhouette', 0):.3f}"
    err.print(f"{result['method']}, seed {result['seed']}: {score}, {result['seconds']:.1f} s")
