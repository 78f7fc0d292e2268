"""Histories of training and early stopping."""

from __future__ import annotations

import copy
import json
import math
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from recalibrations import drawn, softmax
from verax.selection import EarlyStopping, History, RefinementLoss
from verax.wings.select.directions import Name

NAN, INF = math.nan, math.inf

COLUMNS = {
    "epoch": [1, 2, 3, 4, 5],
    "val_brier": [0.60, 0.40, 0.42, 0.45, 0.50],
    "val_pbs": [1.20, 0.80, 0.70, 0.75, 0.90],
    "val_f1": [0.30, 0.60, 0.70, 0.72, 0.65],
    "val_accuracy": [0.40, 0.60, 0.72, 0.70, 0.70],
}


@pytest.fixture
def history():
    return History.from_columns(COLUMNS)


# ---- names and directions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "part", "rule"),
    [
        ("pbs", "", vx.pbs),
        ("val_pbs", "validation", vx.pbs),
        ("val/pbs", "validation", vx.pbs),
        ("pbs/val", "validation", vx.pbs),
        ("validation-pbs", "validation", vx.pbs),
        ("Valid RPS", "validation", vx.rps),
        ("test.rps", "test", vx.rps),
        ("train_log_score", "train", vx.log_score),
        ("eval_log", "validation", vx.log_score),
        ("val_sa_rps_epoch", "validation", vx.sa_rps),
        ("val_penalized(rps)", "validation", vx.penalized(vx.rps)),
        ("val_brier(scale='half')", "validation", vx.rules.Brier(scale="half")),
    ],
)
def test_rules_are_read_from_names(name, part, rule):
    read = Name.of(name)
    assert (read.part, read.rule, read.direction) == (part, rule, "min")


@pytest.mark.parametrize("name", vx.rules.RULES)
def test_every_registered_rule_is_known(name):
    assert Name.of(f"val_{name}").rule == vx.rules.RULES[name]


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("val_accuracy", "max"),
        ("F1", "max"),
        ("val_macro_f1", "max"),
        ("loss", "min"),
        ("val_loss", "min"),
        ("my_metric", None),
        ("neg_brier", None),
        ("neg_log_loss", None),
        ("valuepbs", None),
        ("lr", None),
        ("perplexity", "min"),
        ("1 +", None),
    ],
)
def test_directions_are_known_or_not_guessed(name, direction):
    assert Name.of(name).direction == direction


def test_an_unknown_direction_is_asked_for_only_when_it_matters():
    columns = {"pbs": [0.5, 0.4, 0.6], "my_metric": [3.0, 1.0, 2.0]}
    history = History.from_columns(columns)
    assert history.best("pbs").others == {"my_metric": 1.0}
    assert "it is not known which direction is better: my_metric" in str(history)
    for ask in (lambda: history.best("my_metric"), lambda: history.select(against="my_metric")):
        with pytest.raises(vx.InputError, match=r"directions=\{'my_metric': 'min'\} or 'max'"):
            ask()
    told = History.from_columns(columns, directions={"my_metric": "max"})
    assert told.best("my_metric").epoch == 0
    assert told.select(against="my_metric").correlation("pbs", "my_metric").n == 3


def test_what_is_said_holds_for_all_parts_and_over_what_is_known():
    history = History.from_columns(
        {"train_Gain": [1.0, 2.0], "val_Gain": [2.0, 1.0], "val_spherical": [0.1, 0.2]},
        directions={"Gain": "max", "val_spherical": "max"},
    )
    assert history.direction("train_Gain") == history.direction("val_Gain") == "max"
    assert history.best("gain").epoch == 0
    assert history.best(vx.spherical).epoch == 1


# ---- best ----------------------------------------------------------------------------------------


