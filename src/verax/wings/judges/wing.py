"""The wing of judges."""

from verax.common.wings import Wing

WING = Wing(
    name="judges",
    says="Grades of a judge, such as a language model, corrected by those of people.",
    results={
        "CheckPlan": "planning:CheckPlan",
        "JudgedGrades": "result:JudgedGrades",
    },
    answers={
        "judged comparison": "comparison:compared",
    },
    uses=("repeats",),
    tutorial="docs/guide/judges.md",
)
