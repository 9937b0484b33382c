"""Device and precision: decided once, here."""

from dataclasses import dataclass

import torch

from cdclust.errors import UsageError

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Compute:
    """Where a run computes, and in what."""

    device: torch.device
    precision: str  # fp32, bf16 or fp16

    @property
    def autocast(self) -> torch.dtype | None:
        """The networks' dtype; none is float32."""
        return DTYPES.get(self.precision)


def resolve_compute(device: str = "auto", precision: str = "auto") -> Compute:
    """The device and precision that `auto` stands for on this machine, or those asked for if it has them."""
    place = _device(device)
    return Compute(place, _precision(precision, place))


def _device(name: str) -> torch.device:
    if name == "auto":
        mps = torch.backends.mps.is_available()
        name = "cuda" if torch.cuda.is_available() else "mps" if mps else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"--device {name}: unknown; write auto, cpu, cuda, cuda:1 or mps") from None
    missing = (device.type == "cuda" and not torch.cuda.is_available()) or (
        device.type == "mps" and not torch.backends.mps.is_available()
    )
    if missing:
        raise UsageError(f"--device {name}: torch {torch.__version__} sees no such device here; write --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device {name}: there are {torch.cuda.device_count()} CUDA devices, counted from 0")
    return device


def _precision(name: str, device: torch.device) -> str:
    if name not in ("auto", "fp32", *DTYPES):
        raise UsageError(f"--precision {name}: unknown; write auto, fp32, bf16 or fp16")
    if name == "fp16" and device.type == "cpu":
        raise UsageError("--precision fp16: a processor trains in bf16 or fp32; write --precision bf16")
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if device.type == "cpu" and cpu_has_bf16() else "fp32"


def cpu_has_bf16() -> bool:
    """Whether the processor multiplies bfloat16 natively; emulated, it is slower than float32."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
