"""`verax select` on logs of training."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

import commandline
import verax as vx
from recalibrations import drawn, softmax
from verax.common.strictjson import plain
from verax.selection import History

COLUMNS = {
    "epoch": [0, 1, 2, 3],
    "val_log": [0.9, 0.5, 0.6, 0.8],
    "val_pbs": [1.2, 0.8, 0.7, 0.75],
    "val_f1": [0.3, 0.6, 0.7, 0.72],
    "val_accuracy": [0.4, 0.6, 0.72, 0.7],
    "val_utility": [1.0, 3.0, 2.0, 0.0],
}


def verax(*arguments):
    return commandline.verax("select", *arguments)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "history.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(COLUMNS), *zip(*COLUMNS.values(), strict=True)])
    return path


def test_it_prints_it_all(log):
    result = verax(log)
    assert result.returncode == 0, result.stderr
    expected = f"{History.read(log).select()._text()}\n"
    verdict, _, rest = result.stdout.partition("\n\n")
    assert rest == expected.replace("directions={'val_utility': 'min'}", "--direction val_utility=min")
    assert verdict == "Keep epoch 1: lowest val_log, 0.5. Another epoch is best by val_pbs (epoch 2)."


def test_what_was_asked_for_as_json_with_a_plot(log, tmp_path):
    options = ["--rule", "pbs", "--rule", "log", "--against", "val_utility", "--direction", "utility=max"]
    result = verax(log, *options, "--plot", tmp_path / "history.png", "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    history = History.read(log, directions={"utility": "max"})
    expected = history.select(["pbs", "log"], "val_utility").to_dict(stored=False)
    known = {"verax": vx.__version__, "command": "select", "file": str(log)}
    assert found == known | plain(expected)
    assert {name: best["epoch"] for name, best in found["best"].items()} == {
        "val_pbs": 2,
        "val_log": 1,
        "val_utility": 1,
    }
    assert (tmp_path / "history.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rule", "rps"], "There is no 'rps' in this history"),
        (["--against", "utility"], "Pass --direction val_utility=min or 'max'."),
        (["--direction", "utility"], "--direction must be a name and min or max"),
        (["--direction", "utility=up"], "for 'utility' it is 'up'"),
        (["--plot", "history.nonsense"], "--plot must end in one of"),
    ],
)
def test_refusals_are_one_line(log, options, message):
    result = verax(log, *options)
    assert result.returncode == 2
    assert result.stderr.startswith("verax: ")
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("epoch,val_log\n0,0.5\n1,0.3x\n", "'val_log' must hold numbers; record 1 holds '0.3x'"),
        ("epoch;val_log\n0;0,5\n", "must be separated by commas; the first line reads 'epoch;val_log'"),
    ],
)
def test_broken_logs(content, words, tmp_path):
    (tmp_path / "log.csv").write_text(content)
    with pytest.raises(vx.InputError, match=words):
        History.read(tmp_path / "log.csv")


def test_the_counter_is_not_offered(tmp_path):
    (tmp_path / "log.csv").write_text("step,val_x\n0,1\n1,2\n")
    with pytest.raises(vx.InputError, match=r"not known for 'val_x'\. Pass directions=\{'val_x': 'min'\}"):
        History.read(tmp_path / "log.csv").select()


def test_a_file_that_is_not_there():
    result = verax("none.csv")
    assert result.returncode == 2
    assert result.stderr == "verax: There is no file 'none.csv'.\n"


DIGITS = "9" * 400
HOSTILE = {
    "latin.csv": b"epoch,\xe9\n0,1\n",
    "a.json": b'{"a": 1}',
    "text.json": b'"abc"',
    "null.json": b"null",
    "deep.json": b"[" * 100_000,
    "deep.jsonl": b"[" * 100_000,
    "digits.json": b"[" + b"9" * 5000 + b"]",
    "digits.jsonl": b'{"val_log": 1}\n{"val_log": ' + DIGITS.encode() + b"}\n",
    "epoch.jsonl": b'{"epoch": ' + DIGITS.encode() + b', "val_log": 1}\n',
    "long.csv": b"epoch,val_log\n0," + b"9" * 140_000 + b"\n",
    "nul.csv": b"epoch,a\n0,\x00\n",
    "list.jsonl": b"[1]\n",
    "empty.csv": b"",
    "x" * 300 + ".csv": None,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_logs_are_one_short_line(name, tmp_path):
    path = f"{tmp_path}/{name}"
    if HOSTILE[name] is not None:
        with open(path, "wb") as file:
            file.write(HOSTILE[name])
    result = verax(path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 700


def test_null_characters_in_names_are_refused():
    # No command line can hold one.
    with pytest.raises(vx.InputError, match="A null character in a name"):
        History.read("nul\0.csv")


def test_numbers_of_any_size_are_correlated(tmp_path):
    (tmp_path / "log.csv").write_text("val_log,val_f1\n1e308,-1e308\n-1e308,1e308\n0,5\n")
    (found,) = History.read(tmp_path / "log.csv").select().correlations
    assert found.pearson == pytest.approx(1)


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    """Validation predictions of four epochs, less noisy and more confident each time."""
    y, _, q = drawn(200, 3, seed=4)
    noise = np.random.default_rng(0).normal(size=q.shape)
    folder, epochs = tmp_path_factory.mktemp("epochs"), {}
    for epoch in (2, 4, 8, 16):
        p = softmax(epoch / 4 * (np.log(q) + 4 * noise / epoch))
        epochs[epoch] = y, p
        table = pd.DataFrame(p, columns=["low", "mid", "high"]).assign(
            grade=np.array(["low", "mid", "high"])[y]
        )
        table.to_parquet(folder / f"run1-epoch{epoch}.parquet")
    return folder, epochs


def test_predictions_of_epochs(predicted, tmp_path):
    folder, epochs = predicted
    options = ["--target", "grade", "--classes", "low,mid,high"]
    result = verax(f"{folder}/*.parquet", *options, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    expected = History.from_predictions(epochs).select()
    assert {name: best["epoch"] for name, best in found["best"].items()} == {
        name: best.epoch for name, best in expected.best.items()
    }
    assert found["best"]["refinement"]["epoch"] == 16 > found["best"]["log_score"]["epoch"]
    value = expected.best["refinement"].value
    assert found["best"]["refinement"]["value"] == pytest.approx(value, rel=1e-4)
    files = [folder / f"run1-epoch{epoch}.parquet" for epoch in (16, 2)]
    one = verax(*files, *options, "--rule", "brier_refinement", "--method", "prior")
    assert one.stdout.startswith("Keep epoch 16: lowest brier_refinement")


def test_predictions_that_are_no_epochs_are_refused(predicted, log, tmp_path):
    folder, _ = predicted
    files = sorted(folder.iterdir())
    cases = {
        "at least two epochs": [log, "--target", "grade"],
        "for histories": [*files, "--run", "a"],
        "a number of its own": [*files, files[0]],
        "has none": [files[0], tmp_path / "last.parquet"],
    }
    (tmp_path / "last.parquet").write_bytes(files[0].read_bytes())
    for message, arguments in cases.items():
        result = verax(*arguments)
        assert (result.returncode, result.stdout) == (2, ""), message
        assert message in result.stderr
