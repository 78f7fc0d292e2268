"""Lines of a kernel that compute the losses of a row, for one outcome or for shares of all classes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from verax.engines.tracing import Operation, Trace
from verax.kernels.fewclasses import write_all_outcomes, write_probabilities, write_statistics
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


# ---- outcomes that are shares of the classes: losses are means over these

# Above this, numbers are whole.
_WHOLE = 2.0**52


def write_shares(row: Lines, n_classes: int, *, counts: bool) -> list[str]:
    """The names of the shares of the classes, which are required to be valid; of `counts` they are stored."""
    given = [row.let(f"share[{j}, i]") for j in range(n_classes)]
    row.require(f"{row.smallest(given)} >= 0.0")
    total = row.total(given)
    if not counts:
        row.require(f"abs({total} - 1.0) <= clear")
        return given
    # Sums with 2^52 have no digits after the point.
    whole = [f"(({count} + {_WHOLE!r}) - {_WHOLE!r} == {count})" for count in given]
    row.require(" & ".join([f"({total} > 0.0)", f"({total} < {_WHOLE / 2!r})", *whole]))
    inverse = row.let(f"1.0 / {total}")
    shares = [row.quotient(count, total, inverse) for count in given]
    for j, share in enumerate(shares):
        row.add(f"share[{j}, i] = {share}")
    return shares


def write_mean_losses(
    row: Lines,
    trace: Trace,
    shares: Sequence[str],
    needs: Collection[str],
    form: Form,
    *,
    possible: bool,
) -> tuple[str, ...]:
    """The names of the losses of a row, which are means over the classes; outcomes must be `possible`."""
    one = _cut_off(trace)
    outcomes = write_all_outcomes(row, len(shares), needs, form, one)
    made = made_of_losses(trace)
    steps = _with_square_sum(tuple(step for step in trace.steps if step.name not in made))
    averaged = [name for name in dict.fromkeys(trace.losses) if name not in made]
    means = dict.fromkeys(averaged, "0.0")
    for outcome, share in zip(outcomes, shares, strict=True):
        for name, value in outcome.statistics.items():
            if name in trace.statistics:
                row.let(value, name)
        before = row.take_conditions()
        row.give_conditions(outcome.conditions)
        if possible:
            row.require(f"{outcome.statistics['p_true']} > 0.0")
        write_formulas(row, replace(trace, steps=steps))
        holds = row.let(" & ".join(row.take_conditions()) or "True")
        row.give_conditions(before)
        # Nothing is asked of a class that has no share.
        row.require(f"({share} == 0.0) | {holds}")
        # A loss of such a class that is not finite makes the sums of its strip so, which is then left out.
        means = {name: row.let(f"fma({share}, {name}, {mean})") for name, mean in means.items()}
    for name, mean in means.items():
        row.let(mean, f"mean_{name}")
    write_formulas(row, replace(trace, steps=tuple(made.values())))
    return tuple(f"mean_{name}" for name in trace.losses)


def made_of_losses(trace: Trace) -> dict[str, Operation]:
    """Steps that are sums and multiples of losses, by name: their means are those of the means."""
    needed: set[str] = set()
    while True:
        known, made = set(trace.losses), dict[str, Operation]()
        for step in trace.steps:
            rest = [operand for operand in step.operands if not _is_constant(operand)]
            linear = step.operation in ("add", "mul") and len(rest) == (2 if step.operation == "add" else 1)
            if linear and step.name not in needed and known.issuperset(rest):
                known.add(step.name)
                operands = tuple(f"mean_{o}" if o in rest else o for o in step.operands)
                made[step.name] = Operation(f"mean_{step.name}", step.operation, operands)
        # What other steps need is computed for each class after all.
        others = {operand for step in trace.steps if step.name not in made for operand in step.operands}
        if not others & made.keys():
            return made
        needed |= others


def _is_constant(name: str) -> bool:
    return name[0] == "c" and name[1:].isdigit()


def _cut_off(trace: Trace) -> str | None:
    """The name of the number 1 where the probability of the outcome is cut off at it."""
    for step in trace.steps:
        if step.operation == "minimum" and step.operands[0] == "p_true":
            name = step.operands[1]
            if _is_constant(name) and trace.constants[int(name[1:])] == 1.0:
                return name
    return None


def _with_square_sum(steps: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """The steps with the sum of all squares as one number, which does not depend on the outcome."""
    squares = {step.name for step in steps if (step.operation, set(step.operands)) == ("mul", {"p_true"})}
    return tuple(
        Operation(step.name, "same", ("square_sum",))
        if step.operation == "add" and "rest_sq" in step.operands and squares & set(step.operands)
        else step
        for step in steps
    )
