"""`verax monitor`: whether a model is still good, file by file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import FAILED, MACHINE, app
from verax.cli.arguments import Typed
from verax.cli.options import reads_files
from verax.cli.output import Json, completed, show, to_json, verdict_lines
from verax.cli.presenting import log
from verax.cli.words import visible_json
from verax.errors import InputError
from verax.inputs.reading import OPTIONS, Reading, flag_of

if TYPE_CHECKING:
    from verax.cli.schemas.building import Fields, Kinds, Schema
    from verax.wings.monitor.cli.run import MonitorRun

_EXAMPLES = """Examples:
`verax monitor february.parquet --time day --reference monday.verax --state model.state`, then every day
with the next file `verax monitor march.parquet --state model.state --on-alarm 'cat > alarm.json'`;
`verax monitor 'feb*.parquet' --time day --state all.state --by site --html days.html`;
with outcomes that come later: `verax monitor today.csv --late --time day --id case --state late.state`, then
`verax monitor next.csv --outcomes known.csv --state late.state`"""
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
    state: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file that keeps the state between runs. It is made by the first run."
        ),
    ],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...", help=f"{options.FILES_HELP} None with --outcomes or --acknowledge alone."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column of times, which never go back. The first run must state it."
        ),
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
        typer.Option(
            metavar="NAME",
            rich_help_panel="Fine points",
            help="Time zone of the days, such as Europe/Berlin.",
        ),
    ] = None,
    false_alarms: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            rich_help_panel="Fine points",
            help="--alpha bounds: ever (default) or rate (per time step).",
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            metavar="STEPS",
            rich_help_panel="Fine points",
            help="For how many time steps ids of rows are remembered; by default for ever. It may change.",
        ),
    ] = None,
    acknowledge: Annotated[
        str | None,
        typer.Option(
            metavar="WHY",
            help="Answer the alarm: what was found or done. Evidence begins again, by --reference if given.",
        ),
    ] = None,
    on_alarm: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this shell command once for an alarm; it gets the JSON on standard input. "
            "If it fails, the next run repeats it. The state does not keep it.",
        ),
    ] = None,
    on_alarm_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            rich_help_panel="Fine points",
            help="Stop the command of --on-alarm after this time.",
        ),
    ] = 60.0,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be read and how many rows are new; write nothing."),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch losses and calibration over time, with valid alarms.

    A file of the same content is left out, and so are rows whose --id is known. Without --id, a time step is
    complete when a run ends. The state keeps all settings, so later runs need only a file and --state. Exit
    codes: 0 no alarm, 1 alarm, 2 refused, 3 system error, or the command of --on-alarm failed.
    """
    from verax.common.locking import locked
    from verax.wings.monitor.cli.run import MonitorRun, files_of
    from verax.wings.monitor.cli.telling import MARGIN, tell
    from verax.wings.monitor.monitor import begin_telling, save_locked
    from verax.wings.monitor.page import save_monitor_page
    from verax.wings.monitor.saving import ChangedError

    paths, late_paths = files_of(given or []), files_of(map(str, outcomes or []))
    if not given and not outcomes and acknowledge is None:
        raise InputError("A file must be given, or --outcomes", argument="path", kind="missing")
    if any(reading.cuts.values()):
        raise InputError(
            "must be columns of labels here: groups cut from numbers would differ from file to file",
            argument="by",
            found=f"it is {', '.join(reading.by or ())}",
        )
    if acknowledge is not None and not acknowledge.strip():
        raise InputError("must say what was found or done", argument="acknowledge")
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
        "memory": memory,
    }
    settings = {name: value for name, value in given_settings.items() if value is not None}
    said = _said(reading)

    def taken_in() -> tuple[MonitorRun, list[Path]]:
        reads = bool(paths or late_paths)
        run = MonitorRun.of(state, settings, said, time, why=acknowledge, reads=reads)
        if (late or outcomes) and not run.reading.id:
            raise InputError(
                "must name the column by which outcomes find their forecasts", argument="id", kind="missing"
            )
        return run, run.take(paths, late_paths, late=late)

    if dry_run:
        run, late_paths = taken_in()
        _show_dry_run(run, state, as_json=as_json)
        return
    tells = False
    with locked(state, "state"):
        for tries_left in reversed(range(_TRIES)):
            run, read = taken_in()
            tells = on_alarm is not None and begin_telling(run.monitor, on_alarm_limit + MARGIN)
            try:
                save_locked(run.monitor, state)
                break
            except ChangedError:
                # Another process was faster: its state is read again, and the files are taken in after it.
                if not tries_left:
                    raise
    watch, problem = run.monitor, ""
    result: dict[str, Any] = {
        "files": [str(path) for path in paths],
        "outcomes": [str(path) for path in read],
        "known": sum(each.before for each in run.taken),
        "known_rows": sum(each.known for each in run.taken),
        "state": str(state),
        **{name: value for name, value in watch.to_dict().items() if name != "verax"},
    }
    try:
        if html is not None:
            save_monitor_page(watch, html, source=", ".join(given or map(str, read)))
    finally:
        if tells:
            assert on_alarm is not None
            report = visible_json(to_json(completed(result, page=html)))
            problem = tell(on_alarm, report, state, result["alarm_number"], on_alarm_limit)
    show(result, _lines(run, state), as_json=as_json, page=html)
    if problem:
        log("error", problem, code=MACHINE)
        raise typer.Exit(MACHINE)
    if watch.alarm is not None:
        raise typer.Exit(FAILED)