def test_best_epochs_and_what_else_they_brought(history):
    best = history.best("pbs")
    assert (best.metric, best.epoch, best.index, best.value, best.direction) == ("val_pbs", 3, 2, 0.7, "min")
    assert best.others == {"val_brier": 0.42, "val_f1": 0.7, "val_accuracy": 0.72}
    assert history.best("f1").epoch == 4
    assert history.best(vx.brier).epoch == 2
    assert history.best("val_accuracy").at("val_pbs") == 0.7


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, NAN, INF, -INF]), min_size=1, max_size=12))
def test_the_earliest_finite_optimum_is_best(values):
    history = History.from_columns({"rps": values, "f1": values})
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        with pytest.raises(vx.InputError, match="must have a finite value"):
            history.best("rps")
        return
    for metric, optimum in (("rps", min(finite)), ("f1", max(finite))):
        best = history.best(metric)
        assert (best.value, best.epoch) == (optimum, values.index(optimum))
        assert best.tied == values.count(optimum)
        assert best.left_out == len(values) - len(finite)


def test_the_validation_part_is_meant():
    history = History.from_columns(
        {
            "pbs": [0.1, 0.2],
            "val_pbs": [0.9, 0.8],
            "test_pbs": [0.5, 0.6],
            "val_f1": [0.1, 0.2],
            "f1": [1.0, 1.0],
        }
    )
    assert history.find("pbs") == history.find(vx.pbs) == "val_pbs"
    # Without a part in its name it is Keras's, and of the training part.
    assert history.find("train_pbs") == "pbs"
    assert history.best("train_pbs").epoch == 0
    assert history.best("pbs").epoch == 1
    assert history.find("test_pbs") == "test_pbs"
    selection = history.select()
    assert (selection.rules, selection.against) == (("val_pbs",), ("val_f1",))
    assert "Not selected by unless named: pbs, test_pbs and f1." in selection.notes
    assert history.select(rules=["train_pbs", "test_pbs"]).rules == ("pbs", "test_pbs")
    two = History.from_columns({"train_pbs": [1.0], "test_pbs": [1.0]})
    with pytest.raises(vx.InputError, match="'pbs' may be 'train_pbs' and 'test_pbs'"):
        two.find("pbs")
    with pytest.raises(vx.InputError, match="There is no 'val_pbs' in this history"):
        two.find("val_pbs")
    one = History.from_columns({"train_pbs": [1.0], "F1": [1.0]})
    assert (one.find("pbs"), one.find("f1")) == ("train_pbs", "F1")
    with pytest.raises(vx.InputError, match="There is no 'rps' in this history; it has 'train_pbs'"):
        two.find("rps")


def test_without_rules_whatever_has_a_direction_is_selected_by():
    history = History.from_columns({"val_loss": [1.0, 0.5, 0.7], "val_acc": [0.1, 0.5, 0.6], "lr": [1, 1, 1]})
    assert history.select().rules == ("val_loss",)
    assert history.select().against == ("val_acc",)
    with pytest.raises(vx.InputError, match=r"not known for 'a' and 'b'. Pass directions=\{'a'"):
        History.from_columns({"a": [1.0], "b": [2.0]}).select()


# ---- correlations --------------------------------------------------------------------------------


def ranks(values):
    """Average ranks, by counting."""
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=15),
    st.lists(st.sampled_from([NAN, INF]), max_size=3),
)
def test_correlations_of_the_finite_epochs(pairs, holes):
    x, y = ([float(pair[i]) for pair in pairs] for i in (0, 1))
    history = History.from_columns({"rps": x + holes, "f1": y + [0.5] * len(holes)})
    (found,) = history.select().correlations
    assert (found.rule, found.metric, found.n, found.left_out) == ("rps", "f1", len(x), len(holes))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(found.pearson)
        assert math.isnan(found.spearman)
        return
    # A loss and a reward: agreement is a negative correlation of the numbers as logged.
    assert found.pearson == pytest.approx(-np.corrcoef(x, y)[0, 1], abs=1e-9)
    assert found.spearman == pytest.approx(-np.corrcoef(ranks(x), ranks(y))[0, 1], abs=1e-9)


