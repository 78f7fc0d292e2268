"""The report: what it says, against the library and plain arithmetic; what it makes of odd rows and texts."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import stdtr
from scipy.stats import norm

import verax as vx
from covers import calibration_tests
from reports import EVIL, graded, light, sample
from verax.analyses.calibration.overconfidence import overconfidence_of
from verax.inference.intervals import Interval
from verax.inputs.forecasts import Forecasts
from verax.inputs.memory import open_rows
from verax.report import Report, limits
from verax.report.bundle import bundle
from verax.report.definitions import definitions
from verax.report.exhibits import comparison_exhibit
from verax.report.limits import most_subgroups
from verax.report.survey import SurveyRecipe
from verax.report.verdict import miscalibrated, remedy_words
from verax.report.words import abbreviated, percent


@pytest.fixture
def ordered():
    return graded()


def answer(report, question):
    return next(c for c in report.contents.checks if c.question.startswith(question))


# ---- numbers -----------------------------------------------------------------------------------


def test_every_number_is_the_library_s(ordered):
    y, p, other, site, report = ordered
    found = report.to_dict()
    assert json.loads(json.dumps(found))["n_rows"] == 600
    for name, forecast in (("new", p), ("old", other)):
        card = vx.evaluate(y, forecast, ordered=True)
        for score, line in found["models"][name]["card"]["scores"].items():
            assert line["mean"] == pytest.approx(card[score], rel=1e-12)
            assert line["interval"] == pytest.approx(card.scores[score].interval, rel=1e-12)
    compared = vx.compare(y, {"new": p, "old": other}, rule="rps", ordered=True, reference="frequencies")
    skill = {m.name: m.skill for m in compared.models["rps"]}
    assert {n: m["skill"]["rps"]["skill"] for n, m in found["models"].items()} == pytest.approx(skill)
    new = found["models"]["new"]
    worst = vx.worst(y, p, rule="rps", n=9)
    assert [case["row"] for case in new["worst"]["cases"]] == [case.row for case in worst]
    assert new["worst"]["cases"][0]["id"] == f"p{worst[0].row}"
    curves = vx.reliability(y, p, ordered=True, resamples=0)
    assert [c["miscalibration"] for c in new["reliability"]] == pytest.approx(
        [c.components.miscalibration for c in curves], abs=1e-12
    )
    kept = vx.retention(y, p, rule="brier", metric="qwk")
    drawn = next(c for c in new["retention"] if (c["order"], c["metric"]) == ("brier", "qwk"))
    assert drawn["values"] == pytest.approx(kept.values)
    doubt = vx.selective(y, p, by="entropy", metric="ec")
    drawn = next(c for c in new["selective"] if (c["order"], c["metric"]) == ("entropy", "ec"))
    assert drawn["values"] == pytest.approx(doubt.values)
    for line in new["by_class"]:
        rows = y == line["position"]
        assert line["means"]["log_score"] == pytest.approx(vx.log_score(y[rows], p[rows]))
        assert line["n_rows"] == rows.sum()
    cheap = vx.expected_cost(y, vx.decide(p, costs="quadratic"), n_classes=4)
    assert new["decisions"]["cheapest"] == pytest.approx(cheap)
    assert new["decisions"]["likeliest"] == pytest.approx(vx.expected_cost(y, p.argmax(axis=1), n_classes=4))
    lines = {(s["label"], s["model"]): s for s in found["subgroups"]["site"]["subgroups"]}
    north = site == "north"
    assert lines["north", "old"]["card"]["scores"]["rps"]["mean"] == pytest.approx(
        vx.rps(y[north], other[north])
    )
    assert found["left_out"] == {"site": [["isle", 5]]}


def test_intervals_of_a_class_are_those_of_its_mean(ordered):
    y, p, *_, report = ordered
    line = report.to_dict()["models"]["new"]["by_class"][2]
    losses = vx.brier.samples(y[y == 2], p[y == 2])
    half = 1.9704 * losses.std(ddof=1) / np.sqrt(len(losses))  # about the quantile of t with 150 degrees
    assert line["intervals"]["brier"] == pytest.approx([losses.mean() - half, losses.mean() + half], rel=2e-3)


def test_weights_count_as_copies():
    y, p = sample(200)
    w = np.random.default_rng(1).integers(1, 4, 200)
    rows = np.repeat(np.arange(200), w)
    weighted = light(y, p, weights=w).to_dict()["models"]["model"]
    repeated = light(y[rows], p[rows]).to_dict()["models"]["model"]
    for part in ("retention", "by_class"):
        assert len(weighted[part]) == len(repeated[part])
    assert [c["values"] for c in weighted["retention"]] == [
        pytest.approx(c["values"]) for c in repeated["retention"]
    ]
    for a, b in zip(weighted["by_class"], repeated["by_class"], strict=True):
        assert a["means"] == pytest.approx(b["means"])
    for a, b in zip(weighted["reliability"], repeated["reliability"], strict=True):
        assert a["miscalibration"] == pytest.approx(b["miscalibration"])


def test_curves_of_many_rows_are_drawn_on_a_grid_with_the_same_means():
    y, p = sample(2000, 3)
    (found,) = light(y, p).contents.findings
    for k, panel in enumerate(found.panels):
        assert len(panel.points) <= 50
        x, fitted, low, high, share = panel.points.T
        assert share.sum() == pytest.approx(1)
        assert share @ x == pytest.approx(p[:, k].mean())
        assert share @ fitted == pytest.approx((y == k).mean())
        assert (np.diff(fitted) >= -1e-12).all()
        assert (low <= high).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_two_classes(ordered):
    y, p = sample(300, 2)
    both = light(y, p, ordered=ordered, classes=["no", "yes"])
    single = light(y, p[:, 1], ordered=ordered, classes=["no", "yes"])
    assert both.verdict == single.verdict
    assert [panel.title for panel in both.contents.findings[0].panels] == ["at most no" if ordered else "yes"]
    assert "yes" in both.to_html()


# ---- words -------------------------------------------------------------------------------------


def verdict(y, p, **options):
    return light(y, p, **options).verdict


@cache
def sharpened():
    """Forecasts that are too sure, and the report on them: built once for all tests."""
    y, p = sample(300, sharpness=2)
    return y, p, Report.of(y, p)


def test_verdict_on_one_model():
    y, p = sample(1500)
    honest = Report.of(y, p).verdict
    assert re.match(
        r"The model beats predicting class frequencies: its Brier score of 0\.\d+ is \d+% lower \(95% CI ",
        honest,
    )
    assert honest.endswith("No miscalibration is seen.")
    y, sure = sample(1500, sharpness=3)
    assert re.search(
        r"It is overconfident \(\d+% claimed, \d+% correct\), and temperature scaling lowers the loss by "
        r"\d+% \(95% CI \d+% to \d+%, cross-validated\)\.$",
        Report.of(y, sure).verdict,
    )
    y, timid = sample(1500, sharpness=0.4)
    assert "It is underconfident" in verdict(y, timid)
    shuffled = np.random.default_rng(0).permutation(y)
    assert verdict(shuffled, sure).startswith("The model is worse than predicting class frequencies")
    few = verdict(*sample(40))
    assert few.startswith("The model is not significantly better than predicting class frequencies")
    assert few.endswith("Too few rows to tell whether it is calibrated (40).")


def test_a_gain_whose_interval_contains_zero_may_be_one():
    found = sharpened()[-1].contents.best
    better = found.dense.remedy.recalibration
    assert "lowers the loss by" in remedy_words(found)
    best = better.trials[-1]
    wide = dataclasses.replace(best.gain, share_interval=Interval(-0.008, 0.325))
    trials = (*better.trials[:-1], dataclasses.replace(best, gain=wide))
    remedy = dataclasses.replace(found.dense.remedy, recalibration=dataclasses.replace(better, trials=trials))
    open_ = dataclasses.replace(found, dense=dataclasses.replace(found.dense, remedy=remedy))
    assert "may lower the loss (by" in remedy_words(open_)
    assert "95% CI −0.8% to 32%" in remedy_words(open_)


def test_the_slope_is_tested_as_well():
    """Two classes that are right on average, with probabilities that are too extreme."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=260)
    y = (rng.random(260) < 1 / (1 + np.exp(-z))).astype(int)
    report = light(y, 1 / (1 + np.exp(-1.9 * z)))
    found = report.contents.best.dense
    line = vx.calibration_slope(y, 1 / (1 + np.exp(-1.9 * z)))["1"]
    assert (found.slope.slope, found.slope_p) == (line.slope, line.p_value)
    assert miscalibrated(report.contents.best, 0.95)["slope"]
    assert "No miscalibration" not in report.verdict


