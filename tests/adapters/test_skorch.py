"""skorch: losses as criteria, scorers as callbacks of epochs, and searches through scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

import verax as vx

torch = pytest.importorskip("torch")
skorch = pytest.importorskip("skorch")

from sklearn.model_selection import GridSearchCV, cross_validate  # noqa: E402
from skorch.callbacks import EpochScoring  # noqa: E402
from skorch.dataset import Dataset  # noqa: E402
from skorch.helper import predefined_split  # noqa: E402

from verax.adapters.sklearn import scorer  # noqa: E402
from verax.adapters.torch import Loss  # noqa: E402

pytestmark = pytest.mark.frameworks


def rows(n=240):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    return x, np.clip(np.rint(x[:, 0] + 0.7 * rng.normal(size=n)), -1, 1).astype(np.int64) + 1


def network(**options):
    torch.manual_seed(0)
    options = {"optimizer__lr": 0.5, "max_epochs": 5, "verbose": 0, **options}
    return skorch.NeuralNetClassifier(
        torch.nn.Linear(3, 3),
        criterion=Loss,
        criterion__rule="rps",
        predict_nonlinearity=torch.nn.Softmax(dim=1),
        **options,
    )


def test_a_scorer_is_the_score_of_an_epoch():
    x, y = rows()
    scoring = EpochScoring(scorer("rps", classes=[0, 1, 2]), name="valid_rps", lower_is_better=False)
    held_out = predefined_split(Dataset(x[180:], y[180:]))
    model = network(train_split=held_out, callbacks=[scoring]).fit(x[:180], y[:180])
    history = model.history
    p = model.predict_proba(x[180:]).astype(np.float64)
    score = -vx.rps(y[180:], p / p.sum(axis=1, keepdims=True))
    assert history[-1, "valid_rps"] == pytest.approx(score, rel=1e-5)
    # The loss of skorch is that of the rule.
    assert history[-1, "valid_loss"] == pytest.approx(-score, rel=1e-4)
    assert history[-1, "train_loss"] < history[0, "train_loss"]
    assert history[0, "valid_rps_best"]


def test_searches_and_cross_validation_through_a_network():
    x, y = rows()
    rule = scorer("rps", classes=[0, 1, 2])
    model = network(train_split=None)
    search = GridSearchCV(model, {"optimizer__lr": [1e-4, 0.5]}, scoring=rule, cv=3).fit(x, y)
    assert search.best_params_ == {"optimizer__lr": 0.5}
    found = cross_validate(model, x, y, scoring={"rps": rule, "accuracy": "accuracy"}, cv=3)
    worst = -vx.rps(y, np.tile(np.bincount(y) / len(y), (len(y), 1)))
    assert (found["test_rps"] > worst).all()


def test_outputs_that_are_taken_for_probabilities_are_refused():
    x, y = rows()
    model = network(train_split=None).set_params(predict_nonlinearity=None).fit(x, y)
    with pytest.raises(vx.InputError, match="logits=True"):
        scorer("rps", classes=[0, 1, 2])(model, x, y)
