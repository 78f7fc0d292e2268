"""Which claims are about which results."""

from __future__ import annotations

# The claims that measure each interval of a result, or what results are made of, by a text in their names.
MEASURED = {
    "CalibrationLine.in_the_large_interval": "slopes and ranks: in the large",
    "CalibrationLine.intercept_interval": "slopes and ranks: intercept",
    "CalibrationLine.slope_interval": "slopes and ranks: slope",
    "CardLine.interval": "shares over groups: coverage",
    "Components.intervals": "miscalibration:",
    "CurveDifference.band": "decision curves: band of differences",
    "CurveDifference.interval": "decision curves: band of differences",
    "CoverageLine.interval": "sets: coverage by class",
    "DatasetDifference.interval": "data sets: difference",
    "DatasetModel.interval": "data sets: mean rank",
    "DecisionCurve.band": "decision curves: band,",
    "DecisionCurve.interval": "decision curves: interval",
    "Decomposition.intervals": "discrimination:",
    "DeferralLine.cost_interval": "rows kept: cost",
    "DeferralLine.saved_interval": "rows kept: saving",
    "Difference.interval": "skewed groups:",
    "EventCurve.interval": "decision curves: Murphy interval",
    "Gain.interval": "recalibration: gain",
    "Gain.share_interval": "recalibration: share",
    "LossPart.interval": "refinement: temperature, refinement",
    "GradeCard.interval": "questions: mean grade",
    "IndependentUnits.interval": "slopes and ranks: AUC,",
    "Measure.interval": "skills and bands: skill in summaries",
    "Mixture.band": "decision curves: band,",
    "Mixture.interval": "decision curves: interval",
    "Model.interval": "means of losses: coverage",
    "Model.skill_interval": "skills and bands: skill in comparisons",
    "MurphyDifference.band": "decision curves: Murphy band of differences",
    "MurphyDifference.interval": "decision curves: Murphy band of differences",
    "RankPart.interval": "slopes and ranks: AUC of a class",
    "RankScore.interval": "slopes and ranks: AUC,",
    "Rate.interval": "rates: sensitivity",
    "RatedMean.interval": "raters: loss",
    "RateCurve.band": "rates: ROC band",
    "RateCurve.interval": "rates: sensitivity",
    "RateCurve.x_interval": "rates: specificity",
    "RateDifference.interval": "rates: difference of sensitivity",
    "ReliabilityCurve.band": "skills and bands: reliability",
    "RetentionCurve.band": "rows kept: retention band",
    "RetentionCurve.interval": "rows kept: retention area",
    "RiskCoverage.augrc_interval": "rows kept: AUGRC",
    "RiskCoverage.aurc_interval": "rows kept: AURC",
    "RiskCoverage.band": "rows kept: risk band",
    "RiskCoverage.coverage_interval": "rows kept: coverage",
    "RiskCoverage.risk_interval": "rows kept: risk,",
    "SetMeasure.interval": "sets: coverage,",
    "Thresholds.interval": "rows kept: gain of thresholds",
    "Uncertainty.interval": "miscalibration:",
}
# Intervals without a claim yet. Documentation must not say how often they cover.
NOT_MEASURED = {
    # The band of one event, which reliability curves show.
    "EventCells.band",
    # Equal to reference limits; subgroups have no study of their ratios yet.
    "EventRatio.interval",
    "MonitoredStep.interval",
    "PeriodLine.gap_interval",
    "PeriodLine.interval",
    "RateCurve.area_interval",
    # Of a share in a simulation of a paper, from the differences between its rounds.
    "Share.interval",
}
