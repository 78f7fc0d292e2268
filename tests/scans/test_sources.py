"""Whatever holds the rows on this machine, the card is that of the rows in memory."""

from __future__ import annotations

import json
from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.feather as pafeather
import pyarrow.parquet as papq
import pytest

import verax as vx
from scanned import CLASSES, COLUMNS, N, arrays, broken, same, table

SITES = ["a b", "c", None]


def parts(rows, folder, write, ending):
    """The rows in files of different lengths, one of them empty."""
    edges = [0, 700, 700, 701, N]
    for i, (start, stop) in enumerate(pairwise(edges)):
        write(rows.slice(start, stop - start), folder / f"{i}.{ending}")
    return folder


def json_lines(table, path):
    # A file without any line is no JSON Lines file.
    if table.num_rows:
        path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))


def npz(table, path):
    y = np.array([CLASSES.index(label) for label in table["label"].to_pylist()], np.int64)
    p = np.array(table["all_p"].to_pylist()).reshape(-1, 3)
    np.savez(path, y=y, p=p, w=table["w"].to_numpy(), patient=table["patient"].to_numpy(), classes=CLASSES)


def without_lists(table):
    return table.drop_columns(["all_p"])


WRITERS = {
    "parquet": lambda t, path: papq.write_table(t, path, row_group_size=300),
    "csv": lambda t, path: pacsv.write_csv(without_lists(t), path),
    "feather": lambda t, path: pafeather.write_feather(t, path),
    "jsonl": json_lines,
    "npz": npz,
}


@pytest.mark.long
@pytest.mark.parametrize("ending", WRITERS)
def test_files_of_a_folder_a_pattern_and_a_list(ending, tmp_path):
    parts(table(), tmp_path, WRITERS[ending], ending)
    files = sorted(tmp_path.iterdir())
    for source in (tmp_path, f"{tmp_path}/*.{ending}", files):
        handle = vx.scan(
            source,
            probs="p" if ending == "npz" else "p_*",
            **COLUMNS | {"target": "y" if ending == "npz" else "label"},
        )
        same(vx.evaluate(handle, ordered=True))


def stream(table):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=333))


# Old versions close a connection that nobody holds, though a relation still reads from it.
CONNECTION = duckdb.connect()


def relation(table):
    CONNECTION.register("rows", table)
    return CONNECTION.sql("select * from rows")


FRAMES = {
    "table": lambda t: t,
    "chunks": lambda t: pa.Table.from_batches(t.to_batches(max_chunksize=401)),
    "stream": stream,
    "data set": lambda t: pads.dataset([t.slice(0, 800), t.slice(800)]),
    "pandas": lambda t: t.to_pandas(),
    "nullable": lambda t: t.to_pandas().convert_dtypes(dtype_backend="numpy_nullable"),
    "categories": lambda t: t.to_pandas().astype({"label": pd.CategoricalDtype(CLASSES, ordered=True)}),
    "polars": lambda t: pl.from_arrow(t),
    "lazy": lambda t: pl.from_arrow(t).lazy().filter(pl.col("w") >= 0),
    "duckdb": relation,
}


@pytest.mark.long
@pytest.mark.parametrize("probs", ["p_*", "all_p"])
@pytest.mark.parametrize("kind", FRAMES)
def test_frames_tables_and_queries(kind, probs):
    frame = FRAMES[kind](table())
    handle = vx.scan(frame, probs=probs, **COLUMNS)
    same(vx.evaluate(handle, ordered=True))
    assert "the " in repr(handle)


def test_a_stream_is_read_once():
    handle = vx.scan(stream(table()), probs="p_*")
    vx.evaluate(handle)
    with pytest.raises(vx.InputError, match="once"):
        vx.evaluate(handle)


def test_a_query_is_never_collected_whole(monkeypatch):
    collected = []
    original = pl.LazyFrame.collect

    def note(query, *args, **options):
        found = original(query, *args, **options)
        collected.append(found.height)
        return found

    monkeypatch.setattr(pl.LazyFrame, "collect", note)
    card = vx.evaluate(vx.scan(pl.from_arrow(table()).lazy(), probs="p_*", classes=CLASSES))
    assert card.n_rows == N
    assert max(collected) <= 1000


