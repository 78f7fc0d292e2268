"""Which column of a file of predictions is what, and the rows that are read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np

from verax.common.ids import id_of
from verax.files.naming import TARGETS, spoken
from verax.inputs.arrays import Columns
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, crossed, paired
from verax.inputs.reading import named_columns
from verax.inputs.reading_checks import PROBABILITIES
from verax.inputs.shares import Shares
from verax.inputs.skipping import InvalidRows, Skipped, take_rows
from verax.inputs.validity import Rescaled, Unity

Array = np.ndarray[Any, Any]


class Followup(Protocol):
    """How outcomes are judged at a horizon, given the times of all rows; it holds none of them.

    Attributes
    ----------
    brief, sentence : str
        The horizon, and how many rows were censored before it, in words.
    """

    @property
    def brief(self) -> str: ...
    @property
    def sentence(self) -> str: ...

    def judged(self, times: Array, happened: Array, weights: Array | None) -> tuple[Array, Array]:
        """Whether the event happened by the horizon, and the weights of rows for that."""

    def to_dict(self) -> dict[str, Any]:
        """The horizon with the numbers of rows, as plain Python values."""


@dataclass(frozen=True)
class Roles:
    """Which column is what.

    Attributes
    ----------
    target : str
        The column of outcomes; empty where forecasts alone are read.
    names : tuple[str, ...] | None
        The names of the columns of probabilities without their common prefix; None where they have no
        names of their own.
    outcomes_are : str
        "names" of classes, "positions" of classes, or "one-hot" rows.
    renamed : tuple[str, ...]
        The names of columns that the caller calls otherwise; empty where nothing was renamed.
    not_taken : tuple[str, ...]
        Other columns that may hold probabilities and were not used.
    found_by : str
        How the columns of probabilities were found: by their "name", or by the "sums" of their rows.
    raters : tuple[str, ...]
        Columns of raters, or of their numbers or shares by class; the first of them is the target.
    raters_are : str
        What these hold: "labels", "counts" or "shares".
    sets : bool
        The columns in place of probabilities hold prediction sets.
    outputs : str
        What the columns hold: "probabilities", or those at thresholds.
    time : str | None
        The column of times up to which rows were followed.
    followup : Followup | None
        How outcomes are judged at a horizon, once the times of all rows are known.
    """

    target: str
    probs: tuple[str, ...]
    names: tuple[str, ...] | None = None
    weights: str | None = None
    groups: str | tuple[str, str] | None = None
    by: tuple[str, ...] = ()
    id: str | tuple[str, ...] | None = None
    logits: bool = False
    outcomes_are: str = "names"
    renamed: tuple[str, ...] = ()
    not_taken: tuple[str, ...] = ()
    found_by: str = "name"
    raters: tuple[str, ...] = ()
    raters_are: str = "labels"
    sets: bool = False
    outputs: str = PROBABILITIES
    time: str | None = None
    followup: Followup | None = None

    @property
    def outcome(self) -> str:
        """What the outcomes are called; empty where the column has a name like "label"."""
        return "" if spoken(self.target) in TARGETS or self.raters else self.target

    @property
    def counted(self) -> bool:
        """Whether there is a number for each class, of raters or of their shares."""
        return bool(self.raters) and self.raters_are != "labels"

    @property
    def columns(self) -> list[str]:
        """Every column that is needed, once."""
        others = (self.weights, self.time, *named_columns(self.groups), *self.by, *named_columns(self.id))
        outcomes = [self.target, *self.raters] if self.target else []
        return list(dict.fromkeys([*outcomes, *self.probs, *(c for c in others if c is not None)]))

    @property
    def id_name(self) -> str:
        """What the ids are called."""
        return ", ".join(named_columns(self.id))

    def to_dict(self) -> dict[str, Any]:
        """As plain Python values."""
        return {
            "target": self.target,
            "probs": list(self.probs),
            "logits": self.logits,
            "weights": self.weights,
            "groups": list(self.groups) if isinstance(self.groups, tuple) else self.groups,
            "by": list(self.by),
            "id": list(self.id) if isinstance(self.id, tuple) else self.id,
            "outcomes_are": self.outcomes_are,
            "not_taken": list(self.not_taken),
            "found_by": self.found_by,
            **({"raters": list(self.raters), "raters_are": self.raters_are} if self.raters else {}),
            **({"sets": True} if self.sets else {}),
            **({"time": self.time, "horizon": self.followup.to_dict()} if self.followup else {}),
        }

    def in_words(self, classes: Sequence[Hashable] | None) -> tuple[str, ...]:
        """How each column was read, one line each."""
        positions = self.outcomes_are == "positions" and classes is not None
        how = f" (positions: {short([f'{i} = {c}' for i, c in enumerate(classes or ())])})"
        lines = [f"outcomes: {self.target}{how if positions else ''}"] if self.target else []
        if self.raters:
            what = {"counts": "numbers of raters", "shares": "shares of raters"}.get(
                self.raters_are, "raters"
            )
            lines = [f"{what}: {short(self.raters)}{how if positions else ''}"]
        what = "prediction sets" if self.sets else "logits" if self.logits else self.outputs
        if self.outputs != PROBABILITIES:
            lines.append(f"{what} probabilities: {short(self.probs)}")
        elif len(self.probs) == 1:
            about = "" if classes is None or self.names is None else f", of {short(classes)}"
            lines.append(f"{what}: {self.probs[0]}{about}")
        elif classes is None or [str(c) for c in classes] == list(self.probs):
            lines.append(f"{what}: {short(self.probs)}")
        else:
            pairs = [f"{column} ({name})" for column, name in zip(self.probs, classes, strict=True)]
            lines.append(f"{what}: {short(pairs)}")
        if self.found_by == "sums":
            lines[-1] += " (recognised by the sums of their rows)"
        if self.renamed:
            pairs = [f"{old} to {new}" for old, new in zip(self.renamed, classes or (), strict=True)]
            lines.append(f"renamed: {short(pairs)}")
        if self.not_taken:
            lines.append(f"not taken: {short(self.not_taken)}")
        for role, column in (("weights", self.weights), ("groups", self.groups), ("ids", self.id)):
            if column is not None:
                lines.append(f"{role}: {' and '.join(named_columns(column))}")
        lines += [f"subgroups: {column}" for column in self.by]
        lines += [f"times: {self.time}{self.followup.brief if self.followup else ''}"] if self.time else []
        return tuple(lines)


def short(names: Sequence[Hashable], limit: int = 6) -> str:
    """The first names, and how many there are when these are not all."""
    shown = ", ".join(str(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names):,} in all)"


@dataclass(frozen=True)
class Predictions:
    r"""Rows of a file, ready for `evaluate` and its like.

    Attributes
    ----------
    path : str
        The file.
    y : array of shape (N,) or (N, R)
        Positions of the outcomes; the labels themselves where any class is called by a number, which
        could be mistaken for a position. Of several raters their positions, negative where one gave none; or
        the numbers or shares of raters for each class.
    p : array of shape (N, K)
        Probabilities (or logits), in the floating-point type of the file.
    classes : tuple or None
        The K names in the order of the columns of `p`; None where the file has none.
    roles : Roles
        Which column is what.
    weights : array of shape (N,) or None
        Weights of the rows.
    groups : array of shape (N,), Groups or None
        Labels of clusters; of two kinds of groups, labels with two fields.
    by : mapping of str to array of shape (N,)
        Labels of subgroups by column.
    ids : array of shape (N,) or None
        Names of the rows.
    start : int
        The number of the first row, where these are not all rows.
    rows : array of shape (N,) or None
        The numbers of the rows in the file; None where they follow each other.
    times : array of shape (N,) or None
        The times up to which rows were followed, until outcomes are judged at a horizon.
    skipped : Skipped or None
        The invalid rows that were left out; None unless that was asked for.
    ids_left_out : tuple of str
        The ids of these rows, as far as they have any.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from verax import files
    >>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
    >>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
    >>> read = files.read(path)
    >>> read.classes, read.y.tolist()
    (('cat', 'dog'), [0, 1])
    """

    path: str
    y: Array
    p: Array
    classes: tuple[Hashable, ...] | None
    roles: Roles
    weights: Array | None = None
    groups: Array | Groups | None = None
    by: Mapping[str, Array] = field(default_factory=dict)
    ids: Array | None = None
    start: int = 0
    rows: Array | None = None
    skipped: Skipped | None = None
    ids_left_out: tuple[str, ...] = ()
    times: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def outcomes(self) -> Any:
        """The outcomes as `Forecasts` takes them."""
        if not self.roles.raters:
            return self.y
        if self.roles.counted:
            kind: Any = self.roles.raters_are
            return Shares.of_numbers(self.y, kind, self.classes, self.p)
        return Shares.of_codes(self.y, self.roles.raters, int(self.p.shape[1]), self.classes, self.p)

    @property
    def n_given(self) -> int:
        """How many rows the file has here, those included that were left out."""
        return len(self) if self.skipped is None else self.skipped.n_given

    @property
    def numbers(self) -> Array:
        """The numbers of all rows in the file."""
        return self.start + np.arange(len(self)) if self.rows is None else self.rows

    def number(self, row: int) -> int:
        """The number of a row in the file.

        Parameters
        ----------
        row : int
            The place of the row among these.

        Returns
        -------
        int
            Its number.
        """
        return self.start + row if self.rows is None else int(self.rows[row])

    def moved(self, start: int) -> Predictions:
        """The same rows, numbered after those of earlier files.

        Parameters
        ----------
        start : int
            How many rows come before.

        Returns
        -------
        Predictions
            The rows, with larger numbers.
        """
        return replace(
            self,
            start=self.start + start,
            rows=None if self.rows is None else self.rows + start,
            skipped=None if self.skipped is None else self.skipped.moved(start),
        )

    def take(self, rows: Array) -> Predictions:
        """Some rows, in this order.

        Parameters
        ----------
        rows : array of int
            The places of the rows among these.

        Returns
        -------
        Predictions
            The rows.
        """
        numbers = self.start + rows if self.rows is None else self.rows[rows]
        optional: dict[str, Any] = {
            name: take_rows(getattr(self, name), rows) for name in ("weights", "groups", "ids", "times")
        }
        by = {column: labels[rows] for column, labels in self.by.items()}
        # Columns that lie one after the other are taken one after the other.
        p = self.p.T.take(rows, axis=1).T if self.p.flags.f_contiguous else self.p[rows]
        return replace(self, y=self.y[rows], p=p, by=by, rows=numbers, **optional)

    def valid(self, *, normalize: bool, logits: bool) -> Predictions:
        """The valid rows, with what was left out.

        Parameters
        ----------
        normalize : bool
            Whether rows will be divided by their sums.
        logits : bool
            Whether `p` holds logits.

        Returns
        -------
        Predictions
            The rows.
        """
        if not len(self):
            return self
        survey = InvalidRows(len(self))
        scale = {"normalize": normalize, "logits": logits}
        # Of sets, whose form was checked as they were read, outcomes and weights are left.
        p = np.broadcast_to(1 / self.p.shape[1], self.p.shape) if self.roles.sets else self.p
        forecasts = Forecasts(self.outcomes, p, classes=self.classes, weights=self.weights, **scale)  # type: ignore[arg-type]
        survey.add_offenders(forecasts.offenders(), np.arange(len(self)))
        skipped, before = survey.skipped(), self.skipped or Skipped(len(self))
        if not skipped.count:
            return replace(self, skipped=before)
        rows = sorted([*before.rows, *(self.number(row) for row in skipped.rows)])
        both = replace(before + skipped, n_given=before.n_given, rows=tuple(rows))
        gone = () if self.ids is None else tuple(str(self.ids[row]) for row in skipped.rows)
        left_out = (*self.ids_left_out, *gone)
        return replace(self.take(survey.kept), skipped=both, ids_left_out=left_out)

    def judged(self) -> Predictions:
        """The rows with outcomes at the horizon and the weights for them, where one was asked for."""
        followup = self.roles.followup
        if followup is None or self.times is None:
            return self
        forecasts = Forecasts(self.outcomes, self.p, classes=self.classes, logits=True)
        positions = np.asarray(forecasts.outcomes.positions(0, len(self)))
        happened, weights = followup.judged(self.times, positions == 1, self.weights)
        y = np.array(self.y)
        # Outcomes are given as they were: one-hot, names that are numbers, or positions.
        none = np.eye(2, dtype=y.dtype)[0] if y.ndim == 2 else self._none
        y[~happened] = none
        return replace(self, y=y, weights=weights, times=None)

    @property
    def _none(self) -> Any:
        """How outcomes without the event are called."""
        named = self.classes is not None and any(isinstance(c, (int, float, np.number)) for c in self.classes)
        return self.classes[0] if named and self.classes is not None else 0

    def rescaled(self) -> Rescaled:
        """The rows that are to be divided by their sums."""
        p: Any = self.p
        if p.ndim == 1:
            # The probability of class 1 alone, which has no sum.
            return Rescaled(len(self))
        totals = np.zeros(len(self))
        for j in range(p.shape[1]):
            totals += p.columns[j] if isinstance(p, Columns) else p[:, j]
        return Rescaled.of(totals, Unity.of(p))

    @property
    def taken(self) -> tuple[str, ...]:
        """How each column was read, in words, one line each."""
        return self.roles.in_words(self.classes)


def together(kinds: list[Any]) -> Any:
    """The labels of no, one or two kinds of groups, coded or not, as the groups of the rows."""
    if len(kinds) < 2:
        return kinds[0] if kinds else None
    return crossed(*kinds) if isinstance(kinds[0], Groups) else paired(*kinds)


def together_ids(columns: Sequence[Any]) -> Any:
    """The names of rows from no, one or several columns of ids."""
    if len(columns) < 2:
        return columns[0] if columns else None
    return np.array([id_of(values) for values in zip(*columns, strict=True)], str)


def concatenate(parts: Sequence[Predictions]) -> Predictions:
    """Consecutive rows of one file as one."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]

    def whole(name: str) -> Array | None:
        pieces = [getattr(part, name) for part in parts]
        return None if pieces[0] is None else np.concatenate(pieces)

    by = {column: np.concatenate([part.by[column] for part in parts]) for column in first.by}
    y, p = np.concatenate([part.y for part in parts]), np.concatenate([part.p for part in parts])
    joined: dict[str, Any] = {name: whole(name) for name in ("weights", "groups", "ids", "rows", "times")}
    left_out = [part.skipped for part in parts if part.skipped is not None]
    joined["skipped"] = reduce(add, left_out) if left_out else None
    joined["ids_left_out"] = tuple(text for part in parts for text in part.ids_left_out)
    return replace(first, y=y, p=p, by=by, **joined)
