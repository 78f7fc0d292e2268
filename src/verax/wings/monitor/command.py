"""`verax monitor`: whether a model is still good, file by file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import FAILED, app
from verax.cli.options import reads_files
from verax.cli.output import Json, show, verdict_lines
from verax.errors import InputError
from verax.errors import show as quote
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds, Schema
    from verax.inputs.breakdown import Breakdown
    from verax.wings.monitor.monitor import Monitor

_EXAMPLES = """Examples:
`verax monitor february.parquet --time day --reference monday.verax --state model.state`, then every day
with the next file; `verax monitor 'feb*.parquet' --time day --state all.state --by site --html days.html`;
with outcomes that come later: `verax monitor today.csv --late --time day --id case --state late.state`, then
`verax monitor next.csv --outcomes known.csv --time day --id case --state late.state`"""
# How many bytes of a file are hashed at a time.
_BLOCK = 2**20
# Times that files are taken in again where other processes change a state in a store.
_TRIES = 5


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "weights_are": "weights are importance weights here",
        **dict.fromkeys(("raters", "rater_column", "label_column"), "a monitor needs one class per row"),
        **dict.fromkeys(("outcomes", "time"), ""),
        "horizon": "a monitor takes outcomes when they are known",
    },
)
def monitor(
    reading: Reading,
    time: Annotated[str, typer.Option(metavar="COLUMN", help="The column of times, which never go back.")],
    state: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file that keeps the state between runs. It is made by the first run."
        ),
    ],
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help=f"{options.FILES_HELP} None with --outcomes alone."),
    ] = None,
    outcomes: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A file with outcomes of forecasts, matched by --id; its --time column is their arrival. "
            "FILE then holds forecasts without outcomes. May be repeated.",
        ),
    ] = None,
    late: Annotated[
        bool,
        typer.Option("--late", help="FILE holds forecasts; outcomes come with --outcomes."),
    ] = False,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LOSS|FILE",
            help="Baseline loss: a card that `verax evaluate --save` wrote, or a number. "
            "Without it, only calibration is monitored.",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="The rule; by default rps for ordered classes, else brier."),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(metavar="LOSS", help="Tolerated rise of the mean loss; by default 0.")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Probability of a false alarm, or their rate per step; by default 0.05.",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Independent units: time (default), row or group."),
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN",
            help="Join times into steps: hour, day, week or a width. By default "
            "each time is a step, or each day if rows have times of their own.",
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Time zone of the days, such as Europe/Berlin."),
    ] = None,
    false_alarms: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="--alpha bounds: ever (default) or rate (per time step).",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch losses and calibration over time, with valid alarms.

    Each file is taken in once: a file of the same content is left out, and so are rows whose --id is known.
    Without --id, a time step is complete when a run ends, and later rows of it are refused. The state keeps
    the settings, which need not be given again. Exit code 1 means an alarm.
    """
    from verax.common.locking import locked
    from verax.wings.monitor.monitor import save_locked
    from verax.wings.monitor.page import save_monitor_page
    from verax.wings.monitor.saving import ChangedError

    paths, late_paths = _files(given or []), _files(map(str, outcomes or []))
    _check_late(reading, given, late=late, outcomes=outcomes)
    if any(reading.cuts.values()):
        raise InputError(
            "must be columns of labels here: groups cut from numbers would differ from file to file",
            argument="by",
            found=f"it is {', '.join(reading.by or ())}",
        )
    given_settings: dict[str, Any] = {
        "reference": None if reference is None else options.number_or_text(reference),
        "rule": rule,
        "tolerance": tolerance,
        "alpha": alpha,
        "ordered": reading.ordered or None,
        "unit": unit,
        "by": reading.by or None,
        "false_alarms": false_alarms,
        "period": None if period is None else options.number_or_text(period),
        "zone": zone,
    }
    told = {name: value for name, value in given_settings.items() if value is not None}
    with locked(state, "state"):
        for tries_left in reversed(range(_TRIES)):
            run = _Run.of(reading, state, told, time)
            read = run.take(paths, late_paths, late=late)
            try:
                save_locked(run.monitor, state)
                break
            except ChangedError:
                # Another process was faster: its state is read again, and the files are taken in after it.
                if not tries_left:
                    raise
    late_paths = read
    watch, known, said = run.monitor, run.known, run.said
    if html is not None:
        save_monitor_page(watch, html, source=", ".join(given or map(str, late_paths)))
    result: dict[str, Any] = {
        "files": [str(path) for path in paths],
        "outcomes": [str(path) for path in late_paths],
        "known": known,
        "known_rows": run.known_rows,
        "state": str(state),
        **{name: value for name, value in watch.to_dict().items() if name != "verax"},
    }
    lines = verdict_lines(watch.verdict)
    if watch.alarm is not None and len(watch.alarm.reasons) > 1:
        lines += [f"- {reason}" for reason in watch.alarm.reasons]
    lines += [*watch.cautions, *([watch.lateness] if watch.lateness else [])]
    if watch.pending:
        lines.append(
            f"{watch.pending:,} forecasts have no outcome yet. Their estimated mean loss is "
            f"{watch.expected_loss:.4g}, assuming that calibration stays as it was."
        )
    lines += [f"{known} files were taken in before and left out."] if known > 1 else []
    lines += ["1 file was taken in before and left out."] if known == 1 else []
    if run.known_rows:
        rows = "1 row was" if run.known_rows == 1 else f"{run.known_rows:,} rows were"
        lines.append(f"{rows} taken in before and left out.")
    more = len(said) - 1
    lines += [*said[:1], *([f"... and {more} more file{'s' if more > 1 else ''}"] if more > 0 else [])]
    lines += [repr(watch.history)] if watch.n_rows else []
    show(result, lines, as_json=as_json, page=html)
    if watch.alarm is not None:
        raise typer.Exit(FAILED)


