"""Where words go: results to standard output, progress and warnings to standard error."""

import os

from rich.console import Console

PIPED = 160  # columns

# File names and messages are data: nothing in them is markup.
out = Console(highlight=False, markup=False, soft_wrap=True)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = PIPED  # nobody's window cuts a table that goes into a file
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
quiet = False  # no results, no progress; warnings stay


def hush() -> None:
    """Say only what has gone wrong, or may have."""
    global quiet
    quiet = out.quiet = True
