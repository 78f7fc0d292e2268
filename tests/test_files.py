"""Files of predictions: what is found in them, and what is said about broken ones."""

from __future__ import annotations

import bz2
import gzip
import json
import pickle
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as pafeather
import pyarrow.parquet as papq
import pytest

import verax as vx
from cases import forecasts
from verax import files
from verax.files import extract
from verax.files.scoring import in_order

CSV = "label,p_a,p_b\na,0.2,0.8\nb,0.5,0.5\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refuses(path, words, **options):
    with pytest.raises(vx.InputError, match=words) as caught:
        files.read(path, **options)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


# ---- every format gives the same rows ------------------------------------------------------------

N = 500
ROWS = forecasts(N, 3, ties=False)
NAMES = np.array(["no", "some", "much"])


def table(dtype=np.float64):
    y, p = ROWS
    columns = {"who": np.arange(N) // 2, "label": NAMES[y]}
    columns |= {f"p_{name}": p[:, j].astype(dtype) for j, name in enumerate(NAMES)}
    return pa.table({**columns, "w": np.linspace(0.5, 2, N), "site": np.array(["x", "y"])[np.arange(N) % 2]})


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
    "a.tsv": as_tsv,
    "a.parquet": lambda path: papq.write_table(table(), path, row_group_size=64),
    "a.arrow": lambda path: pafeather.write_feather(table(), path, compression="uncompressed"),
    "a.feather": lambda path: pafeather.write_feather(table(), path),
    "s.arrow": as_stream,
    "a.jsonl": as_json_lines,
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
    assert read.groups.tolist() == read.ids.tolist() == (np.arange(N) // 2).tolist()
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


def test_single_precision_stays(tmp_path):
    papq.write_table(table(np.float32), tmp_path / "a.parquet")
    assert files.read(tmp_path / "a.parquet").p.dtype == np.float32
    papq.write_table(table(np.float16), tmp_path / "b.parquet")
    assert files.read(tmp_path / "b.parquet").p.dtype == np.float32


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


def test_npy_is_mapped(tmp_path):
    y, p = ROWS
    np.save(tmp_path / "p.npy", p)
    np.save(tmp_path / "y.npy", y)
    source = files.open(tmp_path / "p.npy", target="y.npy")
    first = next(source.batches(64))
    assert isinstance(first.p, np.memmap)
    assert not first.p.flags.writeable
    np.testing.assert_array_equal(source.read().p, p)
    assert source.taken == ("outcomes: y.npy", "probabilities: p.npy")
    refuses(tmp_path / "p.npy", "holds one array, the probabilities. Pass target=")
    np.save(tmp_path / "f.npy", np.asfortranarray(p))
    np.testing.assert_array_equal(files.read(tmp_path / "f.npy", target=str(tmp_path / "y.npy")).p, p)


def test_lists_of_probabilities(tmp_path):
    y, p = ROWS
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 3)):
        lists = pa.array(p.tolist(), kind)
        papq.write_table(pa.table({"label": NAMES[y], "probs": lists}), tmp_path / "a.parquet")
        read = files.read(tmp_path / "a.parquet", classes=NAMES.tolist())
        np.testing.assert_array_equal(read.p, p)
        np.testing.assert_array_equal(read.y, y)
        refuses(tmp_path / "a.parquet", r"holds texts \(.*\) and the probabilities have no names")
        refuses(tmp_path / "a.parquet", "lists of 3 numbers, and 2 classes", classes=["no", "some"])


