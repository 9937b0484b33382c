"""`cdclust recipes` and `cdclust doctor`."""

import json
from typing import Annotated

import typer

from cdclust.cli.options import AsJson
from cdclust.cli.shell import app


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="show this recipe, with the origin of each value")] = None,
    as_json: AsJson = False,
) -> None:
    """List the shipped recipes, or show one."""
    from cdclust import console, recipe

    if name is None:
        about = {each: recipe.load(each).about for each in recipe.shipped()}
        print(json.dumps(about)) if as_json else console.show_recipes(about)
    else:
        shown = recipe.load(name)
        print(json.dumps(shown.model_dump(mode="json"))) if as_json else console.show_recipe(shown)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine offers, what would be used, and what is missing."""
    from cdclust import console
    from cdclust.jobs.doctor import examine

    found = examine()
    print(json.dumps(found)) if as_json else console.show_examination(found)
