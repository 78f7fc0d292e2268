"""The properties of a loss function, decided by searching for a counterexample.

Declared properties are not used. The losses of some thousand exact forecasts are compared in every way
that a property is about; where nothing is wrong, an optimiser searches between these forecasts. "No"
comes with numbers that can be checked by hand; "yes" means that the search found nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from verax.common.checks import check_count, check_n_classes
from verax.errors import RuleError
from verax.inputs.arrays import Bools, Floats, Ints
from verax.scores.base import Rule
from verax.scores.certificates.probes import (
    Hunt,
    Trial,
    apart,
    away,
    below,
    by_mode,
    differ,
    equal,
    expected,
    hunt_dishonest,
    hunt_modes,
    hunt_moves,
    losses_function,
    magnitude,
    probes,
)

MOST_CLASSES = 8

# Denominators up to the first of these are equally simple for a forecast, and so on.
_EFFORT = (12, 100, 1000, 10**4, 10**6)
# How close to zero a probability goes to see whether the loss is bounded.
_TINY = tuple(Fraction(1, 10**k) for k in (18, 37, 75, 150, 300))

Distribution = tuple[Fraction, ...]


# ---- results ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Counterexample:
    """Forecasts whose losses break a property.

    Attributes
    ----------
    forecasts : tuple of tuple of Fraction
        One or two forecasts, exactly.
    losses : tuple of float
        The loss of each: for its outcome, or expected under the truth.
    outcomes : tuple of int
        The outcome that each forecast is scored for; empty where there is a truth.
    truth : tuple of Fraction or None
        The distribution of the outcome; None where there are outcomes.
    reason : str
        What is wrong with these losses.
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
            return f"truth {_row(self.truth)}: {other} is expected to lose {shown[0]}, the truth {shown[1]}"
        terms = zip(self.forecasts, shown, self.outcomes, strict=True)
        text = " and ".join(f"{_row(p)} loses {loss} for outcome {y}" for p, loss, y in terms)
        return f"{text}: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """The counterexample with fractions as texts."""
        return {
            "forecasts": [[str(x) for x in p] for p in self.forecasts],
            "truth": None if self.truth is None else [str(x) for x in self.truth],
            "outcomes": list(self.outcomes),
            "losses": _numbers(self.losses),
            "text": str(self),
        }


@dataclass(frozen=True)
class Finding:
    """Whether a property holds, as far as the search goes.

    Attributes
    ----------
    holds : bool
        Whether no counterexample was found.
    checked : int
        The number of comparisons of exact forecasts.
    counterexample : Counterexample or None
        What breaks the property; None where it holds.
    """

    holds: bool
    checked: int
    counterexample: Counterexample | None = None


def _verdict(name: str) -> Any:
    return property(lambda self: self.findings[name].holds, doc=f"Whether it is {name.replace('_', ' ')}.")


@dataclass(frozen=True, repr=False)
class Certificate:
    """The properties of a rule for one number of classes, with a counterexample for each that fails.

    Each property is an attribute too: `certificate.proper` is True or False.
    """

    rule: str
    n_classes: int
    findings: Mapping[str, Finding] = field(hash=False)
    notes: tuple[str, ...] = ()

    proper = _verdict("proper")
    strictly_proper = _verdict("strictly_proper")
    local = _verdict("local")
    symmetric = _verdict("symmetric")
    distance_sensitive = _verdict("distance_sensitive")
    superior = _verdict("superior")
    bounded = _verdict("bounded")

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON can hold it."""
        findings = {
            name: {
                "holds": finding.holds,
                "checked": finding.checked,
                "counterexample": finding.counterexample and finding.counterexample.to_dict(),
            }
            for name, finding in self.findings.items()
        }
        return {
            "rule": self.rule,
            "n_classes": self.n_classes,
            "findings": findings,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.rule}, {self.n_classes} classes"]
        for name, finding in self.findings.items():
            verdict = "yes" if finding.holds else f"no    {finding.counterexample}"
            lines.append(f"{name.replace('_', ' '):<20}{verdict}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    __repr__ = __str__


def _row(p: Distribution) -> str:
    return f"({', '.join(map(_fraction, p))})"


def _fraction(x: Fraction) -> str:
    power = len(str(x.denominator)) - 1
    if power < 7:
        return str(x)
    tidy = {Fraction(1, 10**power): f"10^-{power}", 1 - Fraction(1, 10**power): f"1-10^-{power}"}
    return tidy.get(x, f"{float(x):.6g}")


def _numbers(values: tuple[float, ...]) -> list[str]:
    """Numbers as small fractions where they are that, else with as many digits as tell them apart."""
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


def _exhibit(panel: Trial, pairs: list[_Pair], reason: str) -> Counterexample | None:
    """The simplest of some pairs as a counterexample."""
    if not pairs:
        return None
    pair = min(pairs, key=lambda pair: pair.simplicity)
    return _for_outcomes(panel, pair.rows, pair.outcomes, reason)


def _for_outcomes(
    panel: Trial, rows: tuple[int, ...], outcomes: tuple[int, ...], reason: str
) -> Counterexample:
    forecasts = tuple(panel.probes.fractions(row) for row in rows)
    losses = _again(panel, rows)[range(len(rows)), list(outcomes)]
    return Counterexample(forecasts, tuple(map(float, losses)), reason, outcomes=outcomes)


def _under_truth(panel: Trial, forecast: int, truth: int, reason: str) -> Counterexample:
    forecasts = panel.probes.fractions(forecast), panel.probes.fractions(truth)
    losses = expected(_again(panel, (forecast, truth)), panel.p[truth])
    return Counterexample(forecasts, tuple(map(float, losses)), reason, truth=forecasts[1])


def _again(panel: Trial, rows: tuple[int, ...]) -> Floats:
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
Found = tuple[Counterexample | None, int]


def _proper(panel: Trial) -> Found:
    return _dishonest(panel, "the truth should lose least", ties=False)


def _strictly_proper(panel: Trial) -> Found:
    return _dishonest(panel, "the truth alone should lose least", ties=True)


def _dishonest(panel: Trial, reason: str, ties: bool) -> Found:
    """The simplest truth that another forecast beats, with the simple forecast that beats it most."""
    # All pairs of the core, then every forecast with its neighbours.
    core = np.flatnonzero(panel.probes.core)
    table = expected(panel.loss[core], panel.p[core].T)
    gain = table.diagonal() - table
    at = np.nonzero(_beats(panel, core[:, None], core, table, table.diagonal(), ties))
    truth, near = panel.probes.moves[:, 0], panel.probes.moves[:, 1]
    under = panel.p[truth][:, :, None]
    nearby, own = (expected(panel.loss[r][:, None, :], under)[:, 0, 0] for r in (near, truth))
    wrong = _beats(panel, near, truth, nearby, own, ties)

    checked = table.size - len(core) + len(near)
    truths = np.concatenate([core[at[1]], truth[wrong]])
    if not len(truths):
        return None, checked
    first = truths == truths.min()
    forecasts = np.concatenate([core[at[0]], near[wrong]])[first]
    gains = np.concatenate([gain[at], (own - nearby)[wrong]])[first]
    # Rounded, so that of equally good forecasts the simplest comes first.
    gains = np.round(gains / (magnitude(gains).max() or 1.0), 9)
    effort = np.searchsorted(_EFFORT, panel.probes.totals[forecasts])
    best = int(forecasts[np.lexsort([forecasts, -gains, effort])[0]])
    return _under_truth(panel, best, int(truths.min()), reason), checked


def _beats(panel: Trial, a: Ints, b: Ints, loss_a: Floats, loss_b: Floats, ties: bool) -> Bools:
    """Where forecast a loses less than forecast b, or with `ties` as much."""
    scale = _scale(panel, a, b)
    less = below(loss_a, loss_b, scale)
    return less | (equal(loss_a, loss_b, scale) & apart(panel.p[a], panel.p[b])) if ties else less


def _local(panel: Trial) -> Found:
    # Beyond this denominator different probabilities can be the same floating-point number.
    rows, pairs, checked = np.flatnonzero(panel.probes.totals < 10**8), [], 0
    for y in range(panel.n_classes):
        _, first, group = np.unique(panel.p[rows, y], return_index=True, return_inverse=True)
        simplest = rows[first][group]
        wrong = differ(panel.loss[simplest, y], panel.loss[rows, y], _scale(panel, simplest, rows))
        pairs += _simplest(simplest, rows, (y, y), wrong)
        checked += int(np.count_nonzero(simplest != rows))
    return _exhibit(panel, pairs, "the outcome had the same probability"), checked


def _symmetric(panel: Trial) -> Found:
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


def _distance_sensitive(panel: Trial) -> Found:
    before, after, i, j = panel.probes.moves.T
    pairs, checked = [], 0
    for y in range(panel.n_classes):
        farther = away(y, i, j)
        rows, others = before[farther], after[farther]
        a, b = panel.loss[rows, y], panel.loss[others, y]
        wrong = _beats(panel, others, rows, b, a, ties=True) & ~((a == b) & np.isinf(a))
        pairs += _simplest(rows, others, (y, y), wrong)
        checked += len(rows)
    return _exhibit(panel, pairs or _plateaus(panel), "mass moved away from the outcome must cost"), checked


def _plateaus(panel: Trial) -> list[_Pair]:
    """Where the loss stops short on the way to a corner, as clipped probabilities make it do.

    Steps this small may vanish in rounding where the loss is smooth, but not right after a large one.
    """
    pairs = []
    for ladder in panel.probes.ladders:
        y = int(np.argmax(panel.probes.counts[ladder[0]] == 1))
        loss = panel.loss[ladder, y]
        step = np.diff(loss)
        flat = (step[1:] == 0) & (step[:-1] > 1e-6 * magnitude(loss).max())
        pairs += _simplest(ladder[1:-1], ladder[2:], (y, y), flat)
    return pairs


def _superior(panel: Trial) -> Found:
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


def _bounded(panel: Trial) -> Found:
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


def _scale(panel: Trial, a: Ints, b: Ints) -> Floats:
    return np.maximum(panel.scale[a], panel.scale[b])


# ---- the certificate ----------------------------------------------------------------------------

_SEARCHES: dict[str, tuple[Callable[[Trial], Found], Hunt | None]] = {
    "proper": (_proper, hunt_dishonest),
    "strictly_proper": (_strictly_proper, hunt_dishonest),
    "local": (_local, None),
    "symmetric": (_symmetric, None),
    "distance_sensitive": (_distance_sensitive, hunt_moves),
    "superior": (_superior, hunt_modes),
    "bounded": (_bounded, None),
}


def certify(
    rule: Rule | str | Callable[[int, Floats], float], n_classes: int = 3, *, seed: int = 0
) -> Certificate:
    """The properties of a rule for `n_classes` classes, found by search, with counterexamples.

    Parameters
    ----------
    rule : Rule, str or callable
        A rule, its text, or a function f(y, p) that takes a class position and a vector of
        `n_classes` probabilities and returns the loss: smaller is better.
    n_classes : int
        The number of classes, from 2 to 8.
    seed : int
        The seed of the random forecasts and of the optimiser.

    Returns
    -------
    Certificate
        What `verax.scores.properties.Properties` describes, as True or False. False is certain up to
        rounding; True means that neither grids nor optimisation found a counterexample. A failure
        smaller than about 1e-11 of the losses is out of reach.

    Examples
    --------
    >>> import verax as vx
    >>> certificate = vx.certify("sa_rps", 3)
    >>> certificate.proper
    False
    >>> print(certificate.findings["proper"].counterexample)
    truth (1/3, 1/3, 1/3): (0, 1, 0) is expected to lose 1/6, the truth 11/54
    """
    text, losses = losses_function(rule)
    # With more classes the grids of the search are too coarse to find anything.
    k = check_n_classes(n_classes, most=MOST_CLASSES)
    check_count("seed", seed, least=0)
    with np.errstate(all="ignore"):
        panel = Trial.of(probes(k, seed), losses)
        hunts: dict[Hunt, list[Trial]] = {}
        findings: dict[str, Finding] = {}
        for name, (scan, hunt) in _SEARCHES.items():
            if name == "strictly_proper" and not findings["proper"].holds:
                findings[name] = findings["proper"]
                continue
            found, checked = scan(panel)
            if found is None and hunt is not None:
                if hunt not in hunts:
                    hunts[hunt] = [Trial.of(p, losses) for p in hunt(panel, np.random.default_rng(seed))]
                found = next(filter(None, (scan(small)[0] for small in hunts[hunt])), None)
            findings[name] = Finding(found is None, checked, found)
        notes = () if findings["proper"].holds else _orientation(panel)
    return Certificate(text, k, findings, notes)


def _orientation(panel: Trial) -> tuple[str, ...]:
    if _proper(panel.negated())[0] is not None:
        return ()
    return ("-f looks proper, so f is probably a gain (larger is better); certify -f instead.",)
