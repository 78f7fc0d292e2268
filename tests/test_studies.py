"""Every interval and band of a result has a simulated coverage, or is named as without one."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

import pytest

import covering  # which registers the claims
import measured
import verax.analyses
import verax.wings
import widths
import widths_measured
from covers.claims import CLAIMS
from covers.intervals import MEASURED, NOT_MEASURED


def with_intervals():
    """The attributes of results that are intervals or bands: "Class.attribute"."""
    found = set()
    rooms = {"verax.analyses.": verax.analyses.__path__, "verax.wings.": verax.wings.__path__}
    for module in (found for room, path in rooms.items() for found in pkgutil.walk_packages(path, room)):
        for name, own in vars(importlib.import_module(module.name)).items():
            if name[0] == "_" or not inspect.isclass(own) or own.__module__ != module.name:
                continue
            fields = dataclasses.fields(own) if dataclasses.is_dataclass(own) else ()
            names = {*(field.name for field in fields), *vars(own)}
            found |= {f"{name}.{a}" for a in names if ("interval" in a or a == "band") and a[0] != "_"}
    return found


def test_every_public_interval_has_a_simulated_coverage():
    """A new result with an interval needs a claim of the study, by name."""
    assert not MEASURED.keys() & NOT_MEASURED
    assert with_intervals() == MEASURED.keys() | NOT_MEASURED


def test_the_claims_that_measure_intervals_exist():
    for attribute, claim in MEASURED.items():
        assert any(claim in name for name in CLAIMS), (attribute, claim)


def test_every_claim_was_measured_and_those_that_fail_are_named():
    """`python studies/covering.py NAME --save` measures a new claim."""
    kept = measured.kept()
    assert kept.keys() == CLAIMS.keys()
    page = (Path(covering.__file__).parent / "coverage.md").read_text()
    unnamed = [name for name, row in kept.items() if row["holds"] == "no" and name not in page]
    assert not unnamed


def test_claims_of_a_file_are_measured_in_processes(tmp_path, monkeypatch, capsys):
    """A list of claims by name gives in several processes the rows that it gives in one."""
    names = [name for name in CLAIMS if name.startswith("shares of rows: coverage")]
    listed = tmp_path / "claims.txt"
    listed.write_text("\n".join(names) + "\n")

    def rows(*own):
        monkeypatch.setattr(sys, "argv", ["covering.py", "--file", str(listed), *own])
        covering.main()
        return sorted(line.rpartition(" | ")[0] for line in capsys.readouterr().out.splitlines()[2:])

    alone = rows()
    assert [line.split(" | ")[0].removeprefix("| ") for line in alone] == sorted(names)
    assert rows("--processes", "2") == alone
    listed.write_text("shares of rows: coverage\n")
    with pytest.raises(SystemExit, match="no claim is called 'shares of rows: coverage'"):
        rows()


def test_claims_about_the_same_samples_are_measured_together():
    parts = covering.of_one_design(list(CLAIMS.values()))
    assert sorted(name for part in parts for name in part) == sorted(CLAIMS)
    rates = [part for part in parts if "rates: sensitivity, 200 rows" in part]
    assert len(rates) == 1
    assert "rates: ROC band, 200 rows" in rates[0]
    assert "rates: sensitivity, 1000 rows" not in rates[0]


def test_every_design_of_widths_was_measured_and_its_worst_cells_are_on_the_page():
    """`python studies/widths.py --save` measures all designs."""
    kept = widths_measured.kept()
    assert dict.fromkeys(row["design"] for row in kept) == dict.fromkeys(widths.DESIGNS)
    assert all(int(row["samples"]) >= 200 for row in kept)  # fewer where a rate had no rows
    page = (Path(widths.__file__).parent / "widths.md").read_text()
    least = min(kept, key=lambda row: float(row["coverage"]))
    assert f"{least['family']}: {least['what']} | {least['design']} |" in page


def test_a_design_of_widths_is_measured_again():
    """Of few samples: the width of the mean loss is that of the interval that knows, and coverage a share."""
    name = next(iter(widths.DESIGNS))
    found = {row["what"]: row for row in widths.measure([name], 40, 1)}
    assert 0.7 < float(found["brier"]["width"]) < 1.4
    assert all(85 <= float(found[what]["coverage"]) <= 100 for what in ("brier", "accuracy"))
    assert all(int(row["samples"]) <= 40 for row in found.values())
