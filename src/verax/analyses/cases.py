"""Rows as `worst` shows them: forecast, outcome, and where the loss comes from."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.common.checks import as_float, in_digits
from verax.common.packing import UnreadableError
from verax.common.stored import label, number, truth
from verax.common.texts import percent
from verax.errors import show
from verax.inputs.arrays import Floats
from verax.inputs.lists.rows import ListRows
from verax.scores.base import Rule


@dataclass(frozen=True)
class Case:
    """One of the worst rows.

    Attributes
    ----------
    row : int
        Its number, from 0.
    id : object
        Its id if ids were given, else its number.
    outcome : object
        What happened: a class position, or the name of the class if names were given.
    forecast : tuple of floats
        The probabilities of the classes.
    loss : float
        The loss by the rule that ranks the rows.
    ranks : dict
        Its rank by each rule, 1 for the worst of all rows.
    source : str
        Where the loss comes from, in words.
    rank_within : dict
        By how much a rank may be larger, for the rules by which it comes from a histogram of losses and is
        not exact.
    """

    row: int
    id: Any
    outcome: Hashable
    forecast: tuple[float, ...]
    loss: float
    ranks: dict[str, int]
    source: str
    rank_within: dict[str, int] = field(default_factory=dict, kw_only=True)

    def rank_words(self, rule: str) -> str:
        """The rank by a rule: one number, or from which to which where it is not exact.

        Parameters
        ----------
        rule : str
            The name of the rule.

        Returns
        -------
        str
            The rank in words.
        """
        beyond = self.rank_within.get(rule, 0)
        return f"{self.ranks[rule]:,}" + (f" to {self.ranks[rule] + beyond:,}" if beyond else "")

    def columns(self, width: int) -> dict[str, Any]:
        """The forecast as columns of a table that has room for `width` classes.

        Parameters
        ----------
        width : int
            The number of classes.

        Returns
        -------
        dict of str to value
            The columns.
        """
        return {f"p_{i}": self.forecast[i] for i in range(width)}

    def distributions(self, classes: list[str] | None) -> tuple[list[str], list[float], list[float]]:
        """Names of the classes, the forecast, and what happened as probabilities.

        Parameters
        ----------
        classes : list of str, optional
            Names of the classes; by default their positions.

        Returns
        -------
        tuple of three lists
            The names, the forecast and what happened.
        """
        names = list(map(str, range(len(self.forecast)))) if classes is None else classes
        happened = self._happened()
        return names, list(self.forecast), [happened.get(name, 0.0) for name in names]

    def _happened(self) -> dict[str, float]:
        return {text_of(self.outcome): 1.0}

    def to_dict(self) -> dict[str, Any]:
        """The case as plain Python values."""
        return {name: value for name, value in vars(self).items() if value or name != "rank_within"}

    @property
    def shown(self) -> str:
        """The forecast as it stands in a table of text."""
        return " ".join(f"{x:.2f}" for x in self.forecast[:8]) + (" ..." if len(self.forecast) > 8 else "")


@dataclass(frozen=True)
class ShareCase(Case):
    """One of the worst rows, labelled by several raters.

    Attributes
    ----------
    outcome : dict
        The classes that raters chose, each with its share, largest first.
    disagreement : float
        The loss of forecasting the shares themselves: raters disagree, and no forecast avoids it.
    excess : float
        The loss beyond that: the model is off.
    """

    outcome: dict[Hashable, float]  # type: ignore[assignment]
    disagreement: float
    excess: float

    def _happened(self) -> dict[str, float]:
        return {text_of(name): share for name, share in self.outcome.items()}

    def to_dict(self) -> dict[str, Any]:
        """The case as plain Python values: the outcome as pairs of a class and its share."""
        return {
            **super().to_dict(),
            "outcome": [[plain_of(name), share] for name, share in self.outcome.items()],
        }


@dataclass(frozen=True)
class ListCase(Case):
    """One of the worst rows, with a top list as its forecast.

    Attributes
    ----------
    forecast : dict
        The list: classes with their probabilities, most likely first.
    place : int or None
        The place of the outcome in the list, from 1; None if it is not listed.
    unaccounted : float
        How much probability was left for all other classes together.
    n_unlisted : int
        How many classes these are.
    valid : bool
        Whether the list is valid. An invalid one is scored as its largest valid sublist, with a fine.
    """

    forecast: dict[Hashable, float]  # type: ignore[assignment]
    place: int | None
    unaccounted: float
    n_unlisted: int
    valid: bool

    def distributions(self, classes: list[str] | None) -> tuple[list[str], list[float], list[float]]:
        listed = {text_of(name): value for name, value in self.forecast.items()}
        listed |= (
            {} if self.place is not None else {text_of(self.outcome): self.unaccounted / self.n_unlisted}
        )
        return list(listed), list(listed.values()), [float(name == text_of(self.outcome)) for name in listed]

    def columns(self, width: int) -> dict[str, Any]:
        listed: dict[str, Any] = {}
        entries = [*self.forecast.items(), *[(None, None)] * (width - len(self.forecast))]
        for i, (name, value) in enumerate(entries, start=1):
            listed |= {f"listed_{i}": plain_of(name), f"p_{i}": value}
        return {
            "place": self.place,
            "unaccounted": self.unaccounted,
            "n_unlisted": as_float(self.n_unlisted),
            "valid": self.valid,
            **listed,
        }

    def to_dict(self) -> dict[str, Any]:
        """The case as plain Python values: the list as pairs of a class and its probability."""
        listed = [[plain_of(name), value] for name, value in self.forecast.items()]
        return {**super().to_dict(), "outcome": plain_of(self.outcome), "forecast": listed}

    @property
    def shown(self) -> str:
        listed = [f"{text_of(name)} {value:.2f}" for name, value in list(self.forecast.items())[:5]]
        more = [f"{len(self.forecast) - 5} more"] if len(self.forecast) > 5 else []
        return ", ".join([*listed, *more]) or "nothing listed"


def dense_case(
    row: int,
    name: Any,
    outcome: int,
    forecast: Floats,
    loss: float,
    classes: tuple[Hashable, ...] | None,
    rule: Rule,
) -> Case:
    """The case of a row with a full distribution; `outcome` is the position of its class."""
    return Case(
        row=row,
        id=name,
        outcome=outcome if classes is None else classes[outcome],
        forecast=tuple(forecast.tolist()),
        loss=loss,
        ranks={},
        source=_source(forecast, outcome, classes, rule.ordinal),
    )


@dataclass(frozen=True)
class Stated:
    """A top list with what happened, apart from all others; the names are those of `ListCase`."""

    outcome: Hashable
    listed: dict[Hashable, float]
    unaccounted: float
    n_unlisted: int
    valid: bool

    @classmethod
    def of(cls, rows: ListRows, row: int) -> Stated:
        """One of some lists."""
        listed = rows.entries(row)
        valid = bool(rows.survey.kept[row] == len(listed))
        left = float(rows.survey.unaccounted[row])
        return cls(rows.outcome(row), listed, left, rows.n_classes - len(listed), valid)

    def to_values(self) -> dict[str, Any]:
        """All but the outcome, to be stored."""
        named = [list(entry) for entry in self.listed.items()]
        # Texts hold integers of any size.
        return {
            "listed": named,
            "unaccounted": self.unaccounted,
            "n_unlisted": str(self.n_unlisted),
            "valid": self.valid,
        }

    @classmethod
    def from_values(cls, outcome: Hashable, values: Mapping[str, Any]) -> Stated:
        """Read what `to_values` gave."""
        entries = values["listed"]
        if not isinstance(entries, list) or any(not isinstance(e, list) or len(e) != 2 for e in entries):
            raise UnreadableError("has a list whose entries are no pairs")
        listed = {label(name): number(value) for name, value in entries}
        unlisted = values["n_unlisted"]
        digits = unlisted.removeprefix("-") if isinstance(unlisted, str) else ""
        if not digits.isdecimal() or len(digits) > 4000:
            raise UnreadableError(f"has {show(unlisted)} where the number of other classes should be")
        return cls(outcome, listed, number(values["unaccounted"]), int(unlisted), truth(values["valid"]))

    def case(self, number: int, name: Any, loss: float) -> ListCase:
        """The case that this is."""
        listed, outcome = self.listed, self.outcome
        place = list(listed).index(outcome) + 1 if outcome in listed else None
        return ListCase(
            row=number,
            id=name,
            outcome=outcome,
            forecast=listed,
            loss=loss,
            ranks={},
            source=_list_source(outcome, listed, place, self.unaccounted, self.n_unlisted, self.valid),
            place=place,
            unaccounted=self.unaccounted,
            n_unlisted=self.n_unlisted,
            valid=self.valid,
        )


def _list_source(
    outcome: Hashable,
    listed: dict[Hashable, float],
    place: int | None,
    unaccounted: float,
    n_unlisted: int,
    valid: bool,
) -> str:
    """Where the loss of a list comes from: the place of the outcome, its best rival, and what was left."""
    others = in_digits(n_unlisted, 3)
    if place is None:
        said = f"not listed: {unaccounted:.2g} was left for {others} other classes"
    else:
        said = f"place {place} of {len(listed)} with {listed[outcome]:.2g}"
    rival = next((name for name in listed if name != outcome), None)
    if rival is not None:
        said += f"; {text_of(rival)} had {listed[rival]:.2f}"
    return said if valid else f"{said}; the list is invalid"


def share_case(
    number: int,
    name: Any,
    shares: Floats,
    p: Floats,
    loss: float,
    classes: tuple[Hashable, ...] | None,
    rule: Rule,
) -> ShareCase:
    """The case of a row that several raters labelled."""
    names = list(range(len(p))) if classes is None else list(classes)
    order = [k for k in np.argsort(-shares, kind="stable").tolist() if shares[k] > 0]
    chosen = {names[k]: float(shares[k]) for k in order}
    disagreement = float(rule.entropy(shares / shares.sum()))
    excess = loss - disagreement
    off = int(np.argmax(np.abs(p - shares)))
    cause = "raters disagree" if disagreement >= excess else "model is off"
    source = f"{cause}: {names[off]} had {p[off]:.2f}, chosen by {shares[off]:.2f} of the raters"
    return ShareCase(
        number, name, chosen, tuple(p.tolist()), loss, {}, source, disagreement=disagreement, excess=excess
    )


def text_of(name: Any) -> str:
    """A class as it stands in a table: label sets as their labels, classes of several raters with shares."""
    if isinstance(name, dict):
        return ", ".join(f"{text_of(label)} {share:.2f}" for label, share in name.items())
    return "{" + ", ".join(map(str, name)) + "}" if isinstance(name, tuple) else str(name)


def plain_of(name: Any) -> Any:
    """A class as a value that tables can hold."""
    return text_of(name) if isinstance(name, (tuple, dict)) else name


def _source(p: Floats, outcome: int, classes: tuple[Hashable, ...] | None, ordinal: bool) -> str:
    """The threshold (ordered classes) or the rival class that the forecast got most wrong."""
    names = list(range(len(p))) if classes is None else list(classes)
    if not ordinal:
        rival = int(np.argmax(np.where(np.arange(len(p)) == outcome, -1.0, p)))
        return f"{names[rival]} had {p[rival]:.2f}, {names[outcome]} {p[outcome]:.2f}"
    below = np.cumsum(p)[:-1]
    above = np.cumsum(p[::-1])[::-1][1:]
    error = np.where(outcome <= np.arange(len(p) - 1), above, below)
    i = int(np.argmax(error))
    side = f"above {names[i]}" if outcome <= i else f"below {names[i + 1]}"
    return f"{percent(error[i], 0)} of the probability was {side}"
