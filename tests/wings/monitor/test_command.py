"""`verax monitor`: one file a day, a state between runs, and exit code 1 after an alarm."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import verax as vx
from commandline import verax
from verax.common.locking import locked


def write_day(path, day, seed, wrong=0.0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), 150)
    y = np.minimum((p.cumsum(axis=1) <= rng.random((150, 1))).sum(axis=1), 2)
    y = np.where(rng.random(150) < wrong, 0, y)
    names = np.array(["a", "b", "c"])
    columns = {"label": names[y], "day": np.full(150, f"2026-03-{day:02}", dtype="datetime64[D]")}
    columns |= {f"p_{name}": p[:, i] for i, name in enumerate(names)}
    papq.write_table(pa.table({**columns, "site": np.where(rng.random(150) < 0.5, "n", "s")}), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("days")
    for day in range(1, 25):
        write_day(path / f"day-{day:02}.parquet", day, day, wrong=0.0 if day < 6 else 0.6)
    verax("evaluate", path / "day-01.parquet", "--save", path / "reference.verax")
    return path


def run(folder, *arguments, state="model.state", code=0):
    own = ["--time", "day", "--state", folder / state, "--json"]
    found = verax("monitor", *arguments, *own)
    assert found.returncode == code, found.stderr
    return json.loads(found.stdout)


def test_one_file_a_day_ends_where_all_files_at_once_end(folder):
    reference = ["--reference", folder / "reference.verax", "--tolerance", 0.02]
    for day in range(1, 25):
        path = folder / f"day-{day:02}.parquet"
        found = verax(
            "monitor", path, *reference, "--time", "day", "--state", folder / "daily.state", "--json"
        )
        assert found.returncode == (1 if json.loads(found.stdout)["alarm"] else 0)
    daily = json.loads(found.stdout)
    whole = run(folder, f"{folder}/day-*.parquet", *reference, code=1)
    for name in ("evidence", "alarm", "began", "verdict", "n_rows", "periods"):
        assert daily[name] == whole[name]
    assert whole["alarm"]["time"] > "2026-03-06"
    assert whole["began"][0] in ("2026-03-06", "2026-03-07")


def test_the_same_file_twice_changes_nothing(folder):
    first = run(folder, folder / "day-01.parquet", state="twice.state")
    before = (folder / "twice.state").read_bytes()
    again = run(folder, folder / "day-01.parquet", state="twice.state")
    assert (first["known"], again["known"]) == (0, 1)
    assert (folder / "twice.state").read_bytes() == before


def test_days_out_of_order_are_refused_and_the_state_stays(folder):
    run(folder, folder / "day-02.parquet", state="order.state")
    before = (folder / "order.state").read_bytes()
    refused = verax("monitor", folder / "day-01.parquet", "--time", "day", "--state", folder / "order.state")
    assert refused.returncode == 2
    assert "must not go back" in refused.stderr
    assert "day-01.parquet" in refused.stderr
    assert (folder / "order.state").read_bytes() == before


def test_files_of_one_run_are_taken_in_by_time_whatever_they_are_called(folder):
    own = folder / "names"
    own.mkdir()
    for name, day in (("day-9", 1), ("day-10", 2), ("other-half", 2), ("day-1", 3)):
        write_day(own / f"{name}.parquet", day, 20 + len(name) + day)
    found = run(folder, f"{own}/*.parquet", "--unit", "time", state="names.state")
    assert [(period["time"], period["n_rows"]) for period in found["periods"]] == [
        ("2026-03-01", 150),
        ("2026-03-02", 300),
        ("2026-03-03", 150),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "0.01"], "0.05"),
        (["--rule", "log_score"], "must be what the state was made with"),
        (["--reference", "0.3"], "must be what the state was made with"),
        (["--target", "nothing"], "nothing"),
        (["--by", "site:4"], "differ from file to file"),
    ],
)
def test_other_settings_than_those_of_the_state_are_refused(folder, options, message):
    if not (folder / "settings.state").exists():
        run(folder, folder / "day-01.parquet", "--reference", 0.6, state="settings.state")
    own = ["--time", "day", "--state", folder / "settings.state"]
    refused = verax("monitor", folder / "day-02.parquet", *own, *options)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_the_terminal_leads_with_the_verdict_and_the_page_has_it(folder):
    page = folder / "monitor.html"
    own = ["--time", "day", "--state", folder / "page.state", "--by", "site", "--html", page]
    found = verax("monitor", f"{folder}/day-*.parquet", *own)
    assert found.returncode == 1
    verdict = found.stdout.splitlines()[0]
    assert verdict.startswith("Alarm at 2026-03-")
    text = page.read_text()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text.count("<svg ") >= 8
    assert "Evidence of a change" in text


def test_a_state_of_something_else_is_refused(folder):
    refused = verax(
        "monitor", folder / "day-01.parquet", "--time", "day", "--state", folder / "reference.verax"
    )
    assert refused.returncode == 2
    assert "reference.verax" in refused.stderr


def test_late_outcomes_are_matched_by_id_and_nothing_is_taken_in_twice(folder):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), 40)
    y = np.array(["a", "b", "c"])[np.minimum((p.cumsum(axis=1) <= rng.random((40, 1))).sum(axis=1), 2)]
    names, own = [f"case {i}" for i in range(40)], folder / "late"
    own.mkdir()

    def write(name, **columns):
        path = own / f"{name}.csv"
        rows = zip(*columns.values(), strict=True)
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
        return path

    forecasts = {"case": names, "day": ["d1"] * 40, **{f"p_{c}": p[:, i] for i, c in enumerate("abc")}}
    site = ["n", "s"] * 20
    first = write("forecasts", **forecasts, site=site)
    state, told = own / "late.state", ["--time", "day", "--id", "case", "--json"]
    told += ["--state", state]
    waiting = json.loads(verax("monitor", first, "--late", "--by", "site", *told).stdout)
    assert (waiting["n_rows"], waiting["pending"]) == (0, 40)
    known = write("outcomes", case=names[:30], label=y[:30], day=["d2"] * 30)
    found = json.loads(verax("monitor", first, "--outcomes", known, *told).stdout)
    assert (found["n_rows"], found["pending"], found["known"]) == (30, 10, 1)
    direct = write("direct", **{k: v[:30] for k, v in forecasts.items()}, label=y[:30], site=site[:30])
    direct.write_text(direct.read_text().replace("d1", "d2"))
    whole = run(folder, direct, "--by", "site", state="direct.state")
    assert found["evidence"] == pytest.approx(whole["evidence"], rel=1e-9)
    before = state.read_bytes()
    # All outcomes so far, in a new file: the known ones are ignored.
    again = verax(
        "monitor", "--outcomes", write("all", case=names[:30], label=y[:30], day=["d3"] * 30), *told
    )
    assert json.loads(again.stdout)["n_rows"] == 30
    state.write_bytes(before)
    other = ["c" if each == "a" else "a" for each in y]
    for columns, message in [
        ({"case": names[:2], "label": other[:2], "day": ["d3"] * 2}, "'case 0' and 'case 1' had other"),
        ({"case": ["x"], "label": ["a"], "day": ["d3"]}, "'x' is not known"),
        ({"case": names[35:36], "label": ["z"], "day": ["d3"]}, "'z' is not, the outcome of 'case 35'"),
        ({"case": names[35:36], "label": ["a"]}, "there is no 'day'"),
        ({"case": names[35:36], "label": ["a"], "day": ["d1"]}, "must not go back"),
    ]:
        refused = verax("monitor", "--outcomes", write("bad", **columns), *told)
        assert refused.returncode == 2
        assert message in refused.stderr
        assert state.read_bytes() == before


def test_outcomes_of_lists_may_come_in_a_later_file(folder):
    rng = np.random.default_rng(4)
    own, rows, y = folder / "late-lists", [], []
    own.mkdir()
    for i in range(40):
        tokens = rng.choice(["yes", "no", "7", "maybe"], 3, replace=False).tolist()
        chances = np.sort(rng.dirichlet(np.ones(4)))[:0:-1].tolist()
        top = [{"token": t, "logprob": float(np.log(q))} for t, q in zip(tokens, chances, strict=True)]
        rows.append({"case": i, "day": "2026-01-01", "site": "ns"[i % 2], "top_logprobs": top})
        y.append(str(rng.choice([*tokens, "never"])))

    def lists(name, some):
        path = own / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, some)))
        return path

    def outcomes(name, cases):
        path = own / f"{name}.csv"
        path.write_text("\n".join(["case,label,day", *(f"{i},{y[i]},2026-01-02" for i in cases)]))
        return path

    told = ["--time", "day", "--id", "case", "--classes", "100", "--by", "site", "--json"]
    state = ["--state", own / "late.state"]
    waiting = json.loads(verax("monitor", lists("first", rows[:20]), "--late", *told, *state).stdout)
    assert (waiting["n_rows"], waiting["pending"]) == (0, 20)
    more = lists("second", rows[20:])
    found = json.loads(
        verax("monitor", more, "--outcomes", outcomes("known", range(30)), *told, *state).stdout
    )
    assert (found["n_rows"], found["pending"]) == (30, 10)
    known = [{**row, "day": "2026-01-02", "label": y[i]} for i, row in enumerate(rows[:30])]
    direct = json.loads(
        verax("monitor", lists("direct", known), *told, "--state", own / "direct.state").stdout
    )
    assert found["evidence"] == pytest.approx(direct["evidence"], rel=1e-9)
    # Outcomes that are known already are ignored, also where no list waits any more.
    for name, cases in (("last", range(40)), ("again", [0, 39])):
        again = json.loads(verax("monitor", "--outcomes", outcomes(name, cases), *told, *state).stdout)
        assert (again["n_rows"], again["pending"]) == (40, 0)


# ---- rows are taken in once, by one run at a time ----------------------------------------------------------


@pytest.fixture
def day(tmp_path):
    """A day of rows with names, and the same rows in other files."""
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.ones(3), 60)
    y = np.array(["a", "b", "c"])[np.minimum((p.cumsum(axis=1) <= rng.random((60, 1))).sum(axis=1), 2)]
    case = [f"case {i}" for i in range(60)]
    table = pa.table(
        {
            "label": y,
            **{f"p_{c}": p[:, i] for i, c in enumerate("abc")},
            "day": ["2026-01-01"] * 60,
            "case": case,
        }
    )
    pacsv.write_csv(table, tmp_path / "day.csv")
    papq.write_table(table, tmp_path / "day.parquet", compression="zstd")
    shuffled = table.take(rng.permutation(60))
    # Columns in another order.
    pacsv.write_csv(shuffled.select([*reversed(shuffled.column_names)]), tmp_path / "shuffled.csv")
    return table, tmp_path


def test_a_file_that_is_written_again_is_not_taken_in_again(day):
    _, folder = day
    assert run(folder, folder / "day.csv", "--id", "case")["n_rows"] == 60
    for name in ("day.parquet", "shuffled.csv"):
        again = run(folder, folder / name, "--id", "case")
        assert (again["n_rows"], again["known"], again["known_rows"]) == (60, 0, 60)
    own = ["--time", "day", "--state", folder / "model.state", "--id", "case"]
    (folder / "model.state").unlink()
    assert run(folder, f"{folder}/*.csv", folder / "day.parquet", "--id", "case")["n_rows"] == 60
    (folder / "more.csv").write_text((folder / "day.csv").read_text().replace("case 5", "new 5"))
    printed = verax("monitor", folder / "more.csv", *own).stdout
    assert "49 rows were taken in before and left out." in printed
    assert printed.startswith("No alarm in 71 rows")


def test_rows_without_names_of_a_day_that_is_closed_are_refused(day):
    _, folder = day
    run(folder, folder / "day.csv")
    before = (folder / "model.state").read_bytes()
    refused = verax("monitor", folder / "shuffled.csv", "--time", "day", "--state", folder / "model.state")
    assert refused.returncode == 2
    assert "a time step is complete when a run ends" in refused.stderr
    assert "--id" in refused.stderr
    assert (folder / "model.state").read_bytes() == before


def test_days_that_are_texts_in_another_order_are_refused(day):
    _, folder = day
    for text in ("12/30/2025", "31.12.2025"):
        path = folder / "dated.csv"
        path.write_text((folder / "day.csv").read_text().replace("2026-01-01", text))
        refused = verax("monitor", path, "--time", "day", "--state", folder / "dated.state")
        assert refused.returncode == 2
        assert f"'{text}' looks like a date" in refused.stderr
        assert not (folder / "dated.state").exists()


def test_a_run_that_waits_in_vain_names_the_other_one(day, change):
    _, folder = day
    change(lock_wait=0.1)
    with locked(folder / "model.state"):
        refused = verax("monitor", folder / "day.csv", "--time", "day", "--state", folder / "model.state")
    assert refused.returncode == 2
    assert f"process {os.getpid()} on" in refused.stderr
    assert not (folder / "model.state").exists()


def test_a_unit_is_stated_from_the_first_run_on(folder):
    paths = [folder / f"day-{day:02}.parquet" for day in (6, 7, 8)]
    assert run(folder, *paths, "--unit", "row", state="stated.state", code=1)["unit"] == "row"
    assert run(folder, paths[0], state="unit.state")["unit"] == "time"
    own = ["--time", "day", "--state", folder / "unit.state", "--unit", "row"]
    refused = verax("monitor", paths[1], *own)
    assert refused.returncode == 2
    assert "must be what the state was made with, 'time'" in refused.stderr


def test_rows_with_times_of_their_own_are_joined_into_days_over_runs(tmp_path):
    rng, paths = np.random.default_rng(4), []
    second = np.sort(rng.choice(5 * 86_400, 200, replace=False))
    p = rng.uniform(0.1, 0.9, 200)
    columns = {"label": (rng.random(200) < p).astype(int), "p_0": 1 - p, "p_1": p}
    columns["at"] = np.datetime64("2026-03-01T00:00", "s") + second
    table = pa.table(columns)
    for i, some in enumerate(np.array_split(np.arange(200), 3)):
        paths.append(tmp_path / f"{i}.parquet")
        papq.write_table(table.take(some), paths[-1])
    own = ["--time", "at", "--state", tmp_path / "m.state", "--json", "--zone", "Europe/Berlin"]
    for path in paths:
        found = json.loads(verax("monitor", path, *own).stdout)
    assert [step["time"] for step in found["periods"]] == [f"2026-03-0{day}" for day in range(1, 7)]
    assert sum(step["n_rows"] for step in found["periods"]) == found["n_rows"] == 200
    assert (found["period"], found["zone"]) == (None, "Europe/Berlin")
    hours = ["--time", "at", "--state", tmp_path / "hours.state", "--period", "hour"]
    printed = verax("monitor", *paths, *hours).stdout
    assert "Hours of one day resemble each other" in printed
    refused = verax("monitor", *paths, *hours[:-1], "12")
    assert refused.returncode == 2
    assert "must be what the state was made with, 'hour'" in refused.stderr


@pytest.mark.slow
def test_runs_at_the_same_time_lose_no_rows(day):
    table, folder = day
    for i in range(3):
        own = table.set_column(5, "case", pa.array([f"{i}-{j}" for j in range(60)]))
        pacsv.write_csv(own, folder / f"part{i}.csv")
    told = ["--time", "day", "--id", "case", "--state", folder / "model.state"]
    command = [sys.executable, "-m", "verax", "monitor"]
    running = [
        subprocess.Popen([*command, folder / f"part{i}.csv", *told], stdout=subprocess.PIPE) for i in range(3)
    ]
    assert [each.wait() for each in running] == [0, 0, 0]
    for each in running:
        each.stdout.close()
    assert vx.Monitor.load(folder / "model.state").n_rows == 180
    assert not (folder / "model.state.lock").exists()
