"""What callers say about a file of predictions, which column is what, and the rows that are read."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from verax.common.checks import check_choice, check_flag
from verax.errors import InputError, Remedy, passing, show
from verax.files.naming import TARGETS, spoken
from verax.inputs.arrays import to_host
from verax.inputs.columns import Columns
from verax.inputs.cumulative import OUTPUTS
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, crossed, paired
from verax.inputs.rescaling import Rescaled
from verax.inputs.shares import Shares
from verax.inputs.skipping import InvalidRows, Skipped, take_rows
from verax.inputs.validity import Unity

# What columns of raters may hold.
# What columns hold, unless it is probabilities at thresholds.
PROBABILITIES = "probabilities"
RATERS_ARE = ("labels", "counts", "shares")

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Request:
    """What the caller says about a file; what is None is found by name.

    Attributes
    ----------
    target : str | None
        The column of outcomes. For a .npy file of probabilities: the .npy file of outcomes.
    probs : tuple[str, ...]
        Columns of probabilities, as names or glob patterns.
    classes : tuple[Hashable, ...] | None
        Names of the classes; they choose among named columns, and give their order.
    weights, groups, id : str | None
        One column each; never guessed, except for the arrays of an .npz file. Of two kinds of groups, two
        columns. Rows may be identified by several columns together.
    by : tuple[str, ...]
        Columns of subgroups.
    positive : str | None
        The class that a single column of probabilities is about.
    ordered : bool
        The classes have an order, which must be known.
    logits : bool
        The probabilities are logits, and are found by the names of logits.
    normalize : bool
        Rows will be divided by their sums, so a row need not sum to 1.
    percent : bool
        Probabilities are percentages, and are divided by 100.
    outputs : str
        What columns hold: "probabilities" of the classes, or those at thresholds of ordered classes, as in
        `from_cumulative`.
    delimiter, decimal : str
        Of CSV files.
    invalid : str
        "raise", or "skip" to leave out rows that are invalid.
    outcomes : bool
        The file holds outcomes; if not, forecasts alone are read, and a column of outcomes is left out.
    outcomes_file : str | None
        Another file that holds the outcomes; `target` is then a column of that file.
    raters : tuple[str, ...]
        Columns in place of a column of outcomes: with the labels of one rater each, or for each class.
    raters_are : str
        What these hold: "labels", or for each class its "counts" or its "shares" of the raters.
    rater_column, label_column : str | None
        Of a long table, which has a row for each label: the columns of raters and of their labels. The id is
        that of the case.
    sets : bool
        The columns in place of probabilities hold prediction sets.
    n_classes : int | None
        The number of classes of sets that hold positions.
    """

    target: str | None = None
    probs: tuple[str, ...] = ()
    classes: tuple[Hashable, ...] | None = None
    weights: str | None = None
    groups: str | tuple[str, str] | None = None
    by: tuple[str, ...] = ()
    id: str | tuple[str, ...] | None = None
    positive: str | None = None
    ordered: bool = False
    logits: bool = False
    normalize: bool = False
    percent: bool = False
    outputs: str = PROBABILITIES
    delimiter: str | None = None
    decimal: str = "."
    invalid: str = "raise"
    outcomes: bool = True
    outcomes_file: str | None = None
    raters: tuple[str, ...] = ()
    raters_are: str = "labels"
    rater_column: str | None = None
    label_column: str | None = None
    sets: bool = False
    n_classes: int | None = None

    @classmethod
    def of(cls, **given: Any) -> Request:
        """A request from what a caller passes, with the types checked."""
        for name in ("target", "weights", "positive", "delimiter"):
            if given[name] is not None and not isinstance(given[name], str):
                raise InputError("must be a text", argument=name, kind="type", found=_it_is(given[name]))
        for name in ("probs", "by"):
            given[name] = _texts(name, given[name])
        given["raters"] = _texts("raters", given.get("raters"))
        if given["raters"] and given["target"] is not None:
            raise InputError("cannot be given beside the column of outcomes", argument="raters")
        given.setdefault("raters_are", RATERS_ARE[0])
        check_choice("raters_are", given["raters_are"], RATERS_ARE)
        if given["raters_are"] != RATERS_ARE[0] and not given["raters"]:
            raise InputError(
                "is about the columns of raters", argument="raters_are", remedies=[passing(raters=...)]
            )
        given["groups"] = group_columns(given["groups"])
        given["id"] = id_columns(given["id"])
        _check_long(given)
        if given["classes"] is not None:
            given["classes"] = _names(given["classes"])
        if given["delimiter"] is not None:
            _check_mark("delimiter", given["delimiter"])
        _check_mark("decimal", given["decimal"])
        check_choice("invalid", given["invalid"], ("raise", "skip"))
        for name in ("logits", "normalize", "percent"):
            given[name] = check_flag(name, given[name])
        given.setdefault("outputs", PROBABILITIES)
        check_choice("outputs", given["outputs"], (PROBABILITIES, *OUTPUTS))
        if given["outputs"] != PROBABILITIES:
            _check_thresholds(given)
        if given.get("sets"):
            for name in ("logits", "normalize", "percent", "raters", "rater_column", "positive"):
                if given.get(name):
                    raise InputError("does not apply to prediction sets", argument=name)
        return cls(**given)


def _check_thresholds(given: Mapping[str, Any]) -> None:
    """Refuse columns of thresholds that are not named, or options that are about classes."""
    for name in ("logits", "normalize", "sets", "positive"):
        if given.get(name):
            logistic = [Remedy("Apply the logistic function to them first.")] if name == "logits" else []
            raise InputError(
                f"does not apply to {given['outputs']} outputs, which are probabilities",
                argument=name,
                remedies=logistic,
            )
    if not given["probs"]:
        raise InputError(
            f"must name the columns of {given['outputs']} outputs, lowest threshold first",
            argument="probs",
            kind="missing",
            remedies=[passing(probs=...)],
        )


def _check_long(given: Mapping[str, Any]) -> None:
    """Refuse a long table of raters of which not all columns are named, or other outcomes beside it."""
    named = {name: given.get(name) for name in ("rater_column", "label_column")}
    if all(value is None for value in named.values()):
        return
    for name, other in (("rater_column", "label_column"), ("label_column", "rater_column")):
        if named[name] is None:
            raise InputError(
                "must be given with the other column of a long table",
                argument=name,
                kind="missing",
                found=f"{other.replace('_', ' ')} is {show(named[other])}",
            )
    if given["raters"] or given["target"] is not None:
        what = "raters" if given["raters"] else "target"
        raise InputError("cannot be given beside the columns of a long table of raters", argument=what)
    if given["id"] is None:
        raise InputError(
            "must name the column of cases in a long table of raters", argument="id", kind="missing"
        )


def _texts(argument: str, value: Any) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    texts = () if value is None else (value,) if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise InputError(
            "must be a name or a list of names", argument=argument, kind="type", found=_it_is(value)
        )
    return tuple(texts)


def group_columns(given: object) -> str | tuple[str, str] | None:
    """The column of groups, or two of them."""
    columns = _texts("groups", given)
    if len(set(columns)) < len(columns) or len(columns) > 2:
        raise InputError(
            "must be one column or two", argument="groups", values=columns, found=_it_is(columns)
        )
    return (columns[0], columns[1]) if len(columns) == 2 else columns[0] if columns else None


def id_columns(given: object) -> str | tuple[str, ...] | None:
    """The column that identifies rows, or those that do together."""
    columns = _texts("id", given)
    if len(set(columns)) < len(columns):
        raise InputError("must be different columns", argument="id", values=columns, found=_it_is(columns))
    return columns if len(columns) > 1 else columns[0] if columns else None


def id_of(values: Sequence[object]) -> str:
    """The name of a row from the values of its columns of ids; different values have different names.

    >>> id_of(["p7"]), id_of(["p7", 2]), id_of(["a, b", "c"])
    ('p7', 'p7, 2', '"a, b", c')
    """
    if len(values) == 1:
        return str(values[0])
    texts = map(str, values)
    return ", ".join(json.dumps(text) if "," in text or '"' in text else text for text in texts)


def each_name(columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The names of columns, of which there are none, one or several."""
    return () if columns is None else (columns,) if isinstance(columns, str) else columns


