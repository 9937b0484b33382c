import os
import threading

import numpy as np
import pytest
from PIL import Image

from cdclust.data import files as files_module
from cdclust.data import list_source, load_source
from cdclust.data import stream as stream_module
from cdclust.data.decode import Unreadable, decode
from cdclust.errors import UserError

RED, WHITE = (250, 10, 20), (255, 255, 255)


def save(path, colour=RED, size=(12, 10), **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path, **settings)
    return path


def top_left_red(mode="RGB", size=(16, 16)):
    """White with a red quarter at the top left."""
    image = Image.new("RGB", size, WHITE)
    image.paste(RED, (0, 0, size[0] // 2, size[1] // 2))
    return image.convert(mode)


def corner(pixels):
    """Which quarter is darkest in green: (row, column)."""
    green = pixels[1].astype(int)
    h, w = green.shape
    means = green[: h // 2 * 2, : w // 2 * 2].reshape(2, h // 2, 2, w // 2).mean((1, 3))
    return divmod(int(means.argmin()), 2)


def test_folders_are_read_to_any_depth_in_sorted_order(tmp_path):
    for name in ("b.png", "a/z.JPG", "a/deep/er/y.Jpeg", "c.webp", "d.gif", "e.bmp", "f.tiff"):
        save(tmp_path / name)
    images = load_source(tmp_path, size=8)
    assert list(images.keys) == ["a/deep/er/y.Jpeg", "a/z.JPG", "b.png", "c.webp", "d.gif", "e.bmp", "f.tiff"]
    assert images.images.shape == (7, 3, 8, 8)
    assert set(images.status) == {"ok"}
    assert images.labels is None
    assert (images.images[:, 0].float() - RED[0]).abs().max() < 12


def test_sub_folders_are_labels_only_when_asked(tmp_path):
    for name in ("dog/a.png", "cat/x/b.png", "cat/c.png", "loose.png"):
        save(tmp_path / name)
    assert load_source(tmp_path).labels is None
    images = load_source(tmp_path, labels="folders")
    assert images.class_names == ["cat", "dog"]
    assert dict(zip(images.keys, images.labels.tolist(), strict=True)) == {
        "cat/c.png": 0,
        "cat/x/b.png": 0,
        "dog/a.png": 1,
        "loose.png": -1,
    }
    with pytest.raises(UserError, match="say folders"):
        load_source(tmp_path, labels="yes")


def test_split_folders_are_no_classes(tmp_path):
    for name in ("train/a/1.png", "train/b/2.png", "val/a/3.png"):
        save(tmp_path / name)
    assert load_source(tmp_path).n_total == 3
    with pytest.raises(UserError, match="train, val"):
        load_source(tmp_path, labels="folders")
    assert load_source(tmp_path, split="train", labels="folders").class_names == ["a", "b"]
    assert list(load_source(tmp_path, split="val").keys) == ["val/a/3.png"]
    with pytest.raises(UserError, match="no 'test'; it has train, val"):
        load_source(tmp_path, split="test")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "tiff", "webp"])
def test_exif_orientation_is_honoured(tmp_path, orientation, ending):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"a.{ending}"
    top_left_red(size=(32, 20)).save(path, exif=exif)
    # By the standard: where the first row and the first column of the stored pixels are seen.
    seen = {1: (0, 0), 2: (0, 1), 3: (1, 1), 4: (1, 0), 5: (0, 0), 6: (0, 1), 7: (1, 1), 8: (1, 0)}
    assert corner(decode(os.fspath(path), 16)) == seen[orientation]
    whole = decode(os.fspath(path), None)
    assert whole.shape == ((3, 20, 32) if orientation < 5 else (3, 32, 20))
    assert corner(whole) == seen[orientation]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "YCbCr", "LAB"])
def test_every_colour_mode_becomes_rgb(tmp_path, mode):
    path = tmp_path / "a.tiff"
    top_left_red(mode).save(path)
    expected = np.asarray(top_left_red(mode).convert("RGB")).transpose(2, 0, 1)
    assert np.abs(decode(os.fspath(path), None).astype(int) - expected).max() <= 1


def test_cmyk_jpegs_are_not_inverted(tmp_path):
    top_left_red("CMYK").save(tmp_path / "a.jpg", quality=95)
    pixels = decode(os.fspath(tmp_path / "a.jpg"), None)
    assert np.abs(pixels[:, 12, 12].astype(int) - 255).max() < 8
    assert np.abs(pixels[:, 3, 3].astype(int) - RED).max() < 20


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparency_is_seen_on_white(tmp_path, mode):
    if mode == "P":
        image = Image.new("P", (16, 16), 0)
        image.putpalette([0, 0, 0, *RED])
        image.paste(1, (0, 0, 8, 8))
        image.save(tmp_path / "a.png", transparency=0)
    else:
        image = Image.new("RGBA", (16, 16), (0, 0, 0, 0))
        image.paste((10, 10, 10, 255), (0, 0, 8, 8))
        image.convert(mode).save(tmp_path / "a.png")
    pixels = decode(os.fspath(tmp_path / "a.png"), 16)
    assert (pixels[:, 12, 12] == 255).all()
    assert pixels[1, 3, 3] == 10


