"""How often the gate of `vx.recalibrate` lets a method pass, and what that does to new rows.

    python studies/recalibration_gate.py [samples of each design]

Prints tables of studies/recalibration.md. Outcomes of each design are drawn from known probabilities, so the
gain of a fit on new rows is known: the expected Brier score (RPS) of 20,000 new rows before minus after.
"Harmful" are samples in which a method is chosen that makes new rows worse. "Covered" are samples in which
the interval of the gain holds that of the fit to all rows, among those in which a method was chosen. The
second table has the coverage of the gain of single methods, by the standard error of the rows alone, by 1.25
times that, and by the variance of the fits.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pool
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax, stdtrit

import verax as vx
from verax.analyses.comparison.crossfits import factor_of_fits
from verax.analyses.dealing import dealt
from verax.inputs.groups import Groups
from verax.wings.recalibrate.choosing import FoldedRows, Paired, Study

NEW = 20_000


@dataclass(frozen=True)
class Design:
    """True probabilities, and what a model makes of them."""

    name: str
    n: int
    k: int
    slope: float = 1.0
    offset: float = 0.0
    curve: float = 0.0
    kind: str = ""
    tried: dict[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The first cells of its line."""
        return f"{self.name} | {self.n:,} | {self.k}"

    def drawn(self, rng: np.random.Generator, n: int) -> tuple[Any, Any, dict[str, Any]]:
        """True probabilities, forecasts, and groups or weights."""
        options: dict[str, Any] = {}
        z = 1.3 * rng.standard_t(5, size=(n, self.k)) + np.linspace(0, 0.8, self.k)
        if self.kind == "groups":
            by = rng.integers(0, 40, n)
            z = 0.8 * z + 0.6 * rng.normal(size=(40, self.k))[by]
            options = {"groups": by}
        elif self.kind == "weights":
            options = {"weights": rng.gamma(1.0, size=n)}
        if self.kind == "rare":
            z[:, 0] += 3.0
        truth = softmax(z, axis=1)
        given = self.slope * z
        given[:, -1] += self.offset
        p = softmax(given, axis=1)
        if self.curve:
            bent = logit(np.clip(p[:, 1], 1e-9, 1 - 1e-9))
            bent = expit(bent + self.curve * np.tanh(bent) * (bent > 0))
            p = np.column_stack([1 - bent, bent])
        return truth, p, options


def designs() -> Iterator[Design]:
    """Calibrated forecasts, and distorted ones."""
    for k, n in ((2, 120), (2, 400), (3, 250), (3, 1500), (8, 400), (30, 800)):
        yield Design("calibrated", n, k)
    yield Design("calibrated, rare", 400, 2, kind="rare")
    yield Design("calibrated, 40 groups", 600, 3, kind="groups")
    yield Design("calibrated, weights", 600, 3, kind="weights")
    yield Design("ordered, calibrated", 400, 4, tried={"ordered": True})
    for k, n, slope in ((2, 250, 1.6), (2, 900, 1.35), (4, 250, 1.35), (4, 900, 1.2), (3, 900, 0.8)):
        yield Design(f"logits x {slope:g}", n, k, slope)
    for k, n in ((2, 250), (4, 900)):
        yield Design("odds of a class x 1.7", n, k, offset=math.log(1.7))
    yield Design("bent above 1/2", 1200, 2, curve=0.9)
    yield Design("logits x 1.5, 40 groups", 600, 3, 1.5, kind="groups")
    yield Design("ordered, logits x 1.4", 400, 4, 1.4, tried={"ordered": True})


def share(hits: int, of: int) -> str:
    """A percentage with its Monte Carlo error."""
    if not of:
        return ""
    s = hits / of
    return f"{100 * s:.1f} ± {100 * math.sqrt(max(s * (1 - s), 0.25 / of) / of):.1f}"


