"""Predictions that are not in memory: the summaries that analyses need, and the parts they are made of.

An analysis says which summaries it needs (a `Recipe` each). The handle reads the rows in parts, wherever they
are, makes the summaries of each part there and merges them. Neither knows the other.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce, wraps
from operator import add
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, get_args, get_origin

import numpy as np

from verax.common.checks import in_digits
from verax.common.packing import dump, load, refusing
from verax.errors import InputError, Remedy, passing
from verax.inputs.arrays import Ints
from verax.inputs.rows import Rows, at_fault, paired, places_of, some_of
from verax.inputs.skipping import NO_ROWS, NO_VALID_ROW, Skipped

Array = np.ndarray[Any, Any]
T = TypeVar("T")
# What functions call their forecasts.
_FORECASTS = ("p", "forecasts", "sets")


# How many rows a partition may have. Spark's monotonically_increasing_id numbers rows in the same way.
_PARTITION = 2**33
_KIND = "summaries"


def first_row(partition: int) -> int:
    """The number of the first row of a partition that does not know how many rows come before it.

    >>> first_row(0), first_row(2)
    (0, 17179869184)
    """
    return partition * _PARTITION


class Mergeable(Protocol):
    """A summary of rows. Merging is commutative and associative; the bytes state their kind."""

    def merge(self, other: Self, /) -> Self: ...
    def to_bytes(self) -> bytes: ...


S = TypeVar("S", bound=Mergeable)
S_co = TypeVar("S_co", bound=Mergeable, covariant=True)


@dataclass(frozen=True)
class Part:
    """Consecutive rows of what a handle reads.

    Attributes
    ----------
    models : Mapping[str, Rows]
        The rows with the forecasts of each model. They know their weights and groups, their place in the
        whole, and how to name invalid ones.
    start : int
        The number of the first row in the whole. Where parts do not know how many rows come before them, rows
        are numbered by partition: `first_row(partition)` is the first number of each.
    ids : numpy.ndarray | None
        (N,) names of the rows.
    by : Mapping[str, numpy.ndarray]
        (N,) labels of subgroups, by column.
    numbers : numpy.ndarray | None
        (N,) the numbers of the rows in the whole, where invalid ones between them were left out.
    skipped : Skipped | None
        The invalid rows that were left out; None unless that was asked for.
    subset : Callable | None
        Makes a part of some of the rows, by their places in this one.
    whole : bool
        Whether these are all rows, held in memory: summaries then need not be bounded.
    times : numpy.ndarray | None
        (N,) the times up to which rows were followed, where outcomes are not judged yet at a horizon.
    cases : Part | None
        Where rows are pairs of a case and a class, the cases.
    places : numpy.ndarray | None
        (N,) the place of each row's case among these.
    """

    models: Mapping[str, Rows]
    start: int = 0
    ids: Array | None = None
    by: Mapping[str, Array] = field(default_factory=dict)
    numbers: Array | None = None
    skipped: Skipped | None = None
    subset: Callable[[Ints], Part] | None = field(default=None, repr=False, compare=False)
    whole: bool = False
    times: Array | None = field(default=None, repr=False, compare=False)
    cases: Part | None = field(default=None, repr=False, compare=False)
    places: Ints | None = field(default=None, repr=False, compare=False)
    _made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def divisible(
        cls,
        models: Mapping[str, Rows],
        ids: Array | None,
        by: Mapping[str, Array],
        numbers: Array | None,
        skipped: Skipped | None = None,
        *,
        start: int = 0,
        whole: bool = True,
    ) -> Part:
        """Rows in memory as a part that can be divided further."""

        def subset(places: Ints) -> Part:
            return cls.divisible(
                {name: some_of(rows, places) for name, rows in models.items()},
                None if ids is None else ids[places],
                {name: column[places] for name, column in by.items()},
                start + places if numbers is None else numbers[places],
                start=start,
                whole=whole,
            )

        return cls(models, start, ids, by, numbers, skipped, subset, whole)

    @property
    def in_pairs(self) -> Part:
        """The same rows with one class each: a case of several raters is read as its classes.

        Each class has its share of the weight, and cases are groups where there are no larger ones.
        """
        if not any(rows.shared for rows in self.models.values()):
            return self
        return self.once("pairs", self._paired)

    def _paired(self) -> Part:
        for name, rows in self.models.items():
            try:
                rows.check()
            except InputError as error:
                raise (at_fault(name, error) if self.whole and len(self.models) > 1 else error) from None
        places, cases = places_of(self.rows), self.row_numbers
        at = places[0]
        pairs = Part.divisible(
            {name: paired(rows, places, cases) for name, rows in self.models.items()},
            None if self.ids is None else self.ids[at],
            {name: column[at] for name, column in self.by.items()},
            cases[at],
            self.skipped,
            start=self.start,
            whole=self.whole,
        )
        return replace(pairs, cases=self, places=at)

    @property
    def n_rows(self) -> int:
        """The number of valid rows; there are no models where there are none."""
        return self.rows.n_rows if self.models else 0

    @property
    def rows(self) -> Rows:
        """The rows with the forecasts of the first model."""
        return next(iter(self.models.values()))

    @property
    def row_numbers(self) -> Array:
        """(N,) the numbers of the rows in the whole."""
        return np.arange(self.start, self.start + self.n_rows) if self.numbers is None else self.numbers

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, computed once for all recipes that use the same key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[no-any-return]

    def forget(self, key: Hashable) -> None:
        """Drop the result with this key."""
        self._made.pop(key, None)

    def forget_all(self) -> None:
        """Drop all results of `once`."""
        self._made.clear()

    def made(self, key: Hashable) -> Any:
        """The result of `once` with this key; None if there is none."""
        # Keys that hold many rules take long to look up.
        return self._made.get(key) if self._made else None


class Gathering(Protocol[S_co]):
    """Takes in one part after the other, and gives their summary."""

    def add(self, part: Part, /) -> None: ...
    def summary(self) -> S_co: ...


class Recipe(ABC, Generic[S]):
    """How a summary is made. Recipes are sent to where the rows are, so they hold no rows themselves.

    The class of the summaries is the one that `Recipe[...]` names. A recipe sees one class per row: cases of
    several raters come as pairs (`Part.in_pairs`). One that is declared with `cases=True` sees the cases.
    """

    makes: ClassVar[Any]
    # Factor by which parts are longer: above 1 for recipes that divide a part, and spend some time on each
    # piece however small it is.
    longer: ClassVar[int] = 1
    # Whether what it gathers is large, so that there should be one for all threads. It then shares the work
    # on a part among them (`threads`).
    shared: ClassVar[bool] = False

    def __init_subclass__(cls, *, cases: bool = False) -> None:
        super().__init_subclass__()
        for name in ("take", "more") if not cases else ():
            if name in cls.__dict__:
                setattr(cls, name, _of_pairs(cls.__dict__[name]))
        if not cases and "gathering" in cls.__dict__:
            cls.gathering = _gathering_pairs(cls.__dict__["gathering"])  # type: ignore[method-assign]
        for base in getattr(cls, "__orig_bases__", ()):
            if issubclass(get_origin(base) or object, Recipe) and isinstance(get_args(base)[0], type):
                cls.makes = get_args(base)[0]

    def gathering(self) -> Gathering[S]:
        """Start to take in parts, one after the other. By default their summaries are merged."""
        return Merged(self)

    @abstractmethod
    def take(self, part: Part) -> S:
        """The summary of at least one row."""

    def more(self, part: Part, earlier: S | None) -> S:
        """The summary of some rows, to merge with an earlier one; may leave out rows that cannot matter."""
        return self.take(part)

    def n_groups(self, summary: S) -> int:
        """The number of groups with sums in a summary; 0 if it does not grow with groups."""
        return 0

    @property
    def follows(self) -> bool:
        """Whether it needs a result of an earlier pass over all rows, which a shard lacks."""
        return False

    def former_texts(self) -> tuple[str, ...]:
        """The texts that named its summaries in files of 0.3 and before, the latest first.

        Today's name is spelled from its settings (`verax.common.spelling`).
        """
        return (repr(self),)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The sizes of its summaries by the names that their fields use, given those of the rows."""
        return {}

    def check(self, summary: S) -> None:
        """Refuse a loaded summary that this recipe cannot have made."""

    def load(self, stored: bytes, sizes: Mapping[str, int] | None = None) -> S:
        """A summary from its bytes; `sizes` are those of the rows."""
        known = {} if sizes is None else sizes
        summary: S = self.makes.from_bytes(stored, {**known, **self.sizes(known)})
        with refusing("is missing or of another type"):
            self.check(summary)
        return summary


