"""Progress of long commands, on stderr where that is a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from verax._settings import settings


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


class _State:
    current: Progress | None = None


@contextmanager
def progress() -> Iterator[None]:
    """Show progress while a command runs, if stderr is a terminal."""
    try:
        _State.current = Progress("verax") if sys.stderr is not None and sys.stderr.isatty() else None
        yield
    finally:
        stop_progress()


def name_progress(what: str) -> None:
    """Say which command runs."""
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
