"""The two things an objective needs of other processes: a sum (or maximum) and a gather that keeps gradients.

`group=None` means one process; nothing is initialised or asked then.
"""

from typing import TypeAlias

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_nn
from torch import Tensor

Group: TypeAlias = "dist.ProcessGroup | None"


def rank_and_world(group: Group) -> tuple[int, int]:
    """This process's place among how many."""
    return (0, 1) if group is None else (dist.get_rank(group), dist.get_world_size(group))


def all_sum(x: Tensor, group: Group) -> Tensor:
    """The sum of x over all processes, without gradient."""
    if group is not None:
        dist.all_reduce(x, group=group)
    return x


def all_max(x: Tensor, group: Group) -> Tensor:
    """The elementwise maximum of x over all processes, without gradient."""
    if group is not None:
        dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group)
    return x


def all_gather_with_gradient(x: Tensor, group: Group) -> Tensor:
    """x (B, D) of every process in rank order, (B * world, D); gradients flow back to each owner."""
    if group is None:
        return x
    gathered: tuple[Tensor, ...] = dist_nn.all_gather(x.contiguous(), group=group)  # type: ignore[no-untyped-call]
    return torch.cat(list(gathered))