def test_the_sign_says_whether_two_metrics_agree():
    history = History.from_columns({"rps": [3.0, 2, 1], "loss": [3.0, 2, 1], "f1": [1.0, 2, 3]})
    assert history.select("rps", "f1").correlations[0].pearson == pytest.approx(1)
    assert history.select("rps", "loss").correlations[0].spearman == pytest.approx(1)
    told = History.from_columns({"rps": [3.0, 2, 1], "f1": [1.0, 2, 3]}, directions={"f1": "min"})
    assert told.select("rps", "f1").correlations[0].pearson == pytest.approx(-1)


def test_two_epochs_or_none_that_vary_have_no_correlation():
    for values in ([1.0, 2.0], [0.1, 0.1, 0.1], [0.1, 0.1 + 1e-17, 0.1]):
        selection = History.from_columns({"rps": values, "f1": range(len(values))}).select()
        assert math.isnan(selection.correlations[0].pearson)
        assert any(note.startswith("No correlation with fewer than 3") for note in selection.notes)


def test_a_rule_without_any_finite_value_is_noted():
    history = History.from_columns({"log": [INF, INF, INF], "pbs": [0.3, 0.2, 0.1], "f1": [0.1, 0.2, 0.3]})
    selection = history.select()
    assert selection.rules == ("pbs",)
    assert "log has no finite value in any epoch." in selection.notes
    with pytest.raises(vx.InputError, match="nothing to select by"):
        History.from_columns({"log": [INF, NAN]}).select()


# ---- out -----------------------------------------------------------------------------------------


def test_the_table(history):
    text = str(history)
    assert text == str(history.select())
    lines = text.splitlines()
    assert lines[0] == "verax selection: 5 epochs"
    assert lines[1].startswith("Keep epoch ")
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("best by")) - 1 :]
    assert lines[1].split() == ["best", "by", "is", "epoch", "val_brier", "val_pbs", "val_f1", "val_accuracy"]
    assert lines[4].split() == ["val_pbs", "lowest", "3", "0.4200", "0.7000*", "0.7000", "0.7200"]
    assert repr(history) == "History of 5 epochs: val_brier, val_pbs, val_f1, val_accuracy"
    page = history._repr_html_()
    assert page.count("<table>") == 2
    assert "<td>0.7000*</td>" in page
    alone = History.from_columns({"<b>": [1.0]}, directions={"<b>": "min"})._repr_html_()
    assert "&lt;b&gt;" in alone
    assert alone.count("<table>") == 1


def test_dictionaries_and_frames(history):
    plain = history.select().to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["best"]["val_pbs"]["epoch"] == 3
    assert plain["best"]["val_pbs"]["others"]["val_f1"] == 0.7
    assert {(c["rule"], c["metric"]) for c in plain["correlations"]} == {
        (rule, metric) for rule in ("val_brier", "val_pbs") for metric in ("val_f1", "val_accuracy")
    }
    assert history.to_dict()["values"]["val_pbs"] == COLUMNS["val_pbs"]
    assert history.to_dict()["epochs"] == COLUMNS["epoch"]
    for kind in ("pandas", "polars", "pyarrow"):
        again = History.from_columns(history.to_frame(kind))
        assert again.to_dict() == history.to_dict()
    frame = history.select().to_frame()
    assert frame["rule"].tolist() == ["val_brier", "val_pbs", "val_f1", "val_accuracy"]
    assert frame["epoch"].tolist() == [2, 3, 4, 3]
    assert frame["val_f1"].tolist() == [0.6, 0.7, 0.72, 0.7]


