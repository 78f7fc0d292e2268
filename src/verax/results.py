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
from verax.analyses.comparison.records import Difference
from verax.analyses.comparison.result import Comparison
from verax.analyses.discrimination.result import RankScore, RankScores
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import Worst
from verax.inference.findings import Verdict
from verax.inference.intervals import Interval
from verax.wings.decide.deferral import Deferral
from verax.wings.decide.murphy import Murphy
from verax.wings.decide.net_benefit import DecisionCurve, DecisionCurves
from verax.wings.decide.rates.result import OperatingPoint, OperatingPoints, RateCurve, RateCurves
from verax.wings.decide.thresholds import Thresholds
from verax.wings.evals.result import GradeCard
from verax.wings.horizon.result import OutcomesAtHorizon
from verax.wings.judges.planning import CheckPlan
from verax.wings.judges.result import JudgedGrades
from verax.wings.lists.combination.combination import Combination
from verax.wings.lists.lengths import LengthComparison
from verax.wings.monitor.over_time import OverTime
from verax.wings.monitor.result import Acknowledgement, Alarm, MonitorHistory
from verax.wings.plan.result import SamplePlan
from verax.wings.plan.validation import ValidationPlan
from verax.wings.raters.result import RaterStudy
from verax.wings.recalibrate.result import ListRecalibration, Recalibration
from verax.wings.repeats.planning import RepeatPlan
from verax.wings.repeats.result import RepeatScores
from verax.wings.retain.result import RetentionCurve, RetentionCurves
from verax.wings.retain.risk import RiskCoverage
from verax.wings.select.datasets.result import DatasetComparison
from verax.wings.select.folds.result import FoldComparison
from verax.wings.select.refinement.result import Refinement
from verax.wings.sets.conformal import Conformal
from verax.wings.sets.result import SetEvaluation
from verax.wings.sites.result import SiteStudy
from verax.wings.theory.certificates.certify import Certificate
from verax.wings.theory.landscape import Landscape

__all__ = [
    "Acknowledgement",
    "Alarm",
    "CalibrationLine",
    "CalibrationSlopes",
    "Certificate",
    "CheckPlan",
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
    "JudgedGrades",
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
    "OutcomesAtHorizon",
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
    "RepeatPlan",
    "RepeatScores",
    "RetentionCurve",
    "RetentionCurves",
    "RiskCoverage",
    "SamplePlan",
    "ScoreMap",
    "Scorecard",
    "SetEvaluation",
    "SiteStudy",
    "Subgroups",
    "Thresholds",
    "ValidationPlan",
    "Verdict",
    "Worst",
]
