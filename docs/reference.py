"""Makes the pages of docs/reference/ when the site is built, from the commands, the recipe's fields and docstrings.

They are never written to disk here, so that they cannot be older than the code.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

PAGES = ("commands", "recipe", "python")


def on_files(files: Any, config: Any) -> Any:
    """mkdocs asks for the list of files: ours join it."""
    from mkdocs.structure.files import File

    made = {"commands": commands(), "recipe": recipe(), "python": python()}
    for name in PAGES:
        files.append(File.generated(config, f"reference/{name}.md", content=made[name]))
    return files


def cell(value: Any) -> str:
    """Text for a table: what stands between backticks is code, and nothing else is markup."""
    parts = " ".join(str(value).split()).split("`")
    plain = [re.sub(r"([\\*_{}\[\]<>|#])", r"\\\1", part) for part in parts]
    return "".join(code(parts[i]) if i % 2 and i < len(parts) - 1 else plain[i] for i in range(len(parts)))


def code(value: Any) -> str:
    """A value as code in a table."""
    return f"`{'none' if value is None else value}`".replace("|", r"\|")


def commands() -> str:
    """Every command with its arguments and options."""
    import typer

    from cdclust.cli import app

    group: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "`--quiet` and `--debug` may stand anywhere on the line.", ""]
    lines += [
        "Exit status: 0 done, 1 failed with a reason in one line, 2 wrong usage, 130 interrupted, with a checkpoint.",
        "",
        *options_table(group),
    ]
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        lines += ["", f"## cdclust {name}", "", cell(inspect.cleandoc(command.help or "")), ""]
        lines += options_table(command)
    return "\n".join(lines) + "\n"


def options_table(command: Any) -> Iterator[str]:
    """A line an argument or option; what a command always has (`--help`) is left out."""
    yield "| argument or option | default | meaning |"
    yield "|---|---|---|"
    for param in command.params:
        is_option = param.param_type_name == "option"
        if param.name == "help" or getattr(param, "hidden", False):
            continue
        name = ", ".join(param.opts) if is_option else (param.metavar or param.name.upper())
        flag = getattr(param, "is_flag", False)
        missing = param.default is None or param.default is ... or flag or (param.required and not is_option)
        default = "" if missing else code(param.default)
        yield f"| {code(name)} | {default or ('required' if param.required else '')} | {cell(param.help or '')} |"


def recipe() -> str:
    """Every field with its default and meaning, then the shipped recipes with the origin of their values."""
    from cdclust import recipe as recipes
    from cdclust.views.policy import POLICIES, ViewPolicy

    lines = [
        "# Recipe fields",
        "",
        "A recipe holds everything that decides what a run computes. Change a field with `--set field=value`; the last",
        "part of a name is enough where only one field ends so (`--set epochs=200`).",
    ]
    section = None
    for name, value, meaning in recipes.described(recipes.Recipe()):
        head = name.partition(".")[0] if "." in name else "general"
        if head != section:
            section = head
            lines += ["", f"## {head}", "", "| field | default | meaning |", "|---|---|---|"]
        lines.append(f"| {code(name)} | {code(value)} | {cell(meaning)} |")
    lines += ["", "## View policies", "", "What `views.policy` names, and `views.change` changes the fields of:", ""]
    lines += [f"| field | {' | '.join(code(name) for name in POLICIES)} |", f"|---|{'---|' * len(POLICIES)}"]
    for field in ViewPolicy.model_fields:
        values = [getattr(first, field) for first, _ in POLICIES.values()]
        lines.append(f"| {code(field)} | {' | '.join(rounded(value) for value in values)} |")
    lines += ["", "Of policies whose two views differ, the first is shown.", "", "## Shipped recipes"]
    for name in recipes.shipped():
        lines += shipped(recipes.load(name), recipes)
    return "\n".join(lines) + "\n"


def rounded(value: Any) -> str:
    """A view's setting, short."""
    if isinstance(value, tuple):
        return code(", ".join(f"{each:.3g}" for each in value))
    return code(f"{value:.3g}") if isinstance(value, float) else code(value)


def shipped(one: Any, recipes: Any) -> list[str]:
    """What a shipped recipe sets differently from the defaults."""
    defaults = {name: value for name, value, _ in recipes.described(recipes.Recipe())}
    lines = ["", f"### {one.name}", "", cell(one.about), "", "| field | value | from |", "|---|---|---|"]
    for name, value, _ in recipes.described(one):
        if value != defaults[name] or name in one.origin:
            lines.append(f"| {code(name)} | {code(value)} | {cell(one.origin.get(name, ''))} |")
    return lines


def python() -> str:
    """The estimator, from its docstrings."""
    from cdclust import CDC

    lines = ["# Python", "", "```python", "from cdclust import CDC", "```", "", "## CDC", ""]
    lines += ["```text", f"CDC{signature(CDC.__init__)}", "```", "", *numpy_style(inspect.getdoc(CDC) or "")]
    for name in ("fit", "predict", "predict_proba", "transform", "fit_predict", "show"):
        method = getattr(CDC, name)
        first = (inspect.getdoc(method) or "").partition("\n\n")[0]
        lines += ["", f"### {name}", "", "```text", f"{name}{signature(method)}", "```", "", cell(first)]
    return "\n".join(lines) + "\n"


def signature(function: Any) -> str:
    """Arguments as one calls them."""
    found = inspect.signature(function)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    words = [str(p) for p in plain]
    keyword_only = [i for i, p in enumerate(plain) if p.kind is inspect.Parameter.KEYWORD_ONLY]
    if keyword_only:
        words.insert(keyword_only[0], "*")
    return "(\n" + "".join(f"    {word},\n" for word in words) + ")" if len(words) > 4 else f"({', '.join(words)})"


def numpy_style(text: str) -> list[str]:
    """A docstring with underlined sections as Markdown: definitions become tables, examples code."""
    lines: list[str] = []
    parts = re.split(r"\n\n(\w+)\n-+\n", text)
    lines += [cell(paragraph) + "\n" for paragraph in parts[0].split("\n\n")]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        lines += ["", f"### {title}", ""]
        if title == "Examples":
            lines += ["```pycon", body, "```"]
            continue
        lines += ["| name | type | meaning |", "|---|---|---|"]
        for found in re.finditer(r"^(\S.*?) : (.*)\n((?:    .*\n?)+)", body + "\n", re.MULTILINE):
            lines.append(f"| {code(found[1])} | {cell(found[2])} | {cell(found[3])} |")
    return lines
