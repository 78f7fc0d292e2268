"""Rows whose truth is known: designs of forecasts, and which claims are true of them.

A design makes forecasts p and the true probabilities q of the same rows. Outcomes come from q by a uniform
number per row. Rows of a group share a part of it, so they depend on each other and P(y | p) stays what it
is. What is true of a design are signs: of the mean gap of an event, of its slope minus 1, of a difference of
expected losses. They come from many rows and from q instead of outcomes, so their error is small; a value
within five of its standard errors is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.special import expit, ndtr, softmax

Maker = Callable[["Scale", int, np.random.Generator], "Made"]
Change = Callable[["Scale", np.ndarray, np.random.Generator], np.ndarray]

# How many groups hold the rows, and what part of the uniform number of a row is that of its group.
N_GROUPS = {60: 12, 200: 20, 1000: 40, 5000: 100}
SHARED = 0.3
# Rows that truths come from, and how many standard errors are zero.
MANY, ZERO = 200_000, 5.0
SUBGROUPS, SHARES = ("a", "b", "c", "d", "e"), (0.3, 0.25, 0.2, 0.15, 0.1)


@dataclass(frozen=True)
class Scale:
    """Classes, and the numbers behind probabilities: log odds of Y > class, or logits of each class."""

    classes: int
    ordered: bool = False

    @property
    def name(self) -> str:
        """The number of classes, and whether they are ordered."""
        return f"{self.classes} ordered" if self.ordered else str(self.classes)

    @property
    def nominal(self) -> bool:
        """Whether there are logits of each class."""
        return self.classes > 2 and not self.ordered

    def draw(self, n: int, rng: np.random.Generator, level: float = 0.0, spread: float = 1.2) -> np.ndarray:
        """Numbers whose distribution is symmetric where the level is zero."""
        if self.nominal:
            return spread * rng.normal(size=(n, self.classes))
        cuts = np.linspace(1.5, -1.5, self.classes - 1) if self.classes > 2 else np.zeros(1)
        return level + spread * rng.normal(size=(n, 1)) + cuts

    def ramp(self) -> np.ndarray:
        """A shift by one: of the log odds, or of the logits of the last class against the first."""
        return np.linspace(-0.5, 0.5, self.classes) if self.nominal else np.ones(1)

    def chances(self, z: np.ndarray) -> np.ndarray:
        """(n, classes) probabilities."""
        if self.nominal:
            return np.asarray(softmax(z, axis=1))
        above = np.concatenate([np.ones((len(z), 1)), expit(z), np.zeros((len(z), 1))], axis=1)
        return np.asarray(above[:, :-1] - above[:, 1:])

    def events(self, p: np.ndarray) -> dict[str, np.ndarray]:
        """The probabilities of each event that a claim may be about, by the class that names it."""
        if self.nominal:
            return {str(k): p[:, k] for k in range(self.classes)}
        above = 1 - np.cumsum(p, axis=1)[:, :-1]
        return {str(k + 1): above[:, k] for k in range(self.classes - 1)}


@dataclass(frozen=True)
class Made:
    """Rows of a design: forecasts of each model, true probabilities, subgroups, and the log of weights."""

    forecasts: Mapping[str, np.ndarray]
    q: np.ndarray
    by: np.ndarray | None = None
    log_weight: np.ndarray | None = None


@dataclass(frozen=True)
class Rows:
    """Rows as a user has them: outcomes, forecasts and what goes with them."""

    y: np.ndarray
    made: Made
    options: Mapping[str, np.ndarray | bool]

    @property
    def p(self) -> np.ndarray:
        """The forecasts of the only model."""
        (only,) = self.made.forecasts.values()
        return only


@dataclass(frozen=True)
class Design:
    """A design, with what it is asked and where it makes sense.

    Attributes
    ----------
    name : str
        What is wrong with the forecasts, or which models there are.
    make : function of (scale, rows, generator)
        Makes the rows.
    asks : tuple of str
        The questions: "card", "subgroups", "card with subgroups", "recalibration", "page" or "comparison".
    fits : function of the scale
        Whether the design has a meaning there.
    shared : float
        What part of the uniform number of a row is that of its group, where there are groups.
    heavy : bool
        Whether one group holds half of the rows.
    arms : tuple of str
        "independent", "grouped", "weighted".
    main : bool
        Whether it is also measured with 5,000 rows and with 40 classes.
    """

    name: str
    make: Maker
    asks: tuple[str, ...] = ("card",)
    fits: Callable[[Scale], bool] = lambda _: True
    shared: float = SHARED
    heavy: bool = False
    arms: tuple[str, ...] = ("independent", "grouped", "weighted")
    main: bool = False

    def rows(self, scale: Scale, n: int, arm: str, seed: list[int]) -> Rows:
        """A sample of it."""
        rng = np.random.default_rng(seed)
        made = self.make(scale, n, rng)
        options: dict[str, np.ndarray | bool] = {"ordered": True} if scale.ordered else {}
        u = rng.random(n)
        if arm == "grouped":
            count = N_GROUPS.get(n, max(8, n // 20))
            sizes = rng.exponential(size=count) + 0.2
            if self.heavy:
                sizes[0] = sizes[1:].sum()
            groups = rng.choice(count, n, p=sizes / sizes.sum())
            common = np.sqrt(self.shared) * rng.normal(size=count)[groups]
            u = ndtr(common + np.sqrt(1 - self.shared) * rng.normal(size=n))
            options["groups"] = groups
        elif arm == "weighted":
            log = rng.normal(size=n) if made.log_weight is None else made.log_weight
            options["weights"] = np.exp(log)
        y = (u[:, None] > np.cumsum(made.q, axis=1)).sum(axis=1)
        return Rows(np.minimum(y, scale.classes - 1), made, options)


# ---- truths ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """Signs of what claims are about: 1, 0 or -1.

    Attributes
    ----------
    calibrated : bool
        Whether p = q in every row.
    bias : mapping of str to int
        1 where the event is forecast too often.
    slope : mapping of str to int
        1 where the slope of the event is above 1; events without a slope are absent.
    confidence : int
        1 where the most likely class claims more than it is right.
    skill : mapping of (str, str) to int
        By rule and model, 1 where the expected loss is below that of class frequencies.
    subgroups : mapping of str to int
        By subgroup, 1 where its forecasts are miscalibrated.
    lead : mapping of (str, str, str) to int
        By rule and two models, 1 where the first has the smaller expected loss.
    """

    calibrated: bool
    bias: Mapping[str, int] = field(default_factory=dict)
    slope: Mapping[str, int] = field(default_factory=dict)
    confidence: int = 0
    skill: Mapping[tuple[str, str], int] = field(default_factory=dict)
    subgroups: Mapping[str, int] = field(default_factory=dict)
    lead: Mapping[tuple[str, str, str], int] = field(default_factory=dict)


def sign(values: np.ndarray, weights: np.ndarray) -> int:
    """The sign of a mean, zero within its error."""
    mean = float(np.average(values, weights=weights))
    error = float(np.sqrt((weights**2 * (values - mean) ** 2).sum()) / weights.sum())
    return 0 if abs(mean) <= ZERO * error + 1e-9 else (1 if mean > 0 else -1)


def slope_sign(p: np.ndarray, q: np.ndarray, w: np.ndarray) -> int | None:
    """The sign of the slope of q on the log odds of p, minus 1; None where there is no slope."""
    p = np.clip(p, 1e-12, 1 - 1e-12)
    x = np.log(p / (1 - p))
    if np.ptp(x) < 1e-9:
        return None
    columns = np.stack([np.ones(len(x)), x])
    b = np.array([0.0, 1.0])
    for _ in range(50):
        fitted = expit(b @ columns)
        bread = (columns * (w * fitted * (1 - fitted))) @ columns.T
        step = np.linalg.solve(bread, columns @ (w * (q - fitted)))
        b = b + step
        if np.abs(step).max() < 1e-11:
            break
    influence = np.linalg.solve(bread, columns * (w * (q - expit(b @ columns))))[1]
    error = float(np.sqrt((influence**2).sum()))
    off = b[1] - 1
    return 0 if abs(off) <= ZERO * error + 1e-7 else (1 if off > 0 else -1)


def losses(p: np.ndarray, q: np.ndarray) -> dict[str, np.ndarray]:
    """Expected losses of rows by the rules that headlines use."""
    cumulated = np.cumsum(p - q, axis=1)[:, :-1], np.cumsum(q, axis=1)[:, :-1]
    return {
        "brier": ((p - q) ** 2).sum(axis=1) + (q * (1 - q)).sum(axis=1),
        "log_score": -(q * np.log(np.maximum(p, 1e-300))).sum(axis=1),
        "rps": (cumulated[0] ** 2).sum(axis=1) + (cumulated[1] * (1 - cumulated[1])).sum(axis=1),
    }


@cache
def truth_of(design: Design, scale: Scale, arm: str) -> Truth:
    """What is true of the population of a design."""
    n = MANY if scale.classes < 10 else MANY // 4
    made = design.make(scale, n, np.random.default_rng(20_000))
    log = made.log_weight if arm == "weighted" else None
    w = np.ones(n) if log is None else np.exp(log)
    own = {name: losses(p, made.q) for name, p in made.forecasts.items()}
    lead = {
        (rule, a, b): sign(own[b][rule] - own[a][rule], w)
        for a in own
        for b in own
        if a != b
        for rule in own[a]
    }
    frequencies = np.broadcast_to(np.average(made.q, axis=0, weights=w), made.q.shape)
    skill = {
        (rule, name): sign(loss - known[rule], w)
        for rule, loss in losses(frequencies, made.q).items()
        for name, known in own.items()
    }
    if len(own) > 1:
        return Truth(False, skill=skill, lead=lead)
    (p,) = made.forecasts.values()
    given, true = scale.events(p), scale.events(made.q)
    slopes = {name: slope_sign(given[name], true[name], w) for name in given}
    top = p.argmax(axis=1)[:, None]
    off = np.abs(p - made.q).max(axis=1) > 1e-9
    subgroups = {} if made.by is None else {s: int(off[made.by == s].any()) for s in np.unique(made.by)}
    return Truth(
        not off.any(),
        {name: sign(given[name] - true[name], w) for name in given},
        {name: value for name, value in slopes.items() if value is not None},
        sign(np.take_along_axis(p - made.q, top, axis=1)[:, 0], w),
        skill,
        subgroups,
    )


# ---- designs of one model ----------------------------------------------------------------------


def distorted(change: Change, **drawn: float) -> Maker:
    """Forecasts whose log odds are a function of the true ones."""

    def make(scale: Scale, n: int, rng: np.random.Generator) -> Made:
        z = scale.draw(n, rng, **drawn)
        return Made({"model": scale.chances(change(scale, z, rng))}, scale.chances(z))

    return make


def same(_scale: Scale, z: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    """Calibrated."""
    return z


def shifted(by: float) -> Change:
    """Log odds plus a number."""
    return lambda scale, z, _: z + by * scale.ramp()


def times(factor: float) -> Change:
    """Log odds times a number."""
    return lambda _scale, z, _rng: factor * z


def one_class(scale: Scale, z: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    """One class, or the classes above one threshold, forecast too often."""
    shift = np.zeros(z.shape[1])
    shift[1] = 0.6 if scale.ordered else 0.8 if scale.classes < 10 else 1.5
    return z + shift


def wave(_scale: Scale, z: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    """Neither too extreme nor too timid everywhere, and not monotone."""
    return z + np.sin(2 * z)


def mixed(_scale: Scale, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Too extreme in half of the rows, too timid in the other half."""
    return z * np.where(rng.random((len(z), 1)) < 0.5, 1.6, 0.6)


