"""From the formulas of several rules to compiled loops that sum their losses.

Every step of the formulas' trace (`engines.tracing`) becomes a line of a loop body, and constants become
parameters. There are two kinds of loops. One reads the rows themselves and makes everything at once:
probabilities, statistics, losses, sums and counts (`fuse_rows`). It is printed for each small number of
classes, and once for all others. For groups, for logits of many classes, and for top lists, a loop reads the
statistics that another kernel has left in a buffer (`fuse`); its text is the same for every number of
classes. Formulas that have no trace are not fused: they run as NumPy calls.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from verax.engines.formulas import write_formulas, write_mean_losses, write_row, write_shares
from verax.engines.gathering import LINE, independent_of, row_of_group
from verax.engines.stats import Formula
from verax.engines.tracing import Trace, record
from verax.inputs.arrays import Floats
from verax.kernels.dense import STRIP, statistic_flags, strip_statistics
from verax.kernels.fewclasses import (
    FEW,
    KNOWN,
    STRIP_ROWS,
    write_columns,
    write_probabilities,
    write_statistics,
)
from verax.kernels.functions import texts_of
from verax.kernels.shared import FULL
from verax.kernels.statistics import PLACE, Form
from verax.kernels.texts import Kernel, Lines, compile_text

# A shift may be this many times the mean loss: each factor of two costs the sum a binary digit.
_FAR = 128.0
# The shift may lie ten standard deviations from the mean, for the same reason: 0.99 = 1 - 1 / (1 + 10^2).
# Where it lies closer than this share of the mean, the deviations are as exact as the losses are.
_SPREAD, _CLOSE = 0.99, 1e-6
# Rows at a time where results of each row are written.
_WRITTEN = 64
# Distance in rows at which the sums of groups are prefetched.
_AHEAD = 16
# Rows are counted into this number of tables by turns, so that rows of one cell do not wait for each other.
_TABLES = 4


@lru_cache(maxsize=64)
def fuse(rules: tuple[Formula, ...], n_classes: int, weighted: bool) -> tuple[Kernel, Floats] | None:
    """A kernel (stats, first, last, weights, constants, shift, out, sums) and its constants.

    None if a formula cannot be traced. For each rule the kernel writes to `out` the sums over the rows
    `first` to `last` of w*d and w*d*d, with d the loss minus `shift`; below the rules stand the weight and
    the number of rows with weight. With weights two more columns have the same sums with the weights squared.
    If the sums can be trusted it adds them to `sums` and returns True. It returns False where a loss is
    infinite, where the logarithm of a number is needed that is zero, negative, subnormal or not finite, and
    where the shift lies too far from the losses. The caller then sums these rows by other means.
    """
    trace = record(rules, n_classes)
    if trace is None:
        return None
    return compile_text(_buffer_loop(trace, weighted), __file__), np.array(trace.constants)


def _buffer_loop(trace: Trace, weighted: bool) -> str:
    n = len(trace.losses)
    head, body = Lines(4), Lines(8)
    _write_parameters(head, trace)
    _write_zeros(head, n, weighted)
    head.add("for i in range(first, last):")
    for name in trace.statistics:
        body.let(f"s[{PLACE[name]}, i]", name)
    if weighted:
        body.let("w[i]", "weight_of_row")
    write_formulas(body, trace)
    body.all_hold("ok")
    _write_sums(body, trace, weighted)
    tail = Lines(4)
    _write_out(tail, n, weighted)
    tail.add("fine = n_rows == last - first")
    _write_acceptance(tail, n, weighted)
    tail.add("return fine")
    start = "def kernel(s, first, last, w, c, m, out, sums) -> bool:"
    return "\n".join([start, *head.text, *body.text, *tail.text])


@dataclass(frozen=True)
class Layout:
    """The memory layout of rows and the required results: all that a kernel is printed for.

    Attributes
    ----------
    n_classes : int
        The number of classes. Beyond FEW it is not part of the text, and rows must be probabilities that lie
        one after the other.
    columns : bool
        Whether `p` is a tuple of 1-D arrays; otherwise it is one (n, K) array.
    form : Form
        What the numbers are.
    binary : bool
        Whether there is one number per row, that of class 1.
    weighted : bool
        Whether rows have weights.
    counts : bool
        Whether outcomes are counted against decisions.
    shared : {"", "shares", "counts"}
        What outcomes are of which every class may have a share: shares, or whole numbers of raters.
    grouped : bool
        Whether the losses and the cell of each row are written, for the sums of groups.
    """

    n_classes: int
    columns: bool
    form: Form
    binary: bool
    weighted: bool
    counts: bool
    shared: Literal["", "shares", "counts"] = ""
    grouped: bool = False

    @property
    def many(self) -> bool:
        """Whether there are too many classes to print a text for their number."""
        return self.n_classes > FEW

    @property
    def n_given(self) -> int:
        """The number of values in a row."""
        return 1 if self.binary else self.n_classes


@lru_cache(maxsize=64)
def fuse_rows(rules: tuple[Formula, ...], layout: Layout) -> tuple[Kernel, Floats] | None:
    """A kernel (p, y, shares, weights, clear, constants, shift, rough, sums, cells, squares, decided, left)
    and its constants; for groups it has five more parameters.

    None if a formula cannot be traced. The kernel adds to `sums` what `fuse` says, and to `cells` (both parts
    of a compensated sum, with weights also `squares`) the weights of outcomes against decisions. Of many
    classes it writes the decisions to `decided` instead, -1 for rows that it left out. It writes to
    `left` the numbers of the rows that it left out, and returns how many: rows that are not clearly valid,
    whose losses may be infinite, whose outcome had probability zero (where `layout.counts`), and strips of
    rows for which the shift lies too far from the losses. These are summed nevertheless if `rough`.

    For groups, `codes` has the group of each row. The losses of which all others are made are added to the
    line of the group in `totals`, rows are counted, and `keys` gets their cells (`engines.gathering`).
    """
    trace = record(rules, layout.n_classes)
    if trace is None or not KNOWN.issuperset(trace.statistics):
        return None
    text = _many_loop(trace, layout) if layout.many else _row_loop(trace, layout)
    return compile_text(text, __file__), np.array(trace.constants)


_PARAMETERS = "p, y, g, w, clear, c, m, rough, sums, cells, squares, decided, left"
_OF_GROUPS = ", codes, totals, counts, full, keys"


def _row_loop(trace: Trace, layout: Layout) -> str:
    k, n, size = layout.n_classes, len(trace.losses), STRIP_ROWS
    head = Lines(4)
    _write_parameters(head, trace)
    head.add(f"out = np.zeros(({n + 1}, {4 if layout.weighted else 2}))")
    head.add(f"cell = np.zeros({size}, np.uint64)")
    turns = 1 if layout.weighted or layout.shared else _TABLES
    if layout.counts:
        head.add(f"table = np.zeros(({turns}, {k * k + 1}))")
        if layout.weighted:
            head.add(f"square_table = np.zeros((1, {k * k + 1}))")
    if layout.shared:
        head.add(f"share = np.empty(({k}, {size}))")
    written = independent_of(trace) if layout.grouped else ()
    if written:
        head.add(f"made = np.empty({len(written) * size})")
    strip = _strips(layout, head, size)
    _write_zeros(strip, n, layout.weighted)
    strip.add("for i in range(n):")
    row = _row(layout)
    if layout.weighted:
        row.let("w[start + i]", "weight_of_row")
        row.require("(weight_of_row >= 0.0) & (weight_of_row < math.inf)")
    needs = {*trace.statistics, *({"decision"} if layout.counts else ())}
    needs |= {"log_true"} if any(step.operation == "log" for step in trace.steps) else set()
    write_probabilities(row, k, layout.form, binary=layout.binary)
    if layout.shared:
        shares = write_shares(row, k, counts=layout.shared == "counts")
        losses = write_mean_losses(row, trace, shares, needs, layout.form, possible=layout.counts)
        trace = replace(trace, losses=losses)
    else:
        _write_losses(row, trace, layout, needs)
    row.all_hold("ok")
    _write_sums(row, trace, layout.weighted)
    counted = ("decision" if layout.shared else f"U(o) * U({k}) + decision") if layout.counts else "U(0)"
    row.add(f"cell[i] = select(ok, {counted}, U({k * k}))")
    if layout.grouped:
        for r, loss in enumerate(written):
            row.add(f"made[i + {r * size}] = {loss}")
    end = Lines(8)
    _write_out(end, n, layout.weighted)
    end.add("fine = True")
    _write_acceptance(end, n, layout.weighted, unless="rough")
    end.add("if not fine or n_rows < n:")
    end.add("    for i in range(n):")
    end.add(f"        if not fine or cell[i] == U({k * k}):")
    end.add("            left[n_left] = start + i")
    end.add("            n_left += 1")
    if layout.grouped:
        end.add(f"            keys[start + i] = len(totals) * {k * k}")
    if layout.counts:
        end.add("if fine:")
        _write_counting(end, layout)
    if layout.grouped:
        end.add("if fine:")
        _write_gathering(end, len(written), k, size)
    tail = Lines(4)
    if layout.counts and turns > 1:
        _write_flush(tail, "table", "cells", _TABLES, k)
    tail.add("return n_left")
    start = f"def kernel({_PARAMETERS}{_OF_GROUPS if layout.grouped else ''}) -> int:"
    return "\n".join([start, *head.text, *strip.text, *row.text, *end.text, *tail.text])


def _many_loop(trace: Trace, layout: Layout) -> str:
    """The loop for any number of classes, whose statistics come from `kernels.dense`."""
    n, size = len(trace.losses), STRIP
    head = Lines(4)
    _write_parameters(head, trace)
    head.add(f"out = np.zeros(({n + 1}, {4 if layout.weighted else 2}))")
    head.add(f"s = np.empty(({len(PLACE)}, {size}))")
    head.add(f"chosen = np.zeros({size}, np.int64)")
    head.add(f"valid = np.empty({size})")
    head.add("n_left = 0")
    head.add(f"for start in range(0, y.size, {size}):")
    strip = Lines(8)
    strip.add(f"n = min({size}, y.size - start)")
    needs = {*trace.statistics, *({"decision"} if layout.counts else ())}
    wanted = ", ".join(map(str, statistic_flags(needs)))
    strip.add(f"strip_statistics(p, y, start, n, clear, (s, 0, chosen, valid), {wanted})")
    _write_zeros(strip, n, layout.weighted)
    strip.add("for i in range(n):")
    row = Lines(12)
    row.require("valid[i] > 0.0")
    if layout.weighted:
        row.let("w[start + i]", "weight_of_row")
        row.require("(weight_of_row >= 0.0) & (weight_of_row < math.inf)")
    for name in sorted({*trace.statistics, "p_true"}):
        row.let("0.0" if name == "invalid" else f"s[{PLACE['hit' if name == 'answered' else name]}, i]", name)
    if layout.counts:
        row.require("p_true > 0.0")
    write_formulas(row, trace)
    row.all_hold("ok")
    _write_sums(row, trace, layout.weighted)
    row.add("chosen[i] = select(ok, chosen[i], -1)")
    end = Lines(8)
    _write_out(end, n, layout.weighted)
    end.add("fine = True")
    _write_acceptance(end, n, layout.weighted, unless="rough")
    end.add("for i in range(n):")
    end.add("    decided[start + i] = select(fine, chosen[i], -1)")
    end.add("    if not fine or chosen[i] < 0:")
    end.add("        left[n_left] = start + i")
    end.add("        n_left += 1")
    start = f"def kernel({_PARAMETERS}) -> int:"
    text = [start, *head.text, *strip.text, *row.text, *end.text, "    return n_left"]
    return "\n".join([*text, texts_of(strip_statistics)])


def _write_losses(row: Lines, trace: Trace, layout: Layout, needs: Collection[str]) -> None:
    """Name the statistics of a row whose outcome is called o, and its losses."""
    write_statistics(row, layout.n_classes, needs, layout.form)
    if layout.counts:
        row.require("p_true > 0.0")
    write_formulas(row, trace)


@lru_cache(maxsize=64)
def fuse_losses(rules: tuple[Formula, ...], layout: Layout) -> tuple[Kernel, Floats] | None:
    """A kernel (p, y, clear, constants, kept, losses, top, decision, cells, sums, left) and its constants;
    None as above.

    The kernel writes the loss of each row by the rules `kept`, some of all, to the rows of `losses`, the
    largest probability and the most likely class. Where `cells` is not empty, it adds up what
    `engines.summing.PlainSums` has of all rules. It writes to `left` the numbers of the rows that it cannot
    vouch for, and returns how many; sums mean nothing where there are any.
    """
    trace = record(rules, layout.n_classes)
    if trace is None or not KNOWN.issuperset(trace.statistics):
        return None
    return compile_text(_loss_loop(trace, layout), __file__), np.array(trace.constants)


def _loss_loop(trace: Trace, layout: Layout) -> str:
    head = Lines(4)
    for i in range(len(trace.constants)):
        head.let(f"c[{i}]", f"c{i}")
    # One array for all results: the compiler need not ask which of them overlap.
    k, n_losses, size = layout.n_classes, len(trace.losses), _WRITTEN
    head.add(f"made = np.empty({(n_losses + 3) * size})")
    head.add(f"place = np.zeros({size}, np.uint64)")
    head.add(f"counts = np.zeros(({_TABLES}, {k * k}))")
    head.add(f"table = np.zeros(({n_losses}, {_TABLES}, {k}, 2))")
    strip = _strips(layout, head, size)
    strip.add("for i in range(n):")
    row = _row(layout)
    write_row(row, trace, k, layout.form, binary=layout.binary, more=("decision", "top"))
    chosen = row.choose([f"decision == U({j})" for j in range(k)], _numbers(layout))
    row.add("place[i] = select(ok, U(o), U(0))")
    for r, made in enumerate((*trace.losses, "top", chosen, "select(ok, 1.0, 0.0)")):
        row.add(f"made[i + {r * size}] = {made}")
    end = Lines(8)
    # Loops over views without conditions: the compiler can do several rows at once.
    end.text += [
        end.indent + line
        for line in f"""\
