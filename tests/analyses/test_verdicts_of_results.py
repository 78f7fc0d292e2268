"""Verdicts of results: the same findings in Python, JSON, terminal, pages and saved results."""

import html
import itertools
import json
import pickle
import shlex

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import verax as vx
from commandline import verax
from verax.analyses.subgroups.verdict import verdict_of
from verax.inference.findings import Claim, Verdict
from verax.report.questions import question_page
from verax.selection import History
from verax.wings.evals.page import grade_page
from verax.wings.monitor.page import monitor_page
from verax.wings.sets.page import sets_page

N = 240
RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, N)


def softmax(strength):
    z = RNG.normal(size=(N, 3))
    z[np.arange(N), Y] += strength
    e = np.exp(z)
    return e / e.sum(axis=1, keepdims=True)


A, B, C = softmax(1.3), softmax(1.2), softmax(0.2)
SHARP = C**4 / (C**4).sum(axis=1, keepdims=True)
FOLDS = np.arange(N) % 6
LABELS = np.column_stack([np.where(RNG.random(N) < 0.8, Y, RNG.integers(0, 3, N)) for _ in range(3)])
GRADES = {"a": (RNG.random(N) < 0.7).astype(float), "b": (RNG.random(N) < 0.5).astype(float)}
OWN_RATERS = {"raters": "columns", "classes": [0, 1, 2]}

