"""Curves of dropped cases on the page, wherever their sums come from."""

from __future__ import annotations

import numpy as np
import pandas as pd

import verax as vx
from reports import light, sample


def test_sums_saved_of_a_file_that_does_not_say_how_many_rows_it_has_are_a_page(tmp_path):
    y, p = sample(60, 3)
    table = pd.DataFrame({"label": y, **{f"p_{k}": p[:, k] for k in range(3)}})
    table.to_csv(tmp_path / "rows.csv", index=False)
    handle = vx.scan(tmp_path / "rows.csv", record="model")
    rows = light(handle)
    handle.save(tmp_path / "rows.verax")
    saved = light(vx.scan(tmp_path / "rows.verax"))
    (ours,), (true,) = (each.contents.found["retention"].values() for each in (saved, rows))
    assert [curve.order for curve in ours.selected] == [curve.order for curve in true.selected]
    assert "max_probability" in {curve.order for curve in ours.selected}
    for a, b in zip(ours.retained + ours.selected, true.retained + true.selected, strict=True):
        np.testing.assert_allclose(a.values, b.values, rtol=1e-12)
    assert 'id="retention"' in saved.to_html()
