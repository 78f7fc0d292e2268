"""Files of predictions as people have them, in one command; expected scores come from the rows themselves."""

from __future__ import annotations

import cProfile
import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from fileshapes import SHAPES, brier, rows

# Files whose reading is stated: what an error names, or `verax init` writes.
STATED = {
    "semicolons_and_commas": ["--delimiter", ";", "--decimal", ","],
    "percentages": ["--percent"],
}


def written(shape, folder):
    """The files of a shape: the arguments of a command on them, outcomes and probabilities."""
    if shape.needs:
        pytest.importorskip(shape.needs)
    (file, *more), y, p = shape.write(folder)
    return [folder / file, *more], y, p


def card(*arguments):
    """What `verax evaluate` prints as JSON, which must succeed."""
    ran = verax("evaluate", *arguments, "--json", "--rule", "brier")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def table(folder, **columns):
    pd.DataFrame(columns).to_csv(folder / "preds.csv", index=False)
    return folder / "preds.csv"


LATER = ("kaggle_binary", "kaggle_classes", "rounded_to_three", "percentages")


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.name not in LATER], ids=lambda shape: shape.name)
def test_every_shape_is_scored_in_one_command(shape, tmp_path):
    arguments, y, p = written(shape, tmp_path)
    found = card(*arguments, *STATED.get(shape.name, ()))
    assert found["card"]["n_rows"] == len(y)
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y, p), abs=1e-9)


# What was recognised before names such as y_score were, beside columns of these names.
@pytest.mark.parametrize("more", ["y_score", "y_pred_proba", "P(1)", ".pred_1", "predicted_prob"])
@pytest.mark.parametrize("names", [("p_0", "p_1"), ("0", "1"), ("prob.0", "prob.1"), ("x_0", "x_1")])
def test_columns_that_were_recognised_are_still_read(more, names, tmp_path):
    y, p = rows(2, 30)
    other = np.random.default_rng(0).uniform(size=len(y)).round(3)
    path = table(tmp_path, y=y, **{more: other, names[0]: p[:, 0], names[1]: p[:, 1]})
    assert vx.scan(path).roles.probs == names


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        (("P(No)", "P(Yes)"), ("No", "Yes")),
        (("Prob[No]", "Prob[Yes]"), ("No", "Yes")),
        (("P (Churn=No)", "P (Churn=Yes)"), ("No", "Yes")),
        (("confidence(no)", "confidence(yes)"), ("no", "yes")),
        (("Probability:Class=0", "Probability:Class=1"), (0, 1)),
        (("P_ChurnNo", "P_ChurnYes"), ("No", "Yes")),
        ((".pred_no", ".pred_yes"), ("no", "yes")),
        (("P(1)", "P(0)"), (1, 0)),
    ],
)
def test_classes_are_what_brackets_and_prefixes_hold(columns, labels, tmp_path):
    y, p = rows(2, 31)
    path = table(tmp_path, label=np.array(labels)[y], **{columns[0]: p[:, 0], columns[1]: p[:, 1]})
    found = vx.scan(path)
    assert found.classes == labels
    assert vx.evaluate(found)["brier"] == pytest.approx(brier(y, p))
    # Columns that are named are called the same.
    assert vx.scan(path, probs=list(columns)).classes == labels


@pytest.mark.parametrize("name", ["P(Yes)", ".pred_Yes", "prob.Yes", "y_score_Yes"])
def test_one_column_names_the_event(name, tmp_path):
    y, p = rows(2, 32)
    found = vx.scan(table(tmp_path, label=np.array(["No", "Yes"])[y], **{name: p[:, 1]}))
    assert found.classes == ("No", "Yes")
    assert vx.evaluate(found)["brier"] == pytest.approx(brier(y, p))