def test_verdict_among_models():
    y, p = sample(1500)
    worse = 0.7 * p + 0.3 / 4
    text = verdict(y, {"sharp": p, "blunt": worse}, ordered=True)
    assert re.match(r"Keep sharp: RPS 0\.\d+, \d+% lower than predicting class frequencies\. ", text)
    assert "Its lead over blunt is significant (0." in text
    twin = np.roll(p, 0) * (1 + 1e-4 * np.random.default_rng(1).normal(size=p.shape))
    twin /= twin.sum(axis=1, keepdims=True)
    assert re.search("Its lead over [ab] is not significant.", verdict(y, {"a": p, "b": twin, "c": worse}))
    assert "Its lead over all others is significant (over b 0." in verdict(
        y, {"a": p, "b": worse, "c": worse**2 / (worse**2).sum(1, keepdims=True) * 0.2 + 0.2}
    )


def test_the_verdict_says_where_proper_scores_disagree():
    """One forecast is sure and rarely wrong, the other one never sure: Brier and log score differ."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    bold = np.where(y == 1, 0.98, 0.02)
    bold[:12] = np.where(y[:12] == 1, 1e-12, 1 - 1e-12)
    shy = np.where(y == 1, 0.7, 0.3)
    text = verdict(y, {"bold": bold, "shy": shy})
    assert text.startswith("Keep bold: Brier score")
    assert "The scores disagree: shy is best by log score" in text


def test_the_verdict_does_not_overlook_the_most_likely_class():
    """Thresholds look fine one by one, but the most likely one is right less often than it claims."""
    rng = np.random.default_rng(4)
    top, place = rng.uniform(0.4, 0.6, 300), rng.integers(1, 4, 300)
    right = rng.random(300) < top - 0.08
    y = np.where(right, place, place + rng.choice([-1, 1], 300))
    p = (
        np.eye(5)[place] * top[:, None]
        + (np.eye(5)[place - 1] + np.eye(5)[place + 1]) * (1 - top[:, None]) / 2
    )
    report = Report.of(y, p, ordered=True)
    found = report.contents.best
    assert found.decomposition.p_value > 0.05
    assert found.dense.overconfidence.gap == pytest.approx(top.mean() - right.mean())
    assert 2 * found.dense.overconfidence.p_value < 0.05
    said = f"{100 * top.mean():.0f}% claimed, {100 * right.mean():.0f}% correct"
    assert f"It is overconfident ({said}), but no recalibration method helps" in report.verdict
    text = Page(report.to_html()).text
    assert "No significant miscalibration of the thresholds (p = " in text
    assert "significantly overconfident (p = " in text
    assert "after Holm's correction over these tests" in text
    # One of two tests gets half of the level: a gap that one test alone would call real may be chance.
    shy = dataclasses.replace(
        found.dense, overconfidence=dataclasses.replace(found.dense.overconfidence, p_value=0.04), slopes=None
    )
    assert miscalibrated(dataclasses.replace(found, dense=shy), 0.95) == {"parts": False, "top": False}


def test_hits_are_counted_as_draws_with_the_probabilities_claimed():
    rng = np.random.default_rng(0)
    for low, n in ((0.02, 5), (0.3, 40), (0.9, 200), (0.97, 3000)):
        # Rows without weight do not count.
        claim, w = rng.uniform(low, 1, n), (np.arange(n) % 3 > 0) * 2.0
        # Wrong with the class beside, of so many that the rest of the row is below the claim.
        p = np.column_stack([claim, np.tile(((1 - claim) / 99)[:, None], 99)])
        y = (rng.random(n) > claim - 0.02).astype(int)
        exact = np.ones(1)
        for t in claim[w > 0]:
            exact = np.convolve(exact, [1 - t, t])
        hits = int((y[w > 0] == 0).sum())
        expected = min(1, 2 * min(exact[: hits + 1].sum(), exact[hits:].sum()))
        found = overconfidence_of(Forecasts(y, p, weights=w))
        assert found.p_value == pytest.approx(expected, abs=1e-11)
        assert found.claimed == pytest.approx(w @ claim / w.sum())
    # Where hits are many the normal distribution does.
    claim = rng.uniform(0.5, 1, 2000)
    p, y = np.column_stack([claim, 1 - claim]), (rng.random(2000) > claim - 0.03).astype(int)
    z = ((y == 0) - claim).sum() / np.sqrt((claim * (1 - claim)).sum())
    assert overconfidence_of(Forecasts(y, p)).p_value == pytest.approx(2 * NormalDist().cdf(-abs(z)))
    # All right, as claimed nearly: nothing varies, and yet nothing is strange.
    all_right = Forecasts(np.zeros(20, int), np.tile([0.95, 0.05], (20, 1)))
    assert overconfidence_of(all_right).p_value == pytest.approx(2 * 0.95**20)


def test_weights_of_rows_are_not_numbers_of_rows():
    y, p = sample(600, sharpness=1.5)
    w = np.random.default_rng(0).exponential(size=600)
    found = overconfidence_of(Forecasts(y, p, weights=w))
    claim, right = p.max(axis=1), p.argmax(axis=1) == y
    error = np.sqrt((w**2 * claim * (1 - claim)).sum())
    assert found.p_value == pytest.approx(2 * NormalDist().cdf(-abs((w * (claim - right)).sum()) / error))
    assert overconfidence_of(Forecasts(y, p, weights=100 * w)).p_value == pytest.approx(found.p_value)


def test_groups_that_repeat_one_row_are_no_more_evidence():
    y, p = sample(80, sharpness=2)
    alone = overconfidence_of(Forecasts(y, p, groups=np.arange(80)))
    rows = np.repeat(np.arange(80), 10)
    copied = overconfidence_of(Forecasts(y[rows], p[rows], groups=rows))
    assert copied.gap == pytest.approx(alone.gap)
    gaps = p.max(axis=1) - (p.argmax(axis=1) == y)
    t = abs(gaps.mean()) / (gaps.std(ddof=1) / np.sqrt(80))
    assert copied.p_value == pytest.approx(2 * stdtr(79, -t))
    assert copied.p_value <= alone.p_value * 1.0001 <= 1
    assert overconfidence_of(Forecasts(y, p, groups=np.zeros(80))).p_value is None


def test_with_groups_too_much_confidence_is_detected():
    y, sure = sample(600, sharpness=1.5)
    report = Report.of(y, sure, groups=np.arange(600) // 12)
    found = report.contents.best
    assert found.decomposition.p_value < 0.05
    assert found.dense.overconfidence.p_value < 0.05
    assert "It is overconfident" in report.verdict
    # The gain is that of a method in cross-validation, not what an isotonic fit promises in sample.
    whole = found.decomposition.whole
    assert found.dense.remedy.recalibration.n_groups == 50
    assert found.dense.remedy.share < 0.8 * whole.miscalibration / whole.score
    assert "50" in report.to_html()


def test_the_too_sure_test_with_groups_keeps_its_level_and_its_power():
    for n, n_groups in ((300, 8), (1000, 50)):
        size, _ = calibration_tests.rejections_of_overconfidence(n, n_groups, 1.0)(150, 5)
        power, _ = calibration_tests.rejections_of_overconfidence(n, n_groups, 1.5)(150, 5)
        # Binomial(150, 0.05) lies in these bounds with probability 0.998.
        assert 1 / 150 <= size <= 17 / 150
        assert power >= 0.4


def test_infinite_log_scores_are_told():
    y, p = sample(200, 3)
    p = np.round(p)
    p[p.sum(axis=1) != 1] = 1 / 3
    report = light(y, p)
    html = report.to_html()
    assert "∞" in html
    assert "of infinite loss" in html
    found = answer(report, "Outcomes given probability zero")
    assert found.kind == "look"
    assert f"{(p[np.arange(200), y] == 0).sum()} rows" in found.answer
    assert "infinite" in verdict(y, p, rules=["log_score"])
    both = light(y, {"sure": p, "flat": np.full((200, 3), 1 / 3)}, rules=["log_score"]).contents
    gap = comparison_exhibit(both)["rules"][0]["pairs"][0]["difference"]
    assert gap.startswith("at least ")
    assert gap.endswith(f"over the finite rows, and {(p[np.arange(200), y] == 0).sum()} infinite")


# ---- data checks -------------------------------------------------------------------------------


def test_cases_of_several_raters_are_not_their_own_duplicates():
    """A case is one row, and a duplicate only where its raters chose the same."""
    counts = [[1, 1], [0, 2], [2, 2], [1, 0], [1, 0]]
    p = [[0.3, 0.7], [0.3, 0.7], [0.3, 0.7], [0.5, 0.5], [0.6, 0.4]]
    handle = open_rows(np.array(counts), np.array(p), raters="counts", ids=list("abcde"))
    found = handle.summarise({"survey": SurveyRecipe()})["survey"]
    assert (found.rated, found.weighted) == (True, False)
    assert (found.rows.n_rows, sorted(found.rows.counts)) == (5, [1, 1, 1, 2])
    assert sorted(found.ids.counts) == [1] * 5


def test_duplicates_are_those_that_comparing_all_rows_finds():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        y, p = rng.integers(0, 2, n), rng.choice([0.0, -0.0, 0.25, 0.5, 1.0], n)
        rows = [(y[i], p[i]) for i in range(n)]
        first = {row: i for i, row in reversed(list(enumerate(rows)))}
        second = {}
        for i, row in enumerate(rows):
            if first[row] < i:
                second.setdefault(row, i)
        found = SurveyRecipe().take(open_rows(y, p).kept).rows
        sure = {i for i in range(n) if p[i] in (0, 1)}
        expected = sorted((i, first[row]) for row, i in second.items() if i not in sure)
        assert found.repeated(100) == expected
        kept = [row for i, row in enumerate(rows) if i not in sure]
        assert found.repeats() == (len(kept) - len(set(kept)), 0.0)


@pytest.mark.parametrize("held", [True, False])
def test_rows_of_zeros_and_ones_are_no_copies(held):
    y, p = sample(60)
    p[:20] = np.eye(4)[y[:20]]
    for copies, kind in ((0, "fine"), (3, "look")):
        outcomes, rows = np.append(y, y[30 : 30 + copies]), np.vstack([p, p[30 : 30 + copies]])
        if held:
            report = light(outcomes, rows)
        else:
            table = pa.table({"y": outcomes, **{f"p_{k}": rows[:, k] for k in range(4)}})
            report = light(vx.scan(table))
        found = answer(report, "Duplicate rows")
        assert (found.kind, found.answer.startswith("3 rows")) == (kind, copies > 0)


def test_checks_find_what_is_odd():
    y, p = sample(300, 5)
    y[y == 4] = 0
    p[:, 3] *= 0.001
    p /= p.sum(axis=1, keepdims=True)
    y, p = np.append(y, y[:6]), np.vstack([p, p[:6]])
    ids = [*range(300), *range(6)]
    by = np.append(np.repeat(["a", "b"], 150), ["c"] * 6)
    report = light(y, p, ids=ids, by={"site": by}, classes=list("vwxyz"))
    twice = answer(report, "Duplicate rows").answer
    assert twice.startswith("6 rows (2%) repeat an earlier one")
    assert "row 300 repeats row 0; row 301 repeats row 1" in twice
    assert "; and 1 more" in twice
    assert answer(report, "Duplicate ids").answer.startswith("6 rows (2%) repeat an earlier id: row 300")
    assert answer(report, "Classes never predicted").answer.startswith("y:")
    assert answer(report, "Absent or rare classes").answer.startswith("z never occurred")
    assert "c (6)" in answer(report, "Subgroups of site").answer
    assert answer(report, "Constant forecasts").kind == "fine"
    flat = light(y, np.tile(np.full(5, 0.2), (306, 1)))
    assert answer(flat, "Constant forecasts").kind == "look"


def test_sums_that_are_off_are_named():
    y, p = sample(100, 3)
    assert answer(light(y, p), "Rows that do not sum to 1").kind == "fine"
    off = p.copy()
    off[7] *= 1.01
    found = answer(light(y, off, normalize=True), "Rows that do not sum to 1").answer
    assert found.startswith("1 row differs from 1")
    assert "row 7" in found
    assert "rescaled" in found
    single = (p * 1.00002).astype(np.float32)
    assert "100 rows differ from 1" in answer(light(y, single), "Rows that do not sum to 1").answer
    assert "logits" in answer(light(y, np.log(p), logits=True), "Rows that do not sum to 1").answer
    # Of several models each is counted: a row may be off in all of them.
    several = light(y, {"a": off, "b": (p * 1.00002), "c": p}, normalize=True)
    assert answer(several, "Rows that do not sum to 1").answer.startswith("a: 1 row; b: 100 rows differ")


# ---- the page ----------------------------------------------------------------------------------


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.words, self._raw = [], [], False
        self.feed(html)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._raw = False

    def handle_data(self, data):
        if not self._raw:
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


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
    assert all(a["role"] == "img" and "table below" in a["aria-label"] for a in plots)
    assert report.verdict in page.text
    charts = json.loads(re.search('id="charts">(.*?)</script>', report.to_html()).group(1))
    assert {a["data-chart"] for a in plots} == set(charts)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


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
    charts = json.loads(re.search('id="charts">(.*?)</script>', html).group(1))
    drawn = {row["label"]: row for row in charts["models"]["datasets"]["rows"] if row["s"] == 0}
    for name, forecast in (("new", p), ("old", other)):
        low, high = vx.evaluate(y, forecast, ordered=True).scores["rps"].interval
        assert f"<small>{low:.4f} to {high:.4f}</small>" in html
        assert f">{low:.5f} to {high:.5f}<" in html
        assert (drawn[name]["low"], drawn[name]["high"]) == pytest.approx((low, high), rel=1e-4)


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
    assert [a.get("type") for a in page.all("script")] == ["application/json", None]
    assert not page.all("b")
    assert EVIL[0] in page.text
    assert "\\ud800" in page.text
    assert "{{ 7*7 }}" in page.text
    charts = json.loads(re.search('id="charts">(.*?)</script>', html).group(1))
    assert {row["label"] for row in charts["classes"]["datasets"]["rows"]} == set(
        report.contents.problem.names
    )
    # Nothing from outside is a field or part of an expression: those do not depend on the names.
    plain = Report.of(y, {"a": p, "b": 0.5 * p + 0.125, "c": p}, by={"d": np.arange(60) % 4}).to_html()
    others = json.loads(re.search('id="charts">(.*?)</script>', plain).group(1))
    for name, chart in charts.items():
        assert chart["layer"] == others[name]["layer"]


def test_names_that_look_alike_are_told_apart():
    y, p = sample(60, 2)
    report = light(y, p, classes=["a\1b", "a\\x01b"])
    assert report.contents.problem.names == ("a\\x01b", "a\\x01b (2)")


def test_many_classes_say_what_was_left_out():
    y, p = sample(440, 24)
    report = light(y, p, by={"s": np.arange(440) % 22})
    text = Page(report.to_html()).text
    assert "Shown are the 12 of 24 classes with the largest miscalibration." in text
    assert "classes that most of the loss comes from" in text
    assert "confusion matrix omitted: too many classes" in text
    assert "2 subgroups left out" in text
    (found,) = report.contents.findings
    assert len(found.dense.by_class) == 20
    shares = np.bincount(y, vx.brier.samples(y, p), 24)
    assert {line.position for line in found.dense.by_class} == set(np.argsort(-shares)[:20].tolist())


@pytest.mark.slow
def test_size_does_not_grow_with_the_rows():
    small = len(light(*sample(2000, 10)).to_html())
    large = light(*sample(20_000, 10)).to_html()
    assert len(large.encode()) < 1.3e6
    assert len(large) < 1.1 * small


# ---- files, packages, refusals -----------------------------------------------------------------


def test_saving_is_all_or_nothing(ordered, tmp_path, monkeypatch):
    report, path = ordered[-1], tmp_path / "report.html"
    path.write_text("old")

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            report.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"
    report.save(path)
    assert path.read_text(encoding="utf-8") == report.to_html()
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "package", ["altair", *(pytest.param(name, marks=pytest.mark.long) for name in ("jinja2", "vl_convert"))]
)
def test_missing_packages_are_named_with_the_remedy(package):
    code = f"""
