"""Every example in every command's help and in the documentation, run on the files that it speaks of."""

from __future__ import annotations

import re
import shlex

import pytest
import typer
from typer.testing import CliRunner

import demofiles
from pages import PAGES
from reports import LIGHT
from verax._settings import settings
from verax.cli.app import COMMANDS as LISTED
from verax.cli.commands import app, run

COMMANDS = {command.callback.__name__: command for command in app.registered_commands}
EXAMPLES = [
    (name, " ".join(example.split()))
    for name, command in COMMANDS.items()
    for example in re.findall(r"`(verax [^`]*)`", command.epilog or "")
]
# In the documentation: lines that begin with a prompt, and what is shown below them.
SESSIONS = [
    (page.stem, *found)
    for page in PAGES
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    for found in re.findall(r"^\$ (verax .*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("examples")
    demofiles.write_all(path)
    demofiles.write_demo(path)
    return path


def test_the_list_of_commands_says_what_their_docstrings_say():
    docstrings = {name: command.callback.__doc__ for name, command in COMMANDS.items()}
    summaries = {name: " ".join(text.split("\n\n")[0].split()) for name, text in docstrings.items()}
    assert summaries == LISTED
    shown = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["--help"]).stdout
    places = [shown.index(summary) for summary in LISTED.values()]
    assert places == sorted(places)


def test_every_command_has_an_example():
    assert {name for name, _ in EXAMPLES} == set(COMMANDS)


# `test_simulation.py` runs the simulations, in fewer rounds.
DEAR = ("verax reproduce ahmadian",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, marks=pytest.mark.long if example.startswith(DEAR) else ())
        for _, example in EXAMPLES
    ],
)
def test_examples_run(example, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, shlex.split(example)[1:], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout


@pytest.mark.parametrize(("page", "command", "shown"), SESSIONS)
def test_sessions_in_the_documentation(page, command, shown, folder, monkeypatch, capsys, change):
    # They show verdicts of whole reports.
    usual = type(settings)()
    change(**{name: getattr(usual, name) for name in LIGHT})
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", shlex.split(command))
    with pytest.raises(SystemExit):
        run()
    out, err = capsys.readouterr()
    # Three dots stand for anything.
    pattern = re.escape(" ".join(shown.split())).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, " ".join((out + err).split())), out + err


def test_the_help_of_every_command_shows_its_examples():
    for name, command in typer.main.get_command(app).commands.items():
        shown = CliRunner(env={"COLUMNS": "400"}).invoke(app, [name, "--help"]).stdout
        assert "Examples:" in shown
        assert command.help
