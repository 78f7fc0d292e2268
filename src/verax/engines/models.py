"""The losses of several models on the same rows, by one kernel that reads a piece of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verax.engines.formulas import write_row
from verax.engines.stats import Formula, compute, validate
from verax.engines.tracing import Trace, record
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.kernels.fewclasses import FEW, KNOWN, write_columns
from verax.kernels.statistics import Form
from verax.kernels.texts import Kernel, Lines, compile_text, pattern

# Rows of a model at a time.
_STRIP = 64
_INTEGERS = pattern(2.0**52)


@dataclass(frozen=True)
class ModelLayout:
    """What a kernel is printed for: the number of classes, what the numbers are, and whether they are those
    of class 1 alone.
    """

    n_classes: int
    form: Form
    binary: bool

    @classmethod
    def of(cls, rows: Any) -> ModelLayout | None:
        """The layout of some rows; None if the kernel does not support them."""
        if not isinstance(rows, Forecasts) or rows.xp is not np or rows.shared or rows.n_classes > FEW:
            return None
        layout = cls(rows.n_classes, rows.form, rows.binary)
        return None if layout.binary and layout.form == "rescaled" else layout

    @property
    def n_given(self) -> int:
        """How many numbers a row has."""
        return 1 if self.binary else self.n_classes


@lru_cache(maxsize=64)
def _fuse(rules: tuple[Formula, ...], layout: ModelLayout, distances: bool) -> tuple[Kernel, Floats] | None:
    """A kernel (p, at, steps, y, y_at, clears, constants, n, places, losses, left) and its constants; None
    where a formula has no trace.

    The number of class j in row i of model m is p[at[m, j] + i * steps[m]], its outcome y[y_at[m] + i]. The
    kernel writes the losses of the `n` rows to `losses`, those of line r from places[r, m] on; with
    `distances` also how many classes the most likely one is off. It writes to `left` the model times n plus
    the number of each row that it cannot vouch for, and returns how many.
    """
    trace = record(rules, layout.n_classes)
    if trace is None or not KNOWN.issuperset(trace.statistics):
        return None
    return compile_text(_loop(trace, layout, distances), __file__), np.array(trace.constants)


def _loop(trace: Trace, layout: ModelLayout, distances: bool) -> str:
    k, n_lines, size = layout.n_classes, len(trace.losses) + distances, _STRIP
    head, strip, row, end = Lines(4), Lines(12), Lines(16), Lines(12)
    for i in range(len(trace.constants)):
        head.let(f"c[{i}]", f"c{i}")
    # One array for all results: the compiler need not ask which of them overlap.
    head.add(f"made = np.empty({(n_lines + 1) * size})")
    head.add(f"strip = np.empty(({layout.n_given}, {size}))")
    head.add(f"happened = np.empty({size}, np.int64)")
    head.add("n_left = 0")
    head.add("for model in range(at.shape[0]):")
    head.add("    clear, step, outcome = clears[model], steps[model], y_at[model]")
    head.add(f"    for start in range(0, n, {size}):")
    strip.add(f"size = min({size}, n - start)")
    strip.add("for i in range(size):")
    strip.add("    happened[i] = y[outcome + start + i]")
    # Columns have nothing to turn.
    where = "p[at[model, {1}] + (start + {0}) * step]"
    write_columns(strip, "size", layout.n_given, where.format, when="step > 1")
    strip.add("for i in range(size):")
    row.let("happened[i]", "o")
    for j in range(layout.n_given):
        row.let(f"strip[{j}, i]", f"q{j}")
    more = ["decision"] if distances else []
    write_row(row, trace, k, layout.form, binary=layout.binary, more=more)
    lines = list(trace.losses)
    if distances:
        # The last bits of 2^52 + n are those of n: integers become floats one at a time on most processors.
        lines.append(f"abs(from_bits(decision | U({_INTEGERS})) - from_bits(U(o) | U({_INTEGERS})))")
    for r, made in enumerate((*lines, "select(ok, 1.0, 0.0)")):
        row.add(f"made[i + {r * size}] = {made}")
    # Loops over views without conditions: the compiler can do several rows at once.
    end.text += [
        end.indent + line
        for line in f"""\
for r in range({n_lines}):
    begin = places[r, model] + start
    one, made_of_one = losses[begin:begin + size], made[r * {size}:r * {size} + size]
    for i in range(size):
        one[i] = made_of_one[i]
hold = made[{n_lines * size}:{n_lines * size} + size]
holding = 0.0
for i in range(size):
    holding = plus(holding, hold[i])
