"""The wing of outcomes at a horizon."""

from verax.common.wings import Wing

WING = Wing(
    name="horizon",
    says="Outcomes at a horizon, with weights for rows that were censored before it.",
    functions={
        "at_horizon": "analysis:at_horizon",
    },
    results={
        "OutcomesAtHorizon": "result:OutcomesAtHorizon",
    },
    saved=("times",),
    answers={"followup": "followup:followup_of"},
    tutorial="docs/guide/horizon.md",
)
