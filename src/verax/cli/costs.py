"""`verax evaluate --dry-run`: what a command would cost, measured on the first rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from verax._settings import changed, settings
from verax.cli.opening import rows_about
from verax.cli.output import show

if TYPE_CHECKING:
    from verax.cli.cards import CardQuestion
    from verax.cli.opening import Opened

# Rows of the longer sample, and its probabilities at most; the other has a quarter of it.
_SAMPLE, _NUMBERS = 2**15, 2**19
# Bytes that calibration takes for a probability.
_PER_VALUE = 350
_MEGABYTE = 2**20


@dataclass(frozen=True)
class Costs:
    """The expected time and memory of a command.

    Attributes
    ----------
    n_rows : int or None
        The number of rows.
    exact : bool
        Whether that number is known.
    passes : int
        How often analyses look at all rows.
    kept : bool
        Whether rows are kept in memory, so that files are read once.
    sampled : int
        Rows that times were measured on.
    seconds : float or None
        The expected processor time; on a machine with nothing else to do it takes no longer.
    per_million : float
        Seconds that a million more rows take.
    megabytes : float or None
        The expected memory.
    """

    n_rows: int | None
    exact: bool
    passes: int
    kept: bool
    sampled: int
    seconds: float | None
    per_million: float
    megabytes: float | None

    def lines(self, file: str) -> list[str]:
        """The costs in words."""
        about = "" if self.exact else "about "
        many = "an unknown number of" if self.n_rows is None else f"{about}{self.n_rows:,}"
        read = "files are read once and kept in memory" if self.kept else "files are read again in each"
        lines = [f"{file}: {many} rows", f"Passes over the rows: {self.passes}; {read}."]
        how = f"measured on {self.sampled:,} rows; {self.per_million:.2g} s for each further million"
        if self.seconds is None:
            return [*lines, f"Expected processor time: {how}."]
        return [
            *lines,
            f"Expected processor time: about {_rounded(self.seconds)} s ({how}).",
            f"Expected memory: about {_rounded(self.megabytes or 0.0)} MB.",
        ]


def _rounded(value: float) -> str:
    return f"{float(f'{value:.2g}'):,g}"


def show_costs(rows: Opened, question: CardQuestion, *, as_json: bool) -> None:
    """Print what a card or a report would cost, without it."""
    costs = costs_of(rows, question.of)
    result = {"file": rows.file, "dry_run": vars(costs)}
    show(result, [*costs.lines(rows.file), "Nothing was scored."], as_json=as_json)


def costs_of(rows: Opened, answer: Callable[[Opened], Any]) -> Costs:
    """The costs of an analysis of all rows, extrapolated from the first ones.

    Passes take time in proportion to the rows. Conclusions grow up to the number of rows from which they are
    drawn from samples.
    """
    started = time.process_time()
    n, width = rows_about(rows.handle), rows.handle.n_classes * len(rows.handle.models)
    longer = max(64, min(_SAMPLE, _NUMBERS // width, n or _SAMPLE))
    # The sample is treated like all rows.
    large: dict[str, Any] = {}
    if n is not None and n * width > settings.calibration_up_to:
        large["calibration_up_to"] = 0
    if n is not None and n > settings.read_again_up_to:
        large["read_again_up_to"] = 0
    if n is not None and n * width >= settings.compiled_from:
        large["compiled_from"] = 0
    with changed(**large):
        begin = _measured(rows, answer, max(16, longer // 4))
        if n is not None and begin.n_rows >= n:
            # Opening has read all rows, as of lists that name the classes: nothing is extrapolated.
            took = started + begin.total
            return Costs(n, True, begin.passes, True, n, took, 1e6 * took / n, _resident() / _MEGABYTE)
        short = _measured(rows, answer, max(16, longer // 4))
        long = _measured(rows, answer, longer)
    more = max(1, long.n_rows - short.n_rows)
    per_row = max(long.reading - short.reading, 0.0) / more
    growth = max(long.rest - short.rest, 0.0) / more
    seconds = megabytes = None
    if n is not None:
        seconds = started + max(begin.total, short.total) - short.total + long.total
        seconds += (per_row + (0 if "calibration_up_to" in large else growth)) * (n - long.n_rows)
        kept = 8 * (width + 4) * n if rows.handle.fits else 0
        table = 0 if "calibration_up_to" in large else _PER_VALUE * width * n
        megabytes = (_resident() + kept + table) / _MEGABYTE
    kept_rows, exact = bool(rows.handle.fits), rows.handle.n_rows is not None
    return Costs(n, exact, long.passes, kept_rows, long.n_rows, seconds, 1e6 * per_row, megabytes)


@dataclass
class _Measured:
    """Seconds of an analysis of some rows: in passes over them, and in all else."""

    n_rows: int = 0
    passes: int = 0
    reading: float = 0.0
    total: float = 0.0

    @property
    def rest(self) -> float:
        return max(self.total - self.reading, 0.0)


def _measured(rows: Opened, answer: Callable[[Opened], Any], n_rows: int) -> _Measured:
    """The time of an analysis of the first rows."""
    measured, handle = _Measured(), copy(rows.handle)
    summarise, work = type(handle)._summarise, type(handle)._work

    def timed(recipes: Mapping[str, Any]) -> Any:
        started = time.process_time()
        summaries = summarise(handle, recipes)
        measured.reading += time.process_time() - started
        measured.passes += 1
        measured.n_rows = summaries.n_rows
        return summaries

    first = {"_summarise": timed, "_work": lambda times: islice(work(handle, times), 1)}
    vars(handle).update(first, _progress=None)
    if hasattr(handle, "_kept"):
        handle._kept = replace(handle._kept, complete=False, parts={})
    started = time.process_time()
    with changed(part_rows=n_rows, list_part_rows=n_rows, list_part_records=n_rows):
        answer(replace(rows, handle=handle))
    measured.total = time.process_time() - started
    return measured


def _resident() -> int:
    """Bytes of memory that this process has taken."""
    try:
        import resource
    except ImportError:
        return 0
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
