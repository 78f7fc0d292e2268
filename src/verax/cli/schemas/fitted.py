"""What `recalibrate`, `sets` and `monitor` print with --json: what is fitted, saved and goes on."""

from __future__ import annotations

from verax.analyses.monitoring.result import MonitoredEvent
from verax.analyses.recalibration.records import Gain, Trial
from verax.analyses.sets.result import CoverageLine
from verax.cli.schemas.building import (
    COUNT,
    FINITE,
    LABEL,
    NUMBER,
    NUMBERS,
    PATH,
    SHARE,
    TEXT,
    TEXTS,
    TRUTH,
    Maybe,
    Schema,
    const,
    either,
    listed,
    mapped,
    of_fields,
    or_none,
    output,
    record,
    ref,
)
from verax.cli.schemas.definitions import ANY_FILE, N_GROUPS, NOTED, TOLD


def recalibrate() -> Schema:
    """A recalibration and what it gains."""
    facts = {"interval": ref("interval"), "share_interval": ref("interval")}
    trial = of_fields(Trial, gain=of_fields(Gain, **facts))
    form = either(
        record(kind=const("unchanged")),
        record(
            kind=TEXT,
            slopes=either(FINITE, listed(either(FINITE, listed(FINITE)))),
            offsets=listed(FINITE),
            floor=FINITE,
        ),
        record(
            kind=TEXT, thresholds=TRUTH, forecasts=listed(NUMBERS), frequencies=listed(NUMBERS), spread=FINITE
        ),
        record(kind=TEXT, slope=FINITE, shift=FINITE, floor=FINITE),
    )
    found = record(
        format=const("verax recalibration"),
        version=COUNT,
        verax=TEXT,
        method=TEXT,
        asked=TEXT,
        rule=TEXT,
        classes=or_none(listed(LABEL)),
        ordered=TRUTH,
        frequencies=listed(FINITE),
        n_rows=COUNT,
        n_groups=N_GROUPS,
        folds=COUNT,
        seed=COUNT,
        confidence=SHARE,
        picks=TEXTS,
        notes=TEXTS,
        columns=TEXTS,
        trials=listed(trial),
        form=form,
        of_lists=Maybe(record(n_classes=COUNT, n_invalid=COUNT)),
        **NOTED,
    )
    return output(
        "recalibrate",
        file=PATH,
        taken=or_none(either(ref("columns"), ref("list_file"))),
        recalibration=found,
        **TOLD,
        applied=or_none(record(file=TEXT, out=TEXT, n_rows=COUNT)),
        save=PATH,
    )


def sets() -> Schema:
    """Prediction sets, judged or made."""
    measured = record(value=NUMBER, interval=ref("interval"))
    line = of_fields(CoverageLine, label=LABEL, interval=ref("interval"))
    maybe = or_none(measured)
    found = record(
        n_rows=COUNT,
        n_classes=COUNT,
        n_groups=or_none(COUNT),
        ordered=TRUTH,
        level=or_none(SHARE),
        claimed=or_none(FINITE),
        **dict.fromkeys(("coverage", "size", "empty", "single", "level_set"), measured),
        **dict.fromkeys(("excess", "winkler", "gapless", "miss_distance"), maybe),
        median_size=COUNT,
        threshold=SHARE,
        constant_size=or_none(COUNT),
        constant_score=or_none(FINITE),
        classes=TEXTS,
        confidence=SHARE,
        cautions=TEXTS,
        **TOLD,
        sizes=listed(record(size=COUNT, share=FINITE)),
        by_class=listed(line),
        by_size=listed(line),
        by=mapped(listed(line)),
        spans=listed(record(low=COUNT, high=COUNT, share=FINITE, outcomes=listed(FINITE))),
        **NOTED,
    )
    made = record(
        format=const("verax conformal"),
        version=COUNT,
        verax=TEXT,
        level=SHARE,
        score=record(name=TEXT, seed=COUNT),
        threshold=NUMBER,
        n_rows=COUNT,
        n_groups=or_none(COUNT),
        n_classes=COUNT,
        classes=or_none(listed(LABEL)),
        within=FINITE,
        notes=TEXTS,
        **TOLD,
        **NOTED,
    )
    own: dict[str, Schema | Maybe] = {"conformal": or_none(made), "sets": found}
    return output("sets", **ANY_FILE, **TOLD, **own, plot=PATH, html=PATH, save=PATH)


def monitor() -> Schema:
    """What a monitor has seen."""
    period = record(
        time=TEXT,
        n_rows=COUNT,
        loss=NUMBER,
        low=NUMBER,
        high=NUMBER,
        expected_loss=NUMBER,
        evidence=NUMBER,
        events=mapped(of_fields(MonitoredEvent)),
    )
    target = record(by=or_none(TEXT), label=or_none(TEXT), claim=TEXT)
    alarm = record(time=TEXT, targets=listed(target), reasons=TEXTS, kind=TEXT, located=TRUTH)
    return output(
        "monitor",
        files=TEXTS,
        outcomes=TEXTS,
        known=COUNT,
        known_rows=COUNT,
        state=TEXT,
        html=PATH,
        rule=TEXT,
        reference=NUMBER,
        tolerance=FINITE,
        alpha=SHARE,
        false_alarms=TEXT,
        unit=or_none(TEXT),
        n_rows=COUNT,
        evidence=NUMBER,
        threshold=FINITE,
        alarm=or_none(alarm),
        began=or_none(listed(TEXT, 3)),
        **TOLD,
        cautions=TEXTS,
        pending=COUNT,
        expected_loss=NUMBER,
        lateness=TEXT,
        periods=listed(period),
    )
