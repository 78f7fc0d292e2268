"""Files of predictions: every format gives the same rows."""

from __future__ import annotations

import bz2
import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as pafeather
import pyarrow.parquet as papq
import pytest

import verax as vx
from cases import card_of_file
from predictionfiles import NAMES, ROWS, N, refuses, table
from verax import files


def as_csv(path):
    pacsv.write_csv(table(), path)


def as_tsv(path):
    pacsv.write_csv(table(), path, pacsv.WriteOptions(delimiter="\t"))


def as_json_lines(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table().to_pylist()))


def as_stream(path):
    with pa.ipc.new_stream(path, table().schema) as out:
        out.write_table(table(), max_chunksize=100)


def as_folder(path):
    path.mkdir()
    for i in range(3):
        papq.write_table(table().slice(i * 200, 200), path / f"part-{i}.parquet")


def as_compressed(compress):
    def write(path):
        plain = path.with_name("plain.csv")
        as_csv(plain)
        path.write_bytes(compress(plain.read_bytes()))

    return write


WRITERS = {
    "a.csv": as_csv,
    "a.csv.gz": as_compressed(gzip.compress),
    "a.csv.bz2": as_compressed(bz2.compress),
    "a.csv.zst": as_compressed(lambda content: pa.Codec("zstd").compress(content, asbytes=True)),
    "a.tsv": as_tsv,
    "a.parquet": lambda path: papq.write_table(table(), path, row_group_size=64),
    "a.arrow": lambda path: pafeather.write_feather(table(), path, compression="uncompressed"),
    "a.feather": lambda path: pafeather.write_feather(table(), path),
    "s.arrow": as_stream,
    "a.jsonl": as_json_lines,
    "a.jsonl.gz": lambda path: (
        as_json_lines(path.with_name("b.jsonl")),
        path.write_bytes(gzip.compress(path.with_name("b.jsonl").read_bytes())),
    ),
    "folder": as_folder,
}


