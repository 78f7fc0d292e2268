"""Every example in every command's help and in the documentation, run on the files that it speaks of."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil

import pyarrow.fs as pafs
import pytest
import typer
from typer.testing import CliRunner

import demofiles
from commandline import examples_of, too_wide, verax
from pages import DOCS, PAGES, name_of, typed
from reports import LIGHT
from servers import Web, store
from verax._settings import settings
from verax.cli.app import BAD_INPUT, DONE, FAILED
from verax.cli.app import COMMANDS as LISTED
from verax.cli.commands import all_commands, app

COMMANDS = all_commands()
# Where pages have files on the web.
WEB = "https://example.org"
EXAMPLES = [(name, example) for name, command in COMMANDS.items() for example in examples_of(command)]
SESSIONS = {name_of(page): found for page in PAGES if (found := typed(page))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a reader has who typed `verax demo --files` and `verax demo`."""
    path = tmp_path_factory.mktemp("examples")
    assert verax("demo", "--files", path).returncode == 0
    demofiles.write_demo(path)
    return path


@pytest.fixture
def places(folder):
    """A bucket and a web server with the files that pages name; the address of the server."""
    pytest.importorskip("moto.server")
    with store("bucket") as address, Web() as web:
        filesystem = pafs.S3FileSystem(endpoint_override=address)
        for name, file in (("preds/1.parquet", "preds.parquet"), ("today.parquet", "february.parquet")):
            with filesystem.open_output_stream(f"bucket/{name}") as out:
                out.write((folder / file).read_bytes())
        web.files["new.parquet"] = (folder / "preds.parquet").read_bytes()
        yield web.address


def test_the_list_of_commands_says_what_their_docstrings_say():
    group = typer.main.get_command(app)
    summaries = {name: group.get_command(None, name).help.split("\n\n")[0] for name in LISTED}
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
def test_examples_run(example, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(folder, tmp_path, dirs_exist_ok=True))
    if example == "verax init --check":
        verax("init", "preds.parquet", "--yes")
    if "--load" in example or "next.csv" in example or "--on-alarm" in example:
        # They read what the example before them wrote.
        typed = [text for _, text in EXAMPLES]
        before = typed[typed.index(example) - 1]
        assert verax(*shlex.split(before)[1:]).returncode == 0
    ran = verax(*shlex.split(example)[1:], columns=80)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    if "--json" not in example and "schema" not in example:
        assert too_wide(ran.stdout, 80) == []
    if example == "verax demo":
        image = pytest.importorskip("PIL.Image")
        picture = image.open(DOCS / "_static" / "report" / "front-light.png")
        page = (folder / "verax-demo" / "progression.html").read_text(encoding="utf-8")
        assert picture.text["Verdict"] in html.unescape(page), "the README's picture is old: `make docs`"


@pytest.mark.parametrize("page", SESSIONS)
def test_commands_of_a_page_run_as_printed(page, folder, tmp_path, monkeypatch, change, request):
    # They show verdicts of whole reports.
    usual = type(settings)()
    change(**{name: getattr(usual, name) for name in LIGHT})
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    web = request.getfixturevalue("places") if any("://" in command for command, _ in SESSIONS[page]) else ""
    for command, shown in SESSIONS[page]:
        # Its files are there, and an example of its help runs it.
        if command == "verax demo":
            continue
        ran = verax(*shlex.split(command.replace(WEB, web))[1:], columns=80)
        assert ran.returncode == _documented(shown), (command, ran.stdout + ran.stderr)
        if shown.strip():
            # Three dots stand for anything.
            pattern = re.escape(" ".join(shown.split())).replace(re.escape("..."), ".*")
            text = ran.stdout + ran.stderr
            assert re.fullmatch(pattern, " ".join(text.split())), f"{command}\n{text}"


def _documented(shown):
    """The exit code that goes with what is shown."""
    if shown.startswith("verax: "):
        return BAD_INPUT
    return FAILED if re.search("^(FAILED|Alarm at)", shown, re.MULTILINE) else DONE


def test_the_files_of_examples_are_the_same_at_every_call(folder, tmp_path):
    again = json.loads(verax("demo", "--files", tmp_path, "--json").stdout)["files"]
    assert len(again) == len(demofiles.FILES)
    for name in demofiles.FILES:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_help_of_every_command_shows_its_examples():
    for name, command in COMMANDS.items():
        shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
        assert "Examples:" in shown
        assert command.help
