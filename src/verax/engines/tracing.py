"""Traces of formulas: the steps that kernels are printed from, recorded by running formulas on symbols.

    trace = record(rules, n_classes)
    trace.statistics   ('p_true', 'rest_sq')                 what the steps read of a row, by name
    trace.steps        Operation('t0', 'sub', ('c0', 'p_true')),  in order, each computed once
                       Operation('t1', 'mul', ('t0', 't0')),
                       Operation('t2', 'add', ('t1', 'rest_sq'))
    trace.constants    (1.0,)                                what c0, c1, ... stand for
    trace.losses       ('t2',)                               the loss of each rule

Constants are not part of the steps, so one text serves every number of classes. Powers become products,
roots or exponentials. A formula that uses more than the symbols can do (a comparison, say) has no trace: it
runs as array calls on each block, and verax warns of that. The partial derivatives of a loss in the
statistics are further steps (`differentiate`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.engines.stats import Formula, RowStats
from verax.errors import RuleError
from verax.kernels.statistics import PLACE

# What a step may do, with the number of its operands.
OPERATIONS = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "neg": 1,
    "log": 1,
    "sqrt": 1,
    "exp": 1,
    "abs": 1,
    "maximum": 2,
    "minimum": 2,
}
# Those that formulas call as functions of their array namespace.
_FUNCTIONS = ("log", "sqrt", "exp", "abs", "maximum", "minimum")
# NumPy's functions, by the names of the operations that they are.
_OF_NUMPY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "negative": "neg",
    "absolute": "abs",
    **{name: name for name in _FUNCTIONS if name != "abs"},
}
# Powers up to this are products.
_LARGEST_POWER = 64
# Rules whose formulas are known to have no trace.
_untraced: set[Formula] = set()


@dataclass(frozen=True)
class Operation:
    """One operation of a row's loop.

    Attributes
    ----------
    name : str
        What its result is called: t0, t1, ...
    operation : str
        A key of `OPERATIONS`; in derivatives also sign(a), and pick(a, b, x, y), which is x if a >= b else y.
    operands : tuple of str
        Names of statistics, of constants (c0, c1, ...) or of earlier steps.
    """

    name: str
    operation: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """What the formulas of several rules compute from the statistics of a row.

    Attributes
    ----------
    statistics : tuple of str
        The statistics that steps or losses read: `log_true` first, then in the order of `PLACE`.
    steps : tuple of Operation
        In an order in which they can be computed; the same operation on the same operands occurs once.
    constants : tuple of float
        The values of c0, c1, ..., all different.
    losses : tuple of str
        For each rule the name of its loss: that of a step, a statistic or a constant.
    """

    statistics: tuple[str, ...]
    steps: tuple[Operation, ...]
    constants: tuple[float, ...]
    losses: tuple[str, ...]


def record(rules: Sequence[Formula], n_classes: int, *, log_true: bool = False) -> Trace | None:
    """The trace of the formulas of `rules`; None, with a warning once for each rule, if one has none.

    With `log_true` the logarithm of the outcome's probability is a statistic of its own, as where it comes
    from logits; otherwise it is a step.
    """
    try:
        return _record(rules, n_classes, log_true)
    except (RuleError, TypeError) as error:
        if len(rules) == 1:
            _warn(rules[0], error.__cause__ or error)
        else:
            # Which of them it is.
            for rule in rules:
                record([rule], n_classes, log_true=log_true)
        return None


def _warn(rule: Formula, reason: BaseException) -> None:
    """Warn that a formula is not compiled, and why; statistics unknown to kernels are no reason to."""
    if not isinstance(reason, TypeError) or rule in _untraced:
        return
    _untraced.add(rule)
    why = reason if isinstance(reason, _UntracedError) else "one of its operations has no compiled form"
    warnings.warn(
        f"The formula of {rule} is computed by array calls, which are slower, because {why}. "
        f"Compiled formulas use arithmetic, powers with a number as exponent, and {', '.join(_FUNCTIONS)}.",
        RuntimeWarning,
        stacklevel=3,
    )


class _UntracedError(TypeError, AttributeError):
    """A formula uses what has no trace."""


def _record(rules: Sequence[Formula], n_classes: int, log_true: bool) -> Trace:
    recorder = _Recorder()
    needs = {"p_true", *(name for rule in rules for name in rule.needs)}
    symbols: dict[str, Any] = {name: _Symbol(recorder, name) for name in PLACE if name in needs}
    log_p = _Symbol(recorder, "log_true") if log_true else None
    stats = RowStats(recorder, n_classes, log_p=log_p, **symbols)
    losses = tuple(recorder.name_of(stats.loss(rule)) for rule in rules)
    steps = tuple(Operation(name, *key) for key, name in recorder.steps.items())
    read = {*losses, *(operand for step in steps for operand in step.operands)}
    statistics = tuple(name for name in ("log_true", *PLACE) if name in read)
    return Trace(statistics, steps, tuple(recorder.constants), losses)


@dataclass
class _Recorder:
    """The steps so far, each under its operation and operands, and their constants.

    It stands in for the array namespace: formulas call its functions.
    """

    steps: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)

    def emit(self, operation: str, *operands: object) -> _Symbol:
        key = operation, tuple(self.name_of(operand) for operand in operands)
        return _Symbol(self, self.steps.setdefault(key, f"t{len(self.steps)}"))

    def name_of(self, value: object) -> str:
        if isinstance(value, _Symbol):
            return value.name
        if not isinstance(value, (int, float, np.floating, np.integer)):
            raise _UntracedError(f"it uses a {type(value).__name__}")
        number = float(value)
        if number not in self.constants:
            self.constants.append(number)
        return f"c{self.constants.index(number)}"

    def pow(self, base: Any, power: Any) -> Any:
        return base**power

    def square(self, base: Any) -> Any:
        return base * base

    def __getattr__(self, function: str) -> Any:
        if function not in _FUNCTIONS:
            raise _UntracedError(f"it calls `{function}`")

        def call(*arguments: object) -> _Symbol:
            if len(arguments) != OPERATIONS[function]:
                raise _UntracedError(f"it calls `{function}` with {len(arguments)} arguments")
            return self.emit(function, *arguments)

        return call


class _Symbol:
    """A number of a row while a formula is traced."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: _Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: object) -> Any:
        name = function.__name__
        if method == "__call__" and not options:
            if name in _OF_NUMPY:
                return self.recorder.emit(_OF_NUMPY[name], *operands)
            if name in ("square", "power", "float_power"):
                base, power = (*operands, 2)[:2]
                return base**power if isinstance(base, _Symbol) else power.__rpow__(base)
        raise _UntracedError(f"it calls `np.{name}`")

    def __getattr__(self, name: str) -> Any:
        raise _UntracedError(f"it uses `{name}` of an array")

    def __add__(self, other: object) -> _Symbol:
        return self.recorder.emit("add", self, other)

    def __radd__(self, other: object) -> _Symbol:
        return self.recorder.emit("add", other, self)

    def __sub__(self, other: object) -> _Symbol:
        return self.recorder.emit("sub", self, other)

    def __rsub__(self, other: object) -> _Symbol:
        return self.recorder.emit("sub", other, self)

    def __mul__(self, other: object) -> _Symbol:
        return self.recorder.emit("mul", self, other)

    def __rmul__(self, other: object) -> _Symbol:
        return self.recorder.emit("mul", other, self)

    def __truediv__(self, other: object) -> _Symbol:
        return self.recorder.emit("div", self, other)

    def __rtruediv__(self, other: object) -> _Symbol:
        return self.recorder.emit("div", other, self)

    def __neg__(self) -> _Symbol:
        return self.recorder.emit("neg", self)

    def __abs__(self) -> _Symbol:
        return self.recorder.emit("abs", self)

    def __pow__(self, power: object) -> Any:
        if not isinstance(power, (int, float, np.floating, np.integer)):
            raise _UntracedError("it has a power whose exponent is not a number")
        rest, whole = math.modf(abs(float(power)))
        if rest not in (0.0, 0.5) or whole > _LARGEST_POWER:
            return self.recorder.exp(self.recorder.log(self) * float(power))
        product: Any = self.recorder.sqrt(self) if rest else None
        factor, n = self, int(whole)
        while n:
            if n % 2:
                product = factor if product is None else product * factor
            n //= 2
            factor = factor * factor if n else factor
        return 1.0 if product is None else product if power > 0 else 1.0 / product

    def __rpow__(self, base: float) -> _Symbol:
        if not base > 0:
            raise _UntracedError("it has a power whose base is not positive")
        return self.recorder.exp(math.log(base) * self)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        raise _UntracedError("it compares numbers")

    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __eq__


