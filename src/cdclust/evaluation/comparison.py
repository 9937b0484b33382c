"""Several methods on the same images: what is said of each seed, of each method, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.evaluation.health import health
from cdclust.evaluation.metrics import ari, contingency, scores

Clusters = NDArray[np.int64]

# A column of the table: its key, its heading, how it is written.
COLUMNS = (
    ("acc", "ACC", "{:.3f}"),
    ("nmi", "NMI", "{:.3f}"),
    ("ari", "ARI", "{:.3f}"),
    ("evenness", "even", "{:.2f}"),
    ("confidence", "conf.", "{:.2f}"),
    ("silhouette", "silh.", "{:.3f}"),
    ("agreement", "agree", "{:.3f}"),
    ("seconds", "s", "{:.1f}"),
    ("peak_memory_mb", "MB", "{:,.0f}"),
)
SPREAD = "acc"  # the figure whose deviation is shown; those of all are in compare.json


def figures(
    clusters: Clusters,
    n_clusters: int,
    labels: Clusters | None,
    probabilities: NDArray[np.float32] | None,
    sample: tuple[NDArray[np.int64], NDArray[np.float32]],
) -> dict[str, Any]:
    """Of one clustering: scores where there are labels; evenness, confidence and silhouette without any.

    `sample` are rows, and their features around the mean with length 1: the same for every method.
    """
    found: dict[str, Any] = {}
    if labels is not None:
        found |= {name: round(value, 6) for name, value in scores(clusters, labels, ignore_unknown=True).items()}
    n_sizes = max(n_clusters, int(clusters.max()) + 1)
    state = health(clusters, np.ones(len(clusters)) if probabilities is None else probabilities, n_sizes)
    found |= {"n_found": state.n_nonempty, "evenness": round(state.size_entropy, 6)}
    if probabilities is not None:
        found["confidence"] = round(state.confidence, 6)
    width = silhouette(clusters[sample[0]], sample[1])
    if width is not None:
        found["silhouette"] = round(width, 6)
    return found | {"cluster_sizes": state.sizes.tolist()}


def silhouette(clusters: Clusters, rows: NDArray[np.float32]) -> float | None:
    """The mean silhouette of a sample, or none where one cluster or single images make it meaningless."""
    from sklearn.metrics import silhouette_score

    if not 2 <= len(np.unique(clusters)) < len(clusters):
        return None
    return float(silhouette_score(rows, clusters))


def agreement(clusterings: Sequence[Clusters]) -> float | None:
    """The mean ARI over pairs of seeds: 1 where all give the same clusters, 0 where they agree by chance alone."""
    pairs = [ari(contingency(a, b)) for a, b in combinations(clusterings, 2)]
    return float(np.mean(pairs)) if pairs else None


def summed_up(rows: Sequence[dict[str, Any]], clusterings: Sequence[Clusters]) -> dict[str, Any]:
    """One method over its seeds: mean, deviation and values of each figure; what failed, and why."""
    done = [row for row in rows if row["status"] == "ok"]
    summary: dict[str, Any] = {"seeds": [row["seed"] for row in done]}
    for key, _, _ in COLUMNS:
        values = [row[key] for row in done if row.get(key) is not None]
        if values:
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            summary[key] = {"mean": float(np.mean(values)), "std": spread, "values": values}
    together = agreement(clusterings)
    if together is not None:
        summary["agreement"] = {"mean": together}
    summary["features"] = done[0]["features"] if done else None
    summary["remarks"] = list(dict.fromkeys(remark for row in done for remark in row["remarks"]))
    summary["failed"] = [{"seed": row["seed"], "reason": row["reason"]} for row in rows if row["status"] != "ok"]
    return summary


def table(methods: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows as texts; columns that no method fills are left out."""
    shown = [column for column in COLUMNS if any(column[0] in summary for summary in methods.values())]
    heading = ["method", *(title for _, title, _ in shown)]
    return heading, [_row(name, summary, shown) for name, summary in methods.items()]


def _row(name: str, summary: dict[str, Any], shown: Sequence[tuple[str, str, str]]) -> list[str]:
    cells = [name]
    for key, _, form in shown:
        entry = summary.get(key)
        text = "-" if entry is None else form.format(entry["mean"])
        several = entry is not None and key == SPREAD and len(entry["values"]) > 1
        cells.append(f"{text} ± {form.format(entry['std'])}" if several and entry else text)
    return cells


def remarks(methods: dict[str, dict[str, Any]]) -> list[str]:
    """What has to be known to read the table, a line each."""
    lines = []
    for name, summary in methods.items():
        lines += [f"{name}: {remark}" for remark in summary["remarks"]]
        lines += [f"{name}: seed {each['seed']} failed: {each['reason']}" for each in summary["failed"]]
    return lines


def markdown(title: str, methods: dict[str, dict[str, Any]], notes: Sequence[str]) -> str:
    """The table, what it was measured on, and the remarks, for a report."""
    heading, rows = table(methods)
    lines = [f"# {_cell(title)}", "", *(f"- {_cell(note)}" for note in notes), ""]
    lines += [_line(heading), "|---|" + "---:|" * (len(heading) - 1), *map(_line, rows), ""]
    lines += [f"- {_cell(remark)}" for remark in remarks(methods)]
    return "\n".join(lines).rstrip() + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """Nothing a file is called can break out of its cell or become markup."""
    flat = " ".join(text.split())
    for sign in "\\`*_[]<>|#":
        flat = flat.replace(sign, "\\" + sign)
    return flat