@pytest.mark.long
@pytest.mark.parametrize("against", [None, []])
def test_the_plot_marks_every_optimum(history, against, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    figure = history.select(against=against).plot()
    rules = ["val_brier", "val_pbs", "val_f1", "val_accuracy"][: 2 if against is None else 4]
    panels = figure.axes
    if against is None:
        top, *panels = panels
        dots = [line.get_xydata().tolist()[0] for line in top.lines if line.get_marker() == "o"]
        assert sorted(dots) == sorted([[2.0, 0.6], [3.0, 0.7], [2.0, 0.6], [3.0, 0.72]])
    for ax, name in zip(panels, history.select(against=against).rules, strict=True):
        best = history.best(name)
        star = next(line for line in ax.lines if line.get_marker() == "*")
        assert star.get_xydata().tolist() == [[best.epoch, best.value]]
        assert ax.get_title().startswith(f"{name}: epoch {best.epoch}")
        assert name in rules
    figure.savefig(tmp_path / "history.png")
    assert (tmp_path / "history.png").stat().st_size > 5000
    import matplotlib.pyplot as plt

    plt.close(figure)


# ---- in ------------------------------------------------------------------------------------------


def test_every_form_gives_the_same_history(history, tmp_path):
    records = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    table = "\n".join(",".join(map(str, row)) for row in [list(COLUMNS), *(r.values() for r in records)])
    (tmp_path / "h.csv").write_text(table, encoding="utf-8-sig")
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n\n")
    (tmp_path / "records.json").write_text(json.dumps(records))
    (tmp_path / "columns.json").write_text(json.dumps(COLUMNS))
    keras = {name: values for name, values in COLUMNS.items() if name != "epoch"}
    made = [
        History.from_records(records),
        History.from_csv(tmp_path / "h.csv"),
        History.from_jsonl(str(tmp_path / "h.jsonl")),
        *(History.read(tmp_path / name) for name in ("h.csv", "h.jsonl", "records.json", "columns.json")),
    ]
    assert all(other.to_dict() == history.to_dict() for other in made)
    unnumbered = History.from_keras(keras)
    assert unnumbered.to_dict()["epochs"] == [0, 1, 2, 3, 4]
    assert unnumbered.to_dict()["values"] == history.to_dict()["values"]
    assert pickle.loads(pickle.dumps(history)).to_dict() == history.to_dict()


def test_records_of_one_epoch_are_brought_together():
    history = History.from_records(
        [
            {"epoch": 1, "step": 10, "train_loss": 0.9},
            {"epoch": 1, "step": 20, "train_loss": 0.7},
            {"epoch": 1, "step": 20, "val_pbs": 0.5, "run": "a"},
            {"epoch": 0, "step": 9, "val_pbs": 0.8, "val_f1": None},
            {"epoch": 2.5, "val_pbs": float("nan"), "val_f1": ""},
        ]
    )
    plain = history.to_dict()
    assert plain["epochs"] == [0, 1, 2.5]
    np.testing.assert_equal(plain["values"]["val_pbs"], [0.8, 0.5, None])
    np.testing.assert_equal(plain["values"]["train_loss"], [None, 0.7, None])
    assert list(plain["values"]) == ["train_loss", "val_pbs", "val_f1"]
    assert history.notes == (
        "Not numbers, and left out: run.",
        "Several values in one epoch, of which the last one counts: train_loss.",
    )


def run(code, *arguments, **environment):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


LIGHTNING = """
import sys, torch, lightning.pytorch as pl

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = torch.nn.Linear(2, 2), []
    def training_step(self, batch, _):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss
    def validation_step(self, batch, _):
        p = self.layer(batch[0]).softmax(1)
        self.log("val_brier", ((p - torch.nn.functional.one_hot(batch[1], 2)) ** 2).sum(1).mean())
        self.log("val_accuracy", (p.argmax(1) == batch[1]).float().mean())
    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.seen.append(float(self.trainer.callback_metrics["val_brier"]))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.5)

torch.manual_seed(0)
x = torch.randn(64, 2)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, (x[:, 0] > 0).long()), 16)
model, logger = Model(), pl.loggers.CSVLogger(sys.argv[1], name="", version="")
pl.Trainer(max_epochs=3, logger=logger, accelerator="cpu", enable_progress_bar=False, log_every_n_steps=2,
           enable_model_summary=False, enable_checkpointing=False).fit(model, data, data)
print(model.seen)
"""


@pytest.mark.long
@pytest.mark.skipif(find_spec("lightning") is None, reason="Lightning is not installed")
def test_a_log_of_lightning(tmp_path):
    seen = json.loads(run(LIGHTNING, tmp_path).splitlines()[-1])
    history = History.from_csv(tmp_path / "metrics.csv")
    assert history.to_dict()["epochs"] == [0, 1, 2]
    np.testing.assert_allclose(history.values["val_brier"], seen, rtol=1e-6)
    assert history.best("brier").epoch == int(np.argmin(seen))
    assert history.select().against == ("val_accuracy",)
    assert np.isfinite(history.values["train_loss_epoch"]).all()
    assert history.direction("train_loss_epoch") == "min"
    assert "the last one counts: train_loss_step." in " ".join(history.notes)


KERAS = """
import sys, json, numpy as np, keras
from verax.selection import History
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(60, 2)); y = (x[:, 0] > 0).astype(int)
model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
log = keras.callbacks.CSVLogger(sys.argv[1])
fitted = model.fit(x, y, validation_split=0.3, epochs=3, verbose=0, callbacks=[log])
made = History.from_keras(fitted), History.from_keras(fitted.history), History.from_csv(sys.argv[1])
for history in made:
    print(json.dumps([history.to_dict(), fitted.history, history.best("loss").metric]))
"""


@pytest.mark.long
@pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed")
def test_a_history_of_keras(tmp_path):
    for line in run(KERAS, tmp_path / "log.csv", KERAS_BACKEND="torch").splitlines()[-3:]:
        plain, fitted, best = json.loads(line)
        assert plain["epochs"] == [0, 1, 2]
        assert plain["values"].keys() == fitted.keys() == {"loss", "accuracy", "val_loss", "val_accuracy"}
        for name, values in fitted.items():
            np.testing.assert_allclose(plain["values"][name], values, rtol=1e-6)
        assert best == "val_loss"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: History.from_records([]), "no epochs to select from"),
        (lambda d: History.from_records([1.0]), "record 0 is 1"),
        (lambda d: History.from_records([{"epoch": 0}]), "No column besides the epoch"),
        (lambda d: History.from_records([{"epoch": 0, "a": 1}, {"a": 2}]), "record 1 has None"),
        (lambda d: History.from_columns({"a": [1, 2], "b": [1]}), "'a' has 2 and 'b' has 1"),
        (lambda d: History.from_columns(3), "a mapping of names to lists or a data frame, not 3"),
        (lambda d: History.from_keras([1]), "what model.fit returns, or its history dictionary, not a list"),
        (lambda d: History.from_csv(d / "none.csv"), "There is no file"),
        (
            lambda d: History.read(d / "a.txt"),
            "must end in .csv, .jsonl, .ndjson and .json, or be event files of TensorBoard; a.txt does not",
        ),
        (lambda d: History.read(d / "ragged.csv"), "row 3 has more or fewer"),
        (lambda d: History.read(d / "empty.csv"), "empty.csv is empty"),
        (lambda d: History.read(d / "bad.jsonl"), "line 2 is not"),
        (lambda d: History.read(d / "bad.json"), "bad.json: The file must be JSON"),
        (lambda d: History.from_columns({"a": [1]}, directions={"a": "up"}), "for 'a' it is 'up'"),
        (lambda d: History.from_columns({"a": [1]}, directions={"b": "min"}), "'b' is none"),
    ],
)
def test_refusals_of_histories(make, message, tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\nnonsense\n')
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(vx.InputError, match=message):
        make(tmp_path)


def test_a_pair_that_was_not_asked_for():
    history = History.from_columns({"rps": [1.0, 2, 3], "pbs": [1.0, 2, 3], "f1": [1.0, 2, 3]})
    with pytest.raises(KeyError, match="'rps' and 'pbs' were not correlated"):
        history.select().correlation("rps", "pbs")


# ---- early stopping ------------------------------------------------------------------------------


def by_definition(values, sign, patience, min_delta, warmup):
    """Best epoch, stopping epoch and epochs waited, from the definition, looking back every time."""
    best = best_epoch = stop = None
    waited = 0
    for i, value in enumerate(values):
        if i < warmup:
            continue
        if math.isfinite(value) and (best is None or sign * (best - value) > min_delta):
            best, best_epoch, waited = value, i, 0
        else:
            waited += 1
        if waited and waited >= patience and stop is None:
            stop = i
    return best, best_epoch, stop


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0, NAN, INF, -INF]), max_size=20),
    st.sampled_from(["min", "max"]),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.15]),
    st.integers(0, 3),
    st.integers(0, 20),
)
def test_stopping_by_definition_and_resumed_anywhere(values, mode, patience, min_delta, warmup, cut):
    def make():
        return EarlyStopping(mode=mode, patience=patience, min_delta=min_delta, warmup=warmup, restore=True)

    expected = by_definition(values, 1 if mode == "min" else -1, patience, min_delta, warmup)
    stopping, stop = make(), None
    for i, value in enumerate(values):
        if i == cut:
            saved = pickle.loads(pickle.dumps(stopping.state_dict()))
            stopping = make()
            stopping.load_state_dict(saved)
        if stopping.step(value, state=[i]) and stop is None:
            stop = i
    assert (stopping.best, stopping.best_epoch, stop) == expected
    assert stopping.epoch == len(values)
    assert stopping.n_not_finite == sum(not math.isfinite(v) for v in values)
    if stopping.best is not None:
        assert stopping.best_state == [stopping.best_epoch]