# ---- which column is what ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "options", "classes"),
    [
        ("label,p_a,p_b", {}, ("a", "b")),
        ("Label,prob_a,prob_b", {}, ("a", "b")),
        ("y_true,y_prob_a,y_prob_b", {}, ("a", "b")),
        ("kind,a,b", {"target": "kind"}, ("a", "b")),
        ("label,model.a,model.b", {"probs": "model.*"}, ("a", "b")),
        ("label,model.a,model.b", {"probs": ["model.a", "model.b"]}, ("a", "b")),
        ("label,m1a,m1b", {"probs": "m1?"}, ("a", "b")),
        ("label,p_b,p_a", {"classes": ["a", "b"]}, ("a", "b")),
        ("label,p_0,p_1", {"classes": ["a", "b"]}, ("a", "b")),
        ("label,p1,p2", {"classes": ["a", "b"]}, ("a", "b")),
        ("label,left,right", {"probs": ["left", "right"], "classes": ["a", "b"]}, ("a", "b")),
        ("label,logit_a,logit_b", {"logits": True}, ("a", "b")),
    ],
)
def test_columns_are_found(header, options, classes, write):
    target = header.split(",")[0]
    read = files.read(write(CSV.replace("label,p_a,p_b", header)), **options)
    assert (read.classes, read.y.tolist(), read.roles.target) == (classes, [0, 1], target)
    flipped = "p_b,p_a" in header
    assert read.p.tolist() == ([[0.8, 0.2], [0.5, 0.5]] if flipped else [[0.2, 0.8], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("content", "options", "classes", "y"),
    [
        ("label,p_0,p_1\n1,0.2,0.8\n0,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_1,p_2\n1,0.2,0.8\n2,0.5,0.5\n", {}, (1, 2), [1, 2]),
        ("label,p_1,p_2\n1,0.2,0.8\n2,0.5,0.5\n", {"classes": ["low", "high"]}, ("low", "high"), [0, 1]),
        ("label,p_low,p_high\n1,0.2,0.8\n0,0.5,0.5\n", {}, ("low", "high"), [1, 0]),
        ("label,p_0,p_1\n1.0,0.2,0.8\n0.0,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_true,p_false\ntrue,0.2,0.8\nfalse,0.5,0.5\n", {}, ("true", "false"), [0, 1]),
        ("label,p_0,p_1\ntrue,0.2,0.8\nfalse,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ("label,0,1\n1,0.2,0.8\n0,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ('label,p_0,p_1\n"1",0.2,0.8\n"0",0.5,0.5\n', {}, (0, 1), [1, 0]),
    ],
)
def test_labels_are_found(content, options, classes, y, write):
    read = files.read(write(content), **options)
    assert (read.classes, read.y.tolist()) == (classes, y)
    # Whatever the form, the library reads it as it was meant.
    positions = [classes.index(v) if isinstance(classes[0], int) else v for v in y]
    assert vx.brier(read.y, read.p, classes=read.classes) == vx.brier(positions, read.p)


@pytest.mark.parametrize(
    ("content", "options", "classes", "y"),
    [
        ("label,prob\n1,0.75\n0,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_1\n1,0.75\n0,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_yes\nyes,0.75\nno,0.5\n", {}, ("no", "yes"), [1, 0]),
        ("label,prob\nyes,0.75\nno,0.5\n", {"positive": "yes"}, ("no", "yes"), [1, 0]),
        ("label,prob\nyes,0.75\nno,0.5\n", {"classes": ["no", "yes"]}, ("no", "yes"), [1, 0]),
        ("label,prob\ntrue,0.75\nfalse,0.5\n", {}, (0, 1), [1, 0]),
    ],
)
def test_one_column_of_two_classes(content, options, classes, y, write):
    read = files.read(write(content), **options)
    assert (read.classes, read.y.tolist()) == (classes, y)
    assert read.p.tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_one_logit_of_two_classes(write):
    read = files.read(write("label,logit\n1,2.5\n0,-1\n"), logits=True)
    assert read.p.tolist() == [[0, 2.5], [0, -1]]
    assert vx.log_score(read.y, read.p, logits=True) == pytest.approx(
        vx.log_score([1, 0], [2.5, -1], logits=True)
    )


ORDERED = "label,p_{},p_{},p_{}\na,0.2,0.3,0.5\n"


def test_order_is_given_numbered_or_stored_never_guessed(write, tmp_path):
    path = write(ORDERED.format("a", "b", "c"))
    refuses(path, "which is never guessed. Pass classes=", ordered=True)
    assert files.read(path, ordered=True, classes=["c", "a", "b"]).p.tolist() == [[0.5, 0.2, 0.3]]
    numbered = write("label,p_1,p_2,p_10\n2,0.2,0.3,0.5\n", "n.csv")
    assert files.read(numbered, ordered=True).classes == (1, 2, 10)
    refuses(write("label,p_1,p_10,p_2\n2,0.2,0.3,0.5\n", "m.csv"), "which is no order", ordered=True)
    for has_order in (True, False):
        codes = pa.array([1, 0], pa.int8())
        label = pa.DictionaryArray.from_arrays(codes, pa.array(["c", "a", "b"]), ordered=has_order)
        columns = {"label": label, "p_a": [0.2, 0.1], "p_b": [0.3, 0.1], "p_c": [0.5, 0.8]}
        papq.write_table(pa.table(columns), tmp_path / "d.parquet")
        if has_order:
            read = files.read(tmp_path / "d.parquet", ordered=True)
            assert (read.classes, read.y.tolist()) == (("c", "a", "b"), [1, 0])
            assert read.p.tolist() == [[0.5, 0.2, 0.3], [0.8, 0.1, 0.1]]
        else:
            refuses(tmp_path / "d.parquet", "never guessed", ordered=True)


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (CSV, {"target": "lable"}, r"no column 'lable' \(target\). Did you mean 'label'\?"),
        (CSV, {"weights": "w"}, r"no column 'w' \(weights\). It has label, p_a, p_b\."),
        (CSV, {"probs": "q_*"}, r"no column 'q_\*' \(probs\)"),
        (CSV, {"probs": "p_aa"}, r"no column 'p_aa' \(probs\). Did you mean 'p_a'\?"),
        (CSV.replace("label", "thing"), {}, "no column that is called like outcomes .* Pass target="),
        (CSV.replace("p_a", "y_true"), {}, "several columns that may hold the outcomes: label and y_true"),
        (CSV.replace("p_", "q"), {"target": "label"}, "no columns that are called like probabilities"),
        (CSV.replace("p_", "logit_"), {}, r"called like logits \(logit_a, logit_b\). Pass logits=True"),
        (
            "label,p_a,p_b,prob_a,prob_b\na,.5,.5,.5,.5\n",
            {},
            r"several sets .*: \(p_a, p_b\) or \(prob_a, prob_b\). Pass probs=",
        ),
        (CSV, {"classes": ["a"]}, "must name all 2 columns"),
        (CSV, {"classes": ["a", "B"]}, "names 'B', and the columns of probabilities are a, b"),
        (CSV, {"classes": ["a", "a"]}, "names 'a' twice"),
        (CSV + "B,0.5,0.5\n", {}, r"must hold classes \(a, b\); row 2 holds 'B'"),
        ("label,p_0,p_1\nno,0.5,0.5\n", {}, "holds no, and the columns .* are called 0, 1. Pass classes="),
        ("label,prob\nyes,0.5\nno,0.4\n", {}, "which of them is it about. Pass positive="),
        ("label,prob\n1,50\n0,40\n", {}, "row 0 holds 50. Divide percentages by 100"),
        ("label,p_0,p_1\n0.5,0.5,0.5\n", {}, "names or whole numbers; row 0 holds 0.5"),
        ("label,p_1,p_2\n1,0.5,0.5\n3,0.5,0.5\n", {"classes": ["x", "y"]}, r"row 1 holds 3"),
    ],
)
def test_what_cannot_be_found(content, options, words, write):
    refuses(write(content), words, **options)


