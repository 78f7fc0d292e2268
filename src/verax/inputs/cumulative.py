"""Class probabilities from the outputs of heads for ordered classes: one number per threshold."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from verax.common.checks import check_choice, check_flag
from verax.errors import InputError, Offenders, Remedy, passing
from verax.inputs.arrays import Array, Namespace, is_traced, kind_of, namespace_of, to_array, to_host
from verax.inputs.validity import Unity

Outputs = Literal["cumulative", "exceedance", "conditional"]
OUTPUTS = ("cumulative", "exceedance", "conditional")


def from_cumulative(c: object, *, outputs: Outputs = "cumulative", logits: bool = False) -> Any:
    """Convert the K - 1 outputs of a head for K ordered classes to class probabilities.

    The outputs are probabilities at the thresholds k = 0, ..., K - 2. Which ones depends on the head:

    - "cumulative", P(Y <= k): cumulative links (proportional odds), before they are differenced;
    - "exceedance", P(Y > k): CORAL, and the binary decompositions of dlordinal;
    - "conditional", P(Y > k | Y > k - 1): CORN. Their products are P(Y > k), so they cannot cross.

    CLM and stick-breaking layers of dlordinal and `LogisticCumulativeLink` of spacecutter return class
    probabilities or their logarithms. They need no conversion.

    Parameters
    ----------
    c : array_like of shape (N, K - 1)
        The outputs: of NumPy, PyTorch, JAX or CuPy. Gradients pass through.
    outputs : {"cumulative", "exceedance", "conditional"}, default "cumulative"
        What they are.
    logits : bool, default False
        Whether the logistic function is still to be applied, as to the outputs of coral-pytorch.

    Returns
    -------
    array of shape (N, K)
        The probabilities, of the same kind as `c`.

    Raises
    ------
    InputError
        If values are not probabilities, or thresholds cross. Sort each row to mend crossings: this keeps the
        values and never increases the RPS of a row (Chernozhukov, Fernandez-Val and Galichon 2010,
        doi:10.3982/ECTA7880).

    Examples
    --------
    >>> import verax as vx
    >>> vx.from_cumulative([[0.25, 0.75]]).tolist()
    [[0.25, 0.5, 0.25]]
    >>> vx.from_cumulative([[0.75, 0.25]], outputs="exceedance").tolist()
    [[0.25, 0.5, 0.25]]
    >>> vx.from_cumulative([[0.75, 1 / 3]], outputs="conditional").tolist()
    [[0.25, 0.5, 0.25]]
    """
    check_choice("outputs", outputs, OUTPUTS)
    raw = to_array(c, "c")[0]
    if raw.ndim != 2 or raw.shape[1] < 1 or kind_of(raw) not in ("real", "integer"):
        raise InputError(
            "must hold real numbers, a column for each threshold: shape (N, K - 1)",
            argument="c",
            kind="type",
            found=f"the shape is {tuple(raw.shape)} and the type {raw.dtype}",
        )
    xp = namespace_of(raw)
    if check_flag("logits", logits):
        # The logistic function, whose gradient stays finite.
        raw = xp.exp(-xp.logaddexp(xp.zeros_like(raw), -raw))
    if not is_traced(raw):
        _check(to_host(raw), outputs, Unity.of(raw).tolerance)
    return class_probabilities(raw, outputs, xp)


def class_probabilities(c: Array, outputs: Outputs, xp: Namespace = np) -> Array:
    """Class probabilities from those at thresholds, unchecked; crossings within rounding become zeros."""
    if outputs == "cumulative":
        first, last, inner = c[:, :1], 1 - c[:, -1:], c[:, 1:] - c[:, :-1]
    else:
        above = [c[:, k : k + 1] for k in range(int(c.shape[1]))]
        if outputs == "conditional":
            for k in range(1, len(above)):
                above[k] = above[k - 1] * above[k]
        c = xp.concat(above, axis=1)
        first, last, inner = 1 - c[:, :1], c[:, -1:], c[:, :-1] - c[:, 1:]
    rounding = Unity.of(c).tolerance / (int(c.shape[1]) + 1)
    inner = xp.where((inner < 0) & (inner >= -rounding), xp.zeros_like(inner), inner)
    return xp.concat([first, inner, last], axis=1)


def monotone(rows: np.ndarray[Any, Any], tolerance: float = 0.0) -> Outputs | None:
    """What rows of numbers between 0 and 1 are if all rise, or all fall, from left to right; else None."""
    if not rows.size or not ((rows >= 0) & (rows <= 1)).all():
        return None
    steps = np.diff(rows, axis=1)
    if not (np.abs(steps) > tolerance).any():
        return None
    if (steps >= -tolerance).all():
        return "cumulative"
    return "exceedance" if (steps <= tolerance).all() else None


def _check(c: np.ndarray[Any, Any], outputs: Outputs, tolerance: float) -> None:
    """Refuse what is no probability, and thresholds that cross by more than rounding."""
    rounding = tolerance / (c.shape[1] + 1)
    outside = Offenders("c", "must hold probabilities between 0 and 1", remedies=(passing(logits=True),))
    bad = ~((c >= 0) & (c <= 1))
    outside.add(np.asarray(bad.any(axis=1)), c[np.arange(len(c)), bad.argmax(axis=1)], 0)
    if outside.count:
        raise outside.error()
    if outputs == "conditional":
        return
    steps = np.diff(c, axis=1) * (1 if outputs == "cumulative" else -1)
    wrong = (steps < -rounding).any(axis=1)
    if not wrong.any():
        return
    way, sign = (
        ("P(Y <= k) must not fall", "") if outputs == "cumulative" else ("P(Y > k) must not rise", "-")
    )
    other = monotone(c, rounding)
    remedy = Remedy(f"Sort each row, for example by {sign}np.sort({sign}c, axis=1).")
    crossing = Offenders(
        "c", f"holds thresholds that cross: {way} from one threshold to the next", remedies=(remedy,)
    )
    crossing.add(wrong, list(c), 0)
    raise crossing.error(*([] if other is None else [passing("for these", outputs=other)]))
