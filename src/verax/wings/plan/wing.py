"""The wing of sample sizes."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="plan",
    says="Sample sizes: how many rows a difference or an interval width needs.",
    functions={
        "plan": "analysis:plan",
    },
    results={
        "SamplePlan": "result:SamplePlan",
    },
    commands={
        "plan": Command(
            "Plan the number of rows for a difference or an interval width.",
            after="evals",
            output="command:output",
        ),
    },
    tutorial="docs/guide/samplesize.md",
)