def test_a_rule_is_a_loss():
    for rule in ("pbs", vx.sa_rps, "penalized(rps)"):
        assert EarlyStopping(rule).mode == "min"
    stopping = EarlyStopping("pbs", patience=2)
    assert [stopping.step(v) for v in (0.5, 0.4, 0.4, 0.41)] == [False, False, False, True]
    assert EarlyStopping("pbs").step(np.array([0.5])) is False
    assert repr(stopping) == "EarlyStopping('pbs', patience=2): best 0.4 in epoch 1, waited 2"
    assert (
        repr(EarlyStopping(mode="max"))
        == "EarlyStopping(mode='max', patience=10): best nothing yet, waited 0"
    )


def test_metrics_of_cards_have_a_direction_and_are_computed():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    epochs = [rng.dirichlet(np.ones(3), 60) for _ in range(4)]
    higher = {"accuracy": True, "qwk": True, "auc": True, "ece": False, "mae": False, "skill": True}
    for name, larger in higher.items():
        stopping = EarlyStopping(name, patience=0)
        values = [vx.evaluate(y, p, ordered=name in ("qwk", "mae"))[name] for p in epochs]
        stops = [stopping.step(y=y, p=p) for p in epochs]
        best = [values[i] == (max if larger else min)(values[: i + 1]) for i in range(4)]
        assert stops == [not new for new in best]
        assert stopping.best == pytest.approx((max if larger else min)(values))
        assert (stopping.mode, stopping.metric) == ("max" if larger else "min", name)
        again = EarlyStopping(name)
        again.load_state_dict(stopping.state_dict())
        assert again.best == stopping.best
        assert repr(again).startswith(f"EarlyStopping({name!r}, patience=10): best ")
    with pytest.raises(vx.InputError, match="the same rule; it has 'skill', this has 'brier'"):
        EarlyStopping("brier").load_state_dict(stopping.state_dict() | {"mode": "min"})


