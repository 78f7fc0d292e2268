"""Traits of models, significant claims about them, and why rules disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.comparison.records import Difference
from verax.engines.pieces import all_pairs
from verax.engines.stats import Formula, RowStatistic, RowStats
from verax.inference.estimates import holm
from verax.inputs.arrays import Array, Floats, Ints

# Outcomes of a probability below this dominate the log score.
RULED_OUT_BELOW = 0.01


@dataclass(frozen=True)
class Traits:
    """How often a model is right, how confident it is, and how large its mistakes are.

    Attributes
    ----------
    accuracy : float
        Share of rows whose most likely class happened.
    confidence : float
        Mean probability of the most likely class; above the accuracy means overconfident.
    sharpness : float
        Mean sum of squared probabilities: 1 for certainty, 1/K for uniform forecasts.
    ruled_out : float
        Share of rows whose outcome had a probability below 0.01.
    error_distance : float or None
        Mean distance between wrong decisions and outcomes, in classes; None without an order.
    """

    accuracy: float
    confidence: float
    sharpness: float
    ruled_out: float
    error_distance: float | None

    @classmethod
    def of(cls, means: Floats, *, ordered: bool) -> Traits:
        """The traits from their means, in the order of `TRAITS`.

        Parameters
        ----------
        means : array of shape (5,)
            The means.
        ordered : bool
            Whether the classes have an order.

        Returns
        -------
        Traits
            The traits.
        """
        accuracy, over, sharpness, ruled_out, distance = means.tolist()
        off = distance / (1 - accuracy) if ordered and accuracy < 1 else None
        return cls(accuracy, accuracy + over, sharpness, ruled_out, off)

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy."""
        return self.confidence - self.accuracy


@dataclass(frozen=True)
class _Overconfidence:
    """The largest probability minus 1 if its class happened."""

    needs = frozenset({"top", "hit_lowest"})

    def formula(self, stats: RowStats) -> Array:
        return stats.top - stats.hit_lowest


@dataclass(frozen=True)
class _Sharpness:
    """The sum of the squared probabilities."""

    needs = frozenset({"p_true", "rest_sq"})

    def formula(self, stats: RowStats) -> Array:
        return stats.p_true * stats.p_true + stats.rest_sq


@dataclass(frozen=True)
class _RuledOut:
    """1 where the outcome had a probability below the limit, else 0.

    The formula avoids comparisons, because they cannot be traced and compiled. Two different floats differ by
    more than 1 / `_BEYOND`.
    """

    needs = frozenset({"p_true"})

    def formula(self, stats: RowStats) -> Array:
        far = (RULED_OUT_BELOW - stats.p_true) * _BEYOND
        return stats.xp.minimum(stats.xp.maximum(far, 0.0), 1.0)


_BEYOND = 2.0**1000

# Traits as formulas over row statistics. The distance of errors is not among them: it needs the decision.
FORMULAS: tuple[Formula, ...] = (RowStatistic("hit_lowest"), _Overconfidence(), _Sharpness(), _RuledOut())


def distances(decision: Ints, y: Ints) -> Ints:
    """Distances between decisions and outcomes, in classes."""
    return np.asarray(np.abs(decision - y))


def mean_traits(shares: Floats, p: Floats) -> list[Floats]:
    """Traits of rows with (N, K) shares of the classes, averaged over the outcomes of each row."""
    classes, decision = np.arange(p.shape[1]), np.argmax(p, axis=1)
    right = shares[np.arange(len(p)), decision]
    distance = np.abs(classes - decision[:, None])
    return [
        right,
        p.max(axis=1) - right,
        (p * p).sum(axis=1),
        (shares * (p < RULED_OUT_BELOW)).sum(axis=1),
        (shares * distance).sum(axis=1),
    ]


# The traits, as places in `FORMULAS`; the distance of errors follows them.
TRAITS = ACCURACY, OVERCONFIDENCE, SHARPNESS, RULED_OUT, ERROR_DISTANCE = range(5)


@dataclass(frozen=True)
class Claims:
    """Which traits of models differ, or differ from zero, beyond chance.

    Attributes
    ----------
    supported : frozenset
        A trait with the one or two models that the claim is about, for each claim whose p-value is within
        the level after Holm's correction over all claims.
    """

    supported: frozenset[tuple[int, frozenset[str]]]

    def hold(self, trait: int, *models: str) -> bool:
        """Whether the trait of one model differs from zero, or those of two from each other."""
        return (trait, frozenset(models)) in self.supported

    @classmethod
    def of(
        cls, names: Sequence[str], p_values: Callable[[int], Floats], *, ordered: bool, level: float
    ) -> Claims:
        """Test all claims about these models, and keep the significant ones.

        Parameters
        ----------
        p_values : callable
            For a trait, the p-values of its means and of their differences.
        """
        pairs = [frozenset((names[a], names[b])) for a, b in all_pairs(len(names))]
        claims, p_of_claims = [], []
        for trait in TRAITS if ordered else TRAITS[:ERROR_DISTANCE]:
            p = p_values(trait)
            if trait == OVERCONFIDENCE:
                claims += [(trait, frozenset((name,))) for name in names]
                p_of_claims += p[: len(names)].tolist()
            claims += [(trait, pair) for pair in pairs]
            p_of_claims += p[len(names) :].tolist()
        adjusted = holm(np.array(p_of_claims))
        return cls(frozenset(c for c, p in zip(claims, adjusted.tolist(), strict=True) if p <= level))


