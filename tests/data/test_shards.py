import io
import json
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image

from cdclust.data import available_splits, list_source, load_source, open_stream, read_batches
from cdclust.errors import UserError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (12, 16, 14, 3), dtype=np.uint8)


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def write(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def shards(tmp_path):
    """Three files of four samples: image, class and record."""
    for shard in range(3):
        files = {}
        for i in range(4 * shard, 4 * shard + 4):
            files |= {
                f"{i:03}.cls": str(i % 2).encode(),
                f"{i:03}.png": png(PIXELS[i]),
                f"{i:03}.json": json.dumps({"label": "ab"[i % 2], "who": i % 3}).encode(),
            }
        write(tmp_path / "shards" / f"{shard:06}.tar", files)
    return tmp_path / "shards"


@pytest.fixture
def photos(tmp_path):
    """The same images as files."""
    (tmp_path / "photos").mkdir()
    for i, pixels in enumerate(PIXELS):
        (tmp_path / "photos" / f"{i:03}.png").write_bytes(png(pixels))
    return tmp_path / "photos"


@pytest.mark.parametrize("form", ["braces", "list", "folder", "one"])
def test_images_in_tar_files_are_those_in_a_folder(shards, photos, form):
    spec, n = {
        "braces": (shards / "{000000..000002}.tar", 12),
        "list": (shards / "00000{0,1,2}.tar", 12),
        "folder": (shards, 12),
        "one": (shards / "000000.tar", 4),
    }[form]
    stream = open_stream(spec)
    images = torch.cat([images for _, images, _ in read_batches(stream, range(len(stream)), 8, 5)])
    torch.testing.assert_close(images, load_source(photos, size=8).images[:n], rtol=0, atol=0)
    torch.testing.assert_close(load_source(spec, size=8).images, images, rtol=0, atol=0)
    assert list(stream.keys) == [f"{i // 4:06}.tar/{i:03}.png" for i in range(n)]
    assert stream.labels is None
    assert available_splits(spec) == []
    assert list_source(spec) is None


def test_labels_are_read_only_where_asked(shards):
    assert open_stream(shards, labels="cls").labels.tolist() == [0, 1] * 6
    words = open_stream(shards, labels="json")
    assert (words.class_names, words.labels.tolist()) == (["a", "b"], [0, 1] * 6)
    assert open_stream(shards, labels="json.who").labels.tolist() == [i % 3 for i in range(12)]
    with pytest.raises(UserError, match="no 'txt' beside"):
        open_stream(shards, labels="txt")


def test_a_damaged_label_is_unknown(tmp_path):
    image = png(PIXELS[0])
    hostile = {"a": b'{"label": "x"}', "b": b"[" * 100_000, "c": b"\xff{", "d": b'{"label": [1]}', "e": b" " * 2**21}
    write(tmp_path / "a.tar", {f"{k}.{e}": v for k, v in hostile.items() for e, v in (("png", image), ("json", v))})
    assert open_stream(tmp_path / "a.tar", labels="json").labels.tolist() == [0, -1, -1, -1, -1]


def test_a_missing_shard_is_refused_by_its_name(shards):
    with pytest.raises(UserError, match=r"1 of the 4 tar files .*000003.tar"):
        open_stream(shards / "{000000..000003}.tar")
    with pytest.raises(UserError, match="more than 1,000,000"):
        open_stream(shards / "{0..999999999}.tar")
    with pytest.raises(UserError, match="neither a folder"):
        open_stream(shards / "nowhere.tar")


def test_an_archive_cut_short_keeps_what_lies_before(shards):
    whole = (shards / "000001.tar").read_bytes()
    with tarfile.open(shards / "000001.tar") as tar:
        third = tar.getmember("006.png")
    (shards / "000001.tar").write_bytes(whole[: third.offset_data + 20])
    stream = open_stream(shards)
    images = load_source(shards, size=8)
    bad = {key: status for key, status in zip(images.keys, images.status, strict=True) if status != "ok"}
    assert bad == {"000001.tar/006.png": "unreadable: cut short by the end of its tar file"}
    assert len(images) == 10
    assert stream.notes == ["000001.tar has no end: it may have been cut short behind its last image"]


def test_a_damaged_archive_is_a_line_of_its_own_that_cannot_be_read(shards):
    whole = bytearray((shards / "000001.tar").read_bytes())
    with tarfile.open(shards / "000001.tar") as tar:
        at = tar.getmember("006.cls").offset
    whole[at + 3] ^= 255
    (shards / "000001.tar").write_bytes(whole)
    (shards / "000002.tar").write_text("<html>")
    images = load_source(shards, size=8, labels="cls")
    bad = {key: status for key, status in zip(images.keys, images.status, strict=True) if status != "ok"}
    assert bad == {
        "000001.tar": "unreadable: damaged behind 005.png: nothing further can be read of this file",
        "000002.tar": "unreadable: not a tar file: nothing further can be read of this file",
    }
    assert images.image_labels.tolist() == [0, 1, 0, 1, 0, 1]
    with pytest.raises(UserError, match=r"000001\.tar"):
        load_source(shards, size=8, strict=True)


def test_nothing_in_an_archive_is_followed_extracted_or_believed(tmp_path):
    image = png(PIXELS[0])
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name in ("../../up.png", "/root.png", "._hidden.png", "fine.png", "new\nline.png"):
            info = tarfile.TarInfo(name)
            info.size = len(image)
            tar.addfile(info, io.BytesIO(image))
        link = tarfile.TarInfo("link.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
        huge = tarfile.TarInfo("huge.png")
        huge.size = 2**40
        tar.addfile(huge)  # of which nothing follows
    before = sorted(tmp_path.iterdir())
    images = load_source(tmp_path / "a.tar", size=8)
    assert images.keys == [
        "a.tar/../../up.png",
        "a.tar//root.png",
        "a.tar/fine.png",
        "a.tar/new\nline.png",
        "a.tar/huge.png",
    ]
    assert images.status[:4] == ["ok"] * 4
    assert "too large (1,048,576 MB" in images.status[4]
    assert sorted(tmp_path.iterdir()) == before


def test_photos_beside_an_archive_are_what_is_meant(photos):
    write(photos / "backup.tar", {"a.png": png(PIXELS[0])})
    assert len(open_stream(photos)) == 12
    (photos / "sub").mkdir()
    (photos / "000.png").rename(photos / "sub" / "000.png")
    for path in photos.glob("*.png"):
        path.unlink()
    assert open_stream(photos).keys == ["sub/000.png"]


def test_a_changed_archive_has_another_fingerprint(shards):
    first = open_stream(shards).fingerprint()
    assert open_stream(shards).fingerprint() == first
    write(shards / "000001.tar", {"000.png": png(PIXELS[0])})
    assert open_stream(shards).fingerprint() != first


def test_a_compressed_archive_and_one_without_images_are_refused_in_words(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match="unpack it to"):
        open_stream(tmp_path / "a.tar.gz")
    write(tmp_path / "b.tar", {"a.txt": b"x"})
    with pytest.raises(UserError, match="no images"):
        open_stream(tmp_path / "b.tar")
