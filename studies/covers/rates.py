"""Rates at a threshold, and their curves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

import verax as vx
from covers.claims import claim, covers, share_of


@dataclass(frozen=True)
class Deciding:
    """Rows with a forecast that is acted on from a threshold on, and another forecast of the same event.

    Attributes
    ----------
    offset : float
        The logit of the forecast of a middling row: negative for a rare event.
    n : int
        The number of rows.
    groups : int
        The number of groups, of unequal sizes; 0 for independent rows.
    weighted : bool
        Whether rows have lognormal weights.
    threshold : float
        From what probability on rows are acted on.
    """

    offset: float
    n: int
    groups: int = 0
    weighted: bool = False
    threshold: float = 0.5

    def rows(
        self, rng: np.random.Generator, n: int, groups: int
    ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Outcomes, forecasts, and weights and groups."""
        own: dict[str, np.ndarray] = {}
        effects = np.zeros(n)
        if groups:
            sizes = rng.exponential(size=groups) + 0.2
            own["groups"] = rng.choice(groups, n, p=sizes / sizes.sum())
            effects = rng.normal(size=groups)[own["groups"]]
        if self.weighted:
            own["weights"] = rng.lognormal(sigma=0.7, size=n)
        x, other = rng.normal(size=n), rng.normal(size=n)
        y = (rng.random(n) < expit(1.5 * x + 0.7 * effects + self.offset)).astype(int)
        models = {"a": expit(2 * x + self.offset), "b": expit(1.5 * x + other + self.offset)}
        return y, models, own

    @cache  # noqa: B019
    def truth(self) -> tuple[dict[str, float], dict[str, float], Any]:
        """Rates, their differences, and the ROC and precision-recall curves, of many rows."""
        groups = 400_000 if self.groups else 0
        y, models, _ = self.rows(np.random.default_rng(12345), 400_000, groups)
        found = vx.operating_points(y, models, threshold=self.threshold)
        rates = {each.name: each.value for each in found.point(model="a").rates}
        gaps = {gap.rate: gap.difference for gap in found.differences}
        return rates, gaps, (y, models["a"])

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """What covers."""
        rates, gaps, (everywhere, forecast) = self.truth()
        order = np.argsort(forecast)
        counts = np.cumsum(np.stack([everywhere, 1 - everywhere])[:, order[::-1]], axis=1)[:, ::-1]
        counts = np.append(counts, [[0], [0]], axis=1)
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            y, models, own = self.rows(np.random.default_rng([seed, i]), self.n, self.groups)
            points = vx.operating_points(y, models, threshold=self.threshold, **own)
            hits = {}
            for each in points.point(model="a").rates:
                low, high = each.interval
                hits[each.name] = bool(low <= rates[each.name] <= high)
            for gap in points.differences:
                hits[f"difference of {gap.rate}"] = gap.interval.low <= gaps[gap.rate] <= gap.interval.high
            roc = vx.roc_curve(y, models["a"], seed=i, points=50, **own).curves[0]
            # The true curve at each false positive rate of the band.
            at = np.interp(roc.x, (counts[1] / counts[1, 0])[::-1], (counts[0] / counts[0, 0])[::-1])
            hits["ROC band"] = covers(roc.band, at)
            precision = vx.precision_recall_curve(y, models["a"], seed=i, points=50, **own).curves[0]
            named = np.isfinite(precision.band[0])
            true, false = counts[:, np.searchsorted(forecast[order], precision.thresholds[named])]
            with np.errstate(invalid="ignore"):
                hits["precision band"] = covers(precision.band[:, named], true / (true + false))
            for name, hit in hits.items():
                found.setdefault(name, []).append(hit)
        return found


