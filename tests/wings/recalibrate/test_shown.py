"""Recalibrations in files, on paper, and on real forecasts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import realdata
import verax as vx
from recalibrations import MENU, drawn
from verax.analyses.dealing import dealt
from verax.analyses.stored import _checksum
from verax.wings.recalibrate.choosing import FoldedRows
from verax.wings.recalibrate.fitting import fit
from verax.wings.recalibrate.rows import Configuration, FittingRows

# ---- files -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("method", ["best", "none", "isotonic", "dirichlet", "temperature"])
def test_what_is_saved_is_what_is_loaded(method, tmp_path):
    y, p, _ = drawn(300, 3, seed=25, distort=lambda z: 2 * z)
    names = ["a", "b", "ü\n"]
    found = vx.recalibrate(np.array(names)[y], p, method=method, classes=names, groups=np.arange(300) % 50)
    found.save(tmp_path / "calibration.json")
    loaded = vx.results.Recalibration.load(tmp_path / "calibration.json")
    np.testing.assert_array_equal(loaded.apply(p), found.apply(p))
    assert loaded.to_dict(stored=False) == found.to_dict(stored=False)
    assert repr(loaded) == repr(found)
    assert loaded.gain.interval.method == found.gain.interval.method
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "calibration.json").read_bytes()


@pytest.mark.long
def test_infinite_losses_survive_a_file(tmp_path):
    found = vx.recalibrate([0, 1] * 40, [[0.9, 0.1], [0.2, 0.8]] * 39 + [[1.0, 0.0]] * 2, rule="log_score")
    found.save(tmp_path / "c.json")
    assert repr(vx.results.Recalibration.load(tmp_path / "c.json")) == repr(found)


def test_classes_that_json_cannot_hold_are_refused(tmp_path):
    import datetime

    y, p, _ = drawn(100, 3)
    days = [datetime.date(2020, 1, d) for d in (1, 2, 3)]
    found = vx.recalibrate(np.array(days, dtype=object)[y], p, method="temperature", classes=days)
    with pytest.raises(vx.InputError, match="stored as JSON"):
        found.save(tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


def spoiled(text, path, value):
    stored = json.loads(text)
    inner = stored
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    # Whoever wrote it meant it: the checksum is that of the new content.
    return json.dumps(stored | {"checksum": _checksum(json.dumps(stored))})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], "other"),
        (["version"], 3),
        (["version"], True),
        (["method"], "magic"),
        (["classes"], ["a", "b"]),
        (["classes"], ["a", "a", "b"]),
        (["frequencies"], [0.5, 0.5, 0.5]),
        (["frequencies"], ["a", "b", "c"]),
        (["frequencies"], None),
        (["ordered"], 1),
        (["n_rows"], 1.5),
        (["trials"], []),
        (["trials"], [{}]),
        (["trials", 0, "loss"], "much"),
        (["form"], {"kind": "python", "code": "1"}),
        (["form"], []),
        (["form", "slopes"], [1.0, 2.0]),
        (["form", "slopes"], [[1.0, 2.0], [1.0]]),
        (["form", "offsets"], [0, 0, "inf"]),
        (["form", "floor"], 0),
        (
            ["form"],
            {"kind": "isotonic", "thresholds": False, "forecasts": [], "frequencies": [], "spread": 0},
        ),
        (
            ["form"],
            {
                "kind": "isotonic",
                "thresholds": False,
                "forecasts": [[0, 1]] * 3,
                "frequencies": [[1, 0]] * 3,
                "spread": 0.1,
            },
        ),
    ],
)
def test_files_that_are_not_ours_are_refused(path, value, tmp_path):
    y, p, _ = drawn(100, 3)
    file = tmp_path / "c.json"
    vx.recalibrate(y, p, method="temperature").save(file)
    file.write_text(spoiled(file.read_text(), path, value))
    with pytest.raises(vx.InputError) as error:
        vx.results.Recalibration.load(file)
    assert error.value.kind == "file"


@pytest.mark.parametrize("text", ["", "{", "[]", "NaN", "\x80", '{"format": "verax recalibration"}'])
def test_files_that_are_no_json_are_refused(text, tmp_path):
    (tmp_path / "c.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(vx.InputError):
        vx.results.Recalibration.load(tmp_path / "c.json")
    with pytest.raises(vx.InputError):
        vx.results.Recalibration.load(tmp_path / "missing.json")


# ---- how it is shown ---------------------------------------------------------------------------


def test_the_table_the_frame_and_the_figure_say_the_same():
    import matplotlib.pyplot as plt

    y, p, _ = drawn(600, 3, seed=26, distort=lambda z: 2 * z)
    found = vx.recalibrate(y, p)
    assert found.method == "temperature"
    assert [trial.method for trial in found.trials] == ["none", *MENU]
    frame = found.to_frame()
    assert frame["method"].tolist() == [trial.method for trial in found.trials]
    assert frame["gain"].iloc[1] == found.gain.value == float(found.gain)
    assert found.to_frame("polars").shape == frame.shape
    lines = repr(found).splitlines()
    marked = [line for line in lines if line.startswith("->")]
    assert len(marked) == 1
    assert "temperature" in marked[0]
    assert found.verdict in lines
    assert "<table>" in found._repr_html_()
    with pytest.raises(KeyError, match="there is no trial of"):
        found.trial("beta")
    (axes,) = found.plot().axes
    drawn_at = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert drawn_at == pytest.approx([trial.gain.share for trial in found.trials[1:]])
    plt.close("all")


@pytest.mark.long
def test_the_same_seed_gives_the_same_result():
    y, p, _ = drawn(200, 3, seed=27, distort=lambda z: 2 * z)
    first, second, other = (vx.recalibrate(y, p, seed=seed, folds=3).to_dict() for seed in (3, 3, 4))
    assert first == second
    assert other["trials"] != first["trials"]


def test_many_rows_are_fitted_to_some_of_them():
    y, p, _ = drawn(130_000, 2, seed=28, distort=lambda z: 2 * z)
    found = vx.recalibrate(y, p[:, 1], method="temperature", folds=2)
    assert 1 / float(found.form.slopes) == pytest.approx(2, abs=0.05)
    assert any("100,000 rows" in note for note in found.notes)


@pytest.mark.long
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_any_small_sample_gives_a_forecast(data):
    n, k = data.draw(st.integers(3, 12)), data.draw(st.integers(2, 4))
    counts = data.draw(hnp.arrays(int, (n, k), elements=st.integers(0, 5)))
    counts[:, 0] += counts.sum(axis=1) == 0
    p = counts / counts.sum(axis=1, keepdims=True)
    y = data.draw(hnp.arrays(int, n, elements=st.integers(0, k - 1)))
    ordered = data.draw(st.booleans())
    found = vx.recalibrate(y, p, ordered=ordered, folds=3)
    better = found.apply(p)
    assert (better >= 0).all()
    np.testing.assert_allclose(better.sum(axis=1), 1, atol=1e-9)


# ---- real forecasts ----------------------------------------------------------------------------


@pytest.mark.long
def test_retinopathy_grades():
    """Temperature and isotonic regression gain about a percent of RPS here; class offsets gain four."""
    stored = realdata.load("dr-aptos", "dr_aptos5.npz")
    found = vx.recalibrate(stored["labels"], stored["probs"], rule="rps", ordered=True)
    assert found.trials[0].loss == pytest.approx(0.0406, abs=5e-5)
    assert 0.005 < found.trial("temperature").gain.share < 0.025
    assert -0.03 < found.trial("isotonic").gain.share < 0.03
    # In sample, isotonic regression would promise ten percent.
    in_sample = fit(
        Configuration("isotonic"),
        FittingRows.of(stored["labels"], stored["probs"], None),
        vx.rps,
        ordered=True,
    )
    promised = 1 - vx.rps(stored["labels"], in_sample.apply(stored["probs"])) / found.trials[0].loss
    assert promised > 0.08
    assert found.method == "bcts"
    assert 0.02 < found.gain.share < 0.06
    assert found.gain.interval.low > 0


def test_the_folds_of_a_sample_see_no_row_of_their_own():
    y, p, _ = drawn(100, 3, seed=29)
    sample = FoldedRows(y, None, None, vx.brier, dealt(len(y), None, 5, 0), 0, p, False)
    isotonic = Configuration("isotonic")
    before = sample.fitted([isotonic], [2])[isotonic].apply(p)
    spoiled_rows = p.copy()
    spoiled_rows[sample.folds == 2] = [0.98, 0.01, 0.01]
    other = FoldedRows(y, None, None, vx.brier, sample.folds, 0, spoiled_rows, False)
    np.testing.assert_array_equal(other.fitted([isotonic], [2])[isotonic].apply(p), before)


def test_a_flipped_digit_does_not_load(tmp_path):
    """Any digit of the file, also of its checksum or version."""
    y, p, _ = drawn(100, 2)
    file = tmp_path / "c.json"
    vx.recalibrate(y, p, method="temperature").save(file)
    text = file.read_text()
    places = [i for i, c in enumerate(text) if c.isdigit()]
    assert len(places) > 100
    for i in places[:: len(places) // 60]:
        file.write_text(text[:i] + str((int(text[i]) + 1) % 10) + text[i + 1 :])
        with pytest.raises(vx.InputError, match=r"checksum differs|its version is"):
            vx.results.Recalibration.load(file)
    file.write_text(text.replace('"checksum"', '"Checksum"'))
    with pytest.raises(vx.InputError, match="its checksum is missing"):
        vx.results.Recalibration.load(file)
    # The layout of JSON does not matter.
    file.write_text(json.dumps(json.loads(text), indent=8))
    assert vx.results.Recalibration.load(file).method == "temperature"
