import json

import numpy as np
import pytest

from cdclust.errors import UserError
from cdclust.jobs.listeners import Silent
from cdclust.jobs.report import drawn, keep, report
from cdclust.report import kept, similarity
from cdclust.report.build import build, curves, duplicates, gather
from cdclust.report.thumbnails import encode

HEADER = b"image,cluster,probability,second,second_probability,status\r\n"


@pytest.fixture
def page_of(make_run, tmp_path):
    """The page of a run, as data."""

    def page(**options):
        run = make_run(tmp_path / "run", draw=True, **options)
        return build(gather(run, run.metrics()))

    return page


def test_sizes_and_confidence_of_clusters_are_those_of_the_table(page_of, tmp_path):
    page = page_of(n=50, k=3)
    rows = [line.split(",") for line in (tmp_path / "run/assignments.csv").read_text().splitlines()[1:]]
    for cluster in page.clusters:
        p = [float(row[2]) for row in rows if row[1] == str(cluster.number)]
        assert cluster.size == len(p)
        assert cluster.confidence == pytest.approx(np.mean(p), abs=1e-4)
    assert page.summary.confidence == pytest.approx(np.mean([float(row[2]) for row in rows]))


def test_the_histogram_counts_every_readable_image_once(page_of, tmp_path):
    page = page_of(n=50, bad={3: "empty file", 7: "empty file"})
    p = [
        float(line.split(",")[2])
        for line in (tmp_path / "run/assignments.csv").read_text().splitlines()[1:]
        if ",ok" in line
    ]
    assert sum(page.confidence.counts) == len(p) == 48
    assert page.confidence.counts[-1] == sum(x >= 0.95 for x in p)


def test_second_choices_count_towards_the_nearest_clusters(page_of):
    page = page_of(n=40, k=4)  # the second choice of each image is the next cluster
    for cluster in page.clusters:
        counts = {near.cluster: near.second_choice for near in cluster.nearest}
        assert counts == {
            other: 10 * (other == (cluster.number + 1) % 4) for other in range(4) if other != cluster.number
        }


def test_unreadable_files_are_named_with_their_reason(page_of):
    page = page_of(n=20, names=[f"{i}.jpg" for i in range(20)], bad={4: "empty file"})
    assert page.oddities.unreadable == [("4.jpg", "empty file")]
    assert "4.jpg" not in page.images.name
    assert any("1 of 20 files could not be read" in notice.text for notice in page.summary.notices)


@pytest.mark.parametrize(
    ("same_pixels", "same_features", "expected"), [(True, True, [(4, 8)]), (True, False, []), (False, True, [])]
)
def test_a_near_duplicate_looks_alike_to_the_eye_and_to_the_network(same_pixels, same_features, expected):
    chance = np.random.default_rng(0)
    pictures = chance.integers(0, 256, (40, 24, 24, 3), dtype=np.uint8)
    pictures[:, 12:] = 255 * chance.integers(0, 2, (40, 1, 1, 1), dtype=np.uint8)
    pictures[8, 12:], pictures[4, 12:] = 255, 0
    features = chance.normal(0, 1, (40, 16)).astype(np.float32)
    if same_pixels:
        pictures[8] = pictures[4]
    if same_features:
        features[8] = features[4] + 1e-3
    unit = similarity.directions(features, features.mean(axis=0))
    places, alike = similarity.nearest(unit, 6)
    candidates = [(i, j) for i, j, how in similarity.mutual(places, alike) if how > 0.99]
    assert candidates == ([(4, 8)] if same_features else [])
    found = duplicates([encode(picture, (24, 78)) for picture in pictures], places, alike, np.zeros(40, dtype=np.int64))
    assert [(pair.first, pair.second) for pair in found if pair.similarity > 0.99] == expected