import sys
sys.modules[{package!r}] = None
import verax as vx
report = vx.report.Report.of([0, 1] * 10, [[0.7, 0.3], [0.2, 0.8]] * 10)
print(report.verdict[:9])
try:
    report.to_html()
except vx.errors.MissingPackageError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name = {"vl_convert": "vl-convert-python"}.get(package, package)
    assert result.stdout == f"The model\nA report needs {name}: pip install 'verax-scores[report]'.\n"


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("p", {"p": {}}),
        ("p", {"p": {"a": [[0.5, 0.5]] * 4, "b": [[0.5, 0.6]] * 4}}),
        ("p", {"p": {"a": [[0.5, 0.5]] * 4, "b": [[0.2, 0.3, 0.5]] * 4}}),
        ("ids", {"ids": [1, 2]}),
        ("by", {"by": {"site": [1, 2]}}),
        ("confidence", {"confidence": 95}),
        ("costs", {"costs": [[0, 1]]}),
        ("costs", {"costs": "cubic"}),
    ],
)
def test_refusals(argument, options):
    with pytest.raises(vx.InputError) as refused:
        Report.of([0, 1, 0, 1], **{"p": [[0.5, 0.5]] * 4, **options})
    assert refused.value.argument == argument


def test_the_model_at_fault_is_named():
    with pytest.raises(vx.InputError) as refused:
        Report.of([0, 1], {"a": [[0.5, 0.5]] * 2, "b": [[0.5, 0.5], [0.5, 0.6]]})
    assert (refused.value.kind, refused.value.rows) == ("sum", (1,))
    assert "'b'" in refused.value.source


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_make_a_page(n):
    y, p = sample(n, 3)
    assert "verax" in light(y, p, ordered=True).to_html()


