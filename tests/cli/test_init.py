"""`verax init`: twenty-eight shapes of files, each read right with it and one command."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from evallogs import generative, inspect_sample, write_eval, write_lines
from fileshapes import SHAPES, brier, rows
from realdata import DATA, load


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def initialised(*arguments):
    ran = verax("init", *arguments, "--yes")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def score(*arguments):
    ran = verax("evaluate", *arguments, "--json", "--rule", "brier")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    return found["card"]["scores"]["brier"]["mean"], found["card"]["n_rows"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_has_a_right_card_after_init(shape, here):
    if shape.needs:
        pytest.importorskip(shape.needs)
    arguments, y, p = shape.write(here)
    text = initialised(*arguments)
    assert f"{len(y)} rows" in text
    assert score() == (pytest.approx(brier(y, p), abs=1e-9), len(y))
    assert verax("init", "--check").returncode == 0
    # What it wrote is what Python reads, too.
    assert vx.Reading.from_toml("verax.toml").given()


def test_commands_need_no_options_of_reading(here):
    y, p = rows(3, 60, n=200)
    other = 0.5 * p + 0.5 / 3
    for name, probabilities in (("a", p), ("b", other)):
        frame = pd.DataFrame(probabilities, columns=["niedrig", "mittel", "hoch"])
        frame["stufe"] = np.array(["niedrig", "mittel", "hoch"])[y]
        frame["wann"] = pd.date_range("2026-01-01", periods=200).strftime("%Y-%m-%d")
        frame.to_csv(f"{name}.csv", sep=";", decimal=",", index=False)
    initialised("a.csv", "--target", "stufe")
    assert score() == (pytest.approx(brier(y, p)), 200)
    assert score("b.csv") == (pytest.approx(brier(y, other)), 200)
    for command in (
        ["compare", "a.csv", "b.csv"],
        ["worst"],
        ["decompose"],
        ["monitor", "b.csv", "--time", "wann", "--state", "b.state"],
    ):
        ran = verax(*command)
        assert ran.returncode in (0, 1), (command, ran.stderr)
        assert "verax.toml" in ran.stdout + ran.stderr


def test_columns_have_roles_with_reasons(here):
    y, p = rows(2, 61)
    frame = pd.DataFrame({"sample_weight": 1.0, "label": y, "age": 7, "p_0": p[:, 0], "p_1": p[:, 1]})
    frame.to_csv("preds.csv", index=False)
    ran = verax("init", "preds.csv", "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert {each["column"]: each["role"] for each in found["columns"]} == {
        "sample_weight": "not used",
        "label": "outcomes",
        "age": "not used",
        "p_0": "probability of 0",
        "p_1": "probability of 1",
    }
    assert found["n_rows"] == len(y)
    assert found["classes"] == ["0", "1"]
    assert found["first"][0]["outcome"] == str(y[0])
    assert found["first"][0]["probabilities"] == pytest.approx(p[0], abs=1e-6)
    assert 'weights = "sample_weight"' in found["doubts"][0]
    assert found["written"] is None
    assert not (here / "verax.toml").exists()


def test_doubtful_readings_are_refused_with_the_line(here):
    (here / "preds.csv").write_text("score,outcome\n0.3,yes\n0.6,no\n0.2,yes\n")
    ran = verax("init", "preds.csv", "--yes")
    assert ran.returncode == 2
    assert 'write probs = "score" into verax.toml' in ran.stderr
    assert 'positive = "..."' in verax("init", "preds.csv", "--probs", "score", "--yes").stderr
    assert not (here / "verax.toml").exists()
    initialised("preds.csv", "--probs", "score", "--positive", "yes")
    assert score()[0] == pytest.approx(brier(np.array([1, 0, 1]), [[0.7, 0.3], [0.4, 0.6], [0.8, 0.2]]))


def test_commands_name_the_line_where_there_is_a_file(here):
    (here / "preds.csv").write_text("score,outcome\n0.3,yes\n0.6,no\n0.2,yes\n")
    (here / "verax.toml").write_text('probs = "score"\n')
    ran = verax("evaluate", "preds.csv")
    assert ran.returncode == 2
    assert 'Pass --positive CLASS. Or write positive = "..." into verax.toml.' in ran.stderr


def graded(here):
    y, p = rows(2, 64)
    frame = pd.DataFrame({"qid": [f"q{i}" for i in range(len(y))], "correct": y, "confidence": p[:, 1]})
    frame.to_csv(here / "answers.csv", index=False)
    return ["answers.csv"], y.mean()


def without_confidences(here):
    y, _ = rows(2, 65)
    pd.DataFrame({"question": "What?", "correct": y}).to_csv(here / "answers.csv", index=False)
    return ["answers.csv", "--grade", "correct"], y.mean()


def answers_and_gold(here):
    y, p = rows(3, 66)
    names = np.array(["a", "b", "c"])
    frame = pd.DataFrame(
        {"gold": names[y], "prediction": names[p.argmax(axis=1)], "confidence": p.max(axis=1)}
    )
    frame.to_csv(here / "answers.csv", index=False)
    return ["answers.csv", "--gold", "gold", "--answer", "prediction"], (p.argmax(axis=1) == y).mean()


def inspect_log(here):
    values = ["C", "I", "C", "C"] * 5
    write_eval(here / "log.eval", [inspect_sample(i, value) for i, value in enumerate(values)])
    return ["log.eval"], 0.75


def harness_log(here):
    right = [1.0, 0.0] * 10
    write_lines(here / "samples_gsm8k.jsonl", [generative(i, "2", value) for i, value in enumerate(right)])
    return ["samples_gsm8k.jsonl"], 0.5


@pytest.mark.parametrize("write", [graded, without_confidences, answers_and_gold, inspect_log, harness_log])
def test_graded_answers_and_logs_have_a_right_card_after_init(write, here):
    arguments, mean = write(here)
    initialised(*arguments)
    ran = verax("evaluate", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["grades"]["mean"] == pytest.approx(mean)
    assert verax("init", "--check").returncode == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.csv", "0,0.25,0.75\n1,0.5,0.5\n", "must name the columns; it holds numbers"),
        ("p.csv", "churned,probability\nTrue,0.3\nFalse,0.6\n", 'target = "churned" into verax.toml'),
        ("p.csv", "y,prob\n-1,0.3\n1,0.6\n", "classes = [-1, 1] into verax.toml"),
        ("p.csv", "outcome,win,lose\nwin,30%,70%\nlose,60%,40%\n", "once the percent signs are gone"),
        ("p.csv", "question,correct\nWhat?,1\nWho?,0\n", "`verax evals evaluate FILE`"),
        ("p.csv", "label,prediction,confidence\na,a,0.3\nb,c,0.6\nc,c,0.5\n", "--answer prediction"),
        ("p.zip", "PK", "Unzip it first"),
        ("p.pkl", "x", "Pickles may run code"),
    ],
)
def test_what_is_not_read_is_told_what_to_do(name, text, said, here):
    (here / name).write_text(text)
    ran = verax("init", name, "--yes")
    assert ran.returncode == 2
    assert said in ran.stderr


def test_labels_of_minus_one_and_one(here):
    y, p = rows(2, 67)
    pd.DataFrame({"y": np.where(y, 1, -1), "prob": p[:, 1]}).to_csv("preds.csv", index=False)
    initialised("preds.csv", "--classes", "-1,1")
    assert score() == (pytest.approx(brier(y, p)), len(y))


@pytest.mark.parametrize(
    "text",
    [
        # Rows that sum to something else, logits, and percentages of one class: nothing tells which.
        "label,p_a,p_b\na,0.5,0.6\nb,0.2,0.9\n",
        "label,p_a,p_b\na,1.5,-0.6\nb,0.2,0.8\n",
        "label,prob_1\n0,34\n1,70\n",
    ],
)
def test_numbers_that_are_no_probabilities_are_not_settled(text, here):
    (here / "preds.csv").write_text(text)
    assert verax("init", "preds.csv", "--yes").returncode == 2
    assert not (here / "verax.toml").exists()


def test_a_file_that_is_there_is_replaced_only_by_force(here):
    y, p = rows(2, 62)
    pd.DataFrame({"y": y, "p_0": p[:, 0], "p_1": p[:, 1]}).to_csv("preds.csv", index=False)
    (here / "verax.toml").write_text('target = "gone"\nnormalize = true\n')
    refused = verax("init", "preds.csv", "--yes")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    initialised("preds.csv", "--force")
    # Nothing of the old file is kept.
    assert vx.Reading.from_toml("verax.toml").given() == {
        "target": "y",
        "probs": ("p_0", "p_1"),
        "classes": (0, 1),
    }


class TestCheck:
    @pytest.fixture
    def frame(self, here):
        y, p = rows(3, 63)
        frame = pd.DataFrame(p, columns=["p_a", "p_b", "p_c"])
        frame["label"] = np.array(["a", "b", "c"])[y]
        frame.to_csv("preds.csv", index=False)
        initialised("preds.csv")
        return frame

    @pytest.mark.parametrize(
        ("edit", "named"),
        [
            (lambda f: f.rename(columns={"label": "result"}), "'label'"),
            (lambda f: f.rename(columns={"p_b": "p_x"}), "'p_b'"),
            (lambda f: f.assign(label=f["label"].replace("c", "d")), "'d'"),
            (lambda f: f.assign(p_a=f["p_a"] * 2), "sum"),
            (lambda f: f.drop(columns="p_c"), "'p_c'"),
        ],
    )
    def test_what_changed_is_named(self, edit, named, frame):
        assert verax("init", "--check").returncode == 0
        edit(frame).to_csv("preds.csv", index=False)
        ran = verax("init", "--check")
        assert ran.returncode == 1
        assert named in ran.stdout
        found = json.loads(verax("init", "--check", "--json").stdout)
        assert not found["holds"]
        assert named in found["changed"][0]

    def test_other_columns_and_rows_change_nothing(self, frame):
        frame.assign(more=1)[10:].to_csv("preds.csv", index=False)
        assert verax("init", "--check").returncode == 0

    def test_without_a_file_it_is_bad_input(self, here):
        ran = verax("init", "--check", "--config", "none")
        assert ran.returncode == 2
        assert "verax init FILE" in ran.stderr


def of_arrays(path):
    found = np.load(path)
    return found["labels"], found["probs"].astype(float)


def of_percentages(path):
    frame = pd.read_csv(path)
    p = frame["frcst"].to_numpy() / 100
    return frame["obs"].astype(int), np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize(
    ("folder", "file", "more", "read"),
    [
        ("dr-aptos", "dr_aptos5.npz", [], of_arrays),
        ("label-errors", "imdb.npz", [], of_arrays),
        ("weather-ordinal", "prob_frcs_binary.csv", ["--probs", "frcst", "--percent"], of_percentages),
    ],
)
def test_real_files(folder, file, more, read, here):
    load(folder, file)
    path = DATA / folder / file
    y, p = read(path)
    initialised(path, *more)
    assert score() == (pytest.approx(brier(np.asarray(y), p), abs=1e-6), len(y))
