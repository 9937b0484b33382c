"""The state of a run, all of it, in one file that is always whole."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from cdclust.errors import UserError

FORMAT = 1


class Checkpoints:
    """Writes and reads `path`; never leaves half a file, never unpickles code."""

    def __init__(self, path: Path, identity: str, every_seconds: float) -> None:
        self.path, self.identity, self.every_seconds = path, identity, every_seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether the last one is long enough ago."""
        return time.monotonic() - self._last >= self.every_seconds

    def save(self, state: dict[str, Any]) -> None:
        """Replace the file by this state: whoever reads it sees the old one or the new one, whole."""
        beside = self.path.with_name(self.path.name + ".part")
        try:
            with beside.open("wb") as file:
                torch.save({"format": FORMAT, "identity": self.identity, **state}, file)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
            reason = getattr(error, "strerror", None) or "is there space left on the disk?"
            kept = "; the checkpoint before it is kept" if self.path.exists() else ""
            raise UserError(f"cannot write {self.path}: {reason}{kept}") from error
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
        self._last = time.monotonic()

    def load(self, device: torch.device) -> dict[str, Any] | None:
        """The state last saved, or none. Another run's is refused."""
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        except Exception as error:
            raise UserError(f"{self.path} cannot be read ({type(error).__name__}); remove it to start anew") from error
        if state.get("format") != FORMAT:
            raise UserError(f"{self.path} is of format {state.get('format')}, this version reads {FORMAT}")
        if state["identity"] != self.identity:
            raise UserError(f"{self.path} is of a run with other settings or other images; choose another --out")
        return state
