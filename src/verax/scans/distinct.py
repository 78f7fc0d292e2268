"""Rows with the id of another row, refused wherever rows are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verax.analyses.samples import Sketch
from verax.common.ids import id_hashes
from verax.errors import InputError, Remedy, passing, show
from verax.files.two_models import compare_them
from verax.inputs.arrays import Ints
from verax.inputs.handles import Part, Recipe, Summaries

_IDS = "ids of rows"

PlaceOf = Callable[[int], str]


@dataclass(frozen=True)
class IdRecipe(Recipe[Sketch], cases=True):
    """Look for ids shared by several rows; a sample of ids tells for many rows."""

    def take(self, part: Part) -> Sketch:
        """Summarise one part."""
        return self.more(part, None)

    def more(self, part: Part, earlier: Sketch | None) -> Sketch:
        """Summarise one part, without ids that cannot change the earlier summary."""
        return Sketch.of(id_hashes(part.ids), part.row_numbers, earlier)


def summarised(
    handle: Any,
    recipes: Mapping[str, Recipe[Any]],
    pass_over: Callable[[Mapping[str, Recipe[Any]]], Summaries],
) -> Summaries:
    """The summaries of a pass over the rows; the first pass refuses repeated ids."""
    if not handle.distinct:
        return pass_over(recipes)
    summaries = pass_over({**recipes, _IDS: IdRecipe()})
    if summaries.by_name:
        _refuse(summaries[_IDS], handle.ids, handle.place_of)
        handle.distinct = False
    return replace(
        summaries, by_name={name: summary for name, summary in summaries.by_name.items() if name != _IDS}
    )


def refuse_repeated_ids(ids: Any, numbers: Ints, columns: Sequence[str], place_of: PlaceOf) -> None:
    """Refuse repeated ids in memory; `numbers` are those of the rows."""
    if ids is not None and len(ids):
        _refuse(Sketch.of_all(id_hashes(ids), numbers), columns, place_of)


def _refuse(sketch: Sketch, columns: Sequence[str], place_of: PlaceOf) -> None:
    pairs = sketch.repeated(1)
    if not pairs:
        return
    (row, earlier), column = pairs[0], ",".join(columns)
    file, other = place_of(row), place_of(earlier)
    repeats, error = sketch.repeats()
    where = f"row {row} has the id of row {earlier}"
    if file != other:
        where = f"row {row}, {file}, has the id of row {earlier}, {other}"
    about = "" if repeats <= 1 else f"; {'about ' if error else ''}{repeats:,.0f} rows repeat an earlier id"
    raise InputError(
        "must be different in all rows",
        argument="id",
        kind="label",
        found=f"column {show(column)}: {where}{about}",
        rows=(earlier, row),
        count=round(repeats),
        remedies=[
            compare_them(column) if file != other else _stacked(),
            passing("(several columns, where they identify a row together)", id=...),
            passing("if rows with the same id are repeats that belong together", groups=column),
        ],
    )


def _stacked() -> Remedy:
    return Remedy("For models that are stacked in rows: `verax compare FILE --model-column COLUMN`.")
