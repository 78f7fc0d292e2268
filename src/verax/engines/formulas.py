"""The steps of a trace as lines of a kernel."""

from __future__ import annotations

from collections.abc import Collection

from verax.engines.tracing import Trace
from verax.kernels.fewclasses import write_probabilities, write_statistics
from verax.kernels.statistics import Form
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


def write_row(
    row: Lines, trace: Trace, n_classes: int, form: Form, *, binary: bool, more: Collection[str]
) -> None:
    """Name the losses of a row, `more` of its statistics, and `ok`: whether all of them can be trusted."""
    needs = {*trace.statistics, *more}
    needs |= {"log_true"} if any(step.operation == "log" for step in trace.steps) else set()
    write_probabilities(row, n_classes, form, binary=binary)
    write_statistics(row, n_classes, needs, form)
    row.require("p_true > 0.0")
    write_formulas(row, trace)
    row.all_hold("ok")