# ---- partial derivatives ---------------------------------------------------------------------------


@dataclass
class _Writer:
    """Steps and constants so far; products with 0 and 1 and sums with 0 are left out."""

    trace: Trace
    steps: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    constants: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.constants = list(self.trace.constants)
        self.steps = {(step.operation, step.operands): step.name for step in self.trace.steps}

    def constant(self, value: float) -> str:
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    def value(self, name: str) -> float | None:
        """The number that a name stands for, None if it differs from row to row."""
        return self.constants[int(name[1:])] if name[0] == "c" and name[1:].isdecimal() else None

    def emit(self, operation: str, *operands: str) -> str:
        return self.steps.setdefault((operation, operands), f"t{len(self.steps)}")

    def mul(self, a: str, b: str) -> str:
        if self.value(a) == 1:
            return b
        return a if self.value(b) == 1 else self.emit("mul", a, b)

    def neg(self, a: str) -> str:
        value = self.value(a)
        return self.emit("neg", a) if value is None else self.constant(-value)


# For each operation: what the derivative `d` of its result `out` adds to the derivatives of its operands.
_RULES: dict[str, Callable[[_Writer, str, str, tuple[str, ...]], tuple[str, ...]]] = {
    "add": lambda _, d, __, ___: (d, d),
    "sub": lambda w, d, _, __: (d, w.neg(d)),
    "mul": lambda w, d, _, of: (w.mul(d, of[1]), w.mul(d, of[0])),
    "div": lambda w, d, out, of: (w.emit("div", d, of[1]), w.neg(w.mul(w.emit("div", d, of[1]), out))),
    "neg": lambda w, d, _, __: (w.neg(d),),
    "log": lambda w, d, _, of: (w.emit("div", d, of[0]),),
    "sqrt": lambda w, d, out, _: (w.emit("div", w.mul(d, w.constant(0.5)), out),),
    "exp": lambda w, d, out, _: (w.mul(d, out),),
    "abs": lambda w, d, _, of: (w.mul(d, w.emit("sign", of[0])),),
    "maximum": lambda w, d, _, of: _picked(w, d, *of),
    "minimum": lambda w, d, _, of: _picked(w, d, *of[::-1]),
}


