"""verax: how good are a classifier's probabilities, which model to keep, what to look at first.

>>> import verax as vx
>>> round(vx.rps([2, 0], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), 4)
0.0975
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from verax.combinators import penalized
from verax.errors import InputError, MissingPackageError, ParseError, RuleError, VeraxError
from verax.forecasts import Forecasts
from verax.registry import (
    RULES,
    abs_rps,
    brier,
    log_score,
    parse,
    pbs,
    pll,
    ranked_log,
    rps,
    sa_rps,
    spherical,
    zero_one,
)
from verax.rule import Rule
from verax.rules import RPS, AbsRPS, Brier, Log, RankedLog, SaRPS, Spherical, ZeroOne

if TYPE_CHECKING:
    import verax.compat as compat
    from verax.comparison import Comparison, compare
    from verax.curves import RetentionCurve, RetentionCurves, retention, selective
    from verax.decisions import decide, expected_cost, kappa
    from verax.inspection import worst
    from verax.properties import Certificate, certify
    from verax.scorecard import Scorecard, evaluate
    from verax.sequences import ConfidenceSequence

__version__ = "0.1.0"

__all__ = [
    "RPS",
    "RULES",
    "AbsRPS",
    "Brier",
    "Certificate",
    "Comparison",
    "ConfidenceSequence",
    "Forecasts",
    "InputError",
    "Log",
    "MissingPackageError",
    "ParseError",
    "RankedLog",
    "RetentionCurve",
    "RetentionCurves",
    "Rule",
    "RuleError",
    "SaRPS",
    "Scorecard",
    "Spherical",
    "VeraxError",
    "ZeroOne",
    "abs_rps",
    "brier",
    "certify",
    "compare",
    "compat",
    "decide",
    "evaluate",
    "expected_cost",
    "kappa",
    "log_score",
    "parse",
    "pbs",
    "penalized",
    "pll",
    "ranked_log",
    "retention",
    "rps",
    "sa_rps",
    "selective",
    "spherical",
    "worst",
    "zero_one",
]

# Imported when first used, so that `import verax` stays quick.
_LAZY = {
    "Certificate": "verax.properties",
    "Comparison": "verax.comparison",
    "ConfidenceSequence": "verax.sequences",
    "RetentionCurve": "verax.curves",
    "RetentionCurves": "verax.curves",
    "Scorecard": "verax.scorecard",
    "certify": "verax.properties",
    "compare": "verax.comparison",
    "decide": "verax.decisions",
    "evaluate": "verax.scorecard",
    "expected_cost": "verax.decisions",
    "kappa": "verax.decisions",
    "retention": "verax.curves",
    "selective": "verax.curves",
    "worst": "verax.inspection",
}


def __getattr__(name: str) -> Any:
    if name == "compat":
        return import_module("verax.compat")
    if name in _LAZY:
        globals()[name] = value = getattr(import_module(_LAZY[name]), name)
        return value
    if name in RULES:
        return RULES[name]
    raise AttributeError(f"module 'verax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
