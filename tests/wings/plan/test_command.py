"""`verax plan`, and the margins and bounds of `verax compare`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

RNG = np.random.default_rng(4)
N = 150
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
Q = np.clip(P + RNG.normal(0, 0.1, N), 0.01, 0.99)
SITE = np.arange(N) // 5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    for name, p in (("new", P), ("old", Q)):
        pd.DataFrame({"y": Y, "p": p, "site": SITE}).to_csv(folder / f"{name}.csv", index=False)
    return [folder / "new.csv", folder / "old.csv"]


def as_json(*arguments):
    done = verax(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plan_says_what_the_library_says(files, tmp_path):
    picture = tmp_path / "power.png"
    found = as_json("plan", *files, "--rule", "brier", "--difference", "0.01", "--plot", picture)["plan"]
    wanted = vx.plan(Y, {"new": P, "old": Q}, rule="brier", difference=0.01)
    assert found["rows"] == wanted.rows
    assert (found["rows_low"], found["rows_high"]) == (wanted.line.rows_low, wanted.line.rows_high)
    assert found["what"] == "brier, new - old"
    assert picture.stat().st_size > 1000
    grouped = as_json("plan", *files, "--rule", "brier", "--margin", "0.01", "--groups", "site")["plan"]
    assert grouped["groups"] == vx.plan(Y, {"a": P, "b": Q}, rule="brier", margin=0.01, groups=SITE).groups
    assert grouped["pilot"]["n_groups"] == 30


def test_one_model_and_none(files):
    found = as_json("plan", files[0], "--rule", "accuracy", "--width", "0.02")["plan"]
    assert found["rows"] == vx.plan(Y, P, rule="accuracy", width=0.02).rows
    text = verax("plan", "--rule", "brier", "--difference", "0.1").stdout
    assert "4,195 rows" in text
    assert "no pilot" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--difference", "0.1"], "--rule must be given where there is no pilot"),
        (["--rule", "brier", "--difference", "0.1", "--width", "0.1"], "--width cannot be combined"),
        (["--rule", "brier", "--models", "a"], "--models must be two names"),
    ],
)
def test_plan_refuses_in_one_line(arguments, message):
    done = verax("plan", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_compare_tests_a_margin_and_holds_bounds(files):
    options = ["--rule", "brier", "--margin", "0.05"]
    done = verax("compare", *files, *options, "--require", "difference.high<0.05", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    wanted = vx.compare(Y, {"new": P, "old": Q}, rule="brier", margin=0.05)
    tests = [test["p_value"] for test in found["comparison"]["margin_tests"]]
    assert tests == pytest.approx([test.p_value for test in wanted.margin_tests])
    assert found["require"][0]["value"] == pytest.approx(wanted.difference("new", "old").interval.high)
    failed = verax("compare", *files, "--rule", "brier", "--require", "difference<-0.5")
    assert failed.returncode == 1
    assert "FAILED  difference<-0.5" in failed.stdout
    refused = verax("compare", *files, "--require", "brier<0.5")
    assert refused.returncode == 2
    assert "a comparison has no 'brier'" in refused.stderr
