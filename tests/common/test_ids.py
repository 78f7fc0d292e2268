"""Ids are their values, however they are written."""

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from verax import files
from verax.common.ids import by_value, id_hashes, id_text, numbered, repeated

SPELLINGS = {
    "integers": [7, 80, 900],
    "small integers": np.array([7, 80, 900], np.int16),
    "unsigned": np.array([7, 80, 900], np.uint64),
    "floats": [7.0, 80.0, 900.0],
    "texts": ["7", "80", "900"],
    "texts of floats": ["7.0", "80.0", "900.0"],
    "objects": np.array([7, np.int64(80), 900.0], object),
    "text objects": np.array(["7", "80", "900"], object),
    "wide texts": np.array(["7", "80", "900"], "U40"),
    "variable texts": np.array(["7", "80", "900"], np.dtypes.StringDType()),
    "bytes": np.array([b"7", b"80", b"900"]),
}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("one", SPELLINGS)
@pytest.mark.parametrize("other", ["integers", "texts", "objects"])
def test_an_id_is_its_value(one, other, many):
    here, there = (np.tile(np.asarray(SPELLINGS[name]), 9000 if many else 1) for name in (one, other))
    (a, b), n = numbered([here, there[::-1]])
    assert n == 3
    assert a[:3].tolist() == [0, 1, 2]
    assert b.tolist() == a[::-1].tolist()
    assert (id_hashes(here) == id_hashes(there)).all()


@pytest.mark.parametrize("apart", ["07", "+7", " 7", "7.00", "7e0", "7a", "-7", "", "seven", "٧", "7" * 30])
def test_texts_that_are_no_plain_numbers_are_ids_of_their_own(apart):
    (a, b), n = numbered([[7, 8], [apart, "8"]])
    assert n == 3
    assert a[1] == b[1] != b[0]
    assert id_text(apart) == apart
    column = np.array([apart, "8"])
    assert by_value(column).tolist() == [apart, "8"]
    # A part of a column may hold whole numbers only.
    assert id_hashes(column)[1] == id_hashes([8])[0]


@pytest.mark.parametrize(
    "column", [np.array([5, 7, "7"], object), ["7", "8", "7.0"], np.array(["a", 7, "7"], object)]
)
def test_a_column_that_writes_an_id_in_two_ways_is_refused_with_both_rows(column):
    with pytest.raises(vx.errors.InputError, match="one way") as refused:
        numbered([column], "ids", ["'model'"])
    assert len(refused.value.rows) == 2
    for value in refused.value.values:
        assert repr(value) in str(refused.value)


def test_codes_are_in_the_order_of_first_appearance_and_repeats_are_found():
    for column in ([900, 7, 80, 7], ["c", "a", "b", "a"]):
        (codes,), n = numbered([column])
        assert (codes.tolist(), n, repeated(codes)) == ([0, 1, 2, 1], 3, (1, 3))
    assert numbered([[], []])[1] == 0
    assert repeated(np.zeros(0, int)) is None


@pytest.mark.parametrize("spelled", [str, float, np.int32, object])
def test_models_are_compared_by_the_values_of_ids(spelled):
    grades = {"a": [1.0, 0.0, 1.0] * 4, "b": [0.0, 1.0, 1.0] * 4}
    plain = np.arange(12)
    ids = {"a": plain, "b": plain[::-1].astype(spelled)}
    found = vx.compare_grades(grades, ids=ids)
    assert found.to_dict() == vx.compare_grades(grades, ids={"a": plain, "b": plain[::-1]}).to_dict()


@pytest.mark.parametrize("write", ["csv", "parquet of floats", "parquet of texts", "jsonl"])
def test_files_are_matched_by_the_values_of_ids(tmp_path, write):
    rows = pd.DataFrame(
        {"id": range(1, 9), "label": list("abab" * 2), "p_a": np.linspace(0.1, 0.9, 8), "p_b": 0.0}
    )
    rows["p_b"] = 1 - rows["p_a"]
    rows.to_parquet(tmp_path / "old.parquet")
    other = rows.iloc[::-1]
    if write == "csv":
        other.to_csv(tmp_path / "new.csv", index=False)
    elif write == "jsonl":
        (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, other.to_dict("records"))))
    else:
        kind = float if "floats" in write else str
        other.assign(id=other["id"].astype(kind)).to_parquet(tmp_path / "new.parquet")
    (new,) = tmp_path.glob("new.*")
    joined = files.read_together({"old": tmp_path / "old.parquet", "new": new}, id="id")
    assert joined.models["old"].tolist() == joined.models["new"].tolist()
    answers = rows[["id", "label"]].assign(id=rows["id"].astype(float))
    answers.to_parquet(tmp_path / "answers.parquet")
    beside = vx.evaluate(vx.scan(new, outcomes=tmp_path / "answers.parquet", id="id", target="label"))
    assert beside["brier"] == vx.evaluate(vx.scan(new, id="id", target="label"))["brier"]
