"""Compiled loops for rows of many classes: the loss of a rule, and its gradient in the logits.

A loop goes through one row after the other, whose numbers stay near: powers of the logits, running sums, and
the gradient. Sums of powers take the place of probabilities, so that nothing is divided by their total. One
text serves all numbers of classes. Rows of few classes are worked on side by side instead (`engines.slopes`).
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from verax._settings import settings
from verax.engines.formulas import write_formulas
from verax.engines.slopes import HITS, differentiated
from verax.engines.stats import Formula
from verax.engines.tracing import Trace
from verax.inputs.arrays import Array, Floats
from verax.kernels.fewclasses import FEW
from verax.kernels.functions import texts_of
from verax.kernels.ledger import kernels, spend
from verax.kernels.shared import FAR, TINY
from verax.kernels.texts import Kernel, Lines, compile_text
from verax.scores.base import Rule
from verax.scores.gradients.logits import losses_with_gradient

# Numbers of memory that a loop needs for each class: its power, and up to three kinds of running sums.
ROOM = 4
# The statistics that a loop knows, and that move with the logits.
_KNOWN = frozenset({"log_true", "rest_sq", "cdf_l2", "cdf_l1", "cdf_log"})
_ERRORS = frozenset({"cdf_l2", "cdf_l1"})
# Logits of rows from which a further thread pays, and that array calls take as long for as for a call on few.
_PART_OF_ROWS = 2**17
_LIKE_A_CALL = 2**14
# The product of eight sums of powers, each of them at least this, is a normal number.
_EIGHT = 2.0**-120


def compiles_rows(rule: Rule, n: int, k: int) -> bool:
    """Whether a training loop has called a loss of rows of many classes often enough, and there is a loop.

    Large batches count several times, because array calls take longer for them. Counts the call.
    """
    calls = 1 + n * k // _LIKE_A_CALL
    if k <= FEW or spend((rule, k, "rows"), calls) <= settings.loss_compiled_after:
        return False
    return kernels() is not None and fuse_row_losses(rule, k) is not None


def losses_with_slopes(
    rule: Rule, z: Array, y: Array, factors: Floats, n_threads: int
) -> tuple[Floats, Array]:
    """The loss of each row of logits (N, K), and its gradient times the row's factor, in the type of these.

    By the loop that `compiles_rows` found; rows that it leaves go through array calls.
    """
    fused = fuse_row_losses(rule, z.shape[1])
    assert fused is not None
    kernel, constants = fused
    n, k = z.shape
    z, y = np.ascontiguousarray(z), np.ascontiguousarray(y)
    losses, g, left = np.empty(n), np.empty_like(z), np.empty(n, np.bool_)

    def work(part: slice) -> None:
        room = np.empty((ROOM, k))
        kernel(z[part], y[part], factors[part], constants, room, losses[part], g[part], left[part])

    n_threads = min(n_threads, n * k // _PART_OF_ROWS, n)
    if n_threads < 2:
        work(slice(None))
    else:
        ends = [n * i // n_threads for i in range(n_threads + 1)]
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, map(slice, ends[:-1], ends[1:])))
    if left.any():
        rest = np.ascontiguousarray(z[left].T, np.float64)
        losses[left], slopes = losses_with_gradient(rule, rest, y[left], repeated=True)
        g[left] = (slopes * factors[left]).T
    return losses, g


@lru_cache(maxsize=64)
def fuse_row_losses(rule: Formula, n_classes: int) -> tuple[Kernel, Floats] | None:
    """A kernel (z, y, factors, constants, room, losses, g, left) and its constants.

    None if the formula cannot be traced, has no derivative or reads a statistic that is not known here. The
    kernel reads logits `z`, (N, K), and writes the loss of each row and its gradient times the row's factor,
    (N, K). `room` is memory, (ROOM, K). It sets `left` for rows whose results are not to be used.
    """
    derivatives = differentiated(rule, n_classes, _KNOWN, losses=True)
    if derivatives is None:
        return None
    trace, slopes = derivatives
    reads = {*trace.statistics, *slopes}
    texts = [_write_kernel(trace, slopes, reads), _write_powers(reads), _write_logs()]
    return compile_text("\n".join([*texts, texts_of(run_up, run_down)]), __file__), np.array(trace.constants)


def _write_kernel(trace: Trace, slopes: dict[str, str], reads: Collection[str]) -> str:
    row = Lines(8)
    for i in range(len(trace.constants)):
        row.let(f"c[{i}]", f"c{i}")
    for line in (
        "k = z.shape[1]",
        "o = y[i]",
        "e = room[0]",
        "top = np.float64(z[i, 0])",
        "for j in range(1, k):",
        "    top = higher(top, np.float64(z[i, j]))",
        "rest_power, rest_squares, modes, earlier, odd = powers(z[i], top, o, e)",
        "total_power = rest_power + e[o]",
        "share = 1.0 / total_power",
        "others = rest_power * share",
        "p_outcome = e[o] * share",
    ):
        row.add(line)
    row.require("(odd == 0.0) & (abs(top) < math.inf)")
    _write_statistics(row, trace, reads)
    write_formulas(row, trace)
    (loss,) = trace.losses
    along = _write_factors(row, slopes)
    sums = [f"abs({loss})", *(f"abs({name})" for name in along.values())]
    row.require(f"{row.total([row.let(text) for text in sums])} < math.inf")
    row.all_hold("ok")
    row.add(f"losses[i] = {loss}")
    row.add("left[i] = not ok")
    row.add("factor = factors[i]")
    _write_gradient(row, along)
    head = "def kernel(z, y, factors, c, room, losses, g, left):\n    for i in range(y.size):"
    return "\n".join([head, *row.text])


def _write_powers(reads: Collection[str]) -> str:
    """The function that writes the powers of a row's logits and adds up those of all classes but the outcome.

    It also counts the largest ones, overall and before the outcome, and NaN; where logarithms of sums are
    needed also logits that are so small that sums lose them.
    """
    lines = Lines(8)
    lines.let("np.float64(z[j]) - top", "x")
    power = lines.exp("x")
    lines.add(f"e[j] = {power}")
    lines.let(f"select(j == o, 0.0, {power})", "rest")
    lines.add("total = plus(total, rest)")
    if "rest_sq" in reads:
        lines.add("squares = plus(squares, rest * rest)")
    if HITS & set(reads):
        lines.let("select(x == 0.0, 1.0, 0.0)", "mode")
        lines.add("modes = plus(modes, mode)")
    if "hit_lowest" in reads:
        lines.add("earlier = plus(earlier, select(j < o, mode, 0.0))")
    known = f"(x <= 0.0) & (x >= {FAR!r})" if "cdf_log" in reads else "x <= 0.0"
    lines.add(f"odd = plus(odd, select({known}, 0.0, 1.0))")
    kinds = ", ".join(["float"] * 5)
    head = [
        f"def powers(z, top, o, e) -> tuple[{kinds}]:",
        "    total, squares, modes, earlier, odd = 0.0, 0.0, 0.0, 0.0, 0.0",
        "    for j in range(z.shape[0]):",
    ]
    return "\n".join([*head, *lines.text, "    return total, squares, modes, earlier, odd"])


def _write_logs() -> str:
    """The functions that add up the logarithms of normal numbers, one by one or of products of eight."""
    lines, eight = Lines(8), Lines(8)
    lines.add(f"total = plus(total, {lines.log('x[j]')})")
    factors = " * ".join(f"x[j + {i}]" for i in range(8))
    eight.add(f"total = plus(total, {eight.log(factors)})")
    return "\n".join(
        [
            "def logs(x, start, stop) -> float:",
            "    total = 0.0",
            "    for j in range(start, stop):",
            *lines.text,
            "    return total",
            "def logs_of_eight(x, stop) -> float:",
            "    total = 0.0",
            "    for j in range(0, stop, 8):",
            *eight.text,
            "    return total",
        ]
    )


def _write_statistics(row: Lines, trace: Trace, reads: Collection[str]) -> None:
    """Name the statistics that the formulas read, and write the running sums that derivatives read."""
    if "log_true" in reads or "cdf_log" in reads:
        row.let(row.log("total_power"), "log_total")
    if _ERRORS & set(reads):
        for line in (
            # The error of each threshold; then for each class the sum of those between it and the outcome.
            "errors = room[1]",
            "between = room[2]",
            "run_up(e, errors, 0, o, 0, 0.0)",
            "run_down(e, errors, o + 1, k, -1, 0.0)",
            "l1 = 0.0",
            "l2 = 0.0",
            "for j in range(k - 1):",
            "    l1 = plus(l1, errors[j])",
            "    l2 = plus(l2, errors[j] * errors[j])",
            "between[o] = 0.0",
            "run_down(errors, between, 0, o, 0, 0.0)",
            "run_up(errors, between, o, k - 1, 1, 0.0)",
        ):
            row.add(line)
    if "cdf_log" in reads:
        _write_sides(row)
    statistics = {
        "log_true": "np.float64(z[i, o]) - top - log_total",
        "p_true": "p_outcome",
        "rest_sq": "rest_squares * (share * share)",
        "cdf_l2": "l2 * (share * share)",
        "cdf_l1": "l1 * share",
        "cdf_log": "np.float64(k - 1) * log_total - log_sides",
        "hit": "select(e[o] == 1.0, 1.0 / modes, 0.0)",
        "answered": "select(e[o] == 1.0, 1.0 / modes, 0.0)",
        "hit_lowest": "select((e[o] == 1.0) & (earlier == 0.0), 1.0, 0.0)",
    }
    for name in dict.fromkeys(["p_true", *trace.statistics]):
        value = row.let(statistics[name])
        # As in derivatives by array calls, what roots and logarithms are taken of stays positive.
        least = name not in HITS and name != "log_true"
        row.let(f"select({value} > {TINY!r}, {value}, {TINY!r})" if least else value, name)


def _write_sides(row: Lines) -> None:
    """The side of the outcome of each threshold, the sum of their logarithms, and of inverses by class."""
    for line in (
        "sides = room[1]",
        "inverse = room[3]",
        "before = 0.0",
        "for j in range(o):",
        "    before = plus(before, e[j])",
        "after = 0.0",
        "for j in range(o + 1, k):",
        "    after = plus(after, e[j])",
        "run_up(e, sides, o, k - 1, 0, before)",
        "run_down(e, sides, 1, o + 1, -1, after)",
        "log_sides = 0.0",
        f"whole = select(e[o] >= {_EIGHT!r}, (k - 1) - (k - 1) % 8, 0)",
        "log_sides = logs_of_eight(sides, whole) + logs(sides, whole, k - 1)",
        "from_above = 0.0",
        "for j in range(o):",
        "    sides[j] = 1.0 / sides[j]",
        "    from_above = plus(from_above, sides[j])",
        "from_below = 0.0",
        "for j in range(o, k - 1):",
        "    sides[j] = 1.0 / sides[j]",
        "    from_below = plus(from_below, sides[j])",
        # A threshold's side that holds class j gains from it the share that j is of that side.
        "inverse[0] = from_below",
        "inverse[k - 1] = from_above",
        "run_up(sides, inverse, 0, o, 1, from_below)",
        "run_down(sides, inverse, o + 1, k - 1, 0, from_above)",
        "inverse[o] = from_below + from_above",
    ):
        row.add(line)


def _write_factors(row: Lines, slopes: dict[str, str]) -> dict[str, str]:
    """The names of the factors of a row's gradient, by what they are factors of.

    The derivative in the logit of class j is its probability times a sum of: 1, the probability, the sum of
    errors between j and the outcome, the steps between them, and the inverse sums.
    """
    along: dict[str, str] = {}
    constant = []
    if "log_true" in slopes or "p_true" in slopes:
        terms = [slopes["log_true"]] if "log_true" in slopes else []
        terms += [f"{slopes['p_true']} * p_true"] if "p_true" in slopes else []
        along["outcome"] = row.let(row.total([row.let(term) for term in terms]))
        constant.append(row.let(f"-{along['outcome']}"))
    if "rest_sq" in slopes:
        along["power"] = row.let(f"2.0 * {slopes['rest_sq']} * share")
        constant.append(row.let(f"-2.0 * {slopes['rest_sq']} * (rest_squares * (share * share))"))
    if "cdf_l2" in slopes:
        along["between"] = row.let(f"2.0 * {slopes['cdf_l2']} * share")
        constant.append(row.let(f"-2.0 * {slopes['cdf_l2']} * (l2 * (share * share))"))
    if "cdf_l1" in slopes:
        along["steps"] = row.let(slopes["cdf_l1"])
        constant.append(row.let(f"-{slopes['cdf_l1']} * (l1 * share)"))
    if "cdf_log" in slopes:
        # The sum is largest at the outcome.
        row.require(f"abs({slopes['cdf_log']} * total_power * inverse[o]) < math.inf")
        along["inverse"] = row.let(f"-{slopes['cdf_log']} * total_power")
        constant.append(row.let(f"np.float64(k - 1) * {slopes['cdf_log']}"))
    along["constant"] = row.let(row.total(constant))
    return along


def _write_gradient(row: Lines, along: dict[str, str]) -> None:
    """Write the gradient of a row times its factor."""
    row.let("factor * share", "scale")
    terms = {
        "constant": "{}",
        "power": "{} * e[j]",
        "between": "{} * between[j]",
        "steps": "{} * np.float64(abs(j - o))",
        "inverse": "{} * inverse[j]",
    }
    named = {name: row.let(f"{along[name]} * scale") for name in terms if name in along}
    row.add("for j in range(k):")
    row.add(f"    g[i, j] = e[j] * ({' + '.join(terms[name].format(f) for name, f in named.items())})")
    if "outcome" in along or "power" in along:
        # The probability of the others keeps all digits where that of the outcome is nearly 1.
        at = [f"{named['constant']} + {along.get('outcome', '0.0')} * scale"]
        at += [f"{named[name]} * {name}[o]" for name in ("inverse",) if name in named]
        own = f"e[o] * ({' + '.join(at)})"
        row.add(f"g[i, o] = {own} + factor * {along.get('outcome', '0.0')} * others")


# ---- running sums: four at a time, so that a sum does not wait for each of the sums before it


def run_up(given: Any, out: Any, start: int, stop: int, shift: int, base: float) -> None:
    """Write the sums of `base` and the numbers from `start` up to each, `shift` items after its number."""
    total, whole = base, stop - (stop - start) % 4
    for j in range(start, whole, 4):
        a = given[j]
        b = a + given[j + 1]
        c = b + given[j + 2]
        d = c + given[j + 3]
        out[j + shift] = total + a
        out[j + 1 + shift] = total + b
        out[j + 2 + shift] = total + c
        total += d
        out[j + 3 + shift] = total
    for j in range(whole, stop):
        total += given[j]
        out[j + shift] = total


def run_down(given: Any, out: Any, start: int, stop: int, shift: int, base: float) -> None:
    """Write the sums of `base` and the numbers before `stop` down to each, as `run_up` does."""
    total, whole = base, start + (stop - start) % 4
    for j in range(stop - 1, whole + 2, -4):
        a = given[j]
        b = a + given[j - 1]
        c = b + given[j - 2]
        d = c + given[j - 3]
        out[j + shift] = total + a
        out[j - 1 + shift] = total + b
        out[j - 2 + shift] = total + c
        total += d
        out[j - 3 + shift] = total
    for j in range(whole - 1, start - 1, -1):
        total += given[j]
        out[j + shift] = total
