import csv
import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cdclust import origin
from cdclust import run as runs
from cdclust.data.files import printable
from cdclust.errors import UserError
from cdclust.formats import place
from cdclust.formats.filenames import Unique, safe
from cdclust.jobs import apply as jobs
from cdclust.jobs.apply import FORMATS, How, apply
from cdclust.jobs.listeners import Silent
from cdclust.recipe import Recipe
from cdclust.run import Run

LINUX = pytest.mark.skipif(os.uname().sysname != "Linux" if hasattr(os, "uname") else True, reason="names are bytes")


def picture(path: Path, shade: int, size=(8, 6)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, 0, 0)).save(path)


def finished(path: Path, lines: list[tuple], n_clusters: int = 4) -> Run:
    """A run that has ended, by hand: (key, cluster or None, probability)."""
    run = runs.create(path, Recipe(n_clusters=n_clusters), resume=False)
    rows = [
        (key, str(cluster), f"{p:.6f}", "0", "0.010000", "ok")
        if cluster is not None
        else (key, "", "", "", "", "unreadable: no image")
        for key, cluster, p in lines
    ]
    run.write("assignments.csv", lambda file: runs.write_csv(file, rows))
    run.write_json("metrics.json", {"n_images": len(rows), "n_clusters": n_clusters})
    return run


@pytest.fixture
def photos(tmp_path) -> Path:
    """Two albums that share file names, a file that is no image, an animated one and one called like a split."""
    for shade, name in enumerate(("a/1.jpg", "b/1.jpg", "b/2.png", "test/train.webp", "moving.gif")):
        picture(tmp_path / "photos" / name, 40 * shade)
    (tmp_path / "photos" / "broken.jpg").write_bytes(b"no image")
    return tmp_path / "photos"


LINES = [
    ("a/1.jpg", 3, 0.9),
    ("b/1.jpg", 3, 0.8),
    ("b/2.png", 1, 0.4),
    ("broken.jpg", None, 0),
    ("moving.gif", 0, 0.7),
    ("test/train.webp", 0, 1.0),
]
SHADES = {"a/1.jpg": 0, "b/1.jpg": 40, "b/2.png": 80, "test/train.webp": 120, "moving.gif": 160}


@pytest.fixture
def run(tmp_path, photos) -> Run:
    run = finished(tmp_path / "run", LINES)
    origin.record(run, origin.describe(photos, "all"))
    return run


@pytest.fixture
def take(run, tmp_path):
    """take(format=..., ...): what is there afterwards, and what was said."""

    def command(out=tmp_path / "out", listener=None, **how):
        return out, apply(run, out, How(**how), listener or Silent())

    return command


