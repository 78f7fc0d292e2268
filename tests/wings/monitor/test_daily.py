"""The daily job: settings that the state keeps, alarms that are answered and told once, dry runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pyarrow.csv as pacsv
import pytest

import verax as vx
from commandline import process, verax
from verax.common.packing import dump, load
from verax.inputs.reading import Reading
from verax.wings.monitor.kept import MAY_CHANGE, KeptReading, kept_reading
from verax.wings.monitor.monitor import begin_telling, end_telling

NAMES = np.array(["a", "b", "c"])
DAY = ("--time", "day", "--unit", "row")


def rows(day, n=60, wrong=0.0):
    """Positions and probabilities of a day; some outcomes are of the first class, whatever was forecast."""
    rng = np.random.default_rng(day)
    p = rng.dirichlet(np.ones(3), n)
    y = np.minimum((p.cumsum(axis=1) <= rng.random((n, 1))).sum(axis=1), 2)
    return np.where(rng.random(n) < wrong, 0, y), p


def write(path, day, wrong=0.0, target="label", names=NAMES, ending=".csv"):
    """The same as a file."""
    y, p = rows(day, wrong=wrong)
    lines = [
        f"{100 * day + i},2026-03-{day:02},{names[y[i]]},{','.join(map(repr, row))},1"
        for i, row in enumerate(p.tolist())
    ]
    head = ",".join(["case", "day", target, *(f"p_{name}" for name in names), "w"])
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for day in range(1, 5):
        write(tmp_path / f"{day}.csv", day, wrong=0.9 if day == 3 else 0.0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0, state="m.state"):
    ran = verax("monitor", *arguments, "--state", state, "--json")
    assert ran.returncode == code, ran.stderr
    return json.loads(ran.stdout)


def refused(*arguments, state="m.state"):
    ran = verax("monitor", *arguments, "--state", state)
    assert ran.returncode == 2, ran.stdout
    return ran.stderr


# ---- settings ------------------------------------------------------------------------------------------


def test_the_second_day_needs_only_the_file_and_the_state(folder):
    for day in (1, 2):
        path = folder / f"{day}.csv"
        path.write_text(path.read_text().replace(",", ";").replace("label", "grade"))
    typed = ["--target", "grade", "--delimiter", ";", "--id", "case", "--weights", "w"]
    first = process("monitor", "1.csv", "--state", "m.state", "--time", "day", *typed)
    assert first.returncode == 0, first.stderr
    second = process("monitor", "2.csv", "--state", "m.state", "--json")
    assert second.returncode == 0, second.stderr
    found = json.loads(second.stdout)
    assert found["n_rows"] == 120
    # The same as with all of it typed again.
    for day in (1, 2):
        again = run(f"{day}.csv", "--time", "day", *typed, state="typed.state")
    assert found["periods"] == again["periods"]
    # Names of rows are known on the second day.
    (folder / "more.csv").write_text((folder / "2.csv").read_text().replace("205;", "999;"))
    assert run("more.csv")["known_rows"] == 59


@pytest.mark.parametrize(
    ("typed", "both"),
    [
        (("--time", "case"), ("--time", "'day'", "'case'")),
        (("--weights", "case"), ("the weights", "'w'", "'case'")),
        (("--groups", "case"), ("the groups", "none", "'case'")),
        (("--id", "w"), ("--id", "'case'", "'w'")),
        (("--unit", "row"), ("--unit", "'time'", "'row'")),
        (("--positive", "a"), ("--positive", "none", "'a'")),
    ],
    ids=lambda value: value[0],
)
def test_a_setting_that_differs_is_refused_with_both_values(folder, typed, both):
    if not (folder / "m.state").exists():
        run("1.csv", "--time", "day", "--weights", "w", "--id", "case")
    before = (folder / "m.state").read_bytes()
    said = refused("2.csv", *typed)
    name, then, now = both
    assert f"{name} must be what the state was made with, {then}; now it is {now}" in said
    assert (folder / "m.state").read_bytes() == before


def test_how_a_file_is_written_may_change_and_that_is_said(folder):
    run("1.csv", *DAY, "--target", "label")
    write(folder / "2.csv", 2, target="grade")
    write(folder / "4.csv", 4, target="grade")
    ran = verax("monitor", "2.csv", "--state", "m.state", "--target", "grade")
    assert ran.returncode == 0, ran.stderr
    assert "--target is 'grade' from now on; it was 'label'." in ran.stdout
    assert run("4.csv")["n_rows"] == 180
    # Typed as it is by default, and not known before.
    assert run("4.csv", "--decimal", ".")["known"] == 1


def test_an_id_may_be_added_later(folder):
    run("1.csv", *DAY)
    assert run("2.csv", "--id", "case")["n_rows"] == 120
    assert "must be what the state was made with, 'case'" in refused("4.csv", "--id", "day")


def test_every_option_of_reading_that_may_change_is_one():
    assert set(MAY_CHANGE) <= set(Reading.__dataclass_fields__)
    kept, lines = kept_reading(None, {"target": "y", "by": ("site",), "ordered": True}, "day", "m.state")
    assert (kept.time, kept.reading.given(), lines) == ("day", {"target": "y"}, [])
    assert KeptReading.from_values(kept.to_values()) == kept


@pytest.mark.parametrize(
    "reading",
    [{"outcomes": "/etc/passwd"}, {"target": "https://example.org/y.csv"}, {"weights": "w.npy"}, {"x": 1}],
    ids=str,
)
def test_a_state_of_somebody_else_names_no_file_to_read(folder, reading):
    run("1.csv", *DAY)
    content = load((folder / "m.state").read_bytes(), "monitor", version=3)
    content["kept"] = {"reading": reading, "time": "day"}
    (folder / "m.state").write_bytes(dump("monitor", content, version=3))
    said = refused("2.csv")
    assert "m.state" in said
    assert "must be bytes that verax wrote" in said


def test_the_first_run_must_state_the_time_and_others_need_not(folder):
    assert "--time must name the column of times: the state does not know it" in refused("1.csv")
    assert not (folder / "m.state").exists()


def test_a_configuration_is_held_to_the_state_as_well(folder):
    run("1.csv", *DAY)
    (folder / "verax.toml").write_text('weights = "w"\n')
    assert "must be what the state was made with, none; now it is 'w'" in refused("2.csv")


# ---- Python and the command line -----------------------------------------------------------------------


@pytest.mark.parametrize("names", [NAMES, np.array(["0", "1", "2"])], ids=["names", "positions"])
@pytest.mark.parametrize("stated", [True, False], ids=["stated", "unstated"])
def test_a_monitor_goes_on_in_python_and_at_the_command_line(folder, names, stated):
    for day in (1, 2, 3):
        write(folder / f"{day}.csv", day, wrong=0.9 if day == 3 else 0.0, names=names)
    expected = [
        run(f"{day}.csv", *DAY, "--id", "case", state="all.state", code=day == 3) for day in (1, 2, 3)
    ]
    options = {"classes": names.tolist()} if stated else {}

    def in_python(monitor, day):
        y, p = rows(day, wrong=0.9 if day == 3 else 0.0)
        y = names[y] if stated and day != 3 else y
        more = options if day == 1 else {}
        monitor.update(y, p, time=date(2026, 3, day), ids=100 * day + np.arange(60), **more)

    # Begun in Python, by position or by name.
    monitor = vx.Monitor(unit="row")
    in_python(monitor, 1)
    monitor.save("m.state")
    typed = ["--time", "day", "--id", "case"]
    if not stated and names is NAMES:
        said = refused("2.csv", *typed)
        assert "Pass --classes a,b,c if this is the order." in said
        typed += ["--classes", "a,b,c"]
    found = run("2.csv", *typed)
    evidence = [[step["evidence"] for step in each["periods"]] for each in (found, expected[1])]
    assert evidence[0] == pytest.approx(evidence[1])
    assert list(found["periods"][0]["events"]) == list(expected[1]["periods"][0]["events"])
    # Rows that are known in one way are known in the other.
    assert run("1.csv", state="m.state")["known_rows"] == 60
    monitor = vx.Monitor.load("m.state")
    in_python(monitor, 2)
    assert monitor.n_rows == 120
    in_python(monitor, 3)
    monitor.save("m.state")
    found = run("3.csv", code=1)
    assert (found["known_rows"], found["n_rows"]) == (60, 180)
    for name in ("evidence", "alarm", "verdict", "n_rows"):
        assert found[name] == (pytest.approx(expected[2][name]) if name == "evidence" else expected[2][name])


def test_another_outcome_of_a_known_row_is_refused_in_python_and_at_the_command_line(folder):
    run("1.csv", *DAY, "--id", "case")
    monitor = vx.Monitor.load("m.state")
    y, p = rows(1)
    for other in ((y + 1) % 3, NAMES[(y + 1) % 3], np.eye(3, dtype=int)[(y + 1) % 3]):
        with pytest.raises(vx.InputError, match="must not change the outcome"):
            monitor.update(other, p, time=date(2026, 3, 1), ids=100 + np.arange(60))
    for same in (y, NAMES[y], np.eye(3, dtype=int)[y]):
        monitor.update(same, p, time=date(2026, 3, 1), ids=100 + np.arange(60))
    assert monitor.n_rows == 60


def test_late_outcomes_go_on_in_python(folder):
    write(folder / "later.csv", 2)
    run("1.csv", *DAY)
    run("later.csv", "--late", "--id", "case")
    monitor = vx.Monitor.load("m.state")
    y, _ = rows(2)
    monitor.outcomes(200 + np.arange(60), y, time=date(2026, 3, 3))
    monitor.save("m.state")
    (folder / "known.csv").write_text(
        "\n".join(["case,label,day", *(f"{200 + i},{NAMES[c]},2026-03-04" for i, c in enumerate(y))])
    )
    found = run("--outcomes", "known.csv")
    assert (found["n_rows"], found["pending"]) == (120, 0)


def test_names_of_positions_that_are_refused_change_nothing():
    y, p = rows(1)
    monitor = vx.Monitor(0.5, unit="row")
    monitor.update(y, p, time=1)
    before = monitor.to_bytes()
    with pytest.raises(vx.InputError, match="must not go back"):
        monitor.update(NAMES[y], p, time=0, classes=NAMES.tolist())
    assert monitor.to_bytes() == before
    monitor.update(NAMES[y], p, time=2, classes=NAMES.tolist())
    assert monitor.classes == ("a", "b", "c")
    again = vx.Monitor.from_bytes(monitor.to_bytes())
    assert again.history.events[1:] == ("a", "b", "c")
    assert list(again.history.lines[0].events) == list(again.history.events)


def test_a_state_of_an_earlier_version_goes_on_with_its_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = Path(__file__).parents[2] / "saved" / "0.3.0.zip"
    with ZipFile(saved) as archive:
        (tmp_path / "m.state").write_bytes(archive.read("monitor.fitted"))
    monitor = vx.Monitor.load("m.state")
    n, names = monitor.n_rows, list(monitor.classes)
    write(Path("2.csv"), 2, names=names)
    assert "the state does not know it" in refused("2.csv")
    assert run("2.csv", "--time", "day")["n_rows"] == n + 60
    write(Path("3.csv"), 3, names=names)
    assert run("3.csv")["n_rows"] == n + 120


# ---- alarms are answered -------------------------------------------------------------------------------


def alarmed(folder, *more):
    run("1.csv", "2.csv", *DAY)
    return run("3.csv", *more, code=1)


def test_an_alarm_is_answered_with_name_and_time(folder, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ann")
    alarm = alarmed(folder)
    assert (alarm["alarm_number"], alarm["acknowledged"]) == (1, [])
    printed = verax("monitor", "3.csv", "--state", "m.state")
    assert "  verax monitor --state m.state --acknowledge 'what was done'" in printed.stdout
    answered = verax("monitor", "--state", "m.state", "--acknowledge", "camera replaced")
    assert answered.returncode == 0, answered.stderr
    assert "The alarm at 2026-03-03 was acknowledged by ann at 20" in answered.stdout
    assert "camera replaced" in answered.stdout
    # It is kept and shown on the next day; the evidence began again.
    found = run("4.csv", "--html", "page.html")
    assert (found["alarm"], found["alarm_number"], found["n_rows"]) == (None, None, 240)
    assert found["evidence"] < 20
    (answer,) = found["acknowledged"]
    assert (answer["alarm"], answer["why"], answer["who"]) == (alarm["alarm"], "camera replaced", "ann")
    assert "acknowledged by ann" in Path("page.html").read_text()
    monitor = vx.Monitor.load("m.state")
    assert monitor.acknowledged[0].why == "camera replaced"
    assert vx.Monitor.from_bytes(monitor.to_bytes()).acknowledged == monitor.acknowledged


def test_an_answer_may_come_with_the_next_file_and_a_new_reference(folder):
    run("1.csv", *DAY, "--reference", "0.4")
    write(folder / "2.csv", 2, wrong=0.9)
    assert run("2.csv", code=1)["reference"] == 0.4
    found = run("4.csv", "--acknowledge", "retrained", "--reference", "0.7")
    assert (found["reference"], found["alarm"], found["n_rows"]) == (0.7, None, 180)
    assert "must be what the state was made with, 0.7" in refused("3.csv", "--reference", "0.4")


def test_an_answer_needs_an_alarm_and_a_reason(folder):
    run("1.csv", *DAY)
    assert "--acknowledge needs an alarm to answer; there is none" in refused("--acknowledge", "why")
    assert "--acknowledge must say what was found" in refused("--acknowledge", " ")
    assert "There is no file" in refused("--acknowledge", "why", state="other.state")
    assert not (folder / "other.state").exists()


def test_alarms_are_answered_in_python():
    monitor = vx.Monitor(unit="row")
    monitor.update(*rows(1, 400, 0.9), time=1)
    alarm = monitor.alarm
    monitor.acknowledge(why="tried", who="bob")
    (answer,) = monitor.acknowledged
    assert (answer.alarm, answer.why, answer.who) == (alarm, "tried", "bob")
    monitor.update(*rows(2, 400, 0.9), time=2)
    monitor.acknowledge()
    assert len(monitor.acknowledged) == 2
    assert monitor.acknowledged[1].who
    # Without an alarm the bets begin again, and there is nothing to note.
    monitor.acknowledge()
    assert len(monitor.acknowledged) == 2
    with pytest.raises(vx.InputError, match="`why` must be a text"):
        monitor.acknowledge(why=3)


# ---- the command for alarms ----------------------------------------------------------------------------

NOTE = "cat >> told.json"


def told(folder):
    """The reports that the command got."""
    path, reports = folder / "told.json", []
    text = path.read_text() if path.exists() else ""
    while text:
        report, end = json.JSONDecoder().raw_decode(text)
        reports, text = [*reports, report], text[end:].lstrip()
    return reports


def test_the_command_runs_once_per_alarm_with_the_report(folder):
    quiet = run("1.csv", "2.csv", *DAY, "--on-alarm", NOTE)
    assert (quiet["alarm"], told(folder)) == (None, [])
    found = run("3.csv", "--on-alarm", NOTE, code=1)
    assert told(folder) == [found]
    assert found["alarm_number"] == 1
    # The same alarm is not told again, in whatever run.
    run("3.csv", "--on-alarm", NOTE, code=1)
    run("4.csv", "--on-alarm", NOTE, code=1)
    assert len(told(folder)) == 1
    # The next alarm is another one.
    write(folder / "5.csv", 5, wrong=0.9)
    again = run("5.csv", "--acknowledge", "seen", "--on-alarm", NOTE, code=1)
    assert [each["alarm_number"] for each in told(folder)] == [1, 2] == [1, again["alarm_number"]]


def test_an_alarm_that_was_raised_without_a_command_is_told_by_the_next_run(folder):
    alarmed(folder)
    run("4.csv", "--on-alarm", NOTE, code=1)
    assert len(told(folder)) == 1


def test_a_command_that_fails_is_said_and_runs_again(folder):
    run("1.csv", "2.csv", *DAY)
    ran = verax("monitor", "3.csv", "--state", "m.state", "--on-alarm", "echo no mail server >&2; exit 7")
    assert ran.returncode == 3
    assert ran.stdout.startswith("Alarm at")
    assert "--on-alarm ended with exit code 7: no mail server. The next run will run it again." in ran.stderr
    assert vx.Monitor.load("m.state").alarm is not None
    assert verax("monitor", "4.csv", "--state", "m.state", "--on-alarm", "none-such-command").returncode == 3
    ran = verax("monitor", "4.csv", "--state", "m.state", "--on-alarm", f"{NOTE}; echo sent")
    assert (ran.returncode, len(told(folder))) == (1, 1)
    assert "The command of --on-alarm printed: sent" in ran.stderr


@pytest.mark.skipif(os.name != "posix", reason="groups of processes are of POSIX")
def test_a_command_that_hangs_is_stopped_with_what_it_started(folder):
    run("1.csv", "2.csv", *DAY)
    hangs = "sleep 600 & echo $! > child; sleep 600"
    started = time.monotonic()
    ran = process(
        *("monitor", "3.csv", "--state", "m.state", "--on-alarm", hangs, "--on-alarm-limit", "1.5", "--json")
    )
    assert time.monotonic() - started < 60
    assert ran.returncode == 3
    assert "--on-alarm was stopped after 1.5 seconds. The next run will run it again." in ran.stderr
    assert json.loads(ran.stdout)["alarm"] is not None
    child = int(Path("child").read_text())
    for _ in range(100):
        if not _alive(child):
            break
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid):
    """Whether a process runs; one that nobody waits for yet is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_may_leave_a_process_behind_and_its_input_unread(folder):
    run("1.csv", "2.csv", *DAY)
    started = time.monotonic()
    run("3.csv", "--on-alarm", "sleep 20 & echo $! > child", code=1)
    assert time.monotonic() - started < 15
    os.kill(int(Path("child").read_text()), signal.SIGKILL)


