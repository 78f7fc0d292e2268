"""What may be stored inside a result, by the name it has there: reading makes nothing else.

Names are kept when classes move: files that older versions wrote have them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

# The classes that are stored as their fields, by module.
_CLASSES = {
    "verax.analyses.binary": ("EventRows", "ScannedRows"),
    "verax.analyses.calibration.claims": ("ListClaim",),
    "verax.analyses.calibration.components": ("Components", "Decomposition", "ListDecomposition"),
    "verax.analyses.calibration.curves": ("ListReliability", "Reliability", "ReliabilityCurve"),
    "verax.analyses.calibration.uncertainty": ("Uncertainty",),
    "verax.analyses.calibration.score_map": ("MappedModel", "ScoreMap"),
    "verax.analyses.calibration.slope_result": ("CalibrationLine", "CalibrationSlopes"),
    "verax.analyses.calibration.summary": ("CalibrationSummary", "Measure"),
    "verax.analyses.cards.lines": ("CardLine",),
    "verax.analyses.cards.listcard": ("ListCard",),
    "verax.analyses.cards.scorecard": ("Scorecard",),
    "verax.analyses.cards.tally": ("Tally",),
    "verax.analyses.cases": ("Case", "ListCase", "ShareCase"),
    "verax.analyses.combination.combination": ("Combination",),
    "verax.analyses.comparison.answers": ("ModelAnswers", "GapBounds"),
    "verax.analyses.comparison.claims": ("Claims",),
    "verax.analyses.comparison.length_result": ("LengthComparison",),
    "verax.analyses.comparison.records": ("Difference", "Model"),
    "verax.analyses.comparison.result": ("Comparison",),
    "verax.analyses.comparison.traits": ("Traits",),
    "verax.analyses.datasets.result": ("DatasetComparison", "DatasetDifference", "DatasetModel"),
    "verax.analyses.decisions.curves": ("CurveDifference", "EventCurve"),
    "verax.analyses.decisions.deferral": ("Deferral", "DeferralLine"),
    "verax.analyses.decisions.murphy": ("Murphy", "MurphyDifference"),
    "verax.analyses.decisions.net_benefit": ("DecisionCurve", "DecisionCurves"),
    "verax.analyses.decisions.thresholds": ("Thresholds",),
    "verax.analyses.discrimination.result": ("RankPart", "RankScore", "RankScores"),
    "verax.analyses.folds.result": ("FoldComparison",),
    "verax.analyses.grades.result": ("GradeCard",),
    "verax.analyses.monitoring.result": ("MonitorHistory", "MonitoredEvent", "MonitoredStep"),
    "verax.analyses.operating.result": (
        "OperatingPoint",
        "OperatingPoints",
        "Rate",
        "RateCurve",
        "RateCurves",
        "RateDifference",
    ),
    "verax.analyses.monitoring.over_time_result": ("OverTime", "PeriodLine"),
    "verax.analyses.raters.result": ("RatedMean", "Rater", "RaterStudy"),
    "verax.analyses.recalibration.choosing": ("Blend",),
    "verax.analyses.recalibration.curves": ("MonotoneCurve",),
    "verax.analyses.recalibration.forms": ("Isotonic", "LogLinear", "Unchanged"),
    "verax.analyses.recalibration.records": ("Gain", "Trial"),
    "verax.analyses.recalibration.result": ("Recalibration",),
    "verax.analyses.refinement.result": ("LossPart", "Refinement"),
    "verax.analyses.retention.result": ("RetentionCurve", "RetentionCurves"),
    "verax.analyses.retention.risk": ("RiskCoverage",),
    "verax.analyses.retention.risk_bins": ("RiskBins",),
    "verax.analyses.sets.conformal_result": ("Conformal",),
    "verax.analyses.sets.nonconformity": ("Nonconformity",),
    "verax.analyses.sets.result": ("CoverageLine", "SetEvaluation", "SetMeasure", "Span"),
    "verax.analyses.subgroups.result": ("Subgroup", "Subgroups"),
    "verax.analyses.table": ("RowTable",),
    "verax.analyses.units": ("CountedUnits", "SamplingUnits"),
    "verax.analyses.worst": ("Worst",),
    "verax.inference.intervals": ("Resampling",),
    "verax.inference.repeated": ("Practical",),
    "verax.inference.signedranks": ("Friedman",),
    "verax.inputs.groups": ("Groups",),
    "verax.inputs.lists.rows": ("ListFaults",),
    "verax.inputs.skipping": ("Skipped",),
    "verax.scores.certificates.certify": ("Certificate", "Counterexample", "PropertyCheck", "Resolution"),
    "verax.selection.choice": ("Best", "Correlation", "Selection"),
    "verax.selection.history": ("History",),
}
# The names that classes had when files with them were first written.
_STORED_AS = {"ListClaim": "Claim", "PropertyCheck": "Finding"}
# The class of each stored name, as a module and a name.
RECORDS: dict[str, str] = {
    _STORED_AS.get(name, name): f"{module}:{name}" for module, names in _CLASSES.items() for name in names
}


class Special(NamedTuple):
    """What is not stored as its fields: its class, how it is written and how it is read.

    Each is a module and a name.
    """

    cls: str
    write: str
    read: str


SPECIAL = {
    "interval": Special(
        "verax.inference.intervals:Interval",
        "verax.inference.intervals:Interval.to_dict",
        "verax.inference.intervals:Interval.from_dict",
    ),
    "verdict": Special(
        "verax.inference.findings:Verdict",
        "verax.inference.findings:Verdict.to_dict",
        "verax.inference.findings:Verdict.from_dict",
    ),
    "fraction": Special("fractions:Fraction", "builtins:str", "fractions:Fraction"),
    "rule": Special(
        "verax.scores.base:Rule", "verax.scores.storing:rule_name", "verax.scores.registry:stored_rule"
    ),
    "metric": Special(
        "verax.scores.metrics:DecisionMetric",
        "verax.scores.storing:metric_values",
        "verax.scores.storing:metric_named",
    ),
    "sums": Special(
        "verax.engines.tally:RuleSums", "verax.scores.storing:tally_values", "verax.scores.storing:tally_of"
    ),
}


def special_of(value: object) -> str | None:
    """The name of the special kind that a value is of, if any."""
    for name, kind in SPECIAL.items():
        module, _, attribute = kind.cls.partition(":")
        if module in sys.modules and isinstance(value, getattr(sys.modules[module], attribute)):
            return name
    return None


def is_record(value: object) -> bool:
    """Whether a value is stored as its fields."""
    cls = type(value)
    return RECORDS.get(stored_name(cls)) == f"{cls.__module__}:{cls.__name__}"


def stored_name(cls: type) -> str:
    """The name that a class is stored under."""
    return _STORED_AS.get(cls.__name__, cls.__name__)


def named(place: str) -> Any:
    """What is called `module:name`."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


def record_class(name: str) -> Any:
    """The class that is stored under this name."""
    return named(RECORDS[name])
