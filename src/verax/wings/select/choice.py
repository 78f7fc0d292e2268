"""Choosing an epoch: the optimum of a history by each rule, and correlations between metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from verax.common.checks import looked_up
from verax.common.faces import Hidden
from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled
from verax.errors import PYTHON, InputError, Vocabulary, join, show
from verax.inference.findings import Claim, Finding, WithVerdict, listed
from verax.inputs.arrays import Floats
from verax.scores.base import Rule
from verax.wings.select.directions import Direction, unknown_direction
from verax.wings.select.epochs import Epochs

# Fewer epochs than this make any correlation 1, -1 or undefined.
_LEAST_EPOCHS = 3


class Kept:
    """An epoch that is kept by a metric, with all others there."""

    metric: str
    value: float
    others: dict[str, float]

    def at(self, metric: str) -> float:
        """Return the value of a metric at this epoch.

        Parameters
        ----------
        metric : str
            The name of a metric.

        Returns
        -------
        float
            Its value at this epoch.
        """
        return looked_up({**self.others, self.metric: self.value}, metric, "metric")


@dataclass(frozen=True)
class Best(Kept):
    """The best epoch by one metric.

    Attributes
    ----------
    metric : str
        The metric.
    direction : {"min", "max"}
        The better direction.
    index : int
        Position of the epoch in the history; the earliest of `tied`.
    epoch : int or float
        The number of the epoch.
    value : float
        Value of the metric there.
    others : dict of str to float
        Values of all other metrics there; NaN if missing.
    tied : int
        Number of epochs with this value.
    left_out : int
        Number of epochs without a finite value of this metric; they are never best.

    Examples
    --------
    >>> from verax.selection import History
    >>> history = History.from_columns({"pbs": [0.9, 0.6, 0.7], "accuracy": [0.5, 0.7, 0.8]})
    >>> best = history.best("pbs")
    >>> best.epoch, best.value, best.at("accuracy")
    (1, 0.6, 0.7)
    """

    metric: Hidden[str]
    direction: Direction
    index: int
    epoch: int | float
    value: float
    others: dict[str, float]
    tied: int
    left_out: int

    @classmethod
    def of(cls, history: Epochs, column: str) -> Best:
        """The best epoch of a history under one of its columns.

        Parameters
        ----------
        history : Epochs
            The history.
        column : str
            The name of a column.

        Returns
        -------
        Best
            The epoch.
        """
        direction = history.direction_of(column)
        values = history.values[column]
        finite = np.isfinite(values)
        if not finite.any():
            raise InputError(
                "must have a finite value in some epoch",
                argument="metric",
                kind="finite",
                found=f"{show(column)} has none in {history.n_epochs} epochs",
                values=[column],
            )
        optimum = values[finite].min() if direction == "min" else values[finite].max()
        index = int(np.flatnonzero(values == optimum)[0])
        others = {name: float(v[index]) for name, v in history.values.items() if name != column}
        return cls(
            column,
            direction,
            index,
            history.epoch_at(index),
            float(optimum),
            others,
            int((values == optimum).sum()),
            int((~finite).sum()),
        )


@dataclass(frozen=True)
class Stop(Kept):
    """The epoch that early stopping by one metric would have kept.

    Attributes
    ----------
    metric : str
        The metric.
    patience : int
        How many epochs without improvement end the training.
    epoch : int or float
        The number of the epoch that would have been kept.
    value : float
        Value of the metric there.
    stopped_after : int or float or None
        The number of the last epoch that would have been trained; None if training would not have stopped.
    others : dict of str to float
        Values of all other metrics at the epoch kept; NaN if missing.

    Examples
    --------
    >>> from verax.selection import History
    >>> history = History.from_columns({"pbs": [0.9, 0.6, 0.7, 0.8, 0.5]})
    >>> stop = history.select("pbs", patience=2).stops["pbs"]
    >>> stop.epoch, stop.stopped_after
    (1, 3)
    """

    metric: Hidden[str]
    patience: int
    epoch: int | float
    value: float
    stopped_after: int | float | None
    others: dict[str, float]

    @classmethod
    def of(cls, history: Epochs, column: str, patience: int) -> Stop:
        """Replay early stopping by a column that has a finite value.

        Parameters
        ----------
        history : Epochs
            The history.
        column : str
            The name of a column.
        patience : int
            How many epochs without improvement end the training. Epochs without a value do not count.

        Returns
        -------
        Stop
            The epoch kept.
        """
        from verax.wings.select.stopping import EarlyStopping

        values = history.values[column]
        logged = np.flatnonzero(~np.isnan(values))
        stopping = EarlyStopping(mode=history.direction_of(column), patience=patience)
        after = next((at for at in logged.tolist() if stopping.step(values[at])), None)
        # Infinite values at the beginning may use up the patience before there is a best epoch.
        kept = int(logged[stopping.best_epoch or 0])
        others = {name: float(v[kept]) for name, v in history.values.items() if name != column}
        last = None if after is None else history.epoch_at(after)
        return cls(column, patience, history.epoch_at(kept), float(values[kept]), last, others)


@dataclass(frozen=True)
class Correlation:
    """Correlation of a rule with another metric over the epochs, both oriented so that higher is better.

    1 is full agreement. Epochs are not independent, so there is no p-value.

    Attributes
    ----------
    rule : str
        The rule.
    metric : str
        The other metric.
    pearson : float
        The correlation of the values; NaN for fewer than 3 epochs or no variation.
    spearman : float
        The correlation of their ranks.
    n : int
        Number of epochs in which both are finite.
    left_out : int
        The number of other epochs.

    Examples
    --------
    >>> from verax.selection import History
    >>> history = History.from_columns({"pbs": [0.9, 0.6, 0.7], "accuracy": [0.5, 0.7, 0.6]})
    >>> round(history.select("pbs").correlation("pbs", "accuracy").spearman, 3)
    1.0
    """

    rule: str
    metric: str
    pearson: float
    spearman: float
    n: int
    left_out: int

    @classmethod
    def of(cls, history: Epochs, rule: str, metric: str) -> Correlation:
        """The correlation of two columns of a history.

        Parameters
        ----------
        history : Epochs
            The history.
        rule : str
            The column of the rule.
        metric : str
            The column of the other metric.

        Returns
        -------
        Correlation
            The correlation.
        """
        from scipy import stats

        x, y = (history.values[name] for name in (rule, metric))
        both = np.isfinite(x) & np.isfinite(y)
        n = int(both.sum())
        x, y = x[both], y[both]
        pearson = spearman = math.nan
        if n >= _LEAST_EPOCHS and _varies(x) and _varies(y):
            # The scale does not matter to a correlation, and sums of squares must not overflow.
            x, y = x / np.abs(x).max(), y / np.abs(y).max()
            sign = 1 if history.direction_of(rule) == history.direction_of(metric) else -1
            pearson = sign * float(stats.pearsonr(x, y).statistic)
            spearman = sign * float(stats.spearmanr(x, y).statistic)
        return cls(rule, metric, pearson, spearman, n, history.n_epochs - n)


@dataclass(frozen=True, repr=False, eq=False)
class Selection(WithVerdict, Tabled, Result):
    """The epoch that each rule would keep.

    Attributes
    ----------
    history : Epochs
        The history.
    rules : tuple of str
        The metrics selected by.
    against : tuple of str
        Metrics to correlate them with.
    best : dict of str to Best
        Best epoch by each rule, then by each metric of `against`.
    correlations : tuple of Correlation
        The correlations of each rule with each metric of `against`.
    notes : tuple of str
        What was omitted, and why.
    stops : dict of str to Stop
        The epoch that early stopping by each rule would have kept, if that was asked for.

    Examples
    --------
    >>> from verax.selection import History
    >>> history = History.from_columns({"pbs": [0.9, 0.6, 0.7], "accuracy": [0.5, 0.7, 0.6]})
    >>> selection = history.select("pbs")
    >>> selection.best["pbs"].epoch, selection.against
    (1, ('accuracy',))
    """

    history: Hidden[Epochs]
    rules: tuple[str, ...]
    against: tuple[str, ...]
    best: dict[str, Best]
    correlations: tuple[Correlation, ...]
    notes: tuple[str, ...]
    stops: dict[str, Stop] = field(default_factory=dict)

    _notes_apart = True

    _facts = ("history.n_epochs", "history.counter")

    @classmethod
    def of(
        cls,
        history: Epochs,
        rules: Sequence[str | Rule] | str | Rule | None,
        against: Sequence[str] | str | None,
        vocabulary: Vocabulary = PYTHON,
        patience: int | None = None,
    ) -> Selection:
        """Select by some metrics, or by all rules that the history has.

        Parameters
        ----------
        history : Epochs
            The history.
        rules : str, Rule, sequence of these or None
            Metrics to select by; None for all rules of verax in the history.
        against : str, sequence of str or None
            Metrics to correlate them with; None for all F1 and accuracy.
        vocabulary : Vocabulary, optional
            How notes name options.
        patience : int, optional
            Replay early stopping with this patience.

        Returns
        -------
        Selection
            The selection.
        """
        targets = _columns(history, against, "against")
        if targets is None:
            targets = [c for c in history.judged if history.names[c].is_target]
        chosen = _columns(history, rules, "rules")
        if chosen is None:
            chosen = [c for c in _default_rules(history) if c not in targets]
        notes = list(history.notes)
        if rules is None:
            notes += _left_out(history, {*chosen, *targets}, vocabulary)
        best = {}
        for column in (*chosen, *targets):
            if np.isfinite(history.values[column]).any():
                best[column] = Best.of(history, column)
            else:
                history.direction_of(column)
                notes.append(f"{column} has no finite value in any {history.counter}.")
        chosen, targets = ([c for c in columns if c in best] for columns in (chosen, targets))
        if not best:
            raise InputError(
                "No metric has a finite value, so there is nothing to select by",
                argument="rules",
                kind="finite",
            )
        pairs = tuple(Correlation.of(history, c, t) for c in chosen for t in targets if c != t)
        notes += _remarks(best.values(), pairs, history.counter)
        stops = {} if patience is None else {c: Stop.of(history, c, patience) for c in best}
        return cls(history, tuple(chosen), tuple(targets), best, pairs, tuple(notes), stops)

    def correlation(self, rule: str | Rule, metric: str) -> Correlation:
        """Return the correlation of a rule with a metric.

        Parameters
        ----------
        rule : str or Rule
            A metric selected by.
        metric : str
            A metric of `against`.

        Returns
        -------
        Correlation
            Their correlation.
        """
        columns = self.history.find(rule), self.history.find(metric)
        for correlation in self.correlations:
            if (correlation.rule, correlation.metric) == columns:
                return correlation
        raise KeyError(f"{columns[0]!r} and {columns[1]!r} were not correlated")

    def plot(self, **options: Any) -> Any:
        """Draw the rules over the epochs with their optima marked, below the metrics they are judged by.

        Parameters
        ----------
        **options : Any
            Options of `matplotlib.pyplot.subplots`.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw
        from verax.wings.select.figures import selection_sheet

        return draw(selection_sheet(self), **options)

    def _findings(self) -> list[Finding]:
        counter = self.history.counter
        first, *others = [self.best[name] for name in self.rules or self.against]
        best = "lowest" if first.direction == "min" else "highest"
        text = f"Keep {counter} {first.epoch}: {best} {first.metric}, {first.value:.4g}."
        keep = Finding(Claim.SCORE, text, (str(first.epoch),), {first.metric: first.value})
        if not others:
            return [keep]
        apart = [other for other in others if other.epoch != first.epoch]
        text = f"All {len(others) + 1} rules agree."
        if apart:
            named = listed([f"{other.metric} ({counter} {other.epoch})" for other in apart])
            text = f"Another {counter} is best by {named}."
        numbers = {other.metric: other.value for other in apart}
        return [keep, Finding(Claim.SCORE, text, tuple(str(other.epoch) for other in apart), numbers)]

    # ---- out -------------------------------------------------------------------------------

    def _frame(self) -> Table:
        """One line per rule: its best epoch and every metric at that epoch."""
        columns = [
            Column("rule", value="metric"),
            Column("direction"),
            Column(self.history.counter, value="epoch"),
        ]
        columns += [Column(name, value=partial(_at, name)) for name in self.history.values]
        return Table(columns, list(self.best.values()))

    def _heading(self) -> str:
        return f"verax selection: {self.history.n_epochs:,} {self.history.counter}s"

    def _tables(self) -> list[Table]:
        best = [
            Column("metric", "best by", right=False),
            Column("", "is", lambda best: {"min": "lowest", "max": "highest"}[best.direction], right=False),
            Column("epoch", self.history.counter),
            *(Column("", name, partial(_marked, name)) for name in self.best),
        ]
        correlations = [
            Column("rule", "correlation of", right=False),
            Column("metric", "with", right=False),
            Column("pearson", "Pearson", lambda c: _text(c.pearson)),
            Column("spearman", "Spearman", lambda c: _text(c.spearman)),
            Column("n", f"{self.history.counter}s"),
            Column("left_out", "left out"),
        ]
        tables = [Table(best, list(self.best.values()), ruled=True)]
        if self.stops:
            tables.append(Table(self._stop_columns(), list(self.stops.values()), ruled=True))
        return [*tables, Table(correlations, self.correlations, ruled=True)] if self.correlations else tables

    def _stop_columns(self) -> list[Column]:
        patience = next(iter(self.stops.values())).patience
        return [
            Column("metric", f"patience {patience}, stopped by", right=False),
            Column("", "after", lambda s: "no stop" if s.stopped_after is None else f"{s.stopped_after}"),
            Column("epoch", f"keeps {self.history.counter}"),
            *(Column("", name, partial(_marked, name)) for name in self.best),
        ]

    def _notes(self) -> list[str]:
        notes = [
            f"* the optimum; the other numbers of a line are the metrics of that {self.history.counter}."
        ]
        if self.correlations:
            notes.append(
                "Correlations: both metrics are oriented so that higher is better, and 1 is full agreement."
            )
        return [*notes, *self.notes]