@pytest.mark.parametrize("ending", ["png", "tiff"])
def test_sixteen_bits_keep_their_greys(tmp_path, ending):
    grey = (np.arange(256).reshape(16, 16) * 257).astype(np.uint16)
    Image.fromarray(grey).save(tmp_path / f"a.{ending}")
    pixels = decode(os.fspath(tmp_path / f"a.{ending}"), None)
    np.testing.assert_array_equal(pixels, np.broadcast_to(np.arange(256).reshape(16, 16), (3, 16, 16)))


def test_float_images_are_scaled_and_nan_is_unreadable(tmp_path):
    image = np.full((8, 8), 0.5, np.float32)
    Image.fromarray(image).save(tmp_path / "a.tiff")
    assert (decode(os.fspath(tmp_path / "a.tiff"), None) == 128).all()
    image[0, 0] = np.nan
    Image.fromarray(image).save(tmp_path / "b.tiff")
    with pytest.raises(Unreadable, match="NaN"):
        decode(os.fspath(tmp_path / "b.tiff"), None)


def test_the_centre_is_kept_and_the_short_side_resized(tmp_path):
    image = Image.new("RGB", (90, 30), WHITE)
    image.paste(RED, (30, 0, 60, 30))
    image.save(tmp_path / "a.png")
    pixels = decode(os.fspath(tmp_path / "a.png"), 15)
    assert (pixels[:, :, 1:-1] == np.array(RED).reshape(3, 1, 1)).all()


