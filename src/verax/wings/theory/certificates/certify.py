"""The properties of a loss function, decided by a search for counterexamples.

Declared properties are not used. The losses of some thousand exact forecasts are compared in every way
relevant to a property. If nothing is found, the search continues: a lattice and lines for narrow regions,
masses down to 1e-300 next to vertices, edges and faces, and an optimiser. "No" comes with numbers that can
be checked by hand; "yes" means that the search found nothing at its resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from verax.common.checks import check_count, check_n_classes
from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled
from verax.errors import RuleError
from verax.inputs.arrays import Bools, Floats, Ints
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.registry import parse
from verax.scores.sets import SetRule
from verax.wings.theory.certificates.lists import elicitation_note, list_findings, lists_note
from verax.wings.theory.certificates.probes import (
    ForecastPanel,
    Probes,
    apart,
    away,
    below,
    by_mode,
    differ,
    doubts,
    equal,
    expected,
    expected_gain,
    hunt_modes,
    hunt_moves,
    losses_function,
    magnitude,
    noise_floor,
    plateaus,
    probes,
    ties,
)
from verax.wings.theory.certificates.shares import share_panel
from verax.wings.theory.certificates.sweeps import (
    DEEPEST,
    SMALLEST,
    SearchExtent,
    hunt_narrow,
    hunt_plateaus,
    lattice_width,
    line_width,
)

MOST_CLASSES = 8

# Denominators up to the first of these are equally simple for a forecast, and so on.
_EFFORT = (12, 100, 1000, 10**4, 10**6)
# Gains below this share of the losses are confirmed with probabilities rounded differently; up to _TRIES
# truths are tried until one is confirmed.
_SMALL, _PERTURBATIONS, _TRIES = 1e-6, 2.0**-52 * np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0]), 20
# How close to zero a probability goes to see whether the loss is bounded.
_TINY = tuple(Fraction(1, 10**k) for k in (18, 37, 75, 150, 300))

# Of a top list, a class that is not listed has None.
Distribution = tuple[Fraction | None, ...]


# ---- results ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counterexample:
    """Forecasts whose losses violate a property.

    Attributes
    ----------
    forecasts : tuple of tuple of Fraction
        One or two forecasts, exactly.
    losses : tuple of float
        The loss of each: for its outcome, or expected under the truth.
    outcomes : tuple of int
        The outcome of each forecast, numbered from 0; empty if there is a truth.
    truth : tuple of Fraction or None
        The distribution of the outcome; None if there are outcomes.
    reason : str
        Why these losses violate the property.
    """

    forecasts: tuple[Distribution, ...]
    losses: tuple[float, ...]
    reason: str
    outcomes: tuple[int, ...] = ()
    truth: Distribution | None = None

    def __str__(self) -> str:
        shown = _numbers(self.losses)
        if self.truth is not None:
            other = _row(self.forecasts[0])
            honest = "the truth"
            if self.forecasts[1] != self.truth:
                other, honest = f"the list {other}", f"the true list {_row(self.forecasts[1])}"
            losses = f"{other} has an expected loss of {shown[0]}, {honest} of {shown[1]}"
            return f"truth {_row(self.truth)}: {losses}"
        terms = zip(self.forecasts, shown, self.outcomes, strict=True)
        text = " and ".join(f"{_row(p)} loses {loss} for outcome {y}" for p, loss, y in terms)
        return f"{text}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """The counterexample with fractions as texts."""
        return {
            "forecasts": [["" if x is None else str(x) for x in p] for p in self.forecasts],
            "truth": None if self.truth is None else [str(x) for x in self.truth],
            "outcomes": list(self.outcomes),
            "losses": _numbers(self.losses),
            "text": str(self),
        }


@dataclass(frozen=True)
class PropertyCheck:
    """Result of the search for one property.

    Attributes
    ----------
    holds : bool
        Whether no counterexample was found.
    checked : int
        The number of comparisons of exact forecasts.
    counterexample : Counterexample or None
        A violation of the property; None if it holds.
    """

    holds: bool
    checked: int
    counterexample: Counterexample | None = None

    _stored_as = "Finding"


@dataclass(frozen=True)
class Resolution:
    """Resolution of a search that found no forecast better than the truth.

    Attributes
    ----------
    forecasts : int
        The number of forecasts whose losses were compared.
    comparisons : int
        The number of pairs of a truth and a forecast.
    width : float
        A region that spans this much in every probability contains at least one of the forecasts.
    line_width : float
        Likewise for a stretch of an edge, or of the line from a vertex to the middle of the opposite face.
    smallest : float
        The smallest probability next to vertices, edges and faces. Down to 1e-15 every range of a factor
        of 2 contains one that was tried. Smaller ones are tried for local rules and more than two classes,
        next to vertices, one for every power of ten: ways of dividing the same mass are compared.
    change : float
        How much the loss must change within such a region to be noticed, as a share of the median loss, at
        95 % of all places: by more than a neighbour in the lattice loses if the other is the truth.
    rounding : float
        Smaller gains, as a share of the largest loss, are treated as rounding errors. Only below 1e-12, for
        local rules and more than two classes, can they be told apart.
    """

    forecasts: int
    comparisons: int
    width: float
    line_width: float
    smallest: float
    change: float
    rounding: float

    def __str__(self) -> str:
        return (
            f"{self.comparisons:,} comparisons of {self.forecasts:,} forecasts found no truth that another "
            f"forecast beats. A failure may be hidden in regions narrower than {self.width:.2g} "
            f"({self.line_width:.2g} on edges), at probabilities below {self.smallest:.1g}, in changes "
            f"of the loss below {self.change:.1g} of its median, or in gains below {self.rounding:.1g} of "
            "the largest loss."
        )


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(Tabled, Result):
    """The properties of a rule for one number of classes, with a counterexample for each that fails.

    Each property is also an attribute: `certificate.proper` is True or False. Certificates of padded rules
    also have the properties for top lists: `consistent`, `strictly_consistent` and `comparable_lengths`.

    Attributes
    ----------
    rule : str
        The name of the rule or function.
    n_classes : int
        The number of classes.
    findings : mapping of str to PropertyCheck
        Every property by name.
    notes : tuple of str
        Remarks for the reader.
    resolution : Resolution or None
        Resolution behind "proper"; None if it is False.

    Examples
    --------
    >>> import verax as vx
    >>> certificate = vx.certify(vx.sa_rps, n_classes=3)
    >>> certificate.proper, certificate.bounded
    (False, True)
    """

    rule: str
    n_classes: int
    findings: Mapping[str, PropertyCheck] = field(hash=False)
    notes: tuple[str, ...] = ()
    resolution: Resolution | None = None

    @property
    def proper(self) -> bool:
        """Whether no forecast has a lower expected loss than the truth, for every truth."""
        return self._verdict("proper")

    @property
    def strictly_proper(self) -> bool:
        """Whether every other forecast has a higher expected loss than the truth."""
        return self._verdict("strictly_proper")

    @property
    def local(self) -> bool:
        """Whether the loss depends on the probability of the outcome alone."""
        return self._verdict("local")

    @property
    def symmetric(self) -> bool:
        """Whether relabelling the classes leaves the loss unchanged."""
        return self._verdict("symmetric")

    @property
    def distance_sensitive(self) -> bool:
        """Whether probability nearer to the outcome costs less."""
        return self._verdict("distance_sensitive")

    @property
    def superior(self) -> bool:
        """Whether every correct forecast costs less than every wrong one."""
        return self._verdict("superior")

    @property
    def bounded(self) -> bool:
        """Whether there is a largest loss."""
        return self._verdict("bounded")

    @property
    def consistent(self) -> bool:
        """Of a padded rule: whether no top list has a lower expected loss than a true one of its length."""
        return self._of_lists("consistent_top_")

    @property
    def strictly_consistent(self) -> bool:
        """Of a padded rule: whether every list that is not true has a higher expected loss."""
        return self._of_lists("strictly_consistent_top_")

    @property
    def comparable_lengths(self) -> bool:
        """Of a padded rule: whether a longer true list never has a higher expected loss than a shorter."""
        return self._of_lists("comparable_lengths")

    def _of_lists(self, beginning: str) -> bool:
        verdicts = [check.holds for name, check in self.findings.items() if name.startswith(beginning)]
        if not verdicts:
            raise RuleError(f"{self.rule} was not certified for top lists: certify padded({self.rule})")
        return all(verdicts)

    def _verdict(self, name: str) -> bool:
        if name not in self.findings:
            raise RuleError(
                f"{self.rule} was certified for the shares of raters, which has no property {name!r}"
            )
        return self.findings[name].holds

    def _tables(self) -> list[Table]:
        """One line per property: whether it holds, and the counterexample where it does not."""
        checks = self.findings
        columns = [
            Column("rule", value=lambda _: self.rule),
            Column("n_classes", value=lambda _: self.n_classes),
            Column("property", "property", lambda name: name.replace("_", " "), str, right=False),
            Column(
                "holds", "holds", lambda name: "yes" if checks[name].holds else "no", self._holds, right=False
            ),
            Column("checked", value=lambda name: checks[name].checked),
            Column("counterexample", "counterexample", "", self._counterexample, right=False),
        ]
        return [Table(columns, list(checks))]

    def _holds(self, name: str) -> bool:
        return self.findings[name].holds

    def _counterexample(self, name: str) -> str:
        return str(self.findings[name].counterexample or "")

    def _heading(self) -> str:
        return f"{self.rule}, {self.n_classes} classes"

    def _notes(self) -> list[str]:
        notes = [f"note: {note}" for note in self.notes]
        return notes if self.resolution is None else [*notes, f"search: {self.resolution}"]


def _row(p: Distribution) -> str:
    return f"({', '.join(map(_fraction, p))})"


def _fraction(x: Fraction | None) -> str:
    if x is None:
        return "·"
    power = len(str(x.denominator)) - 1
    if power < 7:
        return str(x)
    if x > 1 - Fraction(1, 10**5):
        return f"1-{_fraction(1 - x)}"
    return f"10^-{power}" if x == Fraction(1, 10**power) else f"{float(x):.6g}"


def _numbers(values: tuple[float, ...]) -> list[str]:
    """Numbers as small fractions if they are such, else with enough digits to differ."""
    same = np.allclose(values, values[0], rtol=1e-12, atol=0)
    texts = [[_number(value, digits) for value in values] for digits in range(6, 18)]
    return texts[0] if same else next((t for t in texts if len(set(t)) > 1), texts[-1])


def _number(value: float, digits: int) -> str:
    if np.isfinite(value):
        simple = Fraction(value).limit_denominator(5000)
        # Fractions this small are at least 4e-8 apart, so agreement to 1e-13 is no accident.
        if abs(simple.numerator) < 10**5 and abs(float(simple) - value) <= 1e-13 * abs(value):
            return str(simple)
    return f"{value:.{digits}g}"


# ---- when losses are wrong ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Pair:
    """Two forecasts of a panel and the outcomes they are compared for."""

    rows: tuple[int, int]
    outcomes: tuple[int, int]

    @property
    def simplicity(self) -> tuple[int, int]:
        return max(self.rows), min(self.rows)


def _simplest(a: Ints, b: Ints, outcomes: tuple[int, int], wrong: Bools) -> list[_Pair]:
    """The simplest pair of rows of a and b that is wrong, if there is one."""
    at = np.flatnonzero(wrong)
    if not len(at):
        return []
    g = at[np.lexsort([np.minimum(a, b)[at], np.maximum(a, b)[at]])[0]]
    return [_Pair((int(a[g]), int(b[g])), outcomes)]


def _exhibit(panel: ForecastPanel, pairs: list[_Pair], reason: str) -> Counterexample | None:
    """The simplest of some pairs as a counterexample."""
    if not pairs:
        return None
    pair = min(pairs, key=lambda pair: pair.simplicity)
    return _for_outcomes(panel, pair.rows, pair.outcomes, reason)


def _for_outcomes(
    panel: ForecastPanel, rows: tuple[int, ...], outcomes: tuple[int, ...], reason: str
) -> Counterexample:
    forecasts = tuple(panel.probes.fractions(row) for row in rows)
    losses = _again(panel, rows)[range(len(rows)), list(outcomes)]
    return Counterexample(forecasts, tuple(map(float, losses)), reason, outcomes=outcomes)


def _under_truth(panel: ForecastPanel, forecast: int, truth: int, reason: str) -> Counterexample:
    forecasts = panel.probes.fractions(forecast), panel.probes.fractions(truth)
    losses = expected(_again(panel, (forecast, truth)), panel.p[truth])
    return Counterexample(forecasts, tuple(map(float, losses)), reason, truth=forecasts[1])


def _again(panel: ForecastPanel, rows: tuple[int, ...]) -> Floats:
    """The losses of some forecasts, evaluated again: they must not depend on anything else."""
    before, again = panel.loss[list(rows)], panel.losses(panel.p[list(rows)])
    for g, y in np.argwhere(differ(before, again, panel.scale[list(rows), None])):
        raise RuleError(
            f"The loss of {_row(panel.probes.fractions(rows[g]))} for outcome {y} was {before[g, y]:g} "
            f"and then {again[g, y]:g}; it must depend on y and p alone."
        )
    return again


# ---- one scan for each property -----------------------------------------------------------------

# A scan gives the simplest counterexample on a panel, if any, and the number of comparisons.
SearchResult = tuple[Counterexample | None, int]


def _proper(panel: ForecastPanel) -> SearchResult:
    return _dishonest(panel, "the truth should lose least", tied=False)


def _strictly_proper(panel: ForecastPanel) -> SearchResult:
    reason = "the truth alone should lose least"
    counterexample, checked = _dishonest(panel, reason, tied=True)
    if counterexample is None:
        for ladder in panel.probes.ladders:
            loss = panel.loss[ladder]
            step = np.diff(loss, axis=0)[1:]
            # One loss stops changing, and none rises; two infinite losses are equal.
            flat = plateaus(loss).any(axis=1) & ((step <= 0) | np.isnan(step)).all(axis=1)
            for g in np.flatnonzero(flat)[:1]:
                return _under_truth(panel, int(ladder[g + 2]), int(ladder[g + 1]), reason), checked
    return counterexample, checked


def _dishonest(panel: ForecastPanel, reason: str, tied: bool) -> SearchResult:
    """The simplest truth that another forecast beats, with the simple forecast that beats it most."""
    # All pairs of the core, then every forecast with its neighbours.
    core = np.flatnonzero(panel.probes.core)
    table = expected(panel.loss[core], panel.p[core].T)
    gain = table.diagonal() - table
    size = np.maximum(magnitude(table), magnitude(table.diagonal()))
    scale = _scale(panel, core[:, None], core)
    wrong = gain > doubts(size, scale)
    if tied:
        wrong |= equal(table, table.diagonal(), scale) & apart(panel.p[core][:, None], panel.p[core])
    at = np.nonzero(wrong)
    truth, near = panel.probes.moves[:, 0], panel.probes.moves[:, 1]
    nearby, size = expected_gain(panel.loss[near], panel.loss[truth], panel.p[truth])
    scale = _scale(panel, near, truth)
    beaten = nearby > doubts(size, scale, _uncancelled(panel, truth, near))
    if tied:
        beaten |= ties(nearby, scale, panel.p, near, truth)

    checked = table.size - len(core) + len(near)
    truths = np.concatenate([core[at[1]], truth[beaten]])
    forecasts = np.concatenate([core[at[0]], near[beaten]])
    gains = np.concatenate([gain[at], nearby[beaten]])
    for simplest in np.unique(truths)[:_TRIES]:
        first = truths == simplest
        # Rounded, so that of equally good forecasts the simplest comes first.
        relative = np.round(gains[first] / (magnitude(gains[first]).max() or 1.0), 9)
        effort = np.searchsorted(_EFFORT, panel.probes.totals[forecasts[first]])
        best = int(forecasts[first][np.lexsort([forecasts[first], -relative, effort])[0]])
        if _confirmed(panel, best, int(simplest), tied):
            return _under_truth(panel, best, int(simplest), reason), checked
    return None, checked


def _uncancelled(panel: ForecastPanel, truth: Ints, other: Ints) -> Floats | float:
    """The probability of the outcomes for which the losses of two forecasts do not cancel exactly."""
    if not panel.local:
        return 1.0
    exact = [[panel.probes.fractions(int(row)) for row in rows] for rows in (truth, other)]
    pairs = [list(zip(q, r, strict=True)) for q, r in zip(*exact, strict=True)]
    return np.array([float(sum(a for a, b in pair if a != b)) for pair in pairs])


def _confirmed(panel: ForecastPanel, forecast: int, truth: int, tied: bool) -> bool:
    """Whether a small gain is larger than the effect of rounding the probabilities differently."""
    rows, q = [forecast, truth], panel.p[truth]
    gain, _ = expected_gain(panel.loss[forecast], panel.loss[truth], q)
    scale = panel.scale[rows].max()
    if panel.local or gain > _SMALL * scale or (tied and equal(gain, np.zeros(()), scale)):
        return True
    loss = panel.losses((panel.p[rows] * (1 + _PERTURBATIONS[:, None, None])).reshape(-1, len(q)))
    change = magnitude(loss.reshape(-1, 2, len(q)) - panel.loss[rows])
    return bool(gain > 2 * (change.max(axis=0) @ q).sum())


def _local(panel: ForecastPanel) -> SearchResult:
    # Beyond this denominator different probabilities can be the same floating-point number.
    rows, pairs, checked = np.flatnonzero(panel.probes.totals < 10**8), [], 0
    for y in range(panel.n_classes):
        _, first, group = np.unique(panel.p[rows, y], return_index=True, return_inverse=True)
        simplest = rows[first][group]
        wrong = differ(panel.loss[simplest, y], panel.loss[rows, y], _scale(panel, simplest, rows))
        pairs += _simplest(simplest, rows, (y, y), wrong)
        checked += int(np.count_nonzero(simplest != rows))
    return _exhibit(panel, pairs, "the outcome had the same probability"), checked


def _symmetric(panel: ForecastPanel) -> SearchResult:
    pairs, checked = [], 0
    for t, partner in enumerate(panel.probes.swaps):
        rows = np.flatnonzero(partner >= 0)
        others = partner[rows]
        for y in range(panel.n_classes):
            z = {t: t + 1, t + 1: t}.get(y, y)
            wrong = differ(panel.loss[rows, y], panel.loss[others, z], _scale(panel, rows, others))
            pairs += _simplest(rows, others, (y, z), wrong)
            checked += len(rows)
    return _exhibit(panel, pairs, "only the labels changed"), checked


def _distance_sensitive(panel: ForecastPanel) -> SearchResult:
    before, after, i, j = panel.probes.moves.T
    pairs, checked = [], 0
    for y in range(panel.n_classes):
        farther = away(y, i, j)
        rows, others = before[farther], after[farther]
        a, b = panel.loss[rows, y], panel.loss[others, y]
        scale = _scale(panel, rows, others)
        same = equal(a, b, scale) & apart(panel.p[rows], panel.p[others]) & np.isfinite(a)
        wrong = below(b, a, scale) | same
        pairs += _simplest(rows, others, (y, y), wrong)
        checked += len(rows)
    return _exhibit(panel, pairs or _plateaus(panel), "mass moved away from the outcome must cost"), checked


def _plateaus(panel: ForecastPanel) -> list[_Pair]:
    """The corner before which the loss stops changing, as with clipped probabilities."""
    pairs = []
    for ladder in panel.probes.ladders:
        y = int(np.argmax(panel.p[ladder[0]] - panel.p[ladder[-1]]))
        pairs += _simplest(ladder[1:-1], ladder[2:], (y, y), plateaus(panel.loss[ladder, y]))
    return pairs


def _superior(panel: ForecastPanel) -> SearchResult:
    unique, correct, wrong = by_mode(panel.probes.counts, panel.loss)
    rows = np.flatnonzero(unique)
    if not len(rows):
        return None, 0
    # The worst correct and the best wrong forecast among the simplest one, two, three ... forecasts.
    worst = np.maximum.accumulate(correct[rows])
    best = np.minimum.accumulate(wrong[rows].min(axis=1))
    checked = len(rows) ** 2 * (panel.n_classes - 1)
    # Near a tie the two may come as close as they like; away from it they may not be equal.
    scale = np.minimum.accumulate(panel.scale[rows])
    touch = equal(best, worst, scale) & (panel.probes.totals[rows] <= 1000)
    cross = below(best, worst, scale)
    fails = np.flatnonzero(cross if cross.any() else touch)
    if not len(fails):
        return None, checked
    until = rows[: fails[0] + 1]
    a, b = int(until[correct[until].argmax()]), int(until[wrong[until].min(axis=1).argmin()])
    outcomes = int(panel.probes.counts[a].argmax()), int(wrong[b].argmin())
    reason = "the first has the right mode, the second the wrong one"
    return _for_outcomes(panel, (a, b), outcomes, reason), checked


def _bounded(panel: ForecastPanel) -> SearchResult:
    infinite = np.argwhere(np.isinf(panel.loss))
    if len(infinite):
        row, y = map(int, infinite[0])
        return _for_outcomes(panel, (row,), (y,), "no bound"), panel.loss.size
    # The loss at 10^-k as k doubles: a bounded one gains less and less.
    k = panel.n_classes
    rests = [[Fraction(int(c == j)) for c in range(k)] for j in range(k)]
    rests += [[Fraction(int(c != i), k - 1) for c in range(k)] for i in range(k)]
    for i, rest in ((i, rest) for i in range(k) for rest in rests if not rest[i]):
        rows = [tuple(t if c == i else r * (1 - t) for c, r in enumerate(rest)) for t in _TINY]
        loss = panel.losses(np.array(rows, np.float64))
        gain = np.diff(np.abs(loss), axis=0)
        grows = (gain[2:] >= 0.9 * gain[1:-1]).all(axis=0) & (gain[-1] > 1e-9 * np.abs(loss[-1]))
        for y in map(int, np.flatnonzero(grows | np.isinf(loss[-1]))):
            losses = float(loss[-2, y]), float(loss[-1, y])
            return Counterexample((rows[-2], rows[-1]), losses, "no bound", (y, y)), panel.loss.size
    return None, panel.loss.size


def _scale(panel: ForecastPanel, a: Ints, b: Ints) -> Floats:
    return np.maximum(panel.scale[a], panel.scale[b])


# ---- the certificate ----------------------------------------------------------------------------

_SEARCHES: dict[str, tuple[Callable[[ForecastPanel], SearchResult], tuple[str, ...]]] = {
    "proper": (_proper, ("narrow",)),
    "strictly_proper": (_strictly_proper, ("narrow", "plateaus")),
    "local": (_local, ()),
    "symmetric": (_symmetric, ()),
    "distance_sensitive": (_distance_sensitive, ("plateaus", "moves")),
    "superior": (_superior, ("modes",)),
    "bounded": (_bounded, ()),
}


class _Hunts:
    """The searches beyond the panel; each is run once, as far as it is needed."""

    def __init__(self, panel: ForecastPanel, seed: int, local: bool) -> None:
        def rng() -> np.random.Generator:
            return np.random.default_rng(seed)

        self.seen = SearchExtent()
        self._panel, self._local = panel, local
        self._sources: dict[str, Iterator[Probes]] = {
            "narrow": hunt_narrow(panel, rng(), self.seen, local),
            "plateaus": hunt_plateaus(panel),
            "moves": hunt_moves(panel, rng()),
            "modes": hunt_modes(panel, rng()),
        }
        self._panels: dict[str, list[ForecastPanel]] = {name: [] for name in self._sources}

    def resolution(self) -> Resolution:
        """Resolution of the search for a forecast better than the truth."""
        k, seen = self._panel.n_classes, self.seen
        smallest = DEEPEST if self._local and k > 2 else SMALLEST
        return Resolution(
            forecasts=seen.forecasts,
            comparisons=seen.comparisons,
            width=lattice_width(k),
            line_width=line_width(k),
            smallest=smallest,
            change=seen.regret,
            rounding=self._panel.rounding,
        )

    def panels(self, name: str) -> Iterator[ForecastPanel]:
        """The counterexamples of a search, as small panels."""
        yield from list(self._panels[name])
        for forecasts in self._sources[name]:
            self._panels[name].append(
                ForecastPanel.of(forecasts, self._panel.losses, self._panel.floor, self._local)
            )
            yield self._panels[name][-1]


def certify(
    rule: Rule | str | Callable[[Any, Floats], float],
    n_classes: int = 3,
    *,
    raters: int | None = None,
    seed: int = 0,
) -> Certificate:
    """Check the properties of a rule for `n_classes` classes by search, with counterexamples.

    Parameters
    ----------
    rule : Rule, str or callable
        A rule, its text, or a function f(y, p) that takes a class position and a vector of
        `n_classes` probabilities and returns the loss: lower is better. Of scores of sets, forecasts are
        scored as the sets that they ask for. Of padded rules, top lists of every length are compared as well.
    n_classes : int, default 3
        The number of classes, from 2 to 8.
    raters : int, optional
        Certify the score of shares of this number of raters, drawn from the truth: a function f(g, p) of the
        shares g of the classes, or the mean loss of a rule over the raters. It is proper if the truth has the
        smallest expected loss. Other properties are not looked at.
    seed : int, default 0
        Random seed of the forecasts that are tried, and of the optimiser.

    Returns
    -------
    Certificate
        The properties of `verax.scores.properties.Properties`, as True or False. False comes with a
        counterexample and is certain up to rounding. True means that the search found none at the stated
        `resolution`; it is not a proof. Declared properties are not used.

    See Also
    --------
    landscape : A plot of the losses.

    Examples
    --------
    >>> import verax as vx
    >>> certificate = vx.certify("sa_rps", 3)
    >>> certificate.proper
    False
    >>> print(certificate.findings["proper"].counterexample)
    truth (1/3, 1/3, 1/3): (0, 1, 0) has an expected loss of 1/6, the truth of 11/54

    The Manhattan distance between shares of raters and forecast is not proper:

    >>> vx.certify(lambda g, p: abs(g - p).sum(), 2, raters=1).proper
    False
    """
    if raters is not None:
        check_count("raters", raters)
        return _of_raters(rule, check_n_classes(n_classes, most=MOST_CLASSES), raters, seed)
    text, losses = losses_function(rule)
    # With more classes the grids of the search are too coarse to find anything.
    k = check_n_classes(n_classes, most=MOST_CLASSES)
    check_count("seed", seed, least=0)
    with np.errstate(all="ignore"):
        panel = ForecastPanel.of(probes(k, seed), losses)
        panel = panel.with_floor(noise_floor(losses, k))
        hunts = _Hunts(panel, seed, _local(panel)[0] is None)
        findings: dict[str, PropertyCheck] = {}
        for name, (scan, names) in _SEARCHES.items():
            if name == "strictly_proper" and not findings["proper"].holds:
                findings[name] = findings["proper"]
                continue
            counterexample, checked = scan(panel)
            if counterexample is None:
                small = chain.from_iterable(map(hunts.panels, names))
                counterexample = next(filter(None, (scan(few)[0] for few in small)), None)
            findings[name] = PropertyCheck(counterexample is None, checked, counterexample)
        proper = findings["proper"].holds
        notes = () if proper else _orientation(panel)
        known = parse(rule) if isinstance(rule, str) else rule
        if isinstance(known, SetRule):
            notes = (*notes, elicitation_note(known, panel))
        if isinstance(known, Padded):
            findings |= _of_lists(known, k)
            notes = (*notes, lists_note(k))
    return Certificate(text, k, findings, notes, hunts.resolution() if proper else None)


def _of_lists(rule: Padded, n_classes: int) -> dict[str, PropertyCheck]:
    """The properties of a padded rule on top lists."""
    findings = {}
    for name, checked, failure in list_findings(rule, n_classes):
        example = None
        if failure is not None:
            reason = "a true list should lose least"
            example = Counterexample(failure.lists, failure.losses, reason, truth=failure.truth)
        findings[name] = PropertyCheck(failure is None, checked, example)
    return findings


def _of_raters(rule: object, n_classes: int, raters: int, seed: int) -> Certificate:
    """Whether the truth that raters are drawn from has the smallest expected loss."""
    check_count("seed", seed, least=0)
    with np.errstate(all="ignore"):
        panel = share_panel(rule, n_classes, raters, seed)
    findings = {}
    for name, tied, reason in (
        ("proper", False, "the truth should lose least"),
        ("strictly_proper", True, "the truth alone should lose least"),
    ):
        # What is not proper is not strictly so for the same reason.
        beaten = panel.worse(tied=False) or (panel.worse(tied=True) if tied else None)
        example = None
        if beaten is not None:
            forecast, truth, losses = beaten
            both = panel.probes.fractions(forecast), panel.probes.fractions(truth)
            example = Counterexample(both, losses, reason, truth=both[1])
        findings[name] = PropertyCheck(example is None, panel.checked, example)
    drawn = "one rater is" if raters == 1 else f"{raters} raters are"
    straight = "It is linear in the shares: the mean loss over the raters."
    return Certificate(
        panel.name,
        n_classes,
        findings,
        (
            f"The score of shares of raters: {drawn} drawn from the truth.",
            straight if not panel.linear else f"It is not linear in the shares: {panel.linear}.",
        ),
    )


def _orientation(panel: ForecastPanel) -> tuple[str, ...]:
    if _proper(panel.negated())[0] is not None:
        return ()
    return ("-f looks proper, so f is probably a gain (larger is better); certify -f instead.",)