def grid(scale: Scale, n: int, rng: np.random.Generator) -> Made:
    """Calibrated forecasts in multiples of a tenth (a fortieth for many classes), with ties."""
    steps = 10 if scale.classes < 10 else 4 * scale.classes
    p = np.floor(steps * scale.chances(scale.draw(n, rng)))
    p[np.arange(n), p.argmax(axis=1)] += steps - p.sum(axis=1)
    return Made({"model": p / steps}, p / steps)


def constant(by: float) -> Maker:
    """The same forecast in every row, whose log odds are this much above those of the event."""

    def make(scale: Scale, n: int, rng: np.random.Generator) -> Made:
        z = (
            np.linspace(0.8, -0.8, scale.classes)[None]
            if scale.nominal
            else scale.draw(1, rng, spread=0.0) - 0.5
        )
        p, q = scale.chances(z + by * scale.ramp()), scale.chances(z)
        return Made({"model": np.repeat(p, n, axis=0)}, np.repeat(q, n, axis=0))

    return make


def weighted_by_risk(scale: Scale, n: int, rng: np.random.Generator) -> Made:
    """Calibrated forecasts, with weights that grow with the risk."""
    z = scale.draw(n, rng)
    p = scale.chances(z)
    return Made({"model": p}, p, log_weight=z[:, -1] + 0.5 * rng.normal(size=n))


