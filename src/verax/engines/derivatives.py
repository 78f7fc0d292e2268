"""The partial derivatives of a traced formula in the statistics it reads, as further steps of the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from verax.engines.tracing import Operation, Trace

# What derivatives use besides the operations of formulas: sign(a), and pick(a, b, x, y), x if a >= b else y.
OPERATIONS = {"sign": 1, "pick": 4}


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
    """What `d` adds to the first operand, which counts if a >= b, and to the second, which counts if not."""
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
