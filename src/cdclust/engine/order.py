"""Which images a step sees and what chance it has: both from (seed, epoch or step) alone.

A step can therefore be repeated by itself. Resuming needs no generator's state, and loses nothing.
"""

import hashlib
from collections.abc import Iterator

import torch
from torch import Tensor


def mix(*numbers: int | str) -> int:
    """A seed that differs wherever any of the numbers does."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*numbers: int | str) -> torch.Generator:
    """A generator of its own, on the processor, seeded by `mix`."""
    return torch.Generator().manual_seed(mix(*numbers))


def in_turn(rows: Tensor, size: int) -> Iterator[Tensor]:
    """Rows as they are, `size` at a time."""
    return (rows[at : at + size] for at in range(0, len(rows), size))


def batches(n_images: int, batch_size: int, seed: int, epoch: int) -> list[Tensor]:
    """An epoch's batches of row numbers: a permutation cut into full batches, what is left over left out."""
    order = torch.randperm(n_images, generator=generator(seed, "order", epoch))
    full = n_images // batch_size * batch_size
    return list(order[:full].view(-1, batch_size))
