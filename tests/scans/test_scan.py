"""Predictions that are not in memory give what the same predictions in memory give."""

from __future__ import annotations

import gzip
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import verax as vx
from verax.analyses.worst_rows import WorseRecipe

CLASSES = ["low", "middle", "high"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 1, 1], 3000)
    y = np.array([rng.choice(3, p=row) for row in p])
    return y, p, rng.random(3000), rng.integers(0, 40, 3000)


@pytest.fixture(scope="module")
def table(rows):
    y, p, weights, groups = rows
    columns = {f"p_{name}": p[:, i] for i, name in enumerate(CLASSES)}
    labels = np.array(CLASSES)[y]
    other = {f"q_{name}": p[:, 2 - i] for i, name in enumerate(CLASSES)}
    return pa.table({"label": labels, **columns, **other, "w": weights, "patient": groups})


@pytest.fixture(scope="module", params=["parquet", "csv", "npz"])
def path(request, rows, table, tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / f"preds.{request.param}"
    if request.param == "parquet":
        papq.write_table(table, path, row_group_size=700)
    elif request.param == "csv":
        pacsv.write_csv(table, path)
    else:
        y, p, w, groups = rows
        np.savez(path, y=np.array(CLASSES)[y], p=p, w=w, patient=groups, classes=np.array(CLASSES))
    return path


def test_the_card_of_a_file_is_that_of_its_rows(path, rows):
    y, p, w, groups = rows
    probs = "p" if path.suffix == ".npz" else "p_*"
    handle = vx.scan(path, probs=probs, classes=CLASSES, weights="w", groups="patient")
    card = vx.evaluate(handle, ordered=True)
    memory = vx.evaluate(y, p, ordered=True, weights=w, groups=groups)
    assert card.n_rows == memory.n_rows
    for name in ("brier", "log_score", "rps", "qwk", "accuracy"):
        assert card[name] == pytest.approx(memory[name], rel=1e-12)
    assert list(card.scores["rps"].interval) == pytest.approx(list(memory.scores["rps"].interval), rel=1e-9)


def test_an_order_is_not_guessed(table, tmp_path):
    papq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(vx.InputError, match="order"):
        vx.evaluate(vx.scan(tmp_path / "a.parquet", probs="p_*"), ordered=True)


def test_options_about_rows_belong_to_scan(table, tmp_path):
    papq.write_table(table, tmp_path / "a.parquet")
    handle = vx.scan(tmp_path / "a.parquet", probs="p_*")
    with pytest.raises(vx.InputError, match=r"weights.*scan"):
        vx.evaluate(handle, weights=[1.0])
    with pytest.raises(vx.InputError, match="`p` must not be given"):
        vx.evaluate(handle, [[0.5, 0.5]])


def test_a_card_is_of_one_model(table, tmp_path):
    papq.write_table(table, tmp_path / "a.parquet")
    handle = vx.scan(tmp_path / "a.parquet", probs={"a": "p_*", "b": "q_*"})
    assert handle.models == ("a", "b")
    with pytest.raises(vx.InputError, match="compare"):
        vx.evaluate(handle)


def test_invalid_rows_are_left_out_and_counted(table, rows, tmp_path):
    y, p, *_ = rows
    broken = rows[1][:, 0].copy()
    broken[[5, 900, 901]] = [np.nan, 0.9, -1]
    bad = table.set_column(1, "p_low", pa.array(broken))
    papq.write_table(bad, tmp_path / "a.parquet", row_group_size=500)
    card = vx.evaluate(vx.scan(tmp_path / "a.parquet", probs="p_*", classes=CLASSES, invalid="skip"))
    assert card.skipped.rows == (5, 900, 901)
    keep = np.delete(np.arange(len(y)), [5, 900, 901])
    assert card["brier"] == pytest.approx(vx.brier(y[keep], p[keep]), rel=1e-12)


def test_unknown_sources_are_refused():
    with pytest.raises(vx.InputError, match="source"):
        vx.scan(object())


# ---- analyses ------------------------------------------------------------------------------------


@pytest.fixture
def handle(table, tmp_path):
    """Two models in a file whose parts are small."""
    whole = table.append_column("case", pa.array([f"c{i}" for i in range(table.num_rows)]))
    papq.write_table(whole, tmp_path / "two.parquet", row_group_size=700)

    def opened(**options):
        options = {"probs": {"a": "p_*", "b": "q_*"}, "classes": CLASSES, **options}
        return vx.scan(tmp_path / "two.parquet", **options)

    return opened


@pytest.fixture(autouse=True)
def small_parts(change):
    """Files come in many parts."""
    change(part_rows=500)


def near(a, b):
    """The same values to 12 digits, in results as plain values."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-10, abs=1e-12, nan_ok=True)
    return a == b


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"weights": "w"}, {"groups": "patient"}], ids=str)
@pytest.mark.parametrize("reference", [None, "uniform", "frequencies", "b"])
def test_models_compare_as_in_memory(handle, rows, options, reference):
    y, p, w, groups = rows
    given = {"weights": w, "groups": groups}
    rules = ["rps", "log_score", "brier"]
    found = vx.compare(handle(**options), rule=rules, ordered=True, reference=reference)
    memory = vx.compare(
        y,
        {"a": p, "b": p[:, ::-1]},
        rule=rules,
        ordered=True,
        reference=reference,
        **{name: given[name] for name in options},
    )
    assert near(found.to_dict(stored=False), memory.to_dict(stored=False))


def test_what_needs_all_rows_is_refused(handle):
    with pytest.raises(vx.InputError, match=r"method.*all rows"):
        vx.compare(handle(), rule="rps", method="bootstrap")
    with pytest.raises(vx.InputError, match=r"time_ordered.*all rows"):
        vx.compare(handle(), rule="rps", time_ordered=True)


@pytest.mark.parametrize("rule", ["rps", "log_score", "zero_one"])
def test_the_worst_rows_are_those_in_memory(handle, rows, rule):
    y, p, *_ = rows
    found = vx.worst(handle(probs="p_*", id="case"), rule=rule, n=12)
    names = np.array([f"c{i}" for i in range(len(y))])
    memory = vx.worst(np.array(CLASSES)[y], p, rule=rule, n=12, ids=names, classes=CLASSES)
    assert near(found.to_dict(stored=False), memory.to_dict(stored=False))
    plain = vx.worst(handle(probs="p_*"), rule=rule, n=3)
    assert [case.row for case in plain] == [case.row for case in memory][:3]


@pytest.mark.parametrize(("n", "again"), [(5, False), (800, True)])
def test_ranks_from_one_pass_are_those_in_memory(table, rows, tmp_path, change, monkeypatch, n, again):
    y, p, *_ = rows
    papq.write_table(table, tmp_path / "parts.parquet", row_group_size=300)
    asked = {"rule": "brier", "n": n, "others": ["log_score", "spherical"]}
    memory = vx.worst(np.array(CLASSES)[y], p, **asked, classes=CLASSES)
    passes = []
    taken = WorseRecipe.take
    monkeypatch.setattr(WorseRecipe, "take", lambda *given: passes.append(1) or taken(*given))
    change(part_rows=200)
    found = vx.worst(vx.scan(tmp_path / "parts.parquet", probs="p_*", classes=CLASSES), **asked)
    # Of 800 rows some have a small loss by another rule, and more rows before them than are kept.
    assert bool(passes) == again
    assert [case.ranks for case in found] == [case.ranks for case in memory]


@pytest.mark.parametrize("models", [{"a": "p_*"}, {"a": "p_*", "b": "q_*"}], ids=len)
def test_subgroups_are_those_in_memory(table, rows, tmp_path, models):
    y, p, *_ = rows
    rng = np.random.default_rng(1)
    site = np.array(["north", "south", "west"])[rng.integers(0, 3, len(y))]
    papq.write_table(table.append_column("site", pa.array(site)), tmp_path / "s.parquet", row_group_size=700)
    handle = vx.scan(tmp_path / "s.parquet", probs=models, classes=CLASSES, by="site")
    found = vx.subgroups(handle, by="site", ordered=True)
    forecasts = {"a": p, "b": p[:, ::-1]}
    memory = vx.subgroups(
        np.array(CLASSES)[y],
        {name: forecasts[name] for name in models},
        by=site,
        classes=CLASSES,
        ordered=True,
    )
    assert list(found) == list(memory)
    for own, other in zip(found.lines, memory.lines, strict=True):
        assert near(own.card.to_dict(stored=False)["scores"], other.card.to_dict(stored=False)["scores"])
        ours, theirs = own.decomposition.whole, other.decomposition.whole
        assert ours.score == pytest.approx(theirs.score, rel=1e-12)
        assert 0 <= theirs.miscalibration - ours.miscalibration + 1e-12 <= ours.within + 2e-12
        assert own.stands_out == other.stands_out
        assert own.p_value == pytest.approx(other.p_value, rel=0.01)
    for label, comparison in memory.comparisons.items():
        assert near(found.comparisons[label].to_dict(stored=False), comparison.to_dict(stored=False))
    with pytest.raises(vx.InputError, match="scan"):
        vx.subgroups(handle, by="patient")


@pytest.mark.parametrize("rule", [vx.brier, vx.rps, vx.log_score])
def test_a_rule_is_called_with_a_handle(handle, rows, rule):
    y, p, w, _ = rows
    assert rule(handle(probs="p_*", weights="w")) == pytest.approx(rule(y, p, weights=w), rel=1e-12)


def test_functions_that_need_all_rows_say_so(handle):
    with pytest.raises(vx.InputError, match="samples needs all rows at once"):
        vx.brier.samples(handle(probs="p_*"))


def test_text_bounds_the_number_of_its_rows(tmp_path):
    p = np.full((50, 3), [0, 0, 1])
    table = pa.table({"label": [2] * 50, **{f"p_{j}": p[:, j] for j in range(3)}})
    pacsv.write_csv(table, tmp_path / "rows.csv")
    papq.write_table(table, tmp_path / "rows.parquet")
    with gzip.open(tmp_path / "rows.csv.gz", "wb") as packed:
        packed.write((tmp_path / "rows.csv").read_bytes())
    bounds = [vx.scan(tmp_path / f"rows.{end}").most_rows for end in ("csv", "parquet", "csv.gz")]
    assert 50 <= bounds[0] < 100
    assert bounds[1:] == [50, math.inf]