def test_states_are_copied_and_read_only_when_they_improve():
    weights, calls = {"w": [0.0]}, []

    def snapshot():
        calls.append(None)
        return weights

    stopping = EarlyStopping(mode="max", restore=True)
    for i, value in enumerate([0.1, 0.3, 0.2]):
        weights["w"][0] = float(i)
        stopping.step(value, state=snapshot)
    assert stopping.best_state == {"w": [1.0]}
    assert len(calls) == 2
    # What was saved does not change with training that goes on.
    saved = stopping.state_dict()
    stopping.step(0.9, state=weights)
    weights["w"][0] = 7.0
    assert (saved["state"], stopping.best_state) == ({"w": [1.0]}, {"w": [2.0]})


def test_torch_models_are_restored():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    stopping = EarlyStopping(vx.brier, patience=2, restore=True)
    kept = None
    for value in [1.0, 0.5, 0.7, 0.8]:
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().mean().backward()
        optimizer.step()
        if value == 0.5:
            kept = copy.deepcopy(model.state_dict())
        stop = stopping.step(torch.tensor(value, requires_grad=True), state=model.state_dict)
    assert stop
    assert not torch.equal(model.weight, kept["weight"])
    model.load_state_dict(stopping.best_state)
    assert torch.equal(model.weight, kept["weight"])
    with pytest.raises(vx.InputError, match=r"not a Linear\. Pass its state_dict"):
        stopping.step(0.1, state=model)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EarlyStopping(), "never guessed. Pass mode=.*or rule="),
        (lambda: EarlyStopping("pbs", mode="max"), "only then.*never guessed"),
        (lambda: EarlyStopping(mode="auto"), "`mode` must be 'min' or 'max', not 'auto'"),
        (lambda: EarlyStopping("val_pbs"), "no rule called 'val_pbs'"),
        (
            lambda: EarlyStopping("pbs", patience=-1),
            "`patience` must be a whole number of at least 0, not -1",
        ),
        (lambda: EarlyStopping("accuracy", mode="max"), "only then.*never guessed"),
        (lambda: EarlyStopping("slope"), "of slope, nearest to 1 is best. Pass rule='log_score'"),
        (lambda: EarlyStopping("pbs", warmup=-1), "`warmup` must be a whole number of at least 0, not -1"),
        (lambda: EarlyStopping("pbs", min_delta=-0.1), "`min_delta` must be a finite number"),
        (lambda: EarlyStopping("pbs").step("low"), "`value` must be one number, not 'low'"),
        (lambda: EarlyStopping("pbs").step([1, 2]), "`value` must be one number"),
        (lambda: EarlyStopping("pbs", restore=True).step(0.5), "`state` must be given to every step"),
        (lambda: EarlyStopping("pbs").step(0.5, state={}), "would not be kept. Pass restore=True"),
        (lambda: EarlyStopping("pbs").best_state, "No state was kept"),
        (lambda: EarlyStopping("pbs", restore=True).best_state, "no best state"),
        (lambda: EarlyStopping("pbs").load_state_dict({"mode": "min"}), "it lacks best, best_epoch, epoch"),
        (
            lambda: EarlyStopping("pbs").load_state_dict(EarlyStopping("rps").state_dict()),
            "the same rule; it has 'rps', this has 'pbs'",
        ),
    ],
)
def test_refusals_of_early_stopping(make, message):
    with pytest.raises(vx.VeraxError, match=message):
        make()


