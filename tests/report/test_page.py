"""The page: sections, texts from outside, size, and what reads it without eyes."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import numpy as np
import pytest

import verax as vx
from reports import EVIL, Page, light, sample
from verax.display.marks import Ranges
from verax.report import Report
from verax.report.charts import all_figures
from verax.report.questions import question_page
from verax.report.section import sections
from verax.wings.evals.page import grade_page
from verax.wings.monitor.page import monitor_page
from verax.wings.sets.page import sets_page

FLOAT = re.compile(r"−?\d[\d,]*\.?\d*(e[−+]?\d+)?%?")


def test_sections_stand_in_order_and_are_readable_without_eyes(ordered):
    report = ordered[-1]
    page = Page(report.to_html())
    sections = [a["id"] for a in page.all("section")]
    assert sections == [
        "verdict", "comparison", "reliability", "card", "worst", "recalibration", "retention", "confusion",
        "parts", "definitions", "checks",
    ]  # fmt: skip
    tags = [tag for tag, _ in page.elements]
    assert tags.count("main") == tags.count("h1") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert tags.count("table") == tags.count("caption")
    assert all("scope" in a for a in page.all("th"))
    plots = [a for a in page.all("div") if "data-chart" in a]
    drawings = [a for a in page.all("svg") if "data-plot" in a]
    assert all(a["role"] == "img" and "aria-labelledby" in a for a in drawings)
    assert len(page.all("desc")) == len(drawings) > len(plots)
    assert report.verdict in page.text
    assert len({a["data-chart"] for a in plots}) == len(plots)
    assert set(all_figures(report.contents)) < {a["data-chart"] for a in plots}
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_figures_of_the_page_say_what_they_show(ordered):
    y, p = sample(200)
    two = light((y > 1).astype(int), {"a": p[:, 2:].sum(axis=1), "b": p[:, 3:].sum(axis=1)})
    for report in (ordered[-1], two):
        shown = all_figures(report.contents)
        for section in sections():
            shown |= section.figures(report.contents)
        for place in shown.values():
            for chosen in place.chosen:
                figure = chosen.figure
                cells = {cell for row in figure.table()[1] for cell in row}
                known = [
                    float(c.replace(",", "").replace("−", "-").strip("%"))
                    for c in cells
                    if FLOAT.fullmatch(c)
                ]
                words = figure.sentence
                for name in sorted((c for c in cells if re.search("[a-z]", c)), key=len, reverse=True):
                    words = words.replace(name, " ")
                for text in re.findall(r"−?\d[\d,]*\.?\d*", words):
                    said = float(text.replace(",", "").replace("−", "-"))
                    assert any(said == pytest.approx(number, rel=0.006) for number in known), figure.sentence
                assert {entry.name for entry in figure.key()} or not figure.marks


def test_the_page_shows_the_numbers(ordered):
    y, p, *_, report = ordered
    text = Page(report.to_html()).text
    card = vx.evaluate(y, p, ordered=True)
    for name in ("rps", "brier", "qwk"):
        assert f"{card[name]:.4f}" in text
    assert "p" + str(vx.worst(y, p, rule="rps", n=1)[0].row) in text
    assert "sa-RPS" not in text
    assert "11/54" in text
    assert "doi.org/10.1175/1520-0450(1969)008" in report.to_html()


def test_a_mean_has_one_interval_wherever_it_is(ordered):
    y, p, other, _, report = ordered
    html = report.to_html()
    (ranges,) = all_figures(report.contents)["models"].chosen[0].figure.of_kind(Ranges)
    drawn = {row.name: row for row in ranges.values}
    for name, forecast in (("new", p), ("old", other)):
        low, high = vx.evaluate(y, forecast, ordered=True).scores["rps"].interval
        assert f"<small>{low:.4f} to {high:.4f}</small>" in html
        assert f">{low:.5f} to {high:.5f}<" in html
        assert (drawn[name].low, drawn[name].high) == pytest.approx((low, high), rel=1e-12)


def test_bands_say_whose_they_are(ordered):
    text = Page(ordered[-1].to_html()).text
    assert "The shaded area is the 95% simultaneous confidence band of the line RPS." in text
    assert "The shaded area is the 95% simultaneous confidence band of the line Largest probability." in text


def test_subgroups_with_groups_are_tested():
    y, p = sample(200)
    report = light(y, p, groups=np.arange(200) // 2, by={"site": np.arange(200) // 100})
    text = Page(report.to_html()).text
    found = report.contents.subgroups["site"]
    assert found.untested == ""
    assert all(line.p_value is not None for line in found.lines)
    assert "deviations of a group from the forecasts" in text


def test_nothing_is_fetched(ordered):
    html = ordered[-1].to_html()
    page = Page(html)
    policy = page.all("meta")[1]["content"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert not [a for tag, a in page.elements if tag != "a" and ("src" in a or "href" in a)]
    assert "url(" not in html[: html.index("</style>")]


def test_texts_from_outside_stay_texts():
    y, p = sample(60)
    report = Report.of(
        y,
        {EVIL[0]: p, EVIL[2]: 0.5 * p + 0.125, "${x}": p},
        classes=EVIL,
        by={EVIL[0]: np.array(EVIL, dtype=object)[np.arange(60) % 4]},
        ids=[f"{EVIL[i % 4]}{i}" for i in range(60)],
        title=EVIL[0],
        source=EVIL[1],
    )
    html = report.to_html()
    html.encode()
    assert "<script>alert" not in html
    page = Page(html)
    assert [a.get("type") for a in page.all("script")] == [None]
    assert not page.all("b")
    assert EVIL[0] in page.text
    assert "\\ud800" in page.text
    assert "{{ 7*7 }}" in page.text
    (ranges,) = all_figures(report.contents)["classes"].chosen[0].figure.of_kind(Ranges)
    assert {row.name for row in ranges.values} == set(report.contents.problem.names)


HIDDEN = ["a\u202eb", "a\u2028b", "a\u2066b", "a\x1bb", "a\xadb", "a\ud800b"]


def test_no_page_has_characters_that_hide_or_turn_texts():
    y, p = sample(60, 3)
    names, labels = HIDDEN[:3], np.array(HIDDEN, dtype=object)[np.arange(60) % 6]
    grades = {name: (y == 0).astype(float) for name in HIDDEN[:2]}
    monitor = vx.Monitor(vx.evaluate(y, p))
    monitor.update(y, p, time=np.arange(60) // 10)
    pages = {
        "report": light(y, p, classes=names, by={"s": labels}).to_html(),
        "sets": sets_page(vx.evaluate_sets(y, p, level=0.9, by={HIDDEN[0]: labels}), source=HIDDEN[5]),
        "grades": grade_page(vx.evaluate_grades(grades[HIDDEN[0]], task=labels), name=HIDDEN[1]),
        "questions": question_page(vx.compare_grades(grades)),
        "monitor": monitor_page(monitor, title=HIDDEN[0], source=HIDDEN[1]),
    }
    for name, html in pages.items():
        html.encode()
        script = html.rfind("<script>") if name == "report" else len(html)
        found = [hex(ord(own)) for own in html[:script] if unicodedata.category(own) in ("Cf", "Zl", "Zp")]
        assert not found, name
        assert "\x1b" not in html[:script]
        assert "a\\u202eb" in html


def test_names_that_look_alike_are_told_apart():
    y, p = sample(60, 2)
    report = light(y, p, classes=["a\1b", "a\\x01b"])
    assert report.contents.problem.names == ("a\\x01b", "a\\x01b (2)")


@pytest.mark.long
def test_many_classes_say_what_was_left_out():
    y, p = sample(440, 24)
    report = light(y, p, by={"s": np.arange(440) % 22})
    text = Page(report.to_html()).text
    assert "Shown are the 12 of 24 classes with the largest miscalibration." in text
    assert "classes that most of the loss comes from" in text
    assert "confusion matrix omitted: too many classes" in text
    assert "Shown are 20 of 22 subgroups" in text
    (found,) = report.contents.findings
    assert len(found.dense.by_class) == 20
    shares = np.bincount(y, vx.brier.samples(y, p), 24)
    assert {line.position for line in found.dense.by_class} == set(np.argsort(-shares)[:20].tolist())


@pytest.mark.long
@pytest.mark.slow
def test_size_does_not_grow_with_the_rows():
    small = len(light(*sample(2000, 10)).to_html())
    large = light(*sample(20_000, 10)).to_html()
    assert len(large.encode()) < 1e6
    assert len(large) < 1.1 * small


def test_plain_pages_have_every_number_of_their_drawings_in_words():
    y, p = sample(60, 3)
    monitor = vx.Monitor(0.9, by="site")
    for day in range(20):
        site = np.array(["north", "south"])[np.arange(3) % 2]
        monitor.update(y[3 * day :][:3], p[3 * day :][:3], time=day, by={"site": site})
    assert monitor.alarm is None
    html = monitor_page(monitor)
    page = Page(html)
    assert "site = north" in page.text
    assert f"an alarm needs {monitor.threshold:.3g}" in page.text
    # Steps at equal distances have labels.
    wide = html.split('<div class="large">')[1].split("</svg>")[0]
    labels = [int(text) for text in re.findall(r'text-anchor="middle">(\d+)</text>', wide)]
    assert labels == list(range(0, 20, labels[1] - labels[0]))
    assert len(labels) > 3
    drawings = [svg for svg in page.all("svg") if "data-plot" in svg]
    assert {svg.get("role") for svg in drawings} == {"img"}
    assert len(page.all("desc")) == len(drawings)
    assert all(svg.get("aria-hidden") for svg in page.all("svg") if svg not in drawings)
    for step in monitor.history.lines:
        assert f"{step.loss:.4f}" in page.text


def test_the_page_of_grades_has_reliability_and_worst_answers():
    grades, sure = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0], [0.9, 0.95, 0.7, 0.2, 0.6, 0.8]
    curve = vx.reliability(np.array(grades, int), sure, resamples=20).curves[0]
    case = {"row": 1, "id": "q1", "grade": 0.0, "confidence": 0.95, "about": {"question": "Why? " * 99}}
    card = vx.evaluate_grades(grades, sure, task=["10", "9", "10", "9", "9", "10"])
    html = grade_page(card, curve=curve, worst=[case], read=["grade: correct"])
    text = Page(html).text
    assert "id q1: grade 0, confidence 0.95" in text
    assert "(495 in all)" in text
    assert "share of right answers by confidence" in text
    assert "How the file was read" in text
    # Labels that are numbers are in their order.
    assert html.index(">9</text>") < html.index(">10</text>")
