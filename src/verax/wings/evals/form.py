"""Graded answers as a form of rows: logs and tables for commands, columns of grades for functions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verax.common.paths import Files
from verax.errors import InputError
from verax.files.formats.records import RecordStream
from verax.inputs.reading import Reading
from verax.scans.forms import Form, Settled, form_of_lists
from verax.scans.options import ScanOptions

if TYPE_CHECKING:
    from verax.files.formats.tables import SourceTable
    from verax.scans.forms import TableReader


class _Graded(Form):
    """Graded answers."""

    command = "evals"
    says = "These are graded answers"

    def holds(self, paths: Files, reading: Reading) -> bool:
        if reading.grades or reading.gold:
            return True
        if reading.probs or reading.target or reading.raters or reading.rater_column or reading.shape:
            return False
        from verax.wings.evals.reading.files import holds_grades, is_log

        kind = is_log(paths)
        if kind is None:
            return holds_grades(paths, reading)
        # Logs of choices with their likelihoods are lists; `verax evals` reads their grades.
        return (kind == "inspect" and reading.classes is None) or not _are_lists(paths, reading)

    def reader(self, table: SourceTable, options: ScanOptions) -> TableReader | None:
        if options.reading.grades is None:
            return None
        from verax.wings.evals.handle import GradeReader

        return GradeReader.of(table, options)

    def endings(self) -> tuple[str, ...]:
        from verax.wings.evals.reading.inspect_files import EVAL

        return (EVAL,)

    def records(self, path: Path) -> RecordStream | None:
        from verax.wings.evals.reading.inspect_files import samples_of

        samples = samples_of(path)
        return None if samples is None else RecordStream(str(path), "sample", enumerate(samples))

    def settled(self, paths: Files, reading: Reading, *, named: bool) -> Settled:
        from verax.wings.evals.reading.models import read_one

        answers = read_one(paths, reading, named=named)
        if not answers.origin:
            columns = answers.columns
            reading = replace(reading, grades=columns.grade, confidence_column=columns.confidence)
        return Settled(len(answers), answers.taken, reading)


def _are_lists(paths: Files, reading: Reading) -> bool:
    try:
        return form_of_lists(paths, reading) is not None
    except InputError:
        return False


GRADED = _Graded()
