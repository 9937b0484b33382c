"""The page in a browser, opened from disk."""

import numpy as np
import pytest

AXE = "axe_playwright_python"
PROBABILITIES = "(tiles) => [...document.querySelectorAll(tiles)].map((t) => images.probability[t.dataset.image])"
UNDER_THE_POINTER = """() => {
    const [i, x, y] = atlas.seen[5];
    const box = document.getElementById("map-canvas").getBoundingClientRect();
    return [box.left + x, box.top + y, images.name[nearestTo(x, y, 14)]];
}"""


@pytest.fixture(scope="module")
def file(make_run, tmp_path_factory):
    n = 120
    run = make_run(
        tmp_path_factory.mktemp("browser") / "run",
        n=n,
        k=4,
        labels=np.where(np.arange(n) % 10 == 0, 0, np.arange(n) % 4),
        class_names=["ash", "beech", "cedar", "date"],
        bad={7: "empty file"},
        warnings=["only 4 of 9 clusters hold images"],
        acc=0.9,
        nmi=0.8,
        ari=0.7,
    )
    run.write_text("names.csv", "cluster,name\n1,old trees\n")
    from cdclust.jobs.report import drawn

    run.write_text("report.html", drawn(run, run.metrics()))
    return run.file("report.html")


class Opened:
    """A page with all that it said and asked for."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()


@pytest.fixture
def opened(browser, file):
    """opened(...): the page in a fresh browser; what it said and asked for is checked at the end."""
    pages = []

    def open_(path=file, **options):
        pages.append((Opened(browser, path, **options), path))
        return pages[-1][0]

    yield open_
    for one, path in pages:
        assert one.said == []
        assert [url for url in one.asked if not url.startswith("data:")] == [path.as_uri()]
        one.context.close()


def first_tile(page):
    page.locator(".cluster .tile").first.wait_for()
    return page.locator(".cluster .tile").first


def test_the_headline_says_what_was_sorted_into_what(opened):
    assert opened().text("h1") == "120 images of photos in 4 clusters"


def test_an_image_opens_enlarged_with_its_path_probability_and_second_choice(opened):
    page = opened().page
    first_tile(page).click()
    viewer = page.locator("#viewer")
    assert viewer.is_visible()
    text = viewer.inner_text()
    assert "album/" in text
    assert "Second choice" in text
    assert "%" in text
    assert page.locator("#viewer-picture img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 12


def test_arrow_keys_go_through_a_gallery_and_escape_returns_to_it(opened):
    page = opened().page
    tile = first_tile(page)
    tile.focus()
    page.keyboard.press("Enter")
    before = page.locator("#viewer-name").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.locator("#viewer-name").inner_text() != before
    page.keyboard.press("ArrowLeft")
    assert page.locator("#viewer-name").inner_text() == before
    page.keyboard.press("Escape")
    assert not page.locator("#viewer").is_visible()
    assert tile.evaluate("tile => tile === document.activeElement")


def test_a_gallery_shows_least_certain_images_in_their_order(opened):
    page = opened().page
    page.get_by_role("button", name="Least certain", exact=True).click()
    first_tile(page)
    found = page.evaluate(PROBABILITIES, "#cluster-0 .tile")
    assert len(found) > 3
    assert found == sorted(found)


def test_a_filter_by_confidence_leaves_what_lies_within_it(opened):
    page = opened().page
    first_tile(page)
    page.locator("#high").fill("50")
    page.get_by_role("button", name="Random", exact=True).click()
    found = page.evaluate(PROBABILITIES, ".cluster .tile")
    assert found
    assert max(found) <= 0.5
    n = page.evaluate("images.probability.filter((p) => p <= 0.5).length")
    assert f"{n} images" in page.locator("#range-said").inner_text()


def test_a_bar_of_the_histogram_sets_the_filter(opened):
    page = opened().page
    page.locator("#histogram rect").nth(10).click()
    assert page.locator("#range-said").inner_text().startswith("50–55%")


def test_all_images_of_a_cluster_can_be_shown(opened):
    page = opened().page
    first_tile(page)
    page.locator("#cluster-0 .more").click()
    assert page.locator("#cluster-0 .tile").count() == 30


def test_a_cluster_is_found_by_its_name(opened):
    page = opened().page
    page.locator("#find").fill("old tr")
    assert page.locator(".cluster:visible h3").all_inner_texts() == ["old trees"]


def test_hovering_over_the_map_shows_the_image_there_and_clicking_opens_it(opened):
    page = opened().page
    page.locator("#map-canvas").scroll_into_view_if_needed()
    page.wait_for_function("atlas.seen && atlas.seen.length")
    x, y, name = page.evaluate(UNDER_THE_POINTER)
    page.mouse.move(x, y)
    assert name in page.locator("#map-card").inner_text()
    page.mouse.click(x, y)
    assert page.locator("#viewer-name").inner_text() == name


def test_the_map_moves_and_opens_an_image_by_keys_alone(opened):
    page = opened().page
    page.locator("#map-canvas").focus()
    page.wait_for_function("atlas.seen && atlas.seen.length")
    for key in ("+", "+", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert page.evaluate("atlas.scale") == pytest.approx(1.96)
    page.keyboard.press("Enter")
    assert page.locator("#viewer").is_visible()


@pytest.mark.parametrize("by", ["class", "confidence"])
def test_the_map_takes_other_colours(opened, by):
    page = opened().page
    page.wait_for_function("atlas.seen && atlas.seen.length")
    pixels = "document.getElementById('map-canvas').toDataURL()"
    before = page.evaluate(pixels)
    page.locator("#map-colour").select_option(by)
    page.wait_for_timeout(100)
    assert page.evaluate(pixels) != before


def test_a_cell_of_the_confusion_matrix_shows_its_images(opened):
    page = opened().page
    canvas = page.locator("#matrix-canvas")
    canvas.focus()
    for _ in range(4):
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowLeft")
    i, j = 0, page.evaluate("page.labels.columns.indexOf(2)")
    for _ in range(j):
        page.keyboard.press("ArrowRight")
    assert page.locator("#cell h3").inner_text() == "Ash in Cluster 2"
    expected = page.evaluate(f"page.labels.matrix[{i}][{j}]")
    assert page.locator("#cell .tile").count() == expected > 0


@pytest.mark.parametrize(("scheme", "expected"), [("light", "rgb(252, 252, 251)"), ("dark", "rgb(20, 21, 23)")])
def test_the_page_follows_the_systems_theme_until_another_is_chosen(opened, scheme, expected):
    page = opened(color_scheme=scheme).page
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == expected
    page.locator("#theme").click()
    assert page.evaluate(ground) != expected


def test_nothing_is_wider_than_a_phone(opened):
    page = opened(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).page
    first_tile(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    first_tile(page).click()
    assert page.locator("#viewer").bounding_box()["width"] <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["page", "viewer"])
def test_axe_finds_nothing_serious(opened, scheme, state):
    source = pytest.importorskip(AXE, reason="axe-playwright-python is not installed")
    from pathlib import Path

    page = opened(color_scheme=scheme).page
    tile = first_tile(page)
    if state == "viewer":
        tile.click()
    page.evaluate((Path(source.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 20
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"][:3]]) for each in serious] == []


def test_a_page_without_labels_or_images_has_neither_and_says_so(opened, make_run, tmp_path):
    from cdclust.jobs.listeners import Silent
    from cdclust.jobs.report import report

    run = make_run(tmp_path / "run", draw=False)
    one = opened(report(run, Silent()))
    assert one.page.locator("#labels").count() == 0
    assert "--source" in one.text("#notices")
    assert one.page.locator("img").count() == 0


def test_hostile_names_are_shown_and_never_run(opened, hostile):
    one = opened(hostile)
    page = one.page
    first_tile(page).click()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    page.locator("#map-canvas").focus()
    page.wait_for_function("atlas.seen && atlas.seen.length")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2
    assert page.locator("img[onerror]").count() == 0
    shown = page.evaluate("[...document.querySelectorAll('.tile')].map((t) => t.getAttribute('aria-label')).join(' ')")
    assert not set("\u202e\u2028\u2029\u200b\n\0") & set(shown)
    assert "<script>" in page.locator("#class-scores").inner_text()


def test_two_hundred_clusters_are_drawn_as_they_come_into_sight(opened, make_run, tmp_path):
    run = make_run(tmp_path / "run", n=800, k=200)
    page = opened(run.file("report.html")).page
    first_tile(page)
    assert page.locator(".cluster").count() == 200
    assert page.locator(".cluster .tile").count() < 400
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'; location.hash = 'cluster-177'")
    page.locator("#cluster-177 .tile").first.wait_for()
    assert page.locator("#cluster-177").bounding_box()["y"] < 900