@dataclass
class _Run:
    """A run: the files it takes in, and the state it continues.

    Attributes
    ----------
    monitor : Monitor
        The monitor.
    reading : Reading
        How files are read.
    time : str
        The column of times.
    known, known_rows : int
        The numbers of files, and of rows of other files, that were taken in before.
    said : list of str
        How columns were read.
    """

    monitor: Monitor
    reading: Reading
    time: str
    known: int = 0
    known_rows: int = 0
    said: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, reading: Reading, state: Path, told: dict[str, Any], time: str) -> _Run:
        """Go on from a state, or begin."""
        from verax.wings.monitor.monitor import Monitor

        watch = _continued(state, told) if state.exists() else Monitor(**told)
        return cls(watch, reading, time)

    def take(self, paths: list[Path], late_paths: list[Path], *, late: bool) -> list[Path]:
        """Take in all files; the files of late outcomes among them."""
        from functools import reduce

        from verax.inputs.breakdown import Breakdown
        from verax.scans.forms import form_of_lists
        from verax.wings.monitor.monitor import has_waited

        watch = self.monitor
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
                self.known += 1
                continue
            self._read_as_before()
            try:
                if path in late_paths:
                    self.said.append(_take_outcomes(watch, path, self.reading, self.time))
                elif late or late_paths:
                    self.said.append(_take_forecasts(watch, path, self.reading, self.time))
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
        from verax.cli.opening import Opened
        from verax.wings.monitor.intake import check_times
        from verax.wings.monitor.monitor import observe_new, waits

        watch, handle = self.monitor, Opened.of([str(path)], self.reading).handle
        steps, n_known = observe_new(watch, handle, self.time)
        self.known_rows += n_known
        self.said.append(f"{path}: {'; '.join(_taken(handle.taken, self.time))}")
        if last is not None and steps.by_label:
            check_times(steps, last, closed=not self.reading.id and not waits(watch))
        return steps


def _check_late(
    reading: Reading, given: list[str] | None, *, late: bool, outcomes: list[Path] | None
) -> None:
    """Refuse what does not go together, before anything is read."""
    if not given and not outcomes:
        raise InputError("A file must be given, or --outcomes", argument="path", kind="missing")
    if (late or outcomes) and not reading.id:
        raise InputError(
            "must name the column by which outcomes find their forecasts", argument="id", kind="missing"
        )


