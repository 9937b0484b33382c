"""`cdclust recipes` and `cdclust doctor`."""

import json
from typing import Annotated

import typer

from cdclust.cli.options import AsJson
from cdclust.cli.shell import app


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="show this recipe, with the origin of each value")] = None,
) -> None:
    """List the shipped recipes, or show one."""
    from cdclust import console, recipe

    if name is None:
        console.show_recipes({each: recipe.load(each).about for each in recipe.shipped()})
    else:
        console.show_recipe(recipe.load(name))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine offers, what would be used, and what is missing."""
    from cdclust import console
    from cdclust.jobs.doctor import examine

    found = examine()
    print(json.dumps(found)) if as_json else console.show_examination(found)
