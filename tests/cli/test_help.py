"""Help in 80 columns, names that are nearly right, what was typed in earlier versions, and new commands."""

from __future__ import annotations

import json
import math
import re
import sys
from types import ModuleType

import pytest
import typer

import demofiles
from commandline import examples_of, verax
from verax.cli import app as frame
from verax.cli.commands import all_commands

COMMANDS = all_commands()
WIDTH, LINES, OPTIONS = 80, 60, 25


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    demofiles.write_all(path)
    return path


def shown(*command):
    ran = verax(*command, columns=WIDTH)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("name", ["", "evals", *COMMANDS])
def test_help_fits_one_and_a_half_screens(name):
    text = shown(*name.split(), "--help")
    lines = text.rstrip().split("\n")
    assert sum(math.ceil(max(len(line), 1) / WIDTH) for line in lines) <= LINES
    assert len(re.findall(r"^  -", text, re.MULTILINE)) <= OPTIONS
    # Examples stand on one line each, to be copied; the rest is set to the width.
    examples = examples_of(COMMANDS[name]) if name in COMMANDS else []
    assert [line for line in lines if len(line) > WIDTH and line.strip() not in examples] == []
    assert set(examples) <= {line.strip() for line in lines}
    # No line of one word ends a paragraph or the text on an option.
    ends = [line for line, below in zip(lines, [*lines[1:], ""], strict=True) if not below.strip()]
    assert [line for line in ends if line.strip().endswith(".") and " " not in line.strip()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_all_options_are_in_the_long_help_with_a_word_for_their_values(name):
    command = COMMANDS[name]
    text = shown(*name.split(), "--help-all")
    visible = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    for option in visible:
        assert max(option.opts, key=len) in text
    assert [p.name for p in visible if not p.is_flag and p.metavar is None] == []
    assert "Usage: verax " + name in text


def test_short_help_shows_common_columns_and_folds_the_rest():
    text = shown("evaluate", "--help")
    assert re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE) == [
        *("Arguments", "Options", "Columns", "Output", "Examples")
    ]
    assert "--target COLUMN" in text
    assert "--delimiter" not in text
    assert "--delimiter CHAR" in shown("evaluate", "--help-all")


def test_help_on_topics_and_commands():
    reading = shown("help", "reading")
    panels = shown("evaluate", "--help-all").partition("Columns:")[2].partition("Output:")[0]
    options = re.findall(r"^  (--[a-z-]+)", panels, re.MULTILINE)
    assert len(options) > 25
    assert [option for option in options if f"  {option}" not in reading] == []
    assert shown("help", "evals", "compare") == shown("evals", "compare", "--help-all")
    assert shown("help") == shown("--help") == shown()
    assert "Ranked probability score" in shown("help", "rules")
    assert "harmonic mean" in shown("help", "metrics")
    assert re.search(
        r"bcts +temperature scaling with class offsets; elsewhere platt", shown("help", "methods")
    )
    assert json.loads(shown("help", "rules", "--json"))["text"] in shown("help", "rules")
    refused = verax("help", "readin")
    assert (refused.returncode, "`verax help reading`" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["evalute", "preds.parquet"], "There is no command 'evalute'. Did you mean `verax evaluate`?"),
        (["calibrate", "preds.parquet"], "Did you mean `verax recalibrate`?"),
        (["evals", "compar", "log.eval"], "Did you mean"),
        (["evaluate", "preds.parquet", "--targt", "label"], "--target"),
        (["evaluate", "preds.parquet", "--rule", "f1"], "'f1' is a metric, not a rule: `evaluate` shows it"),
        (["evaluate", "preds.parquet", "--rule", "auc"], "`verax compare --rule auc`"),
        (["recalibrate", "preds.parquet", "--method", "platt"], "Did you mean 'bcts'?"),
        (["recalibrate", "preds.parquet", "--method", "isotonc"], "Did you mean 'isotonic'?"),
        (["retain", "preds.parquet", "--metric", "f1_score"], "Did you mean 'f1'?"),
    ],
)
def test_names_that_are_nearly_right(typed, said, folder, monkeypatch):
    monkeypatch.chdir(folder)
    refused = verax(*typed)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "now"),
    [
        (["evaluate", "log.eval"], "evals evaluate log.eval"),
        (["worst", "log.eval"], "evals worst log.eval"),
        (["plan", "log.eval", "--width", "0.02"], "evals plan log.eval --width 0.02"),
        (["compare", "new_answers.csv", "old_answers.csv", "--id", "qid"],
         "evals compare new_answers.csv old_answers.csv --id qid"),
        (["compare", "answers.csv", "--grade", "correct", "--id", "qid", "--model-column", "model",
          "--missing=joint"],
         "evals compare answers.csv --grade correct --id qid --model-column model --missing joint"),
        (["compare", "folds.csv", "--folds=fold", "--probs", "new=new_*", "--probs", "old=old_*"],
         "folds folds.csv --probs new=new_* --probs old=old_*"),
        (["compare", "scores.csv", "--datasets", "dataset", "--better", "lower"],
         "datasets scores.csv --better lower"),
    ],
)  # fmt: skip
def test_what_was_typed_before_still_works_and_says_what_to_type(typed, now, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before, after = verax(*typed, "--json"), verax(*now.split(), "--json")
    assert (after.returncode, after.stderr) == (0, "")
    assert before.returncode == 0, before.stderr
    command = " ".join(now.split()[: 2 if now.startswith("evals") else 1])
    assert re.fullmatch(
        rf"verax: Note: .* `verax {command}` .*\n|verax: Note: .* `verax {command}`.*\n", before.stderr
    )
    assert before.stdout == after.stdout
    assert json.loads(after.stdout)["command"] == command


def test_a_log_from_standard_input_is_recognised(folder, monkeypatch):
    import io
    from types import SimpleNamespace

    content = (folder / "log.eval").read_bytes()
    stdin = SimpleNamespace(buffer=io.BytesIO(content))
    stdin.buffer.isatty = lambda: False
    monkeypatch.setattr("sys.stdin", stdin)
    ran = verax("evaluate", "-", "--json")
    assert json.loads(ran.stdout)["command"] == "evals evaluate"


def test_a_new_command_is_a_module_and_a_line(monkeypatch):
    """Help, completion, hints and the manual page follow from the table of commands."""
    module = ModuleType("verax.cli.greet")
    monkeypatch.setitem(sys.modules, "verax.cli.greet", module)
    monkeypatch.setitem(frame.COMMANDS, "greet", "Greet a model by its name.")
    registered = list(frame.app.registered_commands)
    frame._group.cache_clear()
    try:

        @frame.app.command(epilog="Examples: `verax greet rf`")
        def greet(name: str = typer.Argument(help="The model.")) -> None:
            """Greet a model by its name."""
            typer.echo(f"Hello {name}")

        assert verax("greet", "rf").stdout == "Hello rf\n"
        assert "greet        Greet a model by its name." in shown("--help")
        assert "verax greet rf" in shown("greet", "--help")
        assert "`verax greet`" in verax("gret").stderr
        assert "greet" in all_commands()
    finally:
        frame.app.registered_commands[:] = registered
        frame._group.cache_clear()
