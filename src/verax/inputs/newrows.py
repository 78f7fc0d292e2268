"""New rows for what was fitted to others: full distributions whose outcomes do not matter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import to_array
from verax.inputs.forecasts import Forecasts
from verax.inputs.outcomes import class_names


def new_rows(
    p: object,
    *,
    classes: Sequence[Hashable] | None = None,
    fitted: tuple[int, tuple[Hashable, ...] | None] | None = None,
    **how: Any,
) -> Forecasts:
    """Valid rows of `p`; refused unless they have the classes, by number and name, of what was `fitted`."""
    raw, _ = to_array(p, "p")
    names = None if classes is None else class_names(classes)
    known = None if fitted is None else fitted[1]
    check_same_classes(names, known)
    names = known if names is None else names
    # Any outcome will do.
    first = names[0] if names else 0
    rows = Forecasts(
        np.repeat(np.array([first]), int(raw.shape[0]) if raw.ndim else 0), p, classes=names, **how
    )
    if fitted is not None and rows.n_classes != fitted[0]:
        raise other_classes(fitted[0], rows.n_classes)
    rows.check()
    return rows


def check_same_classes(names: tuple[Hashable, ...] | None, fitted: tuple[Hashable, ...] | None) -> None:
    """Refuse other names of classes than those of what was fitted, or another order."""
    if names is not None and fitted is not None and names != fitted:
        raise InputError(
            "must be those of the rows that this was fitted to, in the same order",
            argument="classes",
            kind="label",
            found=f"these are {show(list(names))}, those {show(list(fitted))}",
            remedies=[Remedy("Leave `classes` out, and pass the columns in that order.", python_only=True)],
        )


def other_classes(fitted: int, given: int) -> InputError:
    """The error about rows with another number of classes."""
    return InputError(
        f"must have {fitted} classes, as the rows that this was fitted to",
        argument="p",
        kind="length",
        found=f"there are {given}",
        values=[given],
    )
