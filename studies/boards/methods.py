"""The methods: those of verax, those of other packages, and doing nothing.

A method takes rows to learn from and rows to recalibrate, and returns the latter. Packages are imported when
they are asked for; a method whose package is absent is left out, by name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import verax as vx
from boards.experiments import Rows
from verax.wings.recalibrate.records import BLEND, TITLES

NOTHING, BEST = "doing nothing", "verax: best"
ALL_OF_VERAX = (BEST, f"verax: {BLEND}")


@dataclass(frozen=True)
class Method:
    """A method of a package.

    Attributes
    ----------
    name : str
        "package: method".
    run : callable
        Recalibrated rows, from the rows of a split and whether classes have an order.
    needs : str
        The package; empty for verax itself.
    most_classes : int
        The largest number of classes that it is for, or that it can be waited for.
    ordered : bool
        Whether it is for ordered classes only.
    """

    name: str
    run: Callable[[Rows, bool], np.ndarray]
    needs: str = ""
    fewest_classes: int = 2
    most_classes: int = 10**6
    ordered: bool = False

    def fits(self, n_classes: int, *, ordered: bool) -> bool:
        """Whether the method is for such forecasts."""
        return self.fewest_classes <= n_classes <= self.most_classes and (ordered or not self.ordered)

    @property
    def installed(self) -> bool:
        return not self.needs or importlib.util.find_spec(self.needs) is not None

    @property
    def own(self) -> bool:
        """Whether it is one of the single methods of verax, which "best" chooses among."""
        return not self.needs and self.name not in (NOTHING, *ALL_OF_VERAX)

    def __call__(self, rows: Rows, *, ordered: bool) -> np.ndarray:
        """The recalibrated test rows: finite, and each of sum one."""
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            q = np.asarray(self.run(rows, ordered), float)
        if q.shape != rows.test_p.shape or not np.isfinite(q).all():
            raise ValueError("probabilities that are none")
        q = np.clip(q, 0, None)
        total = q.sum(axis=1, keepdims=True)
        if (total <= 0).any():
            raise ValueError("rows without any probability")
        return q / total


def _two(x: Any) -> np.ndarray:
    """Both columns, from that of class 1."""
    x = np.asarray(x, float).ravel()
    return np.column_stack([1 - x, x])


# ---- verax -------------------------------------------------------------------------------------


def _verax(method: str) -> Callable[[Rows, bool], np.ndarray]:
    def run(rows: Rows, ordered: bool) -> np.ndarray:
        found = vx.recalibrate(rows.y, rows.p, method=method, rule="log_score", ordered=ordered)
        return found.apply(rows.test_p)

    return run


def _of_verax() -> list[Method]:
    fewest = dict.fromkeys(("vector", "svector", "smatrix", "dirichlet", "ordered"), 3)
    most = {**dict.fromkeys(("beta", "quadratic", "spline"), 2), "dirichlet": 5}
    return [
        Method(
            f"verax: {name}",
            _verax(name),
            fewest_classes=fewest.get(name, 2),
            most_classes=most.get(name, 10**6),
            ordered=name == "ordered",
        )
        for name in ("best", BLEND, *TITLES)
        if name != "none"
    ]


# ---- other packages ----------------------------------------------------------------------------


def _probmetrics(make: Callable[[Any], Any]) -> Callable[[Rows, bool], np.ndarray]:
    def run(rows: Rows, _: bool) -> np.ndarray:
        from probmetrics import calibrators

        return make(calibrators).fit(rows.p, rows.y).predict_proba(rows.test_p)

    return run


class _Given:
    """A fitted classifier that hands on what it is given."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, *_: Any) -> _Given:
        return self

    def predict(self, p: np.ndarray) -> np.ndarray:
        return p.argmax(axis=1)


class _Probabilities(_Given):
    def predict_proba(self, p: np.ndarray) -> np.ndarray:
        return p