def _picked(w: _Writer, d: str, a: str, b: str) -> tuple[str, str]:
    """The terms that `d` adds to the first operand, which counts if a >= b, and to the second."""
    zero = w.constant(0.0)
    return w.emit("pick", a, b, d, zero), w.emit("pick", a, b, zero, d)


def differentiate(trace: Trace) -> tuple[Trace, dict[str, str]]:
    """The trace of one loss with the steps of its derivatives, and their names by statistic.

    Where a maximum or minimum has equal operands, the first counts as chosen.

    >>> from verax.engines.tracing import record
    >>> import verax as vx
    >>> trace, slopes = differentiate(record([vx.brier], 3))
    >>> sorted(slopes)
    ['p_true', 'rest_sq']
    """
    writer = _Writer(trace)
    slopes: dict[str, str] = {trace.losses[0]: writer.constant(1.0)}
    for step in reversed(trace.steps):
        d = slopes.get(step.name)
        if d is None:
            continue
        terms = _RULES[step.operation](writer, d, step.name, step.operands)
        for operand, term in zip(step.operands, terms, strict=True):
            if writer.value(operand) is None:
                slopes[operand] = term if operand not in slopes else writer.emit("add", slopes[operand], term)
    steps = tuple(Operation(name, *key) for key, name in writer.steps.items())
    whole = Trace(trace.statistics, steps, tuple(writer.constants), trace.losses)
    return whole, {name: slopes[name] for name in trace.statistics if name in slopes}