def inside(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def shade(path: Path) -> int:
    """How red it is, without what JPEG and WebP do to it."""
    with Image.open(path) as image:
        return rounded(image)


def rounded(image) -> int:
    return round(image.convert("RGB").getpixel((3, 3))[0] / 40) * 40


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_folders_hold_each_image_once_and_unreadable_files_apart(take):
    out, said = take()
    assert inside(out) == {
        *("labels.csv", "unreadable/broken.jpg", "cluster_03/1.jpg", "cluster_03/1-2.jpg", "cluster_01/2.png"),
        *("cluster_00/moving.gif", "cluster_00/train.webp"),
    }
    assert (said["n_sorted"], said["n_unreadable"], said["sizes"]) == (5, 1, {"0": 2, "1": 1, "3": 2})


def test_labels_csv_says_which_file_is_which_image(take, photos):
    out, _ = take()
    for row in table(out / "labels.csv"):
        assert (out / row["file"]).read_bytes() == (photos / row["image"]).read_bytes()
        assert row["cluster"] == "" or row["file"].startswith(f"cluster_0{row['cluster']}/")


def test_the_uncertain_are_set_apart_from_the_sure(take):
    out, said = take(min_confidence=0.8)
    assert {name for name in inside(out) if "/" in name} == {
        *("cluster_03/1.jpg", "cluster_03/1-2.jpg", "cluster_00/train.webp"),
        *("uncertain/2.png", "uncertain/moving.gif", "unreadable/broken.jpg"),
    }
    assert (said["n_sorted"], said["n_uncertain"]) == (3, 2)
    by_image = {row["image"]: row for row in table(out / "labels.csv")}
    assert by_image["b/2.png"]["cluster"] == ""
    assert by_image["b/2.png"]["status"] == "uncertain"


@pytest.mark.parametrize("files", ["copy", "hardlink", "symlink"])
def test_files_are_copies_or_links_as_asked(take, photos, files):
    out, _ = take(files=files)
    there, source = out / "cluster_03" / "1.jpg", photos / "a" / "1.jpg"
    assert there.read_bytes() == source.read_bytes()
    assert there.is_symlink() == (files == "symlink")
    assert there.samefile(source) == (files != "copy")
    assert there.stat().st_mtime == source.stat().st_mtime
    source.write_bytes(b"changed")
    assert (there.read_bytes() == b"changed") == (files != "copy")


def test_a_link_to_a_photo_is_followed(take, photos):
    (photos / "b" / "1.jpg").unlink()
    (photos / "b" / "1.jpg").symlink_to(photos / "a" / "1.jpg")
    out, _ = take(files="hardlink")
    assert not (out / "cluster_03" / "1-2.jpg").is_symlink()
    assert (out / "cluster_03" / "1-2.jpg").samefile(photos / "a" / "1.jpg")


def test_clusters_names_are_their_folders_made_safe(take, run):
    run.write_text("names.csv", 'cluster,name\n3,"../<b>CON:\u202e"\n0,cluster_01\n1,NUL\n')
    out, _ = take()
    folders = {path.name for path in out.iterdir() if path.is_dir()}
    assert folders == {"__b_CON__", "cluster_01", "_NUL", "unreadable"}
    rows = {row["image"]: row for row in table(out / "labels.csv")}
    assert rows["a/1.jpg"]["name"] == "../<b>CON:\u202e"
    assert rows["a/1.jpg"]["file"] == "__b_CON__/1.jpg"


def test_a_name_like_another_clusters_number_does_not_mix_them(take, run):
    run.write_text("names.csv", "cluster,name\n0,cluster_03\n")
    out, _ = take()
    files = {row["image"]: row["file"] for row in table(out / "labels.csv")}
    assert files["a/1.jpg"] == "cluster_03/1.jpg"
    assert files["moving.gif"] == "cluster_03-2/moving.gif"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("cats", "cats"),
        ("猫 & dogs", "猫 & dogs"),
        ("a/b\\c", "a_b_c"),
        ("..", ""),
        ("-rf", "_rf"),
        ("aux.old", "_aux.old"),
        ("x\x00\ny", "x__y"),
        ("end. ", "end"),
        ("猫" * 200, "猫" * 40),
    ],
)
def test_a_name_is_made_safe_for_any_file_system(name, kept):
    assert safe(name) == kept


def test_names_differ_on_file_systems_that_ignore_case_and_composition():
    unique = Unique()
    given = [unique(name) for name in ("a.jpg", "A.JPG", "a.jpg", "a-2.jpg", "cafe\u0301", "CAFÉ", "ß", "ss")]
    assert given == ["a.jpg", "A-2.JPG", "a-3.jpg", "a-2-2.jpg", "cafe\u0301", "CAFÉ-2", "ß", "ss-2"]


@LINUX
@pytest.mark.parametrize("name", [b"caf\xe9.jpg", b"two\nlines.jpg", "\u202egpj.exe.jpg".encode(), b"a'b\"c;$(x).jpg"])
def test_hostile_file_names_arrive(tmp_path, name):
    photos = tmp_path / "photos"
    picture(photos / "x.jpg", 200)
    path = os.fsencode(photos) + b"/" + name
    (photos / "x.jpg").rename(os.fsdecode(path))
    run = finished(tmp_path / "run", [(printable(os.fsdecode(name)), 0, 0.9)])
    origin.record(run, origin.describe(photos, "all"))
    apply(run, tmp_path / "out", How(), Silent())
    [row] = table(tmp_path / "out" / "labels.csv")
    assert "\n" not in row["file"]
    assert shade(tmp_path / "out" / row["file"]) == shade(Path(os.fsdecode(path)))


def test_an_image_folder_loads_back_as_it_was_sorted(take):
    from torchvision.datasets import ImageFolder

    out, said = take(format="imagefolder")
    found = ImageFolder(str(out))
    assert found.classes == ["cluster_00", "cluster_01", "cluster_03"]
    assert sorted((rounded(image), code) for image, code in found) == [*((0, 2), (40, 2), (80, 1), (120, 0), (160, 0))]
    assert said["n_sorted"] == 5
    assert "cluster_00/moving.png" in inside(out)  # torchvision would pass a .gif over


