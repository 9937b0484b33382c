import os

# The suite is run in parallel; one thread a process is faster, and reproducible.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread_and_a_known_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
