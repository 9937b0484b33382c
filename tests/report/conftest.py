import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdclust import run as runs
from cdclust.jobs.listeners import Silent
from cdclust.jobs.report import drawn, keep
from cdclust.recipe import Recipe
from cdclust.run import Run

HOSTILE = [
    "</script><script>window.hacked = 1</script>.jpg",
    '"><img src=x onerror="window.hacked = 1">.jpg',
    "<!--<script>.jpg",
    "'; window.hacked = 1; //.jpg",
    "two\nlines\r\tand a tab.jpg",
    "photo\u202egpj.exe",
    "a\u2028b\u2029c\u200bd\u0000e.jpg",
    "javascript:window.hacked = 1",
    "&lt;b&gt; &amp; {{ 7*7 }} ${7*7}.jpg",
    "\\u003cscript\\u003e.jpg",
]


class Catalogue:
    """What is known of some images, for `keep`."""

    def __init__(self, name: str, labels: np.ndarray | None, class_names: list[str] | None) -> None:
        self.name, self.labels, self.class_names = name, labels, class_names


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Run]:
    """make_run(folder, n=.., k=..): a run folder as `fit` leaves one, of drawn images and without training.

    An image's cluster is its number modulo k; its colour and its features follow from that, and a little chance.
    """

    def make(
        folder: Path,
        n: int = 60,
        k: int = 4,
        side: int = 12,
        labels: np.ndarray | None = None,
        class_names: list[str] | None = None,
        names: list[str] | None = None,
        bad: dict[int, str] | None = None,
        source: str = "photos/",
        pictures: np.ndarray | None = None,
        draw: bool = True,
        **changes: Any,
    ) -> Run:
        chance = np.random.default_rng(0)
        bad, names = bad or {}, names or [f"album/{i:05}.jpg" for i in range(n)]
        clusters = np.arange(n) % k
        if pictures is None:
            base = chance.integers(0, 256, (k, 3, 1, 1))
            pictures = np.clip(base[clusters] + chance.normal(0, 30, (n, 3, side, side)), 0, 255).astype(np.uint8)
        p = np.round(chance.uniform(0.3, 1, n), 6)
        features = chance.normal(0, 1, (k, 8))[clusters] * 3 + chance.normal(0, 1, (n, 8))
        run = runs.create(folder, Recipe().changed({"n_clusters": k}), resume=False)
        run.weights.write_bytes(b"")
        rows = [
            (names[i], "", "", "", "", f"unreadable: {bad[i]}")
            if i in bad
            else (
                names[i],
                str(clusters[i]),
                str(p[i]),
                str((clusters[i] + 1) % k),
                str(round((1 - p[i]) / 2, 6)),
                "ok",
            )
            for i in range(n)
        ]
        run.write("assignments.csv", lambda file: runs.write_csv(file, rows))
        run.write_array("embeddings.npy", features.astype(np.float32))
        for epoch in (1, 2, 3):
            run.append_log({"epoch": epoch, "step": epoch, "loss": 3.0 / epoch, "confidence": 0.5, "lr": 0.1})
        readable = np.array([i for i in range(n) if i not in bad])
        metrics = {
            "n_images": n,
            "n_unreadable": len(bad),
            "n_clusters": k,
            "seconds": 12.0,
            "warnings": [],
            "notes": [],
            "protocol": {"method": "simclr", "trained_on": f"{source}: all", "epoch": 3, "seed": 0},
            **changes,
        }
        run.write_json("environment.json", {"command": ["cdclust", "fit", source], "packages": {"cdclust": "0"}})
        if draw:
            images = Catalogue(source, labels, class_names)
            keep(run, metrics, images, lambda i: pictures[readable[i]], 1, Silent())
        run.write_json("metrics.json", metrics)
        if draw:
            run.write_text("report.html", drawn(run, metrics))
        return run

    return make


@pytest.fixture(scope="session")
def content_of() -> Callable[[Path], dict[str, Any]]:
    """What the script of a page is given, taken out of the HTML as a browser would."""
    from html.parser import HTMLParser

    class Parser(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.inside, self.text = False, ""

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            self.inside = tag == "script" and dict(attrs).get("id") == "data"

        def handle_endtag(self, tag: str) -> None:
            self.inside = False

        def handle_data(self, data: str) -> None:
            self.text += data if self.inside else ""

    def content(path: Path) -> dict[str, Any]:
        parser = Parser()
        parser.feed(path.read_text(encoding="utf-8"))
        found: dict[str, Any] = json.loads(parser.text)
        return found

    return content


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, without a window; skipped, with the reason, where it or playwright is not installed."""
    import shutil

    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = next((p for name in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium on the PATH")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=path, args=flags)
        except api.Error as error:
            pytest.skip(f"Chromium does not start: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture(scope="session")
def hostile_names() -> list[str]:
    """What no file should be called."""
    return HOSTILE


@pytest.fixture(scope="session")
def hostile(make_run: Callable[..., Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page whose names, classes, source and clusters are all out to be run."""
    n = 4 * len(HOSTILE)
    run = make_run(
        tmp_path_factory.mktemp("hostile") / "run",
        n=n,
        k=4,
        names=[HOSTILE[i % len(HOSTILE)] + ("" if i < len(HOSTILE) else str(i)) for i in range(n)],
        labels=np.arange(n) % 4,
        class_names=HOSTILE[:4],
        source=HOSTILE[0],
        bad={9: HOSTILE[1]},
        warnings=[HOSTILE[1]],
        notes=[HOSTILE[5]],
    )
    return run.file("report.html")
