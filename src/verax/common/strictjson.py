"""Results as JSON that every reader accepts: no NaN, no Infinity, no types that JSON does not have."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


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