def test_shrinking_a_jpeg_averages_as_a_full_decode_does(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((512, 512), Image.Resampling.BICUBIC).save(tmp_path / "a.jpg", quality=95)
    with Image.open(tmp_path / "a.jpg") as image:
        whole = np.asarray(image.resize((128, 128), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    assert np.abs(decode(os.fspath(tmp_path / "a.jpg"), 128).astype(int) - whole).mean() < 6


def bad_files(folder):
    """Name of each damaged file, and a word of its reason."""
    good = save(folder / "good-0.jpg", size=(64, 48)).read_bytes()
    for i in range(1, 16):
        save(folder / f"good-{i}.png")
    png = save(folder / "good-16.png").read_bytes()
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "truncated.jpg").write_bytes(good[: len(good) * 2 // 3])
    (folder / "truncated.png").write_bytes(png[: len(png) // 2])
    (folder / "page.jpg").write_bytes(b"\n<!DOCTYPE html><html>404</html>")
    (folder / "noise.png").write_bytes(np.random.default_rng(0).bytes(999))
    save(folder / "dot.png", size=(1, 1))
    (folder / "folder.jpg").mkdir()
    (folder / "dangling.jpg").symlink_to(folder / "nowhere.jpg")
    (folder / "loop.jpg").symlink_to(folder / "loop.jpg")
    os.mkfifo(folder / "pipe.jpg")
    huge = b"P6 30000 30000 255\n" + b"\0" * 100
    (folder / "huge.ppm").write_bytes(huge)
    return {
        "empty.jpg": "empty file",
        "truncated.jpg": "truncated",
        "truncated.png": "",
        "page.jpg": "web page",
        "noise.png": "not an image",
        "dot.png": "too small (1 x 1)",
        "folder.jpg": "a folder",
        "dangling.jpg": "no such file",
        "loop.jpg": "too many levels of symbolic links",
        "pipe.jpg": "not a regular file",
        "huge.ppm": "too large (more than 100 million pixels)",
    }


def test_a_damaged_image_gets_a_status_not_a_crash(tmp_path):
    reasons = bad_files(tmp_path)
    images = load_source(tmp_path, size=8)
    status = dict(zip(images.keys, images.status, strict=True))
    assert len(status) == len(reasons) + 17
    for name, reason in reasons.items():
        assert status[name].startswith("unreadable: "), name
        assert reason in status[name].lower()
    assert [k for k, s in status.items() if s == "ok"] == [images.keys[i] for i in images.rows]
    assert len(images) == 17
    assert images.n_unreadable == len(reasons)
    assert (images.images[:, 0] > 240).all()


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_the_bound_on_pixels_is_checked_before_decoding(tmp_path):
    (tmp_path / "a.ppm").write_bytes(b"P6 11000 11000 255\n")
    with pytest.raises(Unreadable, match=r"too large \(11000 x 11000, at most 100 million pixels\)"):
        decode(os.fspath(tmp_path / "a.ppm"), 8)
    save(tmp_path / "b.png", size=(40, 30))
    with pytest.raises(Unreadable, match="too large"):
        decode(os.fspath(tmp_path / "b.png"), 8, max_pixels=1199)
    assert decode(os.fspath(tmp_path / "b.png"), 8, max_pixels=1200).shape == (3, 8, 8)


def test_labels_stay_beside_their_images_when_some_are_unreadable(tmp_path):
    for i in range(4):
        save(tmp_path / "a" / f"{i}.png", (10, 0, 0))
        save(tmp_path / "b" / f"{i}.png", (200, 0, 0))
    (tmp_path / "a" / "0.png").write_bytes(b"")
    (tmp_path / "b" / "2.png").write_bytes(b"")
    images = load_source(tmp_path, labels="folders")
    assert images.labels.tolist() == [0] * 4 + [1] * 4
    assert images.image_labels.tolist() == (images.images[:, 0, 0, 0] > 100).long().tolist()
    assert images.spread([1.5] * 6, fill=np.nan).shape == (8,)


def test_hostile_names_are_read_and_can_be_written_down(tmp_path):
    names = [b"new\nline.png", b'quo"te,.png', "Ω é.png".encode(), b"bad\xff\xfe.png", b" .png", b"-rf.png"]
    good = save(tmp_path / "plain.png").read_bytes()
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(good)
    images = load_source(tmp_path)
    assert set(images.status) == {"ok"}
    assert len(set(images.keys)) == len(names) + 1
    assert "bad\\xff\\xfe.png" in images.keys
    assert "\n".join(images.keys).encode("utf-8")


def test_links_to_folders_are_followed_once(tmp_path):
    save(tmp_path / "real" / "a.png")
    (tmp_path / "real" / "up").symlink_to(tmp_path)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "link").symlink_to(tmp_path / "real")
    assert list_source(tmp_path / "photos").keys == ["link/a.png"]


def test_hidden_files_are_left_out_and_others_counted(tmp_path):
    for name in ("a.png", ".thumbs/b.png", "._a.png"):
        save(tmp_path / name)
    (tmp_path / "c.HEIC").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("x")
    images = load_source(tmp_path)
    assert list(images.keys) == ["a.png"]
    assert "2 files are not called like images" in images.notes[0]
    assert ".heic" in images.notes[0]


def test_an_empty_folder_and_a_mostly_unreadable_one_are_refused(tmp_path):
    with pytest.raises(UserError, match="no image files"):
        load_source(tmp_path)
    save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    assert len(load_source(tmp_path)) == 1
    (tmp_path / "c.png").write_bytes(b"")
    with pytest.raises(UserError, match=r"2 of the 3 .*'b.png', unreadable: empty file"):
        load_source(tmp_path)


def test_images_of_several_sizes_need_a_size(tmp_path):
    save(tmp_path / "a.png", size=(12, 10))
    save(tmp_path / "b.png", size=(10, 12))
    with pytest.raises(UserError, match=r"size: .*10 x 12.*such as 96"):
        load_source(tmp_path)
    with pytest.raises(UserError, match="GiB"):
        load_source(tmp_path, size=64, max_bytes=1000)


def test_progress_is_told_of_every_image(tmp_path):
    bad_files(tmp_path)
    told = []
    load_source(tmp_path, size=8, progress=lambda done, total: told.append((done, total)))
    assert told == [(i + 1, 28) for i in range(28)]


def test_the_order_does_not_depend_on_which_thread_is_first(tmp_path, monkeypatch):
    for i in range(20):
        save(tmp_path / f"{i:02}.png", (10 * i, 0, 0))
    first = threading.Event()
    real = files_module.decode

    def slow_start(path, size):
        if path.endswith("00.png"):
            first.wait(5)
        elif path.endswith("01.png"):
            first.set()
        return real(path, size)

    monkeypatch.setattr(stream_module, "n_cores", lambda: 4)
    monkeypatch.setattr(files_module, "decode", slow_start)
    assert load_source(tmp_path, size=4).images[:, 0, 0, 0].tolist() == [10 * i for i in range(20)]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bit_flips_and_truncations_never_crash(tmp_path):
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8))
    reasons = []
    for ending in ("jpg", "png", "webp", "gif", "tiff", "bmp"):
        path = tmp_path / f"a.{ending}"
        noise.save(path)
        whole = bytearray(path.read_bytes())
        for _ in range(60):
            damaged = whole.copy()
            for at in rng.integers(0, min(len(whole), 300), 4):
                damaged[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged[: int(rng.integers(len(whole) // 2, len(whole)))])
            try:
                assert decode(os.fspath(path), 8).shape == (3, 8, 8)
            except Unreadable as reason:
                reasons.append(str(reason))
    assert len(reasons) > 100
    assert all(r and "\n" not in r for r in reasons)
