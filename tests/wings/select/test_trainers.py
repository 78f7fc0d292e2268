"""Logs as TensorBoard, Weights & Biases and Hugging Face write them, read from files of their shape."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import verax as vx
from commandline import verax
from installing import installing
from verax.selection import History
from verax.wings.select.directions import Name

NAN = math.nan


def write(path, rows, **options):
    with path.open("w", newline="") as file:
        csv.writer(file, **options).writerows(rows)
    return path


# ---- TensorBoard -----------------------------------------------------------------------------------

BRIER, F1 = [0.50, 0.40, 0.45], [0.60, 0.70, 0.75]


def long_table(runs=("",), extra=()):
    """The rows of a table with a row per run, tag and step, tag after tag as TensorBoard lists them."""
    for number, run in enumerate(runs):
        for tag, values in (("val_brier", BRIER), ("val_f1", F1)):
            for step, value in enumerate(values):
                yield [run, tag, step, value + number, *extra]


def test_tags_of_a_long_table_are_metrics_of_their_own(tmp_path):
    path = write(tmp_path / "long.csv", [["run", "tag", "step", "value"], *long_table(["."])])
    history = History.read(path)
    assert history.to_dict()["values"] == {"val_brier": BRIER, "val_f1": F1}
    assert (history.counter, history.to_dict()["epochs"]) == ("step", [0, 1, 2])
    assert history.best("brier").epoch == 1
    result = verax("select", path)
    assert result.returncode == 0, result.stderr
    header = ["best", "by", "is", "step", "val_brier", "val_f1"]
    assert header in [line.split() for line in result.stdout.splitlines()]
    assert "verax selection: 3 steps" in result.stdout


@pytest.mark.parametrize(
    "header",
    [
        ["run", "tag", "step", "value", "wall_time"],
        ["Run", "Tag", "Step", "Value", "Wall time"],
        ["dir_name", "tag", "step", "value", "timestamp"],
        ["run_id", "key", "step", "value", "timestamp"],
    ],
    ids=str,
)
def test_long_tables_under_other_names(header):
    rows = long_table(extra=[1.6e9])
    history = History.from_records(dict(zip(header, row, strict=True)) for row in rows)
    assert history.to_dict()["values"] == {"val_brier": BRIER, "val_f1": F1}
    assert history.notes == ()


def test_a_long_table_says_what_it_leaves_out():
    rows = long_table(extra=["adam"])
    header = ["run", "tag", "step", "value", "optimizer"]
    history = History.from_records(dict(zip(header, row, strict=True)) for row in rows)
    assert history.notes == ("Not numbers of metrics, and left out: optimizer.",)
    with pytest.raises(vx.InputError, match=r"Every record must have a tag.*record 1 has none"):
        History.from_records([{"tag": "loss", "value": 1, "step": 0}, {"tag": "", "value": 1, "step": 1}])


def test_runs_are_never_pooled(tmp_path):
    header = ["run", "tag", "step", "value"]
    path = write(tmp_path / "long.csv", [header, *long_table(["adam", "sgd"])])
    with pytest.raises(vx.InputError, match=r"`run` must be one of the runs; there are 'adam' and 'sgd'"):
        History.read(path)
    for i, run in enumerate(["adam", "sgd"]):
        history = History.read(path, run=run)
        np.testing.assert_allclose(history.values["val_brier"], np.array(BRIER) + i)
    with pytest.raises(vx.InputError, match="and no 'lion'"):
        History.read(path, run="lion")
    result = verax("select", path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Pass --run adam." in result.stderr
    assert verax("select", path, "--run", "sgd").returncode == 0
    with pytest.raises(vx.InputError, match="the records have no runs"):
        History.from_columns({"epoch": [1], "pbs": [1.0]}, run="sgd")
    many = list(long_table([f"run{i}" for i in range(9)]))
    with pytest.raises(vx.InputError, match="'run4' and 4 more"):
        History.from_records(dict(zip(header, row, strict=True)) for row in many)


@pytest.mark.parametrize("folder", ["", "first/"])
def test_training_and_validation_runs_belong_together(folder, tmp_path):
    # Keras writes its tags into two runs.
    rows = [
        [f"{folder}{run}", f"epoch_{name}", step, value]
        for run, shift in (("train", 0), ("validation", 0.1))
        for name, values in (("loss", [0.9, 0.5, 0.3]), ("accuracy", [0.5, 0.7, 0.9]))
        for step, value in enumerate(np.array(values) + shift)
    ]
    path = write(tmp_path / "long.csv", [["run", "tag", "step", "value"], *rows])
    for history in (History.read(path), History.read(path, run=folder.strip("/") or None)):
        assert list(history.values) == [
            "train/epoch_loss",
            "train/epoch_accuracy",
            "validation/epoch_loss",
            "validation/epoch_accuracy",
        ]
        selection = history.select()
        assert (selection.rules, selection.against) == (
            ("validation/epoch_loss",),
            ("validation/epoch_accuracy",),
        )
    alone = History.read(path, run=f"{folder}validation")
    assert list(alone.values) == ["validation/epoch_loss", "validation/epoch_accuracy"]


SCALARS = [["Wall time", "Step", "Value"], [1.6e9, 0, 0.5], [1.6e9 + 9, 100, 0.3], [1.6e9 + 20, 200, 0.4]]


@pytest.mark.parametrize(
    ("file", "metric"),
    [
        ("run-version_0-tag-val_brier.csv", "val_brier"),
        ("run-.-tag-val_brier.csv", "val_brier"),
        ("run-validation-tag-epoch_loss.csv", "validation/epoch_loss"),
        ("run-logs_validation-tag-epoch_loss.csv", "validation/epoch_loss"),
        ("val_brier.csv", "val_brier"),
    ],
)
def test_a_curve_of_tensorboard_is_called_by_its_file(file, metric, tmp_path):
    history = History.read(write(tmp_path / file, SCALARS))
    assert list(history.values) == ["Wall time", metric]
    best = history.select().best[metric]
    assert (best.epoch, best.value, history.counter) == (100, 0.3, "step")
    result = verax("select", tmp_path / file)
    assert result.returncode == 0, result.stderr
    assert "No metrics of a model, and left out: Wall time." in result.stdout


def test_a_curve_of_tensorboard_as_json(tmp_path):
    path = tmp_path / "run-.-tag-val_brier.json"
    path.write_text(json.dumps(SCALARS[1:]))
    assert History.read(path).best("brier").epoch == 100


def test_a_curve_of_an_unknown_metric_asks_for_its_direction_alone(tmp_path):
    result = verax("select", write(tmp_path / "run-a-tag-utility.csv", SCALARS))
    assert result.returncode == 2
    assert "not known for 'utility'. Pass --direction utility=min" in result.stderr
    assert "Wall" not in result.stderr
    result = verax("select", tmp_path / "run-a-tag-utility.csv", "--direction", "utility=max")
    assert result.returncode == 0, result.stderr


# ---- Weights & Biases ------------------------------------------------------------------------------


def chart(*runs, counter="Step"):
    header, rows = [counter], [[0], [10], [20]]
    for run in runs:
        for metric, values in (("val/loss", [0.9, 0.4, 0.6]), ("val/acc", [0.5, 0.8, "NaN"])):
            for bound in ("", "__MIN", "__MAX"):
                header.append(f"{run} - {metric}{bound}")
                for row, value in zip(rows, values, strict=True):
                    row.append(value)
    return [header, *rows]


@pytest.mark.parametrize("counter", ["Step", "epoch", "trainer/global_step", "_step"])
def test_a_chart_of_weights_and_biases(counter, tmp_path):
    path = write(tmp_path / "wandb_export.csv", chart("fancy-sun-1", counter=counter), quoting=csv.QUOTE_ALL)
    history = History.read(path)
    assert list(history.values) == ["val/loss", "val/acc"]
    assert history.to_dict()["epochs"] == [0, 10, 20]
    assert history.counter == ("epoch" if counter == "epoch" else "step")
    assert history.notes == ("The bounds of the chart's curves (__MIN, __MAX) are left out.",)
    assert history.select().best["val/loss"].epoch == 10
    assert history.select().against == ("val/acc",)
    assert verax("select", path).returncode == 0


def test_a_chart_of_several_runs(tmp_path):
    path = write(tmp_path / "chart.csv", chart("fancy-sun-1", "wild - moon-2"), quoting=csv.QUOTE_ALL)
    with pytest.raises(vx.InputError, match="there are 'fancy-sun-1' and 'wild - moon-2'"):
        History.read(path)
    assert History.read(path, run="wild - moon-2").best("loss").value == 0.4
    assert "Pass --run fancy-sun-1." in verax("select", path).stderr


# ---- Hugging Face ----------------------------------------------------------------------------------

STATE = {
    "best_metric": 0.41,
    "best_model_checkpoint": "out/checkpoint-160",
    "epoch": 3.0,
    "global_step": 300,
    "is_world_process_zero": True,
    "log_history": [
        {"epoch": 0.5, "grad_norm": 3.1, "learning_rate": 4.2e-05, "loss": 1.1, "step": 50},
        {
            "epoch": 0.8,
            "eval_accuracy": 0.61,
            "eval_f1": 0.58,
            "eval_loss": 0.83,
            "eval_runtime": 1.9,
            "eval_samples_per_second": 521.0,
            "eval_steps_per_second": 16.3,
            "step": 80,
        },
        {"epoch": 1.0, "grad_norm": 2.2, "learning_rate": 3.3e-05, "loss": 0.7, "step": 100},
        {"epoch": 1.5, "grad_norm": 2.0, "learning_rate": 2.5e-05, "loss": 0.5, "step": 150},
        {
            "epoch": 1.6,
            "eval_accuracy": 0.72,
            "eval_f1": 0.70,
            "eval_loss": 0.66,
            "eval_runtime": 1.8,
            "step": 160,
        },
        {
            "epoch": 2.4,
            "eval_accuracy": 0.74,
            "eval_f1": 0.73,
            "eval_loss": 0.71,
            "eval_runtime": 1.8,
            "step": 240,
        },
        {"epoch": 3.0, "step": 300, "total_flos": 1e15, "train_loss": 0.6, "train_runtime": 99.0},
    ],
    "max_steps": 300,
    "num_train_epochs": 3,
}


def test_the_state_of_a_hugging_face_trainer(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(STATE))
    history = History.read(path)
    assert (history.counter, history.to_dict()["epochs"]) == ("step", [50, 80, 100, 150, 160, 240, 300])
    np.testing.assert_equal(history.values["eval_loss"], [NAN, 0.83, NAN, NAN, 0.66, 0.71, NAN])
    np.testing.assert_equal(history.values["loss"], [1.1, NAN, 0.7, 0.5, NAN, NAN, NAN])
    selection = history.select()
    assert (selection.rules, selection.against) == (("eval_loss",), ("eval_accuracy", "eval_f1"))
    assert {name: best.epoch for name, best in selection.best.items()} == {
        "eval_loss": 160,
        "eval_accuracy": 240,
        "eval_f1": 240,
    }
    assert selection.correlation("eval_loss", "eval_f1").n == 3
    result = verax("select", path)
    assert result.returncode == 0, result.stderr
    assert "No metrics of a model, and left out: grad_norm, learning_rate, eval_runtime," in result.stdout
    trainer = SimpleNamespace(state=SimpleNamespace(log_history=STATE["log_history"]))
    for state in (trainer, trainer.state, STATE, STATE["log_history"]):
        np.testing.assert_equal(History.from_huggingface(state).to_dict(), history.to_dict())
    np.testing.assert_equal(History.from_records(STATE["log_history"]).to_dict(), history.to_dict())
    for bad in (3, "log", None, SimpleNamespace(state=4)):
        with pytest.raises(vx.InputError, match="must be a Trainer, its state or its log_history"):
            History.from_huggingface(bad)


def test_whole_epochs_count_before_steps():
    log = [
        {"epoch": 1.0, "step": 50, "loss": 1.0},
        {"epoch": 1.0, "step": 50, "eval_loss": 0.9},
        {"epoch": 2.0, "step": 100, "loss": 0.8},
        {"epoch": 2.0, "step": 100, "eval_loss": 0.7},
    ]
    history = History.from_huggingface(log)
    assert (history.counter, history.to_dict()["epochs"]) == ("epoch", [1, 2])
    assert history.to_dict()["values"] == {"loss": [1.0, 0.8], "eval_loss": [0.9, 0.7]}


# ---- counters, names and notes ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["epoch", "Epoch", "step", "Step", "global_step", "_step", "iteration"])
def test_counters_number_the_rows(name):
    history = History.from_columns({name: [5, 10, 15], "val_pbs": [0.3, 0.1, 0.2]})
    assert list(history.values) == ["val_pbs"]
    assert history.best("pbs").epoch == 10
    assert history.counter == ("epoch" if name.lower() == "epoch" else "step")
    frame = history.to_frame()
    assert list(frame.columns) == [history.counter, "val_pbs"]
    assert History.from_columns(frame).to_dict() == history.to_dict()


def test_an_epoch_that_some_rows_lack_gives_way_to_the_step():
    records = [{"_step": 1, "epoch": NAN, "val_pbs": 0.3}, {"_step": 2, "epoch": 1, "val_pbs": 0.2}]
    assert History.from_records(records).to_dict()["epochs"] == [1, 2]
    with pytest.raises(vx.InputError, match="Every record must have the number of its Step if one has"):
        History.from_records([{"Step": 1, "pbs": 0.3}, {"pbs": 0.2}])


@pytest.mark.parametrize(
    ("name", "part", "direction"),
    [
        ("val_CrossEntropyLoss", "validation", "min"),
        ("val_cross_entropy", "validation", "min"),
        ("val_sparse_categorical_crossentropy", "validation", "min"),
        ("train/focal_loss", "train", "min"),
        ("eval_sst2_loss", "validation", "min"),
        ("perplexity", "", "min"),
        ("eval/rmse", "validation", "min"),
        ("valid_mlogloss", "validation", "min"),
        ("neg_log_loss", "", None),
        ("negative_log_likelihood", "", "min"),
        ("val_ROC-AUC", "validation", "max"),
        ("val_MulticlassAccuracy", "validation", "max"),
        ("val_MulticlassF1Score", "validation", "max"),
        ("test_precision_macro", "test", "max"),
        ("weighted_recall", "", "max"),
        ("class_3_f1", "", "max"),
        ("val_top5_accuracy", "validation", "max"),
        ("matthews_correlation", "", "max"),
        ("metrics/val/ece", "validation", "min"),
        ("fold1/val_accuracy", "validation", "max"),
        ("validation/epoch_loss", "validation", "min"),
        ("reward", "", None),
        ("lossless", "", None),
        ("accuracy_gap", "", None),
    ],
)
def test_common_losses_and_scores_are_known(name, part, direction):
    read = Name.of(name)
    assert (read.part, read.direction, read.rule) == (part, direction, None)


@pytest.mark.parametrize(
    "name", ["lr", "learning_rate", "eval_runtime", "Wall time", "train_steps_per_second"]
)
def test_what_is_no_metric(name):
    assert not Name.of(name).is_metric
    assert Name.of(name).direction is None


def test_notes_name_the_option_of_whoever_asks(tmp_path):
    columns = {"epoch": [1, 2], "val_pbs": [0.5, 0.4], "reward gain": [1, 2], "lr": [0.1, 0.1]}
    notes = History.from_columns(columns).select().notes
    assert "Pass directions={'reward gain': 'min'} or max to use it." in " ".join(notes)
    path = write(tmp_path / "log.csv", [list(columns), *zip(*columns.values(), strict=True)])
    result = verax("select", path)
    assert "Pass --direction 'reward gain=min' or max to use it." in result.stdout
    assert "directions=" not in result.stdout
    notes = json.loads(verax("select", path, "--json").stdout)["notes"]
    assert "--direction" in " ".join(notes)


# ---- event files -----------------------------------------------------------------------------------


def test_event_files_of_tensorboard_are_read(tmp_path):
    """Written by TensorBoard itself: scalars of two parts of the data, and a text."""
    writing = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.text.summary_v2 import text_pb

    for part, shift in (("train", 0.0), ("validation", 0.25)):
        writer = writing.EventFileWriter(str(tmp_path / part))
        for step, value in enumerate([0.75, 0.5, 0.625]):
            scalar = Summary.Value(tag="epoch_rps", simple_value=value + shift)
            writer.add_event(Event(step=10 * step, summary=Summary(value=[scalar])))
        writer.add_event(Event(step=0, summary=text_pb("note", "began")))
        writer.close()
    history = History.read(tmp_path)
    assert history.counter == "step"
    assert history.epochs.tolist() == [0, 10, 20]
    assert history.values["validation/epoch_rps"].tolist() == [1.0, 0.75, 0.875]
    assert history.best("rps").epoch == 10
    (file,) = (tmp_path / "train").iterdir()
    assert History.read(file).values["epoch_rps"].tolist() == [0.75, 0.5, 0.625]


def test_folders_without_event_files_are_refused(tmp_path):
    with pytest.raises(vx.InputError, match="must hold event files of TensorBoard"):
        History.read(tmp_path)


def test_event_files_need_tensorboard(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboard"] + ["tensorboard"]:
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "events.out.tfevents.1").write_bytes(b"0")
    with pytest.raises(
        vx.errors.MissingPackageError, match=re.escape(f"needs tensorboard: {installing('tensorboard')}")
    ):
        History.read(tmp_path)
