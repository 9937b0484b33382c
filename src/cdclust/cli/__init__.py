"""The shell's front door: one function a command. They parse, call and print; heavy imports wait until needed.

A new command goes into the file of its kind, or a new file that is imported here.
"""

import sys

from cdclust.cli import about, apply, features, fit, report, shell, use  # noqa: F401 - importing commands registers them
from cdclust.cli.shell import app
from cdclust.errors import UsageError, UserError

__all__ = ["app", "main"]


def main() -> None:
    """Run a command; a failure is one line, and its kind is the exit status."""
    try:
        app()
    except UserError as error:
        if shell.debugging:
            raise
        print(f"cdclust: {error}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, UsageError) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        if type(error).__name__ == "Interrupted":  # not imported: that would bring torch to every command
            print("cdclust: stopped, with a checkpoint; --out FOLDER --resume goes on", file=sys.stderr)
            raise SystemExit(130) from None
        if shell.debugging:
            raise
        print(f"cdclust: {type(error).__name__}: {error} (cdclust --debug ... shows where)", file=sys.stderr)
        raise SystemExit(1) from None
