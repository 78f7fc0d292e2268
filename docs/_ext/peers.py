"""What other packages print for the same forecasts, computed when the site is built.

Each line states which expression of verax gives the number of the other package; the build fails where the
two numbers differ.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

import verax as vx

# Five forecasts of three classes; in the last, two classes tie. And four of two classes.
Y = np.array([0, 1, 2, 2, 1])
P = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])
Y2 = np.array([0, 1, 1, 0])
P2 = np.array([[0.8, 0.2], [0.3, 0.7], [0.55, 0.45], [0.9, 0.1]])
# An outcome that was thought impossible.
Y0, P0 = np.array([1, 0]), np.array([[1.0, 0.0], [0.75, 0.25]])
NAMES = {"y": Y, "p": P, "y2": Y2, "p2": P2, "y0": Y0, "p0": P0, "vx": vx, "np": np}


@dataclass(frozen=True)
class Peer:
    """One line of comparison: an expression of another package and one of verax.

    Attributes
    ----------
    package : the package, as it is installed.
    theirs : the expression, with `y`, `p` and so on as above.
    ours : the expression of verax.
    note : what is different, where something is.
    same : whether both must give the same number.
    modules : what the expression imports, by the names it uses.
    """

    package: str
    theirs: str
    ours: str
    note: str = ""
    same: bool = True
    modules: tuple[tuple[str, str], ...] = ()

    def numbers(self) -> tuple[float, float]:
        """The number of the other package and that of verax; refused where they should agree and differ."""
        names = {name: import_module(module) for name, module in self.modules}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (float(eval(text, {**NAMES, **names})) for text in (self.theirs, self.ours))
        if self.same != math.isclose(theirs, ours, rel_tol=1e-6):
            raise ValueError(f"{self.package}: {self.theirs} is {theirs}, {self.ours} is {ours}")
        return theirs, ours


def _of(package: str, **modules: str) -> Callable[..., Peer]:
    def peer(theirs: str, ours: str, note: str = "", *, same: bool = True) -> Peer:
        return Peer(package, theirs, ours, note, same, tuple(modules.items()))

    return peer


_sklearn = _of("scikit-learn", metrics="sklearn.metrics")
_scoringrules = _of("scoringrules", sr="scoringrules")
_torch = _of("torch", torch="torch", F="torch.nn.functional")
_torchmetrics = _of("torchmetrics", torch="torch", tm="torchmetrics.functional.classification")
_scipy = _of("scipy", stats="scipy.stats")
_printed = _of("superior-scoring-rules")

_FREQUENCIES = "np.tile(np.bincount(y) / len(y), (len(y), 1))"

PEERS: dict[str, list[Peer]] = {
    "brier": [
        _sklearn("metrics.brier_score_loss(y, p)", "vx.brier(y, p)", "three classes and more: the sum"),
        _sklearn(
            "metrics.brier_score_loss(y2, p2)",
            "vx.rules.Brier('half')(y2, p2)",
            "two classes: half of the sum",
        ),
        _scoringrules(
            "sr.brier_score(y2, p2[:, 1]).mean()", "vx.rules.Brier('half')(y2, p2)", "two classes only"
        ),
        _sklearn(
            "metrics.d2_brier_score(y, p)",
            f"1 - vx.brier(y, p) / vx.brier(y, {_FREQUENCIES})",
            "skill against the frequencies of the same rows; larger is better",
        ),
    ],
    "log_score": [
        _sklearn("metrics.log_loss(y, p)", "vx.log_score(y, p)"),
        _sklearn(
            "metrics.log_loss(y0, p0)",
            "vx.rules.Log(clip=np.finfo(float).eps)(y0, p0)",
            "an outcome of probability 0: clipped at the smallest step of a float, silently; `vx.log_score` "
            "is infinite there",
        ),
        _torch("F.nll_loss(torch.tensor(p).log(), torch.tensor(y))", "vx.log_score(y, p)"),
        _scoringrules("sr.log_score(y2, p2[:, 1]).mean()", "vx.log_score(y2, p2)", "two classes only"),
        _sklearn(
            "metrics.d2_log_loss_score(y, p)",
            f"1 - vx.log_score(y, p) / vx.log_score(y, {_FREQUENCIES})",
            "skill against the frequencies of the same rows; larger is better",
        ),
    ],
    "zero_one": [
        _sklearn(
            "metrics.zero_one_loss(y, p.argmax(1))",
            "vx.rules.ZeroOne('lowest')(y, p)",
            "ties go to the first class; `vx.zero_one` shares them",
        ),
        _torchmetrics(
            "1 - tm.multiclass_accuracy(torch.tensor(p), torch.tensor(y), num_classes=3, average='micro')",
            "vx.rules.ZeroOne('lowest')(y, p)",
        ),
        _torchmetrics(
            "1 - tm.multiclass_accuracy(torch.tensor(p), torch.tensor(y), num_classes=3)",
            "vx.rules.ZeroOne('lowest')(y, p)",
            "without `average`, a mean over the classes: another number",
            same=False,
        ),
    ],
    "rps": [
        _scoringrules(
            "sr.rps_score(y + 1, p).mean()",
            "vx.rules.RPS(normalized=False)(y, p)",
            "the sum over the thresholds, K - 1 times `vx.rps`; outcomes count from 1",
        ),
    ],
    "ranked_log": [
        _scoringrules(
            "sr.rls_score(y + 1, p).mean()",
            "2 * vx.ranked_log(y, p)",
            "the sum over the thresholds, K - 1 times `vx.ranked_log`; outcomes count from 1",
        ),
    ],
    "abs_rps": [
        _scipy(
            "np.mean([stats.wasserstein_distance(range(3), [k], row) for k, row in zip(y, p)])",
            "vx.rules.AbsRPS(normalized=False)(y, p)",
            "the distance of the forecast from a point mass at the outcome",
        ),
    ],
    "sa_rps": [
        _scipy(
            "np.mean([(stats.wasserstein_distance(range(3), [k], row) / 2) ** 2 for k, row in zip(y, p)])",
            "vx.sa_rps(y, p)",
            "the squared distance from a point mass, over (K - 1)^2",
        ),
    ],
    "pbs": [
        _printed(
            "vx.compat.pbs(y, p)",
            "vx.pbs(y, p)",
            "the released code divides the Brier score by K and not the penalty, and counts a tie with the "
            "outcome as right (`vx.compat.pbs` prints its numbers)",
            same=False,
        ),
    ],
    "pll": [
        _printed(
            "vx.compat.pll(y, p)",
            "vx.pll(y, p)",
            "the released code clips at 1e-7 and counts a tie with the outcome as right (`vx.compat.pll` "
            "prints its numbers)",
            same=False,
        ),
    ],
}

_DECIDED, _DECIDED2 = "p.argmax(1)", "p2.argmax(1)"
METRIC_PEERS: dict[str, list[Peer]] = {
    "accuracy": [_sklearn(f"metrics.accuracy_score(y, {_DECIDED})", "1 - vx.rules.ZeroOne('lowest')(y, p)")],
    "qwk": [
        _sklearn(
            f"metrics.cohen_kappa_score(y, {_DECIDED}, weights='quadratic', labels=[0, 1, 2])",
            f"vx.kappa(y, {_DECIDED}, n_classes=3)",
            "without `labels`, scikit-learn measures distances between the classes that occur",
        )
    ],
    "linear_kappa": [
        _sklearn(
            f"metrics.cohen_kappa_score(y, {_DECIDED}, weights='linear', labels=[0, 1, 2])",
            f"vx.kappa(y, {_DECIDED}, n_classes=3, kind='linear')",
        )
    ],
    "kappa": [
        _sklearn(
            f"metrics.cohen_kappa_score(y, {_DECIDED})",
            f"vx.kappa(y, {_DECIDED}, n_classes=3, kind='unweighted')",
        )
    ],
    "ec": [
        _sklearn(
            f"metrics.mean_squared_error(y, {_DECIDED})",
            f"vx.expected_cost(y, {_DECIDED}, n_classes=3)",
            "quadratic costs, not normalized, are the squared error of the class positions",
        )
    ],
    "balanced_accuracy": [
        _sklearn(f"metrics.balanced_accuracy_score(y, {_DECIDED})", "vx.evaluate(y, p)['balanced_accuracy']")
    ],
    "macro_f1": [
        _sklearn(f"metrics.f1_score(y, {_DECIDED}, average='macro')", "vx.evaluate(y, p)['macro_f1']")
    ],
    "mae": [
        _sklearn(
            f"metrics.mean_absolute_error(y, {_DECIDED})",
            f"vx.expected_cost(y, {_DECIDED}, n_classes=3, costs='linear')",
        )
    ],
    "macro_ppv": [
        _sklearn(f"metrics.precision_score(y, {_DECIDED}, average='macro')", "vx.evaluate(y, p)['macro_ppv']")
    ],
    "sensitivity": [_sklearn(f"metrics.recall_score(y2, {_DECIDED2})", "vx.evaluate(y2, p2)['sensitivity']")],
    "ppv": [_sklearn(f"metrics.precision_score(y2, {_DECIDED2})", "vx.evaluate(y2, p2)['ppv']")],
    "f1": [_sklearn(f"metrics.f1_score(y2, {_DECIDED2})", "vx.evaluate(y2, p2)['f1']")],
}


def version_of(package: str) -> str:
    """The version of a package that the numbers are of."""
    return "1.0.6" if package == "superior-scoring-rules" else version(package).partition("+")[0]


def data_as_text() -> str:
    """The forecasts as Python code."""
    arrays: dict[str, Any] = {name: NAMES[name] for name in ("y", "p", "y2", "p2", "y0", "p0")}
    return "\n".join(f"{name} = np.array({value.tolist()})" for name, value in arrays.items())
