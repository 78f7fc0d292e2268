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


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
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
        assert ran.stderr.startswith("verax: Reading Excel files needs python-calamine")

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


class TestOutcomesInAnotherFile:
    @pytest.fixture
    def truth(self, tmp_path):
        y, p = rows(3, 40)
        frame = pd.DataFrame(p, columns=["p_a", "p_b", "p_c"])
        frame.insert(0, "row_id", np.arange(len(y)) + 5)
        frame.to_csv(tmp_path / "preds.csv", index=False)
        labels = pd.DataFrame({"row_id": np.arange(len(y)) + 5, "label": np.array(["a", "b", "c"])[y]})
        return frame, labels, y, p

    @pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "json", "xlsx", "npz"])
    @pytest.mark.parametrize("own", ["csv", "parquet", "jsonl", "xlsx", "npz"])
    def test_in_every_format(self, own, kind, truth, tmp_path):
        frame, labels, y, p = truth
        labels["label"] = y
        labels = labels.sample(frac=1, random_state=1)
        write_table(frame, tmp_path / f"p.{own}", probs=p)
        write_table(labels, tmp_path / f"truth.{kind}")
        found = card(tmp_path / f"p.{own}", "--outcomes", tmp_path / f"truth.{kind}")
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y, p))
        assert found["taken"]["id"] == "row_id"

    def test_by_order_is_said(self, truth, tmp_path):
        _, labels, y, p = truth
        (tmp_path / "truth.txt").write_text("\n".join(labels["label"]) + "\n")
        found = card(tmp_path / "preds.csv", "--outcomes", tmp_path / "truth.txt")
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y, p))
        assert "matched by the order of the rows" in " ".join(found["notes"])
        np.save(tmp_path / "p.npy", p)
        np.save(tmp_path / "y.npy", y)
        found = card(tmp_path / "p.npy", "--outcomes", tmp_path / "y.npy")
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y, p))

    @pytest.mark.parametrize("streamed", [False, True])
    def test_rows_that_only_one_file_has_are_counted(self, streamed, truth, tmp_path, change):
        _, labels, y, p = truth
        if streamed:
            change(held_bytes_up_to=1)
        labels[7:].to_csv(tmp_path / "truth.csv", index=False)
        arguments = [tmp_path / "preds.csv", "--outcomes", tmp_path / "truth.csv"]
        ran = verax("evaluate", *arguments)
        assert ran.returncode == 2
        assert "7 rows have none: row_id '5', '6', '7', ..." in ran.stderr
        assert "--skip-invalid" in ran.stderr
        found = card(*arguments, "--skip-invalid")
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y[7:], p[7:]))
        more = pd.concat([labels, pd.DataFrame({"row_id": [900, 901], "label": "a"})])
        more.to_csv(tmp_path / "truth.csv", index=False)
        ran = verax("evaluate", *arguments)
        assert ran.returncode == 2
        assert "2 ids are not there: '900', '901'" in ran.stderr
        found = card(*arguments, "--skip-invalid")
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y, p))
        assert "2 of its ids have no prediction" in " ".join(found["notes"])

    def test_ids_that_occur_twice_are_refused(self, truth, tmp_path):
        frame, labels, _, _ = truth
        arguments = [tmp_path / "preds.csv", "--outcomes", tmp_path / "truth.csv"]
        pd.concat([labels, labels[:1].assign(label="c")]).to_csv(tmp_path / "truth.csv", index=False)
        assert "must have one outcome per id" in verax("evaluate", *arguments).stderr
        labels.to_csv(tmp_path / "truth.csv", index=False)
        pd.concat([frame, frame[:1]]).to_csv(tmp_path / "preds.csv", index=False)
        refused = verax("evaluate", *arguments)
        assert refused.returncode == 2
        assert "row 60 has the id of row 0" in refused.stderr

    def test_numbers_of_rows_that_differ_are_refused(self, truth, tmp_path):
        _, labels, _, _ = truth
        labels[["label"]][1:].to_csv(tmp_path / "truth.csv", index=False)
        ran = verax("evaluate", tmp_path / "preds.csv", "--outcomes", tmp_path / "truth.csv")
        assert ran.returncode == 2
        assert "59 outcomes and 60 records" in ran.stderr
        assert "--id" in ran.stderr

    def test_several_shared_ids_are_refused_with_the_option(self, truth, tmp_path):
        frame, labels, y, p = truth
        frame.insert(0, "patient_id", 1)
        frame.to_csv(tmp_path / "preds.csv", index=False)
        labels.assign(patient_id=1).to_csv(tmp_path / "truth.csv", index=False)
        arguments = [tmp_path / "preds.csv", "--outcomes", tmp_path / "truth.csv"]
        assert "--id patient_id,row_id" in verax("evaluate", *arguments).stderr
        found = card(*arguments, "--id", "patient_id,row_id")
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(brier(y, p))

    def test_models_share_the_outcomes(self, truth, tmp_path):
        frame, labels, _, _ = truth
        frame[::-1].to_csv(tmp_path / "other.csv", index=False)
        labels.to_csv(tmp_path / "truth.csv", index=False)
        models = [tmp_path / "preds.csv", tmp_path / "other.csv"]
        ran = verax("compare", *models, "--outcomes", tmp_path / "truth.csv", "--json")
        assert ran.returncode == 0, ran.stderr


