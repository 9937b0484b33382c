"""report.html: one file, with its style, its script and its images inside, that asks nothing of a network."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from cdclust.report.content import Page

STYLES = ("page.css",)
SCRIPTS = (
    "base.js",
    "tiles.js",
    "viewer.js",
    "clusters.js",
    "map.js",
    "mapmoves.js",
    "charts.js",
    "labels.js",
    "rest.js",
)


def draw(page: Page) -> str:
    """The page as HTML."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_asset("page.html"))
    style, script = _joined(STYLES), _joined(SCRIPTS)
    return template.render(
        page=page,
        title=visible(page.summary.source),
        style=style,
        script=script,
        data=page.to_json(),
        policy=policy(style, script),
    )


def policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, images from inside the page, and nothing else."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def visible(text: str) -> str:
    """Text in which nothing is invisible: control characters, and those that turn the direction of writing."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode("ascii")


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "\n" + "\n".join(_asset(name) for name in names)


@cache
def _asset(name: str) -> str:
    return files("cdclust.report").joinpath("page", name).read_text(encoding="utf-8")