def in_subgroups(shifts: Mapping[str, float], levels: float = 0.0, **drawn: float) -> Maker:
    """Five subgroups; forecasts of some are shifted, and event rates may differ between them."""

    def make(scale: Scale, n: int, rng: np.random.Generator) -> Made:
        by = rng.choice(SUBGROUPS, n, p=SHARES)
        z = scale.draw(n, rng, **drawn)
        rank = np.searchsorted(SUBGROUPS, by)[:, None]
        z = z + levels * (rank - 2) * scale.ramp()
        moved = sum(shift * (by == name) for name, shift in shifts.items()) if shifts else np.zeros(n)
        p = scale.chances(z + np.asarray(moved)[:, None] * scale.ramp())
        return Made({"model": p}, scale.chances(z), by)

    return make


def in_many_subgroups(count: int, bad: int = 0) -> Maker:
    """Subgroups of equal size, the forecasts of the first ones shifted."""

    def make(scale: Scale, n: int, rng: np.random.Generator) -> Made:
        rank = rng.permutation(np.arange(n) % count)
        z = scale.draw(n, rng)
        p = scale.chances(z + 1.2 * (rank < bad)[:, None] * scale.ramp())
        return Made({"model": p}, scale.chances(z), np.array([f"s{i:02}" for i in range(count)])[rank])

    return make


