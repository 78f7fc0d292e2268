"""Skill and calibration on the command line: `verax decompose`, bounds, and lines of `verax evaluate`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import demofiles
import verax as vx
import verax.files
from commandline import verax
from verax.cli.require import read_bounds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    demofiles.write_all(path)
    return path


def read(folder, **options):
    rows = vx.files.read(folder / "preds.parquet", **options)
    given = {"classes": rows.classes, "weights": rows.weights, "groups": rows.groups}
    return rows, {name: value for name, value in given.items() if value is not None}


def as_json(*arguments):
    result = verax(*arguments, "--json")
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout, parse_constant=pytest.fail)


@pytest.mark.parametrize("options", [{}, {"weights": "w"}, {"groups": "site"}], ids=str)
def test_evaluate_says_what_the_library_says(folder, options):
    rows, given = read(folder, **options)
    typed = [text for name, value in options.items() for text in (f"--{name}", value)]
    found = as_json("evaluate", folder / "preds.parquet", *typed)["calibration"]
    parts = vx.decompose(rows.y, rows.p, rule="brier", **given)
    assert (found["rule"], found["quantity"], found["reference"]) == ("brier", "brier", "frequencies")
    for name in ("miscalibration", "discrimination", "uncertainty"):
        assert found[name] == pytest.approx(getattr(parts, name), rel=1e-12)
    skill = vx.compare(rows.y, {"a": rows.p}, rule="brier", reference="frequencies", **given)
    assert found["skill"] == pytest.approx(skill.models["brier"][0].skill, rel=1e-12)
    ungrouped = {name: value for name, value in given.items() if name != "groups"}
    assert found["ece"] == pytest.approx(vx.ece(rows.y, rows.p, **ungrouped), rel=1e-12)
    assert found["intervals"] == {}


def test_it_is_said_in_the_terminal(folder):
    result = verax("evaluate", folder / "preds.parquet")
    found = as_json("evaluate", folder / "preds.parquet")["calibration"]
    lines = [line.split() for line in result.stdout.splitlines()]
    for name in ("skill", "miscalibration", "discrimination", "ece"):
        assert [name, f"{found[name]:.4f}"] in [line[:2] for line in lines]
    assert "calibration by brier" in result.stdout


@pytest.mark.parametrize(
    ("options", "rule", "quantity"),
    [
        (["--ordered", "--classes", "cat,dog,fox"], "rps", "rps"),
        (["--rule", "log_score"], "log_score", "one-vs-rest log_score"),
        (["--rule", "spherical"], "brier", "brier"),
        (
            ["--rule", "spherical", "--rule", "brier(scale='half')"],
            "brier(scale='half')",
            "brier(scale='half')",
        ),
    ],
)
def test_the_rule_is_the_one_asked_for_where_it_has_parts(folder, options, rule, quantity):
    found = as_json("evaluate", folder / "preds.parquet", *options)["calibration"]
    assert (found["rule"], found["quantity"]) == (rule, quantity)


def test_logits_and_rows_to_normalize_are_scored_as_probabilities(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    y = rng.integers(0, 3, 300)
    np.savez(tmp_path / "z.npz", logits=z, labels=y)
    np.savez(tmp_path / "p.npz", probs=7 * np.exp(z), labels=y)
    found = [
        as_json("evaluate", tmp_path / "z.npz", "--logits"),
        as_json("evaluate", tmp_path / "p.npz", "--normalize"),
    ]
    expected = vx.decompose(y, z, rule="brier", logits=True).miscalibration
    for result in found:
        assert result["calibration"]["miscalibration"] == pytest.approx(expected, rel=1e-9)
        assert result["calibration"]["ece"] == pytest.approx(vx.ece(y, z, logits=True), rel=1e-9)


# ---- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "met"),
    [
        ("skill>0.01", True),
        ("skill>0.99", False),
        ("skill.low>-1", True),
        ("ece<0.5", True),
        ("ece<=0.0001", False),
        ("smooth_ece<0.5", True),
        ("smooth_ece<0.0001", False),
        ("miscalibration<1", True),
        ("miscalibration.high<1", True),
        ("miscalibration.high<-1", False),
        ("discrimination>=0.001", True),
    ],
)
def test_bounds_on_calibration(folder, bound, met):
    result = verax("evaluate", folder / "preds.parquet", "--require", bound, "--json")
    found = json.loads(result.stdout)
    assert (result.returncode, found["met"]) == (0 if met else 1, met)
    (verdict,) = found["require"]
    name = verdict["score"]
    if verdict["of"] == "mean":
        assert verdict["value"] == found["calibration"][name]
    else:
        end = found["calibration"]["intervals"][name][verdict["of"] == "high"]
        assert verdict["value"] == end


def test_the_intervals_are_those_of_the_library(folder):
    rows, given = read(folder)
    found = as_json(
        "evaluate", folder / "preds.parquet", "--require", "miscalibration.high<1", "--bootstrap", 40
    )
    parts = vx.decompose(rows.y, rows.p, rule="brier", bootstrap=40, **given)
    skill = vx.compare(rows.y, {"a": rows.p}, rule="brier", reference="frequencies", **given)
    intervals = found["calibration"]["intervals"]
    np.testing.assert_allclose(intervals["miscalibration"], parts.intervals["miscalibration"], rtol=1e-12)
    np.testing.assert_allclose(intervals["skill"], skill.models["brier"][0].skill_interval, rtol=1e-12)
    every = as_json("evaluate", folder / "preds.parquet", "--require", "skill>0", "--require-interval")
    assert every["require"][0]["of"] == "low"


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("skill<0.5", "higher is better for skill, so a bound reads 'skill>0.5'"),
        ("ece>0.5", "lower is better for ece"),
        ("ece.high<0.5", "no interval is known for ece"),
        ("miscalibration.low<0.5", "the high end of the interval is the one to bound"),
        ("discriminaton>0.5", "Did you mean 'discrimination'?"),
    ],
)
def test_bounds_that_make_no_sense(bound, words):
    with pytest.raises(vx.InputError, match="--require") as caught:
        read_bounds([bound], strictly=False, ordered=False)
    assert words in str(caught.value)


def test_two_kinds_of_groups_have_no_interval_of_miscalibration(folder):
    both = ["--groups", "site,id"]
    found = as_json("evaluate", folder / "preds.parquet", *both)["calibration"]
    assert (
        found["miscalibration"]
        == as_json("evaluate", folder / "preds.parquet")["calibration"]["miscalibration"]
    )
    result = verax("evaluate", folder / "preds.parquet", *both, "--require", "miscalibration.high<1")
    assert result.returncode == 2
    assert "must be of one kind" in result.stderr


# ---- files that are too large ----------------------------------------------------------------------


def test_a_large_file_says_that_it_was_not_computed(folder, change):
    change(calibration_up_to=100)
    result = verax("evaluate", folder / "preds.parquet")
    assert result.returncode == 0
    assert "calibration by" not in result.stdout
    assert "Note: Skill and calibration were not computed" in result.stdout
    assert "240 rows of 3 classes" in result.stdout
    assert as_json("evaluate", folder / "preds.parquet")["calibration"] is None
    # A bound asks for it all the same, and so does the command that is named.
    asked = as_json("evaluate", folder / "preds.parquet", "--require", "skill>0")
    assert asked["calibration"]["skill"] == asked["require"][0]["value"]
    assert (
        as_json("decompose", folder / "preds.parquet")["calibration"]["skill"]
        == asked["calibration"]["skill"]
    )


# ---- the command -----------------------------------------------------------------------------------


def test_decompose_is_what_the_library_says(folder, tmp_path):
    rows, given = read(folder, weights="w", groups="site")
    arguments = ["--weights", "w", "--groups", "site", "--bootstrap", 30, "--seed", 3]
    found = as_json("decompose", folder / "preds.parquet", *arguments, "--plot", tmp_path / "curves.svg")
    expected = vx.decompose(rows.y, rows.p, rule="brier", bootstrap=30, seed=3, **given)
    assert found["decomposition"] == json.loads(json.dumps(expected.to_dict(stored=False)))
    assert found["calibration"]["miscalibration"] == expected.miscalibration
    assert found["calibration"]["intervals"]["miscalibration"] == list(expected.intervals["miscalibration"])
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    text = verax("decompose", folder / "preds.parquet", *arguments).stdout
    assert repr(expected) in text
    assert "calibration by brier" in text


def test_decompose_of_ordered_classes_and_without_draws(folder):
    ordered = ["--ordered", "--classes", "cat,dog,fox"]
    found = as_json("decompose", folder / "preds.parquet", *ordered, "--bootstrap", 0)
    assert found["decomposition"]["rule"] == "rps"
    assert [part["name"] for part in found["decomposition"]["parts"]] == ["<= cat", "<= dog"]
    assert found["decomposition"]["whole"]["p_value"] is None
    assert found["calibration"]["intervals"] == {}


def test_decompose_refuses_in_one_line(folder, tmp_path):
    pd.DataFrame({"label": ["a", "b"], "p_a": [0.5, 0.2], "p_b": [0.5, 0.2]}).to_csv(
        tmp_path / "bad.csv", index=False
    )
    for arguments, words in (
        ([folder / "preds.parquet", "--rule", "spherical"], "can be decomposed"),
        ([folder / "preds.parquet", "--rule", "rps"], "order"),
        ([tmp_path / "bad.csv"], "bad.csv: The probabilities of a row must sum to 1"),
    ):
        result = verax("decompose", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
