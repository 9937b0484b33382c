import importlib.util

import numpy as np
import pytest
from PIL import Image

from cdclust.data import load_source
from cdclust.errors import UserError


@pytest.fixture
def photos(tmp_path):
    for i, name in enumerate(["a.png", "sub/b.png", "c d.png"]):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (50 * i, 0, 0)).save(path)
    return tmp_path / "photos"


def reds(images):
    return images.images[:, 0, 0, 0].tolist()


def test_paths_start_at_the_manifests_folder(photos, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (photos / "list.txt").write_text(f"c d.png\n\nsub/b.png\r\n{photos / 'a.png'}\n")
    images = load_source("photos/list.txt")
    assert reds(images) == [100, 50, 0]
    assert list(images.keys) == ["c d.png", "sub/b.png", str(photos / "a.png")]


def test_csv_with_words_as_labels(photos):
    (photos / "list.csv").write_text("\ufefflabel,path,kind\ndog,a.png,x\n,sub/b.png,y\ncat,c d.png,x\n", "utf-8")
    images = load_source(photos / "list.csv")
    assert images.class_names == ["cat", "dog"]
    assert images.labels.tolist() == [1, -1, 0]
    assert load_source(photos / "list.csv", labels="kind").labels.tolist() == [0, 1, 0]


def test_csv_with_numbers_as_labels_keeps_them(photos):
    (photos / "list.csv").write_text("path,label\na.png,7\nsub/b.png,3\nc d.png,\n")
    assert load_source(photos / "list.csv").labels.tolist() == [7, 3, -1]


def test_csv_reads_back_the_names_csv_has_to_quote(photos):
    (photos / "a.png").rename(photos / 'new\nline,"x".png')
    (photos / "list.csv").write_text('path\n"new\nline,""x"".png"\nsub/b.png\n')
    assert load_source(photos / "list.csv").status == ["ok", "ok"]


def test_csv_without_labels_has_none(photos):
    (photos / "list.csv").write_text("path\na.png\n")
    assert load_source(photos / "list.csv").labels is None


def test_parquet(photos):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"path": ["a.png", "c d.png", "sub/b.png"], "label": [4, None, 2]})
    parquet.write_table(table, photos / "list.parquet")
    images = load_source(photos / "list.parquet")
    assert reds(images) == [0, 100, 50]
    assert images.labels.tolist() == [4, -1, 2]
    (photos / "list.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(UserError, match="cannot be read"):
        load_source(photos / "list.parquet")


def test_parquet_without_its_extra_says_what_to_install(photos, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (photos / "list.parquet").write_bytes(b"")
    with pytest.raises(UserError, match=r"pip install 'cdclust\[parquet\]'"):
        load_source(photos / "list.parquet")


def test_a_file_that_is_missing_keeps_its_row(photos):
    (photos / "list.txt").write_text("a.png\nnowhere.png\nc d.png\nnul\0.png\nsub/b.png\n")
    images = load_source(photos / "list.txt")
    assert images.status[1] == "unreadable: no such file"
    assert images.status[3].startswith("unreadable: ")
    assert images.rows.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("name", "content", "labels", "words"),
    [
        ("a.txt", "\n\n", None, "names no images"),
        ("a.csv", "", None, "no column 'path'"),
        ("a.csv", "file\na.png\n", None, "no column 'path'; its columns are file"),
        ("a.csv", "path\n", None, "names no images"),
        ("a.csv", "path,label\na.png,1\n", "species", "no column 'species'; its columns are path, label"),
        ("a.txt", "a.png\n", "species", "list of paths"),
    ],
)
def test_a_wrong_manifest_is_refused_in_one_line(photos, name, content, labels, words):
    (photos / name).write_text(content)
    with pytest.raises(UserError, match=words):
        load_source(photos / name, labels=labels)


def test_a_list_of_paths_keeps_its_order_and_its_names(photos):
    paths = [photos / "c d.png", str(photos / "a.png")]
    images = load_source(paths)
    assert reds(images) == [100, 0]
    assert list(images.keys) == [str(p) for p in paths]
    assert load_source(np.array([str(p) for p in paths])).keys == images.keys
    assert load_source(photos / "a.png").n_total == 1
