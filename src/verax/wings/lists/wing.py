"""The wing of top lists."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="lists",
    says="Top lists: their files, lengths and combinations.",
    functions={
        "combine": "pooling:combine",
        "compare_lengths": "lengths:compare_lengths",
        "fit_combination": "combination.combination:fit_combination",
    },
    results={
        "Combination": "combination.combination:Combination",
        "LengthComparison": "lengths:LengthComparison",
    },
    commands={
        "toplist": Command(
            "Score top lists, such as language-model responses.", after="select", output="command:output"
        ),
    },
    sections=("section:LENGTHS",),
    saved=("lengths",),
    forms=("form:LISTS",),
    uses=(
        "evals",
        "recalibrate",
        "retain",
    ),
    tutorial="docs/guide/toplists.md",
)
