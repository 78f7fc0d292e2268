"""Rows that come to this process in parts, summarised by threads in bounded memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from verax.common.memory import give_back, keep_freed
from verax.inputs.handles import Collector, Handle, Part, Recipe, Summaries, collectors_for
from verax.kernels.ledger import expecting
from verax.kernels.threads import by_turns, n_cores
from verax.scans.cuts import ChangedParts, Cut, GroupCounts, NumberCounts, relabelled, with_kind
from verax.scans.distinct import summarised

# The maximum number of collectors that take rows in turns: more threads would wait for rows.
_COLLECTORS = 8
# From this number of rows, memory matters.
_MANY = 2**20
Work = Callable[[Collector], int]


@dataclass
class KeptParts:
    """The parts of a first pass, which further passes use instead of reading files.

    Attributes
    ----------
    wanted : bool
        Whether parts are to be kept.
    complete : bool
        Whether all are there.
    parts : dict of int to Part
        The parts by the numbers of their first rows.
    """

    wanted: bool = False
    complete: bool = False
    parts: dict[int, Part] = field(default_factory=dict)

    def add(self, part: Part) -> Part:
        """Keep a part without the results that recipes share, which may be large."""
        if self.wanted:
            self.parts[part.start] = part
            return replace(part, _made={})
        return part

    def end(self) -> None:
        """All parts have been read."""
        self.complete = self.wanted

    def work(self) -> Iterator[Work]:
        """All parts in order."""
        for _, part in sorted(self.parts.items()):
            yield partial(_shown, part)


def _shown(part: Part, collector: Collector) -> int:
    return collector.add(replace(part, _made={}))


def n_collectors() -> int:
    """The number of collectors that take rows in turns, a thread each."""
    return min(n_cores(), _COLLECTORS)


class LocalHandle(Handle):
    """Rows that come to this process in parts.

    Attributes
    ----------
    notes : tuple of str
        Sentences that a reader of results should know about the rows read last.
    fits : bool
        Whether all rows fit in memory at once.
    ids : tuple of str
        The columns that identify rows.
    distinct : bool
        Whether rows with the same id are still to be refused.
    bins : mapping of str to int
        Columns of subgroups whose numbers are cut into groups, with the number of groups.
    two_way : bool
        Whether rows have two kinds of groups.
    """

    fits: bool = False
    near: bool = True
    ids: tuple[str, ...] = ()
    distinct: bool = False
    bins: Mapping[str, int] = MappingProxyType({})
    two_way: bool = False
    _cuts: Mapping[str, Cut] | None = None
    _kind: int | None = None
    _kept: KeptParts = KeptParts()
    _progress: Callable[[int], None] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @abstractmethod
    def _work(self, times: int) -> Iterable[Work]:
        """All rows in order: each piece of work shows some to a collector, and returns the number of valid
        ones. With many pieces, they may be `times` longer.
        """

    def one_way(self) -> Handle:
        if not self.two_way or self._kind is not None:
            return self
        same = copy(self)
        counts = GroupCounts()
        self._look(counts)
        same._kind = counts.fewer
        return same

    def _changes(self) -> list[Callable[[Part], Part]]:
        """The changes to parts before recipes see them."""
        if self.bins and self._cuts is None:
            counts = NumberCounts(self.bins)
            self._look(counts)
            self._cuts = counts.cuts()
        cuts = self._cuts or {}
        of_kind = [] if self._kind is None else [partial(with_kind, kind=self._kind)]
        return [*([partial(relabelled, cuts=cuts)] if cuts else []), *of_kind]

    def _look(self, counts: Any) -> None:
        """Show all parts to a collector, in a separate pass."""
        for show in self._work(1):
            self._advance(show(counts))
        self._check()

    def _check(self) -> None:
        """Refuse rows for errors that only all of them together show; called after reading."""

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
        collectors: list[Any] = [*collectors_for(recipes, n_collectors())]
        for change in self._changes():
            collectors = [ChangedParts(collector, change) for collector in collectors]
        many = (self.n_rows or 0) >= _MANY
        if many:
            # Other threads do not reuse the memory that this one has freed.
            give_back()
        keep_freed()
        times = max((recipe.longer for recipe in recipes.values()), default=1)
        with expecting((self.n_rows or 0) * (1 if self.lists else self.n_classes)):
            # Fewer long parts wait.
            ahead = 2 if times == 1 else 1
            reads = not self._kept.complete
            for n_rows in by_turns(
                lambda show, collector: show(collector), self._work(times), collectors, ahead
            ):
                self._advance(n_rows if reads else 0)
        self._check()
        if many:
            # The first parts, which are kept or counted exactly, take more memory than later ones.
            give_back()
        # One after the other, so that finished collectors release their tables.
        merged = Summaries({}, 0, None)
        while collectors:
            merged = merged.merge(collectors.pop(0).summaries())
        return merged
