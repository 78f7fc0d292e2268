"""Curves of the rows kept, thresholds and deferral."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit

import verax as vx
from covers.claims import claim, covers, share_of

COVERAGES = np.arange(1, 11) / 10
DEFER = 0.15


@dataclass(frozen=True)
class Keeping:
    """Rows of an event whose forecasts are 1.5 times too sure, in groups of unequal sizes.

    Attributes
    ----------
    n : int
        The number of rows.
    groups : int
        The number of groups; 0 for independent rows.
    sizes : str
        How unequal the groups are: "exponential" or "power-law".
    """

    n: int
    groups: int = 0
    sizes: str = "exponential"

    def rows(self, x: np.ndarray, effects: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts and true probabilities; effects are one number per row, common to those of a group."""
        return expit(1.8 * x + 0.3), expit(1.2 * x + 0.8 * effects)

    @cache  # noqa: B019
    def truth(self) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Every number for 400,000 rows, and the accuracy of acting from each of some forecasts on."""
        rng = np.random.default_rng(12345)
        x = rng.normal(size=400_000)
        p, q = self.rows(x, rng.normal(size=len(x)) * (self.groups > 0))
        y = (rng.random(len(q)) < q).astype(int)
        order = np.argsort(p)
        above = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
        below = np.append(0.0, np.cumsum(1 - q[order]))
        return self.numbers(y, p, {}), np.append(p[order], 1.0), (above + below) / len(p)

    def numbers(self, y: np.ndarray, p: np.ndarray, own: dict[str, Any], **how: Any) -> dict[str, Any]:
        """What is estimated; with a bootstrap, its intervals and bands."""
        risk = vx.risk_coverage(y, p, **own, **how)
        kept = vx.retention(y, p, rule="brier", metric="accuracy", **own, **how)
        certain = vx.selective(y, p, metric="accuracy", **own, **how)
        line = vx.deferral(y, p, defer=DEFER, **own).lines[0]
        if not how:
            return {
                "AURC": risk.aurc,
                "AUGRC": risk.augrc,
                "risk": risk.risk_at(0.5),
                "coverage": risk.coverage_at(0.2),
                "risk band": np.array([risk.risk_at(c) for c in COVERAGES]),
                "retention area": kept.area,
                "retention band": kept.values,
                "selective area": certain.area,
                "selective band": certain.values,
                "cost": line.cost,
                "saving": line.saved,
            }
        return {
            "AURC": risk.aurc_interval,
            "AUGRC": risk.augrc_interval,
            "risk": risk.risk_interval(0.5),
            "coverage": risk.coverage_interval(0.2),
            "risk band": risk.band(COVERAGES),
            "retention area": kept.interval,
            "retention band": kept.band,
            "selective area": certain.interval,
            "selective band": certain.band,
            "cost": line.cost_interval,
            "saving": line.saved_interval,
        }

    def drawn(self, i: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Outcomes, forecasts and groups of a sample."""
        rng = np.random.default_rng([seed, i])
        own: dict[str, np.ndarray] = {}
        effects = np.zeros(self.n)
        if self.groups:
            sizes = rng.exponential(size=self.groups) + 0.2
            if self.sizes == "power-law":
                sizes = 1 / np.arange(1, self.groups + 1)
            own["groups"] = rng.choice(self.groups, self.n, p=sizes / sizes.sum())
            effects = rng.normal(size=self.groups)[own["groups"]]
        p, q = self.rows(rng.normal(size=self.n), effects)
        return (rng.random(self.n) < q).astype(int), p, own

    @cache  # noqa: B019
    def hits(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """What covers in each sample."""
        truth, _, _ = self.truth()
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            y, p, own = self.drawn(i, seed)
            for name, ends in self.numbers(y, p, own, bootstrap=200, seed=i).items():
                found.setdefault(name, []).append(bool(covers(np.array(ends), np.array(truth[name]))))
        return found

    @cache  # noqa: B019
    def gains(self, replications: int, seed: int) -> dict[str, list[bool]]:
        """In which samples the gain of thresholds is covered, with a caution and without."""
        _, grid, accuracy = self.truth()
        usual = accuracy[np.searchsorted(grid, 0.5)]
        found: dict[str, list[bool]] = {}
        for i in range(replications):
            y, p, own = self.drawn(i, seed)
            chosen = vx.choose_thresholds(y, p, metric="accuracy", bootstrap=200, seed=i, **own)
            gain = accuracy[np.searchsorted(grid, chosen.per_fold[:, 0])].mean() - usual
            name = "cautioned gain of thresholds" if chosen.interval.caution else "gain of thresholds"
            found.setdefault(name, []).append(chosen.interval.low <= gain <= chosen.interval.high)
        return found


def claims_of_rows_kept() -> None:
    """Coverage of the areas, bands and gains of curves of rows kept."""
    designs = {
        "300 rows": Keeping(300),
        "400 rows in 8 groups": Keeping(400, 8),
        "600 rows in 20 groups": Keeping(600, 20),
        "1000 rows in 20 power-law groups": Keeping(1000, 20, "power-law"),
        "1000 rows in 60 groups": Keeping(1000, 60),
    }
    names = (
        *("AURC", "AUGRC", "risk", "coverage", "risk band"),
        *("retention area", "retention band", "selective area", "selective band"),
        *("cost", "saving", "gain of thresholds", "cautioned gain of thresholds"),
    )
    for label, design in designs.items():
        for name in names:

            def measure(
                replications: int, seed: int, design: Keeping = design, name: str = name
            ) -> tuple[float, float]:
                hits = design.gains if name.endswith("thresholds") else design.hits
                return share_of(hits(replications, seed).get(name, []))

            # Where a caution stands nothing is promised; how often such intervals cover is shown.
            low, high = (0.0, 1.0) if name.startswith("cautioned") else (0.91, 0.985)
            claim(f"rows kept: {name}, {label}", low, high, measure, 300)


claims_of_rows_kept()
