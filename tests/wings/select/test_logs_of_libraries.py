"""Histories that boosting libraries write themselves: which part, which metric, which way is better."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from commandline import verax
from verax.selection import History

pytestmark = pytest.mark.frameworks


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    return x[:120], y[:120], x[120:], y[120:]


def selected(path):
    ran = verax("select", path, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def check(path, column, values, better=np.argmin):
    """The column that is selected by, and the place of its optimum, which NumPy finds as well."""
    history = History.read(path)
    assert history.judged[0] == column
    best = history.best(column)
    assert best.epoch == history.epochs[better(values)]
    assert column in json.dumps(selected(path))


def test_xgboost_numbers_its_sets(data, tmp_path):
    xgb = pytest.importorskip("xgboost")
    x, y, xv, yv = data
    model = xgb.XGBClassifier(n_estimators=8, eval_metric=["logloss", "auc"], n_jobs=1)
    model.fit(x, y, eval_set=[(x, y), (xv, yv)], verbose=False)
    found = model.evals_result()
    (tmp_path / "evals.json").write_text(json.dumps(found))
    # The first set is that of training, whose loss falls to the end.
    check(tmp_path / "evals.json", "validation_1-logloss", found["validation_1"]["logloss"])


def test_xgboost_cross_validation(data, tmp_path):
    xgb = pytest.importorskip("xgboost")
    x, y, _, _ = data
    frame = xgb.cv({"objective": "binary:logistic", "nthread": 1}, xgb.DMatrix(x, y), 6, nfold=3, seed=0)
    frame.to_csv(tmp_path / "cv.csv")
    check(tmp_path / "cv.csv", "test-logloss-mean", frame["test-logloss-mean"].to_numpy())


def test_lightgbm(data, tmp_path):
    lgb = pytest.importorskip("lightgbm")
    x, y, xv, yv = data
    found: dict = {}
    train = lgb.Dataset(x, y)
    options = {"objective": "binary", "metric": ["binary_logloss", "auc"], "verbose": -1, "num_threads": 1}
    lgb.train(
        options,
        train,
        8,
        valid_sets=[train, train.create_valid(xv, yv)],
        valid_names=["train", "valid"],
        callbacks=[lgb.record_evaluation(found)],
    )
    columns = {f"{part}_{name}": values for part, own in found.items() for name, values in own.items()}
    pd.DataFrame(columns).to_csv(tmp_path / "lgb.csv", index_label="iteration")
    check(tmp_path / "lgb.csv", "valid_binary_logloss", found["valid"]["binary_logloss"])


def test_catboost(data, tmp_path):
    catboost = pytest.importorskip("catboost")
    x, y, xv, yv = data
    model = catboost.CatBoostClassifier(
        iterations=8, thread_count=1, allow_writing_files=False, verbose=False, loss_function="Logloss"
    )
    model.fit(x, y, eval_set=(xv, yv))
    found = model.get_evals_result()
    (tmp_path / "evals.json").write_text(json.dumps(found))
    check(tmp_path / "evals.json", "validation-Logloss", found["validation"]["Logloss"])


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        (["train_binary_logloss", "valid_binary_logloss"], ["valid_binary_logloss"]),
        (["validation_0-mlogloss"], ["validation_0-mlogloss"]),
        (["train-logloss-mean", "train-logloss-std", "test-logloss-mean"], ["test-logloss-mean"]),
        (["learn_Logloss", "test_Logloss"], ["test_Logloss"]),
        (["loss", "accuracy", "val_loss", "val_accuracy"], ["val_loss", "val_accuracy"]),
        (["train_loss_step", "train_loss_epoch", "val_loss", "val_acc"], ["val_loss", "val_acc"]),
    ],
)
def test_names_of_metrics(columns, chosen):
    assert list(History.from_columns({name: [3, 1, 2] for name in columns}).judged) == chosen
