"""The findings of one input are the same in Python, JSON, terminal and page, saved and merged."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pytest

import verax as vx
from commandline import verax
from reports import Page, sample
from verax.results import Scorecard

# Claims that a plain card does not make: recalibration is tried where a page asks for it.
ABOUT_RECALIBRATION = {"recalibration_helps", "no_recalibration_gain", "recalibration_harms"}


def _risks(n=400, *, shift=0.0, sharp=1.0, seed=1):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) - 0.8
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    p = 1 / (1 + np.exp(-sharp * z - shift))
    return y, np.column_stack([1 - p, p])


def _biased(n=600):
    y, p = sample(n)
    p = p * [1, 1, 1, 2.5]
    return y, p / p.sum(axis=1, keepdims=True)


def _sure_zero():
    y, p = sample(200, 3)
    p[0] = np.eye(3)[(y[0] + 1) % 3]
    return y, p


KINDS = {
    "calibrated": (*_risks(), []),
    "shifted": (*_risks(shift=0.9), []),
    "sharpened": (*_risks(sharp=1.8), []),
    "small": (*_risks(30), []),
    "useless": (np.random.default_rng(0).permutation(_risks()[0]), _risks()[1], []),
    "several": (*sample(500), []),
    "overconfident": (*sample(500, sharpness=2), []),
    "biased class": (*_biased(), []),
    "ordered": (*sample(500, sharpness=2), ["--ordered", "--classes", "0,1,2,3"]),
    "weighted": (*_risks(shift=0.9), ["--weights", "w"]),
    "grouped": (*_risks(600, shift=0.9), ["--groups", "g"]),
    "infinite": (*_sure_zero(), ["--rule", "log_score"]),
}


def _written(path, y, p):
    """A file with weights and groups, as the options name them."""
    columns = {"y": y, **{f"p_{i}": column for i, column in enumerate(p.T)}}
    columns |= {"w": 0.5 + np.arange(len(y)) % 3, "g": np.arange(len(y)) // 10}
    pl.DataFrame(columns).write_parquet(path)
    return path


def _plain(findings):
    """What findings say, without what depends on where they are shown, and numbers to ten digits."""
    kept = [f for f in findings if f["claim"] not in ABOUT_RECALIBRATION]
    shown = [{name: value for name, value in f.items() if name != "next_step"} for f in kept]
    return json.loads(json.dumps(shown), parse_float=lambda x: float(f"{float(x):.10g}"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_surface_shows_the_same_findings(kind, tmp_path):
    y, p, options = KINDS[kind]
    file = _written(tmp_path / "rows.parquet", y, p)
    read = ["--target", "y", "--probs", "p_*", *options]
    how = {}
    if "--weights" in options:
        how["weights"] = 0.5 + np.arange(len(y)) % 3
    if "--groups" in options:
        how["groups"] = np.arange(len(y)) // 10
    if "--rule" in options:
        how["rules"] = ["log_score"]
    card = vx.evaluate(y, p, ordered="--ordered" in options, **how)
    own = card.verdict
    assert own.findings
    told = _plain(own.to_dict()["findings"])
    # JSON of the card, a card from it, and a saved one.
    stored = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert (stored["verdict"], _plain(stored["findings"])) == (str(own), told)
    assert Scorecard.from_dict(stored).verdict == own
    card.save(tmp_path / "card.verax")
    loaded = vx.load(tmp_path / "card.verax")
    assert (loaded.verdict, _plain(loaded.verdict.to_dict()["findings"])) == (own, told)
    # Text and JSON of the command.
    ran = verax("evaluate", file, *read)
    assert ran.stdout.startswith(own.split(" Next:")[0])
    found = json.loads(verax("evaluate", file, *read, "--json").stdout)
    assert _plain(found["findings"]) == told
    assert found["verdict"] == own
    # The page, which tries recalibration too.
    page = tmp_path / "page.html"
    found = json.loads(verax("evaluate", file, *read, "--html", page, "--json").stdout)
    assert _plain(found["findings"]) == told
    text = Page(page.read_text(encoding="utf-8")).text
    assert " ".join(found["verdict"].split()) in text
    assert own.tested in text
    step = found["next_step"]
    if step is not None and step["command"]:
        assert step["command"] in text


@pytest.mark.parametrize("kind", ["shifted", "overconfident"])
def test_merged_parts_claim_no_more_than_all_rows(kind, tmp_path):
    y, p, _ = KINDS[kind]
    whole = vx.report.Report.of(y, p).verdict
    parts = []
    for i, rows in enumerate((slice(0, 150), slice(150, None))):
        file = _written(tmp_path / f"{i}.parquet", y[rows], p[rows])
        part = tmp_path / f"{i}.verax"
        typed = ["--target", "y", "--probs", "p_*", "--save", part, "--html", tmp_path / f"{i}.html"]
        verax("evaluate", file, *typed)
        parts.append(part)
    found = json.loads(verax("merge", *parts, "--html", tmp_path / "all.html", "--json").stdout)
    known = {each["text"] for each in _plain(whole.to_dict()["findings"])}
    assert {each["text"] for each in _plain(found["findings"])} == known


def test_the_next_step_runs_as_printed(tmp_path):
    y, p, _ = KINDS["shifted"]
    file = _written(tmp_path / "two words.parquet", y, p)
    found = json.loads(verax("evaluate", file, "--target", "y", "--probs", "p_*", "--json").stdout)
    name, *typed = shlex.split(found["next_step"]["command"])
    assert name == "verax"
    ran = verax(*typed)
    assert ran.returncode == 0, ran.stderr
    assert " off the Brier score of held-out rows" in ran.stdout
    again = eval(found["next_step"]["call"], {"vx": vx, "y": y, "p": p})
    assert again.method != "none"


# ---- subgroups ---------------------------------------------------------------------------------


def _by_site(tmp_path, *, shift, n=1500):
    """Rows whose forecasts are shifted in the subgroup c, and a second model that is worse."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    site, half = rng.choice(list("abcde"), n, p=[0.3, 0.3, 0.04, 0.18, 0.18]), np.arange(n) % 2
    files = []
    for name, x in {"one": z + shift * (site == "c"), "two": 0.2 * z}.items():
        p = 1 / (1 + np.exp(-x))
        frame = pl.DataFrame({"y": y, "p_0": 1 - p, "p_1": p, "site": site, "half": half})
        frame.write_parquet(tmp_path / f"{name}.parquet")
        files.append(tmp_path / f"{name}.parquet")
    return files, site, half, y, 1 / (1 + np.exp(-z - shift * (site == "c")))


