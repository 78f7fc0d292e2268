"""The options that functions share when they read forecasts: one typed bundle, defined and described once.

A public function takes them as `**read: Unpack[RowOptions]` and hands them on as they are. The decorator
`reads` puts each of them into the function's signature and its docstring, so that `help()` and editors show
them, and refuses others as Python does. Parameters that mean the same in most functions, such as `y` and
`seed`, are also described here: a docstring has their bare names, and below them what it adds.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, get_args

from verax.inputs.events import with_positive
from verax.inputs.handles import Handle, check_alone
from verax.inputs.reading import unexpected

P = ParamSpec("P")
T = TypeVar("T")


class ForecastOptions(TypedDict, total=False):
    """How the columns and the numbers of `p` are read where there are no outcomes."""

    classes: Sequence[Hashable] | None
    normalize: bool
    logits: bool
    invalid: Literal["raise", "skip"]


class OutcomeOptions(ForecastOptions, total=False):
    """The same beside outcomes, of one rater or several."""

    raters: Literal["shares", "counts", "columns"] | None


class WeightedOptions(OutcomeOptions, total=False):
    """The same with weights of the rows."""

    weights: object | None


class RowOptions(WeightedOptions, total=False):
    """The same with groups of rows that belong together, and the event of two classes."""

    groups: object | None
    positive: Hashable | None


# The type in words, the default and the description of every option above.
_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "classes": (
        "sequence of K labels, optional",
        None,
        "Names of the columns of `p`, in order; for ordered classes lowest first.",
    ),
    "positive": (
        "label, optional",
        None,
        "The event of two classes: the class of a single column of probabilities, and the one that rates\n"
        "    are about. By default the second.",
    ),
    "weights": (
        "array_like of shape (N,), optional",
        None,
        "Importance weights of the rows, not negative, not all zero. Only their ratios matter.",
    ),
    "groups": (
        "array_like of shape (N,), or two of them, optional",
        None,
        "Labels of clusters (patients, sites) whose rows belong together and are resampled together.\n"
        "    `evaluate` and `compare` also take two kinds of them, such as [league, date].",
    ),
    "normalize": ("bool, default False", False, "Whether to divide each row of `p` by its sum first."),
    "logits": ("bool, default False", False, "Whether `p` holds logits; the softmax is applied first."),
    "raters": (
        '{"shares", "counts", "columns"}, optional',
        None,
        "What a 2-D `y` holds where several raters labelled each row: shares of the classes, numbers of\n"
        "    raters for each class, or the labels of one rater per column (missing ones allowed).",
    ),
    "invalid": (
        '{"raise", "skip"}, default "raise"',
        "raise",
        "What to do with invalid rows: refuse them, or leave them out. The result counts and lists them\n"
        "    (`skipped`), and rows keep their numbers.",
    ),
}

# The type and the description of parameters that mean the same in most functions.
_SHARED = {
    "y": (
        "array_like of shape (N,) or (N, K), or Handle",
        "Outcomes: class positions 0..K-1, labels found in `classes`, one-hot rows, or shares of classes\n"
        "    (see `raters`). Or predictions that `scan` has opened, in place of both `y` and `p`.",
    ),
    "p": (
        "array_like of shape (N, K) or (N,), or TopLists, optional",
        "Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is\n"
        "    enough.",
    ),
    "ordered": ("bool, default False", "Whether the classes have an order."),
    "confidence": ("float, default 0.95", "Confidence level of the intervals."),
    "seed": ("int, default 0", "Random seed."),
    "weights_are": (
        '{"importance", "counts"}, default "importance"',
        'What weights are. "importance": how much each row counts; only their ratios matter. "counts":\n'
        "    a row of weight 3 is three rows.",
    ),
}

_RAISES = """\
Raises
------
InputError
    If rows, labels or options are invalid. It names the argument, the rows and what can be done."""
_AFTER_RAISES = ("See Also", "Notes", "References", "Examples")


def reads(function: Callable[P, T]) -> Callable[P, T]:
    """Show the options that `function` takes as `**read` one by one, and refuse all others.

    With `invalid="skip"` invalid rows are left out before `function` is called, from every argument that has
    a value per row (`skipping.PER_ROW`), and its result counts them.

    >>> from typing import Unpack
    >>> @reads
    ... def count(y, **read: Unpack[WeightedOptions]):
    ...     '''Count rows.
    ...
    ...     Parameters
    ...     ----------
    ...     **read
    ...     '''
    >>> inspect.signature(count).parameters["normalize"].default
    False
    >>> count([0], weigths=[1])
    Traceback (most recent call last):
    TypeError: count() got an unexpected keyword argument 'weigths'. Did you mean 'weights'?
    """
    return _Reads.of(function).checked()


def reads_per_row(function: Callable[P, T]) -> Callable[P, T]:
    """`reads` for a function that returns a number per row: NaN for rows that are left out."""
    return _Reads.of(function, per_row=True).checked()


def reads_ranking(function: Callable[P, T]) -> Callable[P, T]:
    """`reads` for a function whose `by` is what rows are ranked by, not a label for each row."""
    return _Reads.of(function, ranked=True).checked()


def reads_parts(function: Callable[P, T]) -> Callable[P, T]:
    """`reads` for a function whose rows are a part of all rows, possibly without a valid one."""
    return _Reads.of(function, part=True).checked()


@dataclass(frozen=True)
class _Reads(Generic[P, T]):
    """A function that reads rows, with its options one by one.

    Attributes
    ----------
    function : Callable
        The function, whose options are `**read`.
    own, shown : Signature
        Its parameters, as it names them and with every option.
    options : Mapping[str, Any]
        The options, with their types.
    per_row, part, ranked : bool
        Whether it returns a number per row, takes parts of rows, or ranks rows by `by`.
    """

    function: Callable[P, T]
    own: inspect.Signature
    shown: inspect.Signature
    options: Mapping[str, Any]
    per_row: bool = False
    part: bool = False
    ranked: bool = False

    @classmethod
    def of(cls, function: Callable[P, T], **way: bool) -> _Reads[P, T]:
        """What a function says of its parameters."""
        own, options = inspect.signature(function), _bundle_of(function)
        named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        keyword = inspect.Parameter.KEYWORD_ONLY
        more = [
            inspect.Parameter(name, keyword, default=_OPTIONS[name][1], annotation=annotation)
            for name, annotation in options.items()
        ]
        return cls(function, own, own.replace(parameters=[*named, *more]), options, **way)

    def checked(self) -> Callable[P, T]:
        """The function as it is called: with its arguments checked, and its own event and valid rows."""
        function, name, known = self.function, self.function.__name__, self.shown.parameters
        placed = [p.name for p in known.values() if p.kind is not inspect.Parameter.KEYWORD_ONLY]

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            unknown = next((each for each in kwargs if each not in known), None)
            if unknown is not None:
                raise TypeError(unexpected(name, unknown, set(known)))
            if len(args) > len(placed):
                raise TypeError(_too_many(name, len(args), len(placed)))
            if isinstance(kwargs.get("confidence"), Fraction):
                # Results keep it, and neither JSON nor special functions know fractions.
                kwargs["confidence"] = float(kwargs["confidence"])  # type: ignore[arg-type]
            given: dict[str, Any] = dict(zip(placed, args, strict=False)) | kwargs
            if isinstance(given.get("y"), Handle):
                self._check_alone(given)
                return function(*args, **kwargs)
            positive: Any = kwargs.pop("positive", None)
            if positive is not None:
                bound = self.shown.bind(*args, **kwargs)
                bound.arguments.update(with_positive(bound.arguments, positive))
                args, kwargs = bound.args, bound.kwargs  # type: ignore[assignment]
            if isinstance(given.get("y"), Mapping) and given.get("ids") is not None:
                # Questions without a valid forecast are counted by the function itself.
                return function(*args, **kwargs)
            invalid = kwargs.pop("invalid", "raise")
            if isinstance(invalid, str) and invalid == "raise":
                return function(*args, **kwargs)
            return self._of_valid_rows(invalid, self.shown.bind(*args, **kwargs))

        checked.__signature__ = self.shown  # type: ignore[attr-defined]
        checked.__doc__ = _documented(function.__doc__, self.options)
        return checked

    def _check_alone(self, given: Mapping[str, Any]) -> None:
        """Refuse arguments beside a handle that are given and differ from their defaults."""
        beside = [
            name
            for name in ("p", "forecasts", "sets", "ids", *self.options)
            if (value := given.get(name)) is not None
            and not (isinstance(value, (bool, str)) and name in _OPTIONS and value == _OPTIONS[name][1])
        ]
        check_alone(self.function.__name__, self.own, given["y"], beside)

    def _of_valid_rows(self, invalid: object, bound: inspect.BoundArguments) -> T:
        """The result for the valid rows among those given, which counts the others."""
        from verax.common.checks import check_choice
        from verax.inputs.sets.given import without_invalid_sets
        from verax.inputs.skipping import marked, without_invalid

        check_choice("invalid", invalid, ("raise", "skip"))
        read = {name: value for name, value in bound.arguments.items() if not (self.ranked and name == "by")}
        valid, skipped, kept = (
            without_invalid_sets(read) if "sets" in read else without_invalid(read, part=self.part)
        )
        bound.arguments.update(valid)
        result = self.function(*bound.args, **bound.kwargs)
        return marked(result, skipped, kept, per_row=self.per_row)  # type: ignore[no-any-return]


def _bundle_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The options in the bundle that annotates `**read`, with their types."""
    annotation = function.__annotations__["read"]
    if isinstance(annotation, str):
        annotation = eval(annotation, function.__globals__)
    (bundle,) = get_args(annotation)
    # In the order in which they are described, and as texts, like the annotations of the function itself.
    types = bundle.__annotations__
    return {name: getattr(types[name], "__forward_arg__", types[name]) for name in _OPTIONS if name in types}


