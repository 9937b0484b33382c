"""A run's settings: typed, validated, serialisable. Defaults stand in `settings.py`.

`recipes/*.yaml` are the shipped recipes; a recipe file may name another as its `base` and state only what differs.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from cdclust.errors import UsageError, UserError
from cdclust.settings import (
    DataSettings,
    FeatureSettings,
    HeadSettings,
    MethodSettings,
    NetworkSettings,
    ObjectiveSettings,
    OptimizerSettings,
    Settings,
    TrainingSettings,
    ViewSettings,
)


class Recipe(Settings):
    """Everything that decides what a run computes."""

    name: str = "custom"
    about: str = ""
    n_clusters: int = Field(10, ge=2, description="K")
    seed: int = Field(0, ge=0, description="everything random follows from it")
    data: DataSettings = DataSettings()
    views: ViewSettings = ViewSettings()
    network: NetworkSettings = NetworkSettings()
    features: FeatureSettings = FeatureSettings()
    head: HeadSettings = HeadSettings()
    method: MethodSettings = MethodSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    training: TrainingSettings = TrainingSettings()
    origin: dict[str, str] = Field(default_factory=dict, description="where a field's value is from: paper, inferred")

    @model_validator(mode="after")
    def _origins_name_fields(self) -> Self:
        known = set(leaves(self.model_dump(exclude={"origin"})))
        for field in self.origin:
            if field not in known:
                raise ValueError(f"origin names {field}, which is no field")
        return self

    @model_validator(mode="after")
    def _every_cluster_has_a_share(self) -> Self:
        sizes = self.objective.sizes
        if not isinstance(sizes, str) and len(sizes) != self.n_clusters:
            raise UsageError(f"objective.sizes has {len(sizes)} shares for -k {self.n_clusters}; give one a cluster")
        return self

    def to_yaml(self) -> str:
        """The recipe as a file that `cdclust fit --recipe FILE` reads back."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)

    def changed(self, changes: Mapping[str, Any]) -> "Recipe":
        """A copy with dotted fields changed: {"objective.alpha": 1}, or {"alpha": 1} where only one field ends so."""
        tree = self.model_dump(mode="json")
        for name, value in changes.items():
            *sections, leaf = full_name(name).split(".")
            branch = tree
            for section in sections:
                branch = branch[section]
            branch[leaf] = value
            # A value of the user's own is no longer the paper's.
            tree["origin"].pop(full_name(name), None)
        return validated(tree)


OPEN = ("views.change", "views.change_later")  # mappings whose keys are not the recipe's business


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted names of a nested mapping's fields; an open mapping counts as one."""
    for key, value in tree.items():
        if isinstance(value, Mapping) and f"{prefix}{key}" not in OPEN:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


FIELDS: tuple[str, ...] = tuple(leaves(Recipe().model_dump(exclude={"origin"})))