def test_a_hugging_face_folder_is_described_by_its_metadata(take):
    out, _ = take(format="huggingface")
    rows = table(out / "metadata.csv")
    assert {row["source"]: int(row["cluster"]) for row in rows} == {k: c for k, c, _ in LINES if c is not None}
    assert {row["source"]: shade(out / row["file_name"]) for row in rows} == SHADES
    assert inside(out) == {"metadata.csv", *(row["file_name"] for row in rows)}


def test_hugging_face_loads_it_as_one_split(take, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    out, _ = take(out=tmp_path / "test" / "train", format="huggingface")
    found = datasets.load_dataset("imagefolder", data_dir=str(out), cache_dir=str(tmp_path / "cache"))
    assert set(found) == {"train"}
    assert {row["source"]: row["cluster"] for row in found["train"]} == {k: c for k, c, _ in LINES if c is not None}
    assert {row["source"]: rounded(row["image"]) for row in found["train"]} == SHADES


def test_fiftyone_finds_an_image_for_each_label(take, run):
    run.write_text("names.csv", "cluster,name\n3,cats\n")
    out, _ = take(format="fiftyone")
    content = json.loads((out / "labels.json").read_text())
    files = {path.stem: path for path in (out / "data").iterdir()}  # as its importer looks them up
    assert content["labels"].keys() == files.keys()
    assert content["classes"] == ["cluster_00", "cluster_01", "cluster_02", "cats"]
    found = sorted((shade(files[i]), label["label"]) for i, label in content["labels"].items())
    assert found == [(0, 3), (40, 3), (80, 1), (120, 0), (160, 0)]
    assert {label["confidence"] for label in content["labels"].values()} == {0.9, 0.8, 0.4, 0.7, 1.0}


def test_coco_has_a_category_a_cluster_and_an_annotation_an_image(take, run):
    COCO = pytest.importorskip("pycocotools.coco").COCO
    run.write_text("names.csv", "cluster,name\n0,cluster_03\n")  # which is what cluster 3 is called without a name
    out, _ = take(format="coco")
    coco = COCO(str(out / "annotations.json"))
    assert [cat["name"] for cat in coco.loadCats(coco.getCatIds())] == [
        *("cluster_03 (0)", "cluster_01", "cluster_02", "cluster_03")
    ]
    for key, cluster, _ in LINES:
        found = [i for i in coco.getImgIds(catIds=[(cluster or 0) + 1]) if coco.imgs[i]["source"] == key]
        assert len(found) == (cluster is not None)
        for image in coco.loadImgs(found):
            assert (image["width"], image["height"]) == (8, 6)
            assert shade(out / "images" / image["file_name"]) == SHADES[key]
            assert coco.imgToAnns[image["id"]][0]["bbox"] == [0, 0, 8, 6]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_labels_are_a_line_an_image(take, run, tmp_path, ending):
    import pyarrow.parquet

    run.write_text("names.csv", "cluster,name\n3,cats\n")
    out, said = take(out=tmp_path / f"labels.{ending}", min_confidence=0.5)
    if ending == "csv":
        rows = [{k: v or None for k, v in row.items()} for row in table(out)]
    elif ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pyarrow.parquet.read_table(out).to_pylist()
    found = [(row["image"], row["cluster"] if row["cluster"] is None else int(row["cluster"])) for row in rows]
    assert found == [(key, None if p < 0.5 else cluster) for key, cluster, p in LINES]
    assert [row["name"] for row in rows][:2] == ["cats", "cats"]
    assert rows[2]["status"] == "uncertain"
    assert said["format"] == "labels"


def test_without_names_there_is_no_column_of_names(take, tmp_path):
    out, _ = take(out=tmp_path / "labels.csv")
    assert tuple(table(out)[0]) == runs.COLUMNS


@pytest.mark.parametrize("format", ["folders", "imagefolder", "huggingface", "fiftyone", "coco"])
def test_arrays_become_pngs_of_the_same_pixels(tmp_path, format):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 5, 7, 3), dtype=np.uint8)
    np.save(tmp_path / "images.npy", pixels)
    run = finished(tmp_path / "run", [(str(i), i % 3, 0.9) for i in range(12)])
    origin.record(run, origin.describe(tmp_path / "images.npy", "all"))
    apply(run, tmp_path / "out", How(format=format), Silent())
    files = sorted((tmp_path / "out").rglob("*.png"), key=lambda path: path.name)
    assert [path.name for path in files] == [f"{i:06}.png" for i in range(12)]
    np.testing.assert_array_equal([np.asarray(Image.open(path)) for path in files], pixels)