# ---- designs of several models -----------------------------------------------------------------


def noisy(**spreads: float) -> Maker:
    """Models that see the true log odds with noise of these spreads."""

    def make(scale: Scale, n: int, rng: np.random.Generator) -> Made:
        z = scale.draw(n, rng)
        models = {name: scale.chances(z + _noise(scale, z, rng, s)) for name, s in spreads.items()}
        return Made(models, scale.chances(z))

    return make


def _noise(scale: Scale, z: np.ndarray, rng: np.random.Generator, spread: float) -> np.ndarray:
    """Noise that leaves thresholds in their order."""
    return spread * rng.normal(size=z.shape if scale.nominal else (len(z), 1))


def without_skill(count: int) -> Maker:
    """Models whose forecasts are those of another row in half of the rows.

    The squared distance of independent forecasts is twice their variance, so the expected Brier score and
    RPS are those of class frequencies.
    """

    def make(scale: Scale, n: int, rng: np.random.Generator) -> Made:
        q = scale.chances(scale.draw(n, rng))
        models = {}
        for name in ("model",) if count == 1 else SUBGROUPS[:count]:
            other = scale.chances(scale.draw(n, rng))
            models[name] = np.where(rng.random((n, 1)) < 0.5, other, q)
        return Made(models, q)

    return make


