"""A weighted average of methods: the more a method loses in cross-validation, the less it counts.

A method whose held-out rows lose d more in all than those of the best has the weight exp(-d / (2 c)), where
that of the best is one and c is the scale of the rule's noise (`scaling.noise_of`), one for the log score.
Doing nothing is one of the methods. Where no method stands out the average is of many, and varies less than
any of them; with many rows it becomes the best one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.dealing import n_units
from verax.analyses.recalibration.choosing import FoldedRows, Trials, mean_loss
from verax.analyses.recalibration.forms import CalibrationMap
from verax.analyses.recalibration.records import BLEND
from verax.analyses.recalibration.rows import Configuration, zero_counts_as
from verax.analyses.recalibration.scaling import noise_of
from verax.inputs.arrays import Floats, Ints

# Methods with a smaller share are left out.
_LEAST = 0.01
# Most rows for the scale of the noise.
_ROWS = 2**13


@dataclass(frozen=True, eq=False)
class Blend(CalibrationMap):
    """A weighted average of what several methods make of a row.

    Attributes
    ----------
    methods : tuple of str
        Their names, the one with the largest weight first.
    parts : tuple of CalibrationMap
        What was fitted.
    weights : array of shape (M,)
        Of sum one.
    """

    kind = "blend"
    methods: tuple[str, ...]
    parts: tuple[CalibrationMap, ...]
    weights: Floats

    def apply(self, p: Floats) -> Floats:
        total = sum(w * part.apply(p) for w, part in zip(self.weights.tolist(), self.parts, strict=True))
        return np.asarray(total)

    def to_dict(self) -> dict[str, Any]:
        parts = [part.to_dict() for part in self.parts]
        return {
            "kind": self.kind,
            "methods": list(self.methods),
            "parts": parts,
            "weights": self.weights.tolist(),
        }

    @property
    def words(self) -> str:
        shares: dict[str, float] = {}
        for method, weight in zip(self.methods, self.weights.tolist(), strict=True):
            shares[method] = shares.get(method, 0.0) + weight
        largest = sorted(shares.items(), key=lambda each: -each[1])[:3]
        return ", ".join(f"{100 * share:.0f}% {method}" for method, share in largest)


def add_blend(trials: Trials) -> Configuration:
    """Add the average of all configurations to their trials, without each fold and of all rows."""
    sample, how = trials.sample, Configuration(BLEND)
    assert isinstance(sample, FoldedRows)
    scale = n_units(sample.groups, len(sample.y), sample.weights) / len(sample.y) / (2 * _noise(sample))
    among = list(trials.outer)
    outer = np.empty(len(sample.y))
    forms: list[CalibrationMap] = []
    for v in range(sample.n_folds):
        rows = np.flatnonzero(sample.folds != v)
        inner = {each: trials.inner[each][v][rows] for each in among}
        fits = {each: trials.forms[each][v] for each in among}
        forms.append(_blended(fits, _weights(sample, inner, rows, scale)))
        out = np.flatnonzero(sample.folds == v)
        outer[out] = sample.losses(forms[-1], out)
    weights = _weights(sample, {each: trials.outer[each] for each in among}, np.arange(len(sample.y)), scale)
    trials.whole[how] = _blended(trials.whole, weights)
    trials.outer[how], trials.forms[how] = outer, forms
    return how


def _blended(forms: Mapping[Configuration, CalibrationMap], weights: dict[Configuration, float]) -> Blend:
    kept = sorted(weights, key=lambda how: -weights[how])
    shares = np.array([weights[how] for how in kept])
    return Blend(tuple(how.method for how in kept), tuple(forms[how] for how in kept), shares)


def _weights(
    sample: FoldedRows, losses: dict[Configuration, Floats], rows: Ints, scale: float
) -> dict[Configuration, float]:
    """The share of each configuration, from its losses on rows that its fits have not seen."""
    w = None if sample.weights is None else sample.weights[rows]
    means = {how: mean_loss(loss, w) for how, loss in losses.items()}
    finite = {how: mean for how, mean in means.items() if np.isfinite(mean)}
    if not finite:
        return {Configuration("none"): 1.0}
    least = min(finite.values())
    shares = {how: float(np.exp(-(mean - least) * len(rows) * scale)) for how, mean in finite.items()}
    total = sum(shares.values())
    kept = {how: share for how, share in shares.items() if share >= _LEAST * total}
    return {how: share / sum(kept.values()) for how, share in kept.items()}


def _noise(sample: FoldedRows) -> float:
    """The scale of the rule's noise at the forecasts as they are."""
    some = slice(None, None, -(-len(sample.y) // _ROWS))
    p = sample.p[some]
    z = np.ascontiguousarray(np.log(np.maximum(p, zero_counts_as(p))).T)
    weights = np.ones(len(p)) if sample.weights is None else sample.weights[some]
    return noise_of(sample.rule, z, sample.y[some], weights)[0]