def test_what_is_there_is_never_written_over(take, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty, and nothing is written over"):
        take()
    assert inside(tmp_path / "out") == {"mine.txt"}
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        take(out=tmp_path / "labels.csv")
    with pytest.raises(UserError, match="is a file; name a folder"):
        take(out=tmp_path / "labels.csv", format="coco")


def test_a_second_run_into_the_same_folder_is_refused_and_changes_nothing(take):
    out, _ = take()
    before = {name: (out / name).read_bytes() for name in inside(out)}
    with pytest.raises(UserError, match="is not empty"):
        take(format="coco")
    assert {name: (out / name).read_bytes() for name in inside(out)} == before


def test_an_empty_folder_may_be_filled(take, tmp_path):
    (tmp_path / "out").mkdir()
    out, _ = take()
    assert len(inside(out)) == 7


@pytest.mark.parametrize("when", [0, 3])
def test_a_full_disk_is_said_and_leaves_nothing(take, tmp_path, photos, monkeypatch, when):
    done, copy = [], shutil.copyfile

    def fill(source, target):
        if len(done) >= when:
            raise OSError(errno.ENOSPC, "No space left on device")
        done.append(target)
        return copy(source, target)

    before = inside(photos)
    monkeypatch.setattr(shutil, "copyfile", fill)
    with pytest.raises(UserError, match=r"the disk is full .*nothing was kept.*--files hardlink"):
        take()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("out")]
    assert inside(photos) == before


def test_too_small_a_disk_is_refused_before_anything_is_copied(take, monkeypatch, tmp_path):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    monkeypatch.setattr(shutil, "copyfile", lambda *_: pytest.fail("copied"))
    with pytest.raises(UserError, match=r"copies need .* are free; make room"):
        take()


def test_hard_links_over_two_disks_are_refused_in_words(take, monkeypatch, tmp_path):
    def link(*_):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setitem(place._WAYS, "hardlink", link)
    with pytest.raises(UserError, match=r"--files hardlink: .* on one disk.*--files copy or --files symlink"):
        take(files="hardlink")
    assert not (tmp_path / "out").exists()


def test_when_it_is_stopped_nothing_looks_finished(take, tmp_path):
    class Stopping(Silent):
        def on_work(self, what, done, total):
            if done == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(listener=Stopping())
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.part").exists()


def test_what_a_killed_attempt_left_is_not_touched(take, tmp_path):
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "1.jpg").write_bytes(b"half")
    with pytest.raises(UserError, match=r"out.part is there, of an attempt that was stopped; remove it"):
        take()
    assert (tmp_path / "out.part" / "1.jpg").read_bytes() == b"half"


def test_a_missing_image_is_listed_and_the_rest_goes_on(take, photos):
    (photos / "b" / "2.png").unlink()
    out, said = take()
    assert said["n_missing"] == 1
    assert not (out / "cluster_01").exists()
    row = next(row for row in table(out / "labels.csv") if row["image"] == "b/2.png")
    assert (row["status"], row["cluster"], row["file"]) == ("missing: not in the source", "", "")


def test_an_image_that_goes_while_others_are_copied_is_missing_too(take, photos, monkeypatch):
    check = jobs._check_disk
    monkeypatch.setattr(jobs, "_check_disk", lambda *words: (check(*words), (photos / "b" / "2.png").unlink()))
    out, said = take()
    assert said["n_missing"] == 1
    assert not (out / "cluster_01").exists()
    assert "missing: no such file" in {row["status"] for row in table(out / "labels.csv")}


def test_strict_refuses_a_missing_image(take, photos, tmp_path):
    (photos / "b" / "2.png").unlink()
    with pytest.raises(UserError, match=r"--strict: 1 images are missing: not in the source .*'b/2.png'"):
        take(strict=True)
    assert not (tmp_path / "out").exists()


