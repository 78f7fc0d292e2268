"""`--time`, `--horizon` and `--complete` of commands, and the lines that a refusal writes out."""

from __future__ import annotations

import json
import re
import shlex

import pytest

import verax as vx
from commandline import verax
from followed import HORIZON, frame

AT = ("--time", "time", "--horizon", "5")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("rows.csv", index=False)
    return "rows.csv"


@pytest.fixture
def wanted():
    table = frame()
    found = vx.at_horizon(table.time, table.event, horizon=HORIZON)
    return vx.evaluate(found.outcomes, table.p, weights=found.weights)


def test_evaluate_judges_at_the_horizon(file, wanted):
    ran = verax("evaluate", file, *AT, "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(wanted["brier"])
    assert found["taken"]["time"] == "time"
    censored = found["taken"]["horizon"]["n_censored"]
    assert found["taken"]["horizon"]["at"] == HORIZON
    assert any(
        note.startswith(f"{censored} of 600 rows were censored before time 5") for note in found["notes"]
    )


def test_evaluate_tells_the_terminal_how_many_were_censored(file):
    text = verax("evaluate", file, *AT).stdout
    assert re.search(r"times: time \(horizon 5, \d+ of 600 rows censored before\)", text)
    assert re.search(r"Note: \d+ of 600 rows were censored before time 5 and have weight 0", text)


def test_the_page_tells_how_many_were_censored(file):
    ran = verax("evaluate", file, *AT, "--html", "page.html")
    assert ran.returncode == 0, ran.stderr
    with open("page.html", encoding="utf-8") as page:
        assert re.search(r"\d+ of 600 rows were censored before time 5", page.read())


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate",),
        ("evaluate", "--rule", "brier", "--by", "sex"),
        ("decide", "--threshold", "0.3"),
        ("decompose", "--bootstrap", "5"),
        ("worst", "-n", "2"),
    ],
)
class TestRefusal:
    def given(self, command, file):
        frame().assign(sex=frame().id % 2).to_csv(file, index=False)
        name, *options = command
        return verax(name, file, *options)

    def test_both_lines_that_it_writes_run(self, command, file):
        ran = self.given(command, file)
        assert ran.returncode == 2
        lines = re.findall(r"`(verax [^`]+)`", ran.stderr)
        assert len(lines) == 2
        for line in lines:
            assert verax(*shlex.split(line)[1:]).returncode == 0

    def test_the_lines_have_the_horizon_or_that_all_were_followed(self, command, file):
        weighted, complete = re.findall(r"`(verax [^`]+)`", self.given(command, file).stderr)
        typed = f"verax {shlex.join([command[0], 'rows.csv', *command[1:]])} --target event"
        assert weighted == f"{typed} --time time --horizon 2"
        assert complete == f"{typed} --complete"


def test_complete_takes_outcomes_as_they_stand(file):
    table = frame()
    found = json.loads(verax("evaluate", file, "--complete", "--json").stdout)
    wanted = vx.evaluate(table.event, table.p)["brier"]
    assert found["card"]["scores"]["brier"]["mean"] == pytest.approx(wanted)


def test_compare_judges_files_of_several_models_at_the_horizon(file):
    table = frame()
    table.assign(p=0.5 * table.p).to_csv("half.csv", index=False)
    ran = verax("compare", file, "half.csv", "--id", "id", *AT, "--json")
    assert ran.returncode == 0, ran.stderr
    found = vx.at_horizon(table.time, table.event, horizon=HORIZON)
    models = {"rows": table.p, "half": 0.5 * table.p}
    wanted = vx.compare(found.outcomes, models, weights=found.weights, rule=["brier"])
    (mine,) = json.loads(ran.stdout)["comparison"]["differences"]["brier"]
    assert mine["difference"] == pytest.approx(wanted.difference("rows", "half", "brier").difference)


def test_init_proposes_both_and_writes_the_one_that_is_chosen(file):
    ran = verax("init", file)
    assert ran.returncode == 2
    assert 'target = "event" and time = "time" and horizon = 2 or target = "event"' in ran.stderr
    assert "complete = true into verax.toml" in ran.stderr
    ran = verax("init", file, *AT, "--yes")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"time +times \(stated\)", ran.stdout)
    with open("verax.toml", encoding="utf-8") as written:
        text = written.read()
    assert 'time = "time"\nhorizon = 5.0\n' in text
    weighted = json.loads(verax("evaluate", "--json").stdout)
    assert weighted["taken"]["horizon"]["at"] == HORIZON
    assert verax("init", "--check").returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--time", "time"), "--horizon must be given with the column of times. Pass --horizon T"),
        (("--horizon", "5"), "--time must be given with a horizon. Pass --time COLUMN"),
        ((*AT, "--complete"), "--complete cannot be given beside a horizon"),
        ((*AT, "--save", "rows.verax"), "--horizon cannot be used where summaries are saved"),
        (("--time", "time", "--horizon", "20"), "--horizon must not lie beyond the last time; it is 20"),
        (("--time", "time", "--horizon", "five"), "'--horizon'"),
        (("--time", "tim", "--horizon", "5"), "There is no column 'tim' (time). Did you mean 'time'?"),
    ],
)
def test_refused(options, words, file):
    ran = verax("evaluate", file, *options)
    assert ran.returncode == 2
    assert words in ran.stderr


def test_monitors_have_times_of_their_own(file):
    typed = ("monitor", file, "--time", "time", "--target", "event", "--state", "new.state")
    ran = verax(*typed, "--horizon", "5")
    assert ran.returncode == 2
    assert "a monitor takes outcomes when they are known" in ran.stderr
    frame().assign(time=10 + frame().id // 50).to_csv(file, index=False)
    assert verax(*typed).returncode == 0
