"""JSON schemas of what commands print with --json. The tests hold every output to its schema."""

from __future__ import annotations

from typing import Any

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.summary import CalibrationSummary
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.result import Comparison
from verax.analyses.discrimination.result import RankScores
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import Worst
from verax.cli.schemas.building import (
    CLASSES,
    COUNT,
    FINITE,
    NUMBER,
    NUMBERS,
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
from verax.wings.decide.deferral import Deferral
from verax.wings.decide.net_benefit import DecisionCurves
from verax.wings.decide.rates.result import OperatingPoints
from verax.wings.evals.result import GradeCard
from verax.wings.monitor.result import Alarm, MonitoredStep
from verax.wings.plan.result import SamplePlan
from verax.wings.raters.result import RaterStudy
from verax.wings.recalibrate.result import Recalibration
from verax.wings.retain.result import RetentionCurve
from verax.wings.select.choice import Selection
from verax.wings.select.datasets.result import DatasetComparison
from verax.wings.select.folds.result import FoldComparison
from verax.wings.sets.conformal import Conformal
from verax.wings.sets.result import SetEvaluation
from verax.wings.theory.certificates.certify import Certificate

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Fields = dict[str, Schema | Maybe]

_HELD: Fields = {"require": listed(ref("bound")), "met": TRUTH}
_KEPT: Fields = {"html": PATH, "save": PATH}
# Of very many rows nothing is claimed.
_MAYBE_TOLD: Fields = {**TOLD, "verdict": or_none(TEXT)}
_CARD: Fields = {**_MAYBE_TOLD, "file": TEXT, "notes": TEXTS, **_HELD, **_KEPT}
_CALIBRATION = or_none(of_type(CalibrationSummary))
_SUBGROUPS = mapped(of_type(Subgroups))
_LIST_CARD: Fields = {"calibration": _CALIBRATION, "lists": ref("list_file"), "subgroups": Maybe(_SUBGROUPS)}
_DRY_RUN = record(
    n_rows=or_none(COUNT),
    exact=TRUTH,
    passes=COUNT,
    kept=TRUTH,
    sampled=COUNT,
    seconds=NUMBER,
    per_million=NUMBER,
    megabytes=NUMBER,
)
_MERGED: Fields = {"files": TEXTS, "notes": TEXTS, **_HELD, **_KEPT}
# The files of several models in a comparison, and bounds.
_MATCHED: Fields = {
    **TOLD,
    "files": mapped(TEXT),
    "matched": TEXT,
    "taken": mapped(either(ref("columns"), TEXTS)),
    **_HELD,
    "plot": PATH,
}
_LEFT_OUT: Fields = {"left_out": mapped(record(count=COUNT, ids=TEXTS))}
_BY_LOSSES: Fields = {
    **_MATCHED,
    **_LEFT_OUT,
    "comparison": of_type(Comparison),
    "subgroups": _SUBGROUPS,
    "html": PATH,
}
_BY_SCORES: Fields = {**_MATCHED, **_LEFT_OUT, "rule": TEXT}
_PLAN: Fields = {**TOLD, "files": mapped(TEXT), "plan": of_type(SamplePlan), "plot": PATH}
_GRADED_ANSWER = record(
    row=COUNT, id=or_none(TEXT), grade=FINITE, confidence=or_none(FINITE), about=mapped(or_none(TEXT))
)
_PUBLISHED = record(
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
_DRAWN_SHARE = record(
    section=TEXT,
    sampler=TEXT,
    n_classes=or_none(COUNT),
    comparisons=COUNT,
    share=NUMBER,
    exact=NUMBER,
    interval=ref("interval"),
    as_printed=or_none(TRUTH),
)
# The fields of what each command prints; several where it prints one kind of output or another.
_OUTPUTS: dict[str, Fields | list[Fields]] = {
    "demo": {
        "problems": listed(record(problem=TEXT, question=TEXT, verdict=TEXT, predictions=TEXTS, report=PATH)),
        "files": TEXTS,
    },
    "init": [
        {
            "file": TEXT,
            "reading": {"type": "object"},
            "columns": listed(record(column=TEXT, role=TEXT, why=TEXT)),
            "taken": TEXTS,
            "classes": or_none(TEXTS),
            "n_rows": COUNT,
            "first": listed(record(outcome=TEXT, probabilities=listed(NUMBER))),
            "notes": TEXTS,
            "doubts": TEXTS,
            "decided": TEXTS,
            "toml": TEXT,
            "written": PATH,
        },
        {"file": TEXT, "holds": TRUTH, "changed": TEXTS, "n_rows": or_none(COUNT)},
    ],
    "evaluate": [
        {
            **_CARD,
            **COLUMN_FILE,
            "card": exactly(Scorecard),
            "calibration": _CALIBRATION,
            "subgroups": _SUBGROUPS,
        },
        {**_CARD, "card": exactly(ListCard), **_LIST_CARD},
        {"file": TEXT, "dry_run": _DRY_RUN},
    ],
    "merge": [
        {**_MERGED, **_MAYBE_TOLD, "card": of_type(Scorecard)},
        {**_MERGED, **TOLD, "grades": of_type(GradeCard)},
    ],
    "compare": [
        _BY_LOSSES,
        {**_BY_SCORES, "ranking": of_type(RankScores)},
        {**_BY_SCORES, "rates": of_type(OperatingPoints)},
    ],
    "folds": {**_MATCHED, "folds": of_type(FoldComparison)},
    "datasets": {**_MATCHED, "datasets": of_type(DatasetComparison)},
    "evals evaluate": {
        **TOLD,
        "file": TEXT,
        "taken": TEXTS,
        "grades": of_type(GradeCard),
        "calibration": _CALIBRATION,
        "notes": TEXTS,
        **_HELD,
        **_KEPT,
    },
    "evals compare": _BY_LOSSES,
    "evals plan": _PLAN,
    "evals worst": {
        "file": TEXT,
        "taken": TEXTS,
        "rule": TEXT,
        "n_rows": COUNT,
        "answers": listed(_GRADED_ANSWER),
    },
    "plan": _PLAN,
    "decompose": {
        **ANY_FILE,
        "normalize": TRUTH,
        "logits": TRUTH,
        "decomposition": of_type(Decomposition),
        "calibration": _CALIBRATION,
        "plot": PATH,
    },
    "decide": {
        **COLUMN_FILE,
        "points": of_type(OperatingPoints),
        "curves": of_type(DecisionCurves),
        "deferral": of_type(Deferral),
        "plot": PATH,
    },
    "worst": {**ANY_FILE, **face(Worst), "questions": Maybe(mapped(TEXT))},
    "retain": {**ANY_FILE, "curves": listed(of_type(RetentionCurve)), "plot": PATH},
    "recalibrate": {
        **TOLD,
        "file": PATH,
        "taken": or_none(either(ref("columns"), ref("list_file"))),
        "recalibration": of_type(Recalibration),
        "applied": or_none(record(file=TEXT, out=TEXT, n_rows=COUNT)),
        "save": PATH,
    },
    "sets": {
        **TOLD,
        **ANY_FILE,
        "conformal": or_none(of_type(Conformal)),
        "sets": of_type(SetEvaluation),
        "plot": PATH,
        **_KEPT,
    },
    "raters": {**TOLD, **COLUMN_FILE, "raters": of_type(RaterStudy), "plot": PATH},
    "monitor": {
        **TOLD,
        "files": TEXTS,
        "outcomes": TEXTS,
        "known": COUNT,
        "known_rows": COUNT,
        "state": TEXT,
        "html": PATH,
        "rule": TEXT,
        "reference": NUMBER,
        "tolerance": FINITE,
        "alpha": SHARE,
        "false_alarms": TEXT,
        "unit": or_none(TEXT),
        "n_rows": COUNT,
        "evidence": NUMBER,
        "threshold": FINITE,
        "alarm": or_none(of_type(Alarm)),
        "began": or_none(listed(TEXT, 3)),
        "cautions": TEXTS,
        "pending": COUNT,
        "expected_loss": NUMBER,
        "lateness": TEXT,
        "periods": listed(of_type(MonitoredStep)),
    },
    "select": {"file": TEXT, **face(Selection)},
    "toplist": {
        **{name: field for name, field in face(ListCard).items() if name != "verax"},
        **_CARD,
        **_LIST_CARD,
    },
    "certify": {"certificates": listed(of_type(Certificate))},
    "reproduce": {
        "paper": or_none(TEXT),
        "findings": listed(_PUBLISHED),
        "counts": Maybe(mapped(COUNT)),
        "grid": Maybe(listed(record(data=TEXT, all_rows=NUMBER, by_table=NUMBERS))),
        "simulations": Maybe(
            record(rounds=COUNT, seed=COUNT, shares=listed(_DRAWN_SHARE), conclusion=TEXT, plot=PATH)
        ),
        "aursc": Maybe(listed(of_type(RetentionCurve))),
    },
    "help": {"topic": TEXT, "text": TEXT},
}
COMMANDS = tuple(_OUTPUTS)


def schema_of(command: str) -> Schema:
    """The schema of what a command prints with --json.

    >>> schema_of("demo")["title"]
    'verax demo --json'
    """
    fields = _OUTPUTS[command]
    kinds = [output(command, **kind) for kind in (fields if isinstance(fields, list) else [fields])]
    schema = kinds[0] if len(kinds) == 1 else either(*kinds)
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
