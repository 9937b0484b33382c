import csv

import pytest

from cdclust import run as runs
from cdclust.errors import UserError
from cdclust.names import called, cluster_names, shown
from cdclust.recipe import Recipe
from cdclust.run import Run


@pytest.fixture
def run(tmp_path) -> Run:
    return runs.create(tmp_path / "run", Recipe(n_clusters=12), resume=False)


def given(run: Run, text: str | bytes) -> dict[int, str]:
    run.file("names.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return cluster_names(run)


def test_without_a_file_nothing_has_a_name(run):
    assert cluster_names(run) == {}


def test_names_are_read_and_the_rest_stays_unnamed(run):
    assert given(run, "cluster,name\n11,cats\n0,dogs\n3,\n") == {11: "cats", 0: "dogs"}


@pytest.mark.parametrize("name", ['a "quoted", name', "<b>猫</b>", "café", "👩‍👩‍👧", "a\u202eb", "../..", "שלום"])
def test_any_unicode_is_a_name(run, name):
    with run.file("names.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("cluster", "name"), (5, name)])
    assert cluster_names(run) == {5: name}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffcluster,name\r\n4,a b\r\n",
        "cluster;name\n4;a b\n",
        "cluster\tname\n4\ta b\n",
        "Name,Cluster\na b,4\n\n",
        'cluster,name\n4,"  a\n b "\n',
    ],
    ids=["with a byte order mark", "semicolons", "tabs", "columns swapped", "white space"],
)
def test_what_spreadsheets_write_is_read(run, text):
    assert given(run, text) == {4: "a b"}


WRONG = {
    "an unknown cluster": ("cluster,name\n12,cats\n", "line 2: '12' is no cluster of this run; they are 0 to 11"),
    "a negative cluster": ("cluster,name\n-1,cats\n", "'-1' is no cluster"),
    "a word for a cluster": ("cluster,name\ncats,1\n", "'cats' is no cluster"),
    "a digit of another script": ("cluster,name\n٣,cats\n", "is no cluster"),
    "a number of a mile": (f"cluster,name\n{'9' * 5000},cats\n", "is no cluster"),
    "a cluster twice": ("cluster,name\n1,a\n2,b\n1,c\n", "cluster 1 stands in lines 2 and 4; keep one"),
    "a name twice": ("cluster,name\n1,cats\n2, cats\n", "clusters 1 and 2 are both called 'cats'; .* such as 'cats 2'"),
    "another header": ("id,label\n1,cats\n", "first line must be cluster,name; it is 'id,label'"),
    "nothing": ("", "first line must be cluster,name"),
    "a third column": ("cluster,name\n1,cats,dogs\n", "line 2 has 3 columns.*double quotes"),
    "a name of a mile": (f"cluster,name\n1,{'x' * 201}\n", "201 characters; write at most 200"),
    "another encoding": ("cluster,name\n1,café\n".encode("latin-1"), "not UTF-8"),
    "too many bytes": (b"cluster,name\n" + b" " * (16 * 2**20), "larger than 16 MB"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_in_words(run, text, words):
    with pytest.raises(UserError, match=words) as error:
        given(run, text)
    assert "\n" not in str(error.value)


def test_on_a_terminal_a_name_stays_on_its_line_and_moves_nothing():
    assert called(3, {3: "cats"}) == "3 cats"
    assert called(3, {}) == "3"
    assert shown("a\x1b[2Jb\u202ec") == r"a\x1b[2Jb\u202ec"
    assert shown("猫 👩‍👧") == "猫 👩‍👧"
