"""The public names of verax, each with the module that defines it; they are imported when first used."""

from . import adapters as adapters
from . import compat as compat
from . import report as report
from . import selection as selection
from ._version import __version__ as __version__
from .analyses.calibration.components import (
    Components as Components,
)
from .analyses.calibration.components import (
    Decomposition as Decomposition,
)
from .analyses.calibration.curves import (
    Reliability as Reliability,
)
from .analyses.calibration.curves import (
    ReliabilityCurve as ReliabilityCurve,
)
from .analyses.calibration.decomposition import decompose as decompose
from .analyses.calibration.ece import ece as ece
from .analyses.calibration.lists import ListReliability as ListReliability
from .analyses.calibration.mass import ListDecomposition as ListDecomposition
from .analyses.calibration.reliability import reliability as reliability
from .analyses.calibration.slope import calibration_slope as calibration_slope
from .analyses.calibration.slope_result import (
    CalibrationLine as CalibrationLine,
)
from .analyses.calibration.slope_result import (
    CalibrationSlopes as CalibrationSlopes,
)
from .analyses.cards.evaluation import evaluate as evaluate
from .analyses.cards.listcard import ListCard as ListCard
from .analyses.cards.saved import load as load
from .analyses.cards.scorecard import Scorecard as Scorecard
from .analyses.cards.tally import Tally as Tally
from .analyses.combination.combination import (
    Combination as Combination,
)
from .analyses.combination.combination import (
    fit_pool as fit_pool,
)
from .analyses.comparison.compare import compare as compare
from .analyses.comparison.length_result import LengthComparison as LengthComparison
from .analyses.comparison.lengths import compare_lengths as compare_lengths
from .analyses.comparison.result import Comparison as Comparison
from .analyses.decisions.deferral import (
    Deferral as Deferral,
)
from .analyses.decisions.deferral import (
    deferral as deferral,
)
from .analyses.decisions.murphy import (
    Murphy as Murphy,
)
from .analyses.decisions.murphy import (
    murphy as murphy,
)
from .analyses.decisions.net_benefit import (
    DecisionCurve as DecisionCurve,
)
from .analyses.decisions.net_benefit import (
    DecisionCurves as DecisionCurves,
)
from .analyses.decisions.net_benefit import (
    net_benefit as net_benefit,
)
from .analyses.decisions.thresholds import (
    Thresholds as Thresholds,
)
from .analyses.decisions.thresholds import (
    choose_thresholds as choose_thresholds,
)
from .analyses.discrimination.ranking import (
    average_precision as average_precision,
)
from .analyses.discrimination.ranking import (
    c_index as c_index,
)
from .analyses.discrimination.ranking import (
    roc_auc as roc_auc,
)
from .analyses.discrimination.result import (
    RankScore as RankScore,
)
from .analyses.discrimination.result import (
    RankScores as RankScores,
)
from .analyses.recalibration.recalibration import recalibrate as recalibrate
from .analyses.recalibration.result import Recalibration as Recalibration
from .analyses.retention.curves import (
    retention as retention,
)
from .analyses.retention.curves import (
    selective as selective,
)
from .analyses.retention.result import (
    RetentionCurve as RetentionCurve,
)
from .analyses.retention.result import (
    RetentionCurves as RetentionCurves,
)
from .analyses.retention.risk import (
    RiskCoverage as RiskCoverage,
)
from .analyses.retention.risk import (
    risk_coverage as risk_coverage,
)
from .analyses.subgroups.result import Subgroups as Subgroups
from .analyses.subgroups.subgroups import subgroups as subgroups
from .analyses.worst import worst as worst
from .errors import (
    InputError as InputError,
)
from .errors import (
    MissingPackageError as MissingPackageError,
)
from .errors import (
    ParseError as ParseError,
)
from .errors import (
    RuleError as RuleError,
)
from .errors import (
    VeraxError as VeraxError,
)
from .inference.sequences import ConfidenceSequence as ConfidenceSequence
from .inputs.forecasts import Forecasts as Forecasts
from .inputs.lists.labelsets import instance_f1 as instance_f1
from .inputs.lists.pooling import combine as combine
from .inputs.lists.toplists import TopLists as TopLists
from .scans.saved import Recorded as Recorded
from .scans.scan import scan as scan
from .scores.base import Rule as Rule
from .scores.certificates.certify import (
    Certificate as Certificate,
)
from .scores.certificates.certify import (
    certify as certify,
)
from .scores.combinators import (
    padded as padded,
)
from .scores.combinators import (
    penalized as penalized,
)
from .scores.coverage import top_k_error as top_k_error
from .scores.decisions import (
    decide as decide,
)
from .scores.decisions import (
    expected_cost as expected_cost,
)
from .scores.decisions import (
    kappa as kappa,
)
from .scores.gradients.logits import (
    expected_hessian as expected_hessian,
)
from .scores.gradients.logits import (
    gradient as gradient,
)
from .scores.landscape import (
    Landscape as Landscape,
)
from .scores.landscape import (
    landscape as landscape,
)
from .scores.properties import (
    Holds as Holds,
)
from .scores.properties import (
    Properties as Properties,
)
from .scores.registry import (
    RULES as RULES,
)
from .scores.registry import (
    abs_rps as abs_rps,
)
from .scores.registry import (
    brier as brier,
)
from .scores.registry import (
    log_score as log_score,
)
from .scores.registry import (
    parse as parse,
)
from .scores.registry import (
    pbs as pbs,
)
from .scores.registry import (
    pll as pll,
)
from .scores.registry import (
    ranked_log as ranked_log,
)
from .scores.registry import (
    rps as rps,
)
from .scores.registry import (
    sa_rps as sa_rps,
)
from .scores.registry import (
    spherical as spherical,
)
from .scores.registry import (
    zero_one as zero_one,
)
from .scores.rules import (
    RPS as RPS,
)
from .scores.rules import (
    AbsRPS as AbsRPS,
)
from .scores.rules import (
    Brier as Brier,
)
from .scores.rules import (
    Log as Log,
)
from .scores.rules import (
    RankedLog as RankedLog,
)
from .scores.rules import (
    SaRPS as SaRPS,
)
from .scores.rules import (
    Spherical as Spherical,
)
from .scores.rules import (
    ZeroOne as ZeroOne,
)
