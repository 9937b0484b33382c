"""Optimisers and the learning rate over time."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from cdclust.settings import OptimizerSettings


class LARS(Optimizer):
    """SGD whose step is scaled, a tensor at a time, by |weight| / |gradient| (You et al. 2017, as in MoCo v3).

    Vectors - biases and the scales of normalisation - are neither decayed nor adapted.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter],
        lr: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = 0.001,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self, _closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group)

    def _move(self, p: Tensor, group: dict[str, Any]) -> None:
        update = p.grad
        assert update is not None
        if p.ndim > 1:
            update = update.add(p, alpha=group["weight_decay"])
            p_norm, update_norm = p.norm(), update.norm()
            usable = (p_norm > 0) & (update_norm > 0)
            update = update * torch.where(usable, group["trust"] * p_norm / update_norm, 1.0)
        state = self.state[p]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(p)
        state["momentum"].mul_(group["momentum"]).add_(update)
        p.add_(state["momentum"], alpha=-group["lr"])


def build_optimizer(settings: OptimizerSettings, network: nn.Module) -> Optimizer:
    """The recipe's optimiser over what is trainable."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    if settings.name == "lars":
        return LARS(parameters, settings.lr, settings.momentum, settings.weight_decay)
    vectors = [p for p in parameters if p.ndim <= 1 and not settings.decay_norms]
    held = {id(p) for p in vectors}
    groups = [
        {"params": [p for p in parameters if id(p) not in held], "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if settings.name == "adamw":
        return AdamW(groups, lr=settings.lr)
    return SGD(groups, lr=settings.lr, momentum=settings.momentum)


def lr_factor(step: int, total: int, warmup: int, schedule: str) -> float:
    """The share of the highest learning rate at a step: a line up over `warmup` steps, then a half cosine down."""
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))
