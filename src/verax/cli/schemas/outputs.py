"""What every command prints with --json, as JSON schemas. The tests hold every output to its schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.summary import CalibrationSummary
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.result import Comparison
from verax.analyses.datasets.result import DatasetComparison
from verax.analyses.decisions.deferral import Deferral
from verax.analyses.decisions.net_benefit import DecisionCurves
from verax.analyses.discrimination.result import RankScores
from verax.analyses.folds.result import FoldComparison
from verax.analyses.grades.result import GradeCard
from verax.analyses.monitoring.result import Alarm, MonitoredStep
from verax.analyses.operating.result import OperatingPoints
from verax.analyses.planning.result import SamplePlan
from verax.analyses.raters.result import RaterStudy
from verax.analyses.recalibration.result import Recalibration
from verax.analyses.retention.result import RetentionCurve
from verax.analyses.sets.conformal import Conformal
from verax.analyses.sets.result import SetEvaluation
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import Worst
from verax.cli.schemas.building import (
    CLASSES,
    COUNT,
    FINITE,
    NUMBER,
    PATH,
    SHARE,
    TEXT,
    TEXTS,
    TOLD,
    TRUTH,
    Maybe,
    Schema,
    either,
    exactly,
    face,
    listed,
    mapped,
    of_type,
    or_none,
    output,
    record,
    ref,
)
from verax.cli.schemas.definitions import ANY_FILE, COLUMN_FILE, DEFINITIONS
from verax.scores.certificates.certify import Certificate
from verax.selection.choice import Selection

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_HELD: dict[str, Schema | Maybe] = {"require": listed(ref("bound")), "met": TRUTH}
_KEPT: dict[str, Schema | Maybe] = {"html": PATH, "save": PATH}
# Of very many rows nothing is claimed.
_MAYBE_TOLD = {**TOLD, "verdict": or_none(TEXT)}


def _evaluate() -> Schema:
    shared: dict[str, Schema | Maybe] = {**_MAYBE_TOLD, "notes": TEXTS, **_HELD, **_KEPT}
    dense = output(
        "evaluate",
        **shared,
        **COLUMN_FILE,
        card=exactly(Scorecard),
        calibration=or_none(of_type(CalibrationSummary)),
        subgroups=mapped(of_type(Subgroups)),
    )
    lists: dict[str, Schema | Maybe] = {"card": exactly(ListCard), "lists": ref("list_file")}
    lists["calibration"] = or_none(of_type(CalibrationSummary))
    lists["subgroups"] = Maybe(mapped(of_type(Subgroups)))
    costs = record(
        n_rows=or_none(COUNT),
        exact=TRUTH,
        passes=COUNT,
        kept=TRUTH,
        sampled=COUNT,
        seconds=NUMBER,
        per_million=NUMBER,
        megabytes=NUMBER,
    )
    # With --dry-run.
    costs_alone = output("evaluate", file=TEXT, dry_run=costs)
    return either(dense, output("evaluate", file=TEXT, **shared, **lists), costs_alone)


def _evals_evaluate() -> Schema:
    return output(
        "evals evaluate",
        file=TEXT,
        **TOLD,
        taken=TEXTS,
        grades=of_type(GradeCard),
        calibration=or_none(of_type(CalibrationSummary)),
        notes=TEXTS,
        **_HELD,
        **_KEPT,
    )


def _toplist() -> Schema:
    of_card = {name: field for name, field in face(ListCard).items() if name not in ("verax", "lists")}
    by = Maybe(mapped(of_type(Subgroups)))
    more = {**_HELD, **_KEPT, "lists": ref("list_file"), "subgroups": by}
    more["calibration"] = or_none(of_type(CalibrationSummary))
    return output("toplist", file=TEXT, notes=TEXTS, **{**of_card, **more, **_MAYBE_TOLD})


def _merge() -> Schema:
    card = of_type(Scorecard)
    shared: dict[str, Schema | Maybe] = {"files": TEXTS, "notes": TEXTS, **_HELD, **_KEPT}
    grades = output("merge", **TOLD, grades=of_type(GradeCard), **shared)
    return either(output("merge", **_MAYBE_TOLD, card=card, **shared), grades)


# What a comparison says of the files of several models, and of bounds.
_MATCHED: dict[str, Schema | Maybe] = {
    "files": mapped(TEXT),
    "matched": TEXT,
    "taken": mapped(either(ref("columns"), TEXTS)),
    **_HELD,
    "plot": PATH,
}


def _compare() -> Schema:
    by: dict[str, Schema | Maybe] = {**TOLD, **_MATCHED, "left_out": _LEFT_OUT, "rule": TEXT}
    return either(
        _by_losses("compare"),
        output("compare", **by, ranking=of_type(RankScores)),
        output("compare", **by, rates=of_type(OperatingPoints)),
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
        comparison=of_type(Comparison),
        subgroups=mapped(of_type(Subgroups)),
        html=PATH,
    )


def _folds() -> Schema:
    return output("folds", **TOLD, **_MATCHED, folds=of_type(FoldComparison))


def _datasets() -> Schema:
    return output("datasets", **TOLD, **_MATCHED, datasets=of_type(DatasetComparison))


def _plan(command: str = "plan") -> Schema:
    return output(command, **TOLD, files=mapped(TEXT), plan=of_type(SamplePlan), plot=PATH)


def _evals_plan() -> Schema:
    return _plan("evals plan")


def _decompose() -> Schema:
    return output(
        "decompose",
        **ANY_FILE,
        normalize=TRUTH,
        logits=TRUTH,
        decomposition=of_type(Decomposition),
        calibration=or_none(of_type(CalibrationSummary)),
        plot=PATH,
    )


def _decide() -> Schema:
    return output(
        "decide",
        **COLUMN_FILE,
        points=of_type(OperatingPoints),
        curves=of_type(DecisionCurves),
        deferral=of_type(Deferral),
        plot=PATH,
    )


def _worst() -> Schema:
    return output("worst", **ANY_FILE, **face(Worst), questions=Maybe(mapped(TEXT)))


def _evals_worst() -> Schema:
    answer = record(
        row=COUNT, id=or_none(TEXT), grade=FINITE, confidence=or_none(FINITE), about=mapped(or_none(TEXT))
    )
    return output("evals worst", file=TEXT, taken=TEXTS, rule=TEXT, n_rows=COUNT, answers=listed(answer))


def _retain() -> Schema:
    return output("retain", **ANY_FILE, curves=listed(of_type(RetentionCurve)), plot=PATH)


def _raters() -> Schema:
    return output("raters", **COLUMN_FILE, **TOLD, raters=of_type(RaterStudy), plot=PATH)


def _recalibrate() -> Schema:
    return output(
        "recalibrate",
        file=PATH,
        taken=or_none(either(ref("columns"), ref("list_file"))),
        recalibration=of_type(Recalibration),
        **TOLD,
        applied=or_none(record(file=TEXT, out=TEXT, n_rows=COUNT)),
        save=PATH,
    )


def _sets() -> Schema:
    return output(
        "sets",
        **ANY_FILE,
        **TOLD,
        conformal=or_none(of_type(Conformal)),
        sets=of_type(SetEvaluation),
        plot=PATH,
        html=PATH,
        save=PATH,
    )


def _monitor() -> Schema:
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
        alarm=or_none(of_type(Alarm)),
        began=or_none(listed(TEXT, 3)),
        **TOLD,
        cautions=TEXTS,
        pending=COUNT,
        expected_loss=NUMBER,
        lateness=TEXT,
        periods=listed(of_type(MonitoredStep)),
    )


def _select() -> Schema:
    return output("select", file=TEXT, **face(Selection))


def _certify() -> Schema:
    return output("certify", certificates=listed(of_type(Certificate)))


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
        aursc=Maybe(listed(of_type(RetentionCurve))),
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
    "recalibrate": _recalibrate,
    "sets": _sets,
    "raters": _raters,
    "monitor": _monitor,
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
    schema = _OUTPUTS[command]()
    needed: dict[str, Schema] = {}
    _gather(schema, needed)
    return {
        "$schema": DRAFT,
        "$id": f"urn:verax:schema:{command.replace(' ', ':')}",
        "title": f"verax {command} --json",
        "description": 'Infinite numbers are the texts "inf" and "-inf"; undefined ones are null.',
        **schema,
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
        needed[name] = DEFINITIONS.get(name) or record(**face(CLASSES[name]))
        _gather(needed[name], needed)
    for inner in schema.values():
        _gather(inner, needed)
