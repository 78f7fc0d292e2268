"""A new subject works on every kind and source of rows, without a line written for any of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import scannedlists as lists
import verax as vx
from scattered import Scattered, problem
from toy.verax_wings.heavy.analysis import heavy_losses as analysed

RNG, Y, P = problem(300, 3, 5)
W = RNG.integers(0, 4, 300) * 0.5
TABLE = pa.table({"label": Y, "w": W, **{f"p_{k}": P[:, k] for k in range(3)}})
ASKED = {"rule": "brier", "limit": 0.8}


def heavy_losses(*rows, **asked):
    """The numbers of the result."""
    found = analysed(*rows, **asked)
    return {"n_rows": found.n_rows, "rows": found.rows, "loss": found.loss}


def expected(y, p, w, rule):
    losses = rule.samples(y, p)
    heavy = losses > ASKED["limit"]
    share = w[heavy].sum() / w.sum(), (w * losses)[heavy].sum() / (w * losses).sum()
    return {"n_rows": len(w), "rows": pytest.approx(share[0]), "loss": pytest.approx(share[1])}


def test_arrays_and_parts():
    true = expected(Y, P, W, vx.brier)
    assert heavy_losses(Y, P, weights=W, **ASKED) == true
    assert heavy_losses(Scattered(Y, P, weights=W), **ASKED) == true


def test_frames_and_files(tmp_path):
    true = expected(Y, P, W, vx.brier)
    papq.write_table(TABLE, tmp_path / "rows.parquet")
    for source in (TABLE, TABLE.to_pandas(), tmp_path / "rows.parquet"):
        assert heavy_losses(vx.scan(source, target="label", weights="w"), **ASKED) == true


def test_top_lists():
    y, models = lists.in_memory()
    w = lists.OWN["weights"]
    true = expected(y, models["a"], w, vx.padded(vx.brier))
    assert heavy_losses(y, models["a"], weights=w, **ASKED) == true
    handle = vx.scan(
        lists.table(), target="truth", weights="w", probs=lists.MODELS["a"], classes=lists.NAMES, lists=True
    )
    assert heavy_losses(handle, **ASKED) == true


def test_saved_summaries(tmp_path):
    for i, rows in enumerate((TABLE.slice(0, 120), TABLE.slice(120))):
        shard = vx.scan(rows, target="label", weights="w", record="m")
        heavy_losses(shard, **ASKED)
        shard.save(tmp_path / f"{i}.verax")
    saved = vx.scan([tmp_path / "0.verax", tmp_path / "1.verax"])
    assert heavy_losses(saved, **ASKED) == expected(Y, P, W, vx.brier)


@pytest.mark.frameworks
def test_dask():
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(TABLE.to_pandas(), npartitions=4, sort=False)
    found = heavy_losses(vx.scan(frame, target="label", weights="w"), **ASKED)
    assert found == expected(Y, P, W, vx.brier)


def test_the_same_refusals_everywhere():
    for source in ((Y, np.where(np.arange(900).reshape(300, 3) == 10, 0.99, P)),):
        with pytest.raises(vx.InputError, match="row 3 sums to"):
            heavy_losses(*source, **ASKED)
    with pytest.raises(vx.errors.RuleError, match="cumulative"):
        heavy_losses(lists.in_memory()[0], lists.in_memory()[1]["a"], rule="rps", limit=0.1)
