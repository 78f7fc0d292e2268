"""Files of predictions: what is found in them, and what is said about broken ones."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import pickle
import threading
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as pafeather
import pyarrow.parquet as papq
import pytest

import verax as vx
from cases import card_of_file, forecasts
from verax import files
from verax.files import arrow
from verax.files.formats import npy, texts
from verax.files.labels import INTEGER, Labels, Target
from verax.kernels.threads import in_order

CSV = "label,p_a,p_b\na,0.2,0.8\nb,0.5,0.5\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refuses(path, facts, **options):
    """The error about a file: "argument kind", the row that it names, and the options that would help."""
    with pytest.raises(vx.InputError) as caught:
        files.read(path, **options)
    error = caught.value
    argument, kind, *more = facts.split()
    assert (error.argument, error.kind) == (argument, kind), error
    rows = [int(word[4:]) for word in more if word.startswith("row=")]
    assert list(error.rows[:1]) == rows, error
    helping = [name for remedy in error.remedies for name in remedy.options]
    assert helping == [word for word in more if not word.startswith("row=")], error
    assert len(str(error).splitlines()) == 1
    return error


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
    refuses(path, "classes order classes", ordered=True)
    assert files.read(path, ordered=True, classes=["c", "a", "b"]).p.tolist() == [[0.5, 0.2, 0.3]]
    numbered = write("label,p_1,p_2,p_10\n2,0.2,0.3,0.5\n", "n.csv")
    assert files.read(numbered, ordered=True).classes == (1, 2, 10)
    refuses(write("label,p_1,p_10,p_2\n2,0.2,0.3,0.5\n", "m.csv"), "classes order classes", ordered=True)
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
            refuses(tmp_path / "d.parquet", "classes order classes", ordered=True)


@pytest.mark.parametrize(
    ("content", "options", "facts"),
    [
        (CSV, {"target": "lable"}, "target missing"),
        (CSV, {"weights": "w"}, "weights missing"),
        (CSV, {"probs": "q_*"}, "probs missing"),
        (CSV, {"probs": "p_aa"}, "probs missing"),
        (CSV.replace("label", "thing"), {}, "target missing target"),
        (CSV.replace("p_a", "y_true"), {}, "target value target"),
        (CSV.replace("p_", "q").replace("0.8", "0.3"), {"target": "label"}, "probs missing probs"),
        (CSV.replace("p_", "logit_"), {}, "logits missing logits"),
        ("label,p_a,p_b,prob_a,prob_b\na,.5,.5,.5,.5\n", {}, "probs value probs"),
        (CSV, {"classes": ["a"]}, "classes length"),
        (CSV, {"classes": ["a", "B"]}, "classes label probs"),
        (CSV, {"classes": ["a", "a"]}, "classes value"),
        (CSV + "B,0.5,0.5\n", {}, "target label row=2"),
        ("label,p_0,p_1\nno,0.5,0.5\n", {}, "classes label classes"),
        ("label,prob\nyes,0.5\nno,0.4\n", {}, "positive missing positive"),
        ("label,prob\n1,50\n0,40\n", {}, "probs value row=0 logits"),
        ("label,p_0,p_1\n0.5,0.5,0.5\n", {}, "classes label classes"),
        ("label,p_1,p_2\n1,0.5,0.5\n3,0.5,0.5\n", {"classes": ["x", "y"]}, "target label row=1"),
        (CSV, {"target": 5}, "target type"),
        (CSV, {"probs": 5}, "probs type"),
        (CSV, {"classes": 5}, "classes type"),
        (CSV, {"delimiter": "é"}, "delimiter value"),
        (CSV, {"decimal": ""}, "decimal value"),
        ("label,p_a,p_b\na,0.2,0.8\n", {"probs": "p_a", "classes": ["a", "a"]}, "classes length"),
    ],
)
def test_what_cannot_be_found(content, options, facts, write):
    refuses(write(content), facts, **options)


@pytest.mark.parametrize(
    ("content", "probs", "classes"),
    [
        # All columns of numbers; the number at the end of the name is the class.
        ("gt,dr0,dr1,dr2\n0,0.5,0.3,0.2\n2,0.1,0.2,0.7\n", ["dr0", "dr1", "dr2"], (0, 1, 2)),
        ("gt,dr1,dr2,dr3\n1,0.5,0.3,0.2\n3,0.1,0.2,0.7\n", ["dr1", "dr2", "dr3"], (1, 2, 3)),
        # What is no probability is left out, and so are flags.
        ("true,age,qa,qb\na,40,0.5,0.5\nb,50,0.1,0.9\n", ["qa", "qb"], ("a", "b")),
        ("truth,m,f,u,v\n0,1,0,.5,.5\n1,0,1,.1,.9\n0,1,0,.2,.8\n", ["u", "v"], ("u", "v")),
        # Of one name, beside another column that may hold a probability.
        ("actual,s,A 1,A 2\n1,.5,.5,.5\n2,.3,.1,.9\n2,.5,.6,.4\n", ["A 1", "A 2"], (1, 2)),
        ("answer,Home win,Away win\nHome,.5,.5\nAway,.4,.6\n", ["Home win", "Away win"], ("Home", "Away")),
        ("Correct Answer,cA,cB\nA,.5,.5\nB,.4,.6\n", ["cA", "cB"], ("A", "B")),
        # A broken row is for other checks to complain about.
        ("correct,u,v\n0,.5,.5\n" + "1,.4,.6\n" * 10 + "1,,.6\n", ["u", "v"], ("u", "v")),
    ],
)
def test_columns_are_recognised_by_the_sums_of_their_rows(content, probs, classes, write):
    source = files.open(write(content))
    assert (list(source.roles.probs), source.classes) == (probs, classes)
    assert any("recognised by the sums" in line for line in source.taken)


def test_a_class_without_any_probability_is_not_lost(write):
    numbered = files.open(write("obs,0,1,2\n0,0.5,0.5,0\n1,0.3,0.7,0\n"))
    assert numbered.classes == (0, 1, 2)
    named = files.open(write("obs,Home,Draw,Away\nHome,0.5,0,0.5\nAway,0.3,0,0.7\n"))
    assert (named.classes, named.roles.not_taken) == (("Home", "Away"), ("Draw",))


def test_sums_that_fit_several_sets_decide_nothing(write):
    two = "gt,a1,a2,b1,b2\n1,0.5,0.5,0.2,0.8\n2,0.1,0.9,0.3,0.7\n"
    error = refuses(write(two), "probs value probs")
    assert "(a1, a2) or (b1, b2)" in str(error)
    refuses(write("gt,a,b,c\n0,0.5,0.5,0.5\n1,0.5,0.5,0.5\n"), "probs value probs")
    # The order of classes is never guessed from the columns.
    refuses(write("gt,lo,hi,mid\nlo,0.5,0.3,0.2\nhi,0.1,0.2,0.7\n"), "classes order classes", ordered=True)


def test_percentages_are_named(write):
    path = write("gt,qa,qb\na,50,50\nb,30,70\n")
    assert "hold percentages; their rows sum to 100" in str(refuses(path, "probs value normalize"))
    assert files.read(path, normalize=True).classes == ("a", "b")
    with pytest.raises(vx.InputError, match="percentages: divide them by 100"):
        vx.brier([0, 1], [[50, 50], [30, 70]])


# Valid: rows 0, 2, 9 and 10.
BROKEN = """label,p_a,p_b,p_c,site,w,id
a,0.5,0.3,0.2,x,1,i0
b,0.5,,0.5,x,1,i1
c,0.1,0.9,0,y,1,i2
d,0.2,0.3,0.5,y,1,i3
,0.2,0.3,0.5,y,1,i4
a,0.2,0.3,n/a,y,1,i5
a,0.2,0.3,0.9,y,1,i6
a,0.2,0.3,0.5,,1,i7
a,0.2,0.3,0.5,x,-1,i8
b,0.2,0.6,0.2,x,1,i9
c,0.2,0.6,0.2,y,2,i10
"""
REASONS = {
    "missing groups": 1,
    "probabilities that are missing or not finite": 2,
    "missing outcomes": 1,
    "outcomes that are no class": 1,
    "probabilities that do not sum to 1": 1,
    "weights that are missing, negative or not finite": 1,
}


def as_parquet(path):
    """The broken rows with missing values where a text file has other texts."""
    table = pacsv.read_csv(
        path, convert_options=pacsv.ConvertOptions(null_values=["", "n/a"], strings_can_be_null=True)
    )
    papq.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("rows", [None, 1, 3])
@pytest.mark.parametrize("convert", [lambda path: path, as_parquet])
def test_invalid_rows_are_left_out_on_request(convert, rows, write):
    path = convert(write(BROKEN))
    source = files.open(path, groups="site", weights="w", id="id", invalid="skip")
    parts = list(source.batches(rows))
    assert [n for part in parts for n in part.rows.tolist()] == [0, 2, 9, 10]
    assert [text for part in parts for text in part.ids.tolist()] == ["i0", "i2", "i9", "i10"]
    assert (source.skipped.n_given, source.skipped.rows) == (11, (1, 3, 4, 5, 6, 7, 8))
    assert source.skipped.reasons == REASONS
    card = card_of_file(source, rows=rows)
    assert (card.n_rows, card.weight, card.skipped) == (4, 5, source.skipped)
    assert (card.n_zero_probability, card.zero_probability_rows) == (1, (2,))
    p = [[0.5, 0.3, 0.2], [0.1, 0.9, 0], [0.2, 0.6, 0.2], [0.2, 0.6, 0.2]]
    assert card["brier"] == pytest.approx(vx.brier([0, 2, 1, 2], p, weights=[1, 1, 1, 2]))


def test_rows_of_other_forms_are_left_out(tmp_path, write):
    single = files.read(write("y,p\n1,0.5\n0,2\n1,x\n2,0.5\n0,0.25\n"), invalid="skip")
    assert (single.rows.tolist(), single.p.tolist()) == ([0, 4], [[0.5, 0.5], [0.75, 0.25]])
    lists = pa.table({"label": [0, 1, 0], "probs": [[0.5, 0.5], [0.5], [0.1, None]]})
    papq.write_table(lists, tmp_path / "a.parquet")
    assert files.read(tmp_path / "a.parquet", invalid="skip").rows.tolist() == [0]
    p = np.array([[0.5, 0.5], [0.1, np.nan], [0.3, 0.7], [0.2, 0.2], [0.4, 0.6]])
    np.savez(tmp_path / "a.npz", probs=p, labels=[0, 1, 2, 1, 1])
    assert files.read(tmp_path / "a.npz", invalid="skip").rows.tolist() == [0, 4]
    np.savez(tmp_path / "b.npz", probs=p[:, 0] * 3, labels=[0, 1, 1, 1.5, 1])
    assert files.read(tmp_path / "b.npz", invalid="skip").rows.tolist() == [1, 2]
    with pytest.raises(vx.InputError, match="no valid row; 2 of 2 rows were left out"):
        files.read(write("y,p\n5,0.5\n0,2\n"), invalid="skip")


def test_messages_count_all_offenders(write):
    for cells, words in (
        ("a,,0.5\nb,,0.5\n", "row 2 has none (2 rows so far)"),
        ("a,x,0.5\nb,0.5,0.5\na,y,0.5\n", "row 2 holds 'x' (2 rows so far)"),
        ("z,0.5,0.5\na,0.5,0.5\nw,0.5,0.5\n", "row 2 holds 'z' (2 rows so far)"),
    ):
        with pytest.raises(vx.InputError) as found:
            files.read(write(CSV + cells))
        assert words in str(found.value)
        assert found.value.count == 2


def test_lists_are_recognised_by_their_sums(tmp_path):
    columns = {"gt": [0, 1], "scores": [[0.5, 0.5], [0.1, 0.9]], "box": [[3.0, 4.0], [5.0, 6.0]]}
    papq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert files.open(tmp_path / "a.parquet").roles.probs == ("scores",)


def test_one_column_has_the_tolerance_that_rows_have(write):
    assert files.read(write("y,p\n1,1.0000009\n0,0.5\n")).p.tolist() == [[0, 1.0000009], [0.5, 0.5]]
    refuses(write("y,p\n1,0.5\n1,1.00001\n"), "probs value row=1 logits")


def test_names_of_classes_have_no_separators_at_their_ends(write):
    content = "result,Model Home,Model Draw,Book Home,Book Draw\nHome,.5,.5,.4,.6\n"
    for pattern in ("Model*", "Model *", "Book*"):
        assert files.read(write(content), target="result", probs=pattern).classes == ("Home", "Draw")


@pytest.mark.parametrize(
    ("content", "facts", "words", "silent"),
    [
        (CSV + "a,0.5\n", "path file", "Complete the line", "delimiter"),
        (CSV.replace(",", ";").replace(".", ","), "delimiter file delimiter", "';'", "header 1"),
        (
            "a,b,c,d,e,f,g,h,i,kind\n" + "1," * 9 + "x\n",
            "target missing target",
            "..., i, kind (10 col",
            "p_",
        ),
        ("p_a,p_b,kind\n0.5,0.5,a\n", "target missing target", "has kind", ", p_b"),
        ("label,z\na,0.5\nb,0.3\n", "probs missing probs", "has z", "logits"),
        ("label,who\na,x\nb,y\n", "probs missing", "who", "Pass"),
    ],
)
def test_remedies_fit(content, facts, words, silent, write):
    text = str(refuses(write(content), facts))
    assert words in text
    assert silent not in text


def test_objects_are_not_read(write):
    line = '{"label":"a","probs":{"a":0.5,"b":0.5}}\n'
    assert "Objects (probs) are not read" in str(refuses(write(line, "a.jsonl"), "probs missing"))


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
    ("header", "labels", "options", "facts"),
    [
        ("p_1,p_X,p_2", (1, 0), {}, "target label row=1 probs classes"),
        ("p_1,p_X,p_2", (1, 0), {"classes": ["home", "draw", "away"]}, "target label row=1 probs classes"),
        ("p_0.5,p_1.5,p_x", (0, 1), {}, "target label row=0 probs classes"),
        ("p_x,p_y,p_z", (0, 3), {}, "target label row=1 classes"),
        ("p_x,p_y,p_z", (0, -1), {}, "target label row=1 classes"),
        ("p_x,p_y,p_z", (" x", "y "), {}, "classes label"),
        ("p_x,p_y,p_z", ("x", "y "), {}, "target label row=1"),
        ("p_x,p_y,p_z", ("x", "y"), {"classes": ["X", "Y", "W"]}, "classes label probs"),
        ("p_01,p_1,p_x", ("01", "001"), {}, "target label row=1"),
        ("p_01,p_02,p_x", ("1", "2"), {}, "target label row=0 probs classes"),
        ("p_x,p_y,p_z", ("00", "01"), {}, "classes label classes"),
    ],
)
def test_doubtful_labels_are_refused(header, labels, options, facts, write):
    rows = "".join(f"{label},0.5,0.25,0.25\n" for label in labels)
    refuses(write(f"label,{header}\n{rows}"), facts, **options)


def test_labels_that_count_from_one_are_explained(write):
    error = refuses(write("label,p_x,p_y\n1,0.5,0.5\n2,0.5,0.5\n"), "target label row=1 classes")
    assert error.remedies[0].options == {"classes": [1, 2]}
    assert error.values == ("2",)


def test_cells_are_texts(write):
    content = "label,p_01,p_1,who,id\n01,0.7,0.3,01,01\n1,0.4,0.6,1,1\n01,0.9,0.1,001,001\n"
    read = files.read(write(content), groups="who", id="id")
    assert (read.classes, read.y.tolist()) == (("01", "1"), ["01", "1", "01"])
    assert read.groups.tolist() == read.ids.tolist() == ["01", "1", "001"]
    assert card_of_file(files.open(write(content), groups="who")).n_groups == 3


@pytest.mark.parametrize("end", ["A1", "0.5", "01", "1.5", "true"])
def test_a_label_far_down_is_named_by_its_row(end, write, monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 2**12)
    rows = "0,0.2,0.8\n1,0.2,0.8\n" * 2000
    refuses(write(f"label,p_a,p_b\n{rows}{end},0.5,0.5\n"), "target label row=4000 classes")
    names = f"a,0.2,0.8\n{end},0.2,0.8\n"
    assert files.read(write(f"label,p_a,p_{end}\n{names * 2000}{names}")).y[-1] in (1, end)


def test_a_class_that_appears_late_is_known(write, monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 2**12)
    rows = "1,0.5,0.25,0.25\n2,0.5,0.25,0.25\n" * 2000
    read = files.read(write(f"label,p_1,p_X,p_2\n{rows}X,0.5,0.25,0.25\n"))
    assert read.y[-3:].tolist() == ["1", "2", "X"]


def test_numbers_are_numbers_wherever_they_begin(write, monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 2**12)
    whole = "a,1,0,1\n" * 3000
    read = files.read(write(f"label,p_a,p_b,w\n{whole}b, 0.5,5e-1,0.5\n"), weights="w")
    assert (read.p[-1].tolist(), read.weights[-1]) == ([0.5, 0.5], 0.5)
    lines = '{"label":0,"p_0":1,"p_1":0}\n' * 3000 + '{"label":1,"p_0":0.5,"p_1":0.5}\n'
    assert files.read(write(lines, "a.jsonl")).p[-1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_truth_values_are_names_where_a_class_is_called_so(name, tmp_path):
    columns = {"label": [True, True], "p_x": [0.5, 0.5], "p_y": [0.25, 0.25], "p_true": [0.25, 0.25]}
    write_table = pacsv.write_csv if name == "a.csv" else papq.write_table
    write_table(pa.table(columns), tmp_path / name)
    assert files.read(tmp_path / name).y.tolist() == [2, 2]
    write_table(pa.table({**columns, "label": [True, False]}), tmp_path / name)
    refuses(tmp_path / name, "target label row=1 probs classes")


def test_numbers_as_numpy_writes_them(write):
    assert files.read(write("label,p_0,p_1\n1.000e+00,0.2,0.8\n0.000e+00,0.5,0.5\n")).y.tolist() == [1, 0]
    german = "label;p_0;p_1\n1,0;0,2;0,8\n0,0;0,5;0,5\n"
    assert files.read(write(german), delimiter=";", decimal=",").y.tolist() == [1, 0]


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
    refuses(tmp_path / "a.npz", "classes length", classes=["1", "2"])


# ---- broken files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options", "facts"),
    [
        (CSV.replace(",", ";"), {}, "delimiter file delimiter"),
        (CSV.replace(",", "\t"), {}, "delimiter file delimiter"),
        (CSV + "a,abc,0.5\n", {}, "probs type row=2"),
        (CSV + "a,,0.5\n", {}, "probs missing row=2 invalid"),
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
    second = pa.table({"p_b": pa.array([0.25], pa.float32()), "p_a": [0.75], "label": ["b"], "x": [1]})
    papq.write_table(second, folder / "1.parquet")
    assert files.read(folder).p.tolist() == [[1, 0], [0.75, 0.25]]
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


def test_types_in_json_lines_are_held_together_over_blocks(write, monkeypatch):
    monkeypatch.setattr(texts, "BLOCK", 2**10)
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


def test_a_small_archive_of_a_huge_row(tmp_path, monkeypatch):
    monkeypatch.setattr(npy, "_memory", lambda: 10**6)
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
    card = card_of_file(files.open(path, ordered=True, **extra), ordered=True, rows=rows)
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
        card_of_file(files.open(tmp_path / "a.npz"), rows=1000)
    assert caught.value.rows == (4321,)
    p[4321:4500] = 0.5
    np.savez(tmp_path / "a.npz", probs=p, labels=y)
    with pytest.raises(vx.InputError, match=r"rows 4321, 4322 and 4323 .* \(179 rows so far\)"):
        card_of_file(files.open(tmp_path / "a.npz"), rows=1000)


def test_weights_may_be_zero_in_a_batch_and_not_in_all(tmp_path):
    y, p = forecasts(300, 3, ties=False)
    w = np.where(np.arange(300) < 100, 0.0, 1.0)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, weights=w)
    card = card_of_file(files.open(tmp_path / "a.npz"), rows=50)
    assert card["brier"] == pytest.approx(vx.brier(y[100:], p[100:]), rel=1e-12)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, weights=w * 0)
    with pytest.raises(vx.InputError, match="must not all be zero"):
        card_of_file(files.open(tmp_path / "a.npz"), rows=50)


def test_one_group_is_refused_only_if_all_rows_are_in_it(tmp_path):
    y, p = forecasts(300, 3, ties=False)
    np.savez(tmp_path / "a.npz", probs=p, labels=y, groups=np.arange(300) // 150)
    assert card_of_file(files.open(tmp_path / "a.npz"), rows=50).n_groups == 2
    np.savez(tmp_path / "a.npz", probs=p, labels=y, groups=np.zeros(300))
    with pytest.raises(vx.InputError, match="at least two groups"):
        card_of_file(files.open(tmp_path / "a.npz"), rows=50)


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
    assert 2 not in copies
    np.ascontiguousarray(big)
    assert 2 in copies


def test_texts_are_coded_in_order():
    column = pa.chunked_array([["b", "a", "b"], ["c"]])
    groups = arrow.groups(column, arrow.Place("a.csv", "who", "groups"))
    assert (groups.codes.tolist(), groups.labels.tolist()) == ([1, 0, 1, 2], ["a", "b", "c"])


@pytest.mark.parametrize(
    "numbers", [[0, 1, 2], [5, 3, 9], [-4, 7], [0, 2**40], [-(2**63), 2**63 - 1], [-(2**63), 3 - 2**63]]
)
def test_labels_that_are_numbers_are_found_near_and_far(numbers):
    names = tuple(map(str, numbers))
    known = Labels(Target("y", INTEGER), names, names, tuple(numbers))
    values = np.array([*numbers, 0, 1, 2, -1, 10**12, -(2**63), 2**63 - 1, 4, 5] * 3)
    places = {number: i for i, number in enumerate(numbers)}
    assert known.positions_of(values).tolist() == [places.get(int(value), -1) for value in values]
    assert known.positions_of(np.array(numbers)).tolist() == list(range(len(numbers)))


def test_a_pattern_names_several_files(tmp_path):
    for i, rows in enumerate(["a,0.8,0.2\nb,0.4,0.6\n", "b,0.1,0.9\n"]):
        (tmp_path / f"part{i}.csv").write_text("label,p_a,p_b\n" + rows)
    found = files.read(f"{tmp_path}/part*.csv")
    assert found.y.tolist() == [0, 1, 1]
    assert found.p[:, 0].tolist() == [0.8, 0.4, 0.1]
    with pytest.raises(vx.InputError, match="There is no file"):
        files.read(f"{tmp_path}/other*.csv")
