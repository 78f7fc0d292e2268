"""Frames with partitions on several machines: the task at each partition, and the merging of its results."""

from __future__ import annotations

import base64
import builtins
import re
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from types import FunctionType
from typing import Any, Self

from verax._settings import settings
from verax._version import __version__
from verax.common.packing import dump, load
from verax.errors import InputError, MissingPackageError, Remedy, RuleError, show
from verax.files.formats.tables import SourceTable, runs_of
from verax.inputs.handles import Collector, Handle, Recipe, Summaries, collectors_for, first_row
from verax.inputs.lists.rows import NO_ORDER
from verax.kernels.ledger import expecting
from verax.kernels.threads import by_turns
from verax.scans.distinct import summarised
from verax.scans.forms import TableReader, reader_of
from verax.scans.frames import ArrowTable
from verax.scans.options import ScanOptions

# An error inside the text of another one.
_MARKED = re.compile(r"\[verax:([A-Za-z0-9+/=]+)\]")
_KIND = "refusal"


@dataclass(frozen=True)
class PartitionTask:
    """The task that is sent to where the rows are; it holds no rows and returns bytes."""

    reader: TableReader
    recipes: Mapping[str, Recipe[Any]]
    name: str

    def score(self, batches: Iterable[Any], partition: int, threads: int = 1) -> bytes:
        """The summaries of the record batches of a partition."""
        collectors = collectors_for(self.recipes, threads)
        runs = runs_of(batches, self.reader.rows_at_a_time)
        # Frames on several machines are large, so kernels pay from the first rows on.
        with expecting(settings.compiled_at_once):
            if len(collectors) == 1:
                for run in runs:
                    self._run(partition, run, collectors[0])
            else:
                deque(by_turns(partial(self._run, partition), runs, collectors), maxlen=0)
        return reduce(Summaries.merge, (collector.summaries() for collector in collectors)).to_bytes()

    def _run(self, partition: int, run: tuple[int, list[Any]], collector: Collector) -> None:
        start, batches = run
        try:
            collector.add(self.reader.part(batches, first_row(partition) + start))
            return
        except InputError as error:
            refused = error
        try:
            # Again, for an error that numbers rows within the partition.
            Collector(self.recipes).add(self.reader.part(batches, start))
        except InputError as error:
            refused = error
        raise refused.replace(source=f"{self.name}, partition {partition}") from None

    def merge(self, stored: Iterable[bytes]) -> Summaries:
        """Merge summaries one after the other, so that only two are in memory at a time."""
        summaries = (Summaries.from_bytes(part, self.recipes) for part in stored)
        return reduce(Summaries.merge, summaries, Summaries({}, 0, None))


class PartitionedHandle(Handle):
    """A frame in partitions; the first rows tell the role of each column."""

    ids: tuple[str, ...]
    distinct: bool

    def __init__(self, name: str, frame: Any, options: ScanOptions, head: Any) -> None:
        if options.reading.rater_column is not None:
            raise InputError(
                "must be in memory: the labels of a case may be in several partitions",
                argument="rater_column",
                kind="type",
                source=name,
                remedies=[
                    Remedy("Pivot the frame to a row for each case, and pass the columns as raters=...")
                ],
            )
        self._frame, self._options, self._head = frame, options, head
        table = SourceTable(name, name, options.reading, lambda: ArrowTable(head))
        self._reader = reader_of(table, options)
        self._describe(name, None, self._reader.facts)
        self.ids, self.distinct = options.ids, options.distinct

    def in_order(self) -> Self:
        if self.lists:
            raise RuleError(NO_ORDER)
        return type(self)(self.name, self._frame, self._options.with_reading(ordered=True), self._head)

    def place_of(self, row: int) -> str:
        """The place of a row in messages."""
        return self.name

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        return summarised(self, recipes, self._pass)

    def _pass(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        work = PartitionTask(self._reader, recipes, self.name)
        summaries = work.merge(self._run(work))
        if self._options.progress is not None:
            self._options.progress(summaries.n_rows)
        return summaries

    @abstractmethod
    def _run(self, work: PartitionTask) -> Iterable[bytes]:
        """Run the task on all partitions; return the summaries of all rows in a few pieces."""


class RefusedError(Exception):
    """An error about input as a text that other programs pass on, and that `refusal_in` reads."""

    def __init__(self, error: InputError) -> None:
        facts = {
            name: getattr(error, name) for name in ("requirement", "argument", "kind", "found", "source")
        }
        values = [value if isinstance(value, (str, int, float)) else show(value) for value in error.values]
        advice = [
            [
                remedy.text,
                {name: value for name, value in remedy.options.items() if value is not ...},
                [name for name, value in remedy.options.items() if value is ...],
                remedy.python_only,
            ]
            for remedy in error.remedies
        ]
        numbers = {"rows": list(error.rows), "count": error.count}
        stored = dump(_KIND, {**facts, **numbers, "values": values, "remedies": advice})
        super().__init__(f"{error} [verax:{base64.b64encode(stored).decode()}]")


def refusal_in(text: str) -> InputError | None:
    """The error in the text of a `RefusedError`; None without one."""
    marked = _MARKED.search(text)
    if marked is None:
        return None
    facts = load(base64.b64decode(marked.group(1)), _KIND)
    advice = facts.pop("remedies")
    remedies = [
        Remedy(words, {**options, **dict.fromkeys(open_options, ...)}, python_only)
        for words, options, open_options, python_only in advice
    ]
    return InputError(**facts, remedies=remedies)


# The number of workers that an error names.
_NAMED = 3


def _about(*_: Any) -> str:
    """The host and interpreter that run this, its version of verax, and the package that it lacks."""
    import socket
    import sys
    from importlib.util import find_spec

    version = lacking = ""
    try:
        from verax._version import __version__ as version

        lacking = next((name for name in ("numpy", "scipy", "pyarrow") if find_spec(name) is None), "")
    except ImportError as error:
        lacking = error.name or "verax"
    return "\t".join((socket.gethostname(), sys.executable, version, lacking))


def question() -> Callable[..., str]:
    """A function that tells where it runs; sent by value, as workers may be unable to import this module."""
    function = FunctionType(_about.__code__, {"__builtins__": builtins}, "about")
    # Libraries send functions by value if they were defined in the main program.
    function.__module__ = "__main__"
    return function


def check_answers(answers: Iterable[str], who: str, remedy: str) -> None:
    """Refuse a cluster whose workers lack this version of verax; name their interpreters and hosts."""
    every = [answer.split("\t") for answer in answers]
    wrong: list[tuple[str, str, str]] = []
    for host, python, version, lacking in every:
        if lacking:
            reason = "" if lacking.partition(".")[0] == "verax" else f", which needs {lacking}"
            wrong.append((f"cannot import verax{reason}", python, host))
        elif version != __version__:
            wrong.append((f"must have verax {__version__}, as here, not {version}", python, host))
    if not wrong:
        return
    problem = wrong[0][0]
    places = [(python, host) for reason, python, host in wrong if reason == problem]
    named = list(dict.fromkeys(f"{python} on {host}" for python, host in places))
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    raise MissingPackageError(
        f"{who} {problem}: {', '.join(named[:_NAMED])}{more} ({len(places):,} of {len(every):,}). {remedy}"
    )


def last_of(text: str, marks: Sequence[str]) -> str:
    """The last line of a traceback with one of these marks, or its first line."""
    lines = text.splitlines() or [""]
    marked = [line for line in lines if any(mark in line for mark in marks)] or lines[:1]
    return marked[-1].strip()[:200].rstrip(". ")