if holding < size:
    for i in range(size):
        if hold[i] == 0.0:
            left[n_left] = model * n + start + i
            n_left += 1""".splitlines()
    ]
    start = "def kernel(p, at, steps, y, y_at, clears, c, n, places, losses, left) -> int:"
    return "\n".join([start, *head.text, *strip.text, *row.text, *end.text, "    return n_left"])


class InvalidRowsError(Exception):
    """Some rows are invalid; `Forecasts.check` names them."""


class ModelLosses:
    """The losses of several models by some rules; with `distances` also how far their decisions are off."""

    def __init__(
        self, models: Sequence[Forecasts], rules: Sequence[Formula], kernel: Any, distances: bool
    ) -> None:
        self._models, self._rules = tuple(models), tuple(rules)
        self._kernel, self._constants = kernel
        self._distances = distances
        self._clears: Floats = np.array([rows.unity.clear(rows.n_classes) for rows in models])
        self._single: bool = all(rows.dtype == np.float32 for rows in models)
        needs = {name for rule in rules for name in rule.needs}
        self._needs: frozenset[str] = frozenset(needs | {"decision"} if distances else needs)

    @classmethod
    def of(
        cls, models: Sequence[Any], rules: Sequence[Formula], layout: ModelLayout, *, distances: bool
    ) -> ModelLosses | None:
        """The kernel for the rows of models of one layout; None where a formula has no trace."""
        kernel = _fuse(tuple(rules), layout, distances)
        return None if kernel is None else cls(models, rules, kernel, distances)

    def reading(self, start: int, stop: int) -> _Reading:
        """Consecutive rows, ready for the kernel."""
        return _Reading(self._models, self._single, start, stop)

    def write(self, rows: _Reading, first: int, n: int, places: Ints, losses: Floats) -> None:
        """Write `n` rows from the number `first` on to a flat array: line r of model m from places[r, m]."""
        left = np.empty(len(self._models) * n, np.int64)
        begin = first - rows.start
        n_left = self._kernel(
            *(rows.p, rows.at + begin * rows.steps[:, None], rows.steps, rows.y, rows.y_at + begin),
            *(self._clears, self._constants, n, places, losses, left),
        )
        if n_left:
            model, row = np.divmod(left[:n_left], n)
            for m in np.unique(model).tolist():
                self._write_rows(m, first, row[model == m], places[:, m], losses)

    def _write_rows(self, model: int, first: int, rows: Ints, places: Ints, losses: Floats) -> None:
        """Write the losses of rows of one model that the kernel has left out."""
        batch: Any = self._models[model].batch_of(first + rows)
        if not validate(batch)[0]:
            raise InvalidRowsError
        stats = compute(batch, self._needs)
        with np.errstate(divide="ignore", invalid="ignore"):
            for rule, place in zip(self._rules, places, strict=False):
                losses[place + rows] = to_host(stats.loss(rule))
        if self._distances:
            losses[places[-1] + rows] = np.abs(to_host(stats.decision) - to_host(batch.y))


class _Reading:
    """Addresses of the numbers and outcomes of consecutive rows of each model, relative to one array."""

    def __init__(self, models: Sequence[Forecasts], single: bool, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        dtype, outcomes = np.float32 if single else np.float64, dict[Any, Ints]()
        columns, ys, steps = [], [], []
        for rows in models:
            p, raw = rows.numbers(start, stop), getattr(rows.outcomes, "raw", None)
            key = id(raw), rows.classes
            if key not in outcomes:
                outcomes[key] = rows.outcomes.positions(start, stop)
            ys.append(outcomes[key])
            model_columns = p if isinstance(p, tuple) else (p,)
            model_columns = tuple(np.ascontiguousarray(column, dtype) for column in model_columns)
            columns.append(model_columns)
            steps.append(1 if isinstance(p, tuple) else rows.n_classes)
        # Arrays that the kernel reads must stay alive.
        self._kept_alive = columns, ys
        self.p: Floats = columns[0][0].reshape(-1)
        self.y: Ints = ys[0]
        size = self.p.itemsize
        first = self.p.ctypes.data
        self.at: Ints = np.array(
            [
                [(column.ctypes.data - first) // size for column in model_columns]
                if step == 1
                else [(model_columns[0].ctypes.data - first) // size + j for j in range(step)]
                for model_columns, step in zip(columns, steps, strict=True)
            ],
            np.int64,
        )
        self.steps: Ints = np.array(steps, np.int64)
        self.y_at: Ints = np.array([(y.ctypes.data - self.y.ctypes.data) // 8 for y in ys], np.int64)
