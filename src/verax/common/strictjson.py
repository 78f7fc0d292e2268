"""Results as JSON that every reader accepts: no NaN, no Infinity, no types that JSON does not have."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from verax.errors import show


def to_json(result: Mapping[str, Any]) -> str:
    """A result as strict JSON."""
    return json.dumps(plain(result), indent=2, allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as JSON has it: infinities become the texts "inf" and "-inf", NaN becomes null.

    Dates and everything else that JSON does not know become texts.

    >>> plain({"mean": np.float64("inf"), "interval": (0.5, float("nan"))})
    {'mean': 'inf', 'interval': [0.5, None]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def fields_as_dict(record: Any, *, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass by name, each as its own `to_dict` writes it, where it has one.

    JSON schemas of the command line are derived from the same fields.
    """
    values = {each.name: getattr(record, each.name) for each in fields(record) if each.name not in without}
    return {k: v.to_dict() if hasattr(v, "to_dict") else v for k, v in values.items()}


def number(value: Any) -> float:
    """A number as `plain` writes it: None stands for NaN, texts for infinities.

    >>> number(0.5), number(None), number("-inf")
    (0.5, nan, -inf)
    """
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"{show(value)} is not a number")
    if isinstance(value, str) and value not in ("inf", "-inf"):
        raise ValueError(f"{show(value)} is not a number")
    return float(value)
