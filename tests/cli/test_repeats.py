"""A part is merged once: files with the same part are refused, whatever the order of its rows."""

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from verax.common.packing import dump, load

KIND = "saved summaries"


def written(folder, name, seed, n=60, order=None):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2, 1, 1], n)
    rows = pd.DataFrame(p, columns=["p_a", "p_b", "p_c"])
    rows = rows.assign(label=np.array(list("abc"))[rng.integers(0, 3, n)], case=np.arange(n))
    rows = rows if order is None else rows.sample(frac=1, random_state=order)
    rows.to_parquet(folder / f"{name}.parquet")
    found = verax("evaluate", folder / f"{name}.parquet", "--save", folder / f"{name}.verax")
    assert found.returncode == 0, found.stderr
    return folder / f"{name}.verax"


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    for i, day in enumerate(("mon", "tue", "wed")):
        written(folder, day, i)
    written(folder, "shuffled", 0, order=5)
    (folder / "copy.verax").write_bytes((folder / "mon.verax").read_bytes())
    return folder


@pytest.mark.parametrize("again", ["copy", "mon", "shuffled"])
def test_the_same_part_is_refused_unless_repeats_are_allowed(days, again):
    files = [days / "mon.verax", days / "tue.verax", days / f"{again}.verax"]
    refused = verax("merge", *files)
    assert refused.returncode == 2
    for name in (files[0], files[2], "60 rows", "--allow-repeats"):
        assert str(name) in refused.stderr
    allowed = verax("merge", *files, "--allow-repeats", "--json")
    told = json.loads(allowed.stdout)
    assert told["card"]["n_rows"] == 180
    assert "counts twice" in told["notes"][0]


def test_what_was_merged_before_is_known_by_its_parts(days, tmp_path):
    both, others = tmp_path / "both.verax", tmp_path / "others.verax"
    for parts, merged in ((("mon", "tue"), both), (("tue", "wed"), others)):
        found = verax("merge", *(days / f"{name}.verax" for name in parts), "--save", merged)
        assert found.returncode == 0, found.stderr
    for repeated in (others, days / "shuffled.verax", both):
        refused = verax("merge", both, repeated)
        assert (refused.returncode, "60 rows" in refused.stderr) == (2, True)
    all_three = tmp_path / "all.verax"
    assert verax("merge", both, days / "wed.verax", "--save", all_three).returncode == 0
    assert verax("merge", all_three, others).returncode == 2
    assert vx.load(all_three).n_rows == 180


def test_files_of_0_3_have_the_fingerprint_of_their_card(days, tmp_path):
    values = load((days / "mon.verax").read_bytes(), KIND)
    assert "parts" not in values
    values["verax"] = "0.3.0"
    (tmp_path / "old.verax").write_bytes(dump(KIND, values))
    refused = verax("merge", tmp_path / "old.verax", days / "shuffled.verax")
    assert (refused.returncode, "same sums" in refused.stderr) == (2, True)


def test_rows_without_weight_and_without_rows_are_no_parts(tmp_path):
    p = np.random.default_rng(0).dirichlet([1, 1], 8)
    for name, weights in (("a", np.zeros(8)), ("b", np.zeros(8)), ("c", None)):
        vx.Tally.of([0, 1] * 4, p, weights=weights).card(part=True).save(tmp_path / f"{name}.verax")
    found = verax("merge", *(tmp_path / f"{name}.verax" for name in "abc"))
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("confidences", [True, False])
def test_grades_that_are_merged_twice_are_refused(tmp_path, confidences):
    rng = np.random.default_rng(3)
    for name, right in (("a", 50), ("b", 51)):
        grades = np.repeat([1.0, 0.0], [right, 100 - right])
        p = rng.uniform(0.1, 0.9, 100) if confidences else None
        vx.evaluate_grades(grades, p, task=np.tile(["x", "y"], 50)).save(tmp_path / f"{name}.verax")
    (tmp_path / "copy.verax").write_bytes((tmp_path / "a.verax").read_bytes())
    both = tmp_path / "both.verax"
    other = json.loads(
        verax("merge", *(tmp_path / f"{n}.verax" for n in "ab"), "--save", both, "--json").stdout
    )
    assert other["grades"]["n_rows"] == 200
    for file in (tmp_path / "copy.verax", both):
        refused = verax("merge", tmp_path / "a.verax", file)
        assert (refused.returncode, "--allow-repeats" in refused.stderr) == (2, True)
    allowed = json.loads(verax("merge", tmp_path / "a.verax", both, "--allow-repeats", "--json").stdout)
    assert "counts twice" in allowed["notes"][0]


def test_a_merged_file_says_nothing_of_ids(days, tmp_path):
    graded = vx.evaluate_grades([1.0, 0.0, 1.0], ids=["ann", "bob", "cy"])
    graded.save(tmp_path / "named.verax")
    vx.evaluate_grades([1.0, 0.0, 1.0]).save(tmp_path / "bare.verax")
    named, bare = ((tmp_path / f"{name}.verax").read_bytes() for name in ("named", "bare"))
    assert load(named, KIND)["summaries"] == load(bare, KIND)["summaries"]
