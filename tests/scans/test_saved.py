"""Summaries that are recorded, saved and merged give what all rows at once give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import verax as vx
from verax.scans.saved import Recorded

CLASSES = ["low", "middle", "high"]
N = 600


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """One file of all rows, and three of parts, each with another name."""
    folder = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 1, 1], N)
    y = np.array([rng.choice(3, p=row) for row in p])
    columns = {f"p_{name}": p[:, i] for i, name in enumerate(CLASSES)}
    ids = [f"row {i}" for i in range(N)]
    table = pa.table({"label": np.array(CLASSES)[y], **columns, "name": ids, "site": rng.integers(0, 3, N)})
    papq.write_table(table, folder / "all.parquet")
    for i, (start, stop) in enumerate([(0, 100), (100, 420), (420, N)]):
        papq.write_table(table.slice(start, stop - start), folder / f"part{i}.parquet")
    return folder


ANALYSES = {
    "evaluate": lambda handle: vx.evaluate(handle, ordered=True),
    "decompose": lambda handle: vx.decompose(handle, rule="rps"),
    "reliability": lambda handle: vx.reliability(handle),
    "ece": lambda handle: vx.ece(handle),
    "retention": lambda handle: vx.retention(handle, rule="brier", metric=["accuracy", "qwk"]),
    "rule": lambda handle: vx.brier(handle),
    "worst": lambda handle: vx.worst(handle, rule="rps", n=5),
    "subgroups": lambda handle: vx.subgroups(handle, by="site", rule="brier"),
}


def opened(path):
    return vx.scan(path, classes=CLASSES, id="name", by="site")


@pytest.fixture(scope="module")
def saved(shards):
    """Every analysis of every part, saved."""
    for i in range(3):
        handle = Recorded(opened(shards / f"part{i}.parquet"), model="model")
        for analyse in ANALYSES.values():
            analyse(handle)
        handle.save(shards / f"part{i}.verax")
    return shards


def numbers(result):
    """All numbers in a result, in order."""
    if isinstance(result, dict):
        return [
            x
            for key, inner in result.items()
            if key not in ("row", "ranks", "stored")
            for x in numbers(inner)
        ]
    if isinstance(result, (list, tuple)):
        return [x for inner in result for x in numbers(inner)]
    return [float(result)] if isinstance(result, (int, float)) else []


@pytest.mark.parametrize("name", ANALYSES)
def test_saved_summaries_give_what_all_rows_give(name, saved):
    week = vx.scan(str(saved / "part*.verax"))
    assert week.n_rows == N
    results = [ANALYSES[name](handle) for handle in (week, opened(saved / "all.parquet"))]
    found, expected = (
        numbers(result.to_dict()) if hasattr(result, "to_dict") else [result] for result in results
    )
    assert len(found) > 0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_worst_rows_keep_their_ids(saved):
    found, expected = (
        vx.worst(handle, rule="rps", n=5)
        for handle in (vx.scan(str(saved / "part*.verax")), opened(saved / "all.parquet"))
    )
    assert [case.id for case in found] == [case.id for case in expected]
    assert [case.ranks["rps"] for case in found] == [1, 2, 3, 4, 5]


def test_models_may_be_called_like_their_files(saved, tmp_path):
    for i in range(2):
        handle = Recorded(vx.scan(saved / f"part{i}.parquet", classes=CLASSES))
        vx.evaluate(handle)
        handle.save(tmp_path / f"{i}.verax")
    assert vx.evaluate(vx.scan([tmp_path / "0.verax", tmp_path / "1.verax"])).n_rows == 420


def test_nothing_is_read_twice(shards, monkeypatch):
    handle = Recorded(opened(shards / "part0.parquet"))
    first = vx.evaluate(handle, ordered=True)
    monkeypatch.setattr(handle._handle, "_summarise", lambda *_: pytest.fail("read again"))
    assert vx.evaluate(handle.in_order(), ordered=True)["rps"] == first["rps"]


def test_what_was_not_saved_is_said(saved, tmp_path):
    week = vx.scan([saved / "part0.verax", saved / "part1.verax"])
    with pytest.raises(vx.InputError, match=r"part0\.verax lacks summaries"):
        vx.evaluate(week, ordered=True, rules=["brier"])
    with pytest.raises(vx.InputError, match="without options"):
        vx.scan(saved / "part0.verax", target="label")
    vx.evaluate([0, 1], [[0.5, 0.5], [0.4, 0.6]]).save(tmp_path / "card.verax")
    with pytest.raises(vx.InputError, match="a card alone"):
        vx.scan(tmp_path / "card.verax")
    with pytest.raises(vx.InputError, match="asked for something"):
        Recorded(opened(saved / "part0.parquet")).save(tmp_path / "empty.verax")
    other = Recorded(vx.scan(saved / "part0.parquet", classes=CLASSES))
    vx.evaluate(other, ordered=True)
    other.save(tmp_path / "other.verax")
    with pytest.raises(vx.InputError, match="their by differ"):
        vx.scan([saved / "part0.verax", tmp_path / "other.verax"])


def test_the_card_is_read_by_load_too(saved):
    card = vx.load(saved / "part0.verax")
    assert (card.n_rows, card.ordered) == (100, True)
