import pytest
import torch

from cdclust.engine import checkpoint
from cdclust.engine.checkpoint import Checkpoints
from cdclust.errors import UserError

CPU = torch.device("cpu")


@pytest.fixture
def kept(tmp_path):
    return Checkpoints(tmp_path / "checkpoint.pt", "mine", every_seconds=0)


def test_what_is_saved_is_loaded(kept):
    assert kept.load(CPU) is None
    kept.save({"step": 3, "model": {"w": torch.arange(4)}})
    found = kept.load(CPU)
    assert found["step"] == 3
    assert torch.equal(found["model"]["w"], torch.arange(4))


def test_it_loads_without_unpickling_code(kept):
    kept.save({"step": 3})
    assert torch.load(kept.path, weights_only=True)["step"] == 3


class Crash(Exception):
    pass


@pytest.mark.parametrize("error", [Crash, OSError, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["fsync", "save"])
def test_a_crash_while_writing_leaves_the_old_one_whole(kept, monkeypatch, where, error):
    kept.save({"step": 1})

    def crash(*_):
        raise error("on purpose")

    monkeypatch.setattr(*((checkpoint.os, "fsync") if where == "fsync" else (checkpoint.torch, "save")), crash)
    with pytest.raises((UserError, Crash, KeyboardInterrupt)):
        kept.save({"step": 2})
    monkeypatch.undo()
    assert kept.load(CPU)["step"] == 1
    assert [path.name for path in kept.path.parent.iterdir()] == ["checkpoint.pt"]


def test_a_full_disk_is_said_in_words(kept, monkeypatch):
    monkeypatch.setattr(checkpoint.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(UserError, match=r"cannot write .*checkpoint\.pt.*No space left") as error:
        kept.save({"step": 1})
    assert "\n" not in str(error.value)


def test_a_half_written_file_beside_it_does_not_matter(kept):
    kept.save({"step": 1})
    kept.path.with_name("checkpoint.pt.part").write_bytes(b"half")
    assert kept.load(CPU)["step"] == 1
    kept.save({"step": 2})
    assert kept.load(CPU)["step"] == 2


def test_another_runs_checkpoint_is_refused(kept):
    kept.save({"step": 1})
    with pytest.raises(UserError, match="other settings or other images"):
        Checkpoints(kept.path, "yours", 0).load(CPU)


def test_another_format_is_refused(kept):
    torch.save({"format": 99, "identity": "mine"}, kept.path)
    with pytest.raises(UserError, match="format 99"):
        kept.load(CPU)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"no checkpoint", lambda b: b""])
def test_a_damaged_file_is_said_in_words(kept, damage):
    kept.save({"step": 1, "model": {"w": torch.randn(1000)}})
    kept.path.write_bytes(damage(kept.path.read_bytes()))
    with pytest.raises(UserError, match=r"cannot be read .* remove it to start anew") as error:
        kept.load(CPU)
    assert "\n" not in str(error.value)


def test_a_file_that_would_run_code_is_refused(kept, tmp_path):
    class Evil:
        def __reduce__(self):
            return (tmp_path.joinpath("harmed").touch, ())

    torch.save({"format": 1, "identity": "mine", "step": Evil()}, kept.path)
    with pytest.raises(UserError, match="cannot be read"):
        kept.load(CPU)
    assert not (tmp_path / "harmed").exists()


def test_it_is_due_again_only_after_its_time(kept, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    kept = Checkpoints(kept.path, "mine", every_seconds=60)
    assert not kept.due()
    now[0] += 60
    assert kept.due()
    kept.save({"step": 1})
    assert not kept.due()
