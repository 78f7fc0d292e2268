"""JSON schemas of what commands print: there is one for each, it is printed, and it is strict.

`commandline` holds the output of every test with --json to them.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import demofiles
from commandline import process, validator, verax
from verax.cli.commands import all_commands
from verax.cli.schemas.outputs import COMMANDS, schema_of

RUNS = {
    "evaluate": ["preds.parquet", "--by", "site", "--require", "brier<1"],
    "decide": ["preds.parquet", "--threshold", "youden", "--groups", "site"],
    "worst": ["preds.parquet", "-n", "2"],
    "recalibrate": ["curved.csv", "--method", "blend"],
    "monitor": ["february.parquet", "--time", "day", "--reference", "0.5", "--state", "schema.state"],
    "select": ["metrics.csv"],
    "toplist": ["completions.jsonl", "--classes", "50000"],
    "certify": ["zero_one"],
    "folds": ["folds.csv", "--probs", "new=new_*", "--probs", "old=old_*"],
    "datasets": ["scores.csv", "--better", "lower"],
    "evals evaluate": ["new_answers.csv", "--require", "grade>0.1"],
    "evals compare": ["new_answers.csv", "old_answers.csv", "--id", "qid"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    demofiles.write_all(path)
    curved(path / "curved.csv")
    return path


def curved(path):
    """Forecasts of two classes that no line in the log odds corrects: a blend has parts of all forms."""
    rng = np.random.default_rng(0)
    p = rng.random(1500)
    y = rng.random(1500) < np.where(p < 0.5, 0.25 * p, 0.1 + 0.9 * p**2)
    np.savetxt(
        path, np.column_stack([y, 1 - p, p]), delimiter=",", header="target,p_0,p_1", comments="", fmt="%g"
    )


def test_every_command_with_json_has_a_schema():
    with_json = {name for name, own in all_commands().items() if any(p.name == "as_json" for p in own.params)}
    assert with_json == set(COMMANDS) == set(all_commands()) - {"schema"}


@pytest.mark.parametrize("command", COMMANDS)
def test_schemas_are_printed(command):
    printed = verax("schema", *command.split())
    assert printed.returncode == 0
    schema = json.loads(printed.stdout)
    assert schema == schema_of(command)
    assert schema["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("command", ["merge", "evals evaluate", "decide", "recalibrate"])
def test_schemas_do_not_depend_on_what_else_was_imported(command):
    """They list the kinds of a class that are imported, here those of all commands."""
    assert json.loads(process("schema", *command.split()).stdout) == schema_of(command)


def test_other_commands_are_refused():
    refused = verax("schema", "evaluat")
    assert refused.returncode == 2
    assert "evaluate" in refused.stderr


def records(value, schema, root):
    """Every object of an output that has keys of its own, with its schema."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for option in schema.get("anyOf", ()):
        if validator_of(option, root).is_valid(value):
            yield from records(value, option, root)
            return
    if isinstance(value, dict):
        own = schema.get("properties", {})
        if own:
            yield value, schema
        for key, inner in value.items():
            yield from records(inner, own.get(key, schema.get("additionalProperties")), root)
    if isinstance(value, list):
        for inner in value[:2]:
            yield from records(inner, schema.get("items", {}), root)


def validator_of(schema, root):
    return validator(root["title"].removeprefix("verax ").removesuffix(" --json")).evolve(
        schema={**schema, "$defs": root["$defs"]}
    )


@pytest.mark.parametrize("command", RUNS)
def test_schemas_are_strict(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    printed = verax(*command.split(), *RUNS[command], "--json")
    assert printed.returncode == 0, printed.stderr
    root = validator(command).schema
    kinds = {
        tuple(own["required"]): (inner, own) for inner, own in records(json.loads(printed.stdout), root, root)
    }
    assert kinds
    for required, (inner, own) in kinds.items():
        check = validator_of(own, root)
        assert check.is_valid(inner)
        assert not check.is_valid(inner | {"unheard_of": 1})
        for key in required:
            assert not check.is_valid({name: value for name, value in inner.items() if name != key}), key
    # What is wrong within is wrong on the whole.
    whole = json.loads(printed.stdout)
    inner, _ = list(records(whole, root, root))[-1]
    inner["unheard_of"] = 1
    assert not validator(command).is_valid(whole)
