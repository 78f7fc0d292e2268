"""Summaries that are recorded, saved and merged give what all rows at once give."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import verax as vx
from scanned import alike
from scattered import Scattered
from verax.analyses.cards.container import read_summaries, write_summaries
from verax.analyses.loading import merged_card
from verax.common.idkeys import kept_key
from verax.inference.intervals import Resampling
from verax.report import Report
from verax.report.analysis import recipes_of
from verax.report.problem import Problem
from verax.scans.saved import merge_saved

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
        handle = vx.scan(opened(shards / f"part{i}.parquet"), record="model")
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
            # Saved summaries hold no rows, which measures and the intervals of components need.
            if key not in ("row", "ranks", "stored", "measures", "intervals", "findings")
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
    ids = np.array([case.id for case in expected])
    assert [case.id for case in found] == kept_key().digests(ids).tolist()
    assert [case.ranks["rps"] for case in found] == [1, 2, 3, 4, 5]


def test_models_may_be_called_like_their_files(saved, tmp_path):
    for i in range(2):
        handle = vx.scan(saved / f"part{i}.parquet", classes=CLASSES, record=True)
        vx.evaluate(handle)
        handle.save(tmp_path / f"{i}.verax")
    assert vx.evaluate(vx.scan([tmp_path / "0.verax", tmp_path / "1.verax"])).n_rows == 420


def test_nothing_is_read_twice(shards, monkeypatch):
    handle = vx.scan(opened(shards / "part0.parquet"), record=True)
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
    with pytest.raises(vx.InputError, match="a card only"):
        vx.scan(tmp_path / "card.verax")
    with pytest.raises(vx.InputError, match="asked for something"):
        vx.scan(opened(saved / "part0.parquet"), record=True).save(tmp_path / "empty.verax")
    other = vx.scan(saved / "part0.parquet", classes=CLASSES, record=True)
    vx.evaluate(other, ordered=True)
    other.save(tmp_path / "other.verax")
    with pytest.raises(vx.InputError, match="their by differ"):
        vx.scan([saved / "part0.verax", tmp_path / "other.verax"])


def test_the_card_is_read_by_load_too(saved):
    card = vx.load(saved / "part0.verax")
    assert (card.n_rows, card.ordered) == (100, True)


def merged(paths, path):
    merge_saved(paths, merged_card(paths).card, path)
    return path


def everything(handle):
    for name in ("evaluate", "decompose", "retention", "worst", "subgroups"):
        with suppress(vx.InputError):  # a part may have too few rows, but is recorded
            ANALYSES[name](handle)
    asked = Problem.of(handle, None, ordered=True, costs=None, weights_are="importance")
    handle.summarise(recipes_of(handle, asked, Resampling(0.95, 100)))


def test_merged_files_do_not_grow_with_the_number_of_parts(shards, tmp_path):
    table, size = papq.read_table(shards / "all.parquet"), 120
    cut = {f"{i}": table.slice(i * size, size) for i in range(N // size)}
    for name, each in {"all": table, **cut}.items():
        handle = vx.scan(each, target="label", classes=CLASSES, id="name", by="site", record="model")
        everything(handle)
        handle.save(tmp_path / f"{name}.verax")
    parts = [tmp_path / f"{name}.verax" for name in cut]
    every = merged(parts, tmp_path / "every.verax")
    assert every.stat().st_size == pytest.approx((tmp_path / "all.verax").stat().st_size, rel=0.02)
    # In another order, in two steps; and again from what was merged.
    halves = [merged(parts[1::2][::-1], tmp_path / "b.verax"), merged(parts[::2], tmp_path / "a.verax")]
    again = merged(halves, tmp_path / "again.verax")
    assert again.stat().st_size == pytest.approx(every.stat().st_size, rel=0.002)
    handles = [vx.scan(path) for path in (tmp_path / "all.verax", every, again)]
    for name in ("evaluate", "decompose", "retention", "subgroups"):
        one, *others = (numbers(ANALYSES[name](handle).to_dict()) for handle in handles)
        for other in others:
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
    one, other = (Report.of(handle, ordered=True).contents for handle in handles[:2])
    found, expected = (numbers(each.subgroups["site"].to_dict()) for each in (other, one))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    cases = [[(case.id, case.ranks) for case in each.findings[0].worst] for each in (one, other)]
    assert cases[0] == cases[1]
    assert len(cases[0][0][1]) == 3


def test_merging_exact_sums_gives_the_same_bytes_in_any_order(tmp_path):
    rng = np.random.default_rng(1)
    paths = []
    for i in range(4):
        p = rng.multinomial(64, [0.5, 0.25, 0.25], 50) / 64
        handle = vx.scan(
            pa.table({"label": rng.integers(0, 3, 50), **{f"p_{k}": p[:, k] for k in range(3)}}), record=True
        )
        vx.decompose(handle, rule="brier")
        vx.retention(handle, rule="brier", metric="accuracy")
        vx.evaluate(handle, rules=["brier"])
        paths.append(tmp_path / f"{i}.verax")
        handle.save(paths[-1])
    a, b, c, d = paths
    steps = [[merged([a, b], tmp_path / "ab"), merged([c, d], tmp_path / "cd")], [d, c, b, a]]
    found = [read_summaries(merged(step, tmp_path / f"all{i}")) for i, step in enumerate(steps)]
    for name in found[0]:
        if not name.startswith(("about", "card", "CardRecipe")):  # named like files; squared deviations
            assert found[0][name] == found[1][name], name
    assert len(found[0]) == len(found[1]) == 6


def test_files_that_hold_pieces_are_read(saved, tmp_path):
    """As merged files did before summaries were merged when saved."""
    first, second = (read_summaries(saved / f"part{i}.verax") for i in range(2))
    pieces = {f"{name}+1": stored for name, stored in second.items() if name not in ("about", "card")}
    write_summaries(tmp_path / "pieces.verax", {**first, **pieces})
    found = vx.decompose(vx.scan(tmp_path / "pieces.verax"), rule="rps")
    expected = vx.decompose(vx.scan([saved / "part0.verax", saved / "part1.verax"]), rule="rps")
    assert found.score == expected.score
    again = merged([tmp_path / "pieces.verax"], tmp_path / "again.verax")
    assert vx.decompose(vx.scan(again), rule="rps").score == expected.score
    assert not any("+" in name for name in read_summaries(again))


@pytest.mark.parametrize("rule", ["brier", ["brier", "log_score"]])
def test_comparisons_of_shards_merge(tmp_path, rule):
    rng = np.random.default_rng(0)
    y, p, q = rng.integers(0, 3, 80), *rng.dirichlet(np.ones(3), (2, 80))
    for i, rows in enumerate((slice(0, 30), slice(30, 80))):
        shard = vx.scan(Scattered(y[rows], {"a": p[rows], "b": q[rows]}, n_parts=2), record=True)
        vx.compare(shard, rule=rule)
        shard.save(tmp_path / f"{i}.verax")
    saved = vx.scan([tmp_path / "0.verax", tmp_path / "1.verax"])
    found, exact = vx.compare(saved, rule=rule), vx.compare(y, {"a": p, "b": q}, rule=rule)
    alike(found.to_dict(stored=False), exact.to_dict(stored=False))
    with pytest.raises(vx.InputError, match=r"reference.*second pass"):
        vx.compare(saved, rule=rule, reference="frequencies")


def test_shards_without_names_merge_whatever_their_files_are_called(shards, tmp_path):
    """Comparisons and subgroups, whose summaries know models by name; curves of ranks are refused as such."""
    asks = {
        "compare": lambda handle: vx.compare(handle, rule="brier", reference="uniform"),
        "subgroups": lambda handle: vx.subgroups(handle, by="site", rule="brier"),
        "net_benefit": lambda handle: vx.net_benefit(handle, thresholds=[0.2, 0.5]),
    }
    files = []
    for i in range(3):
        shard = vx.scan(opened(shards / f"part{i}.parquet"), record=True)
        assert shard.models == ("model",)
        for ask in (*asks.values(), vx.roc_auc, vx.roc_curve):
            ask(shard)
        shard.save(tmp_path / f"{i}.verax")
        files.append(tmp_path / f"{i}.verax")
    merged, whole = vx.scan(files), vx.scan(opened(shards / "all.parquet"), record=True)
    found, wanted = (asks["compare"](handle).models["brier"][0] for handle in (merged, whole))
    assert (found.mean, found.skill) == pytest.approx((wanted.mean, wanted.skill))
    assert asks["subgroups"](merged).to_frame().shape == asks["subgroups"](whole).to_frame().shape
    curves = [asks["net_benefit"](handle).to_frame() for handle in (merged, whole)]
    assert np.array_equal(curves[0].columns, curves[1].columns)
    for ask in (vx.roc_auc, vx.roc_curve):
        with pytest.raises(vx.InputError, match="passes over the rows twice"):
            ask(merged)
    with pytest.raises(vx.InputError, match="with the same settings"):
        vx.net_benefit(merged, thresholds=[0.3])


def test_a_shard_may_be_one_group(tmp_path):
    """Days with one group each: their cards and comparisons add up to those of all rows."""
    rng = np.random.default_rng(1)
    p, group = rng.uniform(0.05, 0.95, 90).round(3), np.repeat([1, 2, 3], 30)
    table = pa.table({"y": (rng.random(90) < p).astype(int), "p": p, "group": group})
    files = []
    for i in range(3):
        shard = vx.scan(table.slice(30 * i, 30), target="y", groups="group", record=True)
        assert not vx.evaluate(shard).scores["brier"].interval.defined
        assert not vx.compare(shard, rule="brier", reference="uniform").models["brier"][0].interval.defined
        shard.save(tmp_path / f"{i}.verax")
        files.append(tmp_path / f"{i}.verax")
    merged, whole = vx.scan(files), vx.scan(table, target="y", groups="group")
    assert vx.evaluate(merged).scores["brier"].interval == pytest.approx(
        vx.evaluate(whole).scores["brier"].interval
    )
    found, wanted = (vx.compare(own, rule="brier", reference="uniform") for own in (merged, whole))
    assert found.n_groups == wanted.n_groups == 3
    assert found.models["brier"][0].interval == pytest.approx(wanted.models["brier"][0].interval)
