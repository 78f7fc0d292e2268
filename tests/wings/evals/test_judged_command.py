"""Judges and repeats at the command line: what the library says, and what is refused."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

N = 300
RNG = np.random.default_rng(4)
RIGHT = RNG.random(N) < 0.7
SEEN = RNG.permutation(N) < 60
HUMAN = np.where(SEEN, RIGHT, np.nan)
JUDGES = {
    "new": np.where(RNG.random(N) < 0.9, RIGHT, True),
    "old": np.where(RNG.random(N) < 0.9, RIGHT, False),
}
JUDGED = ("--judge", "judge", "--grade", "human")
GRADES = (RNG.random((40, 8)) < RNG.random((40, 1))).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("judged")
    for name, judge in JUDGES.items():
        frame = pd.DataFrame({"qid": np.arange(N), "judge": judge.astype(int), "human": HUMAN})
        frame["second"] = np.where(np.arange(N) % 9, HUMAN, 1 - HUMAN)
        frame["chance"] = 0.2
        frame.to_csv(path / f"{name}.csv", index=False)
    repeats = pd.DataFrame({"task": np.repeat(np.arange(40), 8), "correct": GRADES.ravel()})
    repeats["domain"] = repeats.task // 4
    repeats.to_csv(path / "passk.csv", index=False)
    return path


def out(folder, *typed, code=0):
    with contextlib.chdir(folder):
        ran = verax("evals", *typed)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_the_command_gives_what_the_library_gives(folder):
    found = vx.evaluate_grades(HUMAN, judge=JUDGES["new"].astype(float))
    shown = json.loads(out(folder, "evaluate", "new.csv", *JUDGED, "--json"))
    assert shown["grades"]["mean"] == pytest.approx(found.mean)
    assert shown["grades"]["headline"] == "corrected"
    assert shown["taken"][0] == "new.csv: judge: judge"
    text = out(folder, "evaluate", "new.csv", *JUDGED)
    assert "corrected by people" in text
    assert "not graded" not in text


def test_bounds_are_on_the_corrected_mean(folder):
    text = out(folder, "evaluate", "new.csv", *JUDGED, "--require", "grade.low>0.5", "--html", "page.html")
    assert "met     grade.low>0.5" in text
    assert "corrected by people" in (folder / "page.html").read_text()
    assert "grade>0.99" in out(folder, "evaluate", "new.csv", *JUDGED, "--require", "grade>0.99", code=1)
    assert "grade and accuracy only" in out(
        folder, "evaluate", "new.csv", *JUDGED, "--require", "ungraded<0.1", code=2
    )


def test_designs_and_several_people(folder):
    weighted = json.loads(out(folder, "evaluate", "new.csv", *JUDGED, "--checks", "chance", "--json"))
    assert weighted["grades"]["checks"] == "probabilities"
    by_grade = json.loads(out(folder, "evaluate", "new.csv", *JUDGED, "--checks", "by-grade", "--json"))
    assert by_grade["grades"]["checks"] == "by-grade"
    two = json.loads(
        out(folder, "evaluate", "new.csv", "--judge", "judge", "--grade", "human,second", "--json")
    )
    assert two["grades"]["n_people"] == 2
    assert two["grades"]["alpha"]["value"] < 1


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ((*JUDGED, "--checks", "by-hand"), "chosen by hand"),
        (("--judge", "judge"), "people's grades"),
        (("--judge", "judge,second", "--grade", "human"), "must be one column"),
        (("--judge", "nobody", "--grade", "human"), "nobody"),
        (("--checks", "random", "--grade", "judge"), "--checks needs"),
        ((*JUDGED, "--k", "5"), "--k cannot be used"),
        ((*JUDGED, "--by", "chance"), "--by cannot be used"),
        ((*JUDGED, "--save", "card.verax"), "--save saves mean grades"),
    ],
)
def test_what_has_no_meaning_is_refused(folder, typed, text):
    assert text in " ".join(out(folder, "evaluate", "new.csv", *typed, code=2).split())


def test_grades_by_people_are_not_passed_over_in_silence(folder):
    text = " ".join(out(folder, "evaluate", "new.csv", "--grade", "judge").split())
    assert "caution: human has grades by people of 60 of 300 answers, not used" in text
    assert "--judge judge --grade human" in text
    refused = out(folder, "evaluate", "new.csv", code=2)
    assert "Pass --judge COLUMN and --grade COLUMN where people checked" in " ".join(refused.split())


def test_models_are_compared_by_a_corrected_judge(folder):
    typed = ("compare", "new.csv", "old.csv", "--id", "qid", *JUDGED)
    judges = {name: judge.astype(float) for name, judge in JUDGES.items()}
    found = vx.compare_grades(dict.fromkeys(judges, HUMAN), judge=judges)
    shown = json.loads(out(folder, *typed, "--json"))["comparison"]
    (gap,) = shown["grade_differences"]
    assert gap["difference"] == pytest.approx(found.difference("new", "old").difference)
    assert "The judge favours new over old" in " ".join(shown["notes"])
    assert "The judge favours new over old" in " ".join(out(folder, *typed).split())
    refused = out(folder, "compare", "new.csv", "old.csv", *JUDGED, "--checks", "by-grade", code=2)
    assert "by-grade" in refused


def test_repeats_are_reduced(folder):
    typed = ("evaluate", "passk.csv", "--id", "task", "--k", "1,5,pass^5,3 of 5")
    found = vx.pass_at_k(GRADES, "1,5,pass^5,3 of 5")
    shown = json.loads(out(folder, *typed, "--json"))["grades"]
    assert [score["value"] for score in shown["scores"]] == pytest.approx([s.value for s in found.scores])
    assert "pass@5" in out(folder, *typed, "--html", "page.html")
    assert "pass^5" in (folder / "page.html").read_text()
    grouped = json.loads(out(folder, *typed, "--groups", "domain", "--json"))["grades"]
    assert grouped["n_groups"] == 10
    assert "at most 8" in out(folder, "evaluate", "passk.csv", "--id", "task", "--k", "9", code=2)
    assert "--id must name the question" in out(folder, "evaluate", "passk.csv", "--k", "2", code=2)