def test_degenerate_forecasts_make_a_page():
    y, p = sample(60, 3)
    for forecast in (np.eye(3)[y], np.eye(3)[(y + 1) % 3], np.full((60, 3), 1 / 3)):
        Report.of(y, forecast, ordered=True).to_html()
    Report.of(np.zeros(60, int), p, ordered=True, by={"s": np.arange(60) % 2}).to_html()
    Report.of(y, {"a": np.eye(3)[y], "b": np.eye(3)[y]}, weights=(y > 0).astype(float), by={"s": y}).to_html()


def test_many_ordered_classes_leave_kappa_out_and_say_so():
    y, p = sample(60, 65)
    report = light(y, p, ordered=True)
    metrics = {curve.metric for curve in report.contents.findings[0].dense.retained}
    assert metrics == {"accuracy", "rps", "ec"}
    assert "Beyond 64 classes, curves show accuracy instead of kappa." in Page(report.to_html()).text


@pytest.mark.parametrize(("k", "shown"), [(4, 20), (1000, 16), (20_000, 20)])
def test_fewer_subgroups_where_their_tables_are_large(k, shown):
    assert most_subgroups(k, 2) == shown


def test_the_prose_of_definitions_is_declared(ordered):
    card = ordered[-1].contents.findings[0].card
    for definition in definitions(card):
        assert definition.title
        assert definition.text.endswith(".")
        assert definition.reference
    assert {d.name for d in definitions(card)} == {*card.scores, *card.metrics}