def _at(name: str, best: Kept) -> float:
    return best.at(name)


def _marked(name: str, best: Kept) -> str:
    """A metric at the epoch kept, marked if it is the one that the epoch is kept by."""
    return _text(best.at(name)) + ("*" if name == best.metric else " ")


def _varies(values: Floats) -> bool:
    """Whether values differ by more than rounding."""
    scaled = values / (np.abs(values).max() or 1.0)
    return bool(np.ptp(scaled) > 1e-12)


def _columns(history: Epochs, metrics: Any, argument: str) -> list[str] | None:
    if metrics is None:
        return None
    if not isinstance(metrics, (str, Rule, list, tuple, Set)):
        raise InputError(
            f"must be the name of a metric, a rule or a list of these, not {show(metrics)}",
            argument=argument,
            kind="type",
            values=[metrics],
        )
    listed = [metrics] if isinstance(metrics, (str, Rule)) else list(metrics)
    columns = list(dict.fromkeys(history.find(metric) for metric in listed))
    for column in columns:
        history.direction_of(column)
    return columns


def _default_rules(history: Epochs) -> list[str]:
    """The rules of verax in a history; without any, all columns with a direction."""
    rules = [c for c in history.judged if history.names[c].is_judge]
    rules = rules or [c for c in history.judged if history.known_direction(c) is not None]
    if not rules:
        # Times and learning rates are no metrics, so they are offered only where there is nothing else.
        metrics = [name for name in history.values if history.names[name].is_metric]
        raise unknown_direction(metrics or list(history.values))
    return rules


