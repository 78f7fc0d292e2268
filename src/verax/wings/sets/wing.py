"""The wing of prediction sets."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="sets",
    says="Prediction sets: their coverage and size, and how to make them.",
    functions={
        "conformal": "conformal:conformal",
        "evaluate_sets": "analysis:evaluate_sets",
    },
    results={
        "Conformal": "conformal:Conformal",
        "SetEvaluation": "result:SetEvaluation",
    },
    commands={
        "sets": Command(
            "Judge prediction sets, or make them by conformal prediction.",
            after="recalibrate",
            output="command:output",
        ),
    },
    definitions="command:definitions",
    saved=("quantiles", "summaries"),
    tutorial="docs/guide/sets.md",
)