@pytest.mark.parametrize(
    ("content", "words", "silent"),
    [
        (CSV + "a,0.5\n", "Complete the line, or leave it out", "delimiter"),
        (CSV.replace(",", ";").replace(".", ","), "separated by ';'.* Pass delimiter=';'", "header 1"),
        ("a,b,c,d,e,f,g,h,i,kind\n" + "1," * 9 + "x\n", r"a, b, c, d, e, f, ..., i, kind \(10 col", "p_"),
        ("p_a,p_b,kind\n0.5,0.5,a\n", "called like outcomes .* it has kind. Pass target=", ", p_b"),
        ("label,z\na,0.5\nb,0.3\n", "no columns that are called like probabilities", "logits"),
        ("label,who\na,x\nb,y\n", "no column of numbers besides the outcomes, so it holds no prob", "Pass"),
    ],
)
def test_remedies_fit(content, words, silent, write):
    assert silent not in str(refuses(write(content), words))


def test_objects_are_not_read(write):
    line = '{"label":"a","probs":{"a":0.5,"b":0.5}}\n'
    refuses(write(line, "a.jsonl"), r"Objects \(probs\) are not read; write a column a class")


@pytest.mark.parametrize("name", ["obs", "obs.cat", "category", "Observed"])
def test_other_names_of_outcomes(name, write):
    assert files.read(write(CSV.replace("label", name))).roles.target == name
    assert (
        files.read(
            write(
                CSV.replace("label,p_a,p_b", f"label,p_a,p_b,{name}")
                .replace("8\n", "8,x\n")
                .replace("5\n", "5,x\n")
            )
        ).roles.target
        == "label"
    )