@pytest.mark.parametrize("name", WRITERS)
def test_formats(name, tmp_path):
    WRITERS[name](tmp_path / name)
    read = files.read(tmp_path / name, weights="w", groups="who", by=["site"], id="who")
    y, p = ROWS
    assert read.classes == ("no", "some", "much")
    np.testing.assert_array_equal(read.y, y)
    np.testing.assert_allclose(read.p, p, rtol=1e-15)
    np.testing.assert_allclose(read.weights, np.linspace(0.5, 2, N), rtol=1e-15)
    # A CSV file does not say what is a number, so labels are texts.
    who = [str(i) if ".csv" in name or ".tsv" in name else i for i in (np.arange(N) // 2).tolist()]
    assert read.groups.tolist() == read.ids.tolist() == who
    assert read.by["site"].tolist() == ["x", "y"] * (N // 2)
    assert read.taken == (
        "outcomes: label",
        "probabilities: p_no (no), p_some (some), p_much (much)",
        "weights: w",
        "groups: who",
        "ids: who",
        "subgroups: site",
    )


@pytest.mark.parametrize("name", WRITERS)
def test_batches_are_the_same_rows(name, tmp_path):
    WRITERS[name](tmp_path / name)
    source = files.open(tmp_path / name, weights="w")
    parts = list(source.batches(70))
    assert sum(map(len, parts)) == N
    assert [part.start for part in parts] == np.cumsum([0, *map(len, parts)])[:-1].tolist()
    np.testing.assert_array_equal(np.concatenate([part.p for part in parts]), source.read().p)
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), source.read().y)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_precision_of_a_file_stays_and_with_it_the_tolerance(kind, tmp_path):
    papq.write_table(table(kind), tmp_path / "a.parquet")
    y, p = ROWS
    np.savez(tmp_path / "a.npz", probs=p.astype(kind), labels=y)
    for name in ("a.parquet", "a.npz"):
        assert files.read(tmp_path / name).p.dtype == kind
        card = card_of_file(files.open(tmp_path / name))
        assert card["brier"] == pytest.approx(vx.brier(y, p), abs=1e-3)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "deflated"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz(save, order, tmp_path):
    y, p = ROWS
    given = {"classes": NAMES, "sample_weight": np.linspace(1, 2, N), "groups": NAMES[y]}
    save(tmp_path / "a.npz", probs=np.array(p, order=order), y_true=y[:, None], **given)
    source = files.open(tmp_path / "a.npz")
    read = source.read()
    assert (source.n_rows, read.classes) == (N, tuple(NAMES.tolist()))
    np.testing.assert_array_equal(read.p, p)
    np.testing.assert_array_equal(read.y, y)
    np.testing.assert_array_equal(read.weights, given["sample_weight"])
    np.testing.assert_array_equal(read.groups, given["groups"])
    np.testing.assert_array_equal(np.concatenate([b.p for b in source.batches(70)]), p)


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(order, tmp_path):
    y, p = ROWS
    np.save(tmp_path / "p.npy", np.array(p, order=order))
    np.save(tmp_path / "y.npy", y)
    source = files.open(tmp_path / "p.npy", target="y.npy")
    first = next(source.batches(64))
    # Nothing is mapped: a file that is cut short under a map ends the process.
    assert not isinstance(first.p.base, np.memmap)
    np.testing.assert_array_equal(first.p, p[:64])
    np.testing.assert_array_equal(source.read().p, p)
    assert source.taken == ("outcomes: y.npy", "probabilities: p.npy")
    refuses(tmp_path / "p.npy", "target missing target")
    np.save(tmp_path / "big.npy", p.astype(">f8"))
    np.save(tmp_path / "by.npy", y.astype(">i4"))
    np.testing.assert_array_equal(files.read(tmp_path / "big.npy", target="by.npy").p, p)


def test_two_files_of_one_name(tmp_path):
    y, p = ROWS
    (tmp_path / "y").mkdir()
    np.save(tmp_path / "a.npy", p)
    np.save(tmp_path / "y" / "a.npy", y)
    read = files.read(tmp_path / "a.npy", target=str(tmp_path / "y" / "a.npy"))
    np.testing.assert_array_equal(read.y, y)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow", "s.arrow", "a.jsonl", "a.npz", "p.npy"])
@pytest.mark.parametrize("change", ["cut", "rewritten", "grown", "replaced"])
def test_a_file_that_changes_while_it_is_read(name, change, tmp_path):
    path, options = tmp_path / name, {}
    y, p = ROWS
    if path.suffix in (".npz", ".npy"):
        np.savez(path, probs=p, labels=y) if path.suffix == ".npz" else np.save(path, p)
        np.save(tmp_path / "y.npy", y)
        options = {} if path.suffix == ".npz" else {"target": "y.npy"}
    else:
        WRITERS[name](path)
    batches = files.open(path, **options).batches(50)
    next(batches)
    content = path.read_bytes()
    if change == "cut":
        os.truncate(path, len(content) // 2)
    elif change == "rewritten":
        path.write_bytes(bytes(len(content)))
        os.utime(path, ns=(1, 1))
    elif change == "grown":
        path.write_bytes(content + content)
    else:
        other = tmp_path / "other"
        other.write_bytes(content)
        os.replace(other, path)
    with pytest.raises(vx.InputError, match="changed while it was read") as caught:
        list(batches)
    assert caught.value.kind == "file"


def test_batches_are_bounded_by_their_numbers(tmp_path):
    p = np.full((3000, 2000), 1 / 2000, np.float32)
    y = np.zeros(3000, np.int64)
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    lists = pa.array(list(p), pa.list_(pa.float32()))
    papq.write_table(pa.table({"label": y, "probs": lists}), tmp_path / "a.parquet")
    for name in ("a.npz", "a.parquet"):
        source = files.open(tmp_path / name)
        assert source.width == 2000
        assert max(len(batch) for batch in source.batches()) < 2 * (2**21 // 2000)


def test_lists_of_probabilities(tmp_path):
    y, p = ROWS
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 3)):
        lists = pa.array(p.tolist(), kind)
        papq.write_table(pa.table({"label": NAMES[y], "probs": lists}), tmp_path / "a.parquet")
        read = files.read(tmp_path / "a.parquet", classes=NAMES.tolist())
        np.testing.assert_array_equal(read.p, p)
        np.testing.assert_array_equal(read.y, y)
        refuses(tmp_path / "a.parquet", "classes order classes")
        refuses(tmp_path / "a.parquet", "probs length row=0 classes", classes=["no", "some"])


@pytest.mark.parametrize("rows", [2, 100])
@pytest.mark.parametrize(
    ("value", "kind"), [([0.5], "length"), ([0.5, None], "missing"), (None, "missing"), ([], "length")]
)
def test_rows_of_lists_are_named_right(value, kind, rows, tmp_path):
    lists = [[0.5, 0.5]] * 9
    lists[7] = value
    papq.write_table(pa.table({"label": [0] * 9, "probs": lists}), tmp_path / "a.parquet", row_group_size=4)
    with pytest.raises(vx.InputError) as caught:
        list(files.open(tmp_path / "a.parquet").batches(rows))
    assert (caught.value.rows, caught.value.kind, caught.value.argument) == ((7,), kind, "probs")


def test_a_pattern_in_no_folder_is_a_name():
    assert files.files_of_one_model(["*.csv"])[0] == "*"
    assert files.files_of_one_model(["runs/2024/*.csv"])[0] == "2024"
