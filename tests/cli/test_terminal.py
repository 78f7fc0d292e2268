"""What people type first: hints, percentages, subgroups of numbers, unknown bounds."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import numpy as np
import pytest

import verax as vx
from commandline import verax
from verax.rules import RULES

ROWS = "y,p,age\n1,80,20\n0,30,35\n1,60,50\n0,10,65\n1,90,30\n0,40,44\n"


@pytest.fixture
def percents(tmp_path):
    path = tmp_path / "percents.csv"
    path.write_text(ROWS)
    return path


def test_help_has_no_types_and_no_paths_of_the_source():
    text = verax("evaluate", "--help").stdout + verax("--help").stdout
    assert "<bool>" not in text
    assert "docs/" not in text


def test_the_oldest_typer_knows_the_types_of_all_options():
    """It knows no Literal. What an option may be is checked by what reads it."""
    modules = [module for module in files("verax.cli").iterdir() if module.name.endswith(".py")]
    assert [m.name for m in modules if re.search(r"Annotated\[\s*Literal", m.read_text())] == []


@pytest.mark.parametrize("kind", ["csv", "npz", "parquet"])
def test_percentages_of_a_single_column(percents, tmp_path, kind):
    y, p, _ = np.loadtxt(percents, delimiter=",", skiprows=1).T
    if kind == "npz":
        percents = tmp_path / "percents.npz"
        np.savez(percents, y=y.astype(int), p=p)
    elif kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as papq

        percents = tmp_path / "percents.parquet"
        papq.write_table(pa.table({"y": y.astype(int), "p": p}), percents)
    refused = verax("evaluate", percents)
    assert refused.returncode == 2
    assert "Pass --percent if these are percentages" in refused.stderr
    found = json.loads(verax("evaluate", percents, "--percent", "--json").stdout)
    wanted = vx.brier(y.astype(int), p / 100)
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(wanted, rel=1e-12)
    assert vx.evaluate(vx.scan(percents, percent=True))["brier"] == pytest.approx(wanted, rel=1e-12)


def test_percentages_of_several_columns(tmp_path):
    path = tmp_path / "percents.csv"
    path.write_text("label,a,b\na,80,20\nb,30,70\n")
    found = json.loads(verax("evaluate", path, "--percent", "--json").stdout)
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx((0.08 + 0.18) / 2)


def test_numbers_are_cut_into_subgroups(percents, tmp_path, change):
    options = ("--percent", "--least", 1, "--bootstrap", 0)
    found = json.loads(verax("evaluate", percents, *options, "--by", "age:3", "--json").stdout)
    lines = found["subgroups"]["age"]["subgroups"]
    assert [line["label"] for line in lines] == ["1: 20 to 30", "2: 35 to 44", "3: 50 to 65"]
    assert [line["card"]["n_rows"] for line in lines] == [2, 2, 2]
    assert found["taken"]["by"] == ["age"]
    other = tmp_path / "other.csv"
    other.write_text(ROWS.replace("age", "name").replace(",20", ",x"))
    refused = verax("evaluate", other, *options, "--by", "name:3")
    assert "must be a column of numbers to be cut into groups" in refused.stderr
    change(held_bytes_up_to=1)
    again = json.loads(verax("evaluate", percents, *options, "--by", "age:3", "--json").stdout)
    assert again["subgroups"]["age"]["subgroups"] == lines


def test_spreadsheets_and_columns_of_json_have_a_hint(tmp_path):
    sheet, columns = tmp_path / "preds.numbers", tmp_path / "preds.json"
    sheet.write_bytes(b"PK")
    columns.write_text(json.dumps({"y": {"0": 1, "1": 0}, "p": {"0": 0.5, "1": 0.2}}))
    assert "is a spreadsheet" in verax("evaluate", sheet).stderr
    assert (
        "Save the sheet as CSV or as an Excel workbook."
        in verax("compare", f"a={sheet}", f"b={sheet}").stderr
    )
    assert "to_json(path, orient='records')" in verax("evaluate", columns).stderr


def test_an_unknown_bound_lists_all_names_and_the_nearest(percents):
    error = verax("evaluate", percents, "--percent", "--require", "acuracy>0.5").stderr
    assert "Did you mean 'accuracy'?" in error
    assert "Valid names are" in error
    assert all(name in error for name in (*RULES, "skill", "ece", "qwk"))


@pytest.mark.parametrize(
    ("command", "option", "reason"),
    [
        ("worst", ["--groups", "age"], "rows are ranked one by one"),
        ("worst", ["--require", "brier<1"], "`verax evaluate --require` checks bounds"),
        ("decompose", ["--by", "age"], "`verax evaluate --by` decomposes the score of each subgroup"),
        ("retain", ["--html", "a.html"], "`verax evaluate --html` writes the report"),
        ("recalibrate", ["--by", "age"], "one function is fitted to all rows"),
        ("compare", ["--save", "a.verax"], "saves mergeable results of one model"),
        ("toplist", ["--ordered"], "top lists have neither an order"),
    ],
)
def test_options_without_a_meaning_are_refused_with_the_reason(percents, command, option, reason):
    refused = verax(command, percents, *option)
    assert refused.returncode == 2
    assert f"{option[0]} cannot be used with `verax {command}`" in refused.stderr
    assert reason in refused.stderr
    assert f" {option[0]} " not in verax(command, "--help").stdout


def test_the_epoch_to_keep_comes_first(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("epoch,pbs,brier,accuracy\n0,0.9,0.8,0.5\n1,0.6,0.7,0.7\n2,0.7,0.5,0.6\n")
    text = verax("select", path).stdout
    assert text.startswith("Keep epoch 1: lowest pbs, 0.6. Another epoch is best by brier (epoch 2).")


def test_rows_that_were_rescaled_are_counted_by_every_command(tmp_path):
    path = tmp_path / "counts.csv"
    rows = "".join(f"{'ab'[i % 2]},{2 + i % 3},{3 - i % 3}\n" for i in range(30))
    path.write_text("label,p_a,p_b\n" + rows)
    for command in ("evaluate", "decompose", "worst", "retain", "recalibrate"):
        text = verax(command, path, "--normalize").stdout
        assert "Note: 30 of 30 rows were divided by their sums, 5." in text, command
    text = verax("compare", f"x={path}", f"y={path}", "--normalize").stdout
    assert text.count("note: 30 of 30 rows were divided by their sums, 5.") == 2