def test_selection_needs_neither_scikit_learn_nor_a_framework():
    code = """
import sys, verax as vx
vx.selection.EarlyStopping("pbs").step(0.5)
vx.selection.History.from_columns({"pbs": [0.1]}).best("pbs")
print(sorted({"sklearn", "torch", "keras", "pandas", "matplotlib"} & set(sys.modules)))
"""
    assert run(code) == "[]\n"


def test_a_metric_that_is_no_rule_needs_a_direction():
    with pytest.raises(vx.errors.ParseError, match="leave it out and say mode='min' or mode='max'"):
        EarlyStopping("val_loss")


# ---- the loss after recalibration -----------------------------------------------------------------


def overconfident(n_epochs=8):
    """Validation forecasts that rank better and better, and become overconfident on the way."""
    y, _, q = drawn(300, 3, seed=2)
    z = np.log(q)
    noise = np.random.default_rng(0).normal(size=z.shape)
    return y, [softmax((0.3 + i) * (z + 2 * noise / (i + 1))) for i in range(n_epochs)]


def test_stopping_by_refinement_keeps_learning_while_the_loss_rises():
    y, epochs = overconfident()
    by = {
        "loss": EarlyStopping("log_score", patience=2),
        "refinement": EarlyStopping(monitor="refinement", patience=2, restore=True),
    }
    for i, p in enumerate(epochs):
        for name, stopping in by.items():
            if not stopping.should_stop:
                stopping.step(
                    y=y, p=np.log(p), logits=True, **({"state": [i]} if name == "refinement" else {})
                )
    assert by["loss"].best == pytest.approx(min(vx.log_score(y, p) for p in epochs), rel=1e-9)
    assert by["loss"].best_epoch < by["refinement"].best_epoch == len(epochs) - 1
    assert by["refinement"].best_state == [len(epochs) - 1]
    last = vx.refinement(y, epochs[-1], rule="log_score", method="temperature").refinement.value
    assert by["refinement"].best == pytest.approx(last, rel=1e-4)
    again = EarlyStopping(monitor="refinement")
    again.load_state_dict(by["refinement"].state_dict())
    assert again.best == by["refinement"].best
    with pytest.raises(vx.InputError, match="must have the same monitor"):
        EarlyStopping("log_score").load_state_dict(by["refinement"].state_dict())


