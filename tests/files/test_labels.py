"""Files of predictions: labels that could be names or positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import verax as vx
from cases import card_of_file
from predictionfiles import refuses
from verax import files


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
def test_a_label_far_down_is_named_by_its_row(end, write, change):
    change(text_block=2**12)
    rows = "0,0.2,0.8\n1,0.2,0.8\n" * 2000
    refuses(write(f"label,p_a,p_b\n{rows}{end},0.5,0.5\n"), "target label row=4000 classes")
    names = f"a,0.2,0.8\n{end},0.2,0.8\n"
    assert files.read(write(f"label,p_a,p_{end}\n{names * 2000}{names}")).y[-1] in (1, end)


def test_a_class_that_appears_late_is_known(write, change):
    change(text_block=2**12)
    rows = "1,0.5,0.25,0.25\n2,0.5,0.25,0.25\n" * 2000
    read = files.read(write(f"label,p_1,p_X,p_2\n{rows}X,0.5,0.25,0.25\n"))
    assert read.y[-3:].tolist() == ["1", "2", "X"]


def test_numbers_are_numbers_wherever_they_begin(write, change):
    change(text_block=2**12)
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
