"""The wing of decisions."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="decide",
    says="Decisions by forecasts: thresholds, rates, decision curves, gains of deferring.",
    functions={
        "choose_thresholds": "thresholds:choose_thresholds",
        "confidence_curve": "rates.curves:confidence_curve",
        "deferral": "deferral:deferral",
        "net_benefit": "net_benefit:net_benefit",
        "operating_points": "rates.points:operating_points",
        "precision_recall_curve": "rates.curves:precision_recall_curve",
        "roc_curve": "rates.curves:roc_curve",
    },
    results={
        "DecisionCurve": "net_benefit:DecisionCurve",
        "DecisionCurves": "net_benefit:DecisionCurves",
        "Deferral": "deferral:Deferral",
        "Murphy": "murphy:Murphy",
        "OperatingPoint": "rates.result:OperatingPoint",
        "OperatingPoints": "rates.result:OperatingPoints",
        "RateCurve": "rates.result:RateCurve",
        "RateCurves": "rates.result:RateCurves",
        "Thresholds": "thresholds:Thresholds",
    },
    commands={
        "decide": Command(
            "Show rates at a threshold, decision curves, gains of deferring.",
            after="decompose",
            output="command:output",
        ),
    },
    outputs={"compare": "command:compared"},
    definitions="command:definitions",
    answers={"comparison by a rate": "rates.compared:compare_rates"},
    sections=("section.sections:DECISIONS", "section.sections:CONFIDENCE"),
    saved=("cells",),
    tutorial="docs/guide/decisions.md",
)
