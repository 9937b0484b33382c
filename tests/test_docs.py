import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer

from cdclust import recipe as recipes
from cdclust.cli import app
from cdclust.cli.shell import ANYWHERE
from cdclust.formats.place import WAYS
from cdclust.jobs.apply import FORMATS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- run -->\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(*kinds: str) -> list[tuple[Path, bool, str]]:
    """Blocks of code of these kinds: their page, whether they are marked to be run, the code."""
    return [
        (page, bool(run), code)
        for page in PAGES
        for run, kind, code in BLOCK.findall(page.read_text(encoding="utf-8"))
        if kind in kinds
    ]


def command_lines() -> list[tuple[str, list[str]]]:
    """Every `cdclust ...` in blocks for the shell, and in running text if it is whole."""
    found = [(page, line) for page, _, code in blocks("sh", "bash", "console") for line in code.splitlines()]
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
        spans = re.findall(r"`([^`\n]*cdclust [^`\n]*)`", prose)
        found += [(page, line) for line in spans if "..." not in line and not re.fullmatch(r"cdclust [\w-]+", line)]
    parted = [(page.name, part) for page, line in found for part in re.split(r"&&|&\s*$|\|", line)]
    split = [(name, shlex.split(part, comments=True)) for name, part in parted]
    lines = [(name, words[1:]) for name, words in split if words and Path(words[0]).name == "cdclust"]
    return [(name, words) for name, words in lines if words and words[0] != "--help"]


GROUP = typer.main.get_command(app)
LINES = command_lines()


def parsed(words: list[str]):
    """The values that a command would get; an option there is not is an error."""
    rest = [word for word in words[1:] if word not in ANYWHERE]
    return GROUP.commands[words[0]].make_context(words[0], rest).params


def test_there_are_commands_in_the_documentation():
    assert len(LINES) > 40
    assert {"fit", "predict", "apply", "demo", "recipes", "evaluate"} <= {words[0] for _, words in LINES}


@pytest.mark.parametrize(("page", "words"), LINES, ids=[f"{page} {' '.join(words)}" for page, words in LINES])
def test_a_documented_command_is_one(page, words):
    given = parsed(words)
    changes = recipes.parse_set(given.get("set_") or [])
    if given.get("recipe") and given["recipe"] != "THIS_FILE":
        assert given["recipe"] in recipes.shipped()
    if changes:
        recipes.load("cifar10").changed(changes)
    assert given.get("files", "copy") in WAYS
    assert given.get("format_") in (None, *FORMATS)


def test_a_command_that_is_only_named_is_one_too():
    for page in PAGES:
        for name in re.findall(r"`cdclust ([\w-]+)`", page.read_text(encoding="utf-8")):
            assert name in GROUP.commands or name in ("--help", "report"), f"{page}: {name}"


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_a_documented_setting_is_one(page):
    text = page.read_text(encoding="utf-8")
    for setting in re.findall(r"--set ([^\s`)]+=[^\s`),]+)", text):
        recipes.load("cifar10").changed(recipes.parse_set([setting.strip("'\"")]))


@pytest.mark.parametrize(("page", "run", "code"), blocks("python"), ids=lambda part: str(part)[-30:])
def test_python_in_the_documentation_compiles(page, run, code):
    compile(code, str(page), "exec")


@pytest.mark.slow
def test_python_that_is_marked_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    marked = [(page, code) for page, run, code in blocks("python") if run]
    assert marked
    for page, code in marked:
        exec(compile(code, str(page), "exec"), {})


def anchors(page: Path) -> set[str]:
    """The ids that a page's headings get."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL), re.M)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


def test_every_link_of_a_source_page_leads_somewhere():
    generated = {ROOT / "docs" / "reference" / f"{name}.md" for name in ("commands", "recipe", "python")}
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", page.read_text(encoding="utf-8"))):
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / parts.path).resolve() if parts.path else page
            assert target.exists() or target in generated, f"{page.name}: {link}"
            if parts.fragment:
                assert parts.fragment in anchors(target), f"{page.name}: {link}"


class Reader(HTMLParser):
    """A page's ids, links, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "a":
            self.links.append(found.get("href") or "#")
        elif tag in ("script", "img", "iframe") or (tag == "link" and found.get("rel") != "canonical"):
            self.loaded += [found[name] for name in ("src", "href") if found.get(name)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return {page: Reader(page) for page in out.rglob("*.html")}


def test_every_link_of_the_built_site_leads_to_a_page_and_an_anchor(site):
    known = {page.resolve(): reader for page, reader in site.items()}
    for page, reader in known.items():
        if page.name == "404.html":
            continue
        for link in reader.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            assert target in known, f"{page}: {link}"
            if parts.fragment:
                assert unquote(parts.fragment) in known[target].ids | {"__skip"}, f"{page}: {link}"


def test_the_built_site_loads_nothing_from_elsewhere(site):
    for page, reader in site.items():
        assert not [url for url in reader.loaded if urlsplit(url).netloc], page
        styles = "".join(path.read_text(encoding="utf-8") for path in page.parent.glob("**/*.css"))
        assert "@import" not in styles
        assert not re.search(r"url\(['\"]?(https?:)?//", styles)


def test_the_reference_holds_every_field_and_every_option(site):
    page = {reader_page.parent.name: reader_page.read_text(encoding="utf-8") for reader_page in site}
    for field in recipes.FIELDS:
        if field not in ("name", "about"):
            assert f"<code>{field}</code>" in page["recipe"], field
    for name in recipes.shipped():
        assert f'id="{name}"' in page["recipe"]
    for name, command in GROUP.commands.items():
        assert f'id="cdclust-{name}"' in page["commands"]
        for param in command.params:
            assert all(option in page["commands"] for option in param.opts if option.startswith("--")), (name, param)
    for name in ("labels_", "gallery_", "n_clusters", "predict_proba", "show"):
        assert f">{name}<" in page["python"], name