def test_holm_counts_subgroups_that_are_not_shown():
    """The terminal tests all 40, the page shows 20: both correct for 40."""
    rng = np.random.default_rng(1)
    q, site = rng.random(2400), np.repeat(np.arange(40), 60)
    y = (rng.random(2400) < np.where(site == 0, q**2.2, q)).astype(int)
    report = light(y, q, by={"site": site}, replicates=100)
    found = report.contents.subgroups["site"]
    everywhere = vx.subgroups(y, q, by=site, bootstrap=100)
    assert (len(found), len(everywhere)) == (20, 40)
    first = found[0]
    assert first.p_adjusted == pytest.approx(40 * first.p_value) == everywhere[0].p_adjusted
    assert [line.label for line in found.flagged] == [line.label for line in everywhere.flagged] == [0]
    assert "p-values are corrected for all 40 subgroups" in report.to_html()


def test_models_of_rows_in_order_of_time_are_compared_as_such():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(2), (2, 120)), rng.integers(0, 2, 120)
    models = {"a": p[0], "b": p[1]}
    report = light(y, models, time_ordered=True, by=np.arange(120) % 2)
    expected = vx.compare(y, models, rule="brier", time_ordered=True, reference="frequencies")
    assert report.contents.comparison.differences["brier"] == expected.differences["brier"]
    for comparison in report.contents.subgroups["subgroup"].comparisons.values():
        assert comparison.method.startswith("Diebold-Mariano")
    assert "rows in order of time" in report.to_html()


