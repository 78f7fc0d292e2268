"""A run of `verax monitor`: the files that it takes in, and the state that it continues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from typing import Any

from verax.cli.opening import Opened
from verax.common.paths import files_named
from verax.errors import InputError
from verax.errors import show as quote
from verax.files.outcomes_beside import read_forecasts, read_outcomes
from verax.files.source import forecasts_of
from verax.inputs.breakdown import Breakdown
from verax.inputs.reading import Reading
from verax.scans.forms import form_of_lists
from verax.wings.lists.files.opening import open_forecasts
from verax.wings.monitor.intake import check_times, refuse_unnamed
from verax.wings.monitor.monitor import (
    Monitor,
    classes_listed,
    has_positions,
    has_waited,
    how_read,
    keep_reading,
    n_classes,
    name_classes,
    observe_new,
    rows_in,
    set_memory,
    waits,
)

# How many bytes of a file are hashed at a time.
_BLOCK = 2**20


@dataclass(frozen=True)
class Intake:
    """What a run took of a file.

    Attributes
    ----------
    file : str
        The file.
    new, known : int
        The numbers of new rows, and of rows that were taken in before.
    before : bool
        Whether a file of this content was taken in before, and was left out.
    said : str
        How its columns were read.
    """

    file: str
    new: int = 0
    known: int = 0
    before: bool = False
    said: str = ""


@dataclass
class MonitorRun:
    """A run: the files it takes in, and the state it continues.

    Attributes
    ----------
    monitor : Monitor
        The monitor.
    reading : Reading
        How files are read.
    time : str
        The column of times.
    n_before : int
        The number of rows in the state before.
    changed : list of str
        What is read in another way than before.
    taken : list of Intake
        The files, in the order in which they were read.
    """

    monitor: Monitor
    reading: Reading
    time: str
    n_before: int = 0
    changed: list[str] = field(default_factory=list)
    taken: list[Intake] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        state: Path,
        settings: Mapping[str, Any],
        said: Mapping[str, Any],
        time: str | None,
        *,
        why: str | None = None,
        reads: bool = True,
    ) -> MonitorRun:
        """Go on from a state, or begin.

        Parameters
        ----------
        state : Path
            The file of the state.
        settings : mapping of str to object
            The settings that are stated.
        said : mapping of str to object
            The fields of a reading that are stated.
        time : str or None
            The column of times, where it is stated.
        why : str or None
            Why the alarm is acknowledged; None if it is not.
        reads : bool
            Whether files are to be read.
        """
        settings = dict(settings)
        memory = settings.pop("memory", None)
        if why is not None:
            watch, settings = _acknowledged(state, settings, why)
        elif state.exists():
            watch = Monitor.load(state)
        else:
            watch = Monitor(**settings)
        _check_settings(watch, settings, state)
        if memory is not None:
            set_memory(watch, memory)
        if not reads:
            return cls(watch, Reading(), "", watch.n_rows)
        changed = keep_reading(watch, said, time, state)
        reading, time = how_read(watch)
        name_classes(watch, reading.names)
        return cls(watch, reading, time, watch.n_rows, changed)

    def take(self, paths: list[Path], late_paths: list[Path], *, late: bool) -> list[Path]:
        """Take in all files; the files of late outcomes among them."""
        watch = self.monitor
        if not paths and not late_paths:
            return []
        self._read_as_before()
        at_once = bool(paths and late_paths) and not late and not has_waited(watch)
        if at_once and form_of_lists(paths[0], self.reading) is not None:
            # Outcomes of top lists are matched when these are read, unless lists came before their outcomes.
            self.reading, late_paths = replace(self.reading, outcomes=str(late_paths[0])), []
        taken: list[Breakdown] = []
        before = watch.history.lines
        last = before[-1].time if before else None
        for path in [*paths, *late_paths]:
            digest = _digest(path)
            if watch.knows_file(digest):
                self.taken.append(Intake(str(path), before=True))
                continue
            self._read_as_before()
            try:
                if path in late_paths:
                    n = watch.n_rows
                    said = _take_outcomes(watch, path, self.reading, self.time)
                    self.taken.append(Intake(str(path), watch.n_rows - n, said=said))
                elif late or late_paths:
                    n = watch.pending
                    said = _take_forecasts(watch, path, self.reading, self.time)
                    self.taken.append(Intake(str(path), watch.pending - n, said=said))
                else:
                    taken.append(self._observe(path, last))
            except InputError as error:
                raise error.replace(source=error.source or str(path)) from None
            watch.note_file(digest, str(path))
        steps = reduce(Breakdown.merge, taken, Breakdown({}))
        if steps.by_label:
            # In order of time, whatever the files are called.
            watch.add(steps)
        return late_paths

    def _read_as_before(self) -> None:
        """Read files as those before, with the time and the subgroups among the columns."""
        told, names, known = self.monitor.settings, self.reading.classes, self.monitor.classes or ()
        if names is None and all(isinstance(c, str) for c in known):
            # Columns of a later file may be in another order.
            names = tuple(known) or None
        self.reading = replace(self.reading, ordered=told.ordered, classes=names, by=(self.time, *told.by))

    def _observe(self, path: Path, last: Any) -> Breakdown:
        """Sum up the new rows of a file of forecasts with their outcomes."""
        watch, handle = self.monitor, Opened.of([str(path)], self.reading).handle
        steps, n_known = observe_new(watch, handle, self.time)
        said = f"{path}: {'; '.join(_taken(handle.taken, self.time))}"
        self.taken.append(Intake(str(path), rows_in(watch, steps), n_known, said=said))
        if last is not None and steps.by_label:
            check_times(steps, last, closed=not self.reading.id and not waits(watch))
        return steps


def _take_forecasts(watch: Monitor, path: Path, reading: Reading, time: str) -> str:
    """Note the forecasts of a file, whose outcomes come later."""
    if form_of_lists(path, reading) is not None:
        read = open_forecasts(path, reading)
        labels = {name: read.by[name] for name in watch.settings.by}
        beside_lists: dict[str, Any] = {"weights": read.weights, "groups": read.groups}
        watch.predict(read.lists, read.ids, time=read.by[time], by=labels, **beside_lists)
        return f"{path}: {'; '.join(_taken(read.taken, time))}"
    rows = read_forecasts(path, reading)
    if has_positions(watch) and not reading.names:
        refuse_unnamed(rows.classes, n_classes(watch))
    forecasts_of(rows, **reading.scale).check()
    by = {name: rows.by[name] for name in watch.settings.by}
    beside: dict[str, Any] = {"weights": rows.weights, "groups": rows.groups, "classes": rows.classes}
    watch.predict(rows.p, rows.ids, time=rows.by[time], by=by, **beside, **dict[str, Any](reading.scale))
    return f"{path}: {'; '.join(_taken(rows.taken, time))}"


def _take_outcomes(watch: Monitor, path: Path, reading: Reading, time: str) -> str:
    """Take in outcomes of forecasts that were noted before."""
    read = read_outcomes(path, reading, time)
    listed = classes_listed(watch)
    if listed and watch.classes is None:
        y = read.called_like(listed, reading.merge_variants)
    else:
        y = read.among(watch.classes)
    watch.outcomes(read.ids, y, time=read.times)
    return f"{path}: {len(read.ids):,} outcomes"


def _acknowledged(state: Path, settings: Mapping[str, Any], why: str) -> tuple[Monitor, dict[str, Any]]:
    """The monitor of a state whose alarm is answered, with a new reference if one is stated."""
    watch = Monitor.load(state)
    if watch.alarm is None:
        raise InputError(
            "needs an alarm to answer", argument="acknowledge", found="there is none", source=str(state)
        )
    told = dict(settings)
    watch.acknowledge(told.pop("reference", None), why=why)
    return watch, told


def _check_settings(watch: Monitor, settings: Mapping[str, Any], state: Path) -> None:
    """Refuse settings that are stated and differ from those of the state."""
    before = watch.settings
    kept = {name: getattr(before, name) for name in ("ordered", "rule", "alpha", "false_alarms")}
    now = Monitor(**{**kept, **settings}).settings
    for name in settings:
        if getattr(now, name) != getattr(before, name):
            raise InputError(
                f"must be what the state was made with, {quote(getattr(before, name))}",
                argument=name,
                found=f"now it is {quote(getattr(now, name))}",
                source=str(state),
            )


def _taken(lines: Sequence[str], time: str) -> list[str]:
    """How columns were read; that of times is no subgroup."""
    return [f"times: {time}" if line == f"subgroups: {time}" else line for line in lines]


def files_of(given: Iterable[str]) -> list[Path]:
    """The files that are named, in the order of their names."""
    paths: list[Path] = []
    for text in given:
        named = files_named(text)
        paths += [] if named is None else named[0]
    return paths


def _digest(path: Path) -> str:
    """A hash of the content of a file."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