def _about_subgroups(findings):
    return [each for each in findings if "subgroup" in each["claim"]]


@pytest.mark.parametrize(
    ("shift", "claim"), [(1.8, "subgroup_miscalibrated"), (0, "no_subgroup_miscalibrated")]
)
def test_subgroups_are_the_last_question_on_every_surface(shift, claim, tmp_path):
    (file, _), site, half, y, p = _by_site(tmp_path, shift=shift)
    columns = ["--by", "site", "--by", "half"]
    plain = json.loads(verax("evaluate", file, *columns, "--json").stdout)
    page = json.loads(verax("evaluate", file, *columns, "--html", tmp_path / "p.html", "--json").stdout)
    report = vx.report.Report.of(y, np.column_stack([1 - p, p]), by={"site": site, "half": half})
    (told,) = _about_subgroups(plain["findings"])
    assert told["claim"] == claim
    assert told["about"] == (["site = c"] if shift else [])
    # Skill is answered, so calibration is tested at 5 % and subgroups at a fifth of that.
    assert told["level"] == pytest.approx(0.01)
    assert _plain([told]) == _plain(_about_subgroups(page["findings"]))
    assert _plain([told]) == _plain(_about_subgroups(report.verdict.to_dict()["findings"]))
    # The tables below say the same, and p-values are corrected for the subgroups of both columns.
    lines = [line for part in plain["subgroups"].values() for line in part["subgroups"]]
    out = [line["label"] for line in lines if line["stands_out"]]
    assert out == (["c"] if shift else [])
    least = min(lines, key=lambda line: line["p_value"])
    # Half of the level is for what subgroups show together, and is handed on where that is shown.
    assert 7 * least["p_value"] <= least["p_adjusted"] * (1 + 1e-12) <= 14 * least["p_value"] * (
        1 + 1e-9
    ) or (least["p_adjusted"] == 1)
    if shift:
        step = plain["next_step"]["text"]
        assert "do not use the probabilities in the subgroup site = c" in step
        assert "nothing speaks against" not in plain["verdict"]


