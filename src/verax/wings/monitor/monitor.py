"""`vx.Monitor`: whether a model is still as good as it was, and its probabilities still right."""

from __future__ import annotations

import getpass
import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, Literal, Self, TypeVar, Unpack

from verax._version import __version__
from verax.analyses.cards.scorecard import Scorecard
from verax.common.checks import check_count, is_called
from verax.common.locking import locked
from verax.common.paths import as_path
from verax.errors import InputError, show
from verax.inference.findings import Finding, WithVerdict
from verax.inputs.breakdown import Breakdown
from verax.inputs.handles import Handle
from verax.inputs.options import RowOptions, reads
from verax.inputs.reading import Reading
from verax.scores.base import Rule
from verax.scores.registry import name_of
from verax.wings.monitor.kept import kept_reading
from verax.wings.monitor.late import note_forecasts, take_outcomes
from verax.wings.monitor.periods import loss_ratio
from verax.wings.monitor.result import Acknowledgement, Alarm, MonitorHistory
from verax.wings.monitor.rows import observed, take_in, update
from verax.wings.monitor.saving import SavedFile, read_saved, save_over
from verax.wings.monitor.settings import Settings
from verax.wings.monitor.state import State
from verax.wings.monitor.steps import Step, Unit, scopes_of
from verax.wings.monitor.wording import (
    cautions_of,
    evidence_of,
    findings_of,
    lateness_of,
    onset_at,
)

F = TypeVar("F", bound=Callable[..., Any])


def _in_turn(method: F) -> F:
    """Make a method that threads call one at a time."""

    @wraps(method)
    def taking_turns(self: Monitor, *args: Any, **kwargs: Any) -> Any:
        with self._turn:
            return method(self, *args, **kwargs)

    return taking_turns  # type: ignore[return-value]


