"""The wing of retained samples."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="retain",
    says="Curves of retained samples, and of risk and coverage.",
    functions={
        "retention": "curves:retention",
        "risk_coverage": "risk:risk_coverage",
        "selective": "curves:selective",
    },
    results={
        "RetentionCurve": "result:RetentionCurve",
        "RetentionCurves": "result:RetentionCurves",
        "RiskCoverage": "risk:RiskCoverage",
    },
    commands={
        "retain": Command(
            "Show how metrics change as the hardest rows are dropped.", after="worst", output="command:output"
        ),
    },
    sections=("section:RETENTION",),
    saved=("summaries",),
    tutorial="docs/guide/decisions.md",
)
