"""Files that a command would lose, standard input, and what is no regular file."""

from __future__ import annotations

import gzip
import io
import json
import os
from types import SimpleNamespace
from unittest import mock

import pyarrow.csv as pacsv
import pyarrow.ipc as paipc
import pyarrow.parquet as papq
import pytest

from commandline import process, verax
from demofiles import days, predictions


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("predictions") / "preds.parquet"
    predictions(path)
    return papq.read_table(path).drop_columns(["site", "w", "id"])


@pytest.fixture
def folder(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pacsv.write_csv(table, "t.csv")
    os.symlink("t.csv", "link.csv")
    os.link("t.csv", "hard.csv")
    os.mkdir("parts")
    pacsv.write_csv(table, "parts/one.csv")
    days("days.parquet")
    return tmp_path


LOST = [
    ("evaluate t.csv --html t.csv", "--html", "t.csv"),
    ("evaluate t.csv --save t.csv", "--save", "t.csv"),
    ("evaluate name=t.csv --save t.csv", "--save", "t.csv"),
    ("evaluate t.csv --html link.csv", "--html", "t.csv"),
    ("evaluate link.csv --html t.csv", "--html", "t.csv"),
    ("evaluate t.csv --html hard.csv", "--html", "t.csv"),
    ("evaluate *.csv --html t.csv", "--html", "t.csv"),
    ("evaluate parts --save parts/one.csv", "--save", "parts/one.csv"),
    ("compare a=t.csv b=hard.csv --html t.csv", "--html", "t.csv"),
    ("decompose t.csv --plot t.csv", "--plot", "t.csv"),
    ("recalibrate parts/one.csv --apply t.csv --out t.csv", "--out", "t.csv"),
    ("recalibrate t.csv --apply parts/one.csv --out t.csv", "--out", "t.csv"),
    ("monitor days.parquet --time day --state days.parquet", "--state", "days.parquet"),
]


@pytest.mark.parametrize(("typed", "option", "file"), LOST, ids=[typed for typed, _, _ in LOST])
def test_an_input_is_not_overwritten(typed, option, file, folder):
    before = (folder / file).read_bytes()
    ran = verax(*typed.split())
    assert ran.returncode == 2
    assert f"{option} must be a file of its own" in ran.stderr
    assert (folder / file).read_bytes() == before


def test_two_outputs_are_two_files(folder):
    ran = verax("evaluate", "t.csv", "--html", "x", "--save", "./x")
    assert ran.returncode == 2
    assert "--save must be a file of its own, because it is overwritten; x is also --html" in ran.stderr
    ran = verax("monitor", "days.parquet", "--time", "day", "--state", "s", "--html", "s")
    assert "must be a file of its own" in ran.stderr
    assert not os.path.exists("x")
    assert not os.path.exists("s")


def test_an_output_of_an_earlier_run_is_replaced(folder):
    for _ in range(2):
        assert verax("evaluate", "parts", "--save", "parts/card.verax").returncode == 0


def written(table, ending):
    """The bytes of a table as a file of this ending."""
    sink = io.BytesIO()
    if ending in ("csv", "csv.gz", "tsv"):
        options = pacsv.WriteOptions(delimiter="\t" if ending == "tsv" else ",")
        pacsv.write_csv(table, sink, options)
        return gzip.compress(sink.getvalue()) if ending == "csv.gz" else sink.getvalue()
    if ending in ("jsonl", "json"):
        rows = table.to_pylist()
        text = json.dumps(rows, indent=1) if ending == "json" else "\n".join(map(json.dumps, rows))
        return text.encode()
    if ending == "parquet":
        papq.write_table(table, sink)
    else:
        with paipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def piped(content, *arguments):
    with mock.patch("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content))):
        return verax(*arguments)


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "json", "parquet", "arrow"])
def test_standard_input_is_read_by_its_content(ending, table, folder):
    ran = piped(written(table, ending), "evaluate", "-", "--json")
    assert ran.returncode == 0, ran.stderr
    found, expected = json.loads(ran.stdout), json.loads(verax("evaluate", "t.csv", "--json").stdout)
    assert found["file"] == f"stdin.{ending}"
    means = [card["card"]["scores"]["brier"]["mean"] for card in (found, expected)]
    assert means[0] == pytest.approx(means[1], rel=1e-12)


def test_standard_input_may_be_a_named_model_and_say_its_format(table, folder):
    ran = piped(written(table, "csv"), "compare", "piped=-", "file=t.csv", "--json", "--format", "csv")
    assert ran.returncode == 0, ran.stderr
    assert "piped" in ran.stdout
    assert "one of" in piped(b"x", "evaluate", "-", "--format", "xls").stderr


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (b"", ["-"], "Standard input is empty"),
        (b"label,p_a\n", ["-", "-"], "Standard input can be read once"),
        (b"\x00\x01\x02", ["-"], "stdin.csv"),
    ],
)
def test_standard_input_that_cannot_be_used(content, arguments, said, folder):
    ran = piped(content, "evaluate", *arguments)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "/tmp" not in ran.stderr


def test_standard_input_is_limited(table, folder, change):
    change(most_piped=1000)
    assert "Standard input may have up to" in piped(written(table, "csv"), "evaluate", "-").stderr


@pytest.mark.slow
def test_a_pipe_of_the_shell(table, folder):
    with open("t.csv") as file:
        ran = process("evaluate", "-", "--json", stdin=file)
    assert ran.returncode == 0, ran.stderr


SPECIAL = ["evaluate fifo.csv", "sets fifo.csv", "toplist fifo.csv", "compare a=fifo.csv b=t.csv"]
SPECIAL += ["recalibrate t.csv --apply fifo.csv --out o.csv", "toplist /dev/zero", "merge fifo.csv"]
SPECIAL += ["recalibrate --load fifo.csv --apply t.csv --out o.csv", "select fifo.csv", "evaluate /dev/zero"]


@pytest.mark.parametrize("typed", SPECIAL)
def test_what_is_no_regular_file_is_refused_at_once(typed, folder):
    os.mkfifo("fifo.csv")
    ran = verax(*typed.split())
    assert ran.returncode == 2
    assert "is not a regular file" in ran.stderr
    assert "cat FILE | verax evaluate -" in ran.stderr


def test_python_refuses_them_as_well(folder):
    import verax as vx

    os.mkfifo("fifo.csv")
    for source in ("fifo.csv", ["t.csv", "fifo.csv"], "fif*.csv"):
        with pytest.raises(vx.InputError, match="is not a regular file"):
            vx.scan(source)