def test_subgroups_of_a_comparison_are_those_of_the_best_model(tmp_path):
    files, *_ = _by_site(tmp_path, shift=1.8)
    found = json.loads(verax("compare", *files, "--by", "site", "--json").stdout)
    (told,) = _about_subgroups(found["findings"])
    assert told["text"].startswith("one is significantly miscalibrated in the subgroup site = c")
    # The other model is too timid everywhere.
    out = {
        (line["label"], line["model"])
        for line in found["subgroups"]["site"]["subgroups"]
        if line["stands_out"]
    }
    assert out >= {("c", "one"), ("a", "two")}


# ---- names of classes, and few events ----------------------------------------------------------


def test_classes_that_are_numbers_have_the_name_of_their_column(tmp_path):
    y, p, _ = KINDS["shifted"]
    frame = pl.DataFrame({"Churn": y, "p_0": p[:, 0], "p_1": p[:, 1]})
    frame.write_csv(tmp_path / "rows.csv")
    read = ["--target", "Churn", "--probs", "p_*"]
    page = tmp_path / "page.html"
    found = json.loads(verax("evaluate", tmp_path / "rows.csv", *read, "--json").stdout)
    on_page = json.loads(verax("evaluate", tmp_path / "rows.csv", *read, "--html", page, "--json").stdout)
    told = "Its probabilities of Churn = 1 are too high on average"
    assert told in found["verdict"]
    assert told in on_page["verdict"]
    assert "The event is Churn = 1 " in Page(page.read_text(encoding="utf-8")).text
    # Data fields hold the label.
    assert found["card"]["classes"] == on_page["card"]["classes"] == [0, 1]
    scanned = vx.scan(frame, target="Churn", probs="p_*")
    assert vx.evaluate(scanned).verdict.about("risks_too_high") == ("Churn = 1",)
    report = vx.report.Report.of(scanned).to_dict()
    assert report["classes"] == ["0", "1"]
    assert report["models"][next(iter(report["models"]))]["reliability"][0]["event"] == "1"
    assert vx.report.Report.of(y, p).verdict.about("risks_too_high") == ("class 1",)
    assert vx.report.Report.of(y, p, outcome="Churn").verdict.about("risks_too_high") == ("Churn = 1",)


