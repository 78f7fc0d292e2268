"""`verax decide`, and what the card of two classes has on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

RNG = np.random.default_rng(8)
N = 120
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
SITE = np.arange(N) // 4


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "rows.csv"
    pd.DataFrame({"y": Y, "p": P, "site": SITE}).to_csv(path, index=False)
    return path


def as_json(*arguments):
    done = verax(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_decide_says_what_the_library_says(rows):
    found = as_json("decide", rows, "--threshold", "0.3", "--threshold", "0.6", "--groups", "site")
    points = vx.operating_points(Y, P, threshold=[0.3, 0.6], groups=SITE)
    assert [point["sensitivity"]["value"] for point in found["points"]["points"]] == pytest.approx(
        [point["sensitivity"] for point in points]
    )
    assert found["points"]["points"][1]["ppv"]["interval"] == pytest.approx(
        list(points.points[1].rate("ppv").interval)
    )
    assert found["curves"]["curves"][0]["values"] == pytest.approx(
        vx.net_benefit(Y, P, groups=SITE).curve().values.tolist()
    )
    assert [line["defer"] for line in found["deferral"]["lines"]] == [0.1, 0.2, 0.3]


def test_thresholds_are_chosen_for_rates_and_costs(rows):
    text = verax("decide", rows, "--threshold", "sensitivity>=0.8").stdout
    assert "promises a sensitivity of at least 0.8 with 95% confidence" in text
    dear = as_json("decide", rows, "--threshold", "cost", "--miss", "5", "--defer", "0.2")
    wanted = vx.operating_points(Y, P, threshold="cost", costs=[[0, 1], [5, 0]]).points[0]
    assert dear["points"]["points"][0]["threshold"] == pytest.approx(wanted.threshold)
    assert dear["points"]["points"][0]["per_fold"] == pytest.approx(wanted.per_fold.tolist())
    saved = vx.deferral(Y, P, defer=0.2, costs=[[0, 1], [5, 0]]).lines[0].saved
    assert dear["deferral"]["lines"][0]["saved"] == pytest.approx(saved)


def test_decide_refuses_in_one_line(rows):
    for arguments, says in (
        (["--threshold", "recall>=0.9"], "a rate to reach such as"),
        (["--threshold", "0.3", "--threshold", "f1"], "one text that says what to choose it for"),
        (["--threshold", "cost"], "--miss must be given with --threshold cost"),
        (["--threshold", "1.5"], "from 0 to 1"),
        (["--by", "site"], "cannot be used with `verax decide`"),
    ):
        refused = verax("decide", rows, *arguments)
        assert refused.returncode == 2
        assert says in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_bounds_on_two_classes(rows):
    card = vx.evaluate(Y, P)
    found = as_json(
        "evaluate", rows, "--target", "y", "--probs", "p", "--bootstrap", "0",
        "--require", "auc.low>0.1", "--require", "sensitivity>=0.1", "--require", "slope>0.1",
        "--require", "slope<9",
    )  # fmt: skip
    values = {(each["score"], each["of"]): each["value"] for each in found["require"]}
    assert values["auc", "low"] == pytest.approx(card.metric("auc").interval.low)
    assert values["sensitivity", "mean"] == pytest.approx(card["sensitivity"])
    assert values["slope", "mean"] == pytest.approx(card["slope"])
    assert found["calibration"]["auc"] == pytest.approx(card["auc"])
    assert found["card"]["metrics"]["f1"]["mean"] == pytest.approx(card["f1"])
    refused = verax("evaluate", rows, "--require", "sensitivty>0.5")
    assert "Did you mean 'sensitivity'?" in refused.stderr
    assert "in_the_large" in refused.stderr
    assert "higher is better" in verax("evaluate", rows, "--require", "auc<0.5").stderr
