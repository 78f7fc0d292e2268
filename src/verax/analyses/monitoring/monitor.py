"""`vx.Monitor`: whether a model is still as good as it was, and its probabilities still right."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np

from verax._version import __version__
from verax.analyses.cards.saved import load as load_card
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.monitoring.evidence import OF_LOSS, Ledger
from verax.analyses.monitoring.pending import Pending
from verax.analyses.monitoring.result import Alarm, History, Period, onset_of, since_onset
from verax.analyses.monitoring.steps import (
    TOP,
    Step,
    StepRecipe,
    Tolerated,
    events_of,
    expected_losses,
    scopes_of,
)
from verax.common.checks import check_choice, check_flag, check_number
from verax.common.packing import dump, load, refusing
from verax.common.paths import as_path, check_regular
from verax.display.writing import written
from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import to_array, to_host
from verax.inputs.breakdown import Breakdown
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Part
from verax.inputs.memory import open_rows
from verax.inputs.options import Form, Reading, reads
from verax.scores.base import Rule
from verax.scores.registry import name_of, parse

_KIND, _VERSION = "monitor", 1
# Losses of rules without an upper bound count at most this many times the tolerated mean.
_LARGEST = 10.0
TIME = "time"
Unit = Literal["row", "group", "time"]


class Monitor:
    """Watch the losses and the calibration of a model over time, with alarms that keep their word.

    Every batch is a bet against two claims: the mean loss is at most `reference` plus `tolerance`, and the
    probabilities are calibrated. You may look at the result as often as you like. With `false_alarms="ever"`,
    the probability of ever raising an alarm while both claims are true is at most `alpha`. With
    `false_alarms="rate"`, false alarms are at least 1 / `alpha` time steps apart on average, and late changes
    are detected sooner.

    The first claim is about the expected loss given all rows before. The second needs no reference: each
    event happens with its stated probability.

    Parameters
    ----------
    reference : float or Scorecard or path, optional
        The mean loss of good times: a known number, or a card (or the file of a saved one) of which the upper
        end of the confidence interval is used. The error of that interval is part of `alpha`. Without it only
        calibration is monitored.
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
        What is independent given the past: single rows, groups of rows (patients), or whole time steps, whose
        rows may depend on each other in any way. By default groups if there are any; else time steps if rows
        have weights; else rows.
    by : str or sequence of str, default ()
        Names of subgroups that are monitored as well.
    false_alarms : {"ever", "rate"}, default "ever"
        What `alpha` bounds.

    See Also
    --------
    ConfidenceSequence : Compare two models while the data come in.
    evaluate : The card of a batch, which can serve as the reference.

    References
    ----------
    Waudby-Smith and Ramdas (2024), doi:10.1093/jrsssb/qkad009, for betting; Vovk and Wang (2021),
    doi:10.1214/20-AOS2020, for e-values; Shin, Ramdas and Rinaldo (2024), arXiv:2203.03532, for detectors
    that restart.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> monitor = vx.Monitor(0.40, rule="brier")
    >>> for day in range(30):
    ...     p = rng.uniform(0.1, 0.9, 200)
    ...     truth = p if day < 20 else p**2
    ...     alarm = monitor.update(rng.random(200) < truth, p, time=day)
    ...     if alarm is not None:
    ...         break
    >>> day, monitor.began
    (23, (20, 20, 20))
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
    ) -> None:
        check_choice("unit", unit, (None, "row", "group", "time"))
        check_choice("false_alarms", false_alarms, ("ever", "rate"))
        self.ordered: bool = check_flag("ordered", ordered)
        self.rule: Rule = parse(rule if rule is not None else "rps" if ordered else "brier")
        self.alpha: float = check_number("alpha", alpha, "must be between 0 and 1", lambda a: 0 < a < 1)
        self.tolerance: float = check_number(
            "tolerance", tolerance, "must be a number of at least 0", lambda d: 0 <= d < math.inf
        )
        self.false_alarms: Literal["ever", "rate"] = false_alarms
        self.by: tuple[str, ...] = (by,) if isinstance(by, str) else tuple(by)
        # What is left of alpha when the reference has its part.
        self.reference, self._level = self._checked_reference(reference)
        self.unit: Unit | None = unit
        self.classes: tuple[Hashable, ...] | None = None
        self._n_classes = 0
        self._lists = False
        self._ledger: Ledger | None = None
        self._periods: list[Period] = []
        self._alarm: Alarm | None = None
        self._pending = Pending()
        self._files: dict[str, str] = {}

    def _checked_reference(self, given: Any) -> tuple[float | None, float]:
        """The upper end of the reference, and the level that is left for bets."""
        if given is None:
            return None, self.alpha
        if isinstance(given, (str, Path)):
            given = load_card(given)
        if not isinstance(given, Scorecard):
            finite = "must be a positive number, a card, or the file of a saved card"
            return check_number("reference", given, finite, lambda m: 0 < m < math.inf), self.alpha
        if self.rule not in given.tally.rules:
            raise InputError(
                f"must have {name_of(self.rule)}, the rule that is monitored",
                argument="reference",
                found=f"the card has {join(given.scores)}",
                remedies=[passing("with one of these", rule=...)],
            )
        interval = given.scores[name_of(self.rule)].interval
        if not interval.defined or not 0 < interval.high < math.inf:
            raise InputError(
                "must have a confidence interval with a finite, positive upper end",
                argument="reference",
                found=interval.caution or f"the interval is {interval:.4g}",
            )
        missed = (1 - given.resampling.confidence) / 2
        if self.false_alarms == "rate":
            return interval.high, self.alpha
        if missed >= self.alpha:
            raise InputError(
                "must be larger than the error of the reference interval",
                argument="alpha",
                found=f"that is {missed:g} on the upper side, and alpha is {self.alpha:g}",
                remedies=[Remedy("Evaluate the reference with a higher `confidence`.")],
            )
        return interval.high, self.alpha - missed

    @property
    def tolerated(self) -> float | None:
        """The mean loss above which bets gain: reference plus tolerance."""
        return None if self.reference is None else self.reference + self.tolerance

    def _bounds(self, n_classes: int) -> Tolerated | None:
        if self.reference is None:
            return None
        low, high = self.rule.bounds(n_classes)
        mean = self.reference + self.tolerance
        if mean <= low:
            raise InputError(
                f"must be above {low:g}, the smallest loss by {name_of(self.rule)}",
                argument="reference",
                found=f"with the tolerance it is {mean:g}",
            )
        return Tolerated(mean, low, high if math.isfinite(high) else low + _LARGEST * (mean - low))

    # ---- rows come in --------------------------------------------------------------------------------

    @reads
    def observe(
        self,
        y: object,
        p: object = None,
        *,
        time: Any,
        by: Mapping[str, Any] | None = None,
        **read: Unpack[Reading],
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
            Labels of subgroups, by the names that the monitor was told.
        **read

        Returns
        -------
        Breakdown
            Sums by time step, with `merge`, `to_bytes` and `from_bytes`.
        """
        handle = open_rows(y, p, single=True, ordered=self.ordered or self.rule.ordinal, **read)
        model = handle.one_model()
        self._check_rows(handle)
        in_memory = handle.kept
        if in_memory is None:
            column = self._column_of(handle, time)
        else:
            column = TIME
            in_memory = replace(in_memory, by=self._labels(in_memory, time, by))
            if self.unit is None:
                self._choose_unit(in_memory)
        if self.unit is None:
            self.unit = "row"
        recipe = StepRecipe(
            model,
            self.rule,
            self.ordered,
            self._bounds(handle.n_classes),
            column,
            self.by,
            self.unit == "group",
        )
        if in_memory is None:
            found: Breakdown = handle.summarise({"steps": recipe})["steps"]
        else:
            self._check_unit(in_memory)
            found = recipe.take(in_memory)
        return found

    def _check_rows(self, handle: Handle) -> None:
        """Refuse rows of another kind than those before; note the kind of the first."""
        names = None if handle.classes is None else tuple(handle.classes)
        if not self._n_classes:
            self._n_classes, self._lists, self.classes = handle.n_classes, handle.lists, names
            if self.ordered and handle.lists:
                raise InputError("does not apply to top lists", argument="ordered")
        if (handle.n_classes, handle.lists) != (self._n_classes, self._lists) or (
            names is not None and self.classes is not None and names != self.classes
        ):
            before = join(map(show, self.classes)) if self.classes else f"{self._n_classes:,}"
            now = join(map(show, names)) if names else f"{handle.n_classes:,}"
            raise InputError(
                "must have the classes that the monitor began with",
                argument="classes",
                kind="label",
                found=f"these were {before}; now there are {now}",
                remedies=[Remedy("Begin a new monitor, with a reference that knows the new classes.")],
            )

    def _column_of(self, handle: Handle, time: Any) -> str:
        missing = [name for name in (time, *self.by) if name not in handle.by]
        if missing:
            raise InputError(
                "must be a column that `scan` was told of",
                argument="time" if missing[0] == time else "by",
                kind="missing",
                found=f"there is no {show(missing[0])}",
                remedies=[Remedy("Open the predictions with `scan(..., by=[...])`.")],
            )
        return str(time)

    def _labels(self, part: Part, time: Any, by: Mapping[str, Any] | None) -> dict[str, Any]:
        """A label per row for the time and each subgroup."""
        given = dict(by or {})
        if set(given) != set(self.by):
            raise InputError(
                f"must name {join(map(show, self.by)) if self.by else 'no subgroups'}, as the monitor does",
                argument="by",
                found=f"it names {join(map(show, given)) if given else 'none'}",
            )
        labels = {TIME: time if np.ndim(time) else np.full(part.n_rows, time), **given}
        found = {}
        for name, column in labels.items():
            values = to_host(to_array(column, name)[0])
            if values.shape != (part.n_rows,):
                raise InputError(
                    f"must have one value per row, {part.n_rows:,}",
                    argument=name if name == TIME else "by",
                    kind="length",
                    found=f"the shape is {values.shape}",
                )
            found[name] = values
        return found

    def _choose_unit(self, part: Part) -> None:
        grouped = part.rows.groups is not None
        self.unit = "group" if grouped else "time" if part.rows.weights is not None else "row"

    def _check_unit(self, part: Part) -> None:
        if self.unit == "group" and part.rows.groups is None:
            raise InputError("must be given: groups enter one by one", argument="groups", kind="missing")
        if self.unit == "row" and part.rows.weights is not None:
            raise InputError(
                "cannot be used where rows enter one by one",
                argument="weights",
                remedies=[
                    Remedy('Make a monitor with unit="time" or unit="group": weighted means enter then.')
                ],
            )

    @reads
    def update(
        self,
        y: object,
        p: object = None,
        *,
        time: Any,
        by: Mapping[str, Any] | None = None,
        ids: object | None = None,
        **read: Unpack[Reading],
    ) -> Alarm | None:
        """Take in rows whose outcomes are known, in order of time, and return the alarm if there is one.

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
            Labels of subgroups, by the names that the monitor was told.
        ids : array_like of shape (N,), optional
            Names of the rows. Rows that were taken in before are ignored; if their outcome differs, that is
            an error.
        **read

        Returns
        -------
        Alarm or None
            The alarm, as in `alarm`.
        """
        if ids is not None:
            new = self._pending.new_rows(ids, y)
            if not new.any():
                return self.alarm
            if not new.all():
                kept = np.flatnonzero(new)
                y, p, time, ids = (_some(each, kept) for each in (y, p, time, ids))
                by = None if by is None else {name: _some(labels, kept) for name, labels in by.items()}
                read = {k: _some(v, kept) if k in ("weights", "groups") else v for k, v in read.items()}  # type: ignore[assignment]
        found = self.observe(y, p, time=time, by=by, **read)
        alarm = self.add(found)
        if ids is not None:
            self._pending.note(ids, y)
        return alarm

    def add(self, steps: Breakdown) -> Alarm | None:
        """Take in the sums of one or more time steps, which `observe` made.

        Parameters
        ----------
        steps : Breakdown
            The sums; those of shards of one step are merged first.

        Returns
        -------
        Alarm or None
            The alarm, as in `alarm`.
        """
        assert self.unit is not None
        self._check_times(steps)
        if self._ledger is None:
            names = tuple(map(str, range(self._n_classes) if self.classes is None else self.classes))
            events = events_of(names, ordered=self.ordered, lists=self._lists)
            restarts = self.false_alarms == "rate"
            self._ledger = Ledger(events, self.reference is not None, self.by, restarts)
        for time in _in_order(steps):
            own = {scope: Step.of(sums, self.unit) for scope, sums in scopes_of(steps[time])}
            opens = not self._periods or self._periods[-1].time != time
            self._ledger.bet(own, opens=opens)
            now = Period(time, own, self._ledger.total(), dict(self._evidence()))
            if opens:
                self._periods.append(now)
            else:
                self._periods[-1] = self._periods[-1].plus(now)
            if self._alarm is None and now.evidence >= -math.log(self._level):
                self._alarm = self._raised(time)
        return self.alarm

    def _evidence(self) -> list[tuple[Any, float]]:
        assert self._ledger is not None
        return list(zip(self._ledger.targets, self._ledger.logs().tolist(), strict=True))

    def _check_times(self, steps: Breakdown) -> None:
        if not self._periods:
            return
        last = self._periods[-1].time
        try:
            times = _in_order(steps)
            early = [time for time in times if time < last]
            again = last in times
        except TypeError:
            raise InputError(
                "must be of one kind",
                argument="time",
                kind="type",
                found=f"the last was {show(last)}, now there is {show(next(iter(steps.found)))}",
            ) from None
        if early:
            raise InputError(
                "must not go back",
                argument="time",
                kind="order",
                found=f"{show(early[0])} comes after {show(last)}",
                values=early,
                remedies=[
                    Remedy(
                        "Late outcomes enter when they arrive: pass the time of the outcome, or use "
                        "`predict` and `outcomes`.",
                        python_only=True,
                    )
                ],
            )
        if again and self.unit == "time":
            raise InputError(
                "must be new: a time step enters as a whole",
                argument="time",
                kind="order",
                found=f"{show(last)} was taken in before",
                remedies=[Remedy("Merge the shards of a step first: `observe(...).merge(...)`, then `add`.")],
            )

    def _raised(self, time: Any) -> Alarm:
        assert self._ledger is not None
        failed = self._ledger.against(1 / self._level)
        targets = [target for target, _ in failed]
        if not targets:
            # All claims together fail; none of them alone.
            strongest = int(np.argmax(self._ledger.logs() + np.log(self._ledger.weights())))
            targets = [self._ledger.targets[strongest]]
        reasons = tuple(self._reason(target) for target in targets)
        return Alarm(time, tuple(targets), reasons, self._kind(targets), bool(failed))

    def _reason(self, target: Any) -> str:
        assert self._ledger is not None
        column, label, name = target
        where = f" where {column} is {label}" if column else ""
        stated, happened, loss = since_onset(self._periods, target, self._ledger.events)
        if name == OF_LOSS:
            return f"{name_of(self.rule)} rose above {self.tolerated:.4g} to {loss:.4g}{where}"
        way, share = (
            self._ledger.direction(target),
            f"{100 * stated:.0f}% forecast, {100 * happened:.0f}% happened",
        )
        return f"probabilities of “{name}” are {way}{where} ({share})"

    def _kind(self, targets: Sequence[Any]) -> str:
        """What kind of change this is, in words."""
        assert self._ledger is not None
        whole = [name for column, _, name in targets if not column]
        if not whole:
            return "only some subgroups have changed"
        events = [name for name in whole if name != OF_LOSS]
        if not events:
            return "probabilities are not seen to be wrong: the forecasts tell less than they did"
        ways = {name: self._ledger.direction(("", None, name)) for name in events}
        answers = ways.pop(TOP, "")
        if not ways:
            words = {"too high": "overconfident", "too low": "underconfident"}
            return f"the forecasts are {words.get(answers, answers)}"
        if set(ways.values()) <= {"too low", "too high"}:
            one = len(ways) == 1 and len(self._ledger.events) > 2
            return f"one class has changed: {next(iter(ways))}" if one else "class frequencies have shifted"
        same = set(ways.values())
        return "the forecasts are miscalibrated" if len(same) > 1 else f"the forecasts are {same.pop()}"

    # ---- outcomes that come late ---------------------------------------------------------------------

    @reads
    def predict(self, p: object, ids: object, *, time: Any = None, **read: Unpack[Form]) -> None:
        """Note forecasts whose outcomes are not known yet.

        Parameters
        ----------
        p : array_like of shape (N, K) or (N,)
            Forecasts: probabilities of the K classes.
        ids : array_like of shape (N,)
            Names of the rows, by which `outcomes` finds them.
        time : object, optional
            When the forecasts were made.
        **read
        """
        names = self._pending.names(ids)
        rows = Forecasts(np.zeros(len(names), np.int64), p, ordered=self.ordered, **_fitting(read))
        rows.check()
        self._check_rows(open_rows(np.zeros(len(names), np.int64), p, single=True, **read))
        values = np.asarray(to_host(rows.batch(0, rows.n_rows).p), float)
        self._pending.predict(names, values, expected_losses(self.rule, values), len(self._periods), time)

    def outcomes(self, ids: object, y: object, *, time: Any) -> Alarm | None:
        """Take in outcomes of forecasts that `predict` noted; they enter now.

        This is valid if how late outcomes are does not depend on what they are. `lateness` checks it.

        Parameters
        ----------
        ids : array_like of shape (N,)
            Names of the rows. Known outcomes are ignored if they are the same, and an error if they differ.
        y : array_like of shape (N,)
            Outcomes: class positions, or labels found in the classes.
        time : object
            When the outcomes came.

        Returns
        -------
        Alarm or None
            The alarm, as in `alarm`.
        """
        taken = self._pending.match(ids, y)
        if taken is None:
            return self.alarm
        names, outcomes, p, steps = taken
        classes = self.classes
        rows = Forecasts(outcomes, p, classes=classes, ordered=self.ordered)
        rows.check()
        alarm = self.update(outcomes, p, time=time, classes=classes)
        losses = np.asarray(to_host(self.rule.samples(outcomes, p, classes=classes)), float)
        self._pending.resolve(names, outcomes, len(self._periods) - 1 - steps, losses)
        return alarm

    @property
    def pending(self) -> int:
        """The number of forecasts without an outcome."""
        return self._pending.n

    @property
    def expected_loss(self) -> float:
        """An estimate of the mean loss of forecasts whose outcomes are not known yet.

        It is the loss that these forecasts expect of themselves, times the ratio of actual to expected loss
        so far. It assumes that calibration stays as it was. NaN where nothing is pending.
        """
        if not self._pending.n:
            return math.nan
        ratio = self.history.loss_ratio
        return self._pending.claimed * (1.0 if math.isnan(ratio) else ratio)

    @property
    def lateness(self) -> str:
        """A caution if outcomes that came later had other losses than those that came sooner; else empty."""
        z = self._pending.lateness
        if not abs(z) > 3:
            return ""
        which = "larger" if z > 0 else "smaller"
        return (
            f"Losses are {which} where outcomes came later (z = {z:.1f}). Alarms assume that lateness does "
            "not depend on the outcome."
        )

    # ---- what it says ----------------------------------------------------------------------------------

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm, if there was one. It stays until `acknowledge`."""
        return self._alarm

    @property
    def began(self) -> tuple[Any, Any, Any] | None:
        """When the change began: the likeliest time step, and the earliest and latest plausible one."""
        if self._alarm is None:
            return None
        return onset_of(self._periods, self._alarm.targets[0], self._events)

    @property
    def evidence(self) -> float:
        """The evidence so far that something has changed: an alarm is raised at `threshold`."""
        return math.exp(min(self._periods[-1].evidence, 700.0)) if self._periods else 1.0

    @property
    def threshold(self) -> float:
        """The evidence that raises an alarm: one over what is left of `alpha` beside the reference."""
        return 1 / self._level

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return sum(period.whole.n_rows for period in self._periods)

    @property
    def _events(self) -> tuple[str, ...]:
        return () if self._ledger is None else self._ledger.events

    @property
    def history(self) -> History:
        """What was seen in each time step."""
        return History(
            tuple(self._periods),
            name_of(self.rule),
            self._events,
            self.reference,
            self.tolerated,
            self._level,
        )

    @property
    def verdict(self) -> str:
        """What there is to say, in one or two sentences."""
        if not self._periods:
            return "Nothing has been monitored yet."
        first, last = self._periods[0].time, self._periods[-1].time
        what = f"{self.n_rows:,} rows from {first} to {last}"
        if self._alarm is None:
            return f"No alarm in {what}: evidence {self.evidence:.3g}, alarm at {self.threshold:.3g}."
        found = self.began
        assert found is not None
        likeliest, low, high = found
        plausible = "" if low == high else f" (between {low} and {high})"
        more = len(self._alarm.reasons) - 1
        also = f", and {more} more" if more > 0 else ""
        return (
            f"Alarm at {self._alarm.time} in {what}: {self._alarm.reasons[0]}{also}. "
            f"It began at about {likeliest}{plausible}: {self._alarm.kind}."
        )

    def acknowledge(self, reference: float | Scorecard | str | Path | None = None) -> None:
        """Begin anew after an alarm: history stays, bets start again.

        Each new beginning has its own `alpha`.

        Parameters
        ----------
        reference : float or Scorecard or path, optional
            A new reference; by default the old one.
        """
        if reference is not None:
            self.reference, self._level = self._checked_reference(reference)
        self._alarm, self._ledger = None, None

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean loss of each time step and the evidence below it.

        Parameters
        ----------
        ax : sequence of two Axes, optional
            Where to draw.

        Returns
        -------
        array of two Axes
            The losses and the evidence.
        """
        from verax.display.monitoring import draw_monitor

        return draw_monitor(self.history, self.began, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything there is to say, as strict JSON."""
        found = self.began
        return {
            "verax": __version__,
            "rule": repr(self.rule),
            "reference": self.reference,
            "tolerance": self.tolerance,
            "alpha": self.alpha,
            "false_alarms": self.false_alarms,
            "unit": self.unit,
            "n_rows": self.n_rows,
            "evidence": self.evidence,
            "threshold": self.threshold,
            "alarm": None if self._alarm is None else self._alarm.to_dict(),
            "began": None if found is None else [str(each) for each in found],
            "verdict": self.verdict,
            "pending": self.pending,
            "expected_loss": None if math.isnan(self.expected_loss) else self.expected_loss,
            "lateness": self.lateness,
            "periods": self.history.records(),
        }

    def __repr__(self) -> str:
        return f"verax monitor of {name_of(self.rule)}: {self.verdict}"

    # ---- state ---------------------------------------------------------------------------------------

    def knows_file(self, digest: str) -> bool:
        """Whether a file of this content was taken in before.

        Parameters
        ----------
        digest : str
            A hash of its content.

        Returns
        -------
        bool
            Whether it was.
        """
        return digest in self._files

    def note_file(self, digest: str, name: str) -> None:
        """Note that a file was taken in.

        Parameters
        ----------
        digest : str
            A hash of its content.
        name : str
            Its name.
        """
        self._files[digest] = name

    def save(self, path: str | Path) -> None:
        """Write the state to a file: whole or not at all.

        Parameters
        ----------
        path : str or path
            The file. One of that name is replaced when the new one is complete.
        """
        with written(as_path(path)) as new:
            new.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Monitor:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Monitor
            The monitor as it was.
        """
        path = as_path(path)
        check_regular(path)
        try:
            return cls.from_bytes(path.read_bytes())
        except InputError as error:
            raise error.replace(source=str(path)) from None

    def to_bytes(self) -> bytes:
        """The state as bytes that `from_bytes` reads, without pickle."""
        alarm = self._alarm
        values = {
            "settings": {
                "rule": repr(self.rule),
                "tolerance": self.tolerance,
                "alpha": self.alpha,
                "level": self._level,
                "reference": self.reference,
                "ordered": self.ordered,
                "unit": self.unit,
                "by": list(self.by),
                "false_alarms": self.false_alarms,
            },
            "classes": None if self.classes is None else list(self.classes),
            "n_classes": self._n_classes,
            "lists": self._lists,
            "capital": None if self._ledger is None else self._ledger.to_values(),
            "periods": [period.to_values() for period in self._periods],
            "alarm": None if alarm is None else alarm.to_values(),
            "pending": self._pending.to_values(),
            "files": dict(self._files),
        }
        return dump(_KIND, values, version=_VERSION)

    @classmethod
    def from_bytes(cls, data: bytes) -> Monitor:
        """The monitor that `to_bytes` wrote; other bytes are refused.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.

        Returns
        -------
        Monitor
            The monitor as it was.
        """
        values = load(data, _KIND, version=_VERSION)
        with refusing("is missing or of another type"):
            told = dict(values["settings"])
            reference, level = told.pop("reference"), float(told.pop("level"))
            made = cls(reference, **told)
            made._level = level
            made.classes = None if values["classes"] is None else tuple(values["classes"])
            made._n_classes, made._lists = int(values["n_classes"]), bool(values["lists"])
            made._periods = [Period.from_values(each) for each in values["periods"]]
            made._alarm = None if values["alarm"] is None else Alarm.from_values(values["alarm"])
            made._pending = Pending.from_values(values["pending"])
            made._files = {str(k): str(v) for k, v in values["files"].items()}
            if values["capital"] is not None:
                names = tuple(map(str, range(made._n_classes) if made.classes is None else made.classes))
                events = events_of(names, ordered=made.ordered, lists=made._lists)
                restarts = made.false_alarms == "rate"
                made._ledger = Ledger(events, reference is not None, made.by, restarts)
                made._ledger.restore(values["capital"])
        return made


def _in_order(steps: Breakdown) -> list[Any]:
    times: list[Any] = list(steps.found)
    return sorted(times)


def _some(values: Any, kept: Any) -> Any:
    """Some of the rows of an argument."""
    if values is None or np.ndim(values) == 0:
        return values
    return np.asarray(values)[kept]


def _fitting(read: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in read.items() if name != "invalid"}