def _said(reading: Reading) -> dict[str, Any]:
    """The fields of a reading that were stated, also where they are as by default."""
    given = set(reading.given())
    return {
        name: getattr(reading, name) for name in OPTIONS if name in given or Typed.is_typed(flag_of(name))
    }


def _lines(run: MonitorRun, state: Path) -> list[str]:
    """The report in words."""
    watch = run.monitor
    lines = verdict_lines(watch.verdict)
    if watch.alarm is not None:
        if len(watch.alarm.reasons) > 1:
            lines += [f"- {reason}" for reason in watch.alarm.reasons]
        answer = f"verax monitor --state {shlex.quote(str(state))} --acknowledge 'what was done'"
        lines.append(f"The alarm stays until it is acknowledged:\n  {answer}")
    lines += [*watch.cautions, *([watch.lateness] if watch.lateness else [])]
    lines += [f"{watch.acknowledged[-1]!r}."] if watch.acknowledged else []
    if watch.pending:
        lines.append(
            f"{watch.pending:,} forecasts have no outcome yet. Their estimated mean loss is "
            f"{watch.expected_loss:.4g}, assuming that calibration stays as it was."
        )
    lines += [*_known(run, "taken in before and left out"), *run.changed]
    said = [each.said for each in run.taken if each.said]
    more = len(said) - 1
    lines += [*said[:1], *([f"... and {more} more file{'s' if more > 1 else ''}"] if more > 0 else [])]
    return lines + ([repr(watch.history)] if watch.n_rows else [])


def _known(run: MonitorRun, what: str) -> list[str]:
    """The numbers of files, and of rows of other files, that were taken in before."""
    files, rows = sum(each.before for each in run.taken), sum(each.known for each in run.taken)
    lines = [f"{files} files were {what}."] if files > 1 else [f"1 file was {what}."] if files else []
    return lines + ([f"{rows:,} rows were {what}."] if rows > 1 else [f"1 row was {what}."] if rows else [])


def _show_dry_run(run: MonitorRun, state: Path, *, as_json: bool) -> None:
    """Print what a run would read, without the result."""
    would = [
        {"file": each.file, "new_rows": each.new, "known_rows": each.known, "known": each.before}
        for each in run.taken
    ]
    lines = []
    for each in run.taken:
        if each.before:
            lines.append(f"{each.file}: taken in before, would be left out.")
            continue
        known = f", {each.known:,} taken in before" if each.known else ""
        lines += [f"{each.file}: {each.new:,} new row{'s' * (each.new != 1)}{known}.", each.said]
    then = run.monitor.n_rows
    rows = (
        f"{run.n_before:,} rows with outcomes now, {then:,} after the run" if run.taken else "nothing to read"
    )
    lines += [*run.changed, f"{state}: {rows}. Nothing was written."]
    result = {"state": str(state), "dry_run": would, "n_rows_before": run.n_before, "n_rows": then}
    show(result, lines, as_json=as_json)


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
        TRUTH,
        either,
        listed,
        of_type,
        or_none,
        record,
    )
    from verax.wings.monitor.result import Acknowledgement, Alarm, MonitoredStep

    looked = record(file=TEXT, new_rows=COUNT, known_rows=COUNT, known=TRUTH)
    dry: Fields = {"state": TEXT, "dry_run": listed(looked), "n_rows_before": COUNT, "n_rows": COUNT}
    return [
        dry,
        {
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
            "alarm_number": or_none(COUNT),
            "acknowledged": listed(of_type(Acknowledgement)),
            "began": or_none(listed(TEXT, 3)),
            "cautions": TEXTS,
            "pending": COUNT,
            "expected_loss": NUMBER,
            "lateness": TEXT,
            "periods": listed(of_type(MonitoredStep)),
        },
    ]


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
    from verax.wings.monitor.result import Alarm, MonitoredEvent

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
        "acknowledgement": record(alarm=of_type(Alarm), why=TEXT, who=TEXT, when=TEXT),
        "alarm": record(
            time=TEXT, targets=listed(target), reasons=TEXTS, kind=TEXT, located=TRUTH, cautions=TEXTS
        ),
    }
