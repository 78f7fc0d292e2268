"""The two simulations of Ahmadian, Ghatee and Wahlström (2025), sections 8.2 and 8.3, under stated samplers.

A right forecast x and a wrong one q are drawn, and the paper counts how often q has the larger Brier score:
where q gives the outcome less than x (8.2), and where it gives it more (8.3). It says that everything, the
number of classes included, is drawn "from a normal distribution". It states neither the means and
variances, nor how numbers become forecasts, nor how many comparisons there are.

A round here draws right forecasts and wrong ones and compares each with each; the error is that of the
ratio of sums over rounds, which are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verax.common.checks import check_count
from verax.inference.intervals import Interval, Resampling, bounded, check_seed
from verax.scores.registry import brier

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = Callable[[np.random.Generator, int, int], Floats]
# The outcome's probability and the Brier score, of right and of wrong forecasts, all of them compared. A
# pair counts as the normal density of the difference, with this standard deviation (infinite: all alike).
Drawn: TypeAlias = tuple[Floats, Floats, Floats, Floats, float]

# The law of the number of classes where it is drawn; the paper calls it normal and states no more.
DRAWN = "normal, mean 5, standard deviation 2, rounded, at least 3"
# Forecasts of each kind in a round.
SIDE = 600
ROUNDS = 100
# The printed shares, and half a unit of their last digits.
PRINTED = {"8.2": (0.99996, 5e-6), "8.3": (0.63, 5e-3)}
TITLES = (
    "Figure 4 (8.2): the wrong forecast gives the outcome less",
    "Figure 5 (8.3): the wrong forecast gives the outcome more",
)


@dataclass(frozen=True)
class Sampler:
    """A law of pairs of forecasts; the number of classes is None where it is also drawn."""

    name: str
    n_classes: int | None
    draw: Callable[[np.random.Generator], Drawn]
    # Shares that are known, by section.
    exact: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Share:
    """How often the wrong forecast has the larger Brier score, in one section under one sampler."""

    section: str
    sampler: str
    n_classes: int | None
    # By round: the weight of all comparisons, and of those where the wrong forecast has the larger score.
    weight: Floats
    larger: Floats
    # How many comparisons there are, and how many that have no forecast in common.
    comparisons: int
    disjoint: int
    exact: float | None

    @property
    def value(self) -> float:
        """The share; NaN where there was nothing to compare."""
        total = self.weight.sum()
        return float(self.larger.sum() / total) if total else math.nan

    @property
    def interval(self) -> Interval:
        """The 95 % interval, from the differences between rounds."""
        rounds, total = len(self.weight), self.weight.sum()
        if rounds < 2 or not total:
            return Interval.undefined("there are fewer than two rounds, or nothing to compare")
        residuals = self.larger - self.value * self.weight
        variance = float(residuals @ residuals) * rounds / (rounds - 1) / total**2
        return bounded(self.value, variance, rounds - 1, self.disjoint, (0.0, 1.0), Resampling())

    @property
    def as_printed(self) -> bool:
        """Whether the share, as far as it is known, has the digits that the paper prints."""
        printed, half = PRINTED[self.section]
        low, high = self.interval if self.exact is None else (self.exact, self.exact)
        return low <= printed + half and high >= printed - half

    def to_dict(self) -> dict[str, Any]:
        """The share as plain Python values."""
        facts: dict[str, Any] = {
            "section": self.section,
            "sampler": self.sampler,
            "n_classes": self.n_classes,
        }
        facts |= {"comparisons": self.comparisons, "share": self.value, "exact": self.exact}
        return facts | {"interval": self.interval.to_dict(), "as_printed": self.as_printed}


def simulate(*, rounds: int = ROUNDS, seed: int = 0, samplers: Iterable[Sampler] = ()) -> list[Share]:
    """Both simulations under each sampler; two shares per sampler, those of 8.2 and of 8.3."""
    check_count("rounds", rounds, least=2)
    check_seed(seed)
    shares: list[Share] = []
    for i, sampler in enumerate(samplers or SAMPLERS):
        rng = np.random.default_rng([seed, i])
        sums = np.array([_count(*sampler.draw(rng)) for _ in range(rounds)], dtype=float)
        exact = dict(sampler.exact)
        for section, columns in zip(PRINTED, np.split(sums, 2, axis=1), strict=True):
            weight, larger, comparisons, disjoint = columns.T
            numbers = int(comparisons.sum()), int(disjoint.sum())
            facts = section, sampler.name, sampler.n_classes, weight, larger, *numbers
            shares.append(Share(*facts, exact.get(section)))
    return shares


def conclusion(shares: Sequence[Share]) -> str:
    """The conclusion of the samplers on the printed numbers."""
    texts = []
    for section, (printed, _) in PRINTED.items():
        values = [100 * share.value for share in shares if share.section == section and share.comparisons]
        texts.append(
            f"section {section} from {min(values):.3f} to {max(values):.3f} % (printed: {100 * printed:g} %)"
        )
    pairs = zip(shares[::2], shares[1::2], strict=True)
    both = [
        f"{a.sampler} (classes: {in_words(a.n_classes)})" for a, b in pairs if a.as_printed and b.as_printed
    ]
    under = f"agree with {'; '.join(both)}" if both else "do not agree with any of these samplers"
    return (
        f"The shares depend on the sampler, which the paper states in part: {', '.join(texts)}. "
        f"The two printed numbers together {under}. With four classes or more, single pairs of forecasts "
        "give 0 % and 100 % in both sections, so any number is possible."
    )


def in_words(n_classes: int | None) -> str:
    """How many classes a sampler has."""
    return "drawn" if n_classes is None else str(n_classes)


def _count(right: Floats, right_loss: Floats, wrong: Floats, wrong_loss: Floats, sd: float) -> list[float]:
    """Weight of the comparisons and of those with the larger loss, number, disjoint: for 8.2, then 8.3."""
    # In all other pairs the wrong forecast gives the outcome less and has the larger loss.
    some_right = (right < wrong.max()) | (right_loss >= wrong_loss.min())
    some_wrong = (wrong > right.min()) | (wrong_loss <= right_loss.max())
    x, q = right[some_right], wrong[some_wrong, None]
    more, larger = q > x, wrong_loss[some_wrong, None] > right_loss[some_right]
    chosen = more, more & larger, ~more & ~larger
    if math.isfinite(sd):
        everything = float(_density(wrong[:, None] - right, sd).sum())
        weights = _density(q - x, sd)
        above, above_larger, below_smaller = (float(weights[pairs].sum()) for pairs in chosen)
    else:
        everything = len(right) * len(wrong)
        above, above_larger, below_smaller = (float(np.count_nonzero(pairs)) for pairs in chosen)
    n, number = min(len(right), len(wrong)), int(np.count_nonzero(more))
    disjoint, below = int(np.count_nonzero(wrong[:n] > right[:n])), everything - above
    less = [below, below - below_smaller, len(right) * len(wrong) - number, n - disjoint]
    return [*less, above, above_larger, number, disjoint]


def _density(difference: Floats, sd: float) -> Floats:
    """The normal density of a difference, up to a constant."""
    return np.exp(-((difference / sd) ** 2) / 2)


def independent(rows: Rows, n_classes: int | None, n: int = SIDE) -> Callable[[np.random.Generator], Drawn]:
    """Draws x and q apart from the same law of rows whose classes are exchangeable, each compared with each.

    Given that it is right, such a forecast has its largest probability at the outcome; given that it is
    wrong, the outcome is any other class.
    """

    def draw(rng: np.random.Generator) -> Drawn:
        k = n_classes or _number_of_classes(rng)
        p = rows(rng, 2 * n, k)
        outcome = p.argmax(axis=1)
        outcome[n:] = (outcome[n:] + rng.integers(1, k, n)) % k
        hot, loss = p[np.arange(2 * n), outcome], brier.samples(outcome, p)
        return hot[:n], loss[:n], hot[n:], loss[n:], math.inf

    return draw


def outcome_first(n_classes: int | None, n: int = 3 * SIDE) -> Callable[[np.random.Generator], Drawn]:
    """Draw the outcome's probability first, as the paper's notation has it.

    x gives it alpha and q gives it alpha - beta or alpha + beta, where alpha and beta are absolute standard
    normal numbers; the other classes share the rest in proportion to absolute normal numbers. Pairs are
    dropped unless x is right, q is wrong and both are forecasts. To compare each x with each q, q is drawn
    with a uniform probability of the outcome, and a pair counts as the density of its beta.
    """

    def complete(rng: np.random.Generator, hot: Floats, k: int) -> Floats:
        others = np.abs(rng.normal(size=(len(hot), k - 1)))
        others *= ((1 - hot) / others.sum(axis=1))[:, None]
        return np.column_stack([hot, others])

    def draw(rng: np.random.Generator) -> Drawn:
        k = n_classes or _number_of_classes(rng)
        alpha = np.abs(rng.normal(size=n))
        x, q = complete(rng, alpha[alpha < 1], k), complete(rng, rng.random(n), k)
        x, q = x[x.argmax(axis=1) == 0], q[q.argmax(axis=1) != 0]
        losses = brier.samples(np.zeros(len(x) + len(q), dtype=int), np.concatenate([x, q]))
        return x[:, 0], losses[: len(x)], q[:, 0], losses[len(x) :], 1.0

    return draw


def _number_of_classes(rng: np.random.Generator) -> int:
    """Draw a number of classes from the law that `DRAWN` describes."""
    return max(3, round(rng.normal(5, 2)))


def dirichlet(concentration: float) -> Rows:
    """Dirichlet forecasts; a concentration of 1 is the uniform law on the simplex."""
    return lambda rng, n, k: rng.dirichlet(np.full(k, float(concentration)), n)


def softmax(scale: float) -> Rows:
    """The softmax of normal logits with this standard deviation."""
    return lambda rng, n, k: _divided(np.exp(rng.normal(0, scale, (n, k))))


def folded(rng: np.random.Generator, n: int, k: int) -> Floats:
    """Absolute standard normal numbers, divided by their sum."""
    return _divided(np.abs(rng.normal(size=(n, k))))


def _divided(x: Floats) -> Floats:
    shares: Floats = x / x.sum(axis=1, keepdims=True)
    return shares


# With three classes a wrong forecast that gives the outcome less is always farther from it (docs/errata.md).
_THREE = (("8.2", 1.0),)
# The integral over pairs of points of the triangle, in closed form (docs/errata.md).
UNIFORM_ON_THREE = (*_THREE, ("8.3", 37 - 20 * math.pi / math.sqrt(3)))

_LAWS: dict[str, Rows] = {
    "Dirichlet(0.2)": dirichlet(0.2),
    "Dirichlet(1), uniform": dirichlet(1),
    "Dirichlet(5)": dirichlet(5),
    "softmax of N(0, 1)": softmax(1),
    "softmax of N(0, 9)": softmax(3),
    "|N(0, 1)| / sum": folded,
}


def _exact(law: str, n_classes: int) -> tuple[tuple[str, float], ...]:
    if n_classes != 3:
        return ()
    return UNIFORM_ON_THREE if law.endswith("uniform") else _THREE


SAMPLERS: tuple[Sampler, ...] = (
    *(
        Sampler(law, k, independent(rows, k), _exact(law, k))
        for law, rows in _LAWS.items()
        for k in (3, 4, 10)
    ),
    *(Sampler("outcome first, normal", k, outcome_first(k), _exact("", k)) for k in (3, 4, 10)),
    Sampler("softmax of N(0, 1)", None, independent(softmax(1), None)),
    Sampler("Dirichlet(0.7), found by search", 6, independent(dirichlet(0.7), 6)),
    Sampler("outcome first, normal", None, outcome_first(None)),
)