def test_bars_of_skill_share_one_scale():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 300)
    good, bad = 0.6 * np.eye(3)[y] + 0.4 / 3, np.roll(0.5 * np.eye(3)[y] + 0.5 / 3, 1, axis=1)
    for p, signed in ((good, False), (bad, True)):
        page = light(y, {"model": p}).to_html()
        assert ('class="signed"' in page) == signed
        assert ('class="below"' in page) == signed


# ---- recalibration -----------------------------------------------------------------------------


def test_the_verdict_names_a_method_and_its_nested_gain():
    y, p, report = sharpened()
    found = vx.recalibrate(y, p, method=["temperature", "bcts", "isotonic"], rule="brier")
    assert found.method == "temperature"
    # What choosing gains: the winner's own trial is the best of several.
    gain, ends = found.gain, found.gain.share_interval
    assert gain.share < found.trial("temperature").gain.share
    spread = f"95% CI {percent(ends.low)} to {percent(ends.high)}"
    said = f"temperature scaling lowers the loss by {percent(gain.share)} ({spread}, cross-validated)"
    assert said in report.verdict
    page = report.to_html()
    assert found.verdict in page
    assert "Before and after in numbers" in page
    stored = report.to_dict()["models"]["model"]["recalibration"]
    losses = [trial["loss"] for trial in stored["recalibration"]["trials"]]
    assert losses == pytest.approx([trial.loss for trial in found.trials])
    # However many rows there are, so that pages do not grow with them.
    curves = report.contents.best.dense.remedy.curves
    assert curves
    assert max(len(each) for curve in curves for each in (curve.before, curve.after)) <= limits.REMEDY_CELLS


