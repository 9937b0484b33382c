"""SIGKILL at any moment, as the machine's own out-of-memory killer would do it."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-c", "from cdclust.cli import main; main()"]
KEPT = ("model.safetensors", "assignments.csv", "embeddings.npy", "recipe.yaml")


def untimed(log: str) -> list[dict]:
    lines = [json.loads(line) for line in log.splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "images_per_second")} for line in lines]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_run_that_is_killed_at_random_moments_and_resumed_ends_bit_identical(shell, settings, source, tmp_path):
    changes = {"epochs": 12, "checkpoint_seconds": 0, "objective.sinkhorn_queue": 20}
    words = ["fit", str(source), *settings(changes), "--device", "cpu"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert shell(*words, "--out", whole).status == 0

    chance, checkpoint = random.Random(0), killed / "checkpoint.pt"
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    for _ in range(3):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = subprocess.Popen(
            [*COMMAND, *words, "--out", str(killed), *(["--resume"] if killed.exists() else [])],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                break
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.15))
        assert process.poll() is None, f"it should still be training, but said: {process.stderr.read()}"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (killed / "metrics.json").exists()

    assert shell(*words, "--out", killed, "--resume").status == 0
    for name in KEPT:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    assert untimed((killed / "log.jsonl").read_text()) == untimed((whole / "log.jsonl").read_text())
    assert not list(killed.glob("*.part"))
