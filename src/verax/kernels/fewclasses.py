"""The text that reduces rows of few classes to their statistics, several rows at once.

Every class has a name of its own in the text (v0, v1, ...), the outcome is called o. No branch depends on the
data: what does not count is replaced by zero. What the text requires (`Lines.require`) holds for rows that
are clearly valid and whose logarithms are those of normal numbers; other rows are scored by other means.
"""

from __future__ import annotations

from collections.abc import Collection

from verax.kernels.statistics import CUMULATIVE, MODE, Form
from verax.kernels.texts import Lines

# Up to this many classes a text has all of them; the time to compile grows with their number.
FEW = 10

# The statistics that a text can name.
KNOWN = frozenset({"p_true", "log_true", "rest_sq", "invalid"}) | MODE | CUMULATIVE

# Probabilities made of logits lose digits below this, because smaller ones than 2^-1021 count as zero.
_TINY = 2.0**-960


def strip_rows(n_classes: int) -> int:
    """Number of rows held at a time, given the number of classes: what the nearest cache holds."""
    return 512 if n_classes <= 5 else 256


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
    least = _TINY if form == "logits" else 2.0**-1022
    lines.let(lines.choose(happened, values), "p_true")
    if "rest_sq" in needs:
        rest = [lines.let(f"select({is_it}, 0.0, {v})") for is_it, v in zip(happened, values, strict=True)]
        lines.let(lines.total([f"{r} * {r}" for r in rest]), "rest_sq")
    if "invalid" in needs:
        lines.let("0.0", "invalid")
    if MODE & set(needs):
        _write_modes(lines, values, needs)
    if CUMULATIVE & set(needs):
        _write_cumulative(lines, values, needs, least)
    if form == "logits" and {"log_true", "decision"} & set(needs):
        lines.require_normal("p_true", least)


def _write_modes(lines: Lines, values: list[str], needs: Collection[str]) -> None:
    lines.let(lines.largest(values), "top")
    modes = [lines.let(f"{v} == top") for v in values]
    if {"hit", "answered"} & set(needs):
        n_modes = lines.total([f"select({mode}, 1.0, 0.0)" for mode in modes])
        share = lines.let(f"1.0 / {n_modes}")
        lines.let(f"select(p_true == top, {share}, 0.0)", "hit")
        lines.let("hit", "answered")
    if {"decision", "hit_lowest"} & set(needs):
        lines.let(lines.choose(modes, [f"U({j})" for j in range(len(values))]), "decision")
        lines.let("select(decision == U(o), 1.0, 0.0)", "hit_lowest")


def _write_cumulative(lines: Lines, values: list[str], needs: Collection[str], least: float) -> None:
    # A tail sum instead of 1 - P keeps all digits of forecasts that are nearly certain.
    below, above = lines.running(values[:-1]), lines.running(values[:0:-1])[::-1]
    reached = [lines.let(f"o <= {j}") for j in range(len(values) - 1)]
    sides = list(zip(reached, below, above, strict=True))
    if {"cdf_l1", "cdf_l2"} & set(needs):
        errors = [lines.let(f"select({at}, {a}, {b})") for at, b, a in sides]
        lines.let(lines.total(errors), "cdf_l1")
        lines.let(lines.total([f"{e} * {e}" for e in errors]), "cdf_l2")
    if "cdf_log" in needs:
        factors = [lines.let(f"select({at}, {b}, {a})") for at, b, a in sides]
        lines.let(f"-{lines.log_of_product(factors, least)}", "cdf_log")