def write_table(frame, path, probs=None):
    """A frame in the format of its ending; `probs` are an array of their own in files of arrays."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    elif path.suffix == ".json":
        frame.to_json(path, orient="records")
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    else:
        columns = {name: frame[name].to_numpy() for name in frame if not name.startswith("p_")}
        np.savez(path, **columns, **({} if probs is None else {"probs": probs}))


class TestRounding:
    """Sums of rounded rows; every bound is what rounding allows by its definition."""

    def write(self, folder, p, y):
        frame = pd.DataFrame(p, columns=[f"p_{j}" for j in range(p.shape[1])])
        frame.assign(label=y).to_csv(folder / "rounded.csv", index=False)
        return folder / "rounded.csv"

    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize(("decimals", "k"), [(2, 5), (3, 20), (4, 7), (6, 50)])
    def test_rounded_rows_are_divided_and_counted(self, decimals, k, streamed, tmp_path, change):
        if streamed:
            change(held_bytes_up_to=1)
        y, p = rows(k, decimals, n=200)
        p = p.round(decimals)
        off = int((np.abs(p.sum(axis=1) - 1) > 1e-6 * (1 + 1e-6)).sum())
        found = card(self.write(tmp_path, p, y))
        expected = brier(y, p / p.sum(axis=1, keepdims=True))
        assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(expected, abs=1e-6)
        notes = " ".join(found["notes"])
        assert f"rounded to {decimals} decimal" in notes
        assert f"{off} of 200 rows were divided" in notes

    def test_python_refuses_with_the_remedy(self, tmp_path):
        y, p = rows(7, 50)
        with pytest.raises(vx.InputError) as caught:
            vx.evaluate(vx.scan(self.write(tmp_path, p.round(3), y)))
        assert caught.value.kind == "sum"
        assert {"normalize": True} in [dict(remedy.options) for remedy in caught.value.remedies]

    @pytest.mark.parametrize("streamed", [False, True])
    def test_a_later_row_with_more_decimals_is_refused(self, streamed, tmp_path, change):
        """Which of the rows are first makes no difference: all of them tell the decimals."""
        change(part_rows=64, text_block=2**12)
        if streamed:
            change(held_bytes_up_to=1)
        y, p = rows(4, 51, n=3000)
        rounded = p.round(2)
        rounded[-1] = p[-1]
        ran = verax("evaluate", self.write(tmp_path, rounded, y))
        assert ran.returncode == 2
        assert "must sum to 1" in ran.stderr
        assert "--normalize" in ran.stderr
        # Rows of later parts that sum to 1, with more decimals than those that do not.
        rounded[1000:] = p[1000:].round(4)
        rounded[1000:, 0] = (1 - rounded[1000:, 1:].sum(axis=1)).round(4)
        ran = verax("evaluate", self.write(tmp_path, rounded, y))
        assert ran.returncode == 2
        assert "must sum to 1" in ran.stderr

    def test_sums_beyond_rounding_are_refused(self, tmp_path):
        y, p = rows(4, 52)
        p = p.round(3)
        p[5, 0] += 0.01
        ran = verax("evaluate", self.write(tmp_path, p, y))
        assert ran.returncode == 2
        assert "row 5" in ran.stderr
        assert "--normalize" in ran.stderr

    def test_a_tenth_too_much_is_refused(self, tmp_path):
        """Two values of one decimal may be rounded so, and are as likely mistyped."""
        ran = verax("evaluate", self.write(tmp_path, np.array([[0.5, 0.6], [0.2, 0.8]]), [0, 1]))
        assert ran.returncode == 2
        assert "row 0 sums to 1.1" in ran.stderr

    def test_zeros_were_not_rounded_up(self, tmp_path):
        """Two nonzero values explain 1.01 at two decimals, and a hundred zeros beside them no 1.05."""
        p = np.zeros((30, 100))
        p[:, 0], p[:, 1] = 0.6, 0.4
        p[3, 1] = 0.41
        assert card(self.write(tmp_path, p, np.arange(30) % 2))["notes"]
        p[3, 1] = 0.45
        assert verax("evaluate", self.write(tmp_path, p, np.arange(30) % 2)).returncode == 2

    def test_a_rounded_zero_that_occurs_has_an_infinite_log_score(self, tmp_path):
        p = np.array([[0.0, 0.333, 0.668], [0.2, 0.3, 0.5]] * 20)
        ran = verax("evaluate", self.write(tmp_path, p, [0, 1] * 20), "--json", "--rule", "log_score")
        found = json.loads(ran.stdout)
        assert found["card"]["scores"]["log_score"]["mean"] in ("inf", "Infinity", None, float("inf"))
        assert "infinite log score" in " ".join(found["notes"])

    def test_full_precision_is_left_alone(self, tmp_path):
        y, p = rows(5, 53)
        found = card(self.write(tmp_path, p, y))
        assert found["notes"] == []
        assert found["card"]["scores"]["brier"]["mean"] == vx.evaluate(y, p)["brier"]
