"""The recipes of the page about the daily job, run as their schedulers run them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from datetime import date
from importlib.util import find_spec

import pyarrow as pa
import pyarrow.parquet as papq
import pytest
import yaml
from jinja2 import Environment

import demofiles
import verax as vx
from commandline import process
from pages import DOCS, blocks, typed
from servers import store

PAGE = DOCS / "guide" / "daily.md"
BLOCKS = blocks(PAGE)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="the recipes are of POSIX")]


def of_kind(kind):
    found = [text for its, text in BLOCKS if its == kind]
    assert found, kind
    return found


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The folder with a state that the page's first commands have begun, and the day's file."""
    path = tmp_path_factory.mktemp("begun")
    demofiles.write_all(path)
    for command, _ in typed(PAGE):
        words = shlex.split(command)[1:]
        # Rows are independent here, so that a week raises an alarm.
        ran = process(*words, *(["--unit", "row"] if words[0] == "monitor" else []), cwd=path)
        assert ran.returncode == 0, ran.stderr
    (path / "incoming").mkdir()
    shutil.copy(path / "march.parquet", path / "incoming" / f"{date.today()}.parquet")
    return path


@pytest.fixture
def place(begun, tmp_path, monkeypatch):
    """A copy of it, and the programs that recipes name: they note what they are given."""
    folder, programs = tmp_path / "model", tmp_path / "bin"
    shutil.copytree(begun, folder)
    programs.mkdir()
    note = 'printf "%s\\n" "$0 $*" >> "$NOTED/calls"; cat > "$NOTED/given"'
    for name, text in {"verax": f'exec {sys.executable} -m verax "$@"', "mail": note, "gh": note}.items():
        program = programs / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NOTED", str(tmp_path))
    return folder


def shell(command, folder, *, code, **options):
    ran = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False, **options
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran


def calls(place):
    path = place.parent / "calls"
    return [line.rpartition("/")[2] for line in path.read_text().splitlines()] if path.exists() else []


def told(path):
    report = json.loads(path.read_text())
    assert report["command"] == "monitor"
    assert report["alarm"]["time"].startswith("2026-03")
    return report["alarm_number"]


def test_the_line_of_cron(place):
    (text,) = of_kind("crontab")
    (line,) = text.splitlines()
    minute, hour, *rest = line.split(None, 5)
    assert (int(minute), int(hour), rest[:3]) == (30, 6, ["*", "*", "*"])
    # cron takes an unescaped percent sign as the end of the line.
    assert "%" not in rest[3].replace("\\%", "")
    command = rest[3].replace("\\%", "%").replace("/srv/model", str(place))
    assert shell(command, "/", code=1).stdout.startswith("Alarm at 2026-03")
    assert calls(place) == ["mail -s Model alarm team@example.org"]
    assert told(place.parent / "given") == 1
    shell(command, "/", code=1)
    assert len(calls(place)) == 1
    # All files may be named on every day.
    (sentence,) = (line for line in PAGE.read_text().splitlines() if "name all of them" in line)
    shell(f"{sentence.split('`')[1]} --state model.state", place, code=1)


def test_the_units_of_systemd(place, tmp_path):
    service, timer = of_kind("systemd")
    units = [tmp_path / "model-check.service", tmp_path / "model-check.timer"]
    for unit, text in zip(units, (service, timer), strict=True):
        unit.write_text(text)
        if shutil.which("systemd-analyze"):
            checked = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", str(unit)],
                capture_output=True,
                text=True,
                check=False,
            )
            assert (checked.returncode, checked.stderr) == (0, "")
    values = dict(line.split("=", 1) for line in (service + timer).splitlines() if "=" in line)
    if shutil.which("systemd-analyze"):
        when = ["systemd-analyze", "calendar", values["OnCalendar"]]
        assert "06:30:00" in subprocess.run(when, capture_output=True, text=True, check=True).stdout
    words = shlex.split(values["ExecStart"].replace("%%", "%").replace("$$", "$"))
    assert values["WorkingDirectory"] == "/srv/model"
    ran = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert told(place / "alarm.json") == 1


