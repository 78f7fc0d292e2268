"""verax: how good are a classifier's probabilities, which model to keep, what to look at first.

>>> import verax as vx
>>> round(vx.rps([2, 0], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), 4)
0.0975
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from verax.claims import Holds, Properties
from verax.combinators import padded, penalized
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
    import verax.adapters as adapters
    import verax.compat as compat
    import verax.report as report
    import verax.selection as selection
    from verax.binning import ece
    from verax.breakdown import Subgroups, subgroups
    from verax.comparability import LengthComparison, compare_lengths
    from verax.comparison import compare
    from verax.curves import RetentionCurve, RetentionCurves, retention, selective
    from verax.decisions import decide, expected_cost, kappa
    from verax.decomposition import Components, Decomposition, decompose
    from verax.diagrams import Reliability, ReliabilityCurve, reliability
    from verax.gradients import expected_hessian, gradient
    from verax.inspection import worst
    from verax.labelsets import instance_f1
    from verax.listcard import ListCard
    from verax.measures import top_k_error
    from verax.pooling import combine
    from verax.properties import Certificate, certify
    from verax.scorecard import Scorecard, evaluate
    from verax.sequences import ConfidenceSequence
    from verax.toplists import TopLists
    from verax.verdicts import Comparison

__version__ = "0.1.0"

__all__ = [
    "RPS",
    "RULES",
    "AbsRPS",
    "Brier",
    "Certificate",
    "Comparison",
    "Components",
    "ConfidenceSequence",
    "Decomposition",
    "Forecasts",
    "Holds",
    "InputError",
    "LengthComparison",
    "ListCard",
    "Log",
    "MissingPackageError",
    "ParseError",
    "Properties",
    "RankedLog",
    "Reliability",
    "ReliabilityCurve",
    "RetentionCurve",
    "RetentionCurves",
    "Rule",
    "RuleError",
    "SaRPS",
    "Scorecard",
    "Spherical",
    "Subgroups",
    "TopLists",
    "VeraxError",
    "ZeroOne",
    "abs_rps",
    "adapters",
    "brier",
    "certify",
    "combine",
    "compare",
    "compare_lengths",
    "compat",
    "decide",
    "decompose",
    "ece",
    "evaluate",
    "expected_cost",
    "expected_hessian",
    "gradient",
    "instance_f1",
    "kappa",
    "log_score",
    "padded",
    "parse",
    "pbs",
    "penalized",
    "pll",
    "ranked_log",
    "reliability",
    "report",
    "retention",
    "rps",
    "sa_rps",
    "selection",
    "selective",
    "spherical",
    "subgroups",
    "top_k_error",
    "worst",
    "zero_one",
]

# Imported when first used, so that `import verax` stays quick.
_LAZY = {
    "Certificate": "verax.properties",
    "Comparison": "verax.verdicts",
    "ConfidenceSequence": "verax.sequences",
    "LengthComparison": "verax.comparability",
    "ListCard": "verax.listcard",
    "Components": "verax.decomposition",
    "Decomposition": "verax.decomposition",
    "Reliability": "verax.diagrams",
    "ReliabilityCurve": "verax.diagrams",
    "RetentionCurve": "verax.curves",
    "RetentionCurves": "verax.curves",
    "Scorecard": "verax.scorecard",
    "Subgroups": "verax.breakdown",
    "TopLists": "verax.toplists",
    "certify": "verax.properties",
    "combine": "verax.pooling",
    "compare": "verax.comparison",
    "compare_lengths": "verax.comparability",
    "decide": "verax.decisions",
    "decompose": "verax.decomposition",
    "ece": "verax.binning",
    "evaluate": "verax.scorecard",
    "expected_cost": "verax.decisions",
    "expected_hessian": "verax.gradients",
    "gradient": "verax.gradients",
    "instance_f1": "verax.labelsets",
    "kappa": "verax.decisions",
    "reliability": "verax.diagrams",
    "retention": "verax.curves",
    "selective": "verax.curves",
    "subgroups": "verax.breakdown",
    "top_k_error": "verax.measures",
    "worst": "verax.inspection",
}


def __getattr__(name: str) -> Any:
    if name in ("adapters", "compat", "report", "selection"):
        return import_module(f"verax.{name}")
    if name in _LAZY:
        globals()[name] = value = getattr(import_module(_LAZY[name]), name)
        return value
    if name in RULES:
        return RULES[name]
    raise AttributeError(f"module 'verax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
