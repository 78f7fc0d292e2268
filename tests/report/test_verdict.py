"""The words of the verdict, and the remedies it names, against plain arithmetic."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from statistics import NormalDist

import jinja2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest
from scipy.special import expit, stdtr, stdtrit
from scipy.stats import norm

import verax as vx
from commandline import verax
from covers import calibration_tests
from reports import Page, answer, light, remedy_of, sample
from verax import Forecasts
from verax._settings import changed
from verax.analyses.calibration.claims import overconfidence_of, read_class_biases
from verax.analyses.calibration.recipes import EventRecipe
from verax.common.texts import percent
from verax.inputs.memory import ONLY, open_rows
from verax.report import Report
from verax.report.compiled import templates
from verax.report.exhibits import comparison_exhibit


def verdict(y, p, **options):
    return light(y, p, **options).verdict


@cache
def sharpened():
    """Forecasts that are too sure, and the report on them: built once for all tests."""
    y, p = sample(300, sharpness=2)
    with changed(report_methods="best"):
        return y, p, Report.of(y, p)


@pytest.mark.long
def test_verdict_on_one_model():
    y, p = sample(1500)
    honest = Report.of(y, p).verdict
    assert re.match(
        r"The model beats predicting class frequencies: its Brier score of 0\.\d+ is \d+% lower \(95% CI ",
        honest,
    )
    assert honest.claims == ("better_than_reference", "no_miscalibration_seen", "no_recalibration_gain")
    assert "No significant miscalibration of the model: nothing speaks against using" in honest
    y, sure = sample(1500, sharpness=3)
    told = Report.of(y, sure).verdict
    assert re.search(r"The model is overconfident \(\d+% claimed, \d+% correct\)\. ", told)
    assert told.claims == ("better_than_reference", "overconfident", "recalibration_helps")
    assert told.next_step.call.startswith("vx.recalibrate(y, p")
    y, timid = sample(1500, sharpness=0.4)
    assert "The model is underconfident" in verdict(y, timid)
    shuffled = np.random.default_rng(0).permutation(y)
    assert verdict(shuffled, sure).startswith("The model is worse than predicting class frequencies")
    few = verdict(*sample(40))
    assert few.startswith("The model is not significantly better than predicting class frequencies")
    assert "Too few rows to tell whether the model is calibrated (40)." in few


def test_the_slope_is_tested_as_well():
    """Two classes that are right on average, with probabilities that are too extreme."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=260)
    y = (rng.random(260) < 1 / (1 + np.exp(-z))).astype(int)
    report = light(y, 1 / (1 + np.exp(-1.9 * z)))
    found = report.contents.best.dense
    line = vx.calibration_slope(y, 1 / (1 + np.exp(-1.9 * z)))["1"]
    assert found.slope.slope == line.slope
    # The test of the slope alone, whatever the intercept: by its own interval.
    half = (line.slope_interval.high - line.slope_interval.low) / 2
    surprising = (y != (z > 0)).sum()
    freedom = min(y.sum(), 260 - y.sum(), surprising) - 1
    t = (line.slope - 1) / (half / stdtrit(freedom, 0.975))
    assert line.slope_p == pytest.approx(2 * stdtr(freedom, -abs(t)))
    assert report.verdict.claims[1] == "too_extreme"
    assert f"calibration slope {line.slope:.2f}, 95% CI {line.slope_interval:.2f}" in report.verdict


