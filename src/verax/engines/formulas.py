"""The steps of a trace as lines of a kernel."""

from __future__ import annotations

from verax.engines.tracing import Trace
from verax.kernels.texts import EXP_FROM, EXP_TO, Lines

# How each operation of a trace is written, but for functions that take several lines.
_TEXTS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "sqrt": "math.sqrt({})",
    "abs": "abs({})",
    "maximum": "select({0} > {1}, {0}, {1})",
    "minimum": "select({0} < {1}, {0}, {1})",
    "sign": "select({0} > 0.0, 1.0, select({0} < 0.0, -1.0, 0.0))",
    "pick": "select({0} >= {1}, {2}, {3})",
    "same": "{}",
}


def write_formulas(lines: Lines, trace: Trace) -> None:
    """Name the results of all steps of a trace."""
    for step in trace.steps:
        if step.operation == "log":
            lines.require_normal(step.operands[0])
            lines.let(lines.log(step.operands[0]), step.name)
        elif step.operation == "exp":
            x = step.operands[0]
            lines.require(f"({x} >= {EXP_FROM!r}) & ({x} <= {EXP_TO!r})")
            lines.let(lines.exp(x), step.name)
        else:
            lines.let(_TEXTS[step.operation].format(*step.operands), step.name)
