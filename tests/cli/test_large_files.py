"""Files that are too large to be held: commands read them into sums and histograms, and say so."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from commandline import verax
from scanned import alike
from verax.scans.local import LocalHandle


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 1, 1], 1600)
    y = (rng.random(1600)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    path = tmp_path_factory.mktemp("large") / "preds.parquet"
    columns = {f"p_{i}": p[:, i] for i in range(3)}
    papq.write_table(pa.table({"y": y, **columns, "site": np.arange(1600) % 3}), path, row_group_size=400)
    return path


def run(*arguments):
    found = verax(*arguments, "--json")
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_the_report_has_the_card_and_the_subgroups(path, change, tmp_path):
    exact = run("evaluate", path, "--by", "site")
    change(held_up_to=1000)
    found = run("evaluate", path, "--by", "site", "--html", tmp_path / "report.html")
    alike(found["card"]["scores"], exact["card"]["scores"])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    # So few rows are exact although they are not held.
    assert "come from histograms" not in page
    assert "Subgroups in numbers" in page
    ours, theirs = (each["subgroups"]["site"]["subgroups"] for each in (found, exact))
    assert len(ours) == 3
    for a, b in zip(ours, theirs, strict=True):
        assert a["label"] == b["label"]
        alike(a["card"]["scores"]["brier"], b["card"]["scores"]["brier"])


@pytest.mark.parametrize(
    ("command", "columns"),
    [("evaluate", []), ("compare", ["--probs", "a=p_0,p_1,p_2", "--probs", "b=p_0,p_1,p_2"])],
)
def test_card_and_report_are_made_in_one_pass(path, command, columns, change, monkeypatch, tmp_path):
    change(held_up_to=1000)
    # As for many rows: no calibration beside the card, no second pass for the ranks of the worst rows.
    change(read_again_up_to=0, calibration_up_to=0)
    passes, summarise = [], LocalHandle._summarise
    monkeypatch.setattr(LocalHandle, "_summarise", lambda *given: (passes.append(1), summarise(*given))[1])
    run(command, path, *columns, "--target", "y", "--html", tmp_path / "report.html")
    assert len(passes) == 1
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("command", ["retain", "decompose"])
def test_numbers_are_within_their_bounds(path, command, change):
    arguments = [command, path, "--ordered", "--bootstrap", 0]
    exact = run(*arguments)
    change(held_up_to=1000, exact_up_to=1000)
    found = run(*arguments)
    assert found["taken"] == exact["taken"]
    if command == "retain":
        (ours,), (theirs,) = found["curves"], exact["curves"]
        gap = np.abs(np.subtract(ours["values"], theirs["values"]))
        assert (gap <= np.array(ours["within"]) + 1e-12).all()
        assert ours["within"] != [0.0] * len(gap)
        return
    ours, theirs = found["decomposition"]["whole"], exact["decomposition"]["whole"]
    assert ours["score"] == pytest.approx(theirs["score"], rel=1e-12)
    assert -1e-12 <= theirs["miscalibration"] - ours["miscalibration"] <= ours["within"] + 1e-12
    for name, within in {"ece": 1e-12, "skill": 1e-3}.items():
        assert found["calibration"][name] == pytest.approx(exact["calibration"][name], abs=within)


@pytest.mark.long
def test_models_in_one_large_file_are_compared_without_holding_them(path, change, tmp_path):
    rows = papq.read_table(path)
    other = {f"q_{i}": rows["p_0"] if i == 1 else rows["p_1" if i == 0 else "p_2"] for i in range(3)}
    papq.write_table(
        rows.append_column("q_0", other["q_0"])
        .append_column("q_1", other["q_1"])
        .append_column("q_2", other["q_2"]),
        tmp_path / "two.parquet",
    )
    columns = ("--probs", "p=p_*", "--probs", "q=q_*", "--classes", "0,1,2", "--target", "y", "--by", "site")
    exact = run("compare", tmp_path / "two.parquet", *columns)
    change(held_up_to=1000)
    found = run("compare", tmp_path / "two.parquet", *columns, "--html", tmp_path / "two.html")
    for rule, lines in exact["comparison"]["differences"].items():
        alike(found["comparison"]["differences"][rule], lines)
    assert found["subgroups"].keys() == {"site"}
    assert (tmp_path / "two.html").exists()


def test_many_lists_in_columns_are_read_in_batches(tmp_path, change, monkeypatch):
    rng = np.random.default_rng(5)
    t = -np.sort(-rng.dirichlet(np.ones(4), 60)[:, :3], axis=1)
    columns = {"classes": [[0, 1, 2], [3, 1, 4]] * 30, "probs": t.tolist(), "outcome": rng.integers(0, 5, 60)}
    path = tmp_path / "lists.parquet"
    papq.write_table(pa.table(columns), path)
    ask = ("evaluate", path, "--classes", 5, "--json")
    held = json.loads(verax(*ask).stdout)
    change(lists_held_up_to=10)
    # Records are not looked at.
    monkeypatch.setattr("verax.wings.lists.handle.files.read_lists", None)
    batches = json.loads(verax(*ask).stdout)
    alike(batches["card"]["scores"], held["card"]["scores"])
    alike(batches["calibration"], held["calibration"])
    assert batches["verdict"] == held["verdict"]
    assert held["verdict"] is not None