def test_the_workflow_of_github(place, tmp_path):
    (text,) = of_kind("yaml")
    workflow = yaml.safe_load(text)
    # YAML reads the key `on` as a truth value.
    assert workflow[True]["schedule"] == [{"cron": "30 6 * * *"}]
    origin, checkout = tmp_path / "origin.git", tmp_path / "checkout"
    git = "git -c user.name=a -c user.email=a@example.org"
    shell(f"git init -q --bare {origin} && {git} clone -q {origin} {checkout}", tmp_path, code=0)
    shutil.copy(place / "model.state", checkout)
    shutil.copytree(place / "incoming", checkout / "incoming")
    shell(f"git add . && {git} commit -q -m begun && git push -q origin HEAD", checkout, code=0)
    # A second run of the same commit is that of the next day.
    for day in range(2):
        assert run_of(workflow["jobs"]["monitor"]["steps"], checkout) == {"Monitor": 1, "Keep the state": 0}
        assert calls(place) == ["gh issue create --title Model alarm --body-file -"]
        checkout = tmp_path / f"next-{day}"
        shell(f"git clone -q {origin} {checkout}", tmp_path, code=0)
    assert told(place.parent / "given") == 1
    assert (checkout / "monitor.html").exists()
    assert vx.Monitor.load(checkout / "model.state").n_rows == 480


def run_of(steps, folder):
    """The exit codes of the named steps, run as GitHub does: after a failure only where one asks for it."""
    codes, failed = {}, False
    for step in steps:
        if "name" not in step:
            # Others bring the files, Python and verax, which are here.
            assert "uses" in step or step["run"] == "pip install ./verax"
        elif not failed or step.get("if") == "${{ !cancelled() }}":
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            codes[step["name"]] = ran.returncode
            failed = failed or ran.returncode != 0
    return codes


def test_the_task_of_airflow(place):
    (text,) = of_kind("python")
    given = {}
    # The operator itself needs Airflow, which brings 130 packages: without it, its arguments are run.
    operator = find_spec("airflow") is not None
    module, _, what = text.partition("\n\n")
    assert module == "from airflow.providers.standard.operators.bash import BashOperator"
    if operator:
        exec(module, given)
    else:
        given["BashOperator"] = dict
    exec(what, given)
    check = given["check"]
    if operator:
        check.cwd = str(place)
        check.bash_command = Environment().from_string(check.bash_command).render(ds=date.today())
        with pytest.raises(Exception, match="non-zero exit code 1"):
            check.execute({})
    else:
        assert check["cwd"] == "/srv/model"
        command = Environment().from_string(check["bash_command"]).render(ds=date.today())
        subprocess.run(["bash", "-c", command], cwd=place, check=False)
        # A retry.
        assert subprocess.run(["bash", "-c", command], cwd=place, check=False).returncode == 1
    assert told(place / "alarm.json") == 1


def test_two_machines_with_a_state_in_a_bucket(place, tmp_path):
    pytest.importorskip("moto.server")
    (script,) = of_kind("sh")
    # Stores of a process share their buckets.
    script = script.replace("s3://bucket/", "s3://two-machines/")
    with store("two-machines"):
        for day in (1, 2):
            runs = []
            for site in "ab":
                folder = tmp_path / site
                (folder / "incoming").mkdir(parents=True, exist_ok=True)
                rows = papq.read_table(place / "january.parquet").slice(
                    40 * "ab".index(site) + 80 * (day - 1), 40
                )
                names = [f"{site}{day}-{i}" for i in range(len(rows))]
                days = [f"2026-05-0{day}"] * len(rows)
                columns = {n: rows[n] for n in rows.column_names if n not in ("case", "day")}
                table = pa.table({**columns, "case": names, "day": days})
                papq.write_table(table, folder / "incoming" / f"{date.today()}.parquet")
                runs.append(
                    subprocess.Popen(["sh", "-c", script], cwd=folder, stderr=subprocess.PIPE, text=True)
                )
            ended = [(run.communicate(timeout=240)[1], run.returncode) for run in runs]
            assert [code for _, code in ended] == [0, 0], ended
        monitor = vx.Monitor.load("s3://two-machines/model.state")
        assert [line.n_rows for line in monitor.history.lines] == [80, 80]
        # Rows of both sites are evidence: none came after bets on their day.
        assert not any("cannot be bet on" in caution for caution in monitor.cautions)
