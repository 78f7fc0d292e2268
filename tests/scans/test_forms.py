"""A form of rows that a wing declares: its files and frames are sources of all functions and commands."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax
from verax.common import wings

COUNTS = [("cat", 3, 1), ("dog", 0, 4), ("cat", 2, 2), ("dog", 1, 3), ("cat", 1, 3)]
# Counts of votes: lines "label cat dog" of a file, or columns of a table.
WING = {
    "wing.py": """
from verax.common.wings import Command, Wing

POLLS = Command("Name the closest polls.", after="help", takes={"worst": ("polls", ("--closest",))})
WING = Wing("toy_votes", "Counts of votes.", forms=("form:VOTES", "form:POLLS"), commands={"polls": POLLS})
""",
    "command.py": """
from verax.cli import options
from verax.cli.app import app
from verax.cli.options import reads_files
from verax.inputs.reading import Reading


@app.command()
@reads_files()
def polls(given: options.Given, reading: Reading) -> None:
    print("the closest polls of", *given)
""",
    "form.py": """
from verax.scans.forms import Form


class Votes(Form):
    def opened(self, source, options):
        from verax_wings.toy_votes.handle import opened

        return opened(source, options)

    def reader(self, table, options):
        from verax_wings.toy_votes.columns import VoteReader

        return VoteReader(table.name) if {"cat votes", "dog votes"} <= {*table.schema.names} else None



class Polls(Form):
    command, says = "polls", "These are polls"

    def holds(self, paths, reading):
        return str(paths).endswith(".poll")


VOTES, POLLS = Votes(), Polls()
""",
    "columns.py": """
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from verax.files.predictions import Predictions, Roles
from verax.inputs.handles import RowFacts
from verax.inputs.reading import Reading
from verax.scans.parts import part_of

CLASSES = ("cat", "dog")


def rows_of(name, labels, votes, start=0):
    y = np.array([CLASSES.index(label) for label in labels])
    votes = np.asarray(votes, float)
    roles = Roles("label", ("cat votes", "dog votes"))
    return Predictions(name, y, votes / votes.sum(1, keepdims=True), CLASSES, roles, start=start)


@dataclass(frozen=True)
class VoteReader:
    name: str
    columns = ["label", "cat votes", "dog votes"]
    rows_at_a_time = 2
    facts = RowFacts(models=("votes",), classes=CLASSES, n_classes=2, taken=("votes of cat and dog",))

    def part(self, batches, start):
        columns = pa.Table.from_batches(batches).to_pydict()
        votes = np.transpose([columns["cat votes"], columns["dog votes"]])
        return part_of({"votes": rows_of(self.name, columns["label"], votes, start)}, Reading())
""",
    "handle.py": """
from verax.common.paths import files_named
from verax.inputs.reading import Reading
from verax.scans.loaded import LoadedRows
from verax_wings.toy_votes.columns import rows_of


def opened(source, options):
    named = files_named(source)
    if named is None or named[0][0].suffix != ".votes":
        return None
    lines = [line.split() for path in named[0] for line in path.read_text().splitlines()]
    rows = rows_of(named[1], [label for label, *_ in lines], [numbers for _, *numbers in lines])
    return LoadedRows({"votes": rows}, Reading(), name=named[1], taken=("votes of cat and dog",))
""",
}


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """The folder above a toy wing that verax finds: no line elsewhere names it."""
    folder = tmp_path / "verax_wings" / "toy_votes"
    folder.mkdir(parents=True)
    for name, text in {"__init__.py": "", **WING}.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    wings.wings.cache_clear()
    yield tmp_path
    wings.wings.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "verax_wings"]:
        del sys.modules[name]


@pytest.fixture
def file(votes):
    path = votes / "june.votes"
    path.write_text("\n".join(" ".join(map(str, row)) for row in COUNTS))
    return path


def wanted():
    counts = np.array([row[1:] for row in COUNTS], float)
    return vx.evaluate(
        [label for label, *_ in COUNTS], counts / counts.sum(1, keepdims=True), classes=["cat", "dog"]
    )


def frame():
    return pd.DataFrame(COUNTS, columns=["label", "cat votes", "dog votes"])


def test_files_are_sources_of_functions_and_commands(file):
    assert vx.evaluate(vx.scan(file))["brier"] == wanted()["brier"]
    ran = verax("evaluate", file, "--rule", "brier", "--json")
    numbers = json.loads(ran.stdout)["findings"][0]["numbers"]
    assert numbers["brier"]["value"] == wanted()["brier"], ran.stderr
    other = file.with_name("july.votes")
    other.write_text(file.read_text())
    ran = verax("compare", file, other, "--json")
    models = json.loads(ran.stdout)["comparison"]["models"]["brier"]
    assert [model["mean"] for model in models] == [wanted()["brier"]] * 2, ran.stderr


def test_a_command_of_the_core_hands_its_files_over(votes):
    (votes / "june.poll").write_text("")
    path = os.pathsep.join([str(votes), *sys.path])
    typed = [sys.executable, "-m", "verax", "worst", "june.poll"]
    ran = subprocess.run(
        typed, cwd=votes, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert ran.stdout == "the closest polls of june.poll\n"
    assert "These are polls: type `verax polls` in place of `verax worst`." in ran.stderr


@pytest.mark.usefixtures("votes")
def test_frames_are_read_in_parts():
    handle = vx.scan(frame())
    assert handle.taken == ("votes of cat and dog",)
    assert vx.evaluate(handle)["brier"] == pytest.approx(wanted()["brier"], rel=1e-12)


@pytest.mark.usefixtures("votes")
def test_tables_in_files_too(tmp_path):
    frame().to_parquet(tmp_path / "votes.parquet")
    assert vx.evaluate(vx.scan(tmp_path / "votes.parquet"))["brier"] == pytest.approx(wanted()["brier"])
    assert verax("evaluate", tmp_path / "votes.parquet").returncode == 0


@pytest.mark.frameworks
@pytest.mark.filterwarnings("ignore:(.|\\n)*The inplace keyword")
@pytest.mark.usefixtures("votes")
def test_partitions_are_read_where_they_are():
    dask = pytest.importorskip("dask")
    partitions = pytest.importorskip("dask.dataframe").from_pandas(frame(), npartitions=2)
    with dask.config.set(scheduler="sync"):
        assert vx.evaluate(vx.scan(partitions))["brier"] == pytest.approx(wanted()["brier"], rel=1e-12)
