"""What `worst`, `retain` and `compare` do with files of lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verax.analyses.retention.analysis import curves_of
from verax.analyses.retention.curves import as_list_metrics
from verax.analyses.retention.cuts import Options
from verax.analyses.retention.result import RetentionCurves
from verax.analyses.retention.uncertainty_scores import UncertaintyScore
from verax.analyses.worst import Worst, find
from verax.common.paths import Files
from verax.inputs.handles import Handle
from verax.inputs.memory import open_rows
from verax.scores.base import Rule

if TYPE_CHECKING:
    from verax.analyses.subgroups.result import Subgroups
    from verax.cli.options import Reading
    from verax.files.lists import ListFile
    from verax.files.lists.together import ListsTogether

CALLED_BY_NUMBER = (
    "Rows are called by their numbers in the file, from 0; --id names a field that identifies them."
)


def worst_lists(read: ListFile | Handle, rules: Sequence[Rule], n: int, *, ordered: bool) -> Worst:
    """The worst rows of files of lists, by their ids or by their numbers."""
    if isinstance(read, Handle):
        return find(read.in_order() if ordered else read, rules, n)
    found = find(open_rows(read.y, read.lists, ordered=ordered, ids=read.ids), rules, n)
    return found.with_skipped(read.skipped, read.places)


def curves_of_lists(
    read: ListFile | Handle,
    keys: Sequence[Rule | UncertaintyScore],
    metric: list[str] | None,
    cuts: Options,
    *,
    ordered: bool,
) -> RetentionCurves:
    """Curves of the lists of files."""
    in_order = ordered or any(key.ordinal for key in keys)
    metrics = as_list_metrics(metric or ["accuracy"])
    if isinstance(read, Handle):
        return curves_of(read.in_order() if in_order else read, keys, metrics, cuts)
    rows = open_rows(read.y, read.lists, weights=read.weights, groups=read.groups, ordered=in_order)
    return curves_of(rows, keys, metrics, cuts).with_skipped(read.skipped)


def read_lists_together(
    paths: Mapping[str, Files], reading: Reading, *, shared_ids: bool
) -> tuple[ListsTogether, dict[str, list[str]]] | None:
    """The files of several models, and what was taken, where at least one holds lists; None otherwise."""
    from verax.files.lists.together import match_lists

    holds = {name: reading.named_probs is None and reading.holds_lists(path) for name, path in paths.items()}
    if not any(holds.values()):
        return None
    files: dict[str, Any] = {}
    for name, path in paths.items():
        files[name] = reading.open_lists(path) if holds[name] else reading.open(path, ordered=False).read()
    taken = {
        name: [*part.taken, *(f"note: {note}" for note in getattr(part, "notes", ()))]
        for name, part in files.items()
    }
    return match_lists(files, shared_ids=shared_ids), taken


def save_list_report(
    path: Path,
    y: Any,
    models: Mapping[str, Any],
    parts: Mapping[str, Subgroups] | None = None,
    **settings: Any,
) -> None:
    """Write the report on lists, also beside full distributions, with their subgroups."""
    from verax.report import Report

    Report.of(y, dict(models), **settings).with_subgroups(parts or {}).save(path)
