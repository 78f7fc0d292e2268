"""The text that reduces rows of few classes to their statistics, several rows at once.

Every class has a name of its own in the text (v0, v1, ...), the outcome is called o. No branch depends on the
data: what does not count is replaced by zero. What the text requires (`Lines.require`) holds for rows that
are clearly valid and whose logarithms are those of normal numbers; other rows are scored by other means.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from verax.kernels.statistics import CUMULATIVE, MODE, Form
from verax.kernels.texts import Lines

# Up to this many classes a text has all of them; the time to compile grows with their number.
FEW = 10

# How many rows are held at a time: few enough for memory to be read on meanwhile.
STRIP_ROWS = 128
_FOUR = 4

# The statistics that a text can name.
KNOWN = frozenset({"p_true", "log_true", "rest_sq", "invalid"}) | MODE | CUMULATIVE

# Probabilities made of logits lose digits below this, because smaller ones than 2^-1021 count as zero.
_TINY = 2.0**-960


def write_columns(
    lines: Lines, n: str, n_given: int, item: Callable[[str, int], str], when: str = "True"
) -> None:
    """Turn `n` rows into the columns of `strip`, so that the compiler can do several rows at once.

    `item` is the text of a number, by row and class. Squares of four rows and classes are turned at once
    where numbers of a row lie side by side, which is `when` that holds.
    """
    lines.let("0", "turned")
    if n_given >= _FOUR:
        lines.let(f"select({when}, {n} - {n} % {_FOUR}, 0)", "turned")
        lines.add(f"for i in range(0, turned, {_FOUR}):")
        for j in sorted({*range(0, n_given - _FOUR + 1, _FOUR), n_given - _FOUR}):
            items = ", ".join(item(f"i + {u}", j) for u in range(_FOUR))
            lines.add(f"    turn_square({items}, strip[{j}, i])")
    lines.add(f"for i in range(turned, {n}):")
    for j in range(n_given):
        lines.add(f"    strip[{j}, i] = {item('i', j)}")


def write_probabilities(lines: Lines, n_classes: int, form: Form, *, binary: bool) -> None:
    """Name the probabilities v0, v1, ... of the numbers q0, q1, ..., and require that they are clear.

    With `binary` the one number q0 is that of class 1, of two. Of logits it also names their distances from
    the largest, shifted0, shifted1, ..., and the total of their powers, total_power.
    """
    given = ["q0"] if binary else [f"q{j}" for j in range(n_classes)]
    if form == "logits":
        _write_softmax(lines, ["0.0", *given] if binary else given)
        return
    if binary:
        lines.require("(q0 >= 0.0) & (q0 <= 1.0)")
        lines.let("1.0 - q0", "v0")
        lines.let("q0", "v1")
        return
    lines.require(f"{lines.smallest(given)} >= 0.0")
    total = lines.total(given)
    if form == "rescaled":
        lines.require(f"({total} > 0.0) & ({total} < math.inf)")
    else:
        lines.require(f"abs({total} - 1.0) <= clear")
    for j, value in enumerate(given):
        lines.let(f"{value} / {total}" if form == "rescaled" else value, f"v{j}")


def _write_softmax(lines: Lines, given: list[str]) -> None:
    top = lines.largest(given)
    powers = [lines.exp(lines.let(f"{value} - {top}", f"shifted{j}")) for j, value in enumerate(given)]
    # A missing logit compares as false and would count as far below the largest.
    lines.require(" & ".join(f"({value} <= {top})" for value in given))
    lines.require(f"abs({top}) < math.inf")
    share = lines.let(f"1.0 / {lines.let(lines.total(powers), 'total_power')}")
    for j, power in enumerate(powers):
        lines.let(f"{power} * {share}", f"v{j}")


def write_statistics(lines: Lines, n_classes: int, needs: Collection[str], form: Form) -> None:
    """Name the statistics `needs` and `p_true`; the decision is an unsigned integer."""
    values = [f"v{j}" for j in range(n_classes)]
    lines.require(f"U(o) < U({n_classes})")
    happened = [lines.let(f"o == {j}") for j in range(n_classes)]
    least = _least(form)
    lines.let(lines.choose(happened, values), "p_true")
    if "rest_sq" in needs:
        rest = [lines.let(f"select({is_it}, 0.0, {v})") for is_it, v in zip(happened, values, strict=True)]
        lines.let(lines.total([f"{r} * {r}" for r in rest]), "rest_sq")
    if "invalid" in needs:
        lines.let("0.0", "invalid")
    if MODE & set(needs):
        write_modes(lines, values, needs)
    if CUMULATIVE & set(needs):
        _write_cumulative(lines, values, needs, least)
    if form == "logits" and {"log_true", "decision"} & set(needs):
        lines.require_normal("p_true", least)


@dataclass(frozen=True)
class AsOutcome:
    """A class as the outcome of a row.

    Attributes
    ----------
    statistics : dict of str to str
        What each statistic is.
    conditions : list of str
        What must hold for that.
    """

    statistics: dict[str, str]
    conditions: list[str]


def write_all_outcomes(
    lines: Lines, n_classes: int, needs: Collection[str], form: Form, one: str | None = None
) -> list[AsOutcome]:
    """The statistics `needs` of a row for each of the classes as its outcome.

    What classes have in common is computed once, and their sums are put together from sums over the classes
    before and after. `one` names the number 1 where logarithms of probabilities are cut off at it.
    """
    values = [f"v{j}" for j in range(n_classes)]
    outcomes = [AsOutcome({"p_true": v, "invalid": "0.0"}, []) for v in values]
    if "rest_sq" in needs:
        squares = [lines.let(f"{v} * {v}") for v in values]
        lines.let(lines.total(squares), "square_sum")
        _put(outcomes, "rest_sq", lines.split(squares[:-1], squares[1:]))
    if MODE & set(needs):
        write_modes(lines, values, {*needs, "hit"} - {"hit_lowest"}, outcome=None)
        for j, (outcome, v) in enumerate(zip(outcomes, values, strict=True)):
            hit = lines.let(f"select({v} == top, share_of_modes, 0.0)")
            lowest = f"select(decision == U({j}), 1.0, 0.0)"
            outcome.statistics.update(
                top="top", decision="decision", hit=hit, answered=hit, hit_lowest=lowest
            )
    if CUMULATIVE & set(needs):
        _write_thresholds(lines, values, needs, form, one, outcomes)
    if form == "logits" and {"log_true", "decision"} & set(needs):
        for outcome, v in zip(outcomes, values, strict=True):
            outcome.conditions.append(lines.is_normal(v, _least(form)))
    return outcomes


def _write_thresholds(
    lines: Lines,
    values: list[str],
    needs: Collection[str],
    form: Form,
    one: str | None,
    outcomes: list[AsOutcome],
) -> None:
    """The statistics of cumulative probabilities for each class as the outcome."""
    below, above = _sides(lines, values)
    if {"cdf_l1", "cdf_l2"} & set(needs):
        _put(outcomes, "cdf_l1", lines.split(below, above))
        squares = [[lines.let(f"{side} * {side}") for side in sides] for sides in (below, above)]
        _put(outcomes, "cdf_l2", lines.split(*squares))
    if "cdf_log" in needs:
        # The outermost sides are probabilities of classes, whose logarithms are needed anyway.
        ends = {values[0], values[-1]} if one is not None else set()
        cut = {
            side: f"select({side} < {one}, {side}, {one})" if side in ends else side for side in below + above
        }
        logs = [[lines.log(cut[side]) for side in sides] for sides in (above, below)]
        _put(outcomes, "cdf_log", [lines.let(f"-{total}") for total in lines.split(*logs)])
        for j, outcome in enumerate(outcomes):
            # The nearest side is the smallest of its kind.
            nearest = below[j : j + 1] + above[max(j - 1, 0) : j]
            outcome.conditions.extend(lines.is_normal(side, _least(form)) for side in nearest)


def _put(outcomes: list[AsOutcome], name: str, values: list[str]) -> None:
    for outcome, value in zip(outcomes, values, strict=True):
        outcome.statistics[name] = value


def _least(form: Form) -> float:
    """The smallest probability whose logarithm is known to be exact."""
    return _TINY if form == "logits" else 2.0**-1022


def write_modes(lines: Lines, values: list[str], needs: Collection[str], outcome: str | None = "o") -> None:
    """The statistics of a row about its modes, and those of its outcome, if that is named, with `p_true`."""
    lines.let(lines.largest(values), "top")
    modes = [lines.let(f"{v} == top") for v in values]
    if {"hit", "answered"} & set(needs):
        n_modes = lines.total([f"select({mode}, 1.0, 0.0)" for mode in modes])
        share = lines.let(f"1.0 / {n_modes}", "share_of_modes")
        if outcome is not None:
            lines.let(f"select(p_true == top, {share}, 0.0)", "hit")
            lines.let("hit", "answered")
    if {"decision", "hit_lowest"} & set(needs):
        lines.let(lines.choose(modes, [f"U({j})" for j in range(len(values))]), "decision")
        if outcome is not None:
            lines.let(f"select(decision == U({outcome}), 1.0, 0.0)", "hit_lowest")


def _sides(lines: Lines, values: list[str]) -> tuple[list[str], list[str]]:
    """The probabilities below and above each threshold.

    A tail sum instead of 1 - P keeps all digits of forecasts that are nearly certain.
    """
    return lines.running(values[:-1]), lines.running(values[:0:-1])[::-1]


def _write_cumulative(lines: Lines, values: list[str], needs: Collection[str], least: float) -> None:
    below, above = _sides(lines, values)
    reached = [lines.let(f"o <= {j}") for j in range(len(values) - 1)]
    sides = list(zip(reached, below, above, strict=True))
    if {"cdf_l1", "cdf_l2"} & set(needs):
        errors = [lines.let(f"select({at}, {a}, {b})") for at, b, a in sides]
        lines.let(lines.total(errors), "cdf_l1")
        lines.let(lines.total([f"{e} * {e}" for e in errors]), "cdf_l2")
    if "cdf_log" in needs:
        factors = [lines.let(f"select({at}, {b}, {a})") for at, b, a in sides]
        lines.let(f"-{lines.log_of_product(factors, least)}", "cdf_log")