@pytest.mark.skipif(os.name != "posix", reason="limits of sizes are of POSIX")
def test_a_state_that_cannot_be_written_tells_nothing(folder):
    """The state comes first: what it lacks is found again by the next run."""
    run("1.csv", "2.csv", *DAY)
    before = (folder / "m.state").read_bytes()
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); import signal; "
    limited += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from verax.__main__ import main; main()"
    command = [sys.executable, "-c", limited, "monitor", "3.csv", "--state", "m.state", "--on-alarm", NOTE]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    assert "m.state" in ran.stderr
    assert told(folder) == []
    assert (folder / "m.state").read_bytes() == before
    run("3.csv", "--on-alarm", NOTE, code=1)
    assert len(told(folder)) == 1


def test_what_the_state_could_not_note_is_said(folder):
    """The command has run, and the state is gone: the alarm would be told again, with the same number."""
    run("1.csv", "2.csv", *DAY)
    ran = verax("monitor", "3.csv", "--state", "m.state", "--on-alarm", f"{NOTE}; echo broken > m.state")
    assert ran.returncode == 3
    assert "The command of --on-alarm has run, but m.state could not note it" in ran.stderr
    assert "It will run again." in ran.stderr


def test_a_process_that_died_while_it_told_an_alarm_is_followed_by_another(folder):
    alarmed(folder)
    monitor = vx.Monitor.load("m.state")
    assert begin_telling(monitor, 100)
    monitor.save("m.state")
    # While it may be alive, others leave the telling to it.
    run("4.csv", "--on-alarm", NOTE, code=1)
    assert told(folder) == []
    monitor = vx.Monitor.load("m.state")
    end_telling(monitor, 1, told=False)
    assert begin_telling(monitor, -1)
    monitor.save("m.state")
    run("4.csv", "--on-alarm", NOTE, code=1)
    assert len(told(folder)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("where", ["disk", "store"])
def test_two_processes_tell_an_alarm_once(folder, where, request):
    state = "m.state" if where == "disk" else "s3://box/told/m.state"
    if where == "store":
        pytest.importorskip("moto.server")
        request.getfixturevalue("box")
    run("1.csv", "2.csv", *DAY, state=state)
    run("3.csv", state=state, code=1)
    tells = [sys.executable, "-m", "verax", "monitor", "4.csv", "--state", state]
    runs = [
        subprocess.Popen([*tells, "--on-alarm", f"{NOTE}; sleep 1"], stdout=subprocess.DEVNULL) for _ in "12"
    ]
    assert [each.wait(timeout=240) for each in runs] == [1, 1]
    assert len(told(folder)) == 1
    # Taken in once, and told.
    assert vx.Monitor.load(state).n_rows == 240


@pytest.fixture
def box():
    from servers import store

    with store("box") as address:
        yield address


# ---- dry runs ------------------------------------------------------------------------------------------


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_dry_run_says_what_would_be_read_and_writes_nothing(folder):
    before = files(folder)
    typed = ["1.csv", "2.csv", *DAY, "--id", "case", "--dry-run"]
    first = run(*typed)
    assert first["dry_run"] == [
        {"file": name, "new_rows": 60, "known_rows": 0, "known": False} for name in ("1.csv", "2.csv")
    ]
    assert (first["n_rows_before"], first["n_rows"]) == (0, 120)
    assert files(folder) == before
    run(*typed[:-1])
    (folder / "more.csv").write_text((folder / "2.csv").read_text().replace("\n205,", "\n999,"))
    before = files(folder)
    ran = verax(
        *("monitor", "2.csv", "more.csv", "3.csv", "--state", "m.state", "--dry-run"),
        *("--html", "page.html", "--on-alarm", NOTE),
    )
    assert ran.returncode == 0, ran.stderr
    assert "2.csv: taken in before, would be left out." in ran.stdout
    assert "more.csv: 1 new row, 59 taken in before." in ran.stdout
    assert "3.csv: 60 new rows." in ran.stdout
    assert "m.state: 120 rows with outcomes now, 181 after the run. Nothing was written." in ran.stdout
    assert files(folder) == before
    # What a run would refuse, it refuses.
    (folder / "4.csv").write_text((folder / "4.csv").read_text().replace("2026-03-04", "2026-02-04"))
    assert "must not go back" in refused("4.csv", "--dry-run")


def test_a_dry_run_counts_forecasts_and_outcomes(folder):
    own = [*DAY, "--id", "case"]
    assert run("1.csv", *own, "--late", "--dry-run")["dry_run"][0]["new_rows"] == 60
    run("1.csv", *own, "--late")
    table = pacsv.read_csv(folder / "1.csv").select(["case", "label", "day"]).slice(0, 40)
    pacsv.write_csv(table, folder / "known.csv")
    found = run("--outcomes", "known.csv", "--dry-run")
    assert found["dry_run"] == [{"file": "known.csv", "new_rows": 40, "known_rows": 0, "known": False}]


# ---- what is forgotten ---------------------------------------------------------------------------------


def test_names_are_forgotten_after_some_steps_and_nothing_is_counted_twice(folder):
    for day in range(1, 9):
        write(folder / f"{day}.csv", day)
    typed = ["--time", "day", "--id", "case"]
    run("1.csv", *typed, "--memory", "3")
    sizes = []
    for day in range(2, 7):
        run(f"{day}.csv")
        sizes.append(len(vx.Monitor.load("m.state")._state.pending.to_values()["known"]))
    assert sizes == [120, 180, 180, 180, 180]
    # Rows of remembered steps are left out; older ones are refused, because time does not go back.
    for day, known in ((4, 60), (5, 60), (6, 60)):
        (folder / "again.csv").write_text(Path(f"{day}.csv").read_text() + "\n")
        assert run("again.csv")["known_rows"] == known
    (folder / "again.csv").write_text(Path("2.csv").read_text() + "\n")
    assert "must not go back" in refused("again.csv")
    # It may change, and by default nothing is forgotten.
    run("7.csv", "--memory", "100")
    assert run("8.csv")["n_rows"] == 480
    assert len(vx.Monitor.load("m.state")._state.pending.to_values()["known"]) == 300
    assert "must be a whole number of at least 1" in refused("8.csv", "--memory", "0")


def test_names_are_forgotten_in_python():
    monitor, plain = vx.Monitor(0.5, memory=2), vx.Monitor(0.5)
    for day in range(6):
        for each in (monitor, plain):
            y, p = rows(1 + day)
            each.update(y, p, time=day, ids=100 * day + np.arange(60))
        monitor = vx.Monitor.from_bytes(monitor.to_bytes())
    assert monitor.settings.memory == 2
    kept = [len(each._state.pending.to_values()["known"]) for each in (monitor, plain)]
    assert kept[1] == 360
    assert 120 <= kept[0] <= 180
    assert monitor.evidence == plain.evidence
    with pytest.raises(vx.InputError, match="`memory` must be a whole number of at least 1"):
        vx.Monitor(memory=0)
