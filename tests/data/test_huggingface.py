"""Data sets are made here and saved to disk; nothing is fetched."""

import builtins
import importlib.util
import io

import numpy as np
import pytest
import torch
from PIL import Image

from cdclust.data import available_splits, load_source, open_stream, read_batches
from cdclust.errors import UserError

datasets = pytest.importorskip("datasets")
N = 10
PIXELS = np.random.default_rng(0).integers(0, 256, (N, 16, 14, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def _nothing_is_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf-cache")
    datasets.disable_progress_bars()


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def made(n=N, **features):
    columns = {
        "kind": [i % 2 for i in range(n)],
        "photo": [Image.fromarray(pixels) for pixels in PIXELS[:n]],
        "word": ["x" if i < n // 2 else "y" for i in range(n)],
        "number": list(range(n)),
    }
    kinds = {
        "kind": datasets.ClassLabel(names=["cat", "dog"]),
        "photo": datasets.Image(),
        "word": datasets.Value("string"),
        "number": datasets.Value("int64"),
    }
    return datasets.Dataset.from_dict(columns, datasets.Features(kinds | features))


@pytest.fixture
def saved(tmp_path):
    """With two splits."""
    datasets.DatasetDict({"train": made(), "test": made(4)}).save_to_disk(tmp_path / "saved")
    return f"hf:{tmp_path / 'saved'}"


def pixels(stream):
    return torch.cat([images for _, images, _ in read_batches(stream, range(len(stream)), 8, 4)])


def expected(n=N):
    return load_source([Image.fromarray(each) for each in PIXELS[:n]], size=8).images


def test_the_images_are_found_by_their_type_and_read_as_they_are(saved):
    stream = open_stream(saved)
    torch.testing.assert_close(pixels(stream), expected(), rtol=0, atol=0)
    torch.testing.assert_close(load_source(saved, size=8).images, expected(), rtol=0, atol=0)
    assert list(stream.keys) == [str(i) for i in range(N)]
    assert (stream.split, stream.labels) == ("train", None)


def test_labels_are_those_of_the_column_that_is_named(saved):
    stream = open_stream(saved, labels="kind")
    assert (stream.labels.tolist(), stream.class_names) == ([0, 1] * 5, ["cat", "dog"])
    assert open_stream(saved, labels="word").class_names == ["x", "y"]
    assert open_stream(saved, labels="number").labels.tolist() == list(range(N))
    for wrong in ("label", "photo"):
        with pytest.raises(UserError, match=f"no column '{wrong}' to take labels from; it has kind, word, number"):
            open_stream(saved, labels=wrong)


def test_splits_are_said_behind_the_name_or_beside_it(saved):
    assert available_splits(saved) == ["train", "test"]
    assert available_splits(f"{saved}:test") == []
    assert len(open_stream(f"{saved}:test")) == 4
    assert len(open_stream(saved, split="test")) == 4
    assert len(open_stream(saved, split="all")) == 14
    torch.testing.assert_close(pixels(open_stream(saved, split="test+train")), torch.cat([expected(4), expected()]))
    with pytest.raises(UserError, match="has no 'val'; it has train, test"):
        open_stream(f"{saved}:val")
    with pytest.raises(UserError, match="say it once"):
        open_stream(f"{saved}:test", split="train")


def test_a_part_of_a_split_is_what_its_brackets_say(saved):
    torch.testing.assert_close(pixels(open_stream(f"{saved}:train[2:5]")), expected()[2:5])
    torch.testing.assert_close(pixels(open_stream(saved, split="train[50%:]")), expected()[5:])
    assert len(open_stream(f"{saved}:train[:1000]")) == N
    with pytest.raises(UserError, match="no images"):
        open_stream(f"{saved}:train[5:5]")


def test_one_set_without_splits_is_all_of_it(tmp_path):
    made().save_to_disk(tmp_path / "one")
    assert available_splits(f"hf:{tmp_path / 'one'}") == []
    assert open_stream(f"hf:{tmp_path / 'one'}").split == "all"
    with pytest.raises(UserError, match="write hf:NAME"):
        open_stream(f"hf:{tmp_path / 'one'}:test")


def test_a_folder_of_parquet_files_is_read_with_its_splits(tmp_path):
    (tmp_path / "pq").mkdir()
    made().to_parquet(tmp_path / "pq" / "train-00000-of-00001.parquet")
    made(4).to_parquet(tmp_path / "pq" / "test-00000-of-00001.parquet")
    text = f"hf:{tmp_path / 'pq'}"
    assert set(available_splits(text)) == {"train", "test"}
    torch.testing.assert_close(pixels(open_stream(text)), expected())
    assert len(open_stream(f"{text}:default:test")) == 4
    assert open_stream(text).fingerprint() == open_stream(text).fingerprint()


def test_bytes_alone_and_files_by_their_path_are_images_too(tmp_path):
    raw = datasets.Dataset.from_dict({"jpg": [png(each) for each in PIXELS]})
    raw.save_to_disk(tmp_path / "raw")
    torch.testing.assert_close(pixels(open_stream(f"hf:{tmp_path / 'raw'}")), expected())
    paths = []
    for i, each in enumerate(PIXELS):
        paths.append(str(tmp_path / f"{i}.png"))
        Image.fromarray(each).save(paths[-1])
    kind = datasets.Features({"i": datasets.Image()})
    datasets.Dataset.from_dict({"i": paths}, kind).save_to_disk(tmp_path / "by-path")
    torch.testing.assert_close(pixels(open_stream(f"hf:{tmp_path / 'by-path'}")), expected())


def test_a_damaged_or_missing_image_is_a_status(tmp_path):
    content = [png(each) for each in PIXELS]
    content[2], content[5], content[7] = b"<html>no</html>", None, content[7][:60]
    datasets.Dataset.from_dict({"i": content}).save_to_disk(tmp_path / "bad")
    images = load_source(f"hf:{tmp_path / 'bad'}", size=8)
    assert [i for i, status in enumerate(images.status) if status != "ok"] == [2, 5, 7]
    assert "web page" in images.status[2]
    assert "no image in this row" in images.status[5]
    with pytest.raises(UserError, match="'2'"):
        load_source(f"hf:{tmp_path / 'bad'}", size=8, strict=True)


def test_rows_are_not_read_before_they_are_asked_for(tmp_path, monkeypatch):
    made().save_to_disk(tmp_path / "one")
    read = []
    real = datasets.Dataset.__getitem__
    monkeypatch.setattr(datasets.Dataset, "__getitem__", lambda self, key: read.append(key) or real(self, key))
    stream = open_stream(f"hf:{tmp_path / 'one'}")
    assert read == []
    stream.read(3, 8)
    assert read == [3]


def test_another_data_set_in_the_same_place_has_another_fingerprint(tmp_path):
    text = f"hf:{tmp_path / 'one'}"
    made().save_to_disk(tmp_path / "one")
    first = open_stream(text).fingerprint()
    assert open_stream(text).fingerprint() == first
    made().map(lambda row: {"photo": row["photo"].rotate(90)}).save_to_disk(tmp_path / "two")
    assert open_stream(f"hf:{tmp_path / 'two'}").fingerprint() != first


def test_what_cannot_be_opened_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    datasets.Dataset.from_dict({"a": [1, 2]}).save_to_disk(tmp_path / "numbers")
    made().save_to_disk(tmp_path / "hurt")
    (tmp_path / "hurt" / "data-00000-of-00001.arrow").write_bytes(b"x" * 100)
    for name, words in (
        ("empty", "cannot be opened"),
        ("numbers", "no column of images; its columns are a"),
        ("hurt", "cannot be opened"),
    ):
        with pytest.raises(UserError, match=words) as error:
            open_stream(f"hf:{tmp_path / name}")
        assert "\n" not in str(error.value)


def test_without_the_library_its_install_command_is_said(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "datasets" else real(name))
    imported = builtins.__import__

    def refuse(name, *more, **named):
        assert name != "datasets"
        return imported(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UserError, match=r"pip install 'cdclust\[hf\]'"):
        open_stream("hf:mnist")