def test_curves_leave_out_what_is_no_number():
    log = [{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": float("nan")}, {"epoch": 3, "loss": 1.0, "acc": 0.5}]
    found = {curve.key: (curve.epochs, curve.values) for curve in curves(log)}
    assert found == {"loss": ([1, 3], [2.0, 1.0]), "acc": ([3], [0.5])}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol": {"backbone_saw_labels": True, "backbone": "efficientnet"}}, "trained with labels"),
        ({"protocol": {"backbone_saw_labels": None}}, "is not known"),
        ({"warnings": ["all images are in one cluster"]}, "All images are in one cluster."),
        ({"notes": ["two files were left out"]}, "Two files were left out."),
        ({"acc": 0.5, "protocol": {"split": "all images, the same as trained on"}}, "no test split"),
    ],
)
def test_what_a_run_warns_of_stands_at_the_top_in_words(page_of, changes, words):
    assert any(words in notice.text for notice in page_of(**changes).summary.notices)


def test_clusters_that_stayed_empty_are_said(page_of):
    said = [notice.text for notice in page_of(n=3, k=5).summary.notices]
    assert any(text.startswith("2 of 5 clusters are empty") for text in said)


def test_clusters_go_by_the_names_that_names_csv_gives_them(make_run, tmp_path):
    run = make_run(tmp_path / "run")
    run.write_text("names.csv", "cluster,name\r\n2,grey cats\r\n")
    page = build(gather(run, run.metrics()))
    assert [cluster.name for cluster in page.clusters] == [None, None, "grey cats", None]


def test_with_many_images_a_sample_is_shown_and_said(make_run, tmp_path, monkeypatch):
    from cdclust.report import sample

    monkeypatch.setattr(sample.choose, "__defaults__", (100, 0))
    run = make_run(tmp_path / "run", n=1000, k=5)
    page = build(gather(run, run.metrics()))
    assert (page.summary.n_shown, len(page.images.name), page.summary.n_images) == (100, 100, 1000)
    assert [cluster.size for cluster in page.clusters] == [200] * 5
    assert sum(page.confidence.counts) == 1000


def test_a_single_image_makes_a_page(page_of):
    page = page_of(n=1, k=2)
    assert (page.summary.n_shown, page.clusters[0].nearest, page.oddities.duplicates) == (1, [], [])


def test_what_cannot_be_drawn_is_said_in_the_page_and_fails_nothing(make_run, tmp_path):
    run = make_run(tmp_path / "run", draw=False)

    def broken(_):
        raise OSError("the disk has gone")

    class Photos:
        name, labels, class_names = "photos", None, None

    keep(run, run.metrics(), Photos(), broken, 1, Silent())
    page = build(gather(run, run.metrics()))
    assert any("the disk has gone" in notice.text for notice in page.summary.notices)
    assert set(page.images.thumbnail) == {""}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("assignments.csv", b"image,cluster\r\n", "assignments.csv is damaged"),
        (
            "assignments.csv",
            HEADER + b"a,99,0.5,0,0.1,ok\r\n",
            "damaged",
        ),
        (
            "assignments.csv",
            HEADER + b"a,0,nan,0,0.1,ok\r\n",
            "damaged",
        ),
        ("report.npz", b"PK nothing", "report.npz is damaged"),
        ("embeddings.npy", b"\x93NUMPY", "embeddings.npy cannot be read"),
        ("metrics.json", b"[]", "metrics.json is damaged"),
        ("metrics.json", b"{}", "metrics.json is damaged"),
        ("names.csv", b"\xff\xfe", "names.csv is not UTF-8"),
    ],
)
def test_a_damaged_file_of_the_run_is_named(make_run, tmp_path, name, content, words):
    run = make_run(tmp_path / "run")
    run.file(name).write_bytes(content)
    with pytest.raises(UserError, match=words):
        report(run, Silent())


def test_what_was_kept_of_another_run_is_refused(make_run, tmp_path):
    run, other = make_run(tmp_path / "run", n=60), make_run(tmp_path / "other", n=30)
    run.file(kept.NAME).rename(other.file(kept.NAME))
    with pytest.raises(UserError, match="of another run"):
        report(other, Silent())


def test_a_page_is_the_same_every_time(make_run, tmp_path):
    one, two = (make_run(tmp_path / name) for name in ("one", "two"))
    assert drawn(one, one.metrics()) == drawn(two, two.metrics())
    assert json.loads(one.file("metrics.json").read_text())