# ---- labels that could be names or positions ---------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "labels", "options", "positions"),
    [
        ("p_1,p_X,p_2", (1, 2), {}, [0, 2]),
        ("p_1,p_tie,p_2", (2, 1), {}, [2, 0]),
        ("p_1,p_X,p_2", ("X", "2"), {}, [1, 2]),
        ("p_2.0,p_0.0,p_1.0", (0, 2), {}, [1, 0]),
        ("p_2.0,p_0.0,p_1.0", (1, 2), {"classes": ["0", "1", "2"]}, [1, 2]),
        ("p_2.0,p_0.0,p_1.0", ("1.0", "2.0"), {}, [2, 0]),
        ("p_2,p_0,p_1", (0, 2), {"classes": [2.0, 0.0, 1.0]}, [1, 0]),
        ("p_x,p_y,p_z", (1, 3), {"classes": ["1", "2", "3"]}, [0, 2]),
        ("p_x,p_y,p_z", ("X", "Z"), {"classes": ["X", "Y", "Z"]}, [0, 2]),
        ("p_x,p_y,p_z", ("X", "Z"), {"classes": ["Z", "X", "Y"]}, [1, 0]),
        ("p_x,p_y,p_z", ("one", "three"), {"classes": ["one", "two", "three"]}, [0, 2]),
        ("p_0,p_1,p_2", (1, 3), {"classes": ["1", "2", "3"], "probs": ["p_0", "p_1", "p_2"]}, [0, 2]),
        ("p_1,p_X,p_2", (0, 1), {"classes": "012", "probs": ["p_1", "p_X", "p_2"]}, [0, 1]),
    ],
)
def test_numbers_are_names_where_classes_are_numbers(header, labels, options, positions, write):
    rows = "".join(f"{label},0.5,0.25,0.25\n" for label in labels)
    read = files.read(write(f"label,{header}\n{rows}"), **options)
    assert read.roles.outcomes_are == "names"
    # The library reads them as they were meant: the loss is that of the positions.
    assert vx.brier(read.y, read.p, classes=read.classes) == vx.brier(positions, read.p)


@pytest.mark.parametrize(
    ("header", "labels", "options", "words"),
    [
        ("p_1,p_X,p_2", (1, 0), {}, r"must hold classes \(1, X, 2\); row 1 holds 0. List the columns and"),
        ("p_1,p_X,p_2", (1, 0), {"classes": ["home", "draw", "away"]}, "row 1 holds 0. List the columns"),
        ("p_0.5,p_1.5,p_x", (0, 1), {}, r"must hold classes \(0.5, 1.5, x\); row 0 holds 0"),
        ("p_x,p_y,p_z", (0, 3), {}, r"positions 0 to 2 .* \(x, y, z\); row 1 holds 3. If the labels count"),
        ("p_x,p_y,p_z", (0, -1), {}, r"row 1 holds -1. Pass classes=\[...\], the labels in the order of"),
        ("p_x,p_y,p_z", (" x", "y "), {}, "holds ' x', 'y ', and .* Remove the blanks around the labels"),
        ("p_x,p_y,p_z", ("x", "y "), {}, "row 1 holds 'y '. Remove the blanks around it"),
        ("p_x,p_y,p_z", ("x", "y"), {"classes": ["X", "Y", "W"]}, "names 'X', and the columns .* list them"),
    ],
)
def test_doubtful_labels_are_refused(header, labels, options, words, write):
    rows = "".join(f"{label},0.5,0.25,0.25\n" for label in labels)
    refuses(write(f"label,{header}\n{rows}"), words, **options)