@dataclass
class Sampled:
    """Rows of a design, and what the expected score of new rows is."""

    design: Design
    seed: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng([7, self.seed])
        q, self.p, self.options = self.design.drawn(rng, self.design.n)
        uniform = rng.random((len(q), 1))
        self.y = np.minimum((uniform > np.cumsum(q, axis=1)).sum(axis=1), self.design.k - 1)
        self.truth, self.new, _ = self.design.drawn(np.random.default_rng(2026), NEW)
        self.rule = "rps" if self.design.tried else "brier"

    def expected(self, p: Any) -> float:
        """The expected score of new rows beyond that of the truth."""
        gap = p - self.truth
        gap = np.cumsum(gap, axis=1) if self.design.tried else gap
        scale = self.design.k - 1 if self.design.tried else 1
        return float((gap**2).sum(axis=1).mean()) / scale

    def gain(self, apply: Any) -> float:
        """The true gain of a fit."""
        return self.expected(self.new) - self.expected(apply(self.new))


def through_the_gate(of: tuple[Design, int]) -> tuple[bool, bool, bool, float]:
    """Whether a method is chosen, does harm, has an interval that covers, and its true gain in percent."""
    sample = Sampled(*of)
    how = {"rule": sample.rule, "seed": sample.seed, **sample.options, **sample.design.tried}
    found = vx.recalibrate(sample.y, sample.p, **how)
    if not found.helps:
        return False, False, False, math.nan
    gain, interval = sample.gain(found.apply), found.gain.interval
    return True, gain < 0, interval.low <= gain <= interval.high, 100 * gain / found.trials[0].loss


METHODS = ("temperature", "bcts", "isotonic")


def of_one_method(of: tuple[Design, int]) -> list[tuple[float, float]]:
    """Of each method: the error of its gain, in half-widths of the rows, and its factor of fits."""
    sample = Sampled(*of)
    groups, weights = (sample.options.get(name) for name in ("groups", "weights"))
    labels = None if groups is None else Groups.of(groups, len(sample.y))
    folds = dealt(len(sample.y), labels, 5, sample.seed, weights)
    rule, ordered = vx.parse(sample.rule), bool(sample.design.tried)
    folded = FoldedRows(sample.y, weights, labels, rule, folds, sample.seed, sample.p, ordered)
    study = Study(folded, ["none", *METHODS], [*METHODS], 0.95)
    found = []
    for name in METHODS:
        how, losses = study.within[name][-1], {"none": study.losses["none"], name: study.losses[name]}
        gain = Paired.of(*losses.values(), folded)
        freedom = (len(sample.y) if labels is None else 40) - 1
        away = gain.mean - sample.gain(study.trials.whole[how].apply)
        fits = {name: folded.losses(study.trials.forms[how], np.arange(len(sample.y)))}
        factor = factor_of_fits(losses, fits, weights, labels)("none", name)
        found.append((abs(away) / (gain.error * float(stdtrit(freedom, 0.975))), factor))
    return found


def main() -> None:
    """Print both tables."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with Pool() as pool:
        print("| forecasts | rows | classes | chosen, % | harmful, % | covered, % of chosen | true gain, % |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        nulls = [0, 0, 0]
        for design in designs():
            found = pool.map(through_the_gate, [(design, i) for i in range(samples)], chunksize=2)
            chosen, harmful, covered = (sum(column) for column in [*zip(*found, strict=True)][:3])
            if "calibrated" in design.name:
                nulls = [a + b for a, b in zip(nulls, (samples, chosen, harmful), strict=True)]
            cells = share(chosen, samples), share(harmful, samples), share(covered, chosen)
            gained = f"{np.nanmean([row[3] for row in found]):.1f}" if chosen else ""
            print(
                f"| {design.name} | {design.n:,} | {design.k} | {' | '.join(cells)} | {gained} |", flush=True
            )
        of, chosen, harmful = nulls
        print(f"| all calibrated | | | {share(chosen, of)} | {share(harmful, of)} | | |")
        print("\n| forecasts | rows | classes | method | 1 se | 1.25 se | variance of fits | the wider |")
        print("|---|---:|---:|---|---:|---:|---:|---:|", flush=True)
        for design in designs():
            found = pool.map(of_one_method, [(design, i) for i in range(samples)], chunksize=2)
            for m, name in enumerate(METHODS):
                away, factor = np.array([row[m] for row in found]).T
                limits = (1.0, 1.25, factor, np.maximum(factor, 1.25))
                cells = " | ".join(share(int((away <= limit).sum()), samples) for limit in limits)
                print(f"| {design.where} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