def _of_pairs(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a recipe, with one class per row in the parts that it sees."""

    @wraps(method)
    def shown(self: Any, part: Part, *known: Any) -> Any:
        return method(self, part.in_pairs, *known)

    return shown


def _gathering_pairs(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same for `gathering`."""

    @wraps(method)
    def gathering(self: Any) -> Any:
        return _Pairs(method(self))

    return gathering


class _Pairs(Generic[S]):
    """Shows parts to a gathering with one class per row."""

    def __init__(self, gathered: Gathering[S]) -> None:
        self._gathered = gathered

    def add(self, part: Part) -> None:
        self._gathered.add(part.in_pairs)

    def at_most(self, keys: int) -> None:
        """Keep at most this number of keys, if the summary can be coarser."""
        if hasattr(self._gathered, "at_most"):
            self._gathered.at_most(keys)

    def watch(self, seen: Seen) -> None:
        """Watch the number of rows that all collectors have seen, if that matters."""
        if hasattr(self._gathered, "watch"):
            self._gathered.watch(seen)

    def summary(self) -> S:
        return self._gathered.summary()


class Merged(Generic[S]):
    """Merges the summaries of parts.

    A summary with sums by group is merged with its neighbour once that has at most twice its groups. If every
    part were merged with all before it, these would be read again for every part.
    """

    def __init__(self, recipe: Recipe[S]) -> None:
        self._recipe = recipe
        # Neighbours, by decreasing number of groups.
        self._summaries: list[S] = []

    def add(self, part: Part) -> None:
        self._summaries.append(self._recipe.more(part, self._summaries[0] if self._summaries else None))
        n_groups = self._recipe.n_groups
        while len(self._summaries) > 1 and 2 * n_groups(self._summaries[-1]) >= n_groups(self._summaries[-2]):
            self._merge_last()

    def _merge_last(self) -> None:
        last = self._summaries.pop()
        self._summaries[-1] = self._summaries[-1].merge(last)

    def at_most(self, keys: int) -> None:
        """Keep at most this number of keys, if the summary can be coarser."""
        summaries: list[Any] = self._summaries
        self._summaries = [
            summary.at_most(keys) if hasattr(summary, "at_most") else summary for summary in summaries
        ]

    def summary(self) -> S:
        while len(self._summaries) > 1:
            self._merge_last()
        return self._summaries[0]


@dataclass(frozen=True)
class Summaries:
    """The summaries of some rows by name; none if there were no valid rows."""

    by_name: Mapping[str, Any]
    n_rows: int
    skipped: Skipped | None
    # Whether some row has a weight above zero.
    weighed: bool = True

    def merge(self, other: Summaries) -> Summaries:
        """The summaries of the rows of both."""
        parts = [part.by_name for part in (self, other) if part.by_name]
        merged = reduce(lambda a, b: {name: a[name].merge(b[name]) for name in a}, parts) if parts else {}
        left_out = [part.skipped for part in (self, other) if part.skipped is not None]
        skipped = reduce(add, left_out) if left_out else None
        weighed = any(part.weighed for part in (self, other) if part.n_rows)
        return Summaries(merged, self.n_rows + other.n_rows, skipped, weighed)

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads, without pickle."""
        return dump(
            _KIND,
            {
                "summaries": {name: summary.to_bytes() for name, summary in self.by_name.items()},
                "n_rows": self.n_rows,
                "skipped": None if self.skipped is None else self.skipped.to_bytes(),
                "weighed": self.weighed,
            },
        )

    @classmethod
    def from_bytes(cls, data: bytes, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        """The summaries that `to_bytes` wrote, made by these recipes."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            by_name = {name: recipes[name].load(stored) for name, stored in values["summaries"].items()}
            skipped = values["skipped"]
            left_out = None if skipped is None else Skipped.from_bytes(skipped)
            return cls(by_name, int(values["n_rows"]), left_out, bool(values["weighed"]))

    def __getitem__(self, name: str) -> Any:
        return self.by_name[name]


@dataclass
class Seen:
    """The number of valid rows that all collectors have seen; concurrent threads may lose some."""

    n_rows: int = 0


class Collector:
    """Makes the summaries of parts that are read one after the other; collectors share `seen`."""

    def __init__(
        self, recipes: Mapping[str, Recipe[Any]], threads: int = 1, seen: Seen | None = None
    ) -> None:
        self._gathered: dict[str, Any] = {name: recipe.gathering() for name, recipe in recipes.items()}
        for name, recipe in recipes.items():
            if recipe.shared:
                self._gathered[name].threads = threads
        self._seen = Seen() if seen is None else seen
        for gathered in self._gathered.values():
            if hasattr(gathered, "watch"):
                gathered.watch(self._seen)
        self._n_rows = 0
        self._weighed = False
        self._skipped: Skipped | None = None

    def add(self, part: Part) -> int:
        """Take in a part and return its number of valid rows; a part without any reaches no recipe."""
        if part.n_rows:
            weights = part.rows.weights
            self._weighed = self._weighed or weights is None or bool((weights > 0).any())
            self._seen.n_rows += part.n_rows
            for gathered in self._gathered.values():
                gathered.add(part)
        self._n_rows += part.n_rows
        if part.skipped is not None:
            self._skipped = part.skipped if self._skipped is None else self._skipped + part.skipped
        return part.n_rows

    def summaries(self) -> Summaries:
        """The summaries of all parts so far."""
        gathered = self._gathered if self._n_rows else {}
        by_name = {name: gathering.summary() for name, gathering in gathered.items()}
        return Summaries(by_name, self._n_rows, self._skipped, self._weighed)


def collectors_for(recipes: Mapping[str, Recipe[Any]], threads: int) -> list[Collector]:
    """A collector per thread, or a single one that shares its work among threads if it is large."""
    if any(recipe.shared for recipe in recipes.values()):
        return [Collector(recipes, threads)]
    seen = Seen()
    return [Collector(recipes, seen=seen) for _ in range(threads)]


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """What is known of rows before they are read: attributes of the handle on them, which describes each."""

    models: tuple[str, ...]
    classes: tuple[Hashable, ...] | None
    n_classes: int
    taken: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    lists: bool = False
    sets: bool = False
    outcome: str = ""
    graded: Any = None
    weighted: bool = True
    rated: bool = False
    followed: bool = False


class Handle(ABC):
    """Predictions that are not in memory. Functions that take `(y, p)` take a handle in their place.

    Attributes
    ----------
    name : str
        Its name in messages.
    models : tuple of str
        The names of the models.
    classes : tuple or None
        The names of the classes; None if they are only numbered.
    n_classes : int
        The number of classes, K.
    n_rows : int or None
        The number of rows; None if only reading tells.
    taken : tuple of str
        How each column was read, one line each.
    by : tuple of str
        The columns of subgroups.
    lists : bool
        Whether the forecasts are top lists, not full distributions.
    sets : bool
        Whether the forecasts are prediction sets.
    outcome : str
        The name of the outcomes, such as "churn"; empty if they have none, or a usual one such as "label".
    graded : Rule or None
        The rule `Grade` with the range of grades, if rows are graded answers.
    has_rows : bool
        Whether rows can be read as often as needed. If not, there are only saved summaries.
    shard : bool
        Whether the rows are a shard whose summaries are saved. It may consist of a single group, and all
        weights may be zero.
    weighted : bool
        Whether rows may have weights.
    rated : bool
        Whether several raters may have labelled the rows.
    followed : bool
        Whether outcomes are judged at a horizon, with weights that the times of all rows tell.
    whole : bool
        Whether all rows are in memory, as one part, so that there is an order of them.
    near : bool
        Whether rows are read by this process and not held: large summaries travel nowhere, and cost less than
        reading rows again.
    """

    name: str
    models: tuple[str, ...]
    classes: tuple[Hashable, ...] | None
    n_classes: int
    n_rows: int | None
    taken: tuple[str, ...]
    by: tuple[str, ...] = ()
    lists: bool = False
    sets: bool = False
    outcome: str = ""
    graded: Any = None
    has_rows: bool = True
    shard: bool = False
    weighted: bool = True
    rated: bool = False
    followed: bool = False
    whole: bool = False
    near: bool = False

    @property
    def facts(self) -> RowFacts:
        """What is known of its rows."""
        return RowFacts(**{name: getattr(self, name) for name in RowFacts.__dataclass_fields__})

    def _describe(self, name: str, n_rows: int | None, facts: RowFacts) -> None:
        """Take over what is known of its rows."""
        vars(self).update(vars(facts), name=name, n_rows=n_rows)

    @property
    def most_rows(self) -> float:
        """An upper bound of the number of rows; infinite if nothing tells one before reading."""
        return math.inf if self.n_rows is None else self.n_rows

    @property
    def several(self) -> bool:
        """Whether results are by the names of models."""
        return len(self.models) > 1

    @property
    def listed(self) -> tuple[str, ...]:
        """The models whose forecasts are top lists."""
        return self.models if self.lists else ()

    @property
    def kept(self) -> Part | None:
        """All rows as one part, if they are in memory."""
        return None

    def save(self, path: str | Path, card: Any = None) -> None:
        """Write the summaries that analyses needed to a file that `scan` opens, if they were kept.

        Parameters
        ----------
        path : str or path
            The file.
        card : Scorecard, optional
            The card, if it is not the first one made.
        """
        raise InputError(
            "must be opened so that it keeps summaries before these can be saved",
            argument="source",
            remedies=[passing("to `scan`", record=True)],
        )

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes as texts; their numbers if they have no names."""
        return tuple(map(str, range(self.n_classes) if self.classes is None else self.classes))

    def called(self, outcome: str) -> Handle:
        """The same predictions with another name of the outcomes.

        Parameters
        ----------
        outcome : str
            The name; an empty one changes nothing.

        Returns
        -------
        Handle
            The predictions.
        """
        if not outcome:
            return self
        same = copy.copy(self)
        same.outcome = outcome
        return same

    def in_memory(self) -> Handle:
        """The same predictions with all rows in memory, if they fit."""
        return self

    def one_way(self) -> Handle:
        """The same predictions with one kind of groups: of two, the one with fewer groups."""
        return self

    @abstractmethod
    def in_order(self) -> Handle:
        """The same predictions for analyses that need the order of the classes, which must be known."""

    def knows(self, recipe: Recipe[Any]) -> bool:
        """Whether it can make a summary: always, unless there are only saved summaries.

        Parameters
        ----------
        recipe : Recipe
            The recipe of the summary.

        Returns
        -------
        bool
            Whether it can make the summary.
        """
        return True

    @abstractmethod
    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        """The summaries of all rows, from one pass over them."""

    def summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        """The summaries of all rows, from one pass over them; refuses predictions without a valid row.

        Parameters
        ----------
        recipes : mapping of str to Recipe
            The recipes, by name.

        Returns
        -------
        dict of str to summary
            The summaries, by the same names.
        """
        summaries = self._summarise(recipes)
        if summaries.skipped is not None:
            summaries.skipped.refuse_percentages("probs", self.name)
        if not summaries.n_rows:
            none = NO_VALID_ROW if summaries.skipped is not None and summaries.skipped.count else NO_ROWS
            left_out = "" if summaries.skipped is None else str(summaries.skipped)
            raise InputError(none, argument="source", kind="file", found=left_out, source=self.name)
        if not summaries.weighed and not self.shard:
            raise InputError("must not all be zero", argument="weights", source=self.name)
        return summaries

    def __repr__(self) -> str:
        rows = "" if self.n_rows is None else f"{self.n_rows:,} rows, "
        what = "top lists" if self.lists else "predictions"
        return f"{what} in {self.name}: {rows}{in_digits(self.n_classes)} classes\n" + "\n".join(self.taken)

    def one_model(self) -> str:
        """The only model; an error if there are several."""
        if len(self.models) == 1:
            return self.models[0]
        raise InputError(
            "must have the probabilities of one model",
            argument="y",
            found=f"{self.name} has those of {', '.join(self.models)}",
            remedies=[Remedy("Choose one with probs=... in `scan`, or use `compare`.")],
        )


def refuse_lists(handle: Handle) -> None:
    """Refuse top lists where the probabilities of all classes are needed."""
    if handle.lists:
        raise no_lists(handle.name)


def refuse_followed(handle: Handle) -> None:
    """Refuse to save the summaries of rows whose weights depend on the times of rows elsewhere."""
    if handle.followed:
        raise no_shards(handle.name)


def no_shards(source: str = "") -> InputError:
    """The error of rows whose weights depend on the times of rows elsewhere, where these are to be merged."""
    return InputError(
        "cannot be used where summaries are saved to be merged",
        argument="horizon",
        found="the weights of rows need the times of the rows of all parts",
        source=source,
        remedies=[Remedy("Evaluate the files of all parts together.")],
    )


def refuse_graded(handle: Handle) -> None:
    """Refuse graded answers where forecasts are needed."""
    if handle.graded is not None:
        raise InputError(
            "must be forecasts here",
            argument="y",
            kind="type",
            found=f"{handle.name} has graded answers" if handle.name else "these are graded answers",
            remedies=[Remedy("`compare` and `evaluate_grades` take these.", python_only=True)],
        )


def no_lists(name: str) -> InputError:
    """The error about top lists where the probabilities of all classes are needed."""
    return InputError(
        "must come with the probabilities of all classes",
        argument="y",
        kind="type",
        found=f"{name} has top lists",
        remedies=[Remedy("Lists that name every class are read as full distributions.")],
    )


def refuse_beside(given: Sequence[str]) -> None:
    """Refuse arguments beside a handle, which already has them."""
    for name in given:
        raise InputError(
            "must not be given beside predictions that `scan` has opened",
            argument=name,
            remedies=[] if name in _FORECASTS else [Remedy("Say it when opening them: `scan(...)`.")],
        )


def check_alone(function: str, signature: inspect.Signature, handle: Handle, given: Sequence[str]) -> None:
    """Refuse arguments beside a handle, and a handle if a function needs all rows in memory."""
    refuse_beside(given)
    reader = "lists.open_lists" if handle.lists else "read"
    needed = (signature.parameters.get(name) for name in _FORECASTS)
    if any(p is not None and p.default is inspect.Parameter.empty for p in needed):
        raise InputError(
            f"must be outcomes in memory: {function} needs all rows at once",
            argument="y",
            kind="type",
            found=f"these are {handle.name}, which `scan` has opened",
            remedies=[Remedy(f"Read them with `verax.files.{reader}`, if they fit.", python_only=True)],
        )
