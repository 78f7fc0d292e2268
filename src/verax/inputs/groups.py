"""Rows that belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.errors import InputError, Offenders
from verax.inputs.arrays import Ints, to_array, to_host


@dataclass(frozen=True)
class Groups:
    """A code 0..G-1 for every row, and the G labels."""

    codes: Ints
    labels: np.ndarray[Any, Any]

    @classmethod
    def of(cls, groups: object, n_rows: int) -> Groups:
        """Read one label per row, of any kind; or take over labels that are coded already."""
        if isinstance(groups, Groups) and len(groups.codes) == n_rows:
            return groups
        given = groups.labels[groups.codes] if isinstance(groups, Groups) else groups
        raw = to_host(to_array(given, "groups")[0])
        if raw.shape != (n_rows,):
            raise InputError(
                f"must be {n_rows} labels, one per row",
                argument="groups",
                kind="length" if raw.ndim == 1 else "type",
                found=f"its shape is {raw.shape}",
            )
        missing = Offenders("groups", "must name a group for every row", "missing")
        missing.add(_missing(raw), raw, 0)
        if missing.count:
            raise missing.error()
        labels, codes = np.unique(_texts(raw) if raw.dtype.kind == "O" else raw, return_inverse=True)
        return cls(codes.astype(np.int64), labels)


def _texts(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Labels of any Python type as texts, refused where different labels have the same text."""
    try:
        texts, n_different = labels.astype(str), len(set(labels.tolist()))
    except (TypeError, ValueError):
        raise InputError("must hold texts, numbers or dates", argument="groups", kind="type") from None
    if n_different != len(np.unique(texts)):
        raise InputError(
            "must hold labels of one type",
            argument="groups",
            kind="type",
            found="some of them differ in type only, such as 1 and '1'",
        )
    return texts


def _missing(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which labels are missing: None, NaN, NaT and the missing values of pandas."""
    if labels.dtype.kind in "fc":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    if labels.dtype.kind not in "OT":
        return np.zeros(len(labels), bool)
    return np.fromiter((_is_missing(label) for label in labels.astype(object)), bool, len(labels))


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return True
    except ValueError:  # an array, which is refused as a label later
        return False
