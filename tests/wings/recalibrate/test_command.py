"""`verax recalibrate`: learning, applying, keeping."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as paf
import pyarrow.parquet as papq
import pytest

import verax as vx
from commandline import verax
from verax.wings.recalibrate.rewriting import rewrite

N = 300
NAMES = np.array(["cat", "dog", "fox"])


def sample(seed):
    """Forecasts that are too sure, with ids that look like numbers and are none."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, 3))
    q, p = (np.exp(s * z) / np.exp(s * z).sum(axis=1, keepdims=True) for s in (1, 2.5))
    y = (rng.random((N, 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    return y, p


def write(path, y, p, *, outcomes=True):
    columns = {"id": [f"{i:04d}" for i in range(N)], "age": np.arange(N) % 90}
    columns |= {"label": NAMES[y]} if outcomes else {}
    columns |= {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)}
    table = pa.table({**columns, "comment": ['said "so", twice'] * N})
    if path.suffix == ".csv":
        pacsv.write_csv(table, path)
    elif path.suffix == ".tsv":
        pacsv.write_csv(table, path, pacsv.WriteOptions(delimiter="\t"))
    elif path.suffix == ".arrow":
        paf.write_feather(table, path)
    else:
        papq.write_table(table, path)
    return table


READ = {
    ".csv": pacsv.read_csv,
    ".tsv": lambda path: pacsv.read_csv(path, parse_options=pacsv.ParseOptions(delimiter="\t")),
    ".parquet": papq.read_table,
    ".arrow": paf.read_table,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("recalibrate")
    write(path / "train.csv", *sample(0))
    return path


@pytest.mark.parametrize("given", READ)
@pytest.mark.parametrize("wanted", READ)
def test_new_files_keep_their_other_columns(given, wanted, folder, tmp_path):
    y, p = sample(1)
    before = write(tmp_path / f"test{given}", y, p, outcomes=False)
    out = tmp_path / f"out{wanted}"
    arguments = ["--apply", tmp_path / f"test{given}", "--out", out, "--method", "temperature", "--json"]
    result = verax("recalibrate", folder / "train.csv", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["applied"] == {"file": str(tmp_path / f"test{given}"), "out": str(out), "n_rows": N}
    after = READ[wanted](out)
    assert after.column_names == before.column_names
    y0, p0 = sample(0)
    expected = vx.recalibrate(NAMES[y0], p0, method="temperature", classes=NAMES.tolist()).apply(p)
    got = np.column_stack([after[f"p_{name}"].to_numpy() for name in NAMES])
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert after["age"].to_pylist() == before["age"].to_pylist()
    assert after["comment"].to_pylist() == before["comment"].to_pylist()
    if wanted not in (".csv", ".tsv"):
        # An id such as 0007 is no number.
        assert after["id"].to_pylist() == before["id"].to_pylist()


@pytest.mark.parametrize("stored", [".csv", ".parquet"])
def test_decimal_marks_are_those_of_texts(stored, tmp_path):
    texts = {"id": ["a", "b"], "p_x": ["0,25", "1,0"], "p_y": ["0,75", "0,0"]}
    given, out = tmp_path / f"given{stored}", tmp_path / "out.parquet"
    if stored == ".csv":
        pacsv.write_csv(pa.table(texts), given, pacsv.WriteOptions(delimiter=";"))
    else:
        papq.write_table(pa.table({**texts, "p_x": [0.25, 1.0], "p_y": [0.75, 0.0]}), given)
    assert rewrite(given, out, ["p_x", "p_y"], lambda p: p[:, ::-1], delimiter=";", decimal=",") == 2
    assert papq.read_table(out).to_pydict() == {"id": ["a", "b"], "p_x": [0.75, 0.0], "p_y": [0.25, 1.0]}


def test_the_choice_is_shown_and_kept(folder, tmp_path):
    keep = tmp_path / "calibration.json"
    result = verax("recalibrate", folder / "train.csv", "--rule", "brier", "--save", keep)
    assert (result.returncode, result.stderr) == (0, "")
    y, p = sample(0)
    expected = vx.recalibrate(NAMES[y], p, rule="brier", classes=NAMES.tolist())
    assert repr(expected) in result.stdout
    assert f"The recalibration is in {keep}." in result.stdout
    loaded = vx.results.Recalibration.load(keep)
    assert loaded.columns == ("p_cat", "p_dog", "p_fox")
    write(tmp_path / "test.parquet", *sample(1), outcomes=False)
    arguments = ["--apply", tmp_path / "test.parquet", "--out", tmp_path / "out.parquet"]
    again = verax("recalibrate", "--load", keep, *arguments)
    assert (again.returncode, again.stderr) == (0, "")
    assert expected.verdict in again.stdout
    got = papq.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(got["p_dog"].to_numpy(), expected.apply(sample(1)[1])[:, 1], atol=1e-6)


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        # In another order, by the classes that they name.
        (["prob.fox", "prob.cat", "prob.dog"], []),
        (["P(dog)", "P(fox)", "P(cat)"], []),
        (["q2", "q0", "q1"], ["--map", "p_cat=q0", "--map", "p_dog=q1", "--map", "p_fox=q2"]),
    ],
)
def test_columns_of_other_names_are_matched_by_class_or_as_stated(columns, more, folder, tmp_path):
    _, p = sample(1)
    place = {"fox": 2, "cat": 0, "dog": 1, "q0": 0, "q1": 1, "q2": 2}
    own = [next(j for word, j in place.items() if word in name) for name in columns]
    table = {name: p[:, j] for name, j in zip(columns, own, strict=True)}
    papq.write_table(pa.table(table), tmp_path / "other.parquet")
    arguments = ["--apply", tmp_path / "other.parquet", "--out", tmp_path / "o.parquet", *more]
    ran = verax("recalibrate", folder / "train.csv", "--method", "temperature", *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    y0, p0 = sample(0)
    expected = vx.recalibrate(NAMES[y0], p0, method="temperature", classes=NAMES.tolist()).apply(p)
    found = papq.read_table(tmp_path / "o.parquet")
    assert found.column_names == columns
    for name, j in zip(columns, own, strict=True):
        np.testing.assert_allclose(found[name].to_numpy(), expected[:, j], atol=1e-6)


def test_columns_to_map_must_be_there(folder, tmp_path):
    write(tmp_path / "test.csv", *sample(1), outcomes=False)
    arguments = ["--apply", tmp_path / "test.csv", "--out", tmp_path / "o.csv"]
    ran = verax("recalibrate", folder / "train.csv", "--method", "none", *arguments, "--map", "p_cow=x")
    assert "'p_cow' is none" in ran.stderr
    ran = verax("recalibrate", folder / "train.csv", "--method", "none", *arguments, "--map", "p_cat=x")
    assert "there is no 'x'" in ran.stderr


def test_renamed_columns_of_a_file_that_a_kept_one_is_applied_to(folder, tmp_path):
    keep = tmp_path / "calibration.json"
    verax("recalibrate", folder / "train.csv", "--method", "temperature", "--save", keep)
    _, p = sample(1)
    papq.write_table(pa.table({f"q{k}": p[:, k] for k in range(3)}), tmp_path / "other.parquet")
    arguments = ["--load", keep, "--apply", tmp_path / "other.parquet", "--out", tmp_path / "o.csv"]
    refused = verax("recalibrate", *arguments)
    assert refused.returncode == 2
    assert "there is no 'p_cat' and 2 more" in refused.stderr
    assert not (tmp_path / "o.csv").exists()
    assert verax("recalibrate", *arguments, "--probs", "q0,q1,q2").returncode == 0
    expected = vx.results.Recalibration.load(keep).apply(p)
    np.testing.assert_allclose(pacsv.read_csv(tmp_path / "o.csv")["q2"].to_numpy(), expected[:, 2])


def test_one_column_of_two_classes_lists_groups_and_new_frequencies(tmp_path):
    rng = np.random.default_rng(3)
    q = rng.beta(2, 2, N)
    y = rng.random(N) < q
    p = q**2 / (q**2 + (1 - q) ** 2)
    table = pa.table({"patient": np.arange(N) % 50, "y": y.astype(int), "prob": p})
    papq.write_table(table, tmp_path / "two.parquet")
    arguments = [tmp_path / "two.parquet", "--groups", "patient", "--method", "beta,isotonic", "--json"]
    arguments += ["--apply", tmp_path / "two.parquet", "--out", tmp_path / "o.parquet"]
    result = verax("recalibrate", *arguments, "--frequencies", "0.8,0.2")
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout)["recalibration"]
    expected = vx.recalibrate(y.astype(int), p, groups=table["patient"], method=["beta", "isotonic"])
    assert found["method"] == expected.method
    assert found["n_groups"] == 50
    np.testing.assert_allclose(
        papq.read_table(tmp_path / "o.parquet")["prob"].to_numpy(),
        expected.apply(p, frequencies=[0.8, 0.2]),
        atol=1e-9,
    )
    papq.write_table(
        pa.table({"y": y.astype(int), "probs": np.stack([1 - p, p], 1).tolist()}), tmp_path / "l.parquet"
    )
    arguments = [tmp_path / "l.parquet", "--method", "temperature", "--apply", tmp_path / "l.parquet"]
    assert verax("recalibrate", *arguments, "--out", tmp_path / "l2.parquet").returncode == 0
    rows = np.array(papq.read_table(tmp_path / "l2.parquet")["probs"].to_pylist())
    np.testing.assert_allclose(
        rows[:, 1], vx.recalibrate(y.astype(int), p, method="temperature").apply(p), atol=1e-5
    )
    refused = verax("recalibrate", *arguments, "--out", tmp_path / "l2.csv")
    assert refused.returncode == 2
    assert "CSV cannot hold" in refused.stderr
    assert not (tmp_path / "l2.csv").exists()


def test_doing_nothing_is_said_of_the_file(tmp_path):
    y, p = sample(4)
    honest = p**0.4 / (p**0.4).sum(axis=1, keepdims=True)
    write(tmp_path / "honest.csv", y, honest)
    arguments = [tmp_path / "honest.csv", "--apply", tmp_path / "honest.csv", "--out", tmp_path / "o.csv"]
    result = verax("recalibrate", *arguments, "--method", "temperature,isotonic")
    assert "No gain is shown: calibration is not rejected (score test p = " in result.stdout
    assert ", 300 rows)" in result.stdout
    assert f"{tmp_path / 'o.csv'}: 300 rows of {tmp_path / 'honest.csv'}, unchanged." in result.stdout
    np.testing.assert_allclose(
        pacsv.read_csv(tmp_path / "o.csv")["p_cat"].to_numpy(), honest[:, 0], atol=1e-12
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "A file to learn from or a recalibration that was kept must be given"),
        (["train.csv", "--load", "train.csv"], "and not both"),
        (["train.csv", "--apply", "train.csv"], "--out must be given with --apply"),
        (["train.csv", "--out", "o.csv"], "--apply must be given with --out"),
        (["train.csv", "--frequencies", "estimate"], "--frequencies must be given with --apply"),
        (["train.csv", "--apply", "train.csv", "--out", "o.txt"], "--out must end in one of .csv"),
        (["train.csv", "--apply", "no.csv", "--out", "o.csv"], "There is no file"),
        (
            ["train.csv", "--apply", "train.csv", "--out", "o.csv", "--frequencies", "a,b"],
            "separated by commas",
        ),
        (["train.csv", "--apply", "train.csv", "--out", "o.csv", "--frequencies", "0.5,0.5"], "3 numbers"),
        (["train.csv", "--method", "magic"], "--method must be one of"),
        (["train.csv", "--rule", "zero_one"], "has no gradient"),
        (["train.csv", "--folds", "1"], "--folds must be a whole number of at least 2"),
        (["--load", "train.csv"], "must be a recalibration that verax saved"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    result = verax("recalibrate", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert sorted(folder.iterdir()) == before


def test_rows_that_are_no_forecasts_leave_no_file(folder, tmp_path):
    y, p = sample(5)
    p[17] = [0.5, 0.6, 0.2]
    write(tmp_path / "bad.csv", y, p, outcomes=False)
    (tmp_path / "o.csv").write_text("old")
    arguments = ["--method", "temperature", "--apply", tmp_path / "bad.csv", "--out", tmp_path / "o.csv"]
    result = verax("recalibrate", folder / "train.csv", *arguments)
    assert result.returncode == 2
    assert "row 17" in result.stderr
    assert (tmp_path / "o.csv").read_text() == "old"
    assert verax("recalibrate", folder / "train.csv", *arguments, "--normalize").returncode == 0


def test_invalid_rows_are_skipped_on_request(folder, tmp_path):
    y, p = sample(5)
    p[17] = [0.5, 0.6, 0.2]
    write(tmp_path / "bad.csv", y, p)
    arguments = ["--method", "temperature", "--apply", tmp_path / "bad.csv", "--out", tmp_path / "o.parquet"]
    refused = verax("recalibrate", tmp_path / "bad.csv", *arguments)
    assert (refused.returncode, "row 17" in refused.stderr) == (2, True)
    result = verax("recalibrate", tmp_path / "bad.csv", *arguments, "--skip-invalid")
    assert (result.returncode, result.stderr) == (0, "")
    assert "1 of 300 rows was left out (row 17)" in result.stdout
    got = papq.read_table(tmp_path / "o.parquet")["p_cat"].to_pylist()
    assert [i for i, value in enumerate(got) if value is None] == [17]
    kept = np.arange(N) != 17
    found = vx.recalibrate(NAMES[y][kept], p[kept], method="temperature", classes=NAMES.tolist())
    assert got[18] == pytest.approx(found.apply(p[[18]])[0, 0], abs=1e-6)


def test_lists_are_learnt_from_written_and_read_again(tmp_path):
    rng = np.random.default_rng(3)
    rows = []
    for i in range(120):
        first, second = rng.choice(["A", "B", "C", "D"], 2, replace=False).tolist()
        answer = first if rng.random() < 0.4 else second if rng.random() < 0.3 else "E"
        rows.append({"id": f"q{i}", "answer": answer, "labels": [first, second], "scores": [0.9, 0.05]})
    given, out, keep = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "s.json"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = ("--classes", "20", "--id", "id")
    how = ("--method", "temperature", "--apply", given, "--out", out, "--save", keep, "--json")
    result = verax("recalibrate", given, *read, *how)
    assert result.returncode == 0, result.stderr
    lists = vx.TopLists.from_dicts(
        [dict(zip(row["labels"], row["scores"], strict=True)) for row in rows], n_classes=20
    )
    expected = vx.recalibrate([row["answer"] for row in rows], lists, method="temperature").apply(lists)
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in written] == [row["id"] for row in rows]
    assert [t for row in written for t in row["scores"]] == pytest.approx(expected.confidences.tolist())
    assert verax("evaluate", out, *read).returncode == 0
    again = verax("recalibrate", "--load", keep, "--apply", given, "--out", out, *read)
    assert again.returncode == 0
    assert f"{out}: 120 rows of {given}, recalibrated." in again.stdout
    refused = verax("recalibrate", given, *read, "--apply", given, "--out", tmp_path / "b.csv")
    assert refused.returncode == 2
    assert "must end in .jsonl" in refused.stderr