@pytest.fixture
def hive(tmp_path):
    """Folders by site and year; one site is missing."""
    for i, site in enumerate(SITES):
        name = "__HIVE_DEFAULT_PARTITION__" if site is None else site.replace(" ", "%20")
        for year in (2019, 2020):
            folder = tmp_path / f"site={name}" / f"year={year}"
            folder.mkdir(parents=True)
            start = 800 * i + 400 * (year - 2019)
            papq.write_table(table().drop_columns(["site"]).slice(start, 400), folder / "part-0.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    return tmp_path


@pytest.mark.parametrize("pattern", ["", "site=*/*/*.parquet", "**/*.parquet"])
def test_folders_name_columns(hive, pattern):
    y, p, *_ = arrays()
    source = f"{hive}/{pattern}" if pattern else hive
    by_year = vx.scan(source, probs="p_*", classes=CLASSES, groups="year")
    card = vx.evaluate(by_year)
    years = np.arange(2400) // 400 % 2
    assert card["brier"] == pytest.approx(vx.brier(y[:2400], p[:2400]), rel=1e-12)
    expected = vx.evaluate(y[:2400], p[:2400], groups=years).scores["brier"]
    assert card.n_groups == 2
    assert list(card.scores["brier"].interval) == pytest.approx(list(expected.interval), rel=1e-9)
    with pytest.raises(vx.InputError, match="site") as caught:
        vx.evaluate(vx.scan(source, probs="p_*", groups="site"))
    assert caught.value.kind == "missing"
    known = vx.scan(source, probs="p_*", groups="site", classes=CLASSES, invalid="skip")
    card = vx.evaluate(known)
    assert (card.n_rows, card.n_groups, card.skipped.count) == (1600, 2, 800)


def test_a_folder_may_name_the_outcomes(tmp_path):
    y, p, *_ = arrays()
    for i, name in enumerate(CLASSES):
        folder = tmp_path / f"label={name}"
        folder.mkdir()
        papq.write_table(table().drop_columns(["label"]).filter(pa.array(y == i)), folder / "rows.parquet")
    card = vx.evaluate(vx.scan(tmp_path, probs="p_*", classes=CLASSES))
    assert card["brier"] == pytest.approx(vx.brier(y, p), rel=1e-12)


def test_the_footer_of_each_of_several_files_is_read_once(tmp_path, monkeypatch):
    read, folder = [], parts(without_lists(table()), tmp_path, WRITERS["parquet"], "parquet")

    class Counted(papq.ParquetFile):
        def __init__(self, path, *args, metadata=None, **options):
            read.extend([path] if metadata is None else [])
            super().__init__(path, *args, metadata=metadata, **options)

    monkeypatch.setattr(papq, "ParquetFile", Counted)
    handle = vx.scan(folder / "*.parquet", lists=False, **COLUMNS)
    vx.evaluate(handle)
    vx.evaluate(handle)
    assert len(read) == len(list(folder.iterdir()))


@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
def test_errors_name_the_file_and_the_row_in_the_whole(ending, tmp_path):
    parts(broken(1300), tmp_path, WRITERS[ending], ending)
    named = {} if ending == "npz" else {"id": "number"}
    handle = vx.scan(f"{tmp_path}/*.{ending}", probs="p" if ending == "npz" else "p_*", **named)
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(handle)
    assert caught.value.rows == (1300,)
    assert f"3.{ending} (starting at row 701)" in caught.value.source
    assert not named or "1300" in caught.value.found.rpartition("(number ")[2]


def test_errors_in_a_data_set_name_the_file(tmp_path):
    parts(table(), tmp_path, WRITERS["parquet"], "parquet")
    broken = table().slice(0, 5).set_column(0, "label", pa.array(["low", None, "low", "low", "low"]))
    papq.write_table(broken, tmp_path / "4.parquet")
    with pytest.raises(vx.InputError, match=r"4\.parquet .*row 2501 has none"):
        vx.evaluate(vx.scan(pads.dataset(tmp_path), probs="p_*"))


def test_what_cannot_be_one_source_is_refused(tmp_path):
    papq.write_table(table(), tmp_path / "a.parquet")
    pacsv.write_csv(without_lists(table()), tmp_path / "b.csv")
    with pytest.raises(vx.InputError, match=r"one format.*a\.parquet is Parquet and .*b\.csv is CSV"):
        vx.scan([tmp_path / "a.parquet", tmp_path / "b.csv"])
    with pytest.raises(vx.InputError, match="no file"):
        vx.scan(f"{tmp_path}/*.jsonl")
    papq.write_table(table().drop_columns(["p_low"]), tmp_path / "c.parquet")
    with pytest.raises(vx.InputError, match=r"c\.parquet: .*same columns"):
        vx.evaluate(vx.scan(f"{tmp_path}/*.parquet", probs="p_*"))
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:500])
    with pytest.raises(vx.InputError, match=r"c\.parquet: It cannot be read"):
        vx.scan(f"{tmp_path}/*.parquet", probs="p_*")
    np.savez(tmp_path / "a.npz", y=[0, 1], p=[[0.5, 0.5], [0.1, 0.9]])
    np.savez(tmp_path / "b.npz", y=[0, 1], p=[[0.5, 0.5, 0], [0.1, 0.9, 0]])
    with pytest.raises(vx.InputError, match="same classes"):
        vx.scan(f"{tmp_path}/*.npz")
