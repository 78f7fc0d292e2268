"""JSON schemas of the parts that outputs of several commands share, where fields do not tell them."""

from __future__ import annotations

from verax.cli.schemas.building import (
    COUNT,
    FINITE,
    INTERVAL,
    LABEL,
    NOTED,
    NUMBER,
    PLACE,
    SHARE,
    TEXT,
    TEXTS,
    TRUTH,
    Fields,
    Maybe,
    Schema,
    either,
    listed,
    mapped,
    or_none,
    record,
    ref,
)
from verax.inference.findings import Claim

_FAULTS = record(n_lists=COUNT, n_invalid=COUNT, unmatched=TEXT, n_by_mass=COUNT)

# One of the worst rows, without its forecast; a class with its probability or its share of the raters.
_CASE: Fields = {
    "row": COUNT,
    "id": LABEL,
    "outcome": LABEL,
    "loss": NUMBER,
    "ranks": mapped(PLACE),
    "source": TEXT,
}
_ENTRY: Schema = {"type": "array", "prefixItems": [LABEL, NUMBER], "minItems": 2, "maxItems": 2}
_CASE_OF_RATERS: Fields = {**_CASE, "outcome": listed(_ENTRY)}
_RATED = record(**_CASE_OF_RATERS, forecast=listed(FINITE), disagreement=NUMBER, excess=NUMBER)

DEFINITIONS: dict[str, Schema] = {
    "skipped": record(n_given=COUNT, count=COUNT, rows=listed(COUNT), reasons=mapped(COUNT), caution=TEXT),
    "faults": either(_FAULTS, mapped(_FAULTS)),
    "calibration_summary": record(
        rule=TEXT,
        quantity=TEXT,
        reference=TEXT,
        skill=NUMBER,
        miscalibration=NUMBER,
        discrimination=NUMBER,
        ece=NUMBER,
        smooth_ece=Maybe(NUMBER),
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
    # How columns were read, in a file of rows of probabilities and in one of lists.
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
        time=Maybe(TEXT),
        horizon=Maybe(record(at=FINITE, n_rows=COUNT, n_happened=COUNT, n_censored=COUNT)),
    ),
    "list_file": record(
        shape=TEXT, taken=TEXTS, counts=mapped(LABEL), skipped=or_none(ref("skipped")), notes=TEXTS
    ),
    "finding": record(
        claim={"enum": [str(claim) for claim in Claim]},
        text=TEXT,
        about=TEXTS,
        numbers=mapped(record(value=NUMBER, interval=or_none(listed(NUMBER, 2)))),
        p_value=or_none(NUMBER),
        level=or_none(SHARE),
        caution=TEXT,
        next_step=or_none(ref("next_step")),
    ),
    "next_step": record(text=TEXT, call=TEXT, command=TEXT),
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
    # Parts of results that are written in a form of their own.
    "case": record(**_CASE, forecast=listed(FINITE)),
    "share_case": _RATED,
    "list_case": record(
        **_CASE,
        forecast=listed(_ENTRY),
        place=or_none(COUNT),
        unaccounted=NUMBER,
        n_unlisted=COUNT,
        valid=TRUTH,
    ),
}
