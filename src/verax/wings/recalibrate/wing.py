"""The wing of recalibration."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="recalibrate",
    says="Recalibration of forecasts, and what it would gain.",
    functions={
        "recalibrate": "analysis:recalibrate",
    },
    results={
        "ListRecalibration": "result:ListRecalibration",
        "Recalibration": "result:Recalibration",
    },
    commands={
        "recalibrate": Command(
            "Find the best recalibration method, write recalibrated files.",
            after="retain",
            output="command:output",
        ),
    },
    definitions="command:definitions",
    sections=("section.remedy:REMEDIES",),
    words={"methods": "records:methods_in_words"},
    tutorial="docs/guide/recalibration.md",
)
