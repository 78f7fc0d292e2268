"""The wing of selection; users find epochs and splits in `verax.selection`."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="select",
    says="What to keep: epochs, models over folds and data sets.",
    functions={
        "compare_datasets": "datasets.datasets:compare_datasets",
        "compare_folds": "folds.folds:compare_folds",
        "refinement": "refinement.refinement:refinement",
    },
    results={
        "DatasetComparison": "datasets.result:DatasetComparison",
        "FoldComparison": "folds.result:FoldComparison",
        "Refinement": "refinement.result:Refinement",
    },
    commands={
        "folds": Command(
            "Compare models over the folds of cross-validation.",
            place="folds.command",
            after="compare",
            output="folds.command:output",
            takes={"compare": ("folds", ("--folds",))},
        ),
        "datasets": Command(
            "Compare models over many data sets, by a table of scores.",
            place="datasets.command",
            after="folds",
            output="datasets.command:output",
            takes={"compare": ("datasets", ("--datasets",))},
        ),
        "select": Command("Name the epoch to keep by each rule.", after="monitor", output="command:output"),
    },
    uses=("recalibrate",),
    tutorial="docs/guide/selection.md",
)
