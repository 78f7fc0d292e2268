"""The wing of examples."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="demo",
    says="The tour of `verax demo`, and the files of the documentation.",
    commands={
        "demo": Command(
            "Train four models, judge their probabilities, write the reports.", output="command:output"
        ),
    },
    uses=("recalibrate",),
    tutorial="docs/start.md",
)
