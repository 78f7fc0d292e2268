"""Files that earlier versions saved are read, merged, and give the numbers of fresh ones."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import verax as vx
from reports import LIGHT
from verax.analyses.calibration import slope
from verax.analyses.loading import merged_card
from verax.common.idkeys import saving_ids
from verax.common.spelling import spelled
from verax.report import Report
from verax.scans.saved import merge_saved

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("saved_making", HERE / "making.py")
making = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(making)
VERSIONS = sorted(path.stem for path in HERE.glob("*.zip"))
# These need a second pass, which depends on what the first one found: parts cannot be merged.
TWO_PASSES = ("slope", "auc", "ap", "c index")
# What 0.2.0 kept for these is kept otherwise now; its files say that they lack it.
OUTDATED = ("auc", "ap", "c index")
# 0.2.0 saved each step of a slope's fit under a hash of all bits of the coefficients. Where sums are rounded
# otherwise, by another NumPy or processor or in another order, no step can be found by that hash, and files
# say that they lack it. What is saved now has no need of the last digits.
LACKING = "lacks summaries that this analysis needs; none was made by FitRecipe with these settings"
# Rows are numbered within files; the accuracy of lists has another definition than in 0.2.0, and its remark.
SKIPPED = ("row", "accuracy", "caution")
# 0.2.0 kept no sample of rows, which tells how the events depend on each other. So outcomes of its files are
# drawn event by event, in cells, and not for all events of a row together: what is random has other values.
TESTED = ("p_value", "p_adjusted", "p_shift", "p_slope", "p_shape", "together", "findings")
# 0.2.0 counted all rows in bins for these; rows that are kept now are counted likewise here.
BINNED = ("retention", "qwk", "risk")
# Reports on distributions take seconds: one is made of what was saved, the others by the long tests.
SLOW = {"dense report": pytest.mark.slow, "weighted report": pytest.mark.long}
NAMES = [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in making.OPENED]
CASES = [
    pytest.param(name, what, marks=SLOW.get(name, ()))
    for name in making.OPENED
    for what in making.analyses(name)
]


@pytest.fixture(autouse=True)
def light_reports(change):
    """What was saved does not depend on the replicates of a report. It recalibrates by several methods: parts
    of 0.2.0 have their rows in another order, and the verdict on so few rows would depend on it.
    """
    change(**LIGHT | {"report_methods": ("temperature", "bcts", "isotonic")})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """What was saved by each earlier version."""
    found = {}
    for version in VERSIONS:
        found[version] = tmp_path_factory.mktemp(version)
        with ZipFile(HERE / f"{version}.zip") as archive:
            archive.extractall(found[version])
    return found


@pytest.fixture(scope="module")
def now(tmp_path_factory):
    """Where this version saves the same."""
    folder = tmp_path_factory.mktemp("now")

    @cache
    def saved(name):
        # Draws follow the order of ids, which were plain in earlier versions.
        with saving_ids("plain"):
            making.save(folder, name, HERE / "rows")
        return shards(folder, name)

    return saved


def shards(folder, name):
    return [folder / f"{name}{shard}.verax" for shard in range(making.SHARDS)]


LATER = "recalibration|subgroup"


def numbers(result, skipped):
    """All numbers in a result, in order."""
    if hasattr(result, "to_dict"):
        result = result.to_dict(stored=False)
    if isinstance(result, dict):
        return [x for key, inner in result.items() if key not in skipped for x in numbers(inner, skipped)]
    if isinstance(result, (list, tuple)):
        return [x for inner in result for x in numbers(inner, skipped)]
    return [float(result)] if isinstance(result, (int, float)) else []


def same(found, expected, skipped=SKIPPED):
    if isinstance(found, Report):
        # Earlier versions saved no sample of lists, or another one, so recalibration may be left out, and
        # not the events of subgroups, which are tested too.
        own, known = (
            [each.text for each in report.verdict.findings if not re.search(LATER, each.claim)]
            for report in (found, expected)
        )
        assert own == known
        return
    found, expected = numbers(found, skipped), numbers(expected, skipped)
    assert len(found) > 0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


# What this version saves is read by other tests; its archive is for later ones.
EARLIER = [pytest.param(each, marks=pytest.mark.long if each == vx.__version__ else ()) for each in VERSIONS]


@pytest.mark.parametrize(("name", "what"), CASES)
@pytest.mark.parametrize("version", EARLIER)
def test_saved_rows_give_the_same_numbers(version, name, what, folders, now, change):
    analyse = making.analyses(name)[what]
    if what in BINNED:
        change(exact_up_to=0)
    some = slice(1 if what in TWO_PASSES else None)
    old = vx.scan(shards(folders[version], name)[some])
    if what in OUTDATED and version == "0.2.0":
        with pytest.raises(vx.InputError, match="lacks summaries that this analysis needs"):
            analyse(old)
        return
    expected = analyse(vx.scan(now(name)[some]))
    try:
        found = analyse(old)
    except vx.InputError as error:
        if (what, version) != ("slope", "0.2.0") or LACKING not in str(error):
            raise
    else:
        # They lack the most likely class, and the sums of groups.
        untested = TESTED if what == "subgroups" and version in ("0.2.0", "0.3.0") else ()
        same(found, expected, SKIPPED + untested)
        if untested and version == "0.3.0" and name != "lists":
            assert "earlier version" in found.untested


def all_numbers(found):
    """Its numbers, and the texts between them."""
    if isinstance(found, dict):
        return [x for key in sorted(found) for x in all_numbers(found[key])]
    return [x for each in found for x in all_numbers(each)] if isinstance(found, list) else [found]


# Monitors of these bet on rows unless another unit was stated; their evidence begins again.
BY_ROW = ("0.2.0", "0.3.0")
FITTED = [(version, name) for version in VERSIONS for name in making.fitted_in(version)]


@pytest.mark.parametrize(("version", "name"), FITTED)
def test_what_was_fitted_gives_what_it_gave(version, name, folders):
    path = folders[version] / name
    given = json.loads(path.with_suffix(".json").read_text())
    found = making.made_of(path, HERE / "rows")
    if name.startswith("monitor") and version in BY_ROW:
        for key, now in (("unit", "time"), ("evidence", 1.0)):
            assert found.pop(key) == now != given.pop(key)
        assert (found.pop("period"), found.pop("zone"), found.pop("alarm_number")) == (None, None, None)
        assert found.pop("acknowledged") == []
    given, found = all_numbers(given), all_numbers(found)
    assert len(found) == len(given) > 4
    for one, other in zip(found, given, strict=True):
        assert one == (pytest.approx(other, rel=1e-9, abs=1e-12) if isinstance(other, float) else other)


def test_every_version_has_recalibrations_and_this_one_all_that_is_fitted():
    names = {name for version, name in FITTED if version == "0.3.0"}
    assert names == {"conformal.fitted", "monitor.fitted"} | {
        f"recalibration-{m}.fitted" for m in making.METHODS
    }
    assert sum(version == "0.2.0" for version, _ in FITTED) >= 6


def test_a_saved_monitor_goes_on_and_says_which_version_wrote_it(folders):
    path = folders["0.3.0"] / "monitor.fitted"
    assert b'"verax":"0.3.0"' in path.read_bytes()
    monitor, n = vx.Monitor.load(path), making.N
    assert monitor.pending == 4
    monitor.outcomes([f"row{i}" for i in range(n - 4, n)], ["low"] * 4, time="2026-01-03")
    assert (monitor.pending, monitor.n_rows) == (0, n)
    (caution,) = (each for each in monitor.cautions if "earlier version" in each)
    assert "the evidence begins again" in caution
    assert monitor.evidence != 1
    assert len(monitor.history.lines) == 3


@pytest.mark.parametrize("name", ["dense", "weighted", "lists", "grouped lists"])
def test_last_digits_do_not_matter_to_saved_slopes(name, now, monkeypatch):
    analyse, saved = making.analyses(name)["slope"], now(name)[0]
    expected, start = analyse(vx.scan(saved)), slope.LogOddsBins.start

    def otherwise(look):
        level, line = start(look)
        moved = line.coefficients * (1 + 1e-14), line.centre * (1 - 1e-14), line.scale * (1 + 1e-14)
        return level * (1 - 1e-14), type(line)(*moved)

    monkeypatch.setattr(slope.LogOddsBins, "start", otherwise)
    same(analyse(vx.scan(saved)), expected)


def test_slopes_that_0_2_0_saved_are_found_by_all_digits():
    source = slope.OddsSource("model", False, None)
    line = slope.Regression(np.array([0.1, 1 / 3]), 0.2, 0.7)
    recipe = slope.FitRecipe(source, 0, 2 / 3, line, step=4)
    assert "level=0.66666667," in spelled(recipe)
    assert "step=4" in spelled(recipe)
    latest, before = recipe.former_texts()
    assert latest.startswith("step 4 of ")
    assert "level=0.66666667," in latest
    assert before == repr(recipe)
    assert f"level={2 / 3!r}," in before
    assert "step" not in before


@pytest.mark.parametrize("name", [*(name for name in NAMES if name != "models"), *making.CARDS])
@pytest.mark.parametrize("version", EARLIER)
def test_what_is_merged_and_saved_gives_the_same_numbers(version, name, folders, now, tmp_path):
    old, new = shards(folders[version], name), now(name)
    card = merged_card([old[0], new[1]]).card
    same(card, merged_card(new).card)
    merge_saved([old[0], new[1]], card, tmp_path / "both.verax")
    same(vx.load(tmp_path / "both.verax"), card)
    if name not in making.CARDS:
        analyse = next(iter(making.analyses(name).values()))
        same(analyse(vx.scan(tmp_path / "both.verax")), analyse(vx.scan(new)))
