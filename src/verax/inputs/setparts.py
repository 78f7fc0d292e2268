"""Parts of rows as parts of prediction sets, wherever the rows are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from verax.errors import InputError, Remedy
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Mergeable, Part, Recipe, Summaries
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows
from verax.inputs.sets.members import Members
from verax.inputs.sets.rows import SetRows


def set_rows(rows: Rows, made: Members | None, *, ordered: bool = False) -> SetRows:
    """Rows as sets: what they are already, what lists name, or what probabilities state by `made`."""
    if isinstance(rows, SetRows):
        return rows
    if isinstance(rows, ListRows):
        return SetRows.of_lists(rows)
    assert isinstance(rows, Forecasts)
    assert made is not None
    rows.check()
    return SetRows.of_probabilities(rows, made, ends=ordered)


def set_part(part: Part, made: Members | None, *, ordered: bool = False) -> Part:
    """The same rows with their sets in place of other forecasts, made once for all recipes.

    Cases of several raters are read as their classes, which belong together.
    """

    def read() -> Part:
        own = part.in_pairs
        models = {name: set_rows(rows, made, ordered=ordered) for name, rows in own.models.items()}
        return Part.held(models, None, own.by, None, start=own.start, whole=own.whole)

    return part.once(("sets", made, ordered), read)


@dataclass(frozen=True)
class OfSets(Recipe[Any]):
    """A recipe for sets, of parts whose probabilities become sets first."""

    recipe: Recipe[Any]
    made: Members
    ordered: bool

    def take(self, part: Part) -> Mergeable:
        """Of some rows."""
        found: Mergeable = self.recipe.take(set_part(part, self.made, ordered=self.ordered))
        return found

    def load(self, stored: bytes, sizes: Mapping[str, int] | None = None) -> Any:
        """A summary from its bytes."""
        return self.recipe.load(stored, sizes)


class SetHandle(Handle):
    """Predictions behind a handle as prediction sets: each part becomes sets where it is read.

    Parameters
    ----------
    handle : Handle
        The predictions.
    made : Members
        How probabilities become sets.
    ordered : bool
        Whether the classes have an order.
    """

    sets: bool = True

    def __init__(self, handle: Handle, made: Members, *, ordered: bool = False) -> None:
        self._handle, self._made, self._ordered = handle, made, ordered
        self.name: str = handle.name
        self.models: tuple[str, ...] = handle.models
        self.classes: tuple[Hashable, ...] | None = handle.classes
        self.n_classes: int = handle.n_classes
        self.n_rows: int | None = handle.n_rows
        self.taken: tuple[str, ...] = handle.taken
        self.by: tuple[str, ...] = handle.by
        self.has_rows: bool = handle.has_rows
        self.weighted: bool = handle.weighted

    @property
    def level(self) -> float | None:
        """The coverage that all sets claim."""
        return self._made.level

    def in_order(self) -> Handle:
        return SetHandle(self._handle.in_order(), self._made, ordered=True)

    def knows(self, recipe: Recipe[Any]) -> bool:
        """Whether it can make this summary."""
        return self._handle.knows(self._of_sets(recipe))

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return self._handle._summarise({name: self._of_sets(own) for name, own in recipes.items()})

    def _of_sets(self, recipe: Recipe[Any]) -> OfSets:
        return OfSets(recipe, self._made, self._ordered)


def refuse_sets(sets: bool, name: Hashable = "") -> None:
    """Refuse prediction sets where probabilities are needed."""
    if sets:
        raise InputError(
            "must be probabilities or top lists here",
            argument="p",
            kind="type",
            found="these are prediction sets",
            source=str(name),
            remedies=[
                Remedy('Judge sets with vx.evaluate_sets(y, sets), or compare them by rule="level_set".')
            ],
        )