class Monitor(WithVerdict):
    """Watch the losses and the calibration of a model over time, with a bounded false-alarm probability.

    Every batch is a bet against two claims: the mean loss is at most `reference` plus `tolerance`, and the
    probabilities are calibrated. You may look at the result as often as you like. With `false_alarms="ever"`,
    the probability of ever raising an alarm while both claims are true is at most `alpha`. With
    `false_alarms="rate"`, false alarms are at least 1 / `alpha` time steps apart on average, and late changes
    are detected sooner.

    The first claim is about the expected loss given all rows before. The second needs no reference: each
    event happens with its stated probability.

    Threads may share a monitor; they take turns. A copy is independent of the original.

    Parameters
    ----------
    reference : float or Scorecard or path, optional
        The baseline mean loss: a known number, or a card (or the file of a saved one). From a card, an
        upper confidence bound is used, whose error is part of `alpha`; its cautions are in `cautions`.
        Without a reference only calibration is monitored.
    rule : Rule or str, optional
        The rule that scores rows; by default `rps` for ordered classes, else `brier`. Losses of unbounded
        rules are capped at ten times the tolerated mean, which can only delay an alarm.
    tolerance : float, default 0
        How much the mean loss may rise above the reference without an alarm.
    alpha : float, default 0.05
        The probability of ever raising a false alarm, or the rate of them per time step.
    ordered : bool, default False
        Whether the classes are ordered, so that events are thresholds.
    unit : {"row", "group", "time"}, optional
        Units that are independent given the past: rows, groups of rows (patients), or whole time steps, whose
        rows may depend on each other in any way. By default time steps.
    by : str or sequence of str, default ()
        Names of subgroups whose calibration is monitored as well.
    false_alarms : {"ever", "rate"}, default "ever"
        What `alpha` bounds.
    period : {"hour", "day", "week"} or float, optional
        How times are joined into time steps: periods of the calendar, or the width of a span of numbers. A
        step then counts when a later one begins. By default each distinct time is a step, except that dates
        and datetimes most of which belong to one row are joined into days.
    zone : str, optional
        The time zone of the calendar, such as "Europe/Berlin", if times are in UTC. By default days begin
        at midnight of the times as they are.
    memory : int, optional
        For how many time steps names of rows are remembered, by which rows that come again are left out. By
        default for ever; each takes 16 bytes of a saved state.

    See Also
    --------
    ConfidenceSequence : Compare two models while the data come in.
    evaluate : The card of a batch, which can serve as the reference.

    References
    ----------
    de la Pena (1999), doi:10.1214/aop/1022677271 and Ramdas, Ruf, Larsson and Koolen (2020),
    arXiv:2009.03167, for bets on symmetric means; Waudby-Smith and Ramdas (2024),
    doi:10.1093/jrsssb/qkad009, for bets on bounded ones; Vovk and Wang (2021),
    doi:10.1214/20-AOS2020, for e-values; Shin, Ramdas and Rinaldo (2024), arXiv:2203.03532, for detectors
    that restart.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> monitor = vx.Monitor(0.40, rule="brier")
    >>> for day in range(40):
    ...     p = rng.uniform(0.1, 0.9, 200)
    ...     truth = p if day < 20 else p**2
    ...     alarm = monitor.update(rng.random(200) < truth, p, time=day)
    ...     if alarm is not None:
    ...         break
    >>> day, monitor.began
    (33, (20, 20, 20))
    """

    def __init__(
        self,
        reference: float | Scorecard | str | Path | None = None,
        *,
        rule: Rule | str | None = None,
        tolerance: float = 0.0,
        alpha: float = 0.05,
        ordered: bool = False,
        unit: Unit | None = None,
        by: str | Sequence[str] = (),
        false_alarms: Literal["ever", "rate"] = "ever",
        period: Literal["hour", "day", "week"] | float | None = None,
        zone: str | None = None,
        memory: int | None = None,
    ) -> None:
        # One thread takes in rows at a time.
        self._turn = RLock()
        # The file of the state, as last loaded or saved.
        self._file: SavedFile | None = None
        self._state = State(
            Settings.of(
                reference,
                rule=rule,
                tolerance=tolerance,
                alpha=alpha,
                ordered=ordered,
                unit=unit,
                by=by,
                false_alarms=false_alarms,
                period=period,
                zone=zone,
                memory=memory,
            )
        )

    @property
    def settings(self) -> Settings:
        """The settings of the monitor: rule, reference, tolerance, alpha and others."""
        return self._state.settings

    @property
    def rule(self) -> Rule:
        """The rule that scores rows."""
        return self.settings.rule

    @property
    def unit(self) -> Unit:
        """The units that are independent given the past."""
        return self.settings.unit

    @property
    def classes(self) -> tuple[Hashable, ...] | None:
        """The names of the classes, if they have any."""
        return None if self._state.kind is None else self._state.kind.classes

    # ---- rows come in --------------------------------------------------------------------------------

    @reads
    @_in_turn
    def observe(
        self,
        y: object,
        p: object = None,
        *,
        time: Any,
        by: Mapping[str, Any] | None = None,
        **read: Unpack[RowOptions],
    ) -> Breakdown:
        """Sum up rows without taking them in: sums of shards of a time step merge, and `add` takes them in.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, K), or Handle
            Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
            `scan` has opened, in place of both `y` and `p`, with the time among the columns of `by=`.
        p
        time : object
            The time of the rows: one for all or one for each; for a handle the name of the column.
        by : mapping of str to array_like of shape (N,), optional
            Labels of subgroups, under the names in the monitor's `by`.
        **read

        Returns
        -------
        Breakdown
            Sums by time step, with `merge`, `to_bytes` and `from_bytes`.
        """
        return observed(self._state, y, p, time, by, read, named=False)[0]

    @reads
    @_in_turn
    def update(
        self,
        y: object,
        p: object = None,
        *,
        time: Any,
        by: Mapping[str, Any] | None = None,
        ids: object | None = None,
        **read: Unpack[RowOptions],
    ) -> Alarm | None:
        """Take in rows with known outcomes, in order of time, and return the alarm if there is one.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, K), or Handle
            Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
            `scan` has opened, in place of both `y` and `p`, with the time among the columns of `by=`.
        p
        time : object
            The time of the rows: one for all or one for each; for a handle the name of the column. Times are
            numbers, texts, dates or datetimes, and never go back.
        by : mapping of str to array_like of shape (N,), optional
            Labels of subgroups, under the names in the monitor's `by`.
        ids : array_like of shape (N,), optional
            Names of the rows. Rows that were taken in before are ignored; if their outcome differs, that is
            an error. A handle that was opened with `id=` has its own.
        **read

        Returns
        -------
        Alarm or None
            The alarm, as in `alarm`.
        """
        update(self._state, y, p, time, by, ids, read)
        return self.alarm

    @_in_turn
    def add(self, steps: Breakdown) -> Alarm | None:
        """Take in the sums of one or more time steps, from `observe`.

        Parameters
        ----------
        steps : Breakdown
            The sums; those of shards of one step are merged first.

        Returns
        -------
        Alarm or None
            The alarm, as in `alarm`.
        """
        if not isinstance(steps, Breakdown):
            raise InputError("must be what `observe` gave", argument="steps", kind="type", found=show(steps))
        take_in(self._state, steps)
        return self.alarm

    # ---- outcomes that come late ---------------------------------------------------------------------

    @reads
    @_in_turn
    def predict(
        self,
        p: object,
        ids: object,
        *,
        time: Any = None,
        by: Mapping[str, Any] | None = None,
        **read: Unpack[RowOptions],
    ) -> None:
        """Note forecasts before their outcomes are known.

        Forecasts that were noted before are ignored; a different forecast of the same row is an error.

        Parameters
        ----------
        p : array_like of shape (N, K) or (N,), or TopLists
            Forecasts: probabilities of the K classes, or lists of the most likely ones.
        ids : array_like of shape (N,)
            Names of the rows, by which `outcomes` finds them.
        time : object, optional
            When the forecasts were made: one time for all or one for each. `lateness` uses it.
        by : mapping of str to array_like of shape (N,), optional
            Labels of subgroups, under the names in the monitor's `by`.
        **read
        """
        note_forecasts(self._state, p, ids, time, by, read)

    @_in_turn
    def outcomes(
        self,
        ids: object,
        y: object,
        *,
        time: Any,
        raters: Literal["shares", "counts", "columns"] | None = None,
    ) -> Alarm | None:
        """Take in outcomes of forecasts that `predict` noted, at the time of the outcomes.

        This is valid if the delay of an outcome does not depend on the outcome. `lateness` checks this.

        Parameters
        ----------
        ids : array_like of shape (N,)
            Names of the rows. Repeated outcomes are ignored; different ones are an error.
        y : array_like of shape (N,) or (N, K)
            Outcomes: class positions, labels found in the classes, one-hot rows, or shares of classes (see
            `raters`).
        time : object
            When the outcomes came: one time for all or one for each.
        raters : {"shares", "counts", "columns"}, optional
            The form of a 2-D `y` if several raters labelled each row, as in `update`.

        Returns
        -------
        Alarm or None
            The alarm, as in `alarm`.
        """
        take_outcomes(self._state, ids, y, time, raters)
        return self.alarm

    @property
    def pending(self) -> int:
        """The number of forecasts without an outcome."""
        return self._state.pending.n

    @property
    def expected_loss(self) -> float:
        """An estimate of the mean loss of forecasts without known outcomes.

        It is the loss that these forecasts expect of themselves, times the ratio of actual to expected loss
        so far. It assumes that calibration does not change. NaN if nothing is pending.
        """
        pending = self._state.pending
        if not pending.n:
            return math.nan
        ratio = loss_ratio(self._state.periods)
        return pending.expected * (1.0 if math.isnan(ratio) else ratio)

    @property
    def lateness(self) -> str:
        """A caution if losses of late outcomes differ from those of early ones; else empty."""
        return lateness_of(self._state.pending.lateness)

    # ---- results -------------------------------------------------------------------------------------

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm, if there was one. It stays until `acknowledge`."""
        return self._state.alarm

    @property
    def began(self) -> tuple[Any, Any, Any] | None:
        """When the change began: the likeliest time step, and the earliest and latest plausible one."""
        return onset_at(self._state)

    @property
    def evidence(self) -> float:
        """The evidence so far that something has changed: an alarm is raised at `threshold`."""
        return evidence_of(self._state)

    @property
    def threshold(self) -> float:
        """The evidence that raises an alarm: 1 / `alpha`, after subtracting the error of the reference."""
        return 1 / self.settings.level

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return sum(period.whole.n_rows for period in self._state.periods)

    @property
    def history(self) -> MonitorHistory:
        """Loss, calibration and evidence of each time step."""
        return self._state.history()

    def joined_history(self, most: int = 60) -> MonitorHistory:
        """The history with neighbouring time steps joined, as figures show it.

        Parameters
        ----------
        most : int, default 60
            The largest number of steps.

        Returns
        -------
        MonitorHistory
            The steps; each has the time of its first.
        """
        check_count("most", most)
        return self._state.history(most)

    def _findings(self) -> list[Finding]:
        return findings_of(self._state)

    def _tested_together(self) -> str:
        return "All claims share the probability of a false alarm."

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions about the reference, the time steps and the alarm."""
        return cautions_of(self._state)

    @_in_turn
    def acknowledge(
        self,
        reference: float | Scorecard | str | Path | None = None,
        *,
        why: str = "",
        who: str | None = None,
    ) -> None:
        """Answer the alarm and restart: history stays, bets are reset.

        Each restart has its own `alpha`. The answer stays in `acknowledged`.

        Parameters
        ----------
        reference : float or Scorecard or path, optional
            A new reference; by default the old one.
        why : str, default ""
            What was found or done.
        who : str, optional
            Who answers; by default the user of this process.
        """
        for name, text in (("why", why), ("who", who)):
            if not isinstance(text, str) and (name == "why" or text is not None):
                raise InputError("must be a text", argument=name, kind="type", found=f"it is {show(text)}")
        state = self._state
        if reference is not None:
            state.settings = state.settings.with_reference(reference)
        state.acknowledge(why, user_name() if who is None else who)

    @property
    def acknowledged(self) -> tuple[Acknowledgement, ...]:
        """The alarms that were answered: by whom, when and why."""
        return tuple(self._state.acknowledged)

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean loss of each time step and the evidence below it.

        Parameters
        ----------
        ax : sequence of two Axes, optional
            Where to draw.

        Returns
        -------
        matplotlib.figure.Figure
            The losses above the evidence.
        """
        from verax.display.figures import Sheet
        from verax.display.plots import draw

        figures = self.joined_history()._figures(self.began)
        return draw(Sheet(figures, 1, (6.5, 2.15), shared="x", key="above"), ax)

    def to_dict(self) -> dict[str, Any]:
        """The state of the monitor as strict JSON."""
        settings, began, alarm, expected = self.settings, self.began, self.alarm, self.expected_loss
        return {
            "verax": __version__,
            "rule": repr(settings.rule),
            "reference": settings.reference,
            "tolerance": settings.tolerance,
            "alpha": settings.alpha,
            "false_alarms": settings.false_alarms,
            "unit": settings.unit,
            "period": settings.period,
            "zone": settings.zone,
            "n_rows": self.n_rows,
            "evidence": self.evidence,
            "threshold": self.threshold,
            "alarm": None if alarm is None else alarm.to_dict(),
            "alarm_number": None if alarm is None else alarm_number(self),
            "acknowledged": [each.to_dict() for each in self.acknowledged],
            "began": None if began is None else [str(time) for time in began],
            **self._concluded(),
            "cautions": list(self.cautions),
            "pending": self.pending,
            "expected_loss": None if math.isnan(expected) else expected,
            "lateness": self.lateness,
            "periods": [line.to_dict() for line in self.history.lines],
        }

    def __repr__(self) -> str:
        return f"verax monitor of {name_of(self.rule)}: {self.verdict}"

    # ---- state ---------------------------------------------------------------------------------------

    def knows_file(self, digest: str) -> bool:
        """Whether a file with this content was taken in before.

        Parameters
        ----------
        digest : str
            A hash of its content.

        Returns
        -------
        bool
            Whether it was.
        """
        return is_called(digest, *self._state.files)

    def note_file(self, digest: str, name: str) -> None:
        """Note that a file was taken in.

        Parameters
        ----------
        digest : str
            A hash of its content.
        name : str
            Its name.
        """
        for argument, value in (("digest", digest), ("name", name)):
            if not isinstance(value, str):
                raise InputError(f"must be a text, not {show(value)}", argument=argument, kind="type")
        self._state.files[digest] = name

    @_in_turn
    def save(self, path: str | Path) -> None:
        """Write the state to a file: whole or not at all.

        If another process has changed the file since this monitor was loaded from it or saved to it, saving
        is refused, because the rows of the other process would be lost. `verax monitor` waits instead.

        Parameters
        ----------
        path : str or path
            The file. An existing one is replaced when the new one is complete.
        """
        path = as_path(path)
        with locked(path):
            self._file = save_over(path, self.to_bytes(), self._file)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Monitor
            The saved monitor.
        """
        content, file = read_saved(as_path(path))
        try:
            monitor = cls.from_bytes(content)
        except InputError as error:
            raise error.replace(source=str(as_path(path))) from None
        monitor._file = file
        return monitor

    @_in_turn
    def to_bytes(self) -> bytes:
        """The state as bytes that `from_bytes` reads, without pickle."""
        return self._state.to_bytes()

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Copy the state, for copies and pickles."""
        return type(self).from_bytes, (self.to_bytes(),)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The monitor that `to_bytes` wrote; other bytes are refused.

        Parameters
        ----------
        data : bytes
            The result of `to_bytes`.

        Returns
        -------
        Monitor
            The saved monitor.
        """
        monitor = cls()
        monitor._state = State.from_bytes(data)
        return monitor