def _left_out(history: Epochs, used: set[str], vocabulary: Vocabulary) -> list[str]:
    rest = [column for column in history.values if column not in used]
    unknown = [c for c in rest if history.known_direction(c) is None]
    known = [c for c in rest if c not in unknown]
    metrics = [c for c in unknown if history.names[c].is_metric]
    others = [c for c in unknown if c not in metrics]
    notes = []
    if known:
        notes.append(f"Not selected by unless named: {join(known)}.")
    if others:
        notes.append(f"No metrics of a model, and left out: {join(others)}.")
    if metrics:
        option = vocabulary.option("directions", {metrics[0]: "min"})
        notes.append(
            f"Left out, because it is not known which direction is better: {join(metrics)}. "
            f"Pass {option} or max to use it."
        )
    return notes


def _remarks(bests: Any, correlations: Sequence[Correlation], counter: str) -> list[str]:
    notes = [f"{b.metric}: {b.tied} {counter}s tie; the earliest stands." for b in bests if b.tied > 1]
    notes += [
        f"{b.metric}: {b.left_out} {counter}s without a finite value were left out."
        for b in bests
        if b.left_out
    ]
    if any(math.isnan(c.pearson) for c in correlations):
        notes.append(
            f"No correlation with fewer than {_LEAST_EPOCHS} {counter}s, or where one does not vary."
        )
    return notes


def _text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
