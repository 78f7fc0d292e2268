"""The wing of sample sizes."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="plan",
    says="Sample sizes: how many rows a difference, an interval width or a validation needs.",
    functions={
        "plan": "analysis:plan",
        "plan_validation": "validation:plan_validation",
    },
    results={
        "SamplePlan": "result:SamplePlan",
        "ValidationPlan": "validation:ValidationPlan",
    },
    commands={
        "plan": Command(
            "Plan the number of rows for a difference, an interval width or a validation.",
            after="evals",
            output="command:outputs",
        ),
    },
    uses=("judges",),
    tutorial="docs/guide/samplesize.md",
)
