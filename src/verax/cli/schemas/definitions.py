"""JSON schemas of the parts that outputs of several commands share."""

from __future__ import annotations

from verax.analyses.rates import RATES
from verax.cli.schemas.building import (
    COUNT,
    FINITE,
    INTERVAL,
    LABEL,
    NOTED,
    NUMBER,
    NUMBERS,
    PLACE,
    SHARE,
    TEXT,
    TEXTS,
    TRUTH,
    Maybe,
    Schema,
    const,
    either,
    face,
    listed,
    mapped,
    of_type,
    or_none,
    record,
    ref,
)
from verax.inference.findings import Claim
from verax.wings.decide.rates.result import OperatingPoint, Rate
from verax.wings.monitor.result import MonitoredEvent
from verax.wings.recalibrate.forms import CalibrationMap

N_GROUPS = either(COUNT, listed(COUNT, 2), {"type": "null"})
# The file: one of full distributions, or one that may have top lists.
COLUMN_FILE: dict[str, Schema | Maybe] = {
    "file": TEXT,
    "taken": ref("columns"),
    "normalize": TRUTH,
    "logits": TRUTH,
}
ANY_FILE: dict[str, Schema | Maybe] = {"file": TEXT, "taken": either(ref("columns"), ref("list_file"))}
WEIGHTS_ARE: Schema = {"enum": ["importance", "counts"]}

_FAULTS = record(n_lists=COUNT, n_invalid=COUNT, unmatched=TEXT, n_by_mass=COUNT)

# One of the worst rows, without its forecast; a class with its probability or its share of the raters.
_CASE: dict[str, Schema | Maybe] = {
    "row": COUNT,
    "id": LABEL,
    "outcome": LABEL,
    "loss": NUMBER,
    "ranks": mapped(PLACE),
    "source": TEXT,
}
_ENTRY: Schema = {"type": "array", "prefixItems": [LABEL, NUMBER], "minItems": 2, "maxItems": 2}
_CASE_OF_RATERS: dict[str, Schema | Maybe] = {**_CASE, "outcome": listed(_ENTRY)}
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
    "operating_point": record(**face(OperatingPoint), **dict.fromkeys(RATES, of_type(Rate))),
    "nonconformity": record(name=TEXT, seed=COUNT),
    "counterexample": record(
        forecasts=listed(TEXTS), truth=or_none(TEXTS), outcomes=listed(COUNT), losses=TEXTS, text=TEXT
    ),
    "monitored_step": record(
        time=TEXT,
        n_rows=COUNT,
        loss=NUMBER,
        low=NUMBER,
        high=NUMBER,
        expected_loss=NUMBER,
        evidence=NUMBER,
        events=mapped(of_type(MonitoredEvent)),
    ),
    "alarm": record(
        time=TEXT,
        targets=listed(record(by=or_none(TEXT), label=or_none(TEXT), claim=TEXT)),
        reasons=TEXTS,
        kind=TEXT,
        located=TRUTH,
    ),
    "unchanged": record(kind=const("unchanged")),
    "log_linear": record(
        kind=TEXT,
        slopes=either(FINITE, listed(either(FINITE, listed(FINITE)))),
        offsets=listed(FINITE),
        floor=FINITE,
        power=Maybe(FINITE),
        spread=Maybe(FINITE),
    ),
    "isotonic": record(
        kind=TEXT, thresholds=TRUTH, forecasts=listed(NUMBERS), frequencies=listed(NUMBERS), spread=FINITE
    ),
    "blend": record(kind=TEXT, methods=TEXTS, parts=listed(of_type(CalibrationMap)), weights=listed(FINITE)),
    "monotone_curve": record(
        kind=TEXT,
        **dict.fromkeys(("knots", "slopes", "offsets"), listed(FINITE)),
        **dict.fromkeys(("level", "floor", "power", "spread"), FINITE),
    ),
    "list_scaling": record(kind=TEXT, slope=FINITE, shift=FINITE, floor=FINITE),
}
