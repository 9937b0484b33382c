"""The application that commands register with."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

# As `cdclust --help` lists them: what somebody with photographs needs first, then what they go on to.
ORDER = (
    *("demo", "fit", "predict", "report", "apply", "selflabel", "evaluate", "compare", "study"),
    *("embed", "export", "transfer", "recipes", "doctor"),
)


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


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
def _options(debug: Annotated[bool, typer.Option("--debug", help="show tracebacks")] = False) -> None:
    global debugging
    debugging = debug