def _with_shared(lines: list[str]) -> Iterator[str]:
    """The lines of a docstring, with the shared description below each bare name of a parameter.

    Lines that a function adds to it follow.
    """
    inside = False
    for i, line in enumerate(lines):
        name = line.strip()
        if i + 1 < len(lines) and lines[i + 1].strip().startswith("---"):
            inside = name == "Parameters"
        indent = line[: len(line) - len(line.lstrip())]
        shared = _SHARED.get(name) if inside else None
        yield line if shared is None else textwrap.indent(f"{name} : {shared[0]}\n    {shared[1]}", indent)


def _documented(text: str | None, bundle: Mapping[str, Any]) -> str | None:
    """The docstring with the line `**read` replaced by the options, and with a section of errors."""
    lines = list(_with_shared((text or "").splitlines()))
    at = next((i for i, line in enumerate(lines) if line.strip() == "**read"), None)
    if at is None:
        return "\n".join(lines) if text else text
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    described = [f"{name} : {_OPTIONS[name][0]}\n    {_OPTIONS[name][2]}" for name in bundle]
    lines[at] = textwrap.indent("\n".join(described), indent)
    later = (i for i, line in enumerate(lines) if i > at and line.strip() in _AFTER_RAISES)
    end = next(later, len(lines) - 1)
    refusals = textwrap.indent(_RAISES, indent)
    section_follows = lines[end].strip() != ""
    around = (refusals, "") if section_follows else ("", refusals)
    return "\n".join([*lines[:end], *around, *lines[end:]])


def _too_many(function: str, given: int, most: int) -> str:
    """Python's error about too many arguments, with the call that was probably meant."""
    hint = '. Name the models: compare(y, {"a": p, "b": q})' if function == "compare" else ""
    return f"{function}() takes at most {most} positional arguments, not {given}{hint}"
