"""`cdclust doctor`: what this machine offers and what a run would use."""

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from cdclust.data import DATA_SETS, data_root
from cdclust.engine.compute import resolve_compute

EXTRAS = {"timm": "timm", "parquet": "pyarrow"}


def examine() -> dict[str, Any]:
    """Findings by name, in words."""
    compute = resolve_compute()
    found: dict[str, Any] = {"python": sys.version.split()[0]}
    found |= {name: _version(name) for name in ("cdclust", "torch", "torchvision")}
    found["device used"] = f"{compute.device} in {compute.precision}"
    found["CUDA devices"] = ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())) or "none"
    found["cores, threads"] = f"{os.cpu_count()}, {torch.get_num_threads()}"
    found["memory"] = f"{_memory() / 2**30:.1f} GiB" if _memory() else "unknown"
    found["disk free here"] = f"{shutil.disk_usage(Path.cwd()).free / 2**30:.1f} GiB"
    found["data sets at"] = f"{data_root()} ({'exists' if data_root().exists() else 'does not exist'})"
    found["data sets known"] = ", ".join(DATA_SETS)
    for extra, module in EXTRAS.items():
        there = find_spec(module) is not None
        found[f"extra: {extra}"] = "installed" if there else f"not installed: pip install 'cdclust[{extra}]'"
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
