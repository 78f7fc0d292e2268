"""The wing of repeats."""

from verax.common.wings import Wing

WING = Wing(
    name="repeats",
    says="What repeats of questions tell beside their mean: pass@k and its kin, repeats or questions.",
    functions={
        "pass_at_k": "analysis:pass_at_k",
        "plan_repeats": "planning:plan_repeats",
    },
    results={
        "RepeatPlan": "planning:RepeatPlan",
        "RepeatScores": "result:RepeatScores",
    },
    tutorial="docs/guide/repeats.md",
)