for r in range(kept.size):
    at = kept[r] * {size}
    one, made_of_one = losses[r, start:start + n], made[at:at + n]
    for i in range(n):
        one[i] = made_of_one[i]
tops, made_of_tops = top_of[start:start + n], made[{n_losses * size}:{n_losses * size} + n]
for i in range(n):
    tops[i] = made_of_tops[i]
decisions, chosen = decision_of[start:start + n], made[{(n_losses + 1) * size}:{(n_losses + 1) * size} + n]
for i in range(n):
    decisions[i] = np.int64(chosen[i])
hold = made[{(n_losses + 2) * size}:{(n_losses + 2) * size} + n]
holding = 0.0
for i in range(n):
    holding = plus(holding, hold[i])
if holding < n:
    for i in range(n):
        if hold[i] == 0.0:
            left[n_left] = start + i
            n_left += 1""".splitlines()
    ]
    end.add("if cells.size > 0:")
    _write_class_sums(end, k, n_losses, size)
    tail = Lines(4)
    tail.text += [
        tail.indent + line
        for line in f"""\
if cells.size > 0:
    for turn in range({_TABLES}):
        for outcome in range({k}):
            for decided in range({k}):
                cells[outcome, decided] += counts[turn, outcome * {k} + decided]
            for r in range({n_losses}):
                sums[outcome, r, 0] += table[r, turn, outcome, 0]
                sums[outcome, r, 1] += table[r, turn, outcome, 1]
