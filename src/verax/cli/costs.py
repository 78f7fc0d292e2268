"""`verax evaluate --dry-run`: what a command would cost, measured on the first rows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from verax._settings import changed, settings
from verax.cli.opening import rows_about
from verax.cli.output import show
from verax.files.source import rows_at_a_time
from verax.scans.local import n_collectors

if TYPE_CHECKING:
    from verax.cli.cards import CardQuestion
    from verax.cli.opening import Opened

# Rows of the sample, and its probabilities at most.
_SAMPLE, _NUMBERS = 2**16, 2**20
# Bytes that a thread takes for a row of the part that it scores and of those that wait, and more for each
# probability; bytes that calibration keeps for a row. Measured with 2 to 20 classes.
_PER_ROW, _PER_VALUE, _CALIBRATED = 150, 80, 500
# Passes that calibration takes at least.
_PASSES = 9
_MEGABYTE = 2**20
# A sample that is at least this share of the estimated number of rows is read as all of them.
_ESTIMATED = 0.9


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

    Passes take time in proportion to the rows, and so do conclusions where calibration is computed.
    """
    started = time.process_time()
    handle = rows.handle
    n, width = rows_about(handle), handle.n_classes * len(handle.models)
    calibrated = n is None or n * width <= settings.calibration_up_to
    sample = max(64, min(_SAMPLE, _NUMBERS // width))
    # The sample is treated like all rows.
    large: dict[str, Any] = {} if calibrated else {"calibration_up_to": 0}
    if n is not None and n > settings.read_again_up_to:
        large["read_again_up_to"] = 0
    part_rows = rows_at_a_time(width)
    # Calibration looks at all rows at once, and everything else at a part.
    if n is not None and (n if calibrated else min(n, part_rows)) * width >= settings.compiled_from:
        large["compiled_from"] = 0
    if n is not None and calibrated and n * width * _PASSES >= settings.compiled_at_once:
        large["compiled_at_once"] = 0
    exact, fits = handle.n_rows is not None, bool(handle.fits)
    with changed(**large):
        first = _measured(rows, answer, sample)
        took = started + first.total
        # The number of rows of a text is an estimate.
        if n is not None and first.n_rows >= (n if exact else _ESTIMATED * n):
            # All rows were read: nothing is extrapolated.
            n, memory = (n if exact else first.n_rows), _resident() / _MEGABYTE
            return Costs(n, True, first.passes, fits, n, took, 1e6 * took / n, memory)
        # Modules and kernels are loaded by now.
        again = _measured(rows, answer, sample)
    seconds = megabytes = None
    if n is not None:
        more = n - again.n_rows
        seconds = took + (again.total if calibrated else again.reading) * more / again.n_rows
        at_once = min(n_collectors() * part_rows, n) - again.n_rows
        waiting = 0 if handle.lists else max(0, at_once) * (_PER_ROW + _PER_VALUE * width)
        kept = 8 * (width + 1) * n if fits else 0
        megabytes = (_resident() + waiting + kept + (_CALIBRATED * more if calibrated else 0)) / _MEGABYTE
    per_million = 1e6 * again.reading / again.n_rows
    return Costs(n, exact, again.passes, fits, again.n_rows, seconds, per_million, megabytes)


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
    # macOS counts bytes, and others kilobytes.
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
