"""Progress of long commands, on stderr where that is a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from verax._settings import settings
from verax.cli.presenting import Presentation, log


class Progress:
    """A line that says what runs, for how long, and how many rows have been read."""

    def __init__(self, what: str) -> None:
        self._what, self._rows = what, 0
        self._bar: Any = None
        self._over, self._lock = False, threading.Lock()
        self._timer = threading.Timer(settings.progress_after, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def name(self, what: str) -> None:
        """Say what runs."""
        self._what = what

    def advance(self, n_rows: int) -> None:
        """More rows have been read."""
        self._rows += n_rows
        with self._lock:
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], description=self._text)

    def stop(self) -> None:
        """Take the line away; it does not come back."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    @property
    def _text(self) -> str:
        return f"{self._what}, {self._rows:,} rows read" if self._rows else self._what

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with self._lock:
            if not self._over:
                self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
                self._bar.add_task(self._text, total=None)
                self._bar.start()


class LoggedProgress:
    """The same as lines of a log, at most one in the time after which the other appears."""

    def __init__(self) -> None:
        self._rows, self._last, self._lock = 0, time.monotonic(), threading.Lock()

    def name(self, what: str) -> None:
        """Every line has the name of the command."""

    def advance(self, n_rows: int) -> None:
        """More rows have been read."""
        with self._lock:
            self._rows += n_rows
            now = time.monotonic()
            if now - self._last >= settings.progress_after:
                self._last = now
                log("progress", f"{self._rows:,} rows read", rows=self._rows)

    def stop(self) -> None:
        """A log has nothing to take away."""


class _State:
    current: Progress | LoggedProgress | None = None


@contextmanager
def progress() -> Iterator[None]:
    """Show progress while a command runs, if stderr is a terminal or a log in JSON."""
    try:
        if Presentation.log == "json":
            _State.current = LoggedProgress()
        else:
            _State.current = Progress("verax") if sys.stderr is not None and sys.stderr.isatty() else None
        yield
    finally:
        stop_progress()


def name_progress(what: str) -> None:
    """Say which command runs."""
    Presentation.command = what
    if _State.current is not None:
        _State.current.name(what)


def advance(n_rows: int) -> None:
    """More rows have been read."""
    if _State.current is not None:
        _State.current.advance(n_rows)


def stop_progress() -> None:
    """Make way for results."""
    if _State.current is not None:
        _State.current.stop()
        _State.current = None