def error_column(columns: Sequence[Floats], accuracy: float, distance: float) -> Floats:
    """A column whose mean and standard error are those of the distance of errors, a ratio of means.

    `columns` has all traits; `accuracy` and `distance` are means over all rows.
    """
    if accuracy == 1:
        return np.full(len(columns[0]), np.nan)
    ratio = distance / (1 - accuracy)
    wrong = 1 - columns[ACCURACY]
    return np.asarray(ratio + (columns[ERROR_DISTANCE] - ratio * wrong) / (1 - accuracy))


def disagreements(
    differences: dict[str, list[Difference]],
    traits: dict[str, Traits],
    claims: Claims | None,
    level: float,
) -> list[tuple[tuple[str, str], float, str]]:
    """Pairs of models that the rules order differently, each with a p-value and a sentence.

    The p-value is the largest of the rules that prefer one of them. A rule that prefers the less accurate
    model also counts. Models without known traits are left out.
    """
    if len(differences) < 2:
        return []
    by_pair: dict[tuple[str, str], dict[str, Any]] = {}
    for rule, gaps in differences.items():
        for d in gaps:
            by_pair.setdefault((d.a, d.b), {})[rule] = d
    pairs = []
    for (a, b), rules in by_pair.items():
        if a not in traits or b not in traits:
            continue
        for_a = [r for r, d in rules.items() if d.p_adjusted <= level and d.difference < 0]
        for_b = [r for r, d in rules.items() if d.p_adjusted <= level and d.difference > 0]
        undecided = [r for r in rules if r not in for_a and r not in for_b]
        more_right = claims is not None and claims.hold(ACCURACY, a, b)
        accurate = a if traits[a].accuracy > traits[b].accuracy else b
        against = (for_b if accurate == a else for_a) if more_right else []
        if (for_a and for_b) or against:
            p = max(rules[rule].p_adjusted for rule in (*for_a, *for_b))
            pairs.append(((a, b), p, _sentence(a, b, for_a, for_b, undecided, traits, claims)))
    return pairs


def _sentence(
    a: str,
    b: str,
    for_a: list[str],
    for_b: list[str],
    undecided: list[str],
    traits: dict[str, Traits],
    claims: Claims | None,
) -> str:
    verdicts = [f"{', '.join(rules)} for {name}" for name, rules in ((a, for_a), (b, for_b)) if rules]
    verdicts += [f"{', '.join(undecided)} undecided"] if undecided else []
    reasons = [] if claims is None else _reasons(a, b, traits[a], traits[b], claims)
    return " ".join([f"{a} or {b}? {'; '.join(verdicts)}.", *reasons])


def _reasons(a: str, b: str, x: Traits, y: Traits, claims: Claims) -> list[str]:
    """How the models differ: significant differences of traits that are large enough to matter."""
    reasons = []
    if abs(x.accuracy - y.accuracy) >= 0.0005 and claims.hold(ACCURACY, a, b):
        first, second = (a, b) if x.accuracy > y.accuracy else (b, a)
        high, low = max(x.accuracy, y.accuracy), min(x.accuracy, y.accuracy)
        reasons.append(f"{first} is right more often than {second} ({high:.3f} against {low:.3f}).")
    worse, trait = (a, x) if abs(x.overconfidence) > abs(y.overconfidence) else (b, y)
    apart = abs(abs(x.overconfidence) - abs(y.overconfidence)) >= 0.005
    if apart and claims.hold(OVERCONFIDENCE, worse) and claims.hold(OVERCONFIDENCE, a, b):
        kind = "overconfident" if trait.overconfidence > 0 else "underconfident"
        reasons.append(
            f"{worse} is {kind}: mean confidence {trait.confidence:.3f}, accuracy {trait.accuracy:.3f}."
        )
    most, least = max(x.ruled_out, y.ruled_out), min(x.ruled_out, y.ruled_out)
    if most > 1.2 * least + 0.0005 and claims.hold(RULED_OUT, a, b):
        worse = a if x.ruled_out > y.ruled_out else b
        share = f"{100 * most:.2g}% of its rows, {100 * least:.2g}% of the other's"
        unlikely = f"a probability below {RULED_OUT_BELOW:g}"
        reasons.append(f"{worse} gave the outcome {unlikely} in {share}: log scores weigh this most.")
    far, near = x.error_distance, y.error_distance
    if far is not None and near is not None and claims.hold(ERROR_DISTANCE, a, b) and abs(far - near) >= 0.01:
        worse = a if far > near else b
        off = f"{max(far, near):.2f} classes off on average, those of the other {min(far, near):.2f}"
        reasons.append(f"The mistakes of {worse} are {off}: ranked scores weigh this.")
    if abs(x.sharpness - y.sharpness) >= 0.01 and claims.hold(SHARPNESS, a, b):
        sharper = a if x.sharpness > y.sharpness else b
        reasons.append(f"{sharper} is the sharper of the two.")
    return reasons or ["Accuracy, confidence and sharpness do not explain it."]