def _names(value: Any) -> tuple[Hashable, ...]:
    """The names of classes as a tuple; of a text, its characters."""
    value = to_host(value) if hasattr(value, "__array_namespace__") else value
    single = isinstance(value, np.ndarray) and value.ndim == 0
    if single or isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise InputError("must be a list of names", argument="classes", kind="type", found=_it_is(value))
    return tuple(value)


def _check_mark(argument: str, mark: object) -> None:
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0':
        raise InputError("must be one character", argument=argument, found=_it_is(mark), values=[mark])


def _it_is(value: object) -> str:
    return f"it is {show(value)}"


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
        others = (self.weights, *each_name(self.groups), *self.by, *each_name(self.id))
        outcomes = [self.target, *self.raters] if self.target else []
        return list(dict.fromkeys([*outcomes, *self.probs, *(c for c in others if c is not None)]))

    @property
    def id_name(self) -> str:
        """What the ids are called."""
        return ", ".join(each_name(self.id))

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
                lines.append(f"{role}: {' and '.join(each_name(column))}")
        lines += [f"subgroups: {column}" for column in self.by]
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
            name: take_rows(getattr(self, name), rows) for name in ("weights", "groups", "ids")
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
        found, before = survey.skipped(), self.skipped or Skipped(len(self))
        if not found.count:
            return replace(self, skipped=before)
        rows = sorted([*before.rows, *(self.number(row) for row in found.rows)])
        both = replace(before + found, n_given=before.n_given, rows=tuple(rows))
        gone = () if self.ids is None else tuple(str(self.ids[row]) for row in found.rows)
        left_out = (*self.ids_left_out, *gone)
        return replace(self.take(survey.kept), skipped=both, ids_left_out=left_out)

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
    joined: dict[str, Any] = {name: whole(name) for name in ("weights", "groups", "ids", "rows")}
    left_out = [part.skipped for part in parts if part.skipped is not None]
    joined["skipped"] = reduce(add, left_out) if left_out else None
    joined["ids_left_out"] = tuple(text for part in parts for text in part.ids_left_out)
    return replace(first, y=y, p=p, by=by, **joined)