def test_it_is_said_how_outcomes_are_read(write):
    rows = "0,0.5,0.25,0.25\n1,0.5,0.25,0.25\n"
    read = files.read(write("label,p_x,p_y,p_z\n" + rows))
    assert read.roles.outcomes_are == "positions"
    assert read.taken[0] == "outcomes: label (positions: 0 = x, 1 = y, 2 = z)"
    renamed = files.read(write("label,p_x,p_y,p_z\n" + rows), classes=["0", "1", "2"])
    assert renamed.taken == (
        "outcomes: label",
        "probabilities: p_x (0), p_y (1), p_z (2)",
        "renamed: x to 0, y to 1, z to 2",
    )


def test_classes_of_arrays_may_be_any_numbers(tmp_path):
    p = np.full((2, 3), 1 / 3)
    np.savez(tmp_path / "a.npz", probs=p, labels=[1, 3])
    assert files.read(tmp_path / "a.npz", classes=["1", "2", "3"]).y.tolist() == [1, 3]
    np.savez(tmp_path / "b.npz", probs=p, labels=[1, 2], classes=["1", "X", "2"])
    assert files.read(tmp_path / "b.npz").y.tolist() == ["1", "2"]
    refuses(tmp_path / "a.npz", "must name all 3 columns", classes=["1", "2"])


# ---- broken files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (
            CSV.replace(",", ";"),
            {},
            r"separated by ';': its first line reads 'label;p_a;p_b'. Pass delimiter=';'",
        ),
        (CSV.replace(",", "\t"), {}, r"separated by a tab.* Pass delimiter='\\t'"),
        (CSV + "a,abc,0.5\n", {}, "column 'p_a' must hold numbers; row 2 holds 'abc'"),
        (CSV + "a,,0.5\n", {}, "column 'p_a' must have a value in every row; row 2 has none"),
        (CSV + ",0.5,0.5\n", {}, "column 'label' must have a value in every row; row 2 has none"),
        ("label,p_a,p_b\n,0.5,0.5\n", {}, "column 'label' must have a value in every row; row 0"),
        (CSV + "a,0.5\n", {}, "line 4 has 2 values and the header 3"),
        (CSV.replace(",", ";").replace(".", ","), {"delimiter": ";"}, "row 0 holds '0,2'. Pass decimal=','"),
        ("", {}, "is empty"),
        ("label,p_a,p_b\n", {}, "has no rows"),
        ("label,p_a,p_a\n1,0.5,0.5\n", {}, "two columns called 'p_a'"),
        ("label,p_é\n".encode("latin-1") + b"1,2\n", {}, "is not UTF-8 text"),
        (CSV.encode("utf-16"), {}, "is UTF-16 text"),
    ],
)
def test_broken_csv(content, options, words, write):
    refuses(write(content), words, **options)


def test_a_text_far_down_is_named_by_its_row(write):
    error = refuses(write(CSV + "a,0.5,0.5\n" * 500_000 + "a,x,0.5\n"), "row 500002 holds 'x'")
    assert error.argument == "probs"


def test_bom_delimiters_and_decimal_commas_just_work(write):
    assert files.read(write(b"\xef\xbb\xbf" + CSV.encode())).roles.target == "label"
    german = CSV.replace(",", ";").replace(".", ",")
    assert files.read(write(german), delimiter=";", decimal=",").p.tolist() == [[0.2, 0.8], [0.5, 0.5]]


def test_a_class_may_be_called_na(write):
    assert files.read(write("label,p_NA,p_EU\nNA,0.2,0.8\nEU,0.1,0.9\n")).y.tolist() == [0, 1]


def test_ten_thousand_columns(write):
    names = [f"p_{i}" for i in range(10_000)]
    line = "5," + ",".join(["0.0001"] * 10_000)
    read = files.read(write("\n".join([",".join(["label", *names]), line, line, ""])))
    assert read.p.shape == (2, 10_000)
    assert len(" ".join(read.taken)) < 200
    error = refuses(write("\n".join([",".join(["lab", *names]), line, ""])), "called like outcomes")
    assert len(str(error)) < 400


