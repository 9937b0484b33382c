"""Batch statistics that are shared only within parts of a batch, one way for processors and one for accelerators.

With a queue, statistics of the whole batch would tell a positive (same batch) from every negative (older ones).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def forward_in_parts(network: nn.Module, images: Tensor, parts: int) -> Tensor:
    """network(images), but batch statistics are shared only within each of `parts` parts of the batch.

    A processor is fastest part by part, which its cache likes; an accelerator waits for every launch, so there the
    parts lie side by side in one pass.
    """
    if parts == 1:
        return _called(network, images)
    if images.device.type == "cpu" or len(images) % parts:
        return torch.cat([_called(network, part) for part in images.tensor_split(parts)])
    with _statistics_of_parts(network, parts):
        return _called(network, images)


@torch.no_grad()
def shuffled_forward(network: nn.Module, images: Tensor, parts: int) -> Tensor:
    """forward_in_parts in random order, so that no key shares its statistics' company with its query."""
    if parts == 1:
        return _called(network, images)
    order = torch.randperm(len(images)).to(images.device)
    return forward_in_parts(network, images[order], parts)[order.argsort()]


def keep_running_statistics_slow(network: nn.Module, parts: int) -> None:
    """Let `parts` updates a step move a network's running statistics as far as one of the whole batch would."""
    for module in network.modules():
        if isinstance(module, _BatchNorm) and module.momentum is not None:
            module.momentum = 1 - (1 - module.momentum) ** (1 / parts)


def _called(network: nn.Module, images: Tensor) -> Tensor:
    result: Tensor = network(images)
    return result


@contextmanager
def _statistics_of_parts(network: nn.Module, parts: int) -> Iterator[None]:
    """While it lasts, every batch normalisation of the network works in parts."""
    modules = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    for module in modules:
        module.forward = _in_parts(module, parts)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        for module in modules:
            del module.forward


def _in_parts(module: _BatchNorm, parts: int) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        if not module.training:
            return type(module).forward(module, x)
        return batch_norm_in_parts(module, x, parts)

    return forward


def batch_norm_in_parts(module: _BatchNorm, x: Tensor, parts: int) -> Tensor:
    """The parts of x (B, C, ...) as further channels of one batch normalisation."""
    batch, channels, *places = x.shape
    beside = x.view(parts, batch // parts, channels, *places).transpose(0, 1)
    beside = beside.reshape(batch // parts, parts * channels, *places)
    weight = None if module.weight is None else module.weight.repeat(parts)
    bias = None if module.bias is None else module.bias.repeat(parts)
    running: list[Tensor | None] = [None, None]
    if module.running_mean is not None and module.running_var is not None:
        running = [module.running_mean.repeat(parts), module.running_var.repeat(parts)]
    done = F.batch_norm(beside, running[0], running[1], weight, bias, True, module.momentum or 0.0, module.eps)
    with torch.no_grad():
        if module.running_mean is not None and module.num_batches_tracked is not None:
            _follow(module, running, parts)
            module.num_batches_tracked.add_(parts)
    whole = done.view(batch // parts, parts, channels, *places).transpose(0, 1)
    return whole.reshape(batch, channels, *places)


def _follow(module: _BatchNorm, running: list[Tensor | None], parts: int) -> None:
    """Move the running statistics as `parts` updates one after the other would, all from the same start.

    Each part's own update is known; in a row, an earlier one is forgotten a little by every later one.
    """
    momentum = module.momentum or 0.0
    for kept, updated in zip((module.running_mean, module.running_var), running, strict=True):
        assert kept is not None
        assert updated is not None
        step = updated.view(parts, -1) - (1 - momentum) * kept  # momentum times each part's statistic
        later = torch.arange(parts - 1, -1, -1, device=kept.device, dtype=kept.dtype)
        forgotten = (1 - momentum) ** later
        kept.mul_((1 - momentum) ** parts).add_((step * forgotten[:, None]).sum(dim=0))
