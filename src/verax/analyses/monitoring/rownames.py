"""Rows that a handle names: which of them a monitor has taken in before."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.monitoring.pending import Hashes, outcome_hash
from verax.common.hashing import label_hash
from verax.common.specs import Array
from verax.common.summaries import Summary, merges
from verax.inputs.arrays import Ints, to_host
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import are_shared


class RowNames(Summary, kind="names of rows"):
    """Names and outcomes of rows, as hashes; none where rows have no names.

    Attributes
    ----------
    names, outcomes : array of shape (N,)
        The hashes.
    numbers : array of shape (N,)
        The numbers of the rows.
    """

    names: Hashes = merges(Array("uint64", "rows", how="join"))
    outcomes: Hashes = merges(Array("uint64", "rows", how="join"))
    numbers: Ints = merges(Array("int64", "rows", how="join"))


@dataclass(frozen=True)
class NamesRecipe(Recipe[RowNames], cases=True):
    """The names of all rows.

    Attributes
    ----------
    model : str
        The model.
    classes : tuple or None
        The names of the classes.
    """

    model: str
    classes: tuple[Hashable, ...] | None

    def take(self, part: Part) -> RowNames:
        """Of some rows."""
        if part.ids is None:
            none = np.zeros(0, np.uint64)
            return RowNames(none, none, np.zeros(0, np.int64))
        names = [label_hash(name) for name in part.ids.tolist()]
        given = self._outcomes(part)
        hashes = (
            {} if given and isinstance(given[0], list) else {each: outcome_hash(each) for each in set(given)}
        )
        outcomes = [hashes.get(each) if hashes else outcome_hash(each) for each in given]
        return RowNames(np.array(names, np.uint64), np.array(outcomes, np.uint64), part.row_numbers)

    def _outcomes(self, part: Part) -> list[Any]:
        rows: Any = part.models[self.model]
        if isinstance(rows, ListRows):
            return [rows.outcome(row) for row in range(rows.n_rows)]
        if are_shared(rows):
            return to_host(rows.shares(slice(None))).tolist()  # type: ignore[no-any-return]
        codes: list[int] = np.asarray(to_host(rows.batch(0, rows.n_rows).y)).tolist()
        return codes if self.classes is None else [self.classes[code] for code in codes]