def _take_forecasts(watch: Monitor, path: Path, reading: Reading, time: str) -> str:
    """Note the forecasts of a file, whose outcomes come later."""
    from verax.files.outcomes_beside import read_forecasts
    from verax.files.source import forecasts_of
    from verax.scans.forms import form_of_lists
    from verax.wings.lists.files.opening import open_forecasts

    if form_of_lists(path, reading) is not None:
        read = open_forecasts(path, reading)
        labels = {name: read.by[name] for name in watch.settings.by}
        beside_lists: dict[str, Any] = {"weights": read.weights, "groups": read.groups}
        watch.predict(read.lists, read.ids, time=read.by[time], by=labels, **beside_lists)
        return f"{path}: {'; '.join(_taken(read.taken, time))}"
    rows = read_forecasts(path, reading)
    forecasts_of(rows, **reading.scale).check()
    by = {name: rows.by[name] for name in watch.settings.by}
    beside: dict[str, Any] = {"weights": rows.weights, "groups": rows.groups, "classes": rows.classes}
    watch.predict(rows.p, rows.ids, time=rows.by[time], by=by, **beside, **dict[str, Any](reading.scale))
    return f"{path}: {'; '.join(_taken(rows.taken, time))}"


def _take_outcomes(watch: Monitor, path: Path, reading: Reading, time: str) -> str:
    """Take in outcomes of forecasts that were noted before."""
    from verax.files.outcomes_beside import read_outcomes
    from verax.wings.monitor.monitor import classes_listed

    read = read_outcomes(path, reading, time)
    listed = classes_listed(watch)
    if listed and watch.classes is None:
        y = read.called_like(listed, reading.merge_variants)
    else:
        y = read.among(watch.classes)
    watch.outcomes(read.ids, y, time=read.times)
    return f"{path}: {len(read.ids):,} outcomes"


def _continued(state: Path, told: dict[str, Any]) -> Monitor:
    """The monitor of an earlier run, whose settings must be those that are given now."""
    from verax.wings.monitor.monitor import Monitor

    watch = Monitor.load(state)
    before = watch.settings
    kept = {name: getattr(before, name) for name in ("ordered", "rule", "alpha", "false_alarms")}
    now = Monitor(**{**kept, **told}).settings
    for name in told:
        if getattr(now, name) != getattr(before, name):
            raise InputError(
                f"must be what the state was made with, {quote(getattr(before, name))}",
                argument=name,
                found=f"now it is {quote(getattr(now, name))}",
                source=str(state),
            )
    return watch


def _taken(lines: Sequence[str], time: str) -> list[str]:
    """How columns were read; that of times is no subgroup."""
    return [f"times: {time}" if line == f"subgroups: {time}" else line for line in lines]


def _files(given: Iterable[str]) -> list[Path]:
    """The files that are named, in the order of their names."""
    from verax.common.paths import files_named

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


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import (
        COUNT,
        FINITE,
        NUMBER,
        PATH,
        SHARE,
        TEXT,
        TEXTS,
        TOLD,
        either,
        listed,
        of_type,
        or_none,
    )
    from verax.wings.monitor.result import Alarm, MonitoredStep

    return {
        **TOLD,
        "files": TEXTS,
        "outcomes": TEXTS,
        "known": COUNT,
        "known_rows": COUNT,
        "state": TEXT,
        "html": PATH,
        "rule": TEXT,
        "reference": NUMBER,
        "tolerance": FINITE,
        "alpha": SHARE,
        "false_alarms": TEXT,
        "unit": TEXT,
        "period": or_none(either(TEXT, FINITE)),
        "zone": or_none(TEXT),
        "n_rows": COUNT,
        "evidence": NUMBER,
        "threshold": FINITE,
        "alarm": or_none(of_type(Alarm)),
        "began": or_none(listed(TEXT, 3)),
        "cautions": TEXTS,
        "pending": COUNT,
        "expected_loss": NUMBER,
        "lateness": TEXT,
        "periods": listed(of_type(MonitoredStep)),
    }


def definitions() -> dict[str, Schema]:
    """Schemas of parts of results that fields do not tell."""
    from verax.cli.schemas.building import (
        COUNT,
        NUMBER,
        TEXT,
        TEXTS,
        TRUTH,
        listed,
        mapped,
        of_type,
        or_none,
        record,
    )
    from verax.wings.monitor.result import MonitoredEvent

    target = record(by=or_none(TEXT), label=or_none(TEXT), claim=TEXT)
    return {
        "monitored_step": record(
            time=TEXT,
            n_rows=COUNT,
            loss=NUMBER,
            low=NUMBER,
            high=NUMBER,
            expected_loss=NUMBER,
            evidence=NUMBER,
            events=mapped(of_type(MonitoredEvent)),
        ),
        "alarm": record(
            time=TEXT, targets=listed(target), reasons=TEXTS, kind=TEXT, located=TRUTH, cautions=TEXTS
        ),
    }