return n_left""".splitlines()
    ]
    start = "def kernel(p, y, clear, c, kept, losses, top_of, decision_of, cells, sums, left) -> int:"
    return "\n".join([start, *head.text, *strip.text, *row.text, *end.text, *tail.text])


def _write_class_sums(lines: Lines, k: int, n_losses: int, size: int) -> None:
    """Count the rows of a strip, and add their losses and the squares to the sums of their class.

    Rows are added to several tables by turns: rows of one class then need not wait for each other.
    """
    lines.text += [
        lines.indent + line
        for line in f"""\
    whole = n - n % {_TABLES}
    for i in range(0, whole, {_TABLES}):
        for turn in range({_TABLES}):
            counts[turn, place[i + turn] * U({k}) + U(decision_of[start + i + turn])] += 1.0
    for i in range(whole, n):
        counts[0, place[i] * U({k}) + U(decision_of[start + i])] += 1.0
    for r in range({n_losses}):
        for i in range(0, whole, {_TABLES}):
            for turn in range({_TABLES}):
                loss = made[r * {size} + i + turn]
                table[r, turn, place[i + turn], 0] += loss
                table[r, turn, place[i + turn], 1] += loss * loss
        for i in range(whole, n):
            last = made[r * {size} + i]
            table[r, 0, place[i], 0] += last
            table[r, 0, place[i], 1] += last * last""".splitlines()
    ]


def _numbers(layout: Layout) -> list[str]:
    """The positions of the classes, as floats."""
    return [f"{float(j)!r}" for j in range(layout.n_classes)]


def _strips(layout: Layout, head: Lines, size: int) -> Lines:
    """The loop over strips of rows, whose numbers of each class are columns."""
    k = layout.n_classes
    if not layout.columns:
        head.add(f"strip = np.empty(({k}, {size}))")
    head.add("n_left = 0")
    head.add(f"for start in range(0, y.size, {size}):")
    strip = Lines(8)
    strip.add(f"n = min({size}, y.size - start)")
    if layout.shared:
        strip.add("for i in range(n):")
        for j in range(k):
            strip.add(f"    share[{j}, i] = np.float64(g[start + i, {j}])")
    if layout.columns:
        return strip
    write_columns(strip, "n", layout.n_given, lambda row, j: f"p[start + {row}, {j}]")
    return strip


def _row(layout: Layout) -> Lines:
    """The body of the loop over the rows of a strip, with the numbers of a row by name."""
    row = Lines(12)
    if not layout.shared:
        row.let("y[start + i]", "o")
    for j in range(layout.n_given):
        row.let(f"p[{j}][start + i]" if layout.columns else f"strip[{j}, i]", f"q{j}")
    return row


def _write_parameters(lines: Lines, trace: Trace) -> None:
    for i in range(len(trace.constants)):
        lines.let(f"c[{i}]", f"c{i}")
    for r in range(len(trace.losses)):
        lines.let(f"m[{r}]", f"m{r}")


def _write_zeros(lines: Lines, n: int, weighted: bool) -> None:
    names = ["n_rows", "weight", "positive", *(f"{name}{r}" for r in range(n) for name in "ab")]
    if weighted:
        names += ["square_weight", *(f"{name}{r}" for r in range(n) for name in "ef")]
    for name in names:
        lines.let("0.0", name)


def _write_sums(lines: Lines, trace: Trace, weighted: bool) -> None:
    """Add the losses of a row to the sums, unless it is not ok."""
    lines.add("n_rows = plus(n_rows, select(ok, 1.0, 0.0))")
    if weighted:
        lines.let("select(ok, weight_of_row, 0.0)", "u")
        lines.let("u * u", "v")
        lines.add("weight = plus(weight, u)")
        lines.add("positive = plus(positive, select(u > 0.0, 1.0, 0.0))")
        lines.add("square_weight = plus(square_weight, v)")
    for r, loss in enumerate(trace.losses):
        d = lines.let(f"select(ok, {loss} - m{r}, 0.0)")
        for sums, factor in (("ab", "u * "), ("ef", "v * ")) if weighted else (("ab", ""),):
            first = lines.let(f"{factor}{d}")
            lines.add(f"{sums[0]}{r} = plus({sums[0]}{r}, {first})")
            lines.add(f"{sums[1]}{r} = plus({sums[1]}{r}, {first} * {d})")


def _write_out(lines: Lines, n: int, weighted: bool) -> None:
    for r in range(n):
        lines.add(f"out[{r}, 0] = a{r}")
        lines.add(f"out[{r}, 1] = b{r}")
        if weighted:
            lines.add(f"out[{r}, 2] = e{r}")
            lines.add(f"out[{r}, 3] = f{r}")
    lines.add(f"out[{n}, 0] = {'weight' if weighted else 'n_rows'}")
    lines.add(f"out[{n}, 1] = {'positive' if weighted else 'n_rows'}")
    if weighted:
        lines.add(f"out[{n}, 2] = square_weight")


def _write_acceptance(lines: Lines, n: int, weighted: bool, unless: str = "False") -> None:
    """Add the sums in `out` to `sums` if they are fine: unless that would lose digits."""
    lines.text += [
        lines.indent + line
        for line in f"""\