def test_photos_that_were_moved_are_asked_for_and_found(take, photos, tmp_path):
    photos.rename(tmp_path / "moved")
    with pytest.raises(UserError, match=r"no longer at .*photos; say where they are with --source"):
        take()
    _, said = take(source=str(tmp_path / "moved"))
    assert said["n_sorted"] == 5


def test_new_photos_are_counted_and_left(take, photos):
    picture(photos / "new.jpg", 9)
    out, said = take()
    assert said["n_new"] == 1
    assert "new.jpg" not in {Path(name).name for name in inside(out)}


def test_an_array_of_another_length_is_not_taken_for_the_runs(tmp_path):
    np.save(tmp_path / "other.npy", np.zeros((7, 8, 8), np.uint8))
    run = finished(tmp_path / "run", [(str(i), 0, 0.9) for i in range(6)])
    with pytest.raises(UserError, match=r"other.npy holds 7 images and the run 6; give the run's own"):
        apply(run, tmp_path / "out", How(source=str(tmp_path / "other.npy")), Silent())


@pytest.mark.parametrize("place", ["here", "link"])
def test_a_folder_that_cannot_be_made_anew_is_refused_at_once(take, tmp_path, monkeypatch, place):
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UserError, match="cannot be made anew; name a folder in it"):
        take(out=Path("." if place == "here" else tmp_path / "link"))


def test_another_folder_than_the_runs_is_refused(take, tmp_path):
    picture(tmp_path / "others" / "x.jpg", 1)
    with pytest.raises(UserError, match=r"5 of the 6 images of this run are not in .*--source"):
        take(source=str(tmp_path / "others"))


def test_copies_do_not_go_among_the_images(take, photos):
    with pytest.raises(UserError, match="lies among the images"):
        take(out=photos / "sorted")


WRONG = {
    "an unknown format": ({"format": "yolo"}, "--format yolo: it must be one of"),
    "a file there is no writer for": ({"out": "labels.xlsx"}, r"labels.xlsx: no such files are written; a table ends"),
    "a table called otherwise": ({"out": "labels.CSV"}, r"the ending must be one of .csv"),
    "an unknown way": ({"files": "move"}, "--files move: it must be one of copy, hardlink, symlink"),
    "a confidence above 1": ({"min_confidence": 60}, "--min-confidence 60: it must be from 0 to 1"),
    "a confidence that is no number": ({"min_confidence": float("nan")}, "from 0 to 1"),
    "nothing sure enough": ({"min_confidence": 1.0, "format": "coco", "source": "one"}, "no image is as sure"),
}


@pytest.mark.parametrize(("how", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_wish_is_refused_in_words(tmp_path, photos, how, words):
    run = finished(tmp_path / "run", LINES[:5])
    how = how | ({"source": str(photos)} if "source" in how else {})
    out = tmp_path / how.pop("out", "out")
    with pytest.raises(UserError, match=words):
        apply(run, out, How(**how), Silent())
    assert not out.exists()


DAMAGED = {
    "a cluster there is not": lambda text: text.replace("a/1.jpg,3,", "a/1.jpg,7,"),
    "a line too few": lambda text: "".join(text.splitlines(keepends=True)[:-1]),
    "a line too many": lambda text: text + text.splitlines(keepends=True)[1],
    "another table": lambda text: text.replace("probability", "p"),
    "a word for a number": lambda text: text.replace("0.900000", "sure"),
    "no number": lambda text: text.replace("0.900000", "nan"),
}


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_table_is_refused(take, run, tmp_path, change):
    path = run.file("assignments.csv")
    path.write_bytes(change(path.read_bytes().decode()).encode())
    with pytest.raises(UserError, match=r"assignments.csv is damaged"):
        take()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_that_has_not_ended_is_not_taken_away(run, tmp_path, form):
    run.file("metrics.json").unlink()
    with pytest.raises(UserError, match="is not finished"):
        apply(run, tmp_path / "out", How(format=form), Silent())


def test_a_path_in_the_table_that_is_no_image_of_the_source_is_not_followed(tmp_path, photos):
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    run = finished(tmp_path / "run", [("../secret.jpg", 0, 0.9), *LINES[:4]])
    apply(run, tmp_path / "out", How(source=str(photos)), Silent())
    assert not [path for path in (tmp_path / "out").rglob("*.jpg") if path.read_bytes() == b"secret"]
