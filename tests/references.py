"""The exact reference values of `vectors.json`, which is kept as it was given, under the names of today."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "vectors.json"
# Where entries name rules, and what these are called now.
_NAMED = ("rule", "base", "score")
_FORMERLY = {"log": "log_score"}


@cache
def entries() -> list[dict[str, Any]]:
    """All reference values."""
    return json.loads(PATH.read_text(), object_hook=_renamed)


def _renamed(found: dict[str, Any]) -> dict[str, Any]:
    named = {key: _FORMERLY.get(found[key], found[key]) for key in _NAMED if isinstance(found.get(key), str)}
    return {**found, **named}
