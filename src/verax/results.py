"""The classes of results, for annotations, `isinstance` and `from_dict`: functions of verax return them.

>>> import verax as vx
>>> card = vx.evaluate([0, 1, 1], [0.2, 0.7, 0.6], rules=["brier"])
>>> isinstance(card, vx.results.Scorecard), vx.results.Scorecard.from_dict(card.to_dict()) == card
(True, True)
"""

from __future__ import annotations

from verax.analyses.calibration.components import Components, Decomposition, ListDecomposition
from verax.analyses.calibration.curves import ListReliability, Reliability, ReliabilityCurve
from verax.analyses.calibration.score_map import ScoreMap
from verax.analyses.calibration.slope_result import CalibrationLine, CalibrationSlopes
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.combination.combination import Combination
from verax.analyses.comparison.lengths import LengthComparison
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.result import Comparison
from verax.analyses.datasets.result import DatasetComparison
from verax.analyses.decisions.deferral import Deferral
from verax.analyses.decisions.murphy import Murphy
from verax.analyses.decisions.net_benefit import DecisionCurve, DecisionCurves
from verax.analyses.decisions.thresholds import Thresholds
from verax.analyses.discrimination.result import RankScore, RankScores
from verax.analyses.folds.result import FoldComparison
from verax.analyses.grades.result import GradeCard
from verax.analyses.monitoring.over_time import OverTime
from verax.analyses.monitoring.result import Alarm, MonitorHistory
from verax.analyses.operating.result import OperatingPoint, OperatingPoints, RateCurve, RateCurves
from verax.analyses.planning.result import SamplePlan
from verax.analyses.raters.result import RaterStudy
from verax.analyses.recalibration.result import ListRecalibration, Recalibration
from verax.analyses.refinement.result import Refinement
from verax.analyses.retention.result import RetentionCurve, RetentionCurves
from verax.analyses.retention.risk import RiskCoverage
from verax.analyses.sets.conformal import Conformal
from verax.analyses.sets.result import SetEvaluation
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import Worst
from verax.inference.findings import Verdict
from verax.inference.intervals import Interval
from verax.scores.certificates.certify import Certificate
from verax.scores.landscape import Landscape

__all__ = [
    "Alarm",
    "CalibrationLine",
    "CalibrationSlopes",
    "Certificate",
    "Combination",
    "Comparison",
    "Components",
    "Conformal",
    "DatasetComparison",
    "DecisionCurve",
    "DecisionCurves",
    "Decomposition",
    "Deferral",
    "Difference",
    "FoldComparison",
    "GradeCard",
    "Interval",
    "Landscape",
    "LengthComparison",
    "ListCard",
    "ListDecomposition",
    "ListRecalibration",
    "ListReliability",
    "MonitorHistory",
    "Murphy",
    "OperatingPoint",
    "OperatingPoints",
    "OverTime",
    "RankScore",
    "RankScores",
    "RateCurve",
    "RateCurves",
    "RaterStudy",
    "Recalibration",
    "Refinement",
    "Reliability",
    "ReliabilityCurve",
    "RetentionCurve",
    "RetentionCurves",
    "RiskCoverage",
    "SamplePlan",
    "ScoreMap",
    "Scorecard",
    "SetEvaluation",
    "Subgroups",
    "Thresholds",
    "Verdict",
    "Worst",
]
