"""What the outputs of several commands have in common, as JSON schemas."""

from __future__ import annotations

from verax.analyses.comparison.answers import GapBounds, ModelAnswers
from verax.analyses.comparison.records import Difference, MarginTest, Model
from verax.analyses.comparison.traits import Traits
from verax.cli.schemas.building import (
    COUNT,
    FINITE,
    INTERVAL,
    LABEL,
    NUMBER,
    NUMBERS,
    PLACE,
    SHARE,
    TEXT,
    TEXTS,
    TRUTH,
    Maybe,
    Schema,
    either,
    listed,
    mapped,
    of_fields,
    or_none,
    record,
    ref,
)

N_GROUPS = either(COUNT, listed(COUNT, 2), {"type": "null"})
NOTED: dict[str, Schema | Maybe] = {"skipped": Maybe(ref("skipped")), "lists": Maybe(ref("faults"))}
# What was read: a file of full distributions, or one that may have top lists.
COLUMN_FILE: dict[str, Schema | Maybe] = {
    "file": TEXT,
    "taken": ref("columns"),
    "normalize": TRUTH,
    "logits": TRUTH,
}
ANY_FILE: dict[str, Schema | Maybe] = {"file": TEXT, "taken": either(ref("columns"), ref("list_file"))}
WEIGHTS_ARE: Schema = {"enum": ["importance", "counts"]}

_CARD: dict[str, Schema | Maybe] = {
    "verax": TEXT,
    "n_rows": COUNT,
    "weight": FINITE,
    "n_groups": N_GROUPS,
    "n_classes": COUNT,
    "intervals": record(confidence=SHARE, replicates=COUNT, seed=COUNT, method=TEXT, weights_are=WEIGHTS_ARE),
    "scores": mapped(ref("line")),
    "metrics": mapped(ref("line")),
    "measures": Maybe(mapped(ref("line"))),
    "zero_probability": record(count=COUNT, rows=listed(COUNT)),
    **NOTED,
}
LIST_CARD: dict[str, Schema | Maybe] = {**_CARD, "n_invalid": COUNT, "longest": COUNT, "unmatched": TEXT}
_COMPONENTS = ("score", "miscalibration", "discrimination", "uncertainty")
_FAULTS = record(n_lists=COUNT, n_invalid=COUNT, unmatched=TEXT)

