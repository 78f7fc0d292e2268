"""Compiled loops, made of a rule's formula, for its gradient in logits with the expected Hessian or the loss.

For the expected Hessian the steps of the formula and of its derivatives (`engines.tracing`) are printed
once for every class: as if that class had happened. The gradient and the loss need those of the outcome. How
the row statistics move with the logits is written as in `scores.gradients.statistics`, for rows of few
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import itemgetter

import numpy as np

from verax.common.caching import cached_property
from verax.engines.formulas import write_formulas
from verax.engines.stats import Formula
from verax.engines.tracing import Trace, differentiate, record
from verax.inputs.arrays import Floats
from verax.kernels.fewclasses import FEW, STRIP_ROWS, write_modes, write_probabilities
from verax.kernels.shared import FAR, TINY
from verax.kernels.texts import Kernel, Lines, compile_text

# Statistics that are constant but for jumps: they have no derivative, and count as flat.
_FLAT = frozenset({"hit", "answered", "hit_lowest", "decision", "invalid"})
# Those of them that only losses need.
HITS = frozenset({"hit", "answered", "hit_lowest"})


@lru_cache(maxsize=64)
def fuse_slopes(
    rule: Formula, n_classes: int, *, binary: bool, weighted: bool
) -> tuple[Kernel, Floats] | None:
    """A kernel (z, y, weights, constants, floor, factor, curvature, least, g, h, left) and its constants.

    None if the formula cannot be traced, has no derivative or reads a statistic that is not known here, and
    for more than FEW classes. The kernel reads the logits `z`, with `binary` one column of log odds. Into `g`
    goes the gradient times `factor`; into `h` the expected Hessian, lifted to `floor` times that of the log
    score, times `curvature`, and at least `least`; both times the weight. It sets `left` for rows whose
    results are not to be used: numbers on the way left the range of floats.
    """
    derivatives = differentiated(rule, n_classes, _DIRECTIONS.keys(), losses=False)
    if n_classes > FEW or derivatives is None:
        return None
    trace, slopes = derivatives
    kept = [1] if binary else list(range(n_classes))

    def write(row: Lines) -> list[str]:
        write_probabilities(row, n_classes, "logits", binary=binary)
        results = _write_derivatives(row, trace, slopes, n_classes, kept)
        return [row.let(f"{result} * w[start + i]") for result in results] if weighted else results

    columns = ["start + i"] if binary else [f"start + i, {j}" for j in kept]
    text = _loop(
        "z, y, w, c, floor, factor, curvature, least, g, h, left",
        len(trace.constants),
        [f"z[{column}]" for column in columns],
        write,
        [f"{result}[{column}]" for result in "gh" for column in columns],
    )
    return compile_text(text, __file__), np.array(trace.constants)


@lru_cache(maxsize=64)
def fuse_losses_with_slopes(rule: Formula, n_classes: int) -> tuple[Kernel, Floats] | None:
    """A kernel (z, y, constants, losses, g, left) and its constants; None as in `fuse_slopes`.

    The kernel reads the logits `z`, of shape (K, N), and writes the loss of each row and its gradient, of the
    same shape.
    """
    derivatives = differentiated(rule, n_classes, _DIRECTIONS.keys(), losses=True)
    if n_classes > FEW or derivatives is None:
        return None
    trace, slopes = derivatives
    (loss,) = trace.losses

    def write(row: Lines) -> list[str]:
        write_probabilities(row, n_classes, "logits", binary=False)
        begun = _begun(row, trace, slopes, n_classes)
        if hits := HITS & set(trace.statistics):
            row.let(begun.at_outcome(begun.p), "p_true")
            write_modes(row, begun.p, hits)
        partials = _write_partials(begun, trace, slopes, begun.at_outcome)
        return [loss, *_write_gradient(begun, partials, range(n_classes))]

    lines = [f"{j}, start + i" for j in range(n_classes)]
    given, places = [f"z[{line}]" for line in lines], ["losses[start + i]", *(f"g[{line}]" for line in lines)]
    text = _loop("z, y, c, losses, g, left", len(trace.constants), given, write, places)
    return compile_text(text, __file__), np.array(trace.constants)


def differentiated(
    rule: Formula, n_classes: int, known: Collection[str], *, losses: bool
) -> tuple[Trace, dict[str, str]] | None:
    """The steps of the derivatives of a rule, with those of its loss if asked for, and their names.

    None if there are none, or if they read statistics besides the `known` ones, that of the outcome's
    probability, and for losses those of whether the outcome is the most likely class.
    """
    trace = record([rule], n_classes, log_true=True)
    if trace is None:
        return None
    trace, slopes = _alive(*differentiate(trace), trace.losses if losses else ())
    needed = {*trace.statistics, *slopes} - {"p_true"}
    # The loss of the modes is a number of its own, beside which nothing else is asked of them.
    needed -= HITS if losses and "top" not in needed else frozenset()
    return (trace, slopes) if slopes and needed <= set(known) else None


def _alive(trace: Trace, slopes: dict[str, str], losses: Sequence[str]) -> tuple[Trace, dict[str, str]]:
    """The slopes that are not flat, and the trace with only what these and some losses depend on."""
    slopes = {name: slope for name, slope in slopes.items() if name not in _FLAT}
    read = {*slopes.values(), *losses, *({"p_true"} & set(slopes))}
    steps = []
    for step in reversed(trace.steps):
        if step.name in read:
            steps.append(step)
            read.update(step.operands)
    statistics = tuple(name for name in trace.statistics if name in read)
    return replace(trace, statistics=statistics, steps=tuple(reversed(steps)), losses=tuple(losses)), slopes


def _loop(
    parameters: str,
    n_constants: int,
    given: Sequence[str],
    write: Callable[[Lines], list[str]],
    places: Sequence[str],
) -> str:
    """The text of a kernel that reads what is `given` as q0, q1, ..., and writes results to their places."""
    size, n_given = STRIP_ROWS, len(given)
    head = Lines(4)
    for i in range(n_constants):
        head.let(f"c[{i}]", f"c{i}")
    # One array for all, so that the compiler knows that its rows do not overlap: logits, results, doubts.
    head.add(f"strip = np.empty(({n_given + len(places) + 1}, {size}))")
    head.add(f"for start in range(0, y.size, {size}):")
    strip = Lines(8)
    strip.add(f"n = min({size}, y.size - start)")
    strip.add("for i in range(n):")
    for j, number in enumerate(given):
        strip.add(f"    strip[{j}, i] = {number}")
    strip.add("for i in range(n):")
    row = Lines(12)
    row.let("y[start + i]", "o")
    for j in range(n_given):
        row.let(f"strip[{j}, i]", f"q{j}")
    results = write(row)
    row.require(f"{row.total([row.let(f'abs({result})') for result in results])} < math.inf")
    row.all_hold("ok")
    for j, result in enumerate([*results, "select(ok, 0.0, 1.0)"], n_given):
        row.add(f"strip[{j}, i] = {result}")
    end = Lines(8)
    end.add("for i in range(n):")
    for j, place in enumerate(places, n_given):
        end.add(f"    {place} = strip[{j}, i]")
    end.add(f"    left[start + i] = strip[{n_given + len(places)}, i] > 0.0")
    return "\n".join([f"def kernel({parameters}):", *head.text, *strip.text, *row.text, *end.text])


def _begun(lines: Lines, trace: Trace, slopes: dict[str, str], k: int) -> _Row:
    """The names of a row before any derivative is written."""
    if "cdf_log" in trace.statistics or "cdf_log" in slopes:
        lines.require(f"{lines.smallest([f'shifted{j}' for j in range(k)])} >= {FAR!r}")
    return _Row(lines, k)


def _write_derivatives(
    lines: Lines, trace: Trace, slopes: dict[str, str], k: int, kept: Sequence[int]
) -> list[str]:
    """The names of the gradient in the logits that are kept, then those of the expected Hessian."""
    row = _begun(lines, trace, slopes, k)
    partials = [_write_partials(row, trace, slopes, itemgetter(j)) for j in range(k)]
    owns = []
    for j in kept:
        terms = [f"{partial} * {_DIRECTIONS[name].of_class(row, j)}" for name, partial in partials[j].items()]
        second = lines.total([lines.let(term) for term in terms])
        lines.require(f"abs({second}) < math.inf")
        lowest = lines.let(f"floor * {row.others[j]}")
        value = lines.let(f"{row.p[j]} * select(-{second} > {lowest}, -{second}, {lowest}) * curvature")
        owns.append(lines.let(f"select({value} > least, {value}, least)"))
    of_outcome = {name: row.at_outcome([partials[j][name] for j in range(k)]) for name in partials[0]}
    return [lines.let(f"{total} * factor") for total in _write_gradient(row, of_outcome, kept)] + owns


def _write_gradient(row: _Row, partials: Mapping[str, str], kept: Sequence[int]) -> list[str]:
    """The names of the gradient in some logits, from the derivatives in each direction at the outcome."""
    totals: list[list[str]] = [[] for _ in kept]
    for name, partial in partials.items():
        moves = _DIRECTIONS[name].slopes(row)
        for total, j in zip(totals, kept, strict=True):
            total.append(row.lines.let(f"{partial} * {moves[j]}"))
    return [row.lines.total(total) for total in totals]


def _write_partials(
    row: _Row, trace: Trace, slopes: dict[str, str], of: Callable[[list[str]], str]
) -> dict[str, str]:
    """The derivative of the loss in each direction; `of` chooses the class that happens among all.

    The probability of that class moves as its logarithm.
    """
    lines = row.lines
    for name in trace.statistics:
        if name in HITS:
            continue
        if name == "log_true":
            lines.let(of(row.log_p), name)
        else:
            value = of(row.p if name == "p_true" else _DIRECTIONS[name].values(row))
            lines.let(f"select({value} > {TINY!r}, {value}, {TINY!r})", name)
    write_formulas(lines, trace)
    # Steps have the same names for every class, so what is kept of them gets names of its own.
    partials = {name: lines.let(slope) for name, slope in slopes.items() if name != "p_true"}
    if "p_true" in slopes:
        of_logarithm = lines.let(f"{slopes['p_true']} * p_true")
        known = partials.get("log_true")
        partials["log_true"] = of_logarithm if known is None else lines.let(f"{known} + {of_logarithm}")
    return partials


# ---- how statistics move -----------------------------------------------------------------------


class _Row:
    """Names of the parts of a row's statistics and their derivatives; lists over classes.

    Each is written where it is first asked for, once. The same as `scores.gradients.statistics.Block`.
    """

    def __init__(self, lines: Lines, n_classes: int) -> None:
        self.lines, self.n_classes = lines, n_classes
        self.p = [f"v{j}" for j in range(n_classes)]
        self.happened = [lines.let(f"o == {j}") for j in range(n_classes)]
        lines.let("np.float64(o)", "place")

    def let_all(self, text: str, *of: Sequence[str]) -> list[str]:
        """Name the values of a text for the members of some lists, one after the other."""
        return [self.lines.let(text.format(*members, j=j)) for j, members in enumerate(zip(*of, strict=True))]

    def before(self, terms: Sequence[str]) -> list[str]:
        """Running sums, beginning with nothing."""
        return ["0.0", *self.lines.running(terms)]

    def after(self, terms: Sequence[str]) -> list[str]:
        """The sums of the terms from each on, ending with nothing."""
        return self.before(terms[::-1])[::-1]

    def around(self, before: Sequence[str], after: Sequence[str]) -> list[str]:
        """The sums of the first terms before each place and of the second terms from it on."""
        return self.let_all("{} + {}", self.before(before), self.after(after))

    def at_outcome(self, values: Sequence[str]) -> str:
        return self.lines.choose(self.happened, values)

    @cached_property
    def others(self) -> list[str]:
        return self.around(self.p[:-1], self.p[1:])

    @cached_property
    def log_p(self) -> list[str]:
        log = self.lines.log("total_power")
        return [self.lines.let(f"shifted{j} - {log}") for j in range(self.n_classes)]

    @cached_property
    def below(self) -> list[str]:
        return self.before(self.p)[1:-1]

    @cached_property
    def above(self) -> list[str]:
        return self.after(self.p)[1:-1]

    @cached_property
    def distances(self) -> tuple[list[str], list[str]]:
        return self.before(self.below), self.after(self.above)

    @cached_property
    def odds(self) -> tuple[list[str], list[str]]:
        return self.after(self.let_all("1.0 / {}", self.below)), self.before(
            self.let_all("1.0 / {}", self.above)
        )

    @cached_property
    def rest_sq(self) -> list[str]:
        squares = self.let_all("{0} * {0}", self.p)
        return self.around(squares[:-1], squares[1:])

    @cached_property
    def cdf_l2(self) -> list[str]:
        return self.around(self.let_all("{0} * {0}", self.below), self.let_all("{0} * {0}", self.above))

    @cached_property
    def cdf_l1(self) -> list[str]:
        return self.let_all("{} + {}", *self.distances)

    @cached_property
    def cdf_log(self) -> list[str]:
        above, below = ([self.lines.log(x) for x in side] for side in (self.above, self.below))
        return self.let_all("-{}", self.around(above, below))


@dataclass(frozen=True)
class _Direction:
    """A statistic, how it moves with each logit, and how with that of class j if j happens."""

    values: Callable[[_Row], list[str]]
    slopes: Callable[[_Row], list[str]]
    of_class: Callable[[_Row, int], str]


def _rest_sq(row: _Row) -> list[str]:
    rest = row.at_outcome(row.rest_sq)
    text = f"2.0 * {{0}} * select({{1}}, -{rest}, {{0}} - {rest})"
    return row.let_all(text, row.p, row.happened)


def _cdf_l2(row: _Row) -> list[str]:
    up, down = row.distances
    here_up, here_down = row.at_outcome(up), row.at_outcome(down)
    gains = row.let_all(f"select({here_up} > {{0}}, {here_up} - {{0}}, 0.0)", up)
    losses = row.let_all(f"select({{0}} < {here_down}, {{0}}, {here_down})", down)
    a = row.let_all("{} - {}", gains, losses)
    mean = row.lines.total(row.let_all("{} * {}", row.p, a))
    return row.let_all(f"2.0 * {{}} * ({{}} - {mean})", row.p, a)


def _cdf_l1(row: _Row) -> list[str]:
    distance = row.at_outcome(row.cdf_l1)
    return row.let_all(f"{{}} * (abs({{j}}.0 - place) - {distance})", row.p)


def _cdf_log(row: _Row) -> list[str]:
    shares = []
    for odds in row.odds:
        here = row.at_outcome(odds)
        shares.append(row.let_all(f"{{0}} * select({{1}} < {here}, {{1}}, {here})", row.p, odds))
    return row.let_all(f"{row.n_classes - 1}.0 * {{}} - ({{}} + {{}})", row.p, *shares)


def _cdf_log_of_class(row: _Row, j: int) -> str:
    below, above = (odds[j] for odds in row.odds)
    p = row.p[j]
    return f"({row.n_classes - 1}.0 * {p} - {p} * {below} - {p} * {above})"


_DIRECTIONS = {
    "log_true": _Direction(
        lambda row: row.log_p,
        lambda row: row.let_all("select({}, {}, -{})", row.happened, row.others, row.p),
        lambda row, j: row.others[j],
    ),
    "rest_sq": _Direction(
        lambda row: row.rest_sq, _rest_sq, lambda row, j: f"(-2.0 * {row.p[j]} * {row.rest_sq[j]})"
    ),
    "cdf_l2": _Direction(
        lambda row: row.cdf_l2, _cdf_l2, lambda row, j: f"(-2.0 * {row.p[j]} * {row.cdf_l2[j]})"
    ),
    "cdf_l1": _Direction(lambda row: row.cdf_l1, _cdf_l1, lambda row, j: f"(-{row.p[j]} * {row.cdf_l1[j]})"),
    "cdf_log": _Direction(lambda row: row.cdf_log, _cdf_log, _cdf_log_of_class),
}
