"""Rules as JavaScript, printed from what verax itself computes: no formula is written again.

The statistics of a row come from `engines.stats.reduce_rows`, run once for each outcome on symbols in place
of numbers; the losses come from the trace of the rules' formulas (`engines.tracing`). Both are lists
of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.engines.stats import reduce_rows
from verax.engines.tracing import Operation, Trace, record
from verax.scores.base import Rule

# How each operation is written. The last two are of statistics only: equality, and a choice.
TEXTS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "log": "Math.log({})",
    "sqrt": "Math.sqrt({})",
    "exp": "Math.exp({})",
    "abs": "Math.abs({})",
    "maximum": "Math.max({}, {})",
    "minimum": "Math.min({}, {})",
    "equal": "{} === {}",
    "choose": "{} ? {} : {}",
}


@dataclass(frozen=True)
class Symbol:
    """A number of a row that is not known yet."""

    name: str


class Grid:
    """An array of symbols and numbers; equality gives an array of symbols, too."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]
    dtype = np.float64

    def __init__(self, pen: Pen, values: Any) -> None:
        self.pen, self.values = pen, np.asarray(values, object)
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def __getitem__(self, key: Any) -> Grid:
        return Grid(self.pen, self.values[key])

    def _each(operation: str, turned: bool = False) -> Callable[[Grid, Any], Grid]:  # noqa: N805
        def method(self: Grid, other: Any) -> Grid:
            pair = (plain(other), self.values) if turned else (self.values, plain(other))
            return self.pen.each(operation, *pair)

        return method

    __add__, __radd__ = _each("add"), _each("add", turned=True)
    __sub__, __rsub__ = _each("sub"), _each("sub", turned=True)
    __mul__, __rmul__ = _each("mul"), _each("mul", turned=True)
    __truediv__, __rtruediv__ = _each("div"), _each("div", turned=True)
    __eq__ = _each("equal")  # type: ignore[assignment]

    def __neg__(self) -> Grid:
        return self.pen.each("neg", self.values)


def plain(values: Any) -> Any:
    """The objects of a grid, or an array as it is."""
    return values.values if isinstance(values, Grid) else np.asarray(values)


class Pen:
    """The array namespace that statistics are computed with: it writes down what is done."""

    def __init__(self) -> None:
        self.steps: dict[tuple[str, tuple[str, ...]], Operation] = {}

    def emit(self, operation: str, *operands: Any) -> Symbol:
        """A step, the same as before if it has been taken before."""
        key = operation, tuple(each.name if isinstance(each, Symbol) else literal(each) for each in operands)
        return Symbol(self.steps.setdefault(key, Operation(f"s{len(self.steps)}", *key)).name)

    def each(self, operation: str, *operands: Any) -> Grid:
        """A step for each element; numbers alone are computed at once."""

        def one(*values: Any) -> Any:
            if any(isinstance(value, Symbol) for value in values):
                return self.emit(operation, *values)
            return _NUMBERS[operation](*values)

        return Grid(self, np.frompyfunc(one, len(operands), 1)(*operands))

    def take_along_axis(self, x: Grid, at: Any, *, axis: int) -> Grid:
        return Grid(self, np.take_along_axis(x.values, at, axis))

    def where(self, condition: Any, a: Any, b: Any) -> Grid:
        if isinstance(condition, Grid):
            return self.each("choose", condition.values, plain(a), plain(b))
        return Grid(self, np.where(condition, plain(a), plain(b)))

    def zeros_like(self, x: Grid) -> Grid:
        return Grid(self, np.zeros(x.shape))

    def astype(self, x: Grid, _dtype: Any) -> Grid:
        return self.each("choose", x.values, 1.0, 0.0)

    def log(self, x: Grid) -> Grid:
        return self.each("log", x.values)

    def flip(self, x: Grid, *, axis: int) -> Grid:
        return Grid(self, np.flip(x.values, axis))

    def sum(self, x: Grid, *, axis: int) -> Grid:
        return self._reduced("add", x, axis)

    def max(self, x: Grid, *, axis: int) -> Grid:
        return self._reduced("maximum", x, axis)

    def min(self, x: Grid, *, axis: int) -> Grid:
        return self._reduced("minimum", x, axis)

    def cumulative_sum(self, x: Grid, *, axis: int) -> Grid:
        columns = [x[:, :1]]
        for j in range(1, x.shape[axis]):
            columns.append(columns[-1] + x[:, j : j + 1])
        return Grid(self, np.concatenate([column.values for column in columns], axis))

    def _reduced(self, operation: str, x: Grid, axis: int) -> Grid:
        first, *rest = np.moveaxis(x.values, axis, 0)
        found = Grid(self, first)
        for values in rest:
            found = self.each(operation, found.values, values)
        return found


_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "log": math.log,
    "maximum": max,
    "minimum": min,
    "equal": lambda a, b: bool(a == b),
    "choose": lambda a, b, c: b if a else c,
}


def literal(value: Any) -> str:
    """A number as JavaScript writes it."""
    number = float(value)
    if math.isnan(number):
        return "NaN"
    return f"{'-' if number < 0 else ''}Infinity" if math.isinf(number) else repr(number)


def statistics_of(
    names: Sequence[str], n_classes: int, outcome: int
) -> tuple[list[Operation], dict[str, str]]:
    """The steps from the probabilities p0, p1, ... of a row to its statistics, and what each is called."""
    pen = Pen()
    row = Grid(pen, [[Symbol(f"p{j}") for j in range(n_classes)]])
    stats = reduce_rows(pen, row, np.array([outcome]), np.arange(n_classes), set(names))  # type: ignore[arg-type]
    values = {name: getattr(stats, name).values[0] for name in names}
    called = {name: x.name if isinstance(x, Symbol) else literal(x) for name, x in values.items()}
    wanted, steps = set(called.values()), []
    for step in reversed(pen.steps.values()):
        if step.name in wanted:
            wanted |= set(step.operands)
            steps.append(step)
    return steps[::-1], called


def trace_of(rules: Mapping[str, Rule], n_classes: int) -> Trace:
    """The steps from statistics to the losses of all rules."""
    trace = record(list(rules.values()), n_classes)
    if trace is None:
        lost = [name for name, rule in rules.items() if record([rule], n_classes) is None]
        raise ValueError(f"These rules have no trace: {', '.join(lost)}")
    return trace


def _lines(steps: Sequence[Operation]) -> list[str]:
    return [f"  const {step.name} = {TEXTS[step.operation].format(*step.operands)};" for step in steps]


def print_rules(rules: Mapping[str, Rule], n_classes: int) -> str:
    """A function `losses(p, y)`: the losses of all rules, in their order, for a forecast and an outcome."""
    trace = trace_of(rules, n_classes)
    taken = ", ".join(f"p{j}" for j in range(n_classes))
    text = ["const statistics = ["]
    for outcome in range(n_classes):
        steps, names = statistics_of(trace.statistics, n_classes, outcome)
        text += [f" ([{taken}]) => {{", *_lines(steps)]
        text += [f"  return {{{', '.join(f'{name}: {value}' for name, value in names.items())}}};", " },"]
    text += ["];", f"const formulas = ({{{', '.join(trace.statistics)}}}) => {{"]
    text += [f"  const c{i} = {literal(value)};" for i, value in enumerate(trace.constants)]
    text += [*_lines(trace.steps), f"  return [{', '.join(trace.losses)}];", "};"]
    text += ["const losses = (p, y) => formulas(statistics[y](p));"]
    return "\n".join(text)