@pytest.mark.parametrize(("rows", "events", "seen"), [(2000, 10, False), (2000, 200, True), (300, 0, False)])
def test_few_events_cannot_show_that_forecasts_are_calibrated(rows, events, seen):
    """About 30 events tell a risk from half of it: (2.8 / 0.5)^2, at a power of 80 %."""
    # Two fifths of the events are among the first half of the rows, whose risk is as much smaller.
    place, half = np.arange(rows) % (rows // 2), np.arange(rows) >= rows // 2
    y = (place < np.where(half, 0.6, 0.4) * events).astype(int)
    p = np.where(half, 1.2, 0.8) * max(events, 0.3) / rows
    verdict = vx.evaluate(y, p).verdict
    assert ("no_miscalibration_seen" in verdict.claims) == seen
    if not seen:
        few = "none of the rows have" if not events else f"only {events} of {rows:,} rows have"
        assert f"Too few events to tell whether the model is calibrated: {few} another" in verdict


# ---- small and odd samples ---------------------------------------------------------------------


def test_rows_of_one_outcome_show_neither_skill_nor_what_to_recalibrate():
    p = np.random.default_rng(0).dirichlet([1, 1], 30)
    verdict = vx.report.Report.of(np.zeros(30, int), p).verdict
    assert verdict.startswith("All rows have the same outcome, so they do not show whether the model beats")
    assert verdict.claims == ("not_better_than_reference", "risks_too_high")
    assert verdict.next_step.text == "collect rows with other outcomes before you recalibrate"


def test_rows_that_are_all_alike_have_no_interval():
    y = np.arange(30) % 2
    right, wrong = (np.eye(2)[each] * 0.9 + 0.05 for each in (y, 1 - y))
    for p in (right, wrong):
        told = vx.report.Report.of(y, p).verdict
        assert "95% CI" not in told
    # Thirty rows without an error do not show that 95 % would be right: (1 - 0.05)^30 = 0.21.
    assert "too_few_rows" in vx.evaluate(y, right).verdict.claims


def test_a_model_that_is_ahead_for_one_infinite_row_is_not_to_be_kept_for_it():
    y, p, _ = KINDS["calibrated"]
    zero = p.copy()
    zero[0] = np.eye(2)[1 - y[0]]
    models = {"zero": zero, "flat": 0.5 * p + 0.25}
    told = vx.report.Report.of(y, models, rules=["log_score"]).verdict
    assert told.startswith("flat has a log score of ")
    assert "the ranking rests on this row alone" in told


def test_a_method_that_helps_is_explained_in_plain_words():
    y, p, _ = KINDS["sharpened"]
    found = vx.recalibrate(y, p, method=["temperature", "prior"])
    assert "recalibration_helps" in found.verdict.claims
    means = "Temperature scaling makes all probabilities more or less extreme by one factor."
    assert means in repr(found).splitlines()


def test_a_page_says_of_many_subgroups_what_python_says():
    rng = np.random.default_rng(4)
    z = rng.normal(-1, 1, 6000)
    y, p = (rng.random(6000) < 1 / (1 + np.exp(-z))).astype(int), 1 / (1 + np.exp(-z - 0.25))
    site = np.array([f"site {i:02}" for i in rng.integers(0, 40, 6000)])
    report = vx.report.Report.of(y, p, by={"site": site})
    wanted, (found,) = vx.subgroups(y, p, by=pd.Series(site, name="site")), report.contents.subgroups.values()
    assert str(found.verdict) == str(wanted.verdict)
    texts = {each.claim: each.text for each in wanted.verdict.findings}
    assert "all 40 subgroups of site" in texts["all_subgroups_off"]
    assert texts.items() <= {each.claim: each.text for each in report.verdict.findings}.items()
    text = Page(report.to_html()).text
    assert all(each in text for each in texts.values())
    assert "Shown are 20 of 40 subgroups, the largest and those that stand out." in text
    assert sum(f"site {i:02}" in text for i in range(40)) == 20


def test_a_page_draws_subgroups_that_stand_out_first():
    rng = np.random.default_rng(5)
    z = rng.normal(-1, 1, 6000)
    code = np.minimum(rng.integers(0, 41, 6000), 39)
    # The smallest subgroup alone is off.
    code = np.where((code == 0) & (rng.random(6000) < 0.3), 1, code)
    y = (rng.random(6000) < 1 / (1 + np.exp(-z - 2.5 * (code == 0)))).astype(int)
    report = vx.report.Report.of(
        y, 1 / (1 + np.exp(-z)), by={"site": np.array([f"site {i:02}" for i in code])}
    )
    (found,) = report.contents.subgroups.values()
    assert [line.label for line in found.lines if line.stands_out] == ["site 00"]
    assert min(found.lines, key=lambda line: line.card.n_rows).label == "site 00"
    text = Page(report.to_html()).text
    assert "miscalibrated in the subgroup site = site 00" in text
    assert sum(f"site {i:02}" in text for i in range(40)) == 20
