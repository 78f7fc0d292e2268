"""Progress of long commands on stderr, where that is a terminal: what runs, and how long it may take."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from verax._settings import settings
from verax.cli.presenting import Presentation, log
from verax.common.stages import Stages

# Seconds of work that an estimate is based on, at least.
_ENOUGH = 1.0


class Work:
    """How far a command has come.

    Parameters
    ----------
    what : str
        The command.
    """

    def __init__(self, what: str) -> None:
        self.what: str = what
        self.rows: int = 0
        self.expected: int = 0
        self._stage, self._done, self._of = "", 0, 0
        self._began, self._pass = time.monotonic(), 0

    def expect(self, n_rows: int) -> None:
        """Add to the number of rows of a pass."""
        self.expected += n_rows

    def advance(self, n_rows: int) -> None:
        """More rows have been read."""
        self.rows += n_rows
        done = self.rows // self.expected if self.expected else 0
        if self._stage or done > self._pass:
            self._begin("", 0, 0)
            self._pass = done

    def stage(self, what: str, done: int, of: int) -> None:
        """Note that something other than reading runs, and the number of its steps that are done."""
        if what != self._stage:
            self._begin(what, done, of)
        self._done, self._of = done, of

    def _begin(self, what: str, done: int, of: int) -> None:
        self._stage, self._done, self._of, self._began = what, done, of, time.monotonic()

    @property
    def left(self) -> float | None:
        """Seconds until this pass or stage is over; None where nobody can tell yet."""
        done, of = (
            (self._done, self._of) if self._stage else (self.rows - self._pass * self.expected, self.expected)
        )
        took = time.monotonic() - self._began
        return took / done * (of - done) if 0 < done < of and took >= _ENOUGH else None

    def __str__(self) -> str:
        parts = [self.what]
        if self._stage:
            parts.append(f"{self._stage}, {self._done} of {self._of}" if self._of else self._stage)
        elif self.rows:
            done = self.rows - self._pass * self.expected
            of = f" of about {self.expected:,}" if done < self.expected else ""
            again = f"pass {self._pass + 1}, " if self._pass else ""
            parts.append(f"{again}{done:,}{of} rows read" if self.expected else f"{self.rows:,} rows read")
        if self.left is not None:
            parts.append(f"about {self.left:,.0f} s left{'' if self._stage else ' in this pass'}")
        return ", ".join(parts)


class Progress:
    """A line that says how far the command has come."""

    def __init__(self, what: str) -> None:
        self.work: Work = Work(what)
        self._bar: Any = None
        self._over, self._lock = False, threading.Lock()
        self._timer = threading.Timer(settings.progress_after, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def renew(self) -> None:
        """Show how far it has come."""
        with self._lock:
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], description=str(self.work))

    def stop(self) -> None:
        """Take the line away; it does not come back."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with self._lock:
            if not self._over:
                self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
                self._bar.add_task(str(self.work), total=None)
                self._bar.start()


class LoggedProgress:
    """The same as lines of a log, at most one in the time after which the other appears."""

    def __init__(self, what: str) -> None:
        self.work: Work = Work(what)
        self._last, self._lock = time.monotonic(), threading.Lock()

    def renew(self) -> None:
        """Log how far it has come."""
        with self._lock:
            now = time.monotonic()
            if now - self._last >= settings.progress_after:
                self._last = now
                left = self.work.left
                log(
                    "progress",
                    str(self.work),
                    rows=self.work.rows,
                    left=None if left is None else round(left),
                )

    def stop(self) -> None:
        """A log has nothing to take away."""


class _State:
    current: Progress | LoggedProgress | None = None


@contextmanager
def progress() -> Iterator[None]:
    """Show progress while a command runs, if stderr is a terminal or a log in JSON."""
    try:
        if Presentation.log == "json":
            _State.current = LoggedProgress("verax")
        else:
            _State.current = Progress("verax") if sys.stderr is not None and sys.stderr.isatty() else None
        Stages.listener = _stage
        yield
    finally:
        Stages.listener = None
        stop_progress()


def name_progress(what: str) -> None:
    """Say which command runs."""
    Presentation.command = what
    if _State.current is not None:
        _State.current.work.what = what


def shows_progress() -> bool:
    """Whether anybody sees it."""
    return _State.current is not None


def expect(n_rows: int | None) -> None:
    """Say how many rows are to be read in each pass, where that is known."""
    if _State.current is not None and n_rows is not None:
        _State.current.work.expect(n_rows)


def advance(n_rows: int) -> None:
    """More rows have been read."""
    if _State.current is not None:
        _State.current.work.advance(n_rows)
        _State.current.renew()


def _stage(what: str, done: int, of: int) -> None:
    if _State.current is not None:
        _State.current.work.stage(what, done, of)
        _State.current.renew()


def stop_progress() -> None:
    """Make way for results."""
    if _State.current is not None:
        _State.current.stop()
        _State.current = None
