"""The wing of graded answers and evaluation logs."""

from verax.common.wings import CardKind, Command, Wing

_GRADED = ("--grade", "--grade-range", "--answer", "--gold", "--confidence-column", "--ungraded")
_ANSWERS = (*_GRADED, "--model-column", "--task", "--epoch")

WING = Wing(
    name="evals",
    says="Graded answers and evaluation logs of language models.",
    functions={
        "evaluate_grades": "analysis:evaluate_grades",
    },
    results={
        "GradeCard": "result:GradeCard",
    },
    commands={
        "evals": Command(
            "Evaluate and compare graded answers and evaluation logs.",
            after="datasets",
            output={
                "evaluate": "cli.outputs:evaluate",
                "compare": "cli.outputs:compare",
                "plan": "verax.wings.plan.command:output",
                "worst": "cli.outputs:worst",
            },
            takes={
                "evaluate": ("evals evaluate", _ANSWERS),
                "worst": ("evals worst", _ANSWERS),
                "plan": ("evals plan", _GRADED),
                "compare": ("evals compare", _GRADED),
            },
        ),
    },
    outputs={"merge": "cli.outputs:merge"},
    saved=("summaries",),
    cards={
        "grades": CardKind("graded answers", loads="result:card_from_bytes", shows="cli.merging:show_merged"),
    },
    forms=("form:GRADED",),
    shapes=("reading.inspect:INSPECT_TOKENS",),
    answers={"grade card": "analysis:evaluate_grades"},
    uses=("judges", "plan", "repeats"),
    tutorial="docs/guide/evals.md",
)
