import base64
import hashlib
import re

import numpy as np
import pytest

from cdclust.report.content import for_script
from cdclust.report.page import visible
from cdclust.report.thumbnails import choose_levels, encode


def test_every_name_comes_through_whole(hostile, hostile_names, content_of):
    names = content_of(hostile)["images"]["name"]
    assert names[:9] == hostile_names[:9]


def test_no_name_ends_the_script_or_opens_a_tag(hostile):
    text = hostile.read_text(encoding="utf-8")
    assert len(re.findall("<script", text)) == len(re.findall("</script>", text)) == 2
    assert 'onerror="window' not in text
    data = text.split('id="data">')[1].split("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(data)


def test_marks_that_turn_the_direction_of_writing_are_shown():
    assert visible("photo\u202egpj.exe\n") == "photo\\u202egpj.exe\\u000a"
    assert visible("Ärger in 東京.jpg") == "Ärger in 東京.jpg"


def test_what_stands_in_a_script_is_json_and_ascii(content_of):
    import json

    text = for_script({"a": "</script>&\u2028é"})
    assert text.isascii()
    assert json.loads(text) == {"a": "</script>&\u2028é"}


def test_a_number_that_json_does_not_know_is_refused():
    with pytest.raises(ValueError):
        for_script({"a": float("nan")})


def test_the_policy_allows_the_pages_own_script_and_style_and_no_other(make_run, tmp_path):
    text = make_run(tmp_path / "run").file("report.html").read_text(encoding="utf-8")
    policy = re.search('Content-Security-Policy" content="(.*?)">', text)[1].replace("&#39;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind, element in (("script-src", r"<script>(.*?)</script>"), ("style-src", r"<style>(.*?)</style>")):
        inside = re.search(element, text, re.S)[1]
        expected = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{expected}'"


def test_a_page_names_no_address_but_that_of_svg(make_run, tmp_path):
    text = make_run(tmp_path / "run").file("report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|iframe|object|embed)\b|@import|url\(", text)


def test_a_page_of_ten_thousand_photographs_stays_below_15_megabytes():
    pictures = np.random.default_rng(0).integers(
        0, 256, (64, 160, 160, 3), dtype=np.uint8
    )  # harder than any photograph
    levels = choose_levels(pictures, 480, 10_000)
    large, small = (np.mean([len(encode(p, level)) for p in pictures]) for level in (levels.gallery, levels.elsewhere))
    one = ["a/long/enough/path/to/an/image-00001.jpg", 12, 0.9123, 3, 0.0123, 0.8123, 4, [10000] * 6, 0.1234, 0.1234]
    assert (large * 480 + small * 9520) * 4 / 3 + 10_000 * len(for_script(one)) < 15e6