def test_a_shift_is_not_called_too_extreme():
    """A joint test of slope and intercept rejects here, though the slope is 1."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=1000) - 1
    y = (rng.random(1000) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-z - 0.8))
    line = vx.calibration_slope(y, p)["1"]
    assert line.p_value < 1e-6
    assert line.slope_interval.low < 1 < line.slope_interval.high
    told = vx.evaluate(y, p).verdict
    assert told.claims[1:] == ("risks_too_high",)
    said = f"too high on average ({percent(p.mean())} forecast, {percent(y.mean())} observed"
    assert f"Its probabilities of class 1 are {said}, O:E {y.mean() / p.mean():.2f})." in told


def test_verdict_among_models():
    y, p = sample(1500)
    worse = 0.7 * p + 0.3 / 4
    text = verdict(y, {"sharp": p, "blunt": worse}, ordered=True)
    assert re.match(
        r"Keep sharp: RPS of 0\.\d+, \d+% lower than predicting class frequencies \(95% CI ", text
    )
    assert "sharp is significantly better than blunt: mean rps 0." in text
    twin = np.roll(p, 0) * (1 + 1e-4 * np.random.default_rng(1).normal(size=p.shape))
    twin /= twin.sum(axis=1, keepdims=True)
    twins = verdict(y, {"a": p, "b": twin, "c": worse})
    assert re.search("[ab] ranks first, .*, but is not significantly different from [ab]", twins)
    assert "a is significantly better than the 2 other models: mean brier 0." in verdict(
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
    assert "bold or shy? brier for bold; log_score for shy." in text


@pytest.mark.long
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
    assert f"The model is overconfident ({said})." in report.verdict
    assert report.verdict.claims[-1] == "no_recalibration_gain"
    assert "miscalibration of all thresholds, p = " in Page(report.to_html()).text


def excess(claim, hit, w):
    """How many times the variance that is claimed what happened varies, if it is claimed right on average."""
    if hit.all() or not hit.any():
        return 1.0
    more = (w @ claim) / (w @ hit), (w @ (1 - claim)) / (w @ ~hit)
    observed = (w**2 * (claim - hit) ** 2 * np.where(hit, *more)).sum()
    return max(1.0, observed / (w**2 * claim * (1 - claim)).sum())


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
        if expected < 1:
            z = NormalDist().inv_cdf(expected / 2) / np.sqrt(excess(claim, y == 0, w))
            expected = 2 * NormalDist().cdf(z)
        found = overconfidence_of(Forecasts(y, p, weights=w))
        assert found.p_value == pytest.approx(expected, abs=1e-11)
        assert found.claimed == pytest.approx(w @ claim / w.sum())
    # Where hits are many the normal distribution does.
    claim = rng.uniform(0.5, 1, 2000)
    p, y = np.column_stack([claim, 1 - claim]), (rng.random(2000) > claim - 0.03).astype(int)
    more = excess(claim, y == 0, np.ones(2000))
    z = ((y == 0) - claim).sum() / np.sqrt(more * (claim * (1 - claim)).sum())
    assert overconfidence_of(Forecasts(y, p)).p_value == pytest.approx(2 * NormalDist().cdf(-abs(z)))
    # All right, as claimed nearly: nothing varies, and yet nothing is strange.
    all_right = Forecasts(np.zeros(20, int), np.tile([0.95, 0.05], (20, 1)))
    assert overconfidence_of(all_right).p_value == pytest.approx(2 * 0.95**20)


def test_weights_of_rows_are_not_numbers_of_rows():
    y, p = sample(600, sharpness=1.5)
    w = np.random.default_rng(0).exponential(size=600)
    found = overconfidence_of(Forecasts(y, p, weights=w))
    claim, right = p.max(axis=1), p.argmax(axis=1) == y
    error = np.sqrt(excess(claim, right, w) * (w**2 * claim * (1 - claim)).sum())
    assert found.p_value == pytest.approx(2 * NormalDist().cdf(-abs((w * (claim - right)).sum()) / error))
    assert overconfidence_of(Forecasts(y, p, weights=100 * w)).p_value == pytest.approx(found.p_value)


def test_forecasts_that_are_too_extreme_are_not_called_too_high():
    """Three times the log odds, of an event that is as likely as not: it varies more than is claimed."""
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        z = rng.normal(size=100)
        y, p = (rng.random(100) < expit(z)).astype(int), expit(3 * z)
        sums = open_rows(y, p).summarise({"events": EventRecipe(ONLY, False)})["events"]
        found.append(read_class_biases(sums, 2, thresholds=False)[0].p_value <= 0.05)
    # 15 % if the variance is the one that is claimed; four Monte Carlo errors are 5 %.
    assert np.mean(found) < 0.1


def test_a_group_with_half_of_the_rows_is_no_evidence_alone():
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        groups = np.repeat(np.arange(20), [19, *[1] * 19])
        y = (rng.random(20) < 0.5).astype(int)[groups]
        sums = open_rows(y, np.full(38, 0.5), groups=groups).summarise({"events": EventRecipe(ONLY, False)})
        found.append(read_class_biases(sums["events"], 2, thresholds=False)[0].p_value <= 0.05)
    # More than half with as many degrees of freedom as groups.
    assert np.mean(found) < 0.1


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


@pytest.mark.long
def test_with_groups_too_much_confidence_is_detected():
    y, sure = sample(600, sharpness=1.5)
    report = Report.of(y, sure, groups=np.arange(600) // 12)
    found = report.contents.best
    assert found.decomposition.p_value < 0.05
    assert found.dense.overconfidence.p_value < 0.05
    assert "The model is overconfident" in report.verdict
    # The gain is that of a method in cross-validation, not what an isotonic fit promises in sample.
    whole = found.decomposition.whole
    tried = remedy_of(report).recalibration
    assert tried.n_groups == 50
    assert tried.gain.share < 0.8 * whole.miscalibration / whole.score
    assert "50" in report.to_html()


@pytest.mark.long
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


@pytest.mark.long
def test_the_verdict_names_a_method_and_its_gain():
    y, p, report = sharpened()
    found = vx.recalibrate(y, p)
    assert found.method == "temperature"
    gain, ends = found.gain, found.gain.share_interval
    assert found.verdict.findings[0].text == report.verdict.findings[-1].text
    shown = report.verdict.findings[-1].numbers["gain"]
    assert shown[0] == pytest.approx(gain.share, rel=1e-9)
    assert shown[1] == pytest.approx(ends, rel=1e-9)
    page = report.to_html()
    assert html.escape(found.verdict.findings[0].text) in page
    assert "Before and after in numbers" in page
    stored = report.to_dict()["models"]["model"]["recalibration"]
    losses = [trial["loss"] for trial in stored["recalibration"]["trials"]]
    assert losses == pytest.approx([trial.loss for trial in found.trials])
    # However many rows there are, so that pages do not grow with them.
    curves = remedy_of(report).curves
    assert curves
    assert max(len(each) for curve in curves for each in (curve.before, curve.after)) <= 50


@pytest.mark.long
def test_calibrated_forecasts_are_not_to_be_recalibrated(all_methods):
    y, p = sample(400)
    report = Report.of(y, p)
    assert remedy_of(report).recalibration.method == "none"
    page = report.to_html()
    assert "No gain is shown: calibration is not rejected (score test p = " in page
    assert "Before and after in numbers" not in page


def test_a_gain_that_a_part_of_the_rows_does_not_show_is_undecided(change, all_methods):
    y, p = sample(800)
    change(recalibrated_rows=600)
    report = Report.of(y, p)
    remedy = remedy_of(report)
    assert (remedy.recalibration.method, remedy.recalibration.sampled) == ("none", (600, 800))
    assert ", 600 of 800 rows)." in report.verdict


def test_events_that_are_too_high_or_too_low_are_named_with_evidence():
    y, p = sample(1500)
    raised = p * [1, 1, 1, 2.5]
    raised /= raised.sum(axis=1, keepdims=True)
    report = Report.of(y, raised, classes=["a", "b", "c", "d"])
    (off,) = [each for each in report.contents.best.dense.class_biases if each.gap > 0]
    # The test of a sum of independent draws with these probabilities, by its normal approximation.
    error = np.sqrt((raised[:, 3] * (1 - raised[:, 3])).sum()) / 1500
    assert off.p_value == pytest.approx(2 * norm.sf(off.gap / error), rel=1e-6)
    shares = f"{percent(raised[:, 3].mean())} forecast, {percent((y == 3).mean())} observed"
    assert f"forecasts d too often ({shares})" in report.verdict
    honest = light(y, p, classes=["a", "b", "c", "d"])
    assert not [each for each in honest.contents.best.dense.class_biases if each.p_value < 0.01]
    assert not {"risks_too_high", "risks_too_low"} & set(honest.verdict.claims)


def test_very_many_rows_are_recalibrated_in_part_and_very_many_classes_not_at_all(change):
    change(recalibrated_rows=600, report_recalibrated=4 * 600, report_methods=("temperature",))
    y, p = sample(900)
    groups = np.arange(900) // 30
    assert remedy_of(Report.of(y, p)).recalibration.n_rows == 600
    # Whole groups are drawn.
    whole = remedy_of(Report.of(y, p, groups=groups)).recalibration
    assert (whole.n_rows % 30, 500 < whole.n_rows <= 600) == (0, True)
    many = np.full((600, 8), 1 / 8)
    assert remedy_of(Report.of(np.arange(600) % 8, many)).recalibration is None
    few = Report.of([0, 1] * 5, [[0.9, 0.1], [0.2, 0.8]] * 5)
    assert remedy_of(few).recalibration is None
    assert "Recalibration was not tried" in few.to_html()


def test_templates_are_compiled_once_and_kept_where_nobody_else_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = []
    compile_template = jinja2.Environment.compile

    def compiling(environment, *arguments):
        compiled.append(arguments)
        return compile_template(environment, *arguments)

    def template():
        compiled.clear()
        jinja2.Environment(loader=source, bytecode_cache=templates()).get_template("page").render()
        return len(compiled)

    monkeypatch.setattr(jinja2.Environment, "compile", compiling)
    source = jinja2.DictLoader({"page": "a"})
    assert [template(), template()] == [1, 0]
    source.mapping["page"] = "b"
    assert [template(), template()] == [1, 0]
    (kept,) = (tmp_path / "verax").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert [template(), template()] == [1, 0]
    # What others can change is not used.
    kept.chmod(0o666)
    assert template() == 1
    assert (tmp_path / "verax").stat().st_mode & 0o777 == 0o700
    # A folder that cannot be made costs only the time.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [template(), template()] == [1, 1]


@pytest.mark.parametrize("kind", ["two", "ordered"])
def test_python_the_command_and_the_page_find_the_same_gain(kind, tmp_path, all_methods):
    y, p = sample(200, 2 if kind == "two" else 3, sharpness=2.5)
    ordered = kind == "ordered"
    table = pa.table({"y": y, **{f"p_{k}": column for k, column in enumerate(p.T)}})
    papq.write_table(table, tmp_path / "a.parquet")
    found = vx.recalibrate(y, p, ordered=ordered)
    assert found.rule == ("rps" if ordered else "brier")
    page = remedy_of(Report.of(y, p, ordered=ordered)).recalibration
    typed = [tmp_path / "a.parquet", "--target", "y", "--json", *["--ordered"] * ordered]
    printed = json.loads(verax("recalibrate", *typed).stdout)["recalibration"]
    scanned = vx.recalibrate(vx.scan(tmp_path / "a.parquet", target="y"), ordered=ordered)
    assert str(page.verdict) == str(scanned.verdict) == str(found.verdict)
    for other in (page.to_dict(), printed, scanned.to_dict()):
        for name in ("method", "rule", "folds"):
            assert other[name] == found.to_dict()[name]
        assert other["calibration_p"] == pytest.approx(found.calibration_p, rel=1e-6)
        gains = [(trial["method"], trial["gain"]["share"]) for trial in other["trials"]]
        assert [name for name, _ in gains] == [trial.method for trial in found.trials]
        assert [x for _, x in gains] == pytest.approx([trial.gain.share for trial in found.trials], abs=1e-9)


def test_the_same_rows_of_many_are_tried_everywhere(change, all_methods):
    change(recalibrated_rows=150)
    y, p = sample(400, 2, sharpness=2.5)
    found = vx.recalibrate(y, p)
    assert found.sampled == (150, 400)
    assert "From a random sample of 150 of 400 rows." in repr(found)
    page = remedy_of(Report.of(y, p)).recalibration
    assert (page.sampled, page.gain.share) == (found.sampled, pytest.approx(found.gain.share))
    # What is asked for by name is fitted to all rows.
    assert vx.recalibrate(y, p, method="temperature").n_rows == 400
