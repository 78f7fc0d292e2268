"""Sources as people have them: categories of numbers, missing labels, odd names, models that do not fit."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

import verax as vx
from scanned import CLASSES, COLUMNS, arrays, same, table
from verax import files

PLAIN = table().drop_columns(["all_p", "q_low", "q_middle", "q_high", "site"])


def _with(rows, name, column):
    return rows.set_column(rows.schema.get_field_index(name), name, column)


NUMBERED = {
    "categories": lambda y: pa.array(y).dictionary_encode(),
    "categories of truth": lambda y: pa.array(y > 0).dictionary_encode(),
    "decimals": lambda y: pa.array([Decimal(int(each)).quantize(Decimal("0.01")) for each in y]),
}


@pytest.mark.parametrize("kind", NUMBERED)
@pytest.mark.parametrize("invalid", ["raise", "skip"])
def test_outcomes_may_be_numbers_of_any_type(kind, invalid):
    y, p, w, groups = arrays()
    rows = _with(PLAIN, "label", NUMBERED[kind](y))
    rows = _with(rows, "patient", pa.array(groups).dictionary_encode())
    card = vx.evaluate(vx.scan(rows, invalid=invalid, **COLUMNS), ordered=True)
    if kind == "categories of truth":
        same(card, vx.evaluate((y > 0).astype(int), p, ordered=True, weights=w, groups=groups))
    else:
        same(card)


@pytest.mark.parametrize("ordered", [True, False])
def test_categories_may_be_numbers_that_name_the_columns(ordered):
    y, p, _, _ = arrays()
    grades = pa.DictionaryArray.from_arrays(pa.array(y.astype(np.int8)), pa.array([1, 2, 3]), ordered=ordered)
    rows = pa.table({"label": grades, **{f"p_{i + 1}": p[:, i] for i in range(3)}})
    assert vx.evaluate(vx.scan(rows), ordered=True)["rps"] == pytest.approx(vx.rps(y, p), rel=1e-12)


@pytest.mark.parametrize("column", ["patient", "number"])
def test_labels_that_are_not_a_number_are_missing(column):
    y, p, w, groups = arrays()
    frame = table().drop_columns(["all_p"]).to_pandas()
    frame.loc[[5, 1700], column] = np.nan
    told = {**COLUMNS, "probs": "p_*", "id": "number"}
    with pytest.raises(vx.InputError, match=f"'{column}' must have a value.*row 5") as caught:
        vx.evaluate(vx.scan(frame, **told), ordered=True)
    assert "number nan" not in str(caught.value)
    card = vx.evaluate(vx.scan(frame, invalid="skip", **told), ordered=True)
    kept = np.delete(np.arange(len(y)), [5, 1700])
    assert card.skipped.rows == (5, 1700)
    same(card, vx.evaluate(y[kept], p[kept], ordered=True, weights=w[kept], groups=groups[kept]))


def test_files_may_differ_in_the_type_of_a_column(tmp_path):
    texts = _with(PLAIN, "patient", PLAIN["patient"].cast(pa.string()))
    for i, rows in enumerate((texts.slice(0, 300), PLAIN.slice(300))):
        papq.write_table(rows, tmp_path / f"{i}.parquet")
    with pytest.raises(vx.InputError, match=r"1\.parquet.*one type"):
        vx.evaluate(vx.scan(tmp_path, **COLUMNS))


@pytest.mark.parametrize("lazy", [True, False])
def test_polars_takes_no_name_for_a_pattern(lazy):
    names = {"w": "*", "patient": "^p.*$"}
    frame = pl.from_arrow(PLAIN).rename(names)
    told = {**COLUMNS, "weights": "*", "groups": "^p.*$"}
    probs = [f"p_{name}" for name in CLASSES]
    same(vx.evaluate(vx.scan(frame.lazy() if lazy else frame, probs=probs, **told), ordered=True))


@pytest.mark.frameworks
def test_two_columns_of_one_name_are_refused_whatever_holds_them():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(np.ones((20, 4)) / 2, columns=["label", "p_a", "p_b", "p_b"])
    for source in (frame, dd.from_pandas(frame, npartitions=3)):
        with pytest.raises(vx.InputError, match="two columns called 'p_b'"):
            vx.scan(source)


def test_a_pattern_that_one_file_fits_names_its_folders_too(tmp_path):
    (tmp_path / "site=a").mkdir()
    papq.write_table(PLAIN, tmp_path / "site=a" / "0.parquet")
    found = vx.scan(str(tmp_path / "site=*" / "*.parquet"), by="site", **COLUMNS)
    assert found.by == ("site",)


@pytest.mark.parametrize("others", [["x", "y", "z"], ["low", "middle"], ["low", "middle", "top"]])
def test_models_of_one_source_have_the_same_classes(others, tmp_path):
    _, p, _, _ = arrays()
    rows = PLAIN
    for i, name in enumerate(others):
        rows = rows.append_column(f"q_{name}", pa.array(p[:, i]))
    told = {"target": "label", "probs": {"a": "p_*", "b": "q_*"}}
    with pytest.raises(vx.InputError, match=r"same classes.*b has others than a") as caught:
        vx.scan(rows, **told)
    assert caught.value.argument == "probs"
    papq.write_table(rows, tmp_path / "a.parquet")
    with pytest.raises(vx.InputError, match="same classes"):
        files.read_together(dict.fromkeys("ab", tmp_path / "a.parquet"), **told)
    if others == ["x", "y", "z"]:
        assert vx.scan(rows, classes=CLASSES, **told).models == ("a", "b")


def test_a_comparison_by_an_ordinal_rule_knows_how_far_errors_are_off():
    y, p, w, groups = arrays()
    memory = vx.compare(y, {"a": p, "b": p[:, ::-1]}, rule=["rps", "brier"], weights=w, groups=groups)
    handle = vx.scan(table(), probs={"a": "p_*", "b": "q_*"}, **COLUMNS)
    found = vx.compare(handle, rule=["rps", "brier"])
    for name, traits in memory.traits.items():
        assert found.traits[name].error_distance == pytest.approx(traits.error_distance, rel=1e-12)
    stream = vx.scan(
        pa.RecordBatchReader.from_batches(table().schema, table().to_batches()), **COLUMNS, probs="p_*"
    )
    assert vx.worst(stream, rule="rps", n=1)[0].loss == vx.worst(y, p, rule="rps", n=1)[0].loss


def test_a_decomposition_of_a_frame_is_exact():
    y, p, w, groups = arrays()
    memory = vx.decompose(y, p, rule="brier", weights=w, groups=groups)
    found = vx.decompose(vx.scan(PLAIN, **COLUMNS), rule="brier")
    assert memory.within == found.within == 0
    assert found.miscalibration == pytest.approx(memory.miscalibration, rel=1e-11)


@pytest.mark.parametrize("empty", [PLAIN.slice(0, 0), PLAIN.slice(0, 0).to_pandas()])
def test_what_has_no_rows_says_so(empty):
    with pytest.raises(vx.InputError, match=r"^the \w+ \w+: There are no rows\.$"):
        vx.evaluate(vx.scan(empty, **COLUMNS))


@pytest.mark.parametrize("invalid", ["raise", "skip"])
def test_arrays_of_several_models_and_files_without_a_valid_row(invalid, tmp_path):
    y, p, _, groups = arrays()
    first, second = p.copy(), p[:, ::-1].copy()
    if invalid == "skip":
        first[700:1100] = second[3] = np.nan
    for i in range(4):
        part = slice(400 * (i - 1) + 700, 400 * i + 700) if i else slice(0, 700)
        own = {"y": y[part], "p": first[part], "q": second[part], "patient": groups[part]}
        np.savez(tmp_path / f"{i}.npz", **own)
    kept = np.delete(np.arange(1900), [3, *range(700, 1100)]) if invalid == "skip" else np.arange(1900)
    models = {"a": p[kept], "b": p[kept][:, ::-1]}
    memory = vx.compare(y[kept], models, rule="rps", groups=groups[kept])
    handle = vx.scan(tmp_path, target="y", probs={"a": "p", "b": "q"}, groups="patient", invalid=invalid)
    found = vx.compare(handle, rule="rps")
    assert found.n_rows == memory.n_rows
    assert found.difference("a", "b").difference == pytest.approx(
        memory.difference("a", "b").difference, rel=1e-12
    )
    assert found.n_skipped == 1900 - len(kept)
    # The command line reads the same.
    one = files.open(tmp_path / "*.npz", target="y", probs="p", groups="patient", invalid=invalid)
    read = one.read()
    assert len(read) == len(kept) + (invalid == "skip")
    assert one.n_rows == 1900
    assert np.array_equal(read.y, y[:1900][~np.isnan(first[:1900, 0])])


def test_advice_that_leaves_a_value_open_has_dots():
    rows = pa.table({"label": ["a", "a"], "p_a": [1.0, 0.9]})
    with pytest.raises(vx.InputError, match=r"classes=\[\.\.\., 'a'\]"):
        vx.scan(rows)


@pytest.mark.parametrize("y", [[0, 1, 1, 0], [0, 0, 0, 0]])
def test_replicates_without_weight_have_no_values(y):
    p, w = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]), [0.0, 0.6, 0.0, 0.0]
    rows = pa.table({"label": y, "p_0": p[:, 0], "p_1": p[:, 1], "w": w})
    handle = vx.scan(rows, target="label", probs="p_*", weights="w")
    for metric in ("accuracy", "ec"):
        memory = vx.retention(y, p, rule="brier", metric=metric, weights=w, bootstrap=50)
        found = vx.retention(handle, rule="brier", metric=metric, bootstrap=50)
        assert found.values == pytest.approx(memory.values, abs=1e-12)
        assert len(memory.interval) == len(found.interval) == 2


def test_one_row_has_no_interval_of_skill(recwarn):
    rows = pa.table({"label": [1], "p_0": [0.2], "p_1": [0.8], "q_0": [0.4], "q_1": [0.6], "w": [0.7]})
    handle = vx.scan(rows, target="label", probs={"a": "p_*", "b": "q_*"}, weights="w")
    assert vx.compare(handle, rule="brier", reference="b").n_rows == 1
    assert not recwarn.list
