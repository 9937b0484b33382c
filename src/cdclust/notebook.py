"""What a fitted model looks like in a notebook: a table of its clusters, and a gallery of their images.

Everything is in the HTML itself, no script is, and names of files are data: they are escaped.
"""

from __future__ import annotations

import base64
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cdclust.console.notebook import in_notebook
from cdclust.data import ImageStream
from cdclust.data.decode import Unreadable
from cdclust.data.files import FileStream
from cdclust.engine.assign import Assigned
from cdclust.names import shown

SIDE = 72  # pixels of a picture; smaller images are kept as they are
SUREST, LEAST = 8, 4
MOST_CLUSTERS = 60  # with pictures

STYLE = """<style>
.cdclust{font:14px/1.4 system-ui,sans-serif;margin:.5em 0}
.cdclust td,.cdclust th{padding:.15em .6em;text-align:left;vertical-align:middle;border:0}
.cdclust td.n{text-align:right;font-variant-numeric:tabular-nums}
.cdclust img{width:48px;height:48px;object-fit:cover;margin:1px;vertical-align:middle;border-radius:3px}
.cdclust .small{image-rendering:pixelated}
.cdclust .gallery img{width:56px;height:56px}
.cdclust .gallery{margin:.8em 0 .2em}
.cdclust .gap{display:inline-block;width:1.2em}
.cdclust .dim{opacity:.65}
</style>"""


@dataclass(frozen=True)
class Picture:
    """A small copy of an image."""

    key: str
    probability: float
    second: int
    image: bytes = field(repr=False)
    small: bool  # enlarged in the page, without smoothing

    def html(self) -> str:
        """The picture, its path and how sure the model is in its title."""
        kind = "png" if self.small else "jpeg"
        said = f"{shown(self.key)}: {self.probability:.1%}, else cluster {self.second}"
        data = base64.b64encode(self.image).decode()
        look = ' class="small"' if self.small else ""
        words = f'title="{escape(said)}" alt="{escape(shown(self.key))}"'
        return f'<img{look} src="data:image/{kind};base64,{data}" {words}>'


@dataclass(frozen=True)
class Shelf:
    """A cluster in small."""

    cluster: int
    size: int
    confidence: float  # mean
    surest: tuple[Picture, ...] = ()
    least: tuple[Picture, ...] = ()


def shelves(stream: ImageStream, rows: NDArray[np.int64], assigned: Assigned, n_clusters: int) -> list[Shelf]:
    """The clusters, the largest first, with a few of their images; `rows` are those that `assigned` speaks of."""
    sizes = np.bincount(assigned.clusters, minlength=n_clusters)
    found = []
    for place, cluster in enumerate(np.argsort(-sizes, kind="stable").tolist()):
        members = np.flatnonzero(assigned.clusters == cluster)
        members = members[np.argsort(-assigned.probabilities[members], kind="stable")]
        chosen = members if place < MOST_CLUSTERS else members[:0]
        found.append(
            Shelf(
                cluster,
                len(members),
                float(assigned.probabilities[members].mean()) if len(members) else 0.0,
                tuple(_pictures(stream, rows, assigned, chosen[:SUREST])),
                tuple(_pictures(stream, rows, assigned, chosen[SUREST:][-LEAST:])),
            )
        )
    return found


def _pictures(stream: ImageStream, rows: NDArray[np.int64], assigned: Assigned, members: NDArray[np.int64]) -> Any:
    for member in members.tolist():
        row = int(rows[member])
        try:
            pixels = stream.read(row, SIDE if isinstance(stream, FileStream) else None)
            if min(pixels.shape[1:]) > SIDE:
                pixels = stream.read(row, SIDE)
        except Unreadable:  # it was read before, and has gone since
            continue
        small, file = max(pixels.shape[1:]) < SIDE, BytesIO()
        Image.fromarray(pixels.transpose(1, 2, 0)).save(file, "PNG" if small else "JPEG")
        yield Picture(
            stream.keys[row],
            float(assigned.probabilities[member]),
            int(assigned.seconds[member]),
            file.getvalue(),
            small,
        )


def table(found: Sequence[Shelf], metrics: dict[str, Any]) -> str:
    """A line a cluster: its size, how sure the model is of it, and its most typical images."""
    total = max(1, sum(shelf.size for shelf in found))
    lines = [
        f'<tr><td class="n">{shelf.cluster}</td><td class="n">{shelf.size:,}</td>'
        f'<td class="n">{shelf.size / total:.1%}</td><td class="n">{_sure(shelf)}</td>'
        f"<td>{''.join(picture.html() for picture in shelf.surest)}</td></tr>"
        for shelf in found[:MOST_CLUSTERS]
    ]
    rest = len(found) - len(lines)
    more = f'<tr><td colspan="5" class="dim">and {rest:,} smaller clusters</td></tr>' if rest > 0 else ""
    head = "".join(f"<th>{name}</th>" for name in ("cluster", "images", "share", "mean confidence", "most typical"))
    return f"""{STYLE}<div class="cdclust"><div>{escape(_summary(metrics))}</div>{_cautions(metrics)}
<table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}{more}</tbody></table></div>"""


def gallery(found: Sequence[Shelf], metrics: dict[str, Any]) -> str:
    """All pictures of each cluster: the most typical, then those that the model is least sure of."""
    parts = [
        f'<div class="gallery"><b>cluster {shelf.cluster}</b> <span class="dim">{shelf.size:,} images, mean confidence '
        f"{_sure(shelf)}</span></div><div class=gallery>{''.join(picture.html() for picture in shelf.surest)}"
        + (f'<span class="gap"></span>{"".join(picture.html() for picture in shelf.least)}' if shelf.least else "")
        + "</div>"
        for shelf in found[:MOST_CLUSTERS]
        if shelf.size
    ]
    said = f"{_summary(metrics)}. Most typical images on the left, least certain on the right."
    return f'{STYLE}<div class="cdclust"><div>{escape(said)}</div>{_cautions(metrics)}{"".join(parts)}</div>'


def _sure(shelf: Shelf) -> str:
    return f"{shelf.confidence:.2f}" if shelf.size else ""


def _summary(metrics: dict[str, Any]) -> str:
    bad = f", {metrics['n_unreadable']:,} unreadable" if metrics["n_unreadable"] else ""
    scores = "".join(f", {name.upper()} {metrics[name]:.3f}" for name in ("acc", "nmi", "ari") if name in metrics)
    return f"{metrics['n_images']:,} images{bad} in {metrics['n_clusters']:,} clusters{scores}"


def _cautions(metrics: dict[str, Any]) -> str:
    return "".join(f"<div><b>warning:</b> {escape(said)}</div>" for said in metrics["warnings"])


def show(html: str) -> None:
    """Display HTML in the notebook; from elsewhere, open it as a page in the browser."""
    if in_notebook():
        from IPython.display import display

        display({"text/html": html, "text/plain": "the gallery of a fitted CDC"}, raw=True)
        return
    page = f'<!doctype html><meta charset="utf-8"><title>cdclust</title><body>{html}</body>'
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".html", delete=False) as file:
        file.write(page)
    path = Path(file.name)
    webbrowser.open(path.as_uri())
    print(f"The gallery is in {path}")
