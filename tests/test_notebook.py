import pickle
import re
import sys
import types
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone

from cdclust import CDC, console, notebook
from cdclust.notebook import Picture, Shelf

SETTINGS = {
    "network.width": 4,
    "network.blocks": [1, 1],
    "head.hidden": 16,
    "method.queue": 40,
    "method.split_batch_norm": 2,
    "data.size": None,
    "batch_size": 16,
    "epochs": 1,
}
METRICS = {"n_images": 3, "n_unreadable": 1, "n_clusters": 2, "warnings": ["<i>mind</i>"]}


@pytest.fixture(scope="module")
def fitted(pictures, classes):
    torch.set_num_threads(1)
    return CDC(4, settings=SETTINGS, device="cpu", precision="fp32").fit(pictures, classes)


class Reader(HTMLParser):
    """Every tag and the text between."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.images, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def kernel(monkeypatch):
    """A notebook's kernel, as far as is asked of it: what it displays, each output as it stands last."""
    outputs = []

    class Handle:
        def __init__(self, place):
            self.place = place

        def update(self, content, raw):
            outputs[self.place] = content

    def display(content, raw, display_id=False):
        outputs.append(content)
        return Handle(len(outputs) - 1) if display_id else None

    ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return outputs


def test_each_cluster_has_its_size_and_its_surest_images_first(fitted, pictures):
    sizes = [shelf.size for shelf in fitted.gallery_]
    assert sizes == sorted(np.bincount(fitted.labels_, minlength=4).tolist(), reverse=True)
    for shelf in fitted.gallery_:
        members = np.flatnonzero(fitted.labels_ == shelf.cluster)
        order = members[np.argsort(-fitted.probabilities_[members], kind="stable")]
        assert [int(picture.key) for picture in shelf.surest] == order[:8].tolist()
        assert [int(picture.key) for picture in shelf.least] == order[8:][-4:].tolist()
        for picture in shelf.surest:
            with Image.open(BytesIO(picture.image)) as image:
                np.testing.assert_array_equal(np.asarray(image), pictures[int(picture.key)])


def test_a_fitted_model_is_a_table_in_a_notebook(fitted):
    html = notebook.table(fitted.gallery_, fitted.metrics_)
    assert fitted._repr_html_().endswith(html)
    assert fitted._repr_mimebundle_()["text/html"].endswith(html)
    found = Reader(html)
    assert found.tags.count("tr") == 1 + 4
    assert len(found.images) == sum(len(shelf.surest) for shelf in fitted.gallery_)
    assert "48 images in 4 clusters, ACC" in found.text
    assert all(image["src"].startswith("data:image/png;base64,") for image in found.images)


def test_before_fit_it_is_scikit_learns_own_box(pictures):
    assert "most typical" not in CDC()._repr_html_()
    assert "most typical" not in CDC()._repr_mimebundle_()["text/html"]


def test_a_copy_that_was_pickled_shows_the_same_and_a_clone_nothing(fitted):
    assert pickle.loads(pickle.dumps(fitted)).gallery_ == fitted.gallery_
    assert not hasattr(clone(fitted), "gallery_")


def test_hostile_names_are_shown_and_never_run():
    key = "\"><script>alert(1)</script>\u202e\n'.jpg"
    shelf = Shelf(0, 1, 0.5, (Picture(key, 0.5, 1, b"x", small=False),))
    for page in (notebook.table([shelf], METRICS), notebook.gallery([shelf], METRICS)):
        found = Reader(page)
        assert set(found.tags) <= {"style", "div", "table", "thead", "tbody", "tr", "th", "td", "img", "b", "span"}
        assert found.images[0]["alt"] == "\"><script>alert(1)</script>\\u202e\\n'.jpg"
        assert found.images[0].keys() == {"src", "title", "alt"}
        assert "<i>mind</i>" in found.text


def test_nothing_is_loaded_from_elsewhere(fitted):
    page = notebook.table(fitted.gallery_, fitted.metrics_) + notebook.gallery(fitted.gallery_, fitted.metrics_)
    assert not re.search(r"https?:|//|url\(|@import", re.sub(r"base64,[^\"]*", "", page))


def test_photos_are_shown_small(tmp_path):
    for shade in range(20):
        Image.new("RGB", (400, 300), (12 * shade, 0, 0)).save(tmp_path / f"{shade:02}.jpg")
    model = CDC(2, recipe="images", settings=SETTINGS | {"data.size": 12}, device="cpu").fit(str(tmp_path))
    shown = [picture for shelf in model.gallery_ for picture in shelf.surest]
    assert {Image.open(BytesIO(picture.image)).size for picture in shown} == {(72, 72)}
    assert sum(len(picture.image) for picture in shown) < 20 * 4000


def test_show_displays_the_gallery_in_a_notebook(fitted, kernel):
    assert fitted.show() is None
    assert kernel[0]["text/html"] == notebook.gallery(fitted.gallery_, fitted.metrics_)


def test_show_opens_a_page_where_there_is_no_notebook(fitted, monkeypatch, tmp_path, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fitted.show()
    [page] = tmp_path.glob("*.html")
    assert opened == [page.as_uri()]
    assert notebook.gallery(fitted.gallery_, fitted.metrics_) in page.read_text(encoding="utf-8")
    assert str(page) in capsys.readouterr().out


def test_progress_in_a_notebook_is_one_output_that_ends_full(pictures, kernel, capsys):
    CDC(4, settings=SETTINGS | {"epochs": 2}, device="cpu", precision="fp32", verbose=True).fit(pictures)
    [shown] = kernel
    assert shown["text/plain"].startswith("fit: epoch 2.0 of 2  loss ")
    assert 'value="1.0000"' in shown["text/html"]
    assert capsys.readouterr() == ("", "")


def test_a_warning_in_a_notebook_stays_and_is_text(kernel):
    watcher = console.watcher("fit")
    watcher.on_start(0, 20, 10)
    watcher.on_epoch({"step": 10, "epoch": 1, "loss": 1.0}, ["<b>collapse</b>"])
    watcher.on_step(20, 100.0)
    [shown] = kernel
    assert "&lt;b&gt;collapse&lt;/b&gt;" in shown["text/html"]
    assert 'value="1.0000"' in shown["text/html"]
    assert shown["text/plain"].startswith("fit: epoch 2.0 of 2")
