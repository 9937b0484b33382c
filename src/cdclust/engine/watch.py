"""What a run says of itself while it trains: figures that need no label, and warnings in words."""

import math

import torch
from torch import Tensor, nn

from cdclust.errors import UserError
from cdclust.methods import Losses


class Diverged(UserError):
    """The loss is no number any more."""


class Watch:
    """Sums over an epoch's steps, kept on the device so that no step waits for them."""

    def __init__(self, n_clusters: int) -> None:
        self.n_clusters = n_clusters
        self.steps = 0
        self.sums: dict[str, Tensor] = {}

    def add(self, losses: Losses) -> None:
        """Take in a step."""
        self._add("loss", losses.total.detach())
        for name, value in losses.terms.items():
            self._add(name, value)
        if losses.probabilities is not None:
            confidence, cluster = losses.probabilities.max(dim=1)
            self._add("confidence", confidence.mean())
            self._add("sizes", torch.bincount(cluster, minlength=self.n_clusters).float())
        self.steps += 1

    def _add(self, name: str, value: Tensor) -> None:
        self.sums[name] = self.sums[name] + value if name in self.sums else value.clone()

    def figures(self) -> dict[str, float]:
        """Means over the epoch so far, and what follows from them: CE / ln K, evenness and number of clusters."""
        figures = {name: float(total) / self.steps for name, total in self.sums.items() if name != "sizes"}
        if "cross_entropy" in figures:
            figures["cross_entropy_over_ln_k"] = figures["cross_entropy"] / math.log(self.n_clusters)
        if "sizes" in self.sums:
            share = self.sums["sizes"].double() / self.sums["sizes"].sum()
            entropy = -torch.special.xlogy(share, share).sum()
            figures["size_entropy"] = float(entropy) / math.log(self.n_clusters)
            figures["largest_share"] = float(share.max())
            figures["nonempty_clusters"] = int((share > 0).sum())
        return figures

    def check(self, epoch: int, step: int) -> None:
        """Stop a run whose loss has become NaN or infinite."""
        broken = [name for name, total in self.sums.items() if not bool(torch.isfinite(total).all())]
        if broken:
            raise Diverged(
                f"training diverged in epoch {epoch + 1} (step {step}): {', '.join(broken)} is not a finite number. "
                "Lower optimizer.lr, set optimizer.clip=1, or use --precision fp32; without normalise_z_c this is "
                "what the paper reports too."
            )

    def state_dict(self) -> dict[str, object]:
        """The sums so far, for a checkpoint in mid-epoch."""
        return {"steps": self.steps, "sums": self.sums}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Go on from a checkpoint's sums."""
        self.steps, self.sums = int(state["steps"]), dict(state["sums"])  # type: ignore[call-overload]


def check_weights(network: nn.Module, epoch: int) -> None:
    """Stop a run whose weights have become NaN or infinite: a last step can do that behind a finite loss."""
    if not all(bool(torch.isfinite(p).all()) for p in network.parameters()):
        raise Diverged(f"training diverged in epoch {epoch + 1}: weights are not finite. Lower optimizer.lr")


def warnings(figures: dict[str, float], n_negatives: int, n_clusters: int, pretext: bool = False) -> list[str]:
    """What is wrong by the look of an epoch's figures, in words, with what to try; `pretext`: z_c is not in use yet."""
    found = []
    plateau = math.log(1 + n_negatives)
    if abs(figures["info_nce"] - plateau) < 0.02 * plateau and figures["positive_n"] > 0.98:
        found.append(
            f"the features are constant: InfoNCE stands at ln(1 + {n_negatives} negatives) = {plateau:.2f} although "
            "both views of an image agree. Lower optimizer.lr, set head.batch_norm=true or lengthen "
            "optimizer.warmup_epochs"
        )
    if pretext:
        return found
    if "largest_share" in figures and (
        figures["nonempty_clusters"] == 1 or figures["largest_share"] > 0.9 + 0.1 / n_clusters
    ):
        found.append(
            f"{figures['largest_share']:.0%} of the images are in one cluster. Raise objective.alpha, lower "
            "objective.t or raise training.batch_size"
        )
    elif "nonempty_clusters" in figures and figures["nonempty_clusters"] < 0.5 * n_clusters:
        found.append(
            f"only {figures['nonempty_clusters']} of {n_clusters} clusters hold images. Raise training.batch_size or "
            "objective.sinkhorn_queue, or ask for fewer clusters"
        )
    return found
