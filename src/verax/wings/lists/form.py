"""Top lists as a form of rows: files with a list per record, and columns of lists."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from verax.common.paths import Files
from verax.inputs.handles import Handle
from verax.inputs.reading import Reading
from verax.scans.forms import Form
from verax.scans.options import ScanOptions

if TYPE_CHECKING:
    from verax.files.formats.tables import SourceTable
    from verax.scans.forms import TableReader


class _Lists(Form):
    """Top lists."""

    lists = True

    def holds(self, paths: Files, reading: Reading) -> bool:
        from verax.wings.lists.files.opening import holds_lists

        named = reading.probs or reading.sets or reading.raters or reading.rater_column
        return not named and holds_lists(paths, reading)

    def opened(self, source: object, options: ScanOptions) -> Handle | None:
        if options.reading.are_lists is False:
            return None
        from verax.wings.lists.handle.files import opened

        return opened(source, options)

    def reader(self, table: SourceTable, options: ScanOptions) -> TableReader | None:
        if not options.reading.are_lists:
            return None
        from verax.wings.lists.handle.columns import ListReader

        return ListReader.of(table, options)

    def questions(self, paths: Files, rows: Collection[int]) -> dict[int, str]:
        from verax.wings.lists.files.questions import questions_of

        return questions_of(paths, rows)


LISTS = _Lists()