def full_name(name: str) -> str:
    """The dotted name of the one field that is called, or ends in, `name`."""
    for mapping in OPEN:
        if name.removeprefix("views.").startswith(f"{mapping.removeprefix('views.')}."):
            return f"views.{name.removeprefix('views.')}"
    if name in FIELDS and name not in ("name", "about"):  # --set name= means the optimiser's, not the recipe's
        return name
    matches = [field for field in FIELDS if field.endswith(f".{name}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"--set {name}: several fields end so; write one of {', '.join(matches)}")
    short = {field.rsplit(".", 1)[-1]: field for field in FIELDS}
    near = difflib.get_close_matches(name, [*FIELDS, *short], n=1, cutoff=0.0)[0]
    raise UsageError(f"--set {name}: no such field; did you mean {short.get(near, near)}?")


def parse_set(assignments: list[str]) -> dict[str, Any]:
    """["alpha=1", "network.blocks=[1,1]"] as {"alpha": 1, "network.blocks": [1, 1]}; values are YAML."""
    changes: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: write field=value")
        try:
            changes[name.strip()] = _number(yaml.safe_load(value))
        except yaml.YAMLError:
            raise UsageError(f"--set {text}: {value!r} is not a value") from None
    return changes


def _number(value: Any) -> Any:
    # YAML 1.1 reads 1e-4 as text, which nobody means.
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def shipped() -> list[str]:
    """The names of the recipes that come with the package."""
    folder = resources.files("cdclust") / "recipes"
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def usual(source: Any, backbone: str | None = None) -> str:
    """The recipe of who names none: a data set's own; files of any size are photographs, arrays small images."""
    if backbone not in (None, "scratch"):
        return "photos"
    if isinstance(source, str) and source in shipped():
        return source
    if backbone is None and isinstance(source, (str, os.PathLike)):
        return "images" if str(source).lower().endswith((".npy", ".npz")) else "photos"
    paths = isinstance(source, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in source)
    return "photos" if backbone is None and paths else "images"


def load(name_or_file: str) -> Recipe:
    """A shipped recipe by its name, or any by its file."""
    return validated(_tree(name_or_file))


def _tree(name_or_file: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    if name_or_file in above:
        raise UserError(f"{name_or_file} has itself as its base; name another")
    if name_or_file in shipped():
        text = (resources.files("cdclust") / "recipes" / f"{name_or_file}.yaml").read_text(encoding="utf-8")
    elif (path := Path(name_or_file)).is_file():
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise UserError(f"{name_or_file} cannot be read as text; a recipe is a YAML file") from None
    else:
        near = difflib.get_close_matches(name_or_file, shipped(), n=1)
        hint = f"did you mean {near[0]}?" if near else f"the recipes are {', '.join(shipped())}"
        raise UserError(f"no recipe called {name_or_file!r}, and no such file; {hint}")
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{name_or_file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{name_or_file} is not a recipe: it must be a mapping of fields")
    base = tree.pop("base", None)
    if base is None:
        return tree
    under = _tree(str(base), (*above, name_or_file))
    for field in leaves({section: value for section, value in tree.items() if section != "origin"}):
        under.get("origin", {}).pop(field, None)  # the base's origin goes with the base's value
    return _merged(under, tree)


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(under.get(key), dict)
        merged[key] = _merged(under[key], value) if both else value
    return merged


def validated(tree: Mapping[str, Any]) -> Recipe:
    """A recipe from plain values, or the first thing wrong with them in one line."""
    try:
        return Recipe.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "recipe"
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(field, FIELDS, n=1, cutoff=0.0)[0]
            raise UsageError(f"recipe: no field {field}; did you mean {near}?") from None
        raise UsageError(f"{field} = {first['input']!r}: {_in_words(first)}") from None


def _in_words(error: Any) -> str:
    """What is allowed, in the words of somebody who types."""
    limits, kind = error.get("ctx", {}), error["type"]
    bound = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}
    bound |= {"greater_than": ("above", "gt"), "less_than": ("below", "lt")}
    if kind in bound:
        words, name = bound[kind]
        return f"it must be {words} {limits[name]:g}"
    if kind.startswith(("int", "float", "finite")):
        return f"it must be a {'whole' if kind.startswith('int') else 'finite'} number"
    if kind.startswith("bool"):
        return "it must be true or false"
    if kind == "literal_error":
        return f"it must be {limits['expected']}"
    return str(error["msg"]).removeprefix("Value error, ")


def described(recipe: Recipe) -> Iterator[tuple[str, Any, str]]:
    """Every field of a recipe with its value and its meaning."""
    for name, info in Recipe.model_fields.items():
        value = getattr(recipe, name)
        if isinstance(value, Settings):
            for leaf, leaf_info in type(value).model_fields.items():
                yield f"{name}.{leaf}", getattr(value, leaf), leaf_info.description or ""
        elif name not in ("name", "about", "origin"):
            yield name, value, info.description or ""