def test_calibrated_forecasts_are_not_to_be_recalibrated():
    y, p = sample(400)
    report = Report.of(y, p)
    assert report.contents.best.dense.remedy.recalibration.method == "none"
    page = report.to_html()
    assert "Do nothing: no significant gain." in page
    assert "Before and after in numbers" not in page


def test_a_gain_that_a_part_of_the_rows_does_not_show_is_undecided(monkeypatch):
    y, p = sample(800)
    monkeypatch.setattr(limits, "_PROBABILITIES", 4 * 600)
    report = Report.of(y, p)
    remedy = report.contents.best.dense.remedy
    assert (remedy.recalibration.method, remedy.undecided) == ("none", (600, 800))
    assert "Undecided on 600 of 800 rows: no significant gain." in report.to_html()
    words = remedy_words(report.contents.best)
    assert words == "it is unclear whether recalibration helps, from 600 of 800 rows"
    assert "Do nothing" not in report.to_html()


def test_events_that_are_too_high_or_too_low_are_named_with_evidence():
    y, p = sample(1500)
    raised = p * [1, 1, 1, 2.5]
    raised /= raised.sum(axis=1, keepdims=True)
    report = Report.of(y, raised, classes=["a", "b", "c", "d"])
    (off,) = [each for each in report.contents.best.dense.remedy.class_biases if each.gap > 0]
    # The test of a sum of independent draws with these probabilities, by its normal approximation.
    error = np.sqrt((raised[:, 3] * (1 - raised[:, 3])).sum()) / 1500
    assert off.p_value == pytest.approx(2 * norm.sf(off.gap / error), rel=1e-6)
    said = f"d is too high ({percent(raised[:, 3].mean())} forecast, {percent((y == 3).mean())} observed)"
    assert said in report.to_html()
    honest = light(y, p, classes=["a", "b", "c", "d"])
    assert not [each for each in honest.contents.best.dense.remedy.class_biases if each.p_value < 0.01]
    assert "too high" not in honest.verdict
    assert "too low" not in honest.verdict


