"""Rows are known by the values of their names, in whatever files they come."""

import json

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from verax.common.hashing import label_hash
from verax.common.packing import dump, load

N = 300


def days():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.05, 0.95, N).round(3)
    rows = pd.DataFrame(
        {"case": np.arange(N), "label": (rng.random(N) < p).astype(int), "p_0": 1 - p, "p_1": p}
    )
    return rows.assign(day=np.repeat(["2026-03-01", "2026-03-02", "2026-03-03"], N // 3))


def known_rows(folder, *names):
    found = [
        verax("monitor", folder / name, "--time", "day", "--id", "case", "--state", folder / "s", "--json")
        for name in names
    ]
    assert [each.returncode for each in found] == [0] * len(found), [each.stderr for each in found]
    last = json.loads(found[-1].stdout)
    return last["n_rows"], last["known_rows"]


@pytest.mark.parametrize("first", ["numbers.parquet", "texts.csv", "floats.parquet"])
@pytest.mark.parametrize("second", ["numbers.parquet", "texts.csv", "floats.parquet"])
def test_the_same_rows_are_taken_in_once(tmp_path, first, second):
    rows = days()
    rows.to_parquet(tmp_path / "numbers.parquet")
    # Another content than the same rows in the same file.
    rows.iloc[::-1].to_csv(tmp_path / "texts.csv", index=False)
    rows.assign(case=rows["case"].astype(float)).to_parquet(tmp_path / "floats.parquet")
    names = list(dict.fromkeys([first, second]))
    assert known_rows(tmp_path, *names) == (N, N if len(names) > 1 else 0)


@pytest.mark.parametrize("spelled", [str, float, int])
def test_names_in_memory_are_their_values(spelled):
    rows, monitor = days(), vx.Monitor(rule="brier", unit="row")
    ids = rows["case"].to_numpy()
    monitor.update(rows["label"].to_numpy(), rows["p_1"].to_numpy(), time=1, ids=ids)
    monitor.update(rows["label"].to_numpy(), rows["p_1"].to_numpy(), time=2, ids=ids.astype(spelled))
    assert monitor.n_rows == N
    late = vx.Monitor(rule="brier", unit="row")
    late.predict(rows["p_1"].to_numpy(), ids=ids)
    late.outcomes(ids.astype(spelled), rows["label"].to_numpy(), time=1)
    assert (late.n_rows, late.pending) == (N, 0)


@pytest.mark.parametrize("written", [int, float, str])
@pytest.mark.parametrize("read", [int, str])
def test_rows_that_a_state_of_0_3_knows_are_known(tmp_path, written, read):
    rows, monitor = days(), vx.Monitor(rule="brier", unit="row")
    taken = rows["label"].to_numpy(), rows["p_1"].to_numpy()
    ids = rows["case"].to_numpy()
    monitor.update(*taken, time=1, ids=ids, classes=[0, 1])
    values = load(monitor.to_bytes(), "monitor", version=99)
    pending = values["pending"]
    del pending["former"], pending["former_outcomes"]
    hashes = [label_hash(name) for name in ids.astype(written).tolist()]
    pending["known"] = np.array(hashes, np.uint64)
    old = vx.Monitor.from_bytes(dump("monitor", values, version=3))
    old.update(taken[0][:9], taken[1][:9], time=2, ids=ids[:9].astype(read), classes=[0, 1])
    # What was seen is known as it is now, and the rest as before.
    again = vx.Monitor.from_bytes(old.to_bytes())
    again.update(*taken, time=2, ids=ids.astype(read), classes=[0, 1])
    assert again.n_rows == N
    rows.assign(case=rows["case"].astype(read)).to_parquet(tmp_path / "rows.parquet")
    scanned = vx.scan(tmp_path / "rows.parquet", id="case", by="day")
    again = vx.Monitor.from_bytes(dump("monitor", values, version=3))
    again.update(scanned, time="day")
    assert again.n_rows == N


def test_names_that_differ_by_zeros_are_two():
    monitor = vx.Monitor(rule="brier", unit="row")
    monitor.update([0, 1], [0.2, 0.7], time=1, ids=["07", "7"])
    monitor.update([0, 1], [0.2, 0.7], time=2, ids=["007", "8"])
    assert monitor.n_rows == 4
    with pytest.raises(vx.errors.InputError, match="name each row once"):
        monitor.update([0, 1], [0.2, 0.7], time=3, ids=np.array([9, "9"], object))
