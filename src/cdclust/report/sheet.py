"""clusters.png: a row of images a cluster, the surest first, the least sure last."""

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from cdclust.engine.assign import Assigned

SURE, UNSURE, TILE, GAP, MARGIN = 10, 4, 48, 4, 120
MOST_ROWS = 60  # a taller picture is no picture


def draw_sheet(picture: Callable[[int], Tensor], assigned: Assigned) -> Image.Image:
    """One row a cluster, largest cluster first: its surest images, a gap, and its least sure."""
    clusters, counts = np.unique(assigned.clusters, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
    width = MARGIN + (SURE + UNSURE) * (TILE + GAP) + 2 * GAP + TILE // 2
    sheet = Image.new("RGB", (width, 28 + len(order) * (TILE + GAP) + GAP), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    pen.text((MARGIN, 7), "surest", fill="black", font=font)
    pen.text((_left(SURE), 7), "least sure", fill="black", font=font)
    for row, place in enumerate(order):
        top = 28 + row * (TILE + GAP)
        members = np.flatnonzero(assigned.clusters == clusters[place])
        members = members[np.argsort(-assigned.probabilities[members], kind="stable")]
        pen.text((8, top + 8), f"cluster {clusters[place]}", fill="black", font=font)
        pen.text((8, top + 24), f"{counts[place]:,} images", fill="#666", font=font)
        for column, member in enumerate(members[:SURE]):
            sheet.paste(_tile(picture(int(member))), (_left(column), top))
        for column, member in enumerate(members[SURE:][-UNSURE:]):
            sheet.paste(_tile(picture(int(member))), (_left(SURE + column), top))
    return sheet


def _left(column: int) -> int:
    return MARGIN + column * (TILE + GAP) + (TILE // 2 if column >= SURE else 0)


def _tile(image: Tensor) -> Image.Image:
    pixels = image.permute(1, 2, 0).numpy()
    picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels).convert("RGB")
    how = Image.Resampling.NEAREST if picture.width < TILE else Image.Resampling.BILINEAR
    return picture.resize((TILE, TILE), how)
