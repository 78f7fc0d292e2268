"""The report on top lists: everything that is computed, and the page in a real browser."""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import pytest

import verax as vx
from browsers import CHROMIUM, DRIVER
from reports import EVIL, light
from verax.analyses.words import number
from verax.inference.intervals import Resampling
from verax.inputs.memory import open_rows
from verax.report import Report
from verax.report.analysis import recipes_of
from verax.report.problem import Problem
from verax.report.sections import context_of


@cache
def made():
    """Lists of two models and a full distribution, of outcomes with names; one model is too sure."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(30, 0.15), 400)
    codes = (rng.random((400, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 29)
    names = [*EVIL, *(f"word {i}" for i in range(26))]
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    lists = {
        "honest": vx.TopLists.from_probabilities(p, 6, classes=names),
        "too sure": vx.TopLists.from_probabilities(sharp, 3, classes=names),
        "full": p,
    }
    y = [names[code] for code in codes]
    return y, lists, names, Report.of(y, lists, classes=names, title="Words", source="a file")


def test_everything_comes_from_the_library():
    y, lists, _, report = made()
    found = report.to_dict()
    for name in ("honest", "too sure"):
        own = found["models"][name]
        assert own["card"]["metrics"]["coverage"]["mean"] == vx.evaluate(y, lists[name]).coverage
        diagram = vx.reliability(y, lists[name], places=5)
        curves = {curve["name"]: curve for curve in own["reliability"]["curves"]}
        assert curves["place 1"]["p_value"] == diagram["place 1"].components.p_value
        assert own["claims"][0]["claimed"] == pytest.approx(diagram.claim("place 1").claimed, rel=1e-12)
        unfined = vx.padded(vx.brier, 0)(y, lists[name])
        assert own["decomposition"]["padded"] == pytest.approx(unfined, rel=1e-9)
        assert own["lengths"]["predictions"][-1] == "as given"
        assert own["worst"]["cases"][0]["loss"] == vx.worst(y, lists[name], rule="brier")[0].loss
    assert found["models"]["full"]["lengths"]["predictions"][-1] == "full"
    assert re.match("Keep (honest|full): Brier score", report.verdict)
    json.dumps(found, default=str)
    alone = Report.of(y, lists["too sure"])
    assert "overconfident (p" in alone.verdict
    assert alone.verdict.claims[-1] == "recalibration_helps"
    assert alone.verdict.about("recalibration_helps") == ("temperature_rest",)
    assert repr(alone).startswith("verax report: 400 rows, 30 classes. The model beats a uniform guess")


def test_recalibration_curves_and_answers_come_from_the_library():
    y, lists, names, report = made()
    own = report.to_dict()["models"]["too sure"]
    known = vx.recalibrate(y, lists["too sure"], rule="brier")
    assert own["recalibration"]["recalibration"]["trials"] == known.to_dict(stored=False)["trials"]
    curve = vx.selective(y, lists["too sure"], metric="accuracy")
    assert own["selective"][0]["values"] == pytest.approx(curve.values.tolist(), rel=1e-12)
    context = context_of(report.contents, report.verdict, title="a", source="b")
    best, *others = vx.compare(y, lists, rule="zero_one", classes=names).models["zero_one"]
    said = context["comparison"]["notes"][-1]
    assert said.startswith(f"Accuracy of the first listed class is highest for {best.name} (")
    assert all(f"{other.name} by {number(100 * (other.mean - best.mean), 2)} " in said for other in others)


@pytest.mark.parametrize(
    ("n", "time_ordered", "asked"), [(1, False, False), (2, False, True), (2, True, False)]
)
def test_answers_of_several_models_are_compared_unless_rows_are_a_series(n, time_ordered, asked):
    y, lists, *_ = made()
    handle = open_rows(y, dict(list(lists.items())[:n]))
    problem = Problem.of(
        handle, None, ordered=False, costs=None, weights_are="importance", time_ordered=time_ordered
    )
    assert ("answers" in recipes_of(handle, problem, Resampling(0.95, 100, 0))) is asked


def test_the_checks_of_lists():
    rows = [
        {"a": 0.5, "b": 0.01},
        {"b": 0.2, "a": 0.6},
        {},
        {"a": 0.3, "c": 0.3},
        {"a": 0.3, "c": 0.3},
        {"c": 0.0},
    ]
    lists = vx.TopLists.from_dicts([*rows, {"a": 0.7, "b": 0.3 + 5e-7}], n_classes=9)
    report = Report.of(["a", "b", "x", "a", "a", "c", "b"], lists, ids=[f"i{n}" for n in range(7)])
    checks = {check.question: check for check in report.contents.checks}
    assert "2 lists (29%) give an unlisted class more than a listed one (rows 0, 5)" in (
        checks["Invalid lists"].answer
    )
    assert "lose 1.0 of 1.5 classes" in checks["Invalid lists"].answer
    assert checks["Lists that sum to more than 1"].answer.startswith("1 list sums to more than 1")
    assert checks["Order of the listed classes"].answer.startswith("1 entry came after a less likely one")
    assert "2 lists (29%) have ties (rows 3, 4)" in checks["Ties within a list"].answer
    assert "1 list is empty (row 2)" in checks["Lengths of lists"].answer
    assert checks["Listed classes with probability zero"].answer.startswith("1 entry")
    assert "1 row (14%) repeats an earlier one" in checks["Duplicate lists"].answer
    foreign = Report.of(["A"] * 7, lists)
    check = next(c for c in foreign.contents.checks if c.question == "Outcomes not listed")
    assert check.kind == "look"
    assert "Do lists and outcomes use the same class names?" in check.answer


def test_sums_that_are_one_but_for_rounding_are_not_more_than_one():
    rows = [{"a": 0.1, "b": 0.7, "c": 0.2}, {"a": 0.7, "b": 0.1, "c": 0.2}, {"a": 0.7, "b": 0.3 + 5e-7}]
    lists = vx.TopLists.from_dicts(
        [{n: t * (1 + 2e-16) for n, t in row.items()} for row in rows], n_classes=9
    )
    assert (lists.totals > 1).all()
    report = Report.of(["a", "b", "a"], lists)
    answer = next(c for c in report.contents.checks if "more than 1" in c.question).answer
    assert answer.startswith("1 list sums to more than 1, by at most 5.0e−7 (row 2).")
    only = Report.of(["a", "b"], lists[:2])
    answer = next(c for c in only.contents.checks if "more than 1" in c.question).answer
    assert answer == "None: every list sums to 1 or less."


def test_places_that_are_not_named_are_counted(change):
    change(report_methods=())
    rng = np.random.default_rng(3)
    p = np.sort(rng.dirichlet(np.ones(8), 3000))[:, ::-1]
    lists = vx.TopLists.from_probabilities(p, 5)
    y = rng.integers(0, 8, 3000)
    report = Report.of(y, lists)
    contents = report.contents
    assert (
        sum(c.p_adjusted <= 0.05 for c in contents.findings[0].places.claims if c.name.startswith("place"))
        == 5
    )
    assert context_of(contents, report.verdict, title="", source="")["reliability"]["words"][0].endswith(
        " and 1 more place."
    )


def test_no_invalid_list_has_no_interval_over_groups():
    y, lists, _, _ = made()
    groups = np.arange(400) // 20
    card = vx.evaluate(y, lists["honest"], groups=groups)
    line = card.metrics["invalid"]
    assert (line.mean, line.interval.defined) == (0, False)
    assert line.interval.caution == "the share is the same in all groups"
    assert vx.evaluate(y, lists["honest"]).metrics["invalid"].interval.high < 0.01


@pytest.mark.long
def test_subgroups_of_lists_are_on_the_page():
    y, lists, _, _ = made()
    by = np.repeat(["north", "south <b>"], 200)
    found = vx.subgroups(y, lists["honest"], by=by)
    # The same as those that the report finds.
    own = Report.of(y, lists["honest"], by={"site": by}).subgroups["site"]
    assert own["north"].card["padded(brier)"] == pytest.approx(found["north"].card["brier"], rel=1e-12)
    report = Report.of(y, lists["honest"]).with_subgroups({"site": found})
    assert {label: line.card.to_dict() for label, line in report.subgroups["site"].items()} == {
        label: line.card.to_dict() for label, line in found.items()
    }
    assert report.to_dict()["subgroups"]["site"]["subgroups"][1]["label"] == "south <b>"
    html = report.to_html()
    assert "<h3>By <bdi>site</bdi></h3>" in html
    assert '<bdi>south &lt;b&gt;</bdi></th><td class="n">200</td>' in html
    assert f'<td class="n">{number(found["north"].card["brier"])}<small>' in html
    assert '<a href="#parts">Subgroups</a>' not in Report.of(y, lists["honest"]).to_html()


def test_what_lists_cannot_have_is_refused():
    y, lists, _, _ = made()
    for name, options in (
        ("ordered", {"ordered": True}),
        ("costs", {"costs": "zero_one"}),
    ):
        with pytest.raises(vx.InputError) as caught:
            Report.of(y, lists["honest"], **options)
        assert caught.value.argument == name
    with pytest.raises(vx.InputError, match="same classes for all models"):
        Report.of([0], {n: vx.TopLists.from_dicts([{0: 0.5}], n_classes=m) for n, m in (("a", 3), ("b", 4))})


def test_weights_and_groups_reach_the_page():
    y, lists, _, _ = made()
    w = np.arange(400) % 3
    report = light(y, lists["too sure"], weights=w, groups=np.arange(400) // 4)
    claim = report.contents.findings[0].places.claims[0]
    assert claim.claimed == pytest.approx(
        np.average(lists["too sure"].confidences.reshape(-1, 3)[:, 0], weights=w), rel=1e-12
    )
    assert report.contents.findings[0].card.n_groups == 100
    assert "Rows are weighted" in report.to_html()
    rows = [dict(list(row.items())[: i % 4]) for i, row in enumerate(lists["honest"])]
    ragged = vx.TopLists.from_dicts(rows, n_classes=30)
    (found,) = light(y, ragged, weights=w).contents.findings
    places = found.places
    assert places.so_far()[-1] == pytest.approx((3, found.card.coverage, places.whole.claimed), rel=1e-12)
    assert {found.card.n_rows, places.curves.n_rows, found.decomposition.n_rows} == {400}


@pytest.mark.browser
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")
def test_the_page_in_a_browser(browser, tmp_path):
    *_, report = made()
    path = tmp_path / "lists.html"
    report.save(path)
    browser.open(path)
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    drawn = "return [...document.querySelectorAll('[data-chart]')].map(x => [x.dataset.chart, %s])"
    marks = "x.querySelectorAll('svg .ranges path, svg .line path').length"
    places = dict(browser.run(drawn % marks))
    panels = {f"panel-{i}" for i in range(7)}
    curves = {"retained", "selected", "remedy-0", "remedy-1"}
    assert set(places) == {"coverage", "lengths", "models", "differences", *panels, *curves}
    assert all(places.values())
    titles = browser.run(
        "return [...document.querySelectorAll('.panels figcaption bdi')].map(x => x.textContent)"
    )
    assert titles[:7] == ["place 1", "place 2", "place 3", "place 4", "place 5", "any place", "whole list"]
    # The model chosen is the one that is shown, in texts and in charts.
    shown = """return [...document.querySelectorAll("#coverage p[data-model]")]
        .filter(x => !x.hidden).map(x => x.innerText)"""
    browser.choose("model", 1)
    (sentence,) = browser.run(shown)
    assert sentence.startswith("too sure: The outcome is listed in")
    assert "overconfident (p" in sentence
    for width in (360, 1280):
        browser.resize(width)
        wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert browser.run(wide)
    # Names of classes are texts.
    assert browser.run("return document.querySelectorAll('main script, main b:not(.signed b)').length") == 0
    assert browser.run("return document.body.innerText.includes('{{ 7*7 }}') || true")
