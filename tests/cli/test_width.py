"""What is printed fits the terminal, and says what it left out; how much is printed, and the log."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import pytest

import demofiles
import verax as vx
from commandline import too_wide, verax
from verax.cli.commands import all_commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("width")
    demofiles.write_all(path)
    return path


@pytest.fixture(autouse=True)
def inside(folder, tmp_path, monkeypatch):
    """A folder of its own: `verax init` changes how files are read there."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("width", [40, 60, 100, 120])
def test_other_widths(width):
    for typed in ("evaluate preds.parquet --by site", "compare a.parquet b.parquet", "decide preds.parquet"):
        ran = verax(*shlex.split(typed), columns=width)
        assert too_wide(ran.stdout, width) == [], typed


def test_the_verdict_comes_first_then_the_headline_score_and_the_rest_is_behind_all():
    typed = ("evaluate", "grades.csv", "--target", "grade", "--ordered", "--classes", "none,mild,severe")
    text = verax(*typed, columns=80).stdout
    assert text.startswith("The model beats predicting class frequencies: its RPS of 0.1672")
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("score  "))
    assert lines[head + 2].startswith("rps ")
    assert "sa_rps" not in text
    assert text.endswith("Not shown: 8 more lines; columns range, proper. --all shows everything.\n")
    every = verax(*typed, "--all", columns=80).stdout
    assert "Not shown" not in every
    assert max(map(len, every.splitlines())) > 100
    shown = re.findall(r"^\w+(?=  )", every, re.MULTILINE)
    assert {"rps", "sa_rps", "pbs", "ec", "skill"} <= set(shown)


def test_wider_terminals_show_more_columns():
    typed = ("evaluate", "preds.parquet")
    heads = [
        next(line for line in verax(*typed, columns=width).stdout.splitlines() if line.startswith("score  "))
        for width in (80, 90, 110)
    ]
    columns = [len(re.split(r"\s{2,}", head)) for head in heads]
    assert columns == sorted(columns)
    assert (columns[0], columns[-1]) == (4, 6)
    assert "proper" in heads[-1]


def test_results_in_python_are_as_wide_as_they_are():
    found = vx.evaluate(vx.scan("preds.parquet"))
    assert "strictly" in repr(found)
    assert "pbs" in repr(found)


def test_quiet_prints_the_verdict_and_the_bounds_that_failed():
    bounds = ("--require", "brier<0.1", "--require", "accuracy>0.1")
    ran = verax("evaluate", "preds.parquet", *bounds, "--quiet", columns=80)
    assert ran.returncode == 1
    assert ran.stdout.startswith("The model beats predicting class frequencies")
    assert "FAILED  brier<0.1: brier is 0.53506" in ran.stdout
    assert "accuracy>0.1" not in ran.stdout
    assert len(ran.stdout.splitlines()) == 4
    assert verax("worst", "preds.parquet", "--quiet").stdout == ""


@pytest.mark.parametrize("command", sorted(all_commands()))
def test_every_command_has_json_quiet_and_log(command):
    shown = verax(*command.split(), "--help-all").stdout
    assert all(f"--{option}" in shown for option in ("json", "quiet", "log", "all")), shown


def lines_of(ran):
    return [json.loads(line) for line in ran.stderr.splitlines()]


def test_the_log_as_json_lines():
    (error,) = lines_of(verax("evaluate", "missing.csv", "--log", "json"))
    assert (error["level"], error["code"]) == ("error", 2)
    assert error["message"].startswith("There is no file 'missing.csv'")
    assert set(error) == {"time", "level", "command", "message", "code"}
    # Also where the command line itself is wrong.
    (error,) = lines_of(verax("evaluate", "preds.parquet", "--no-such-option", "--log=json"))
    assert error["message"].startswith("No such option")
    refused = verax("evaluate", "preds.parquet", "--log", "xml")
    assert refused.stderr == "verax: --log must be text or json.\n"


def test_notes_are_lines_of_the_log(tmp_path):
    path = tmp_path / "counts.csv"
    rows = "".join(f"{'ab'[i % 2]},{2 + i % 3},{3 - i % 3}\n" for i in range(30))
    path.write_text("label,p_a,p_b\n" + rows)
    ran = verax("evaluate", path, "--normalize", "--log", "json")
    notes = [line["message"] for line in lines_of(ran)]
    assert "30 of 30 rows were divided by their sums, 5." in notes
    assert "Note:" not in ran.stdout
    assert "Note: 30 of 30 rows" in verax("evaluate", path, "--normalize").stdout


def test_progress_is_a_line_of_the_log_or_of_a_terminal(change):
    change(progress_after=0.0)
    ran = verax("evaluate", "preds.parquet", "--log", "json")
    progress = [line for line in lines_of(ran) if line["level"] == "progress"]
    assert progress
    assert progress[-1]["rows"] == demofiles.N
    assert progress[-1]["command"] == "verax evaluate"
    assert verax("evaluate", "preds.parquet").stderr == ""
