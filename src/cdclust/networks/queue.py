"""Recent vectors, oldest overwritten first: MoCo's negatives, or the z_c that join Sinkhorn's batch."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Queue(nn.Module):
    """The last `capacity` vectors. It is all buffers, so a checkpoint holds it and a resumed run goes on with it.

    It starts as random directions, each of the `parts` of a vector normalised by itself as real ones are.
    """

    vectors: Tensor
    place: Tensor
    seen: Tensor

    def __init__(self, capacity: int, parts: Sequence[int]) -> None:
        super().__init__()
        start = torch.cat([F.normalize(torch.randn(capacity, size), dim=1) for size in parts if size], dim=1)
        self.register_buffer("vectors", start)  # (capacity, sum(parts))
        self.register_buffer("place", torch.zeros((), dtype=torch.long))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def push(self, batch: Tensor) -> None:
        """Put a batch of any size over the oldest vectors, wrapping at the end."""
        capacity, count = len(self.vectors), len(batch)
        where = (self.place + torch.arange(count, device=batch.device)) % capacity
        newest = batch[-capacity:].to(self.vectors.dtype)
        self.vectors[where[-capacity:]] = newest
        self.place.copy_((self.place + count) % capacity)
        self.seen.add_(count)