RESULTS = {
    "compare": lambda: vx.compare(Y, {"a": A, "b": B, "c": C}, rule=["brier", "log_score"]),
    "margin": lambda: vx.compare(Y, {"a": A, "b": B}, rule="brier", margin=0.2),
    "grades compared": lambda: vx.compare_grades(GRADES, ids=np.arange(N)),
    "folds": lambda: vx.compare_folds(Y, {"a": A, "c": C}, folds=FOLDS, rule="brier"),
    "data sets": lambda: vx.compare_datasets(RNG.random((9, 3)), models=list("abc"), better="lower"),
    "lengths": lambda: vx.compare_lengths(Y, A, k=[1, 2], rule="brier"),
    "grades": lambda: vx.evaluate_grades(GRADES["a"]),
    "subgroups": lambda: vx.subgroups(Y, SHARP, by=np.arange(N) % 2),
    "subgroups of models": lambda: vx.subgroups(Y, {"a": A, "c": C}, by=np.arange(N) % 2),
    "sets": lambda: vx.evaluate_sets(Y, SHARP, level=0.9),
    "conformal": lambda: vx.conformal(Y, A, level=0.9),
    "raters": lambda: vx.raters(LABELS, A, **OWN_RATERS, n=2),
    "over time": lambda: vx.over_time(Y, A, time=np.arange(N) // 60),
    "plan": lambda: vx.plan(Y, {"a": A, "b": B}, rule="brier", difference=0.01),
    "validation": lambda: vx.plan_validation(Y == 0, A[:, 0], threshold=0.3),
    "refinement": lambda: vx.refinement(Y, SHARP, rule="brier", method="temperature"),
    "pool": lambda: vx.fit_combination(Y, {"a": A, "b": B}, folds=3),
    "selection": lambda: History.from_columns({"pbs": [0.9, 0.6, 0.7], "brier": [0.5, 0.4, 0.3]}).select(),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_python_repr_json_and_saved_results_have_the_same_findings(kind):
    found = RESULTS[kind]()
    verdict = found.verdict
    assert isinstance(verdict, Verdict)
    assert verdict.findings
    shown = " ".join(repr(found).split())
    for finding in verdict.findings:
        assert " ".join(finding.text.split()) in shown
        assert Claim(finding.claim) is finding.claim
    step = verdict.next_step
    assert step is None or f"Next: {step.text}." in shown
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert values["verdict"] == str(verdict)
    assert values["findings"] == [each.to_dict() for each in verdict.findings]
    assert values["next_step"] == (None if step is None else step.to_dict())
    if values["stored"] is None:
        # A plan holds functions of its pilot, which are not stored.
        assert kind == "plan"
        return
    again = type(found).from_dict(values)
    assert again.verdict == verdict
    assert [each.to_dict() for each in again.verdict.findings] == values["findings"]
    assert pickle.loads(pickle.dumps(verdict)).findings == verdict.findings


@pytest.mark.parametrize("kind", RESULTS)
def test_a_claim_that_asserts_something_is_within_its_level(kind):
    for finding in RESULTS[kind]().verdict.findings:
        if finding.claim.asserts and finding.p_value is not None:
            assert finding.p_value <= finding.level


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verdicts")
    for name, p in {"a": A, "c": C, "sharp": SHARP}.items():
        frame = pd.DataFrame(p, columns=["p_0", "p_1", "p_2"])
        frame = frame.assign(y=Y, fold=FOLDS, day=np.arange(N) // 60, site=np.arange(N) % 2)
        frame.to_csv(folder / f"{name}.csv", index=False)
        frame.drop(columns="y").assign(**dict(zip("uvw", LABELS.T, strict=True))).to_csv(
            folder / f"rated-{name}.csv", index=False
        )
    for name, grades in GRADES.items():
        rows = [{"id": i, "score": grade} for i, grade in enumerate(grades.tolist())]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pd.DataFrame(RNG.random((9, 2)), columns=["a", "b"]).assign(data=range(9)).to_csv(
        folder / "scores.csv", index=False
    )
    pd.DataFrame({"epoch": [1, 2], "val_brier": [0.5, 0.4]}).to_csv(folder / "log.csv", index=False)
    return folder


COMMANDS = {
    "compare folds": ("compare", "a.csv", "c.csv", "--folds", "fold", "--rule", "brier"),
    "compare data sets": ("compare", "scores.csv", "--datasets", "data", "--better", "lower"),
    "compare grades": ("compare", "a.jsonl", "b.jsonl", "--grade", "score", "--id", "id"),
    "grades": ("evaluate", "a.jsonl", "--grade", "score"),
    "plan": ("plan", "a.csv", "c.csv", "--rule", "brier", "--difference", "0.001"),
    "sets": ("sets", "sharp.csv", "--level", "0.9"),
    "raters": ("raters", "rated-a.csv", "--raters", "u,v,w"),
    "select": ("select", "log.csv"),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_terminal_and_json_of_commands_have_the_same_findings(kind, files, monkeypatch):
    monkeypatch.chdir(files)
    shown, printed = verax(*COMMANDS[kind]), verax(*COMMANDS[kind], "--json")
    assert printed.returncode == 0, printed.stderr
    found = json.loads(printed.stdout)
    inner = next((own for own in found.values() if isinstance(own, dict) and "findings" in own), found)
    assert inner["verdict"] == found["verdict"]
    assert [each["claim"] for each in inner["findings"]] == [each["claim"] for each in found["findings"]]
    assert found["verdict"] in shown.stdout
    assert shown.stdout.count(found["findings"][0]["text"]) == 1
    for finding in found["findings"]:
        assert finding["text"] in found["verdict"]
    assert "{source}" not in json.dumps(found["findings"])


def test_the_next_step_runs_as_printed(files, monkeypatch):
    """How many more rows would decide: the command and the call give the number that the verdict names."""
    monkeypatch.chdir(files)
    near = np.where(np.arange(N) < 9, 1 - GRADES["a"], GRADES["a"])
    rows = [{"key": i, "score": grade} for i, grade in enumerate(GRADES["a"].tolist())]
    others = [{**row, "score": grade} for row, grade in zip(rows, near.tolist(), strict=True)]
    for name, own in {"old one": rows, "new": others}.items():
        (files / f"{name}.jsonl").write_text("\n".join(map(json.dumps, own)))
    asked = ("compare", "old one.jsonl", "new.jsonl", "--grade", "score", "--id", "key", "--json")
    step = json.loads(verax(*asked).stdout)["next_step"]
    planned = json.loads(verax(*shlex.split(step["command"])[1:], "--json").stdout)["plan"]
    comparison = vx.compare_grades({"old one": GRADES["a"], "new": near}, ids=np.arange(N))
    called = eval(step["call"], {"vx": vx, "comparison": comparison})
    assert planned["rows"] == called.rows
    said = int(step["text"].split("about ")[1].split(" more")[0].replace(",", ""))
    assert said == pytest.approx(planned["more_rows"], rel=0.1)


def test_pages_have_the_same_findings():
    compared, card, judged = RESULTS["grades compared"](), RESULTS["grades"](), RESULTS["sets"]()
    monitor = vx.Monitor(0.5, rule="brier")
    monitor.update(Y, A, time=np.arange(N) // 60)
    pages = {
        compared: question_page(compared),
        card: grade_page(card),
        judged: sets_page(judged),
        monitor: monitor_page(monitor),
    }
    for found, page in pages.items():
        assert html.escape(str(found.verdict)) in page


def test_a_monitor_tells_the_same_saved_and_loaded(tmp_path):
    monitor = vx.Monitor(0.2, rule="brier", alpha=0.05)
    for day in range(12):
        monitor.update(Y, SHARP, time=day)
    assert monitor.verdict.claims == ("alarm",)
    assert "look at the rows since" in monitor.verdict.next_step.text
    monitor.save(tmp_path / "state")
    again = vx.Monitor.load(tmp_path / "state")
    assert again.verdict.to_dict() == monitor.verdict.to_dict()
    assert monitor.to_dict()["findings"] == [each.to_dict() for each in monitor.verdict.findings]


def test_a_lead_is_claimed_only_after_the_correction_for_all_pairs():
    """The best of ten equal models often beats the next one by an uncorrected test."""
    claimed = uncorrected = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.random(80) < 0.5
        models = {str(i): np.clip(0.5 + 0.2 * rng.normal(size=80), 0.01, 0.99) for i in range(6)}
        found = vx.compare(y, models, rule="brier")
        first, *others = [model.name for model in found.models["brier"]]
        claimed += "best_model" in found.verdict.claims
        uncorrected += all(found.difference(first, other).p_value <= 0.05 for other in others)
        assert ("best_model" in found.verdict.claims) == (found.leader() is not None)
    assert claimed <= uncorrected
    assert claimed <= 6


def test_an_interval_that_excludes_zero_beside_an_open_lead_is_explained():
    for seed in itertools.count():
        rng = np.random.default_rng(seed)
        y = rng.random(100) < 0.5
        models = {str(i): np.clip(0.5 + 0.2 * rng.normal(size=100), 0.01, 0.99) for i in range(5)}
        found = vx.compare(y, models, rule="brier")
        first, second, *_ = found.models["brier"]
        gap = found.difference(second.name, first.name)
        if gap.p_value <= 0.05 < gap.p_adjusted:
            break
    assert found.verdict.claims[0] == "lead_open"
    assert "This interval is for the pair alone; corrected for all pairs, p is" in found.verdict


def test_one_infinite_row_does_not_make_a_model_best():
    sure = A.copy()
    sure[5] = np.eye(3)[(Y[5] + 1) % 3]
    found = vx.compare(Y, {"sure": sure, "weak": C}, rule="log_score")
    assert found.best() == "weak"
    assert found.verdict.claims == ("infinite_loss", "score")
    assert "infinite for sure (1 row): the ranking rests on this row alone" in found.verdict
    without = np.arange(N) != 5
    assert f"the mean is {vx.log_score(Y[without], A[without]):.4g} for sure" in found.verdict


def test_intervals_have_digits_that_tell_their_ends_apart():
    many = vx.evaluate_sets(np.zeros(400_000, int), np.tile([[1, 0]], (400_000, 1)).astype(bool), level=0.9)
    ends = many.verdict.findings[0].text
    low, high = ends.split("CI ")[1].split(")")[0].split(" to ")
    assert low != high
    assert "CI" not in vx.compare(Y, {"a": A, "same": A}, rule="brier").verdict.split("difference")[-1]


def test_raters_are_tested_together():
    found = vx.raters(LABELS, A, **OWN_RATERS)
    losses = np.array([[vx.brier.samples(LABELS[:, i], A) for i in range(3)]])[0]
    p = []
    for own in range(3):
        others = [i for i in range(3) if i != own]
        forecast = np.mean([losses[i] for i in others], axis=0)
        rater = np.mean([2.0 * (LABELS[:, own] != LABELS[:, i]) for i in others], axis=0)
        p.append(scipy.stats.ttest_rel(forecast, rater).pvalue)
    assert [rater.p_value for rater in found.raters] == pytest.approx(p, rel=1e-6)
    order = np.argsort(p)
    adjusted = np.minimum(np.maximum.accumulate(np.array(p)[order] * [3, 2, 1]), 1)
    assert [found.raters[i].p_adjusted for i in order] == pytest.approx(adjusted, rel=1e-6)
    beaten = [rater.name for rater in found.raters if rater.p_adjusted <= 0.05 and rater.gain.value < 0]
    assert list(found.verdict.about("better_than_a_rater")) == beaten


@pytest.mark.parametrize(("factor", "slightly"), [(0.57, False), (0.99, True)])
def test_only_what_is_near_one_is_slight(factor, slightly):
    """A gap of a hundredth is most of a rare event, and little of a frequent one."""
    rng = np.random.default_rng(0)
    q = rng.beta(1, 49, 40_000) if factor < 0.9 else rng.beta(4, 5, 200_000)
    y = (rng.random(len(q)) < factor * q).astype(int)
    (found,) = (line for line in verdict_of(y, q)[0].findings if line.claim == "risks_too_high")
    assert abs(found.numbers["forecast"] - found.numbers["observed"]) < 0.01
    assert ("slightly" in found.text) == slightly


def test_slopes_are_not_slight():
    """The word is for observed and expected numbers of events that are close, which a slope does not tell."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=200_000)
    y = (rng.random(len(z)) < 1 / (1 + np.exp(-0.97 * z))).astype(int)
    (found,) = (
        line for line in verdict_of(y, 1 / (1 + np.exp(-z)))[0].findings if line.claim == "too_extreme"
    )
    assert "too extreme (calibration slope 0.97" in found.text
    assert "slightly" not in found.text
