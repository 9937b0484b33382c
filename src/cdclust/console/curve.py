"""The curve of `-k auto`, as small bars."""

from rich.table import Column, Table

from cdclust.console.screen import err, out
from cdclust.evaluation.unknown_k import Proposal, thinned

WIDTH = 24


def show_proposal(proposal: Proposal, to_err: bool = False) -> None:
    """A bar for each number of clusters that was tried, the chosen one marked, and what is said of it."""
    screen = err if to_err else out
    columns = [Column(name, justify="right" if name else "left") for name in ("K", "", "separation", "strength")]
    table = Table(*columns, box=None, header_style="dim")
    largest = max(proposal.score) or 1.0
    for place in thinned(proposal):
        k, chosen = proposal.candidates[place], proposal.candidates[place] == proposal.k
        table.add_row(
            str(k),
            "█" * round(WIDTH * proposal.score[place] / largest) + (" <" if chosen else ""),
            f"{proposal.separation[place]:.3f}",
            f"{proposal.strength[place]:.2f}",
            style="bold" if chosen else None,
        )
    screen.print(table)
    if proposal.sure:
        screen.print(f"-k auto: {proposal.k} clusters ({proposal.why})", style="bold")
    else:
        screen.print(f"-k auto: {proposal.k} clusters, but unsure: {proposal.why}", style="bold yellow")
