"""The application that commands register with."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# As `cdclust --help` lists them: what somebody with photographs needs first, then what they go on to.
ORDER = (
    *("demo", "fit", "predict", "report", "apply", "selflabel", "evaluate", "compare", "study"),
    *("embed", "export", "transfer", "recipes", "doctor"),
)
ANYWHERE = ("-q", "--quiet", "--debug")


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What holds for every command may stand anywhere on the line."""
        end = args.index("--") if "--" in args else len(args)
        first = [word for word in args[:end] if word in ANYWHERE]
        return super().parse_args(ctx, [*first, *(word for word in args[:end] if word not in ANYWHERE), *args[end:]])


app = typer.Typer(
    cls=_InOrder,
    help="Sort images nobody has labelled into groups that mean something.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
debugging = False  # tracebacks are shown


@app.callback()
def _options(
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="print nothing but warnings, errors and what --json asks for")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="show tracebacks")] = False,
) -> None:
    global debugging
    debugging = debug
    if quiet:
        from cdclust.console import screen

        screen.hush()
