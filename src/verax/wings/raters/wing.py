"""The wing of several raters."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="raters",
    says="How much raters disagree, and how many raters a forecast is worth.",
    functions={
        "raters": "analysis:raters",
    },
    results={
        "RaterStudy": "result:RaterStudy",
    },
    commands={
        "raters": Command(
            "Show how much raters disagree, and what forecasts are worth.",
            after="sets",
            output="command:output",
        ),
    },
    sections=("section:RATERS",),
    tutorial="docs/guide/raters.md",
)
