"""Fields that the outputs of several commands share."""

from __future__ import annotations

from verax.analyses.calibration.summary import CalibrationSummary
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.result import Subgroups
from verax.cli.schemas.building import (
    COUNT,
    PATH,
    TEXT,
    TEXTS,
    TOLD,
    TRUTH,
    Fields,
    Maybe,
    either,
    exactly,
    listed,
    mapped,
    of_type,
    or_none,
    record,
    ref,
)

# The file: one of full distributions, or one that may have top lists.
COLUMN_FILE: Fields = {"file": TEXT, "taken": ref("columns"), "normalize": TRUTH, "logits": TRUTH}
ANY_FILE: Fields = {"file": TEXT, "taken": either(ref("columns"), ref("list_file"))}
HELD: Fields = {"require": listed(ref("bound")), "met": TRUTH}
KEPT: Fields = {"html": PATH, "save": PATH}
CALIBRATION = or_none(of_type(CalibrationSummary))
SUBGROUPS = mapped(of_type(Subgroups))
# Cards of both kinds, wherever results have one: those that a class may be are the ones that are imported.
ANY_CARD = either(exactly(Scorecard), exactly(ListCard))
# Of very many rows nothing is claimed.
MAYBE_TOLD: Fields = {**TOLD, "verdict": or_none(TEXT)}
CARD: Fields = {**MAYBE_TOLD, "file": TEXT, "notes": TEXTS, **HELD, **KEPT}
LIST_CARD: Fields = {"calibration": CALIBRATION, "lists": ref("list_file"), "subgroups": Maybe(SUBGROUPS)}
MERGED: Fields = {"files": TEXTS, "notes": TEXTS, **HELD, **KEPT}
# The files of several models in a comparison, and bounds.
MATCHED: Fields = {
    **TOLD,
    "files": mapped(TEXT),
    "matched": TEXT,
    "taken": mapped(either(ref("columns"), TEXTS)),
    **HELD,
    "plot": PATH,
}
LEFT_OUT: Fields = {"left_out": mapped(record(count=COUNT, ids=TEXTS))}
BY_LOSSES: Fields = {
    **MATCHED,
    **LEFT_OUT,
    "comparison": of_type(Comparison),
    "subgroups": SUBGROUPS,
    "html": PATH,
}
BY_SCORES: Fields = {**MATCHED, **LEFT_OUT, "rule": TEXT}
