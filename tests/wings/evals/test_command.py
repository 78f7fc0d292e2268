"""Graded answers at the command line: files of their own, stacked models, right answers and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

N = 60
RNG = np.random.default_rng(2)
EASE = RNG.random(N)
GRADES = {
    name: (RNG.random(N) < np.clip(EASE + more, 0, 1)).astype(float)
    for name, more in (("new", 0.2), ("old", 0))
}
GRADES["old"][:3] = np.nan
SURE = {name: np.clip(EASE, 0.05, 0.95) for name in GRADES}
IDS = np.array([f"q{i}" for i in range(N)])
SUBJECT = np.arange(N) // 4
TASK = np.where(np.arange(N) % 3, "math", "law")
HALF = np.where(np.arange(N) % 2, "odd", "even")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("graded")
    frames = []
    for name, own in GRADES.items():
        frame = pd.DataFrame(
            {
                "qid": IDS,
                "subject": SUBJECT,
                "task": TASK,
                "half": HALF,
                "correct": own,
                "confidence": SURE[name],
            }
        )
        frame["answer"], frame["gold"] = np.where(own == 1, "A", "B"), "A"
        frame.sample(frac=1, random_state=1).to_csv(path / f"{name}.csv", index=False)
        frames.append(frame.assign(model=name))
    records = frames[1].assign(correct=[None if np.isnan(g) else bool(g) for g in GRADES["old"]])
    records.to_json(path / "old.jsonl", orient="records", lines=True)
    pd.concat([frames[0].iloc[10:], frames[1]]).to_csv(path / "both.csv", index=False)
    return path


def as_json(*arguments, command=("evals", "compare")):
    done = verax(*command, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["comparison"]


def refusal(*arguments, command=("evals", "compare")):
    done = verax(*command, *arguments)
    assert done.returncode == 2
    return done.stderr


def test_files_of_their_own_are_matched_by_id(folder):
    wanted = vx.compare_grades(GRADES, ids=IDS, groups=SUBJECT, task=TASK)
    options = ("--grade", "correct", "--id", "qid", "--groups", "subject", "--task", "task")
    for old in ("old.csv", "old.jsonl"):
        found = as_json(folder / "new.csv", folder / old, *options)
        (gap,) = found["differences"]["grade"]
        assert gap["p_value"] == pytest.approx(wanted.difference("new", "old").p_value)
        assert set(found["tasks"]) == {"law", "math"}
        assert found["answers"]["grade"][1]["ungraded"] == 3
        assert found["gap_bounds"]["grade"][0]["high"] == pytest.approx(wanted.gap_bounds["grade"][0].high)
    done = verax("evals", "compare", folder / "new.csv", folder / "old.csv", *options)
    assert "3 of 60 answers not graded" in done.stdout
    assert "Caution: 3 of 60 answers of old (5.0%) were not graded" in done.stdout
    wrong = as_json(folder / "new.csv", folder / "old.csv", *options[:4], "--ungraded", "wrong")
    assert wrong["n_rows"] == N


def test_right_answers_in_place_of_grades(folder):
    found = as_json(folder / "new.csv", folder / "old.csv", "--gold", "gold", "--id", "qid")
    given = {name: (np.nan_to_num(own) == 1).astype(float) for name, own in GRADES.items()}
    wanted = vx.compare_grades(given, ids=IDS)
    assert found["differences"]["grade"][0]["difference"] == pytest.approx(
        wanted.difference("new", "old").difference
    )


def test_stacked_models_with_different_questions(folder, tmp_path):
    both, page = folder / "both.csv", tmp_path / "page.html"
    options = (both, "--grade", "correct", "--id", "qid", "--model-column", "model")
    assert "--missing joint" in refusal(*options)
    found = as_json(*options, "--missing", "joint", "--rule", "brier", "--html", page)
    ids = {"new": IDS[10:], "old": IDS}
    given = {"new": GRADES["new"][10:], "old": GRADES["old"]}
    sure = {"new": SURE["new"][10:], "old": SURE["old"]}
    wanted = vx.compare_grades(given, sure, rule="brier", ids=ids, missing="joint")
    for rule in ("grade", "brier"):
        assert found["differences"][rule][0]["standard_error"] == pytest.approx(
            wanted.difference("new", "old", rule).standard_error
        )
    assert "not graded" in page.read_text()
    assert wanted.verdict in page.read_text()
    assert as_json(*options, "--missing", "pairwise")["missing"] == "pairwise"


def test_distributions_with_different_questions(tmp_path):
    y, p = RNG.integers(0, 2, 40), RNG.uniform(0.05, 0.95, (2, 40)).round(3)
    for name, own, rows in (("a", p[0], slice(0, 30)), ("b", p[1], slice(5, 40))):
        frame = pd.DataFrame({"id": np.arange(40), "y": y, "p": own})[rows]
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = (tmp_path / "a.csv", tmp_path / "b.csv")
    found = as_json(*files, "--id", "id", "--missing", "joint", "--rule", "brier", command=["compare"])
    gaps = vx.brier.samples(y, p[0])[5:30] - vx.brier.samples(y, p[1])[5:30]
    assert found["differences"]["brier"][0]["difference"] == pytest.approx(gaps.mean())
    assert [own["asked"] for own in found["answers"]["brier"]] == [30, 35]
    assert "--id" in refusal(*files, "--missing", "joint", command=["compare"])


def test_mistakes_are_named_with_their_remedies(folder, tmp_path):
    grade = ("--grade", "correct", "--id", "qid")
    assert "--model-column model" in refusal(folder / "both.csv", folder / "new.csv", *grade)
    assert "Did you mean 'correct'?" in refusal(folder / "new.csv", folder / "old.csv", "--grade", "corect")
    repeated = refusal(folder / "new.csv", folder / "old.csv", "--grade", "correct", "--id", "subject")
    assert "must not repeat within a model" in repeated
    assert "--epoch" in repeated
    assert "row 0 holds" in refusal(
        folder / "new.csv", folder / "old.csv", "--grade", "answer", "--id", "qid"
    )
    assert "--grade-range" in refusal(
        folder / "new.csv", folder / "old.csv", "--grade", "subject", "--id", "qid"
    )
    percent = pd.read_csv(folder / "new.csv")
    percent["confidence"] *= 100
    percent.to_csv(tmp_path / "percent.csv", index=False)
    # Grades need no confidences; scoring these does.
    as_json(tmp_path / "percent.csv", folder / "old.csv", *grade)
    assert "--percent" in refusal(tmp_path / "percent.csv", folder / "old.csv", *grade, "--rule", "brier")


def test_a_file_of_answers_confidences_and_grades_is_evaluated(folder):
    done = verax("evals", "evaluate", folder / "old.csv", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["grades"]
    wanted = vx.evaluate_grades(GRADES["old"], SURE["old"])
    assert found["mean"] == pytest.approx(wanted.mean)
    assert found["ungraded"] == 3
    assert found["card"]["n_rows"] == 57
    shown = verax(
        "evals", "evaluate", folder / "old.csv", "--task", "task", "--groups", "subject", "--id", "qid"
    ).stdout
    assert "law" in shown
    assert "with ungraded" in shown
    refused = verax("evals", "evaluate", folder / "both.csv")
    assert (refused.returncode, "--model-column" in refused.stderr) == (2, True)


def test_subgroups_bounds_a_page_and_saved_parts(folder, tmp_path):
    """Every option of `evaluate` works on grades; merged parts say what all answers say."""
    old, page = folder / "old.csv", tmp_path / "page.html"
    wanted = vx.evaluate_grades(GRADES["old"], SURE["old"], by={"task": TASK, "half": HALF})
    bounds = ("--require", "accuracy.low>0.3", "--require", "ungraded<0.1", "--require", "ece<0.9")
    done = verax("evals", "evaluate", old, "--by", "task", "--by", "half", *bounds, "--html", page, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["grades"]["tasks"]["law"]["mean"] == pytest.approx(wanted.tasks["law"].mean)
    odd = wanted.subgroups["half"]["odd"]
    assert found["grades"]["subgroups"]["half"]["odd"]["mean"] == pytest.approx(odd.mean)
    assert [held["value"] for held in found["require"][:2]] == pytest.approx([wanted.interval[0], 3 / 60])
    assert "Mean grade by task" in page.read_text()
    assert verax("evals", "evaluate", old, "--require", "grade>0.99").returncode == 1
    for bound, said in (
        ("grade<0.5", "higher is better"),
        ("ungraded.high<0.5", "has no interval"),
        ("accurcy>0.5", "Did you mean"),
    ):
        refused = verax("evals", "evaluate", old, "--require", bound)
        assert (refused.returncode, said in refused.stderr) == (2, True)
    by_rule = verax("evaluate", old, "--rule", "brier")
    assert "--rule cannot be used with `verax evals evaluate`" in by_rule.stderr
    table = pd.read_csv(old)
    for i, rows in enumerate((table[:25], table[25:])):
        rows.to_csv(tmp_path / f"{i}.csv", index=False)
        saving = verax(
            "evals", "evaluate", tmp_path / f"{i}.csv", "--by", "half", "--save", tmp_path / f"{i}.verax"
        )
        assert saving.returncode == 0, saving.stderr
    parts = (tmp_path / "0.verax", tmp_path / "1.verax")
    merged = verax("merge", *parts, "--require", "grade>0.2", "--save", tmp_path / "all.verax", "--json")
    assert merged.returncode == 0, merged.stderr
    grades = json.loads(merged.stdout)["grades"]
    assert grades["interval"]["low"] == pytest.approx(wanted.interval[0])
    assert grades["card"]["scores"]["brier"]["mean"] == pytest.approx(wanted.card["brier"])
    assert vx.load(tmp_path / "all.verax").mean == pytest.approx(wanted.mean)
    assert sum([vx.load(part) for part in parts[1:]], vx.load(parts[0])).answers.asked == N


def test_plans_from_graded_pilots(folder):
    """The plan of `verax plan` is that of the comparison, or of the grades of one model."""
    both = (folder / "new.csv", folder / "old.csv", "--grade", "correct", "--id", "qid")
    compared = vx.compare_grades(GRADES, ids=IDS)
    for options, wanted in (
        ((*both, "--difference", "0.1"), vx.plan(compared, difference=0.1)),
        ((*both, "--margin", "0.1"), vx.plan(compared, margin=0.1)),
        ((folder / "old.csv", "--width", "0.05"), vx.plan(vx.evaluate_grades(GRADES["old"]), width=0.05)),
    ):
        done = verax("evals", "plan", *options, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["plan"]["rows"] == wanted.rows
    stacked = (
        "evals",
        "plan",
        folder / "both.csv",
        "--grade",
        "correct",
        "--id",
        "qid",
        "--model-column",
        "model",
    )
    assert "--missing joint" in verax(*stacked, "--difference", "0.1").stderr
    assert "power" in verax(*stacked, "--difference", "0.1", "--missing", "pairwise").stdout


def test_tournaments_and_models_stacked_with_probabilities(tmp_path):
    """Forecasters in rows, whose forecasts change: as `compare` with `times` and `closes`."""
    y = RNG.integers(0, 2, 12)
    rows = []
    for name, step in (("ann", 1), ("bob", 2)):
        for q in range(0, 12, step):
            for day in (1, 4)[: 1 + q % 2]:
                p = round(float(np.clip(0.5 + 0.3 * (y[q] - 0.5) + RNG.normal(0, 0.2), 0.05, 0.95)), 3)
                rows.append((name, f"q{q}", p, y[q], f"2026-01-{day:02}", "2026-01-11"))
    columns = ("forecaster", "question", "probability", "resolution", "time", "closes")
    table = pd.DataFrame(rows, columns=columns)
    file = tmp_path / "forecasts.csv"
    table.to_csv(file, index=False)
    stacked = ("--model-column", "forecaster", "--id", "question", "--rule", "brier", "--missing", "joint")
    own = dict(iter(table.groupby("forecaster")))
    wanted = vx.compare(
        {name: part["resolution"] for name, part in own.items()},
        {name: part["probability"] for name, part in own.items()},
        ids={name: part["question"].to_numpy() for name, part in own.items()},
        times={name: part["time"].to_numpy() for name, part in own.items()},
        closes={name: part["closes"].to_numpy() for name, part in own.items()},
        rule="brier",
        missing="joint",
    )
    found = as_json(file, *stacked, "--times", "time", "--closes", "closes", command=["compare"])
    for kind, scores in (("models", wanted.models), ("peers", wanted.peers), ("baselines", wanted.baselines)):
        means = {model["name"]: model["mean"] for model in found[kind]["brier"]}
        assert means == pytest.approx({model.name: model.mean for model in scores["brier"]})
    # By hand: the first forecast of two stood 3 of 10 days.
    losses = 2 * (own["ann"]["probability"] - own["ann"]["resolution"]) ** 2
    days = np.where(own["ann"]["question"].duplicated(keep=False), 3, 10)
    days = np.where(own["ann"]["time"] == "2026-01-04", 7, days)
    uniform = np.average(losses, weights=days) - 0.5
    assert {model.name: model.mean for model in wanted.baselines["brier"]}["ann"] == pytest.approx(uniform)
    said = verax("compare", file, *stacked, "--times", "time", "--closes", "closes").stdout
    assert "baseline score" in said
    assert "models: forecaster" in said
    assert "--times COLUMN and --closes COLUMN" in refusal(file, *stacked, command=["compare"])
    assert "--closes must be named" in refusal(file, *stacked, "--times", "time", command=["compare"])
    assert "--task forecaster" in refusal(file, *stacked, "--by", "forecaster", command=["compare"])
    refused = verax("evaluate", file, *stacked[:2])
    assert (refused.returncode, "column of grades" in refused.stderr) == (2, True), refused.stderr
    table.drop_duplicates(["forecaster", "question"]).to_csv(file, index=False)
    assert as_json(file, *stacked, command=["compare"])["missing"] == "joint"
    planned = verax("plan", file, *stacked, "--difference", "0.1")
    assert "power" in planned.stdout, planned.stderr
