"""verax: how good are a classifier's probabilities, which model to keep, what to look at first.

>>> import verax as vx
>>> round(vx.rps([2, 0], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), 4)
0.0975
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from verax._version import __version__ as __version__

if TYPE_CHECKING:
    import verax.adapters as adapters
    import verax.compat as compat
    import verax.report as report
    import verax.selection as selection
    from verax.analyses.calibration.components import Components, Decomposition
    from verax.analyses.calibration.curves import Reliability, ReliabilityCurve
    from verax.analyses.calibration.decomposition import decompose
    from verax.analyses.calibration.ece import ece
    from verax.analyses.calibration.lists import ListReliability
    from verax.analyses.calibration.mass import ListDecomposition
    from verax.analyses.calibration.reliability import reliability
    from verax.analyses.calibration.slope import calibration_slope
    from verax.analyses.calibration.slope_result import CalibrationLine, CalibrationSlopes
    from verax.analyses.cards.evaluation import evaluate
    from verax.analyses.cards.listcard import ListCard
    from verax.analyses.cards.saved import load
    from verax.analyses.cards.scorecard import Scorecard
    from verax.analyses.cards.tally import Tally
    from verax.analyses.combination.combination import Combination, fit_pool
    from verax.analyses.comparison.compare import compare
    from verax.analyses.comparison.length_result import LengthComparison
    from verax.analyses.comparison.lengths import compare_lengths
    from verax.analyses.comparison.result import Comparison
    from verax.analyses.decisions.deferral import Deferral, deferral
    from verax.analyses.decisions.murphy import Murphy, murphy
    from verax.analyses.decisions.net_benefit import DecisionCurve, DecisionCurves, net_benefit
    from verax.analyses.decisions.thresholds import Thresholds, choose_thresholds
    from verax.analyses.discrimination.ranking import average_precision, c_index, roc_auc
    from verax.analyses.discrimination.result import RankScore, RankScores
    from verax.analyses.recalibration.recalibration import recalibrate
    from verax.analyses.recalibration.result import Recalibration
    from verax.analyses.retention.curves import retention, selective
    from verax.analyses.retention.result import RetentionCurve, RetentionCurves
    from verax.analyses.retention.risk import RiskCoverage, risk_coverage
    from verax.analyses.subgroups.result import Subgroups
    from verax.analyses.subgroups.subgroups import subgroups
    from verax.analyses.worst import worst
    from verax.errors import InputError, MissingPackageError, ParseError, RuleError, VeraxError
    from verax.inference.sequences import ConfidenceSequence
    from verax.inputs.forecasts import Forecasts
    from verax.inputs.lists.labelsets import instance_f1
    from verax.inputs.lists.pooling import combine
    from verax.inputs.lists.toplists import TopLists
    from verax.scans.saved import Recorded
    from verax.scans.scan import scan
    from verax.scores.base import Rule
    from verax.scores.certificates.certify import Certificate, certify
    from verax.scores.combinators import padded, penalized
    from verax.scores.coverage import top_k_error
    from verax.scores.decisions import decide, expected_cost, kappa
    from verax.scores.gradients.logits import expected_hessian, gradient
    from verax.scores.landscape import Landscape, landscape
    from verax.scores.properties import Holds, Properties
    from verax.scores.registry import (
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
    from verax.scores.rules import RPS, AbsRPS, Brier, Log, RankedLog, SaRPS, Spherical, ZeroOne


__all__ = [
    "RPS",
    "RULES",
    "AbsRPS",
    "Brier",
    "CalibrationLine",
    "CalibrationSlopes",
    "Certificate",
    "Combination",
    "Comparison",
    "Components",
    "ConfidenceSequence",
    "DecisionCurve",
    "DecisionCurves",
    "Decomposition",
    "Deferral",
    "Forecasts",
    "Holds",
    "InputError",
    "Landscape",
    "LengthComparison",
    "ListCard",
    "ListDecomposition",
    "ListReliability",
    "Log",
    "MissingPackageError",
    "Murphy",
    "ParseError",
    "Properties",
    "RankScore",
    "RankScores",
    "RankedLog",
    "Recalibration",
    "Recorded",
    "Reliability",
    "ReliabilityCurve",
    "RetentionCurve",
    "RetentionCurves",
    "RiskCoverage",
    "Rule",
    "RuleError",
    "SaRPS",
    "Scorecard",
    "Spherical",
    "Subgroups",
    "Tally",
    "Thresholds",
    "TopLists",
    "VeraxError",
    "ZeroOne",
    "abs_rps",
    "adapters",
    "average_precision",
    "brier",
    "c_index",
    "calibration_slope",
    "certify",
    "choose_thresholds",
    "combine",
    "compare",
    "compare_lengths",
    "compat",
    "decide",
    "decompose",
    "deferral",
    "ece",
    "evaluate",
    "expected_cost",
    "expected_hessian",
    "fit_pool",
    "gradient",
    "instance_f1",
    "kappa",
    "landscape",
    "load",
    "log_score",
    "murphy",
    "net_benefit",
    "padded",
    "parse",
    "pbs",
    "penalized",
    "pll",
    "ranked_log",
    "recalibrate",
    "reliability",
    "report",
    "retention",
    "risk_coverage",
    "roc_auc",
    "rps",
    "sa_rps",
    "scan",
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
    "AbsRPS": "verax.scores.rules",
    "Brier": "verax.scores.rules",
    "CalibrationLine": "verax.analyses.calibration.slope_result",
    "CalibrationSlopes": "verax.analyses.calibration.slope_result",
    "Certificate": "verax.scores.certificates.certify",
    "Combination": "verax.analyses.combination.combination",
    "Comparison": "verax.analyses.comparison.result",
    "Components": "verax.analyses.calibration.components",
    "ConfidenceSequence": "verax.inference.sequences",
    "DecisionCurve": "verax.analyses.decisions.net_benefit",
    "DecisionCurves": "verax.analyses.decisions.net_benefit",
    "Decomposition": "verax.analyses.calibration.components",
    "Deferral": "verax.analyses.decisions.deferral",
    "Forecasts": "verax.inputs.forecasts",
    "Holds": "verax.scores.properties",
    "InputError": "verax.errors",
    "Landscape": "verax.scores.landscape",
    "LengthComparison": "verax.analyses.comparison.length_result",
    "ListCard": "verax.analyses.cards.listcard",
    "ListDecomposition": "verax.analyses.calibration.mass",
    "ListReliability": "verax.analyses.calibration.lists",
    "Log": "verax.scores.rules",
    "MissingPackageError": "verax.errors",
    "Murphy": "verax.analyses.decisions.murphy",
    "ParseError": "verax.errors",
    "Properties": "verax.scores.properties",
    "RPS": "verax.scores.rules",
    "RULES": "verax.scores.registry",
    "RankScore": "verax.analyses.discrimination.result",
    "RankScores": "verax.analyses.discrimination.result",
    "RankedLog": "verax.scores.rules",
    "Recalibration": "verax.analyses.recalibration.result",
    "Recorded": "verax.scans.saved",
    "Reliability": "verax.analyses.calibration.curves",
    "ReliabilityCurve": "verax.analyses.calibration.curves",
    "RetentionCurve": "verax.analyses.retention.curves",
    "RetentionCurves": "verax.analyses.retention.curves",
    "RiskCoverage": "verax.analyses.retention.risk",
    "Rule": "verax.scores.base",
    "RuleError": "verax.errors",
    "SaRPS": "verax.scores.rules",
    "Scorecard": "verax.analyses.cards.scorecard",
    "Spherical": "verax.scores.rules",
    "Subgroups": "verax.analyses.subgroups.result",
    "Tally": "verax.analyses.cards.tally",
    "Thresholds": "verax.analyses.decisions.thresholds",
    "TopLists": "verax.inputs.lists.toplists",
    "VeraxError": "verax.errors",
    "ZeroOne": "verax.scores.rules",
    "abs_rps": "verax.scores.registry",
    "average_precision": "verax.analyses.discrimination.ranking",
    "brier": "verax.scores.registry",
    "c_index": "verax.analyses.discrimination.ranking",
    "calibration_slope": "verax.analyses.calibration.slope",
    "certify": "verax.scores.certificates.certify",
    "choose_thresholds": "verax.analyses.decisions.thresholds",
    "combine": "verax.inputs.lists.pooling",
    "compare": "verax.analyses.comparison.compare",
    "compare_lengths": "verax.analyses.comparison.lengths",
    "decide": "verax.scores.decisions",
    "decompose": "verax.analyses.calibration.decomposition",
    "deferral": "verax.analyses.decisions.deferral",
    "ece": "verax.analyses.calibration.ece",
    "evaluate": "verax.analyses.cards.evaluation",
    "expected_cost": "verax.scores.decisions",
    "expected_hessian": "verax.scores.gradients.logits",
    "fit_pool": "verax.analyses.combination.combination",
    "gradient": "verax.scores.gradients.logits",
    "instance_f1": "verax.inputs.lists.labelsets",
    "kappa": "verax.scores.decisions",
    "landscape": "verax.scores.landscape",
    "load": "verax.analyses.cards.saved",
    "log_score": "verax.scores.registry",
    "murphy": "verax.analyses.decisions.murphy",
    "net_benefit": "verax.analyses.decisions.net_benefit",
    "padded": "verax.scores.combinators",
    "parse": "verax.scores.registry",
    "pbs": "verax.scores.registry",
    "penalized": "verax.scores.combinators",
    "pll": "verax.scores.registry",
    "ranked_log": "verax.scores.registry",
    "recalibrate": "verax.analyses.recalibration.recalibration",
    "reliability": "verax.analyses.calibration.reliability",
    "retention": "verax.analyses.retention.curves",
    "risk_coverage": "verax.analyses.retention.risk",
    "roc_auc": "verax.analyses.discrimination.ranking",
    "scan": "verax.scans.scan",
    "rps": "verax.scores.registry",
    "sa_rps": "verax.scores.registry",
    "selective": "verax.analyses.retention.curves",
    "spherical": "verax.scores.registry",
    "subgroups": "verax.analyses.subgroups.subgroups",
    "top_k_error": "verax.scores.coverage",
    "worst": "verax.analyses.worst",
    "zero_one": "verax.scores.registry",
}


def __getattr__(name: str) -> Any:
    if name in ("adapters", "compat", "report", "selection"):
        return import_module(f"verax.{name}")
    if name in _LAZY:
        globals()[name] = value = getattr(import_module(_LAZY[name]), name)
        return value
    if not name.startswith("_") and name in (rules := import_module("verax.scores.registry").RULES):
        return rules[name]
    raise AttributeError(f"module 'verax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