DEFINITIONS: dict[str, Schema] = {
    "skipped": record(n_given=COUNT, count=COUNT, rows=listed(COUNT), reasons=mapped(COUNT), caution=TEXT),
    "faults": either(_FAULTS, mapped(_FAULTS)),
    "line": record(
        mean=NUMBER,
        interval=INTERVAL,
        std=NUMBER,
        range=INTERVAL,
        orientation=TEXT,
        proper={"enum": ["strictly", "yes", "no", "unknown", ""]},
        summary=TEXT,
        caution=Maybe(TEXT),
        rule=Maybe(TEXT),
        finite_mean=Maybe(NUMBER),
        infinite_weight=Maybe(FINITE),
        reference=Maybe(TEXT),
    ),
    "card": record(
        **_CARD,
        classes=or_none(listed(LABEL)),
        ordered=TRUTH,
        class_counts=listed(FINITE),
        confusion=or_none(listed(listed(FINITE))),
    ),
    "list_card": record(**LIST_CARD),
    "components": record(
        name=TEXT,
        **dict.fromkeys(_COMPONENTS, NUMBER),
        intervals=or_none(mapped(INTERVAL)),
        caution=or_none(TEXT),
        corrected=or_none(either(mapped(NUMBER), NUMBERS)),
        expected_miscalibration=NUMBER,
        p_value=NUMBER,
        within=Maybe(NUMBER),
    ),
    "decomposition": record(
        verax=TEXT,
        rule=TEXT,
        n_rows=COUNT,
        n_classes=COUNT,
        n_groups=N_GROUPS,
        whole=ref("components"),
        parts=listed(ref("components")),
        total=TEXT,
        bootstrap=record(
            replicates=COUNT, confidence=SHARE, seed=COUNT, weights_are=WEIGHTS_ARE, method=TEXT
        ),
        # Of top lists.
        left_out=Maybe(NUMBER),
        padded=Maybe(NUMBER),
        mean_length=Maybe(NUMBER),
        n_invalid=Maybe(COUNT),
        **NOTED,
    ),
    "calibration": record(
        rule=TEXT,
        quantity=TEXT,
        reference=TEXT,
        skill=NUMBER,
        miscalibration=NUMBER,
        discrimination=NUMBER,
        ece=NUMBER,
        auc=Maybe(NUMBER),
        average_precision=Maybe(NUMBER),
        c_index=Maybe(NUMBER),
        slope=Maybe(NUMBER),
        intercept=Maybe(NUMBER),
        in_the_large=Maybe(NUMBER),
        uncertainty=NUMBER,
        intervals=mapped(INTERVAL),
        **NOTED,
    ),
    "comparison": record(
        n_rows=COUNT,
        n_groups=N_GROUPS,
        method=TEXT,
        confidence=SHARE,
        reference=or_none(TEXT),
        models=mapped(listed(of_fields(Model, rank=PLACE))),
        differences=mapped(listed(of_fields(Difference))),
        traits=mapped(of_fields(Traits)),
        disagreements=TEXTS,
        undecided=TEXTS,
        margin=or_none(NUMBER),
        margin_tests=listed(of_fields(MarginTest)),
        notes=TEXTS,
        missing=Maybe({"enum": ["refuse", "pairwise", "joint"]}),
        answers=Maybe(mapped(listed(of_fields(ModelAnswers)))),
        gap_bounds=Maybe(mapped(listed(of_fields(GapBounds)))),
        peers=Maybe(mapped(listed(of_fields(Model, rank=PLACE)))),
        tasks=Maybe(mapped(ref("comparison"))),
        **NOTED,
    ),
    "subgroups": record(
        by=TEXT,
        rule=TEXT,
        untested=TEXT,
        verdict=TEXT,
        within_groups=TRUTH,
        time_ordered=TRUTH,
        subgroups=listed(
            record(
                label=TEXT,
                model=TEXT,
                card=either(ref("card"), ref("list_card")),
                decomposition=ref("decomposition"),
                p_value=NUMBER,
                p_adjusted=NUMBER,
                stands_out=TRUTH,
                undecided=TRUTH,
            )
        ),
        comparisons=mapped(ref("comparison")),
        **NOTED,
    ),
    "curve": record(
        order=TEXT,
        metric=TEXT,
        orientation=TEXT,
        sees_outcome=TRUTH,
        removed=listed(FINITE),
        values=NUMBERS,
        area=NUMBER,
        area_kind={"enum": ["mean", "steps"]},
        ties={"enum": ["share", "order"]},
        interval=or_none(INTERVAL),
        band=or_none(listed(NUMBERS, 2)),
        replicates=COUNT,
        confidence=SHARE,
        seed=COUNT,
        within=or_none(NUMBERS),
        area_within=NUMBER,
        **NOTED,
    ),
    # What was taken for what, in a file of rows of probabilities and in one of lists.
    "columns": record(
        target=TEXT,
        probs=TEXTS,
        logits=TRUTH,
        weights=or_none(TEXT),
        groups=or_none(either(TEXT, TEXTS)),
        by=TEXTS,
        id=or_none(either(TEXT, TEXTS)),
        outcomes_are=TEXT,
        not_taken=TEXTS,
        found_by=TEXT,
        raters=Maybe(TEXTS),
        raters_are=Maybe(TEXT),
        sets=Maybe(TRUTH),
    ),
    "list_file": record(
        shape=TEXT, taken=TEXTS, counts=mapped(LABEL), skipped=or_none(ref("skipped")), notes=TEXTS
    ),
    "interval": record(low=NUMBER, high=NUMBER, method=TEXT, confidence=SHARE, caution=TEXT),
    "bound": record(
        require=TEXT,
        score=TEXT,
        of={"enum": ["mean", "low", "high", "lower", "upper"]},
        value=NUMBER,
        sign={"enum": ["<", "<=", ">", ">="]},
        bound=FINITE,
        met=TRUTH,
    ),
}