class _Logits(_Given):
    def decision_function(self, p: np.ndarray) -> np.ndarray:
        z = np.log(np.maximum(p, 1e-12))
        return z[:, 1] - z[:, 0] if p.shape[1] == 2 else z


def _sklearn(method: str) -> Callable[[Rows, bool], np.ndarray]:
    def run(rows: Rows, _: bool) -> np.ndarray:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        hands_on = _Probabilities if method == "isotonic" else _Logits
        kind = type("Given", (hands_on, ClassifierMixin, BaseEstimator), {})
        given = FrozenEstimator(kind(rows.p.shape[1]))
        return CalibratedClassifierCV(given, method=method).fit(rows.p, rows.y).predict_proba(rows.test_p)

    return run


def _netcal(make: Callable[[], Any]) -> Callable[[Rows, bool], np.ndarray]:
    def run(rows: Rows, _: bool) -> np.ndarray:
        two = rows.p.shape[1] == 2
        with contextlib.redirect_stderr(io.StringIO()):
            fitted = make().fit(rows.p[:, 1] if two else rows.p, rows.y)
        return _two(fitted.transform(rows.test_p[:, 1])) if two else fitted.transform(rows.test_p)

    return run


def _scaling(name: str) -> Callable[[], Any]:
    def make() -> Any:
        from netcal import scaling

        return getattr(scaling, name)()

    return make


def _histogram() -> Any:
    from netcal.binning import HistogramBinning

    return HistogramBinning(bins=10)


def _betacal(rows: Rows, _: bool) -> np.ndarray:
    from betacal import BetaCalibration

    return _two(BetaCalibration("abm").fit(rows.p[:, 1:], rows.y).predict(rows.test_p[:, 1:]))


def _venn_abers(rows: Rows, _: bool) -> np.ndarray:
    from venn_abers import VennAbersCalibrator

    return VennAbersCalibrator().predict_proba(p_cal=rows.p, y_cal=rows.y, p_test=rows.test_p)


METHODS = [
    Method(NOTHING, lambda rows, _: rows.test_p),
    *_of_verax(),
    # Affine for two classes, structured matrix scaling for more.
    Method("probmetrics: affine or SMS", _probmetrics(lambda c: c.get_calibrator("logistic")), "probmetrics"),
    Method("probmetrics: SVS", _probmetrics(lambda c: c.SVSCalibrator()), "probmetrics", 3),
    Method(
        "probmetrics: quadratic",
        _probmetrics(lambda c: c.get_calibrator("quadratic-scaling")),
        "probmetrics",
        2,
        2,
    ),
    Method(
        "probmetrics: temperature", _probmetrics(lambda c: c.get_calibrator("temp-scaling")), "probmetrics"
    ),
    Method("probmetrics: TS mixture", _probmetrics(lambda c: c.get_calibrator("ts-mix")), "probmetrics"),
    Method("probmetrics: ETS", _probmetrics(lambda c: c.ETSCalibrator()), "probmetrics"),
    Method("splinecalib: spline", _probmetrics(lambda c: c.MLISplineCalibrator()), "splinecalib", 2, 2),
    Method("probmetrics: CDF spline", _probmetrics(lambda c: c.CDFSplineCalibrator()), "probmetrics", 2, 2),
    Method("scikit-learn: sigmoid", _sklearn("sigmoid"), "sklearn"),
    Method("scikit-learn: isotonic", _sklearn("isotonic"), "sklearn"),
    Method("scikit-learn: temperature", _sklearn("temperature"), "sklearn"),
    Method("netcal: temperature", _netcal(_scaling("TemperatureScaling")), "netcal"),
    Method("netcal: logistic", _netcal(_scaling("LogisticCalibration")), "netcal", 2, 5),
    Method("netcal: beta", _netcal(_scaling("BetaCalibration")), "netcal", 2, 2),
    Method("netcal: histogram", _netcal(_histogram), "netcal"),
    Method("betacal: beta", _betacal, "betacal", 2, 2),
    Method("venn-abers: Venn-Abers", _venn_abers, "venn_abers", 2, 13),
]
