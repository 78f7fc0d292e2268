"""What every command prints with --json, as JSON schemas. The tests hold every output to its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verax.analyses.comparison.records import Difference, Model
from verax.analyses.datasets.result import DatasetDifference, DatasetModel
from verax.analyses.operating.rates import RATES
from verax.analyses.operating.result import RateDifference
from verax.analyses.planning.result import SizeLine
from verax.cli.schemas.building import (
    COUNT,
    FINITE,
    INTERVAL,
    LABEL,
    NUMBER,
    NUMBERS,
    PATH,
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
    output,
    record,
    ref,
)
from verax.cli.schemas.definitions import ANY_FILE, COLUMN_FILE, DEFINITIONS, LIST_CARD, N_GROUPS, NOTED, TOLD
from verax.cli.schemas.fitted import monitor, recalibrate, sets
from verax.inference.repeated import Practical
from verax.inference.signedranks import Friedman
from verax.selection.choice import Best, Correlation, Stop

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_HELD: dict[str, Schema | Maybe] = {"require": listed(ref("bound")), "met": TRUTH}
_KEPT: dict[str, Schema | Maybe] = {"html": PATH, "save": PATH}
# Of very many rows nothing is claimed.
_MAYBE_TOLD = {**TOLD, "verdict": or_none(TEXT)}


def _evaluate() -> Schema:
    own: dict[str, Schema | Maybe] = {**_MAYBE_TOLD, "notes": TEXTS, **_HELD, **_KEPT}
    dense = output(
        "evaluate",
        **own,
        **COLUMN_FILE,
        card=ref("card"),
        calibration=or_none(ref("calibration")),
        subgroups=mapped(ref("subgroups")),
    )
    lists: dict[str, Schema | Maybe] = {"card": ref("list_card"), "lists": ref("list_file")}
    lists["calibration"] = or_none(ref("calibration"))
    lists["subgroups"] = Maybe(mapped(ref("subgroups")))
    return either(dense, output("evaluate", file=TEXT, **own, **lists))


def _evals_evaluate() -> Schema:
    return output(
        "evals evaluate",
        file=TEXT,
        **TOLD,
        taken=TEXTS,
        grades=ref("grade_card"),
        calibration=or_none(ref("calibration")),
        notes=TEXTS,
        **_HELD,
        **_KEPT,
    )


def _toplist() -> Schema:
    own = {name: field for name, field in LIST_CARD.items() if name not in ("verax", "lists")}
    by = Maybe(mapped(ref("subgroups")))
    more = {**_HELD, **_KEPT, "lists": ref("list_file"), "subgroups": by}
    more["calibration"] = or_none(ref("calibration"))
    return output("toplist", file=TEXT, notes=TEXTS, **{**own, **more, **_MAYBE_TOLD})


def _merge() -> Schema:
    card = either(ref("card"), ref("list_card"))
    own: dict[str, Schema | Maybe] = {"files": TEXTS, "notes": TEXTS, **_HELD, **_KEPT}
    grades = output("merge", **TOLD, grades=ref("grade_card"), **own)
    return either(output("merge", **_MAYBE_TOLD, card=card, **own), grades)


# What a comparison says of the files of several models, and of bounds.
_MATCHED: dict[str, Schema | Maybe] = {
    "files": mapped(TEXT),
    "matched": TEXT,
    "taken": mapped(either(ref("columns"), TEXTS)),
    **_HELD,
    "plot": PATH,
}
# What scores of models over folds or data sets have in common.
_SCORES: dict[str, Schema | Maybe] = {"confidence": SHARE, "rope": FINITE, "higher_is_better": TRUTH}
_SCORES["notes"] = TEXTS


def _compare() -> Schema:
    by: dict[str, Schema | Maybe] = {**TOLD, **_MATCHED, "left_out": _LEFT_OUT, "rule": TEXT}
    part = record(name=TEXT, value=NUMBER, interval=INTERVAL)
    score = record(
        metric=TEXT,
        value=NUMBER,
        interval=ref("interval"),
        average=TEXT,
        parts=listed(part),
        n_rows=COUNT,
        n_classes=COUNT,
        n_groups=N_GROUPS,
        notes=TEXTS,
        within=Maybe(NUMBER),
        **NOTED,
    )
    gaps = listed(of_fields(Difference))
    ranking = record(**TOLD, scores=mapped(score), differences=gaps, **NOTED)
    return either(
        _by_losses("compare"),
        output("compare", **by, ranking=ranking),
        output("compare", **by, rates=_points(of_fields(RateDifference, thresholds=listed(NUMBER, 2)))),
    )


def _evals_compare() -> Schema:
    return _by_losses("evals compare")


_LEFT_OUT = mapped(record(count=COUNT, ids=TEXTS))


def _by_losses(command: str) -> Schema:
    return output(
        command,
        **TOLD,
        **_MATCHED,
        left_out=_LEFT_OUT,
        comparison=ref("comparison"),
        subgroups=mapped(ref("subgroups")),
        html=PATH,
    )


def _folds() -> Schema:
    folds = record(
        **TOLD,
        **_SCORES,
        n_folds=COUNT,
        folds=listed(LABEL),
        repeats=COUNT,
        test_train=FINITE,
        models=mapped(listed(of_fields(Model, rank=PLACE))),
        differences=mapped(listed(of_fields(Difference))),
        practical=mapped(listed(of_fields(Practical))),
        values=mapped(mapped(NUMBERS)),
        rows=or_none(ref("comparison")),
        **NOTED,
    )
    return output("folds", **TOLD, **_MATCHED, folds=folds)


def _datasets() -> Schema:
    datasets = record(
        **TOLD,
        **_SCORES,
        score=TEXT,
        n_datasets=COUNT,
        datasets=listed(LABEL),
        left_out=listed(LABEL),
        tested=TRUTH,
        friedman=of_fields(Friedman),
        models=listed(of_fields(DatasetModel, rank=PLACE)),
        differences=listed(of_fields(DatasetDifference)),
        values=mapped(NUMBERS),
    )
    return output("datasets", **TOLD, **_MATCHED, datasets=datasets)


def _plan(command: str = "plan") -> Schema:
    line = of_fields(SizeLine)
    pilot = record(
        n_rows=COUNT,
        n_groups=or_none(COUNT),
        seen=NUMBER,
        deviation=NUMBER,
        correlation=NUMBER,
        caution=TEXT,
    )
    plan = record(
        what=TEXT,
        kind={"enum": ["difference", "margin", "width"]},
        margin=NUMBER,
        confidence=SHARE,
        pilot=pilot,
        **line["properties"],
        more_rows=NUMBER,
        rows_per_group=NUMBER,
        rows_until_decided=NUMBER,
        lines=listed(line),
        notes=TEXTS,
        **TOLD,
        **NOTED,
    )
    return output(command, **TOLD, files=mapped(TEXT), plan=plan, plot=PATH)


def _evals_plan() -> Schema:
    return _plan("evals plan")


def _decompose() -> Schema:
    return output(
        "decompose",
        **ANY_FILE,
        normalize=TRUTH,
        logits=TRUTH,
        decomposition=ref("decomposition"),
        calibration=or_none(ref("calibration")),
        plot=PATH,
    )


# What rates and decision curves say of rows.
_ABOUT: dict[str, Schema | Maybe] = {"n_rows": COUNT, "n_groups": N_GROUPS, "ordered": TRUTH}
_ABOUT["confidence"] = SHARE


def _points(difference: Schema) -> Schema:
    rate = record(value=NUMBER, interval=INTERVAL)
    point = record(
        model=TEXT,
        event=TEXT,
        threshold=NUMBER,
        **dict.fromkeys(RATES, rate),
        shares=record(tp=NUMBER, fp=NUMBER, fn=NUMBER, tn=NUMBER),
        per_fold=or_none(listed(FINITE)),
        note=TEXT,
    )
    return record(**_ABOUT, aim=TEXT, points=listed(point), differences=listed(difference), **NOTED)


def _decide() -> Schema:
    points = _points(record())
    curve = record(
        model=TEXT,
        event=TEXT,
        thresholds=NUMBERS,
        values=NUMBERS,
        interval=listed(NUMBERS, 2),
        band=listed(NUMBERS, 2),
        banded=or_none(listed(FINITE, 2)),
        treat_all=NUMBERS,
        prevalence=NUMBER,
        useful=listed(listed(FINITE, 2)),
    )
    curves = record(
        **_ABOUT,
        standardized=TRUTH,
        curves=listed(curve),
        differences=listed(record()),
        sentences=TEXTS,
        **NOTED,
    )
    line = record(
        **dict.fromkeys(("defer", "share", "cost", "cost_of_deciding", "cost_of_decided", "saved"), NUMBER),
        deferred=COUNT,
        cost_interval=ref("interval"),
        saved_interval=ref("interval"),
    )
    deferral = record(n_rows=COUNT, confidence=SHARE, lines=listed(line), **NOTED)
    return output(
        "decide",
        **COLUMN_FILE,
        points=points,
        curves=curves,
        deferral=deferral,
        plot=PATH,
    )


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


def _rated_case() -> Schema:
    own: dict[str, Schema | Maybe] = {**_CASE, "outcome": listed(_ENTRY)}
    return record(**own, forecast=listed(FINITE), disagreement=NUMBER, excess=NUMBER)


def _worst() -> Schema:
    lists = record(
        **_CASE,
        forecast=listed(_ENTRY),
        place=or_none(COUNT),
        unaccounted=NUMBER,
        n_unlisted=COUNT,
        valid=TRUTH,
    )
    return output(
        "worst",
        **ANY_FILE,
        rule=TEXT,
        n_rows=COUNT,
        cases=listed(either(record(**_CASE, forecast=listed(FINITE)), _rated_case(), lists)),
        questions=Maybe(mapped(TEXT)),
        **NOTED,
    )


def _evals_worst() -> Schema:
    answer = record(
        row=COUNT, id=or_none(TEXT), grade=FINITE, confidence=or_none(FINITE), about=mapped(or_none(TEXT))
    )
    return output("evals worst", file=TEXT, taken=TEXTS, rule=TEXT, n_rows=COUNT, answers=listed(answer))


def _retain() -> Schema:
    return output("retain", **ANY_FILE, curves=listed(ref("curve")), plot=PATH)


def _raters() -> Schema:
    mean = record(name=TEXT, value=NUMBER, interval=ref("interval"))
    means = dict.fromkeys(("against", "own", "forecast", "gain"), mean)
    rater = record(name=TEXT, n_rows=COUNT, **means, p_value=NUMBER, p_adjusted=NUMBER)
    found = record(
        rule=TEXT,
        n_rows=COUNT,
        n_rated=COUNT,
        n_groups=N_GROUPS,
        mean_raters=or_none(FINITE),
        **dict.fromkeys(("loss", "disagreement", "excess", "worth"), mean),
        unbiased=TRUTH,
        raters=listed(rater),
        cases=listed(_rated_case()),
        confidence=SHARE,
        general=or_none(mean),
        **TOLD,
        **NOTED,
    )
    return output(
        "raters",
        **COLUMN_FILE,
        **TOLD,
        raters=found,
        plot=PATH,
    )


def _select() -> Schema:
    best = of_fields(Best, without=("metric",), epoch=FINITE, value=FINITE)
    return output(
        "select",
        **TOLD,
        file=TEXT,
        n_epochs=COUNT,
        counter={"enum": ["epoch", "step"]},
        rules=TEXTS,
        against=TEXTS,
        best=mapped(best),
        correlations=listed(of_fields(Correlation)),
        stops=mapped(
            of_fields(Stop, without=("metric",), epoch=FINITE, value=NUMBER, stopped_after=or_none(FINITE))
        ),
        notes=TEXTS,
    )


def _certify() -> Schema:
    rows = listed(TEXTS)
    example = record(forecasts=rows, truth=or_none(TEXTS), outcomes=listed(COUNT), losses=TEXTS, text=TEXT)
    resolution = mapped(FINITE)
    certificate = record(
        rule=TEXT,
        n_classes=COUNT,
        findings=mapped(record(holds=TRUTH, checked=COUNT, counterexample=or_none(example))),
        notes=TEXTS,
        resolution=or_none(resolution),
    )
    return output("certify", certificates=listed(certificate))


def _reproduce() -> Schema:
    number = record(
        paper=Maybe(TEXT),
        where=TEXT,
        what=TEXT,
        printed=either(NUMBER, TEXT),
        computed=or_none(NUMBER),
        agrees=or_none(TRUTH),
        status=TEXT,
        erratum=TEXT,
        section=TEXT,
    )
    grid = record(data=TEXT, all_rows=NUMBER, by_table=listed(NUMBER))
    share = record(
        section=TEXT,
        sampler=TEXT,
        n_classes=or_none(COUNT),
        comparisons=COUNT,
        share=NUMBER,
        exact=NUMBER,
        interval=ref("interval"),
        as_printed=or_none(TRUTH),
    )
    simulations = record(rounds=COUNT, seed=COUNT, shares=listed(share), conclusion=TEXT, plot=PATH)
    return output(
        "reproduce",
        paper=or_none(TEXT),
        findings=listed(number),
        counts=Maybe(mapped(COUNT)),
        grid=Maybe(listed(grid)),
        simulations=Maybe(simulations),
        aursc=Maybe(listed(ref("curve"))),
    )


def _demo() -> Schema:
    problem = record(problem=TEXT, question=TEXT, verdict=TEXT, predictions=TEXTS, report=PATH)
    return output("demo", problems=listed(problem), files=listed(TEXT))


def _init() -> Schema:
    column = record(column=TEXT, role=TEXT, why=TEXT)
    first = record(outcome=TEXT, probabilities=listed(NUMBER))
    shown = output(
        "init",
        file=TEXT,
        reading={"type": "object"},
        columns=listed(column),
        taken=TEXTS,
        classes=or_none(TEXTS),
        n_rows=COUNT,
        first=listed(first),
        notes=TEXTS,
        doubts=TEXTS,
        decided=TEXTS,
        toml=TEXT,
        written=PATH,
    )
    checked = output("init", file=TEXT, holds=TRUTH, changed=TEXTS, n_rows=or_none(COUNT))
    return {"anyOf": [shown, checked]}


def _help() -> Schema:
    return output("help", topic=TEXT, text=TEXT)


_OUTPUTS: dict[str, Callable[[], Schema]] = {
    "demo": _demo,
    "init": _init,
    "evaluate": _evaluate,
    "merge": _merge,
    "compare": _compare,
    "folds": _folds,
    "datasets": _datasets,
    "evals evaluate": _evals_evaluate,
    "evals compare": _evals_compare,
    "evals plan": _evals_plan,
    "evals worst": _evals_worst,
    "plan": _plan,
    "decompose": _decompose,
    "decide": _decide,
    "worst": _worst,
    "retain": _retain,
    "recalibrate": recalibrate,
    "sets": sets,
    "raters": _raters,
    "monitor": monitor,
    "select": _select,
    "toplist": _toplist,
    "certify": _certify,
    "reproduce": _reproduce,
    "help": _help,
}
COMMANDS = tuple(_OUTPUTS)


def schema_of(command: str) -> Schema:
    """The schema of what a command prints with --json.

    >>> schema_of("demo")["title"]
    'verax demo --json'
    """
    own = _OUTPUTS[command]()
    needed: dict[str, Schema] = {}
    _gather(own, needed)
    return {
        "$schema": DRAFT,
        "$id": f"urn:verax:schema:{command.replace(' ', ':')}",
        "title": f"verax {command} --json",
        "description": 'Infinite numbers are the texts "inf" and "-inf"; undefined ones are null.',
        **own,
        "$defs": needed,
    }


def _gather(schema: Any, needed: dict[str, Schema]) -> None:
    """Add the definitions that a schema refers to, and those that they refer to."""
    if isinstance(schema, list):
        for inner in schema:
            _gather(inner, needed)
    if not isinstance(schema, dict):
        return
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and name not in needed:
        needed[name] = DEFINITIONS[name]
        _gather(DEFINITIONS[name], needed)
    for inner in schema.values():
        _gather(inner, needed)
