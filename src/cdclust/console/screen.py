"""Where words go: results to standard output, progress and warnings to standard error."""

from rich.console import Console

# File names and messages are data: nothing in them is markup.
out = Console(highlight=False, markup=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
quiet = False  # no results, no progress; warnings stay


def hush() -> None:
    """Say only what has gone wrong, or may have."""
    global quiet
    quiet = out.quiet = True
