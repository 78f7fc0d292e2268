"""`verax folds` and `verax datasets`."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import demofiles
import verax as vx
from commandline import verax

MODELS = ["--probs", "new=new_*", "--probs", "old=old_*"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("repeated")
    for name in ("folds.csv", "scores.csv"):
        demofiles.FILES[name](path / name)
    pd.read_csv(path / "scores.csv").melt("dataset", var_name="model", value_name="brier").to_csv(
        path / "long.csv", index=False
    )
    return path


def as_json(*arguments):
    done = verax(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_column_of_folds(folder, tmp_path):
    frame = pd.read_csv(folder / "folds.csv")
    models = {name: frame[[f"{name}_0", f"{name}_1"]].to_numpy() for name in ("new", "old")}
    wanted = vx.compare_folds(frame.y, models, folds=frame.fold, rule="brier", rope=0.01)
    path, how = folder / "folds.csv", ["--folds", "fold", "--rule", "brier", "--rope", "0.01"]
    found = as_json("folds", path, *MODELS, *how)
    gap = found["folds"]["differences"]["brier"][0]
    assert gap["interval"] == pytest.approx(list(wanted.difference("new", "old").interval))
    assert found["folds"]["practical"]["brier"][0]["better"] == pytest.approx(
        wanted.practical["brier"][0].better
    )
    assert found["verdict"] == wanted.verdict
    plot = tmp_path / "folds.png"
    text = verax("folds", path, *MODELS, *how, "--id", "case", "--plot", plot).stdout
    assert "The method, trained on other data" in text
    assert "These fitted models, on other rows" in text
    assert plot.stat().st_size > 1000
    bound = verax("folds", path, *MODELS, *how, "--require", "difference.high<-0.9")
    assert bound.returncode == 1
    assert "FAILED" in bound.stdout


def test_a_file_per_model_has_folds_in_the_first(folder, tmp_path):
    frame = pd.read_csv(folder / "folds.csv")
    for name in ("new", "old"):
        own = frame[["y", "fold", f"{name}_0", f"{name}_1"]]
        own.columns = ["y", "fold", "p_0", "p_1"]
        own.to_csv(tmp_path / f"{name}.csv", index=False)
    both = as_json("folds", tmp_path / "new.csv", tmp_path / "old.csv", "--folds", "fold", "--rule", "brier")
    one = as_json("folds", folder / "folds.csv", *MODELS, "--folds", "fold", "--rule", "brier")
    (found,), (wanted,) = (each["folds"]["differences"]["brier"] for each in (both, one))
    # Texts of numbers may differ in their last digit.
    assert (found["a"], found["b"]) == (wanted["a"], wanted["b"])
    for name in ("difference", "deviation", "p_value"):
        assert found[name] == pytest.approx(wanted[name], rel=1e-9)


def test_tables_of_scores(folder, tmp_path):
    frame = pd.read_csv(folder / "scores.csv")
    wanted = vx.compare_datasets(frame, better="lower")
    plot = tmp_path / "ranks.svg"
    wide = as_json(
        "datasets", folder / "scores.csv", "--datasets", "dataset", "--better", "lower", "--plot", plot
    )
    assert [m["name"] for m in wide["datasets"]["models"]] == [m.name for m in wanted.models]
    assert wide["datasets"]["friedman"]["p_value"] == pytest.approx(wanted.friedman.p_value)
    assert plot.stat().st_size > 1000
    columns = ["--model-column", "model", "--score-column", "brier"]
    long = as_json("datasets", folder / "long.csv", "--datasets", "dataset", *columns)
    assert long["datasets"]["differences"] == wide["datasets"]["differences"]
    higher = as_json("datasets", folder / "scores.csv", "--datasets", "dataset", "--better", "higher")
    assert higher["datasets"]["models"][0]["name"] == "c"
    folds = as_json("folds", folder / "long.csv", "--folds", "dataset", *columns, "--repeats", "2")
    scores = {name: frame[name] for name in "abc"}
    same = vx.compare_folds(scores=scores, better="lower", repeats=2)
    assert folds["folds"]["differences"]["score"][0]["p_value"] == pytest.approx(
        same.differences["score"][0].p_value
    )


def test_plots_of_ordinary_comparisons(folder, tmp_path):
    plot = tmp_path / "means.png"
    assert as_json("compare", folder / "folds.csv", *MODELS, "--plot", plot)["plot"] == str(plot)
    assert plot.stat().st_size > 1000


@pytest.mark.parametrize(
    ("command", "name", "arguments", "message"),
    [
        ("folds", "folds.csv", [*MODELS, "--folds", "none"], "none"),
        ("compare", "folds.csv", [*MODELS, "--rope", "0.1"], "No such option: --rope"),
        ("folds", "folds.csv", [*MODELS, "--html", "x.html"], "--html cannot be used with `verax folds`"),
        ("folds", "folds.csv", [*MODELS, "--better", "higher"], "--better is for tables of scores"),
        ("folds", "folds.csv", [*MODELS, "--model-column", "y"], "--model-column is for tables of scores"),
        ("datasets", "long.csv", ["--datasets", "set"], "There is no column 'set'"),
        ("datasets", "long.csv", ["--better", "more"], "--better must be one of"),
    ],
)
def test_refusals_in_one_line(folder, command, name, arguments, message):
    done = verax(command, folder / name, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_duplicates_and_gaps_of_a_table_are_named(folder, tmp_path):
    frame = pd.read_csv(folder / "long.csv")
    pd.concat([frame, frame[:1]]).to_csv(tmp_path / "twice.csv", index=False)
    done = verax("datasets", tmp_path / "twice.csv")
    assert "'data 0' and 'a' are in rows 0 and 24" in done.stderr
    frame.assign(brier=frame.brier.where(np.arange(24) != 3)).to_csv(tmp_path / "gap.csv", index=False)
    done = verax("datasets", tmp_path / "gap.csv")
    assert "'data 3' lacks a" in done.stderr
    assert "Pass --missing drop" in done.stderr
    dropped = as_json("datasets", tmp_path / "gap.csv", "--missing", "drop")
    assert dropped["datasets"]["left_out"] == ["data 3"]