@pytest.mark.parametrize("name", ["y_pred", "prediction", "confidence", "score", "y_score"])
def test_doubtful_columns_are_refused_with_the_option(name, tmp_path):
    """Decisions, confidences in whatever was decided, and scores beyond 0 and 1."""
    y, p = rows(2, 33)
    values = {"y_pred": p.argmax(axis=1), "prediction": p.argmax(axis=1), "confidence": p.max(axis=1)}
    path = table(tmp_path, y_true=y, **{name: values.get(name, 3 * p[:, 1] - 1)})
    ran = verax("evaluate", path)
    assert ran.returncode == 2
    assert "--probs" in ran.stderr


def test_columns_that_are_named_need_no_search(tmp_path):
    """Every pair of 400 others in [0, 1] was tried, with 1.8 million calls; calls are what is counted."""
    y, p = rows(3, 34, n=300)
    others = np.random.default_rng(1).uniform(size=(300, 400)).astype(np.float32)
    frame = pd.DataFrame(others, columns=[f"f{j}" for j in range(400)])
    frame = frame.assign(label=y, p_0=p[:, 0], p_1=p[:, 1], p_2=p[:, 2])
    frame.to_parquet(tmp_path / "wide.parquet")
    vx.scan(tmp_path / "wide.parquet")
    with cProfile.Profile() as profile:
        assert vx.scan(tmp_path / "wide.parquet").roles.probs == ("p_0", "p_1", "p_2")
    assert sum(entry.callcount for entry in profile.getstats()) < 200_000


def test_two_of_many_columns_hold_what_the_named_ones_lack(tmp_path):
    y, p = rows(5, 35, n=300)
    others = np.random.default_rng(2).uniform(size=(300, 30))
    frame = pd.DataFrame(others, columns=[f"f{j}" for j in range(30)])
    frame = frame.assign(label=np.array(["a", "b", "c"])[y % 3], a=p[:, 0], b=p[:, 1], c=p[:, 2])
    frame = frame.assign(d=p[:, 3], e=p[:, 4])
    frame.to_parquet(tmp_path / "wide.parquet")
    assert vx.scan(tmp_path / "wide.parquet").roles.probs == ("a", "b", "c", "d", "e")


class TestExcel:
    @pytest.fixture
    def book(self, tmp_path):
        pytest.importorskip("openpyxl")
        y, p = rows(2, 36)
        frame = pd.DataFrame({"id": np.arange(len(y)), "label": y, "p_0": p[:, 0], "p_1": p[:, 1]})
        frame.insert(1, "note", ["", *["some text"] * (len(y) - 1)])
        with pd.ExcelWriter(tmp_path / "book.xlsx") as writer:
            frame.to_excel(writer, sheet_name="predictions", index=False)
            frame.head(3).to_excel(writer, sheet_name="other", index=False)
        return tmp_path / "book.xlsx", y, p

    def test_the_first_sheet_is_read_and_named(self, book):
        path, y, p = book
        found = vx.scan(path)
        assert vx.evaluate(found)["brier"] == pytest.approx(brier(y, p))
        assert "'predictions'" in " ".join(found.notes)

    def test_missing_package_is_named(self, book, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
        ran = verax("evaluate", book[0])
        assert ran.returncode == 2
        assert "verax-scores[excel]" in ran.stderr

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and nothing", b"label,p_0,p_1\n0,0.5,0.5\n"])
    def test_other_files_are_refused(self, content, tmp_path):
        (tmp_path / "no.xlsx").write_bytes(content)
        with pytest.raises(vx.InputError) as caught:
            vx.scan(tmp_path / "no.xlsx")
        assert caught.value.kind == "file"

    def test_cells_that_are_no_numbers_are_named(self, tmp_path):
        pytest.importorskip("openpyxl")
        frame = pd.DataFrame({"label": [0, 1], "p_0": [0.5, "n/a"], "p_1": [0.5, 0.5]})
        frame.to_excel(tmp_path / "bad.xlsx", index=False)
        with pytest.raises(vx.InputError) as caught:
            vx.evaluate(vx.scan(tmp_path / "bad.xlsx"))
        assert caught.value.rows == (1,)
