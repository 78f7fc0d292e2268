"""`verax sets`: what the library says, its page, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

RNG = np.random.default_rng(2)
NAMES = ["low", "middle", "high"]
P = RNG.dirichlet(np.ones(3), 200)
Y = np.array([NAMES[RNG.choice(3, p=row)] for row in P])
SITE = np.array(["north", "south"])[RNG.integers(0, 2, 200)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    table = pd.DataFrame({"y": Y, "site": SITE, **{f"p_{c}": P[:, i] for i, c in enumerate(NAMES)}})
    table[:100].to_csv(folder / "calibration.csv", index=False)
    table[100:].to_csv(folder / "test.csv", index=False)
    return folder


def as_json(*arguments):
    done = verax("sets", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_says_what_the_library_says(files):
    found = as_json(files / "test.csv", "--level", 0.8, "--by", "site")
    exact = vx.evaluate_sets(Y[100:], P[100:], level=0.8, classes=NAMES, by={"site": SITE[100:]})
    assert found["sets"]["coverage"]["value"] == exact.coverage.value
    assert [line["label"] for line in found["sets"]["by"]["site"]] == ["north", "south"]
    assert found["conformal"] is None


def test_conformal_sets_with_a_page(files, tmp_path):
    own = ["--score", "rps", "--ordered", "--classes", "low,middle,high"]
    out = ["--html", tmp_path / "a.html", "--plot", tmp_path / "a.png", "--save", tmp_path / "a.json"]
    calibration = ["--calibrate", files / "calibration.csv", "--level", 0.8]
    found = as_json(files / "test.csv", *calibration, *own, *out)
    made = vx.conformal(Y[:100], P[:100], level=0.8, score="rps", classes=NAMES)
    assert vx.results.Conformal.load(tmp_path / "a.json") == made
    exact = vx.evaluate_sets(Y[100:], made.apply(P[100:]), ordered=True)
    assert found["sets"]["winkler"]["value"] == exact.winkler.value
    page = (tmp_path / "a.html").read_text()
    assert "Sets of ordered classes" in page
    assert page.count("<script") == 1
    # Each drawing for screens, and for phones.
    assert page.count("data-plot=") == 8
    assert (tmp_path / "a.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--level 0.9"),
        (["--level", 90], "--level 0.9"),
        (["--save", "a.json", "--level", 0.9], "--calibrate"),
        (["--calibrate", "calibration.csv"], "--level must be given"),
        (["--calibrate", "calibration.csv", "--level", 0.9, "--score", "x"], "no rule called"),
    ],
)
def test_bad_options_are_refused_in_one_line(files, arguments, message, monkeypatch):
    monkeypatch.chdir(files)
    done = verax("sets", "test.csv", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
