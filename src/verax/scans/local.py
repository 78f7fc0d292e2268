"""Rows that come to this process in parts, summarised by threads in bounded memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from verax.common.memory import give_back, keep_freed
from verax.inputs.handles import Collector, Handle, Recipe, Summaries, collectors_for
from verax.kernels.ledger import expecting
from verax.kernels.threads import by_turns, n_cores
from verax.scans.distinct import summarised

# How many collectors share the rows by turns, at most: threads beyond these would wait for rows to be read.
_COLLECTORS = 8
# From this many rows on, memory matters.
_MANY = 2**20
Work = Callable[[Collector], int]


class LocalHandle(Handle):
    """Rows that come to this process in parts.

    Attributes
    ----------
    notes : tuple of str
        What a reader of results should know of the rows that were read last: a sentence each.
    fits : bool
        Whether all rows may be held in memory at once.
    ids : tuple of str
        The columns that identify rows.
    distinct : bool
        Whether rows with the same id are yet to be refused.
    """

    fits: bool = False
    near: bool = True
    ids: tuple[str, ...] = ()
    distinct: bool = False
    _progress: Callable[[int], None] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def _work(self, times: int) -> Iterable[Work]:
        """All rows in order: each piece of work shows some to a collector, and returns the number of valid
        ones. Where there are many pieces, they may be several times longer.
        """

    def _check(self) -> None:
        """Refuse rows for what all of them show; called when all were read."""

    def _advance(self, n_rows: int) -> None:
        if self._progress is not None:
            self._progress(n_rows)

    def place_of(self, row: int) -> str:
        """The file that a row is in."""
        return self.name

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return summarised(self, recipes, self._pass)

    def _pass(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        """The summaries of all rows."""
        collectors = collectors_for(recipes, min(n_cores(), _COLLECTORS))
        many = (self.n_rows or 0) >= _MANY
        if many:
            # What this thread has freed the threads do not take.
            give_back()
        keep_freed()
        times = max((recipe.longer for recipe in recipes.values()), default=1)
        with expecting((self.n_rows or 0) * (1 if self.lists else self.n_classes)):
            # Fewer of them wait where they are long.
            ahead = 2 if times == 1 else 1
            for n_rows in by_turns(lambda show, own: show(own), self._work(times), collectors, ahead):
                self._advance(n_rows)
        self._check()
        if many:
            # The first parts, which are kept or counted exactly, take more memory than those that follow.
            give_back()
        # One after the other, so that the tables of those that are done take no memory.
        found = Summaries({}, 0, None)
        while collectors:
            found = found.merge(collectors.pop(0).summaries())
        return found