def test_very_many_rows_are_recalibrated_in_part_and_very_many_classes_not_at_all(monkeypatch):
    monkeypatch.setattr(limits, "_PROBABILITIES", 4 * 600)
    monkeypatch.setattr("verax.report.remedies.METHODS", ("temperature",))
    y, p = sample(900)
    groups = np.arange(900) // 30
    assert Report.of(y, p).contents.best.dense.remedy.recalibration.n_rows == 600
    # Whole groups are drawn.
    whole = Report.of(y, p, groups=groups).contents.best.dense.remedy.recalibration
    assert (whole.n_rows % 30, 500 < whole.n_rows <= 600) == (0, True)
    many = np.full((600, 8), 1 / 8)
    assert Report.of(np.arange(600) % 8, many).contents.best.dense.remedy.recalibration is None
    few = Report.of([0, 1] * 5, [[0.9, 0.1], [0.2, 0.8]] * 5)
    assert few.contents.best.dense.remedy.recalibration is None
    assert "Recalibration was not tried" in few.to_html()


def test_the_scripts_are_made_once_and_kept(tmp_path, monkeypatch):
    import vl_convert

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = bundle.__wrapped__()
    (kept,) = (tmp_path / "verax").iterdir()
    assert kept.read_text(encoding="utf-8").endswith(text)
    made = []
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: made.append(snippet) or text)
    assert bundle.__wrapped__() == text
    assert not made
    # A file that is cut off or changed is not used, and is written anew.
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1])
    assert bundle.__wrapped__() == text
    assert len(made) == 1
    assert kept.read_bytes() == whole
    # A folder that cannot be made costs only the time.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert bundle.__wrapped__() == text


# ---- where the page comes from -----------------------------------------------------------------


def test_the_page_names_date_version_command_and_requirements(ordered):
    made = ordered[-1].with_command(
        "verax compare a.csv b.csv", [("rps<0.2 (0.14)", True), ("ece<0.01", False)]
    )
    text = Page(made.to_html()).text
    assert f"{made.made}, verax {vx.__version__}: verax compare a.csv b.csv" in text
    assert "met rps<0.2 (0.14) not met ece<0.01" in text
    assert made.to_dict()["required"][1] == {"requirement": "ece<0.01", "met": False}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made.made)
    assert "The 2 models were compared on the same rows" in text
    frame = made._repr_html_()
    assert frame.startswith('<iframe title="verax report" srcdoc="&lt;!doctype html')
    assert frame.count("<") == 2


def test_secondary_scores_are_folded(ordered):
    html = ordered[-1].to_html()
    folded = html.index("Secondary, improper and penalised scores")
    assert html.index("Brier score<small>") < folded < html.index("Squared absolute RPS<small>")


def test_long_names_on_axes_do_not_look_alike():
    names = ["a class with a long name, stage one", "a class with a long name, stage two", "short"]
    shown = abbreviated(names)
    assert len(set(shown)) == 3
    assert max(map(len, shown)) < 30