total_weight = sums[{n}, 0] + out[{n}, 0]
for r in range({n}):
    first_sum = sums[r, 0] + out[r, 0]
    second_sum = sums[r, 1] + out[r, 1]
    size_of_sum = abs(m[r] * total_weight + first_sum)
    fine &= size_of_sum + second_sum < math.inf
    fine &= abs(m[r]) * total_weight <= {_FAR} * size_of_sum
    near = first_sum * first_sum <= {_SPREAD} * second_sum * total_weight
    fine &= near or abs(first_sum) <= {_CLOSE} * size_of_sum
fine |= {unless}
if fine:
    for r in range({n + 1}):
        for column in range({4 if weighted else 2}):
            sums[r, column] += out[r, column]""".splitlines()
    ]


def _write_counting(lines: Lines, layout: Layout) -> None:
    """Count the rows of a strip by the cells they fall into."""
    k, weighted = layout.n_classes, layout.weighted
    if not weighted and not layout.shared:
        whole = f"n - n % {_TABLES}"
        lines.add(f"    for i in range(0, {whole}, {_TABLES}):")
        for turn in range(_TABLES):
            lines.add(f"        table[{turn}, cell[i + {turn}]] += 1.0")
        lines.add(f"    for i in range({whole}, n):")
        lines.add("        table[0, cell[i]] += 1.0")
        return
    # The sums of a strip are short; those of all strips are compensated.
    lines.add("    for i in range(n):")
    lines.add(f"        if cell[i] < U({k * k}):")
    places = [(f"U({j * k}) + cell[i]", f"share[{j}, i]") for j in range(k)] if layout.shared else []
    for place, share in places or [("cell[i]", "1.0")]:
        weight = f"{share} * w[start + i]" if weighted else share
        lines.add(f"            table[0, {place}] += {weight}")
        if weighted:
            lines.add(f"            square_table[0, {place}] += {weight} * w[start + i]")
    inner = Lines(12)
    _write_flush(inner, "table", "cells", 1, k)
    if weighted:
        _write_flush(inner, "square_table", "squares", 1, k)
    lines.text += inner.text


def _write_gathering(lines: Lines, n_losses: int, k: int, size: int) -> None:
    """Add the rows of a strip to the sums of their groups.

    Groups are anywhere in memory: those of later rows are under way while one is added.
    """
    fetched = "; ".join(f"fetch(totals[later, {at}])" for at in range(0, row_of_group(n_losses), LINE))
    terms = ", ".join(f"made[i + {r * size}]" for r in range(n_losses))
    lines.text += [
        lines.indent + line
        for line in f"""\
    for i in range(n):
        later = codes[min(start + i + {_AHEAD}, y.size - 1)]
        {fetched}
        if cell[i] < U({k * k}):
            group = codes[start + i]
            add_several(totals[group, 0], totals[group, {n_losses}], {terms})
            right = cell[i] == U(y[start + i]) * U({k + 1})
            counted = 2 * group + np.int64(right)
            tally = counts[counted] + 1
            counts[counted] = tally
            if tally == {FULL}:
                full[0] += 1
                full[full[0]] = counted
            keys[start + i] = group * {k * k} + np.int64(cell[i])""".splitlines()
    ]


def _write_flush(lines: Lines, table: str, cells: str, n_tables: int, k: int) -> None:
    """Move the sums of a table to compensated sums."""
    terms = " + ".join(f"{table}[{turn}, at]" for turn in range(n_tables))
    lines.text += [
        lines.indent + line
        for line in f"""\
for at in range({k * k}):
    term = {terms}
    before = {cells}[0, at]
    after = before + term
    virtual = after - before
    {cells}[0, at] = after
    {cells}[1, at] += (before - (after - virtual)) + (term - virtual)
    for turn in range({n_tables}):
        {table}[turn, at] = 0.0""".splitlines()
    ]