def save_locked(monitor: Monitor, path: Path) -> None:
    """Write the state to a file that this process has locked; a monitor that began makes a new one."""
    monitor._file = save_over(path, monitor.to_bytes(), monitor._file, new=monitor._file is None)


def alarm_number(monitor: Monitor) -> int:
    """The number of the alarm in this state, counted from 1: the same number is the same alarm."""
    return 1 + len(monitor._state.acknowledged)


def user_name() -> str:
    """The user of this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        # A container may run under a number without a name.
        return "unknown"


def set_memory(monitor: Monitor, memory: int) -> None:
    """Remember names of rows for another number of time steps from now on."""
    check_count("memory", memory)
    monitor._state.settings = replace(monitor._state.settings, memory=memory)


def keep_reading(monitor: Monitor, said: Mapping[str, Any], time: str | None, state: Path) -> list[str]:
    """Note how files are read from now on; what has changed, in words."""
    monitor._state.kept, lines = kept_reading(monitor._state.kept, said, time, str(state))
    return lines


def how_read(monitor: Monitor) -> tuple[Reading, str]:
    """How files are read, and the column of times."""
    kept = monitor._state.kept
    assert kept is not None
    return kept.reading, kept.time


def begin_telling(monitor: Monitor, seconds: float) -> bool:
    """Whether this process is to tell the alarm, which others then leave to it for these seconds."""
    state, now = monitor._state, time.time()
    if state.alarm is None or state.told or now < state.telling_until:
        return False
    state.telling_until = now + seconds
    return True


def end_telling(monitor: Monitor, number: int, *, told: bool) -> None:
    """Note whether an alarm was told, unless it was answered in the meantime."""
    state = monitor._state
    if state.alarm is not None and alarm_number(monitor) == number:
        state.told, state.telling_until = told, 0.0


def name_classes(monitor: Monitor, names: Sequence[Hashable] | None) -> None:
    """Give the names that are stated to classes that had positions so far."""
    monitor._state.name_classes(names)


def has_positions(monitor: Monitor) -> bool:
    """Whether the classes have positions only, whose names are to be stated."""
    kind = monitor._state.kind
    return kind is not None and kind.classes is None and not kind.lists


def n_classes(monitor: Monitor) -> int:
    """The number of classes; 0 before the first rows."""
    return 0 if monitor._state.kind is None else monitor._state.kind.n_classes


def rows_in(monitor: Monitor, steps: Breakdown) -> int:
    """The number of rows in sums of time steps."""
    unit = monitor.settings.unit
    return sum(Step.of(next(iter(scopes_of(sums)))[1], unit).n_rows for sums in steps.by_label.values())


def observe_new(monitor: Monitor, handle: Handle, time: str) -> tuple[Breakdown, int]:
    """Sum the new rows of a handle and note their names; the second value is the number of known rows."""
    steps, names, n_known = observed(monitor._state, handle, None, time, None, {}, named=True)
    if names is not None:
        monitor._state.pending.note_hashes(names.names, names.outcomes)
    return steps, n_known


def waits(monitor: Monitor) -> bool:
    """Whether the last time step waits until it is over."""
    return monitor._state.open is not None


def has_waited(monitor: Monitor) -> bool:
    """Whether the monitor knows rows by name, such as forecasts noted before their outcomes."""
    return monitor._state.pending.begun


def classes_listed(monitor: Monitor) -> tuple[Hashable, ...] | None:
    """The classes named by lists without an outcome; None if forecasts are distributions."""
    state = monitor._state
    return state.pending.listed if state.kind is not None and state.kind.lists else None
