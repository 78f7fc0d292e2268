"""Metrics by epoch, under the names they were logged by."""

from __future__ import annotations

from dataclasses import dataclass, field

from verax.common.caching import cached_property
from verax.common.checks import check_integer, looked_up
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Floats
from verax.scores.base import Rule
from verax.scores.registry import name_of
from verax.wings.select.directions import Direction, Name, unknown_direction

# In which parts of the data a name is looked for, by the part that it says.
_WHERE = {
    "": ("validation", ""),
    "validation": ("validation",),
    "train": ("train", ""),
    "test": ("test",),
}


@dataclass(frozen=True, repr=False)
class Epochs:
    """Values of metrics over the epochs, or steps, of a training run, and which way each is better."""

    epochs: Floats
    values: dict[str, Floats]
    directions: dict[str, Direction] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    counter: str = "epoch"

    @cached_property
    def names(self) -> dict[str, Name]:
        """Every metric's name, read."""
        return {column: Name.of(column) for column in self.values}

    def direction(self, metric: str | Rule) -> Direction:
        """The better direction of a metric; an error if it is not known.

        Parameters
        ----------
        metric : str or Rule
            The metric.

        Returns
        -------
        {"min", "max"}
            The direction.
        """
        return self.direction_of(self.find(metric))

    def direction_of(self, column: str) -> Direction:
        """The better direction of a column; an error if it is not known.

        Parameters
        ----------
        column : str
            The name of a column.

        Returns
        -------
        {"min", "max"}
            The direction.
        """
        known = self.known_direction(column)
        if known is None:
            raise unknown_direction([column])
        return known

    def known_direction(self, column: str) -> Direction | None:
        """Which direction of a column is better, None if it is not known.

        Parameters
        ----------
        column : str
            The name of a column.

        Returns
        -------
        {"min", "max"} or None
            The direction.
        """
        name = looked_up(self.names, column, "column")
        stated = {key.lower(): direction for key, direction in self.directions.items()}
        return stated.get(column.lower(), stated.get(name.base, name.direction))

    def find(self, metric: str | Rule) -> str:
        """The column that a metric is in, by its name, with or without "val_", or by its rule.

        Where nothing says which part of the data is meant, it is the validation part, if that has the
        metric: beside "val_pbs", Keras's "pbs" is of the training part and is found as "train_pbs".

        Parameters
        ----------
        metric : str or Rule
            The metric.

        Returns
        -------
        str
            The name of the column.
        """
        if not isinstance(metric, (str, Rule)):
            raise InputError(
                f"must be the name of a metric or a rule, not {show(metric)}",
                argument="metric",
                kind="type",
                values=[metric],
            )
        wanted = Name.of(name_of(metric) if isinstance(metric, Rule) else metric)
        rule = metric if isinstance(metric, Rule) else wanted.rule
        same = [
            column
            for column, name in self.names.items()
            if name.base == wanted.base or (rule is not None and name.rule == rule)
        ]
        by_part = [[c for c in same if self.names[c].part == part] for part in _WHERE[wanted.part]]
        matches = next(filter(None, by_part), [] if wanted.part else same)
        matches = [metric] if isinstance(metric, str) and metric in matches else matches
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise InputError(
                f"{show(metric)} may be {join(map(show, matches))}",
                argument="metric",
                values=matches,
                remedies=[Remedy("Give the whole name.")],
            )
        raise InputError(
            f"There is no {show(metric)} in this history",
            argument="metric",
            kind="missing",
            found=f"it has {join(map(show, self.values))}",
            values=[metric],
        )

    @cached_property
    def judged(self) -> tuple[str, ...]:
        """The metrics to select by unless others are named: those of the validation part if it has any.

        Boosting libraries call what they validate on "test", or number the sets: the last one counts, as it
        does for their early stopping, because the first is often that of training.
        """
        parts = [name.part for name in self.names.values() if name.is_metric]
        part = next((part for part in ("validation", "", "test") if part in parts), None)
        columns = [c for c, name in self.names.items() if part is None or name.part == part]
        last = max((self.names[c].number for c in columns), default=-1)
        return tuple(c for c in columns if self.names[c].number == last)

    @property
    def n_epochs(self) -> int:
        """The number of epochs."""
        return len(self.epochs)

    def epoch_at(self, i: int) -> int | float:
        """The number of the i-th epoch, as an integer if it is whole.

        Parameters
        ----------
        i : int
            The place of the epoch in the history.

        Returns
        -------
        int or float
            Its number.
        """
        epoch = float(self.epochs[check_integer("i", i)])
        return int(epoch) if epoch.is_integer() else epoch