def test_stopping_takes_values_or_rows():
    y, (p, *_) = overconfident(1)
    by_rows, by_value = (EarlyStopping("brier", monitor="refinement", method="bcts") for _ in range(2))
    by_rows.step(y=y, p=p)
    by_value.step(vx.refinement(y, p, rule="brier", method="bcts"))
    assert by_rows.best == by_value.best
    with pytest.raises(vx.InputError, match="beside `y` and `p`"):
        by_rows.step(0.5, y=y, p=p)
    with pytest.raises(vx.InputError, match="only rules and metrics of a card are computed"):
        EarlyStopping(mode="min").step(y=y, p=p)
    with pytest.raises(vx.InputError, match="must be one of 'refinement', not 'loss'"):
        EarlyStopping(monitor="loss")
    with pytest.raises(vx.InputError, match="a direction is never guessed"):
        EarlyStopping(monitor="refinement", mode="max")


def test_a_history_of_predictions():
    y, epochs = overconfident()
    history = History.from_predictions({10 * i: (y, p) for i, p in enumerate(epochs)})
    assert history.best("refinement").epoch == 70 > history.best("log_score").epoch
    assert list(history.values) == ["brier", "log_score", "pbs", "refinement", "macro_f1", "accuracy"]
    assert history.values["pbs"].tolist() == [pytest.approx(vx.pbs(y, p), rel=1e-12) for p in epochs]
    assert history.select().rules == ("brier", "log_score", "pbs", "refinement")
    table = pd.DataFrame(epochs[0], columns=list("abc")).assign(target=np.array([*"abc"])[y])
    opened = vx.scan(table, target="target", classes=list("abc"))
    one = History.from_predictions({1: opened}, ["rps_refinement", "brier"])
    assert one.values["rps_refinement"][0] == pytest.approx(RefinementLoss("rps")(y, epochs[0]), rel=1e-6)
    with pytest.raises(vx.InputError, match="epoch 3 holds 5"):
        History.from_predictions({3: 5})
    with pytest.raises(vx.InputError, match="mapping of epochs"):
        History.from_predictions([])
    logged = History.from_columns({"val_brier_refinement": [0.3, 0.2], "val_loss": [0.1, 0.2]})
    assert logged.select().rules == ("val_brier_refinement",)
    assert logged.best("brier_refinement").epoch == 1
