"""Prediction sets in files and frames: a column of lists or texts, or a mask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from verax.errors import InputError

CLASSES = ["flu", "cold", "covid"]
_draw = np.random.default_rng(4)
N = 50
MASK = _draw.random((N, 3)) < 0.6
Y = _draw.integers(0, 3, N)
SITE = np.where(np.arange(N) % 2, "north", "south")
LISTS = [[CLASSES[k] for k in np.flatnonzero(row)] for row in MASK]
EXACT = vx.evaluate_sets(Y, MASK, level=0.6, classes=CLASSES, by=SITE)


def frame():
    shown = {"label": [CLASSES[k] for k in Y], "site": SITE, "lists": LISTS}
    shown["texts"] = ["|".join(own) for own in LISTS]
    shown["places"] = [np.flatnonzero(row).tolist() for row in MASK]
    return pd.DataFrame(shown | {f"in_{c}": MASK[:, k].astype(int) for k, c in enumerate(CLASSES)})


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets")
    frame().to_parquet(path / "sets.parquet")
    frame()[["label", "site", "texts", "in_flu", "in_cold", "in_covid"]].to_csv(
        path / "sets.csv", index=False
    )
    frame().assign(label=Y)[["label", "places"]].to_json(path / "sets.jsonl", orient="records", lines=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        yield path


def same(found, exact):
    assert [found.value, *found.interval] == pytest.approx([exact.value, *exact.interval], rel=1e-12)


def alike(found):
    same(found.coverage, EXACT.coverage)
    assert found.size.value == pytest.approx(EXACT.size.value, rel=1e-12)
    assert found.sizes == EXACT.sizes


@pytest.mark.parametrize("source", ["sets.parquet", "sets.csv", "frame"])
@pytest.mark.parametrize("columns", ["texts", "lists", "in_*"])
def test_sets_are_those_in_memory(source, columns):
    if source == "sets.csv" and columns == "lists":
        pytest.skip("CSV files hold no lists")
    given = {} if columns == "in_*" else {"classes": CLASSES}
    handle = vx.scan(frame() if source == "frame" else source, sets=columns, by="site", **given)
    assert handle.sets
    found = vx.evaluate_sets(handle, level=0.6, by="site")
    alike(found)
    shares = {line.label: line.coverage for line in EXACT.by["subgroup"]}
    assert {line.label: line.coverage for line in found.by["site"]} == pytest.approx(shares, rel=1e-12)


def test_positions_and_ordered_sets_and_comparisons():
    alike(vx.evaluate_sets(vx.scan("sets.jsonl", sets="places", classes=3), level=0.6))
    exact = vx.evaluate_sets(Y, MASK, level=0.6, ordered=True, classes=CLASSES)
    found = vx.evaluate_sets(vx.scan("sets.csv", sets="in_*", classes=CLASSES), level=0.6, ordered=True)
    same(found.gapless, exact.gapless)
    same(found.miss_distance, exact.miss_distance)
    both = vx.scan(
        "sets.parquet", sets={"a": "texts", "b": ["in_flu", "in_cold", "in_covid"]}, classes=CLASSES
    )
    compared = vx.compare(both, rule="level_set")
    assert compared.difference("a", "b").difference == 0
    with pytest.raises(InputError, match="these are prediction sets"):
        vx.evaluate(vx.scan("sets.csv", sets="in_*"))


def test_partitions_of_dask_have_sets(monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    table = frame()[["label", "texts"]]
    alike(
        vx.evaluate_sets(
            vx.scan(dask.from_pandas(table, npartitions=3), sets="texts", classes=CLASSES), level=0.6
        )
    )


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"sets": "texts"}, "`classes` must be given with a column of sets"),
        ({}, {"sets": "texts", "classes": CLASSES[:2]}, "(texts)"),
        ({"texts": "flu|ebola"}, {"sets": "texts", "classes": CLASSES}, "row 3 names 'ebola'"),
        ({"texts": "flu|flu"}, {"sets": "texts", "classes": CLASSES}, "must name every class once"),
        ({"texts": None}, {"sets": "texts", "classes": CLASSES}, "row 3 has none"),
        (
            {"in_flu": 2},
            {"sets": "in_*"},
            "Column 'in_flu' must hold 0 and 1 only, to be a mask; row 3 holds 2",
        ),
        ({}, {"sets": "in_*", "probs": "p_*"}, "`probs` cannot be given beside prediction sets"),
        ({}, {"sets": "in_*", "normalize": True}, "`normalize` does not apply to prediction sets"),
        ({}, {"sets": "site", "classes": CLASSES}, "names 'south'"),
        ({}, {"sets": "nowhere", "classes": CLASSES}, "There is no column 'nowhere'"),
        ({"label": "ebola"}, {"sets": "texts", "classes": CLASSES}, "'ebola'"),
    ],
)
def test_what_is_no_set_is_refused(change, options, words):
    table = frame()
    for name, value in change.items():
        table.loc[3, name] = value
    with pytest.raises(InputError) as refused:
        vx.evaluate_sets(vx.scan(table, **options), level=0.6)
    if words != "(texts)":
        assert words in str(refused.value)


def test_invalid_rows_are_left_out():
    table = frame()
    table.loc[3, "texts"], table.loc[5, "texts"], table.loc[8, "label"] = "flu|ebola", None, None
    table.loc[9, "texts"] = "flu|flu"
    handle = vx.scan(table, sets="texts", classes=CLASSES, invalid="skip")
    kept = np.delete(np.arange(N), [3, 5, 8, 9])
    found = vx.evaluate_sets(handle, level=0.6)
    assert found.skipped.rows == (3, 5, 8, 9)
    assert found.skipped.reasons["sets that are missing or name unknown classes"] == 3
    same(found.coverage, vx.evaluate_sets(Y[kept], MASK[kept], level=0.6, classes=CLASSES).coverage)


def test_invalid_rows_in_memory_are_left_out():
    kept = np.delete(np.arange(N), [2, 3, 5, 8])
    labels = [CLASSES[k] for k in Y]
    exact = vx.evaluate_sets(Y[kept], MASK[kept], level=0.6, classes=CLASSES)
    lists, wrong = [list(own) for own in LISTS], list(labels)
    lists[3], lists[5], lists[2], wrong[8] = ["flu", "ebola"], None, ["flu", "flu"], None
    found = vx.evaluate_sets(wrong, lists, level=0.6, classes=CLASSES, invalid="skip", by=SITE)
    same(found.coverage, exact.coverage)
    assert found.skipped.rows == (2, 3, 5, 8)
    mask = MASK.astype(int)
    mask[[2, 3, 5], 1] = 7
    weights = np.ones(N)
    weights[8] = -1
    same(vx.evaluate_sets(Y, mask, level=0.6, weights=weights, invalid="skip").coverage, exact.coverage)
    made, y = vx.Sets.from_mask(MASK, level=0.6), Y.astype(float)
    y[[2, 3, 5, 8]] = np.nan
    same(vx.evaluate_sets(y, made, invalid="skip").coverage, exact.coverage)
    p = np.full((N, 3), 1 / 3)
    p[4] = np.nan
    assert vx.evaluate_sets(Y, p, level=0.5, invalid="skip").skipped.rows == (4,)
    with pytest.raises(InputError, match="'skip' for top lists"):
        vx.evaluate_sets(Y, vx.TopLists.from_probabilities(p[:4], 2), invalid="skip")


def test_the_command_line_reads_sets():
    done = verax("sets", "sets.csv", "--sets", "texts", "--classes", ",".join(CLASSES), "--level", "0.6")
    assert done.returncode == 0, done.stderr
    assert "prediction sets: texts" in done.stdout
    assert f"The sets cover {EXACT.coverage.value:.1%} (95% CI " in done.stdout
    done = verax("sets", "sets.jsonl", "--sets", "places", "--classes", "3", "--json")
    assert done.returncode == 0, done.stderr
    done = verax("sets", "sets.csv", "--sets", "in_*", "--calibrate", "sets.csv", "--level", "0.9")
    assert "the file has sets" in done.stderr