@dataclass(frozen=True)
class Choosing(Deciding):
    """The same, with a threshold that is chosen on the rows.

    Attributes
    ----------
    aim : str
        What it is chosen for.
    costs : tuple or None
        For "cost": the costs of decisions.
    noise : bool
        Whether forecasts tell nothing.
    """

    aim: str = "youden"
    costs: tuple[tuple[float, float], tuple[float, float]] | None = None
    noise: bool = False

    def rows(
        self, rng: np.random.Generator, n: int, groups: int
    ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Outcomes, forecasts of one model, and weights and groups."""
        y, models, own = super().rows(rng, n, groups)
        return y, {"a": rng.random(n) if self.noise else models["a"]}, own

    @cache  # noqa: B019
    def everywhere(self) -> tuple[Any, Any]:
        """Sorted forecasts of many rows, and how many events and other rows have at least each of them."""
        rng = np.random.default_rng(12345)
        y, models, _ = self.rows(rng, 400_000, 400_000 if self.groups else 0)
        order = np.argsort(models["a"])
        counts = np.cumsum(np.stack([y, 1 - y])[:, order[::-1]], axis=1)[:, ::-1]
        return models["a"][order], np.append(counts, [[0], [0]], axis=1)

    def at(self, threshold: float) -> dict[str, float]:
        """The true rates at a threshold."""
        forecasts, counts = self.everywhere()
        tp, fp = counts[:, np.searchsorted(forecasts, threshold)]
        events, others = counts[:, 0]
        sens, spec = tp / events, 1 - fp / others
        found = {"sensitivity": sens, "specificity": spec, "youden": sens + spec - 1}
        found["ppv"] = tp / (tp + fp) if tp + fp else np.nan
        return {**found, "f1": 2 * tp / (tp + fp + events)}

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """What covers the rates of the threshold that is shown, and whether it keeps what it promises."""
        rate, _, least = self.aim.partition(">=")
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            y, models, own = self.rows(np.random.default_rng([seed, i]), self.n, self.groups)
            point = vx.operating_points(
                y, models["a"], threshold=self.aim, costs=self.costs, seed=i, **own
            ).points[0]
            found.setdefault("answer", []).append(not np.isnan(point.threshold))
            if np.isnan(point.threshold):
                continue
            truth = self.at(point.threshold)
            if least:
                found.setdefault("promise", []).append(bool(truth[rate] >= float(least)))
            for name, value in truth.items():
                low, high = point.rate(name).interval
                if not np.isnan([low, value]).any():
                    found.setdefault(name, []).append(bool(low <= value <= high))
        return found


def claims_of_rates() -> None:
    """Coverage of rates at a threshold, their differences, and the bands of their curves."""
    designs = {
        "200 rows": Deciding(0.0, 200),
        "1000 rows": Deciding(0.0, 1000),
        "rare event, 1000 rows": Deciding(-3.5, 1000, threshold=0.2),
        "1000 rows in 20 groups": Deciding(0.0, 1000, groups=20),
        "1000 rows in 100 groups": Deciding(0.0, 1000, groups=100),
        "1000 rows with weights": Deciding(0.0, 1000, weighted=True),
    }
    names = [
        *("sensitivity", "specificity", "ppv", "npv", "accuracy", "balanced_accuracy", "f1", "youden"),
        *("lr_positive", "lr_negative", "difference of sensitivity", "difference of ppv", "difference of f1"),
        *("ROC band", "precision band"),
    ]
    # The band of ROC curves is made of rectangles: wider than it need be.
    wanted = {"ROC band": (0.95, 1.0), "precision band": (0.9, 1.0)}
    for label, design in designs.items():
        for what in names:

            def measure(
                replications: int, seed: int, design: Deciding = design, what: str = what
            ) -> tuple[float, float]:
                return share_of(design.hits(replications, seed)[what])

            claim(f"rates: {what}, {label}", *wanted.get(what, (0.925, 0.98)), measure, 1000)


def claims_of_choices() -> None:
    """Promises of thresholds that are chosen on the rows, and coverage of the rates at them."""
    reach, spare = "sensitivity>=0.9", "specificity>=0.95"
    promises = {
        "sensitivity, 200 rows": Choosing(0.0, 200, aim=reach),
        "sensitivity, rare event, 1000 rows": Choosing(-3.5, 1000, aim=reach),
        "specificity, 200 rows": Choosing(0.0, 200, aim=spare),
        "sensitivity, 1000 rows in 20 groups": Choosing(0.0, 1000, groups=20, aim=reach),
        "sensitivity, 1000 rows in 100 groups": Choosing(0.0, 1000, groups=100, aim=reach),
        "sensitivity, 1000 rows with weights": Choosing(0.0, 1000, weighted=True, aim=reach),
    }
    best = {
        "youden, 200 rows": Choosing(0.0, 200),
        "youden, rare event, 1000 rows": Choosing(-3.5, 1000),
        "youden, 1000 rows in 20 groups": Choosing(0.0, 1000, groups=20),
        "youden, 500 rows with weights": Choosing(0.0, 500, weighted=True),
        "youden, 60 rows, forecasts without information": Choosing(0.0, 60, noise=True),
        "f1, rare event, 1000 rows": Choosing(-3.5, 1000, aim="f1"),
        "cost, 200 rows": Choosing(0.0, 200, aim="cost", costs=((0, 1), (5, 0))),
        "ppv>=0.7, 500 rows": Choosing(-1.0, 500, aim="ppv>=0.7"),
    }
    hospitals = {
        "hospitals, 8 with 1800 rows in all": Choosing(-0.5, 1800, groups=8, aim=reach),
        "hospitals, 11 with 3000 rows in all": Choosing(-1.5, 3000, groups=11, aim=reach),
        "hospitals, 15 with 1500 rows in all": Choosing(0.0, 1500, groups=15, aim=reach),
    }
    for label, design in hospitals.items():
        for what, low in {"answer": 0.6, "promise": 0.94}.items():

            def kept(
                replications: int, seed: int, design: Choosing = design, what: str = what
            ) -> tuple[float, float]:
                return share_of(design.hits(replications, seed).get(what, []))

            told = "a threshold is found" if what == "answer" else "promise is kept"
            claim(f"chosen thresholds: {told}, {label}", low, 1.0, kept, 400)
    kinds = ("sensitivity", "specificity", "ppv", "youden", "f1")
    for designs, names in ((promises, ("promise", *kinds)), (best, kinds)):
        for label, design in designs.items():
            for what in names:

                def measure(
                    replications: int, seed: int, design: Choosing = design, what: str = what
                ) -> tuple[float, float]:
                    return share_of(design.hits(replications, seed).get(what, []))

                # With few groups, promises and the rates they are about are wider than they need be.
                wanted = (0.94 if what == "promise" else 0.925, 1.0 if designs is promises else 0.99)
                said = "is kept" if what == "promise" else "at the threshold shown"
                claim(f"chosen thresholds: {what} {said}, {label}", *wanted, measure, 400)


claims_of_rates()
claims_of_choices()
