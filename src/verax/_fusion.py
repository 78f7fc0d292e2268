"""From the formulas of several rules to one compiled loop that sums their losses.

A rule's formula is run once on symbols instead of arrays. Every operation writes a line of a loop
body; constants become parameters, so the loop is the same for every number of classes. numba
compiles it and keeps it on disk. A formula that uses more than the symbols can do (a comparison,
say) is simply not fused: it then runs as NumPy calls on each block.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numba
import numpy as np

from verax._arithmetic import OPTIONS, is_odd, log, plus
from verax._kernels import Kernel
from verax.errors import RuleError
from verax.rowstats import Formula, RowStats
from verax.statistics import PLACE

_FUNCTIONS = {
    "log": "log",
    "sqrt": "math.sqrt",
    "exp": "math.exp",
    "abs": "abs",
    "maximum": "max",
    "minimum": "min",
}


@dataclass
class _Trace:
    """The loop body so far, and the constants it refers to."""

    lines: dict[str, str] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)

    def emit(self, expression: str) -> _Symbol:
        name = self.lines.setdefault(expression, f"t{len(self.lines)}")
        return _Symbol(self, name)

    def operand(self, value: object) -> _Symbol:
        if isinstance(value, _Symbol):
            return value
        if not isinstance(value, (int, float, np.floating, np.integer)):
            raise TypeError(f"a {type(value).__name__} cannot be traced")
        self.constants.append(float(value))
        return _Symbol(self, f"c[{len(self.constants) - 1}]")

    # The functions of the array namespace, as formulas call them.
    def __getattr__(self, function: str) -> Any:
        if function not in _FUNCTIONS:
            raise AttributeError(f"{function} cannot be traced")

        def call(*arguments: object) -> _Symbol:
            names = ", ".join(self.operand(a).name for a in arguments)
            return self.emit(f"{_FUNCTIONS[function]}({names})")

        return call


class _Symbol:
    """Stands for one number of one row while a formula is traced."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: _Trace, name: str) -> None:
        self.trace, self.name = trace, name

    def _binary(self, other: object, operator: str, swap: bool = False) -> _Symbol:
        a, b = self, self.trace.operand(other)
        a, b = (b, a) if swap else (a, b)
        return self.trace.emit(f"{a.name} {operator} {b.name}")

    def __add__(self, other: object) -> _Symbol:
        return self._binary(other, "+")

    def __radd__(self, other: object) -> _Symbol:
        return self._binary(other, "+", swap=True)

    def __sub__(self, other: object) -> _Symbol:
        return self._binary(other, "-")

    def __rsub__(self, other: object) -> _Symbol:
        return self._binary(other, "-", swap=True)

    def __mul__(self, other: object) -> _Symbol:
        return self._binary(other, "*")

    def __rmul__(self, other: object) -> _Symbol:
        return self._binary(other, "*", swap=True)

    def __truediv__(self, other: object) -> _Symbol:
        return self._binary(other, "/")

    def __rtruediv__(self, other: object) -> _Symbol:
        return self._binary(other, "/", swap=True)

    def __neg__(self) -> _Symbol:
        return self.trace.emit(f"-{self.name}")

    def __pow__(self, power: int) -> _Symbol:
        if power != 2:
            raise TypeError("only squares can be traced")
        return self * self

    def __eq__(self, other: object) -> bool:
        raise TypeError("a comparison cannot be traced")

    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __eq__


@lru_cache(maxsize=64)
def fuse(rules: tuple[Formula, ...], n_classes: int, weighted: bool) -> tuple[Kernel, Any] | None:
    """A kernel (stats, n, weights, constants, shift, out) and its constants; None if not traceable.

    For each rule the kernel writes to `out` the sums over n rows of w*d and w*d*d, with d the loss
    minus `shift`. An infinite loss shows as a sum that is not finite, and so does a number that is odd
    to the logarithm: looking after these in every row would cost much of the time, so they are left to
    the caller, who meets them rarely.
    """
    trace = _Trace()
    needs = {"p_true", *(name for rule in rules for name in rule.needs)}
    symbols: dict[str, Any] = {name: _Symbol(trace, name) for name in PLACE if name in needs}
    stats = RowStats(trace, n_classes, **symbols)
    try:
        losses = [trace.operand(stats.loss(rule)).name for rule in rules]
    except (RuleError, TypeError):
        return None
    return _compile(_source(trace, losses, weighted)), np.array(trace.constants)


def _source(trace: _Trace, losses: list[str], weighted: bool) -> str:
    w = "w[i] * " if weighted else ""
    lines = ["def kernel(s, n, w, c, m, out):", "    n_odd = 0"]
    lines += [f"    a{r} = b{r} = 0.0" for r in range(len(losses))]
    lines += ["    for i in range(n):"]
    lines += [f"        {name} = s[{row}, i]" for name, row in PLACE.items()]
    for expression, name in trace.lines.items():
        lines += [f"        {name} = {expression}"]
        if expression.startswith("log("):
            lines += [f"        n_odd += is_odd{expression.removeprefix('log')}"]
    for r, loss in enumerate(losses):
        lines += [f"        d = {loss} - m[{r}]"]
        lines += [f"        a{r} = plus(a{r}, {w}d)", f"        b{r} = plus(b{r}, {w}d * d)"]
    lines += [f"    out[{r}, 0] = a{r} if n_odd == 0 else math.nan" for r in range(len(losses))]
    lines += [f"    out[{r}, 1] = b{r}" for r in range(len(losses))]
    return "\n".join(lines)


@cache
def _compile(source: str) -> Kernel:
    # The name carries the text's digest and the file is this one, so numba's disk cache, which goes
    # by file, name and byte code, can neither confuse two loops nor outlive a change of this module.
    name = f"kernel_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    scope: dict[str, Any] = {"math": math, "log": log, "is_odd": is_odd, "plus": plus, "__name__": __name__}
    exec(compile(source.replace("def kernel", f"def {name}"), __file__, "exec"), scope)
    return numba.njit(**OPTIONS)(scope[name])  # type: ignore[no-any-return]
