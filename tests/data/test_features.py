import json

import numpy as np
import pytest

from cdclust.data import features
from cdclust.data.features import CacheKey, open_cache
from cdclust.errors import UserError


def key(**changes) -> CacheKey:
    usual = {"source": "s", "backbone": "b", "size": 32, "views": 2, "policy": "[]", "precision": "fp32"}
    return CacheKey(**(usual | {"n": 2500, "dim": 3} | changes))


def fill(cache, chunk: int, bad=None) -> None:
    rows = np.array(cache.rows_of(chunk))
    cache.clean[rows] = rows[:, None]
    cache.views[rows] = rows[:, None, None]
    cache.finish(chunk, bad or {})


def test_a_cache_goes_on_where_its_writer_was_killed(tmp_path):
    fill(open_cache(tmp_path, "photos", key()), 1)
    again = open_cache(tmp_path, "photos", key())
    assert list(again.missing()) == [0, 2]
    assert (again.n_done, again.complete) == (1024, False)
    for chunk in again.missing():
        fill(again, chunk)
    assert open_cache(tmp_path, "photos", key()).complete


def test_the_same_photos_under_another_name_are_found(tmp_path):
    fill(open_cache(tmp_path, "photos", key()), 0)
    assert open_cache(tmp_path, "/home/somebody/photos", key()).n_done == 1024


def test_every_row_is_in_one_chunk(tmp_path):
    cache = open_cache(tmp_path, "photos", key())
    assert [row for chunk in range(cache.n_chunks) for row in cache.rows_of(chunk)] == list(range(2500))


@pytest.mark.parametrize("world", [2, 3, 5])
def test_processes_share_the_chunks_without_overlap(tmp_path, world):
    cache = open_cache(tmp_path, "photos", key(n=9000))
    shares = [list(cache.missing(rank, world)) for rank in range(world)]
    assert sorted(chunk for share in shares for chunk in share) == list(range(cache.n_chunks))


def test_two_processes_write_into_one_file(tmp_path):
    for rank in range(2):
        cache = open_cache(tmp_path, "photos", key())
        for chunk in cache.missing(rank, 2):
            fill(cache, chunk)
    whole = open_cache(tmp_path, "photos", key())
    assert whole.complete
    assert np.array_equal(whole.clean[:, 0], np.arange(2500).astype(np.float16))


def test_what_could_not_be_read_has_its_reason(tmp_path):
    cache = open_cache(tmp_path, "photos", key())
    fill(cache, 0, {7: "unreadable: cut short", 9: "unreadable: empty file"})
    fill(cache, 2, {2499: "unreadable: not an image"})
    status = open_cache(tmp_path, "photos", key()).status_list()
    assert {row: each for row, each in enumerate(status) if each != "ok"} == {
        7: "unreadable: cut short",
        9: "unreadable: empty file",
        2499: "unreadable: not an image",
    }


@pytest.mark.parametrize(
    "change", [{"source": "t"}, {"backbone": "c"}, {"size": 64}, {"views": 3}, {"policy": "[1]"}, {"precision": "bf16"}]
)
def test_another_source_backbone_or_view_has_another_folder(tmp_path, change):
    assert open_cache(tmp_path, "photos", key(**change)).folder != open_cache(tmp_path, "photos", key()).folder


def test_a_new_version_of_the_code_has_another_folder(tmp_path):
    assert key(version=features.VERSION + 1).digest() != key().digest()


def test_the_folder_says_what_it_holds(tmp_path):
    cache = open_cache(tmp_path, "my photos/../x", key())
    assert json.loads((cache.folder / "key.json").read_text())["n"] == 2500
    assert cache.folder.parent == tmp_path


def test_an_array_of_another_shape_is_refused_in_one_line(tmp_path):
    cache = open_cache(tmp_path, "photos", key())
    np.save(cache.folder / "clean.npy", np.zeros((2, 3), np.float16))
    with pytest.raises(UserError, match="remove the folder"):
        open_cache(tmp_path, "photos", key())


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="CDCLUST_CACHE"):
        open_cache(tmp_path / "file", "photos", key())


def test_pages_nobody_wrote_take_no_space_on_disk(tmp_path):
    cache = open_cache(tmp_path, "photos", key(n=100_000, dim=1280))
    size = (cache.folder / "views.npy").stat()
    assert size.st_size > 5e8
    assert size.st_blocks * 512 < 1e6
