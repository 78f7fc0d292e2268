"""The wing of heavy losses, as another package would add it."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="heavy",
    says="The rows that lose much.",
    functions={"heavy_losses": "analysis:heavy_losses"},
    results={"HeavyLosses": "result:HeavyLosses"},
    commands={
        "heavy": Command(
            "Show how much of the loss comes from few rows.", after="worst", output="command:output"
        ),
    },
    sections=("section:HEAVY",),
    saved=("summaries",),
)
