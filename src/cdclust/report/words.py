"""What a run's figures mean, in sentences for somebody who did not train the network."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdclust.evaluation.health import Health
from cdclust.report.content import Notice

UNEVEN = 5.0  # the largest cluster over the mean
UNSURE = 0.6  # mean probability

CURVES = {
    "loss": ("Loss", "what is minimised"),
    "info_nce": ("InfoNCE", "the contrast of two views of an image with other images"),
    "cross_entropy_over_ln_k": ("Cross entropy / ln K", "the constraint; 1 is chance, 0 is every image settled"),
    "confidence": ("Confidence", "mean probability of the chosen cluster, on training views"),
    "size_entropy": ("Evenness", "entropy of the cluster sizes; 1 is all equal, 0 is all in one"),
    "nonempty_clusters": ("Clusters in use", "how many hold at least one image"),
    "acc": ("Accuracy", "share of images whose cluster is matched to their class; only reported"),
    "nmi": ("NMI", "normalised mutual information with the labels; only reported"),
    "ari": ("ARI", "adjusted Rand index with the labels; only reported"),
    "lr": ("Learning rate", "of the optimiser"),
}


def notices(metrics: dict[str, Any], health: Health, troubles: list[str]) -> list[Notice]:
    """What somebody should know before they believe the clusters, the gravest first."""
    found = [Notice("warning", _sentence(text)) for text in metrics.get("warnings", [])]
    found += [Notice("warning", text) for text in _of_sizes(health)]
    if health.n and health.confidence < UNSURE:
        found.append(
            Notice(
                "warning",
                f"The model is unsure: the mean probability of the chosen cluster is {health.confidence:.0%}. "
                "Look at the least certain images before you use the clusters.",
            )
        )
    if n_bad := metrics.get("n_unreadable", 0):
        found.append(
            Notice(
                "note",
                f"{n_bad:,} of {metrics['n_images']:,} files could not be read and have no cluster; they are listed "
                "under Oddities.",
            )
        )
    found += [Notice("note", text) for text in _of_protocol(metrics)]
    found += [Notice("note", _sentence(text)) for text in [*metrics.get("notes", []), *troubles]]
    return found


def _of_sizes(health: Health) -> list[str]:
    sizes: NDArray[np.int64] = health.sizes
    mean = health.n / max(len(sizes), 1)
    said = []
    if empty := int((sizes == 0).sum()):
        said.append(
            f"{empty:,} of {len(sizes):,} clusters {'is' if empty == 1 else 'are'} empty: "
            "a smaller K may fit these images better."
        )
    if mean and sizes.max(initial=0) > UNEVEN * mean:
        said.append(
            f"Cluster {int(sizes.argmax())} holds {sizes.max() / health.n:.0%} of the images, "
            f"{sizes.max() / mean:.0f} times the equal share. The method prefers clusters of equal size; where one is "
            "this large, look whether it is a heap of everything else."
        )
    return said


def _of_protocol(metrics: dict[str, Any]) -> list[str]:
    protocol, said = metrics.get("protocol", {}), []
    if protocol.get("backbone_saw_labels"):
        seen = protocol.get("backbone_trained_with") or "labels"
        said.append(
            f"The frozen backbone {protocol.get('backbone', '')} was itself trained with labels ({seen}). "
            "That is fine for sorting images; scores reached with it say nothing about learning without labels."
        )
    elif protocol.get("backbone_saw_labels", False) is None:
        said.append("Whether the frozen backbone was trained with labels is not known; be careful with its scores.")
    if "acc" in metrics and str(protocol.get("split", "")).startswith("all images"):
        said.append("The scores are of the images that were trained on: this source has no test split.")
    return said


def scored(metrics: dict[str, Any]) -> str:
    """What the scores are of."""
    protocol = metrics.get("protocol", {})
    if "acc" not in metrics:
        return ""
    split = str(protocol.get("split", ""))
    what = "all images, trained on too" if split.startswith("all images") else f"{split} split"
    return f"{what} ({protocol.get('n_scored', 0):,} images), last epoch"


def about(metrics: dict[str, Any], environment: dict[str, Any]) -> list[tuple[str, str]]:
    """How the run was made, for the foot of the page."""
    protocol = metrics.get("protocol", {})
    packages = environment.get("packages", {})
    rows = [
        ("Method", protocol.get("method")),
        ("Trained on", protocol.get("trained_on")),
        ("Backbone", protocol.get("backbone")),
        ("Features", protocol.get("features")),
        ("Epochs", protocol.get("epoch")),
        ("Seed", protocol.get("seed")),
        ("Chosen from", _attempts(protocol)),
        ("Labels used to choose anything", "yes" if protocol.get("labels_used_for_selection") else "no"),
        ("Scored on", scored(metrics) or "nothing: no labels"),
        ("Training time", duration(metrics.get("seconds"))),
        ("Device", _device(environment)),
        ("Made with", ", ".join(f"{name} {number}" for name, number in packages.items())),
        ("Command", " ".join(["cdclust", *map(str, environment.get("command", [])[1:])])),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def _attempts(protocol: dict[str, Any]) -> str | None:
    n = protocol.get("attempts")
    return f"{n} networks, by the {protocol.get('chosen_by')}" if n else None


def _device(environment: dict[str, Any]) -> str:
    parts = [environment.get("device"), environment.get("precision"), environment.get("processor")]
    return ", ".join(str(part) for part in parts if part)


def duration(seconds: float | None) -> str | None:
    """Seconds as people say them."""
    if seconds is None:
        return None
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def _sentence(text: str) -> str:
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."