def test_broken_parquet(tmp_path):
    papq.write_table(table(), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "cut.parquet"
    path.write_bytes(whole[: len(whole) // 2])
    refuses(path, "cannot be read as Parquet: .* may be truncated")
    # The footer is whole and a page is not.
    path.write_bytes(whole[:40] + bytes(len(whole) // 4) + whole[40 + len(whole) // 4 :])
    refuses(path, "cannot be read as Parquet")
    path.write_bytes(CSV.encode())
    refuses(path, "cannot be read as Parquet")


def test_texts_in_a_parquet_column_of_probabilities(tmp_path):
    columns = {"label": ["a", "b"], "p_a": ["0.5", "x"], "p_b": [0.5, 0.5]}
    papq.write_table(pa.table(columns), tmp_path / "a.parquet")
    refuses(tmp_path / "a.parquet", "'p_a' must hold numbers; row 1 holds 'x'")


def test_broken_json_lines(write):
    refuses(write('{"label": "a", "p_a": 0.1\n', "a.jsonl"), "cannot be read as JSON Lines")
    lines = '{"label":"a","p_a":0.1,"p_b":0.9}\n{"label":"a","p_a":"x","p_b":1}\n'
    refuses(write(lines, "b.jsonl"), r"column 'p_a' holds a number and then a string \(row 1\)")
    lists = '{"label":0,"probs":[0.1,0.9]}\n{"label":1,"probs":[0.5]}\n'
    refuses(write(lists, "c.jsonl"), "lists of one length; row 0 holds 2 numbers and row 1 1")


def test_paths_that_are_no_files(tmp_path, write):
    refuses(tmp_path, "is a folder without Parquet files")
    write(CSV)
    refuses(tmp_path / "prediction.csv", r"There is no file .* Did you mean predictions.csv\?")
    refuses(write("x", "a.xlsx"), "has no known ending")
    refuses(write("x", "a.parquet.gz"), "must be decompressed first")


def test_nothing_is_ever_unpickled(write, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    refuses(write(pickle.dumps(Trap()), "a.npz"), "is a pickle, which is never opened")
    refuses(write(pickle.dumps(Trap()), "a.npy"), "cannot be read", target="a.npy")
    np.savez(tmp_path / "b.npz", probs=np.array([[Trap(), 1]], dtype=object), labels=[0])
    refuses(tmp_path / "b.npz", "array 'probs' holds Python objects, which are never unpickled")
    np.save(tmp_path / "c.npy", np.array([Trap()], dtype=object))
    refuses(tmp_path / "c.npy", "never unpickled", target="c.npy")
    assert not (tmp_path / "sprung").exists()


def test_broken_npz(tmp_path, write):
    y, p = ROWS
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    whole = (tmp_path / "a.npz").read_bytes()
    refuses(write(whole[:-100], "b.npz"), "is no .npz file, or a truncated one")
    broken = bytearray(whole)
    broken[5000:5100] = bytes(100)
    refuses(write(bytes(broken), "c.npz"), "cannot be read: .*CRC")
    refuses(tmp_path / "a.npz", r"no array 'label' \(target\). Did you mean 'labels'", target="label")
    np.savez(tmp_path / "d.npz", probs=p[:-1], labels=y)
    refuses(tmp_path / "d.npz", r"array 'labels' must have 499 rows")
    np.savez(tmp_path / "e.npz", probs=p[None], labels=y)
    refuses(tmp_path / "e.npz", r"must hold probabilities \(N, K\); its shape is \(1, 500, 3\)")
    np.savez(tmp_path / "f.npz", logits=p, labels=y)
    refuses(tmp_path / "f.npz", "has an array of logits. Pass logits=True")
    np.savez(tmp_path / "g.npz", a=p, labels=y)
    refuses(tmp_path / "g.npz", "no array that is called like probs")


# ---- scored in batches ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More rows than a batch, ordered, with weights and groups."""
    y, p = forecasts(30_000, 4, ties=False)
    rng = np.random.default_rng(0)
    columns = {f"p_{j}": p[:, j] for j in range(4)}
    rows = {"label": y, **columns, "w": rng.random(len(y)), "who": rng.integers(0, 900, len(y))}
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    papq.write_table(
        pa.table({**rows, "name": np.array(["k", "ll"])[rows["who"] % 2]}), path, row_group_size=4096
    )
    return path, rows, p


@pytest.mark.parametrize("rows", [999, 4096, None])
@pytest.mark.parametrize(
    "extra", [{}, {"weights": "w"}, {"groups": "who"}, {"weights": "w", "groups": "name"}]
)
def test_batches_give_the_card_of_all_rows(many, rows, extra):
    path, columns, p = many
    card = files.evaluate_source(files.open(path, ordered=True, **extra), ordered=True, rows=rows)
    arrays = {
        role: columns.get(name, np.array(["k", "ll"])[columns["who"] % 2]) for role, name in extra.items()
    }
    whole = vx.evaluate(columns["label"], p, ordered=True, **arrays)
    assert card.n_rows == whole.n_rows
    for name, score in {**whole.scores, **whole.metrics}.items():
        own = {**card.scores, **card.metrics}[name]
        assert own.mean == pytest.approx(score.mean, rel=1e-12)
        assert own.interval == pytest.approx(score.interval, rel=1e-9)
    np.testing.assert_allclose(card.confusion, whole.confusion, rtol=1e-12)


def test_invalid_rows_are_named_by_their_number_in_the_file(tmp_path):
    y, p = forecasts(5000, 3, ties=False)
    p[4321] *= 2
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    with pytest.raises(vx.InputError, match=r"row 4321 sums to 2") as caught:
        files.evaluate_source(files.open(tmp_path / "a.npz"), rows=1000)
    assert caught.value.rows == (4321,)
    p[4321:4500] = 0.5
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    with pytest.raises(vx.InputError, match=r"rows 4321, 4322 and 4323 .* \(179 rows so far\)"):
        files.evaluate_source(files.open(tmp_path / "a.npz"), rows=1000)


def test_weights_may_be_zero_in_a_batch_and_not_in_all(tmp_path):
    y, p = forecasts(300, 3, ties=False)
    w = np.where(np.arange(300) < 100, 0.0, 1.0)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, weights=w)
    card = files.evaluate_source(files.open(tmp_path / "a.npz"), rows=50)
    assert card["brier"] == pytest.approx(vx.brier(y[100:], p[100:]), rel=1e-12)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, weights=w * 0)
    with pytest.raises(vx.InputError, match="must not all be zero"):
        files.evaluate_source(files.open(tmp_path / "a.npz"), rows=50)


def test_one_group_is_refused_only_if_all_rows_are_in_it(tmp_path):
    y, p = forecasts(300, 3, ties=False)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, groups=np.arange(300) // 150)
    assert files.evaluate_source(files.open(tmp_path / "a.npz"), rows=50).n_groups == 2
    np.savez(tmp_path / "a.npz", probs=p, labels=y, groups=np.zeros(300))
    with pytest.raises(vx.InputError, match="at least two groups"):
        files.evaluate_source(files.open(tmp_path / "a.npz"), rows=50)


def test_work_overlaps_and_stays_in_order():
    both = threading.Barrier(2, timeout=30)

    def work(item):
        if item < 2:
            both.wait()
        return item

    assert list(in_order(work, range(20), 2)) == list(range(20))
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    for result in in_order(lambda x: x, items(), 2):
        if result == 5:
            break
    assert len(made) < 20


def test_columns_stay_whole_and_are_scored_as_they_are(many, monkeypatch):
    path, columns, p = many
    read = files.read(path, probs="p_*")
    assert read.p.flags.f_contiguous or read.p.T.flags.c_contiguous
    big = np.asfortranarray(np.tile(p, (6, 1)))
    y = np.tile(columns["label"], 6)
    copies = []
    original = np.ascontiguousarray
    monkeypatch.setattr(
        np, "ascontiguousarray", lambda x, *a: (copies.append(np.ndim(x)), original(x, *a))[1]
    )
    assert vx.evaluate(y, big)["brier"] == pytest.approx(vx.brier(columns["label"], p), rel=1e-12)
    assert copies
    assert 2 not in copies


def test_texts_are_coded_in_order():
    column = pa.chunked_array([["b", "a", "b"], ["c"]])
    groups = extract.groups(column, "column", 0)
    assert (groups.codes.tolist(), groups.labels.tolist()) == ([1, 0, 1, 2], ["a", "b", "c"])