def in_few_rows(scale: Scale, n: int, rng: np.random.Generator) -> Made:
    """Two models of the same expected loss that differ in a twentieth of the rows."""
    z = scale.draw(n, rng)
    base = z + _noise(scale, z, rng, 0.4)
    differs = rng.random((n, 1)) < 0.05
    models = {name: np.where(differs, z + _noise(scale, z, rng, 1.5), base) for name in "ab"}
    return Made({name: scale.chances(x) for name, x in models.items()}, scale.chances(z))


def in_tails(scale: Scale, n: int, rng: np.random.Generator) -> Made:
    """Two models of the same expected loss with a few rows that are far too extreme."""
    z = scale.draw(n, rng)
    models = {
        name: (z + _noise(scale, z, rng, 0.4)) * np.where(rng.random((n, 1)) < 0.02, 6.0, 1.0)
        for name in "ab"
    }
    return Made({name: scale.chances(x) for name, x in models.items()}, scale.chances(z))


def _binary(scale: Scale) -> bool:
    return scale.classes == 2


def _several(scale: Scale) -> bool:
    return scale.classes > 2


BOTH = ("card", "recalibration", "page")
PARTS = ("subgroups", "card with subgroups")
DESIGNS = {
    design.name: design
    for design in (
        Design("calibrated", distorted(same), BOTH, main=True),
        Design("risks too high", distorted(shifted(0.6)), BOTH, main=True),
        Design("risks too low", distorted(shifted(-0.6))),
        Design("too extreme", distorted(times(1.6)), BOTH, main=True),
        Design("too timid", distorted(times(0.6)), main=True),
        Design("one bad class", distorted(one_class), fits=_several, main=True),
        Design("not monotone", distorted(wave), BOTH, fits=_binary),
        Design("half too extreme, half too timid", distorted(mixed)),
        Design("rare event, calibrated", distorted(same, level=-4.6), BOTH, fits=_binary),
        Design("rare event, too high", distorted(shifted(0.6), level=-4.6), fits=_binary),
        Design("rare event, too extreme", distorted(times(1.4), level=-4.6), fits=_binary),
        Design("nearly certain, calibrated", distorted(same, spread=4.0)),
        Design("ties, calibrated", grid),
        Design("constant, calibrated", constant(0.0)),
        Design("constant, too high", constant(0.6)),
        Design("heavy groups, calibrated", distorted(same), shared=0.8, heavy=True, arms=("grouped",)),
        Design("heavy groups, too extreme", distorted(times(1.6)), shared=0.8, heavy=True, arms=("grouped",)),
        Design("weights follow risks, calibrated", weighted_by_risk, arms=("weighted",)),
        Design("subgroups, calibrated", in_subgroups({}, levels=0.5), PARTS),
        Design("subgroups, one bad", in_subgroups({"c": 1.2}), PARTS, main=True),
        Design("subgroups, all shifted", in_subgroups(dict.fromkeys(SUBGROUPS, 0.6)), PARTS),
        Design("subgroups, rare event", in_subgroups({}, level=-3.5), PARTS, fits=_binary),
        Design("20 subgroups, calibrated", in_many_subgroups(20), PARTS),
        Design("20 subgroups, one bad", in_many_subgroups(20, 1), PARTS),
        Design("no skill", without_skill(1)),
        Design("five models without skill", without_skill(5), ("comparison",)),
        Design("equal models", noisy(a=0.5, b=0.5), ("comparison",), main=True),
        Design("five equal models", noisy(a=0.5, b=0.5, c=0.5, d=0.5, e=0.5), ("comparison",)),
        Design("nearly equal models", noisy(a=0.5, b=0.55), ("comparison",), main=True),
        Design("one better model", noisy(a=0.3, b=0.8), ("comparison",)),
        Design("two equal, one worse", noisy(a=0.4, b=0.4, c=0.9), ("comparison",)),
        Design("equal but for few rows", in_few_rows, ("comparison",)),
        Design("equal, with heavy tails", in_tails, ("comparison",)),
    )
}
SCALES = (Scale(2), Scale(5), Scale(5, ordered=True), Scale(40))
SIZES = (60, 200, 1000, 5000)
