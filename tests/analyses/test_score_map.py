"""Miscalibration against discrimination of many models."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx
from cases import forecasts


def test_models_have_the_parts_that_decompose_gives():
    y, p = forecasts(200, 3, 0)
    models = {"a": p, "b": 0.5 * p + 0.5 / 3, "flat": np.tile(np.bincount(y, minlength=3) / 200, (200, 1))}
    found = vx.diagrams.score_map(y, models, rule="rps")
    assert [m.score for m in found.models] == sorted(m.score for m in found.models)
    for name, own in models.items():
        expected = vx.decompose(y, own, rule="rps")
        model = found[name]
        assert model.score == pytest.approx(expected.score)
        assert model.miscalibration == pytest.approx(expected.miscalibration)
        assert model.discrimination == pytest.approx(expected.discrimination)
        assert found.uncertainty == pytest.approx(expected.uncertainty)
    assert found["flat"].score == pytest.approx(found.uncertainty)
    with pytest.raises(KeyError, match="there is no model 'c'"):
        found["c"]


def test_lines_join_models_of_equal_score():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    y, p = forecasts(100, 2, 1)
    found = vx.diagrams.score_map(y, {"a": p, "b": 0.5 * p + 0.25})
    (ax,) = found.plot().axes
    # Guides have a point each, for their labels.
    (points,) = (line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) > 1)
    assert points.get_xdata().tolist() == [m.miscalibration for m in found.models]
    assert points.get_ydata().tolist() == [m.discrimination for m in found.models]
    shown = {text.get_text() for text in ax.texts}
    assert {"a", "b"} <= shown
    # The numbers at the lines are scores: miscalibration - discrimination + uncertainty there.
    for text in ax.texts:
        if text.get_text() not in ("a", "b"):
            x, z = text.xy
            assert x - z + found.uncertainty == pytest.approx(float(text.get_text()))
    matplotlib.pyplot.close("all")


def test_refusals():
    with pytest.raises(vx.InputError, match="must be a mapping"):
        vx.diagrams.score_map([0, 1], [0.2, 0.8])
    with pytest.raises(vx.VeraxError, match="decompose"):
        vx.diagrams.score_map([0, 1], {"a": [0.2, 0.8]}, rule="spherical")
