"""From the formulas of several rules to one compiled loop that sums their losses.

Every step of the formulas' trace (`engines.tracing`) becomes a line of a loop body; constants become
parameters, so the loop is the same for every number of classes. numba compiles it and keeps it on
disk. Formulas that have no trace are not fused: they run as NumPy calls on each block.
"""

from __future__ import annotations

import hashlib
import math
from functools import cache, lru_cache
from typing import Any

import numba
import numpy as np

from verax.engines.stats import Formula
from verax.engines.tracing import Trace, record
from verax.kernels.dense import Kernel
from verax.kernels.logarithm import OPTIONS, is_odd, log, plus
from verax.kernels.statistics import PLACE

# How each operation of a trace is written in Python.
_TEXTS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "log": "log({})",
    "sqrt": "math.sqrt({})",
    "exp": "math.exp({})",
    "abs": "abs({})",
    "maximum": "max({}, {})",
    "minimum": "min({}, {})",
}


@lru_cache(maxsize=64)
def fuse(rules: tuple[Formula, ...], n_classes: int, weighted: bool) -> tuple[Kernel, Any] | None:
    """A kernel (stats, first, last, weights, constants, shift, out, sums) and its constants.

    None if a formula cannot be traced. For each rule the kernel writes to `out` the sums over the rows
    `first` to `last` of w*d and w*d*d, with d the loss minus `shift`; below the rules stands the weight.
    With weights two more columns have the same sums with the weights squared.
    If the sums can be trusted it adds them to `sums` and returns True. It returns False where a loss is
    infinite, where the logarithm of a number is needed that is zero, negative, subnormal or not finite, and
    where the shift lies too far from the losses. The caller then sums these rows by other means.
    """
    trace = record(rules, n_classes)
    if trace is None:
        return None
    return _compile(_source(trace, weighted)), np.array(trace.constants)


def _source(trace: Trace, weighted: bool) -> str:
    w = "w[i] * " if weighted else ""
    n = len(trace.losses)
    lines = ["def kernel(s, first, last, w, c, m, out, sums):", "    n_odd = 0", "    weight = 0.0"]
    lines += [f"    c{i} = c[{i}]" for i in range(len(trace.constants))]
    lines += [f"    a{r} = b{r} = 0.0" for r in range(n)]
    if weighted:
        lines += ["    squares = 0.0", *(f"    e{r} = f{r} = 0.0" for r in range(n))]
    lines += ["    for i in range(first, last):"]
    lines += [f"        {name} = s[{PLACE[name]}, i]" for name in trace.statistics]
    if weighted:
        lines += ["        weight = plus(weight, w[i])", "        v = w[i] * w[i]"]
        lines += ["        squares = plus(squares, v)"]
    for step in trace.steps:
        lines += [f"        {step.name} = {_TEXTS[step.operation].format(*step.operands)}"]
        if step.operation == "log":
            lines += [f"        n_odd += is_odd({step.operands[0]})"]
    for r, loss in enumerate(trace.losses):
        lines += [f"        d = {loss} - m[{r}]"]
        lines += [f"        a{r} = plus(a{r}, {w}d)", f"        b{r} = plus(b{r}, {w}d * d)"]
        if weighted:
            lines += [f"        e{r} = plus(e{r}, v * d)", f"        f{r} = plus(f{r}, v * d * d)"]
    lines += [f"    out[{r}, 0] = a{r} if n_odd == 0 else math.nan" for r in range(n)]
    lines += [f"    out[{r}, 1] = b{r}" for r in range(n)]
    lines += [f"    out[{n}, 0] = {'weight' if weighted else 'last - first'}"]
    if weighted:
        lines += [f"    out[{r}, 2], out[{r}, 3] = e{r}, f{r}" for r in range(n)]
        lines += [f"    out[{n}, 2] = squares"]
    lines += ["    return accept(out, m, sums)"]
    return "\n".join(lines)


# A shift may be this many times the mean loss: each factor of two costs the sum a binary digit.
_FAR = 128.0
# The shift may lie ten standard deviations from the mean, for the same reason: 0.99 = 1 - 1 / (1 + 10^2).
# Where it lies closer than this share of the mean, the deviations are as exact as the losses are.
_SPREAD, _CLOSE = 0.99, 1e-6


@numba.njit(**OPTIONS)
def accept(out: Any, shift: Any, sums: Any) -> bool:
    """Add the sums of a block to those of its chunk, unless that would lose digits; whether it did."""
    n = shift.size
    weight = sums[n, 0] + out[n, 0]
    for r in range(n):
        first = sums[r, 0] + out[r, 0]
        second = sums[r, 1] + out[r, 1]
        total = abs(shift[r] * weight + first)
        if not total + second < math.inf or abs(shift[r]) * weight > _FAR * total:
            return False
        if first * first > _SPREAD * second * weight and abs(first) > _CLOSE * total:
            return False
    for r in range(n + 1):
        for column in range(out.shape[1]):
            sums[r, column] += out[r, column]
    return True


@cache
def _compile(source: str) -> Kernel:
    # The name carries the text's digest and the file is this one, so numba's disk cache, which goes
    # by file, name and byte code, can neither confuse two loops nor outlive a change of this module.
    name = f"kernel_{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    scope: dict[str, Any] = {"math": math, "log": log, "is_odd": is_odd, "plus": plus, "accept": accept}
    scope["__name__"] = __name__
    exec(compile(source.replace("def kernel", f"def {name}"), __file__, "exec"), scope)
    return numba.njit(**OPTIONS)(scope[name])  # type: ignore[no-any-return]
