"""Files of predictions that are broken, and what is said about them."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather as pafeather
import pyarrow.parquet as papq
import pytest

import verax as vx
from evallogs import chosen, olmes, write_lines
from predictionfiles import CSV, ROWS, N, refuses, table
from verax import files
from verax.files.lists import open_lists
from verax.files.logs import read_log


@pytest.mark.parametrize(
    ("content", "options", "facts"),
    [
        (CSV.replace(",", ";"), {}, "delimiter file delimiter"),
        (CSV.replace(",", "\t"), {}, "delimiter file delimiter"),
        (CSV + "a,abc,0.5\n", {}, "probs type row=2"),
        (CSV + "a,,0.5\n", {}, "probs missing row=2 shape invalid"),
        (CSV + ",0.5,0.5\n", {}, "target missing row=2 invalid"),
        ("label,p_a,p_b\n,0.5,0.5\n", {}, "target missing row=0 invalid"),
        (CSV + "a,0.5\n", {}, "path file"),
        (CSV.replace(",", ";").replace(".", ","), {"delimiter": ";"}, "probs type row=0 decimal"),
        ("", {}, "path file"),
        ("label,p_a,p_b\n", {}, "path file"),
        ("\n\n", {}, "path file"),
        ("label,p_a,p_a\n1,0.5,0.5\n", {}, "path file"),
        ("label,p_é\n".encode("latin-1") + b"1,2\n", {}, "path file"),
        (CSV.encode() + b"\xe9,0.5,0.5\n", {}, "path file"),
        (CSV.encode("utf-16"), {}, "path file"),
    ],
)
def test_broken_csv(content, options, facts, write):
    refuses(write(content), facts, **options)


def test_what_is_wrong_with_a_line(write):
    assert "line 4 has 2 cells and the header 3 cells: 'a,0.5'" in str(
        refuses(write(CSV + "a,0.5\n"), "path file")
    )
    assert "line 4 is not" in str(refuses(write(CSV.encode() + b"\xe9,0.5,0.5\n"), "path file"))
    long = str(refuses(write(CSV + "x" * 5000 + "\n"), "path file"))
    assert len(long) < 500


def test_a_text_far_down_is_named_by_its_row(write):
    error = refuses(write(CSV + "a,0.5,0.5\n" * 500_000 + "a,x,0.5\n"), "probs type row=500002")
    assert error.values == ("x",)
    refuses(write(CSV + "a,0.5,0.5\n" * 500_000 + "a,0.5\n"), "path file")


def test_bom_delimiters_and_decimal_commas_just_work(write):
    assert files.read(write(b"\xef\xbb\xbf" + CSV.encode())).roles.target == "label"
    german = CSV.replace(",", ";").replace(".", ",")
    assert files.read(write(german), delimiter=";", decimal=",").p.tolist() == [[0.2, 0.8], [0.5, 0.5]]


def test_a_class_may_be_called_na(write):
    assert files.read(write("label,p_NA,p_EU\nNA,0.2,0.8\nEU,0.1,0.9\n")).y.tolist() == [0, 1]


@pytest.mark.long
def test_ten_thousand_columns(write):
    names = [f"p_{i}" for i in range(10_000)]
    line = "5," + ",".join(["0.0001"] * 10_000)
    read = files.read(write("\n".join([",".join(["label", *names]), line, line, ""])))
    assert read.p.shape == (2, 10_000)
    assert len(" ".join(read.taken)) < 200
    error = refuses(write("\n".join([",".join(["lab", *names]), line, ""])), "target missing target")
    assert len(str(error)) < 400


def test_broken_parquet(tmp_path):
    papq.write_table(table(), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "cut.parquet"
    path.write_bytes(whole[: len(whole) // 2])
    refuses(path, "path file")
    # The footer is whole and a page is not.
    path.write_bytes(whole[:40] + bytes(len(whole) // 4) + whole[40 + len(whole) // 4 :])
    refuses(path, "path file")
    path.write_bytes(CSV.encode())
    refuses(path, "path file")


def test_texts_in_a_parquet_column_of_probabilities(tmp_path):
    columns = {"label": ["a", "b"], "p_a": ["0.5", "x"], "p_b": [0.5, 0.5]}
    papq.write_table(pa.table(columns), tmp_path / "a.parquet")
    refuses(tmp_path / "a.parquet", "probs type row=1")


def test_labels_that_are_too_large(tmp_path):
    for label in (
        pa.array([2**63 + 1], pa.uint64()),
        pa.array([1e300]),
        pa.array([np.nan]),
        pa.array([np.inf]),
    ):
        papq.write_table(pa.table({"label": label, "p_0": [0.5], "p_1": [0.5]}), tmp_path / "a.parquet")
        refuses(tmp_path / "a.parquet", "target label row=0")


def test_parts_of_a_folder_may_differ_in_type_but_not_in_columns(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    papq.write_table(pa.table({"label": ["a"], "p_a": [1], "p_b": [0]}), folder / "0.parquet")
    second = pa.table({"p_b": pa.array([0.25], pa.float32()), "p_a": [0.75], "label": ["b"]})
    papq.write_table(second, folder / "1.parquet")
    assert files.read(folder).p.tolist() == [[1, 0], [0.75, 0.25]]
    papq.write_table(second.append_column("x", [[1]]), folder / "1.parquet")
    refuses(folder, "path missing")
    papq.write_table(pa.table({"label": ["b"], "p_a": [0.75]}), folder / "1.parquet")
    refuses(folder, "path missing")


def test_groups_must_be_texts_or_numbers_throughout(tmp_path):
    for i, who in enumerate(([1, 2], ["a", "b"])):
        columns = {"label": ["a", "b"], "p_a": [0.5, 0.5], "p_b": [0.5, 0.5], "who": who}
        papq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    refuses(tmp_path, "groups type row=2", groups="who")


@pytest.mark.parametrize("empty", [True, False])
def test_arrow_streams_without_rows(empty, tmp_path):
    with pa.ipc.new_stream(tmp_path / "a.arrow", table().schema) as out:
        if not empty:
            out.write_table(table().slice(0, 0))
    refuses(tmp_path / "a.arrow", "path file")


def test_broken_json_lines(write):
    refuses(write('{"label": "a", "p_a": 0.1\n', "a.jsonl"), "path file row=0")
    lines = '{"label":"a","p_a":0.1,"p_b":0.9}\n{"label":"a","p_a":"x","p_b":1}\n'
    refuses(write(lines, "b.jsonl"), "path file row=1")
    refuses(write("[1]\n", "d.jsonl"), "path file row=0")
    refuses(write("[" * 100_000, "e.jsonl"), "path file row=0")
    lists = '{"label":0,"probs":[0.1,0.9]}\n{"label":1,"probs":[0.5]}\n'
    refuses(write(lists, "c.jsonl"), "probs length row=1")


def test_types_in_json_lines_are_held_together_over_blocks(write, change):
    change(text_block=2**10)
    lines = '{"label":0,"p_0":0.5,"p_1":0.5,"when":"2020-01-01"}\n' * 100
    read = files.read(write(lines + lines.replace("2020-01-01", "x"), "a.jsonl"), id="when")
    assert read.ids[[0, -1]].tolist() == ["2020-01-01", "x"]
    late = lines + '{"label":"A1","p_0":0.5,"p_1":0.5}\n'
    for end in (late, lines + '{"label":0,"p_0":"x","p_1":0.5}\n', lines + '{"label":0,"p_1":0.5}\n'):
        for shift in range(3):
            with pytest.raises(vx.InputError) as caught:
                files.read(write("\n" * 20 * shift + end, "b.jsonl"))
            assert caught.value.rows == (100,)


def test_paths_that_are_no_files(tmp_path, write):
    refuses(tmp_path, "path missing")
    write(CSV)
    assert "Did you mean predictions.csv?" in str(refuses(tmp_path / "prediction.csv", "path missing"))
    refuses(write("x", "a.xlsx"), "path file")
    refuses(write("x", "a.parquet.gz"), "path file")
    refuses(tmp_path / ("x" * 300 + ".csv"), "path file")
    refuses(tmp_path / "nul\0.csv", "path file")
    refuses(tmp_path / "**x.csv", "path missing")
    refuses(tmp_path / "predictions.csv" / "a.csv", "path missing")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    refuses(tmp_path / "loop.csv", "path file")
    os.mkfifo(tmp_path / "pipe.csv")
    refuses(tmp_path / "pipe.csv", "path file")
    with pytest.raises(vx.InputError, match="must be the name of a file"):
        files.open(5)


def test_nothing_is_ever_unpickled(write, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    refuses(write(pickle.dumps(Trap()), "a.npz"), "path file")
    refuses(write(pickle.dumps(Trap()), "a.npy"), "path file", target="a.npy")
    np.savez(tmp_path / "b.npz", probs=np.array([[Trap(), 1]], dtype=object), labels=[0])
    refuses(tmp_path / "b.npz", "path file")
    np.save(tmp_path / "c.npy", np.array([Trap()], dtype=object))
    refuses(tmp_path / "c.npy", "path file", target="c.npy")
    assert not (tmp_path / "sprung").exists()


def test_broken_npz(tmp_path, write):
    y, p = ROWS
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    whole = (tmp_path / "a.npz").read_bytes()
    refuses(write(whole[:-100], "b.npz"), "path file")
    broken = bytearray(whole)
    broken[5000:5100] = bytes(100)
    assert "CRC" in str(refuses(write(bytes(broken), "c.npz"), "path file"))
    refuses(tmp_path / "a.npz", "target missing", target="label")
    np.savez(tmp_path / "d.npz", probs=p[:-1], labels=y)
    refuses(tmp_path / "d.npz", "path file")
    np.savez(tmp_path / "e.npz", probs=p[None], labels=y)
    refuses(tmp_path / "e.npz", "probs file")
    np.savez(tmp_path / "f.npz", logits=p, labels=y)
    refuses(tmp_path / "f.npz", "logits missing logits")
    np.savez(tmp_path / "g.npz", a=p, labels=y)
    refuses(tmp_path / "g.npz", "probs missing probs")
    np.savez(tmp_path / "h.npz", probs=p, labels=np.zeros(N, "M8[D]"))
    refuses(tmp_path / "h.npz", "target file")


def header(shape, kind="<f8"):
    """A .npy file that claims a shape and has no numbers."""
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": kind, "fortran_order": False, "shape": (9, 9)})
    return out.getvalue().replace(b"(9, 9)", repr(shape).encode())


@pytest.mark.parametrize("shape", [(10**12, 3), (-5, 3), (2**70, 3), (3, -1), (True, 3)])
def test_arrays_that_claim_impossible_sizes(shape, tmp_path):
    (tmp_path / "a.npy").write_bytes(header(shape))
    refuses(tmp_path / "a.npy", "path file", target="a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("probs.npy", header(shape) + bytes(10**6))
        archive.writestr("labels.npy", header((3,), "<i8") + bytes(24))
    refuses(tmp_path / "a.npz", "path file")


def test_a_small_archive_of_a_huge_row(tmp_path, change):
    change(memory=10**6)
    np.savez_compressed(tmp_path / "a.npz", probs=np.zeros((1, 10**6)), labels=[0])
    refuses(tmp_path / "a.npz", "path file")
    np.savez_compressed(
        tmp_path / "b.npz", probs=np.zeros((10**5, 10), order="F"), labels=np.zeros(10**5, int)
    )
    refuses(tmp_path / "b.npz", "path file")


def test_broken_arrow_files_are_not_trusted(tmp_path):
    pafeather.write_feather(table(), tmp_path / "a.arrow", compression="uncompressed")
    whole = (tmp_path / "a.arrow").read_bytes()
    # The offsets of the labels point far outside.
    offsets = np.cumsum([0, *(len(label) for label in table()["label"].to_pylist())]).astype(np.int32)
    at = whole.index(offsets[:50].tobytes())
    (tmp_path / "a.arrow").write_bytes(whole[: at + 400] + b"\xff\xff\xff\x7f" * 10 + whole[at + 440 :])
    refuses(tmp_path / "a.arrow", "path file")


@pytest.mark.parametrize(("codec", "end"), [("gzip", "gz"), ("bz2", "bz2"), ("zstd", "zst"), ("lz4", "lz4")])
@pytest.mark.parametrize("lists", [False, True])
def test_compressed_files_that_are_cut_are_bad_input(codec, end, lists, tmp_path):
    name = f"a.{'jsonl' if lists else 'csv'}.{end}"
    lines = [f'{{"y": "a", "probs": {{"a": 0.{i:05d}}}}}\n' for i in range(1, 3000)]
    content = "".join(lines) if lists else CSV + "".join(f"a,0.{i:05d},0.5\n" for i in range(3000))
    whole = tmp_path / name
    with pa.CompressedOutputStream(str(whole), codec) as stream:
        stream.write(content.encode())
    packed = whole.read_bytes()
    # Cut short, and not compressed at all.
    for broken in (packed[: len(packed) // 2], b"label,p_a,p_b\n" * 20):
        whole.write_bytes(broken)
        with pytest.raises(vx.InputError) as found:
            open_lists(whole, classes=4) if lists else files.read(whole)
        assert (found.value.kind, found.value.source) == ("file", str(whole))
        assert f"cannot be decompressed as {codec}" in str(found.value)


def test_a_json_document_is_read(write):
    rows = [{"label": "a", "p_a": 0.25, "p_b": 0.75}, {"label": "b", "p_a": 1, "p_b": 0}]
    read = files.read(write(json.dumps(rows), "a.json"))
    assert (read.classes, read.y.tolist(), read.p.tolist()) == (("a", "b"), [0, 1], [[0.25, 0.75], [1, 0]])
    for content in ("[]", "{}", "[1]", '[{"label": ', "3"):
        refuses(write(content, "a.json"), "path file" + (" row=0" if content == "[1]" else ""))


# 10^399 is no float.
DIGITS = 10**399


@pytest.mark.parametrize(
    "record",
    [
        {"label": "a", "p_a": DIGITS, "p_b": 0.5},
        {"outcome": "a", "probabilities": {"a": DIGITS, "b": 0.5}},
        {"label": "a", "classes": ["a", "b"], "probabilities": [0.3, -DIGITS]},
        chosen(0, [-1.0, -2.0], 0, filtered_resps=[[DIGITS, False], [-1.0, False]]),
        {**olmes(0, [-1.0, DIGITS], 0)},
        {**olmes(0, [-1.0, -DIGITS], 0), "label": DIGITS},
    ],
)
def test_integers_of_hundreds_of_digits(record, tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [record] * 3)
    with pytest.raises(vx.InputError):
        vx.evaluate(vx.scan(path))
    with pytest.raises(vx.InputError):
        vx.evaluate(vx.scan(path, lists={"per_length": True}, classes=2))
    if "doc_id" in record:
        answers = read_log(path, grade="acc_raw" if "model_output" in record else "acc").table
        assert answers["confidence"].null_count in (0, 3)
