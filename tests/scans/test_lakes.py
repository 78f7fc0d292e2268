"""Tables of Delta Lake and Iceberg, whose deleted rows do not count, and sources that are Arrow streams."""

import json

import numpy as np
import pyarrow as pa
import pytest

import verax as vx
from commandline import verax

N = 60


def rows(seed=1, n=N):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    p = np.clip(0.5 + (y - 0.5) * rng.uniform(-0.2, 0.9, n), 0.01, 0.99)
    return pa.table({"id": np.arange(n) + 1000 * seed, "label": y, "p_0": 1 - p, "p_1": p})


def kept(table, least):
    return table.filter(pa.compute.greater_equal(table["id"], least))


def brier(source):
    return vx.evaluate(vx.scan(source))["brier"]


@pytest.fixture
def delta(tmp_path):
    """A Delta table of which 20 rows were deleted; the files that hold them are still there."""
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "preds"
    deltalake.write_deltalake(path, rows())
    deltalake.DeltaTable(path).delete("id < 1020")
    assert len(list(path.glob("*.parquet"))) == 2
    return path


def test_deleted_rows_of_delta_tables_do_not_count(delta):
    import deltalake

    expected = brier(kept(rows(), 1020))
    assert vx.evaluate(vx.scan(delta)).n_rows == N - 20
    assert brier(delta) == pytest.approx(expected, rel=1e-12)
    assert brier(deltalake.DeltaTable(delta)) == pytest.approx(expected, rel=1e-12)
    ran = verax("evaluate", delta)
    assert ran.returncode == 0, ran
    assert "40 rows" in ran.stdout
    # An older version has all rows.
    assert vx.evaluate(vx.scan(deltalake.DeltaTable(delta, version=0))).n_rows == N


def test_files_of_delta_tables_are_not_read_one_by_one(delta):
    for source in (f"{delta}/*.parquet", delta.parent):
        with pytest.raises(vx.InputError, match=r"preds is a table of Delta Lake\. Name its folder alone\."):
            vx.scan(source)


def test_rows_that_are_marked_as_deleted_are_refused(delta):
    """Deletion vectors mark rows beside the files; deltalake does not give such tables to Arrow."""
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (delta / "_delta_log" / f"{2:020}.json").write_text(json.dumps(protocol))
    with pytest.raises(vx.InputError, match=r"cannot be read by its library; .*deletionVectors"):
        vx.scan(delta)


@pytest.fixture
def iceberg(tmp_path):
    """An Iceberg table in a catalog, of which 20 rows were deleted."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.catalog.sql import SqlCatalog

    (tmp_path / "warehouse").mkdir()
    catalog = SqlCatalog(
        "local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    catalog.create_namespace("models")
    table = catalog.create_table("models.preds", rows().schema)
    table.append(rows())
    table.delete("id < 1020")
    yield table
    catalog.close()


def test_deleted_rows_of_iceberg_tables_do_not_count(iceberg):
    expected = brier(kept(rows(), 1020))
    metadata = iceberg.metadata_location.removeprefix("file://")
    assert brier(iceberg) == pytest.approx(expected, rel=1e-12)
    assert brier(metadata) == pytest.approx(expected, rel=1e-12)
    folder = metadata.rpartition("/metadata/")[0]
    with pytest.raises(vx.InputError, match=r"is a table of Iceberg\. Name its current file of metadata"):
        vx.scan(folder)
    ran = verax("evaluate", metadata)
    assert ran.returncode == 0, ran
    assert "40 rows" in ran.stdout


class Stream:
    """A table of another library."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def test_arrow_streams_are_sources():
    table = rows()
    expected = brier(table)
    assert brier(Stream(table)) == expected
    # A second pass asks the table again.
    assert vx.decompose(vx.scan(Stream(table)), rule="brier").score == pytest.approx(expected)


def test_a_stream_that_is_gone_is_refused_at_the_second_pass():
    handle = vx.scan(Stream(rows().to_reader()))
    assert vx.evaluate(handle).n_rows == N
    with pytest.raises(vx.InputError, match=r"can be read once only, and has been read\. Pass a table"):
        vx.evaluate(handle)


def test_lists_of_tables_are_one_source():
    pandas = pytest.importorskip("pandas")
    pieces = [rows(1), rows(2), rows(3)]
    expected = brier(pa.concat_tables(pieces))
    assert brier(pieces) == pytest.approx(expected, rel=1e-12)
    assert brier([piece.to_pandas() for piece in pieces]) == pytest.approx(expected, rel=1e-12)
    assert brier([pieces[0], *pieces[1].to_batches(), Stream(pieces[2])]) == pytest.approx(
        expected, rel=1e-12
    )
    assert vx.scan(pieces).n_rows == 3 * N
    with pytest.raises(vx.InputError, match=r"item 1 of the list: .*same columns; this one has no 'label'"):
        brier([pieces[0], pieces[1].drop_columns(["label"])])
    bad = pandas.DataFrame(pieces[1].to_pydict()).assign(p_1=0.0)
    with pytest.raises(vx.InputError, match=r"item 1 of the list \(starting at row 60\)"):
        brier([pieces[0], bad])


def test_generators_of_batches_are_read_once():
    pieces = [rows(1), rows(2), rows(3)]
    expected = brier(pa.concat_tables(pieces))
    handle = vx.scan(piece for piece in pieces)
    assert vx.evaluate(handle)["brier"] == pytest.approx(expected, rel=1e-12)
    with pytest.raises(vx.InputError, match="can be read once only"):
        vx.evaluate(handle)
    assert brier(iter(rows(1).to_batches(max_chunksize=7))) == pytest.approx(brier(rows(1)), rel=1e-12)
    for wrong in ((n for n in range(3)), iter([])):
        with pytest.raises(vx.InputError, match=r"must be a path|no rows"):
            vx.scan(wrong)
