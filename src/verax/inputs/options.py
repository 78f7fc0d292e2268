"""The options that functions share when they read forecasts: one typed bundle, defined and described once.

A public function takes them as `**read: Unpack[RowOptions]` and hands them on as they are. The decorator
`reads` puts each of them into the function's signature and its docstring, so that `help()` and editors show
them, and refuses others as Python does. Parameters that mean the same in most functions, such as `y` and
`seed`, are also described here: a docstring has their bare names, and below them what it adds.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from typing import Any, Literal, NamedTuple, ParamSpec, TypedDict, TypeVar, get_args

import numpy as np

from verax.errors import InputError, Remedy, join, passing, show
from verax.inputs.arrays import namespace_of, to_array, to_host
from verax.inputs.handles import Handle, check_alone
from verax.inputs.outcomes import class_names
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
    return _reading(function, per_row=False)


def reads_per_row(function: Callable[P, T]) -> Callable[P, T]:
    """`reads` for a function that returns a number per row: NaN for rows that are left out."""
    return _reading(function, per_row=True)


def reads_ranking(function: Callable[P, T]) -> Callable[P, T]:
    """`reads` for a function whose `by` is what rows are ranked by, not a label for each row."""
    return _reading(function, per_row=False, ranked=True)


def reads_parts(function: Callable[P, T]) -> Callable[P, T]:
    """`reads` for a function whose rows are a part of all rows, possibly without a valid one."""
    return _reading(function, per_row=False, part=True)


def _reading(
    function: Callable[P, T], *, per_row: bool, part: bool = False, ranked: bool = False
) -> Callable[P, T]:
    bundle = _bundle_of(function)
    named = inspect.signature(function)
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=_OPTIONS[name][1], annotation=annotation
        )
        for name, annotation in bundle.items()
    ]
    parameters = [p for p in named.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    known = {p.name for p in (*parameters, *options)}
    at = next((i for i, p in enumerate(parameters) if p.name == "y"), len(parameters))
    most = sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in parameters)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                raise TypeError(unexpected(function.__name__, name, known))
        if len(args) > most:
            raise TypeError(_too_many(function.__name__, len(args), most))
        if isinstance(kwargs.get("confidence"), Fraction):
            # Results keep it, and neither JSON nor special functions know fractions.
            kwargs["confidence"] = float(kwargs["confidence"])  # type: ignore[arg-type]
        if isinstance(handle := args[at] if at < len(args) else kwargs.get("y"), Handle):
            rows = {**dict(zip((p.name for p in parameters), args, strict=False)), **kwargs}
            check_alone(
                function.__name__, named, handle, _given(rows, ("p", "forecasts", "sets", "ids", *bundle))
            )
            return function(*args, **kwargs)
        positive: Any = kwargs.pop("positive", None)
        if positive is not None:
            bound = shown.bind(*args, **kwargs)
            bound.arguments.update(with_positive(bound.arguments, positive))
            return checked(*bound.args, **bound.kwargs)
        if isinstance(handle, Mapping) and kwargs.get("ids") is not None:
            # Questions without a valid forecast are counted by the function itself.
            return function(*args, **kwargs)
        invalid = kwargs.pop("invalid", "raise")
        if isinstance(invalid, str) and invalid == "raise":
            return function(*args, **kwargs)
        how = _Way(per_row, part, ranked)
        return _skipping(shown, function, invalid, args, kwargs, how)

    shown = named.replace(parameters=[*parameters, *options])
    checked.__signature__ = shown  # type: ignore[attr-defined]
    checked.__doc__ = _documented(function.__doc__, bundle)
    return checked


def _given(values: dict[str, Any], names: Iterable[str]) -> list[str]:
    """The names of arguments that are given and differ from their defaults."""
    default = {name: option[1] for name, option in _OPTIONS.items()}
    return [
        name
        for name in names
        if (value := values.get(name)) is not None
        and not (isinstance(value, (bool, str)) and value == default.get(name))
    ]


class _Way(NamedTuple):
    """How a function reads: it returns a number per row, takes parts of rows, or ranks rows by `by`."""

    per_row: bool
    part: bool
    ranked: bool


def _skipping(
    signature: inspect.Signature,
    function: Callable[..., T],
    invalid: object,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    how: _Way,
) -> T:
    """The result of a function for the valid rows among those given."""
    from verax.common.checks import check_choice
    from verax.inputs.sets.given import without_invalid_sets
    from verax.inputs.skipping import marked, without_invalid

    check_choice("invalid", invalid, ("raise", "skip"))
    bound = signature.bind(*args, **kwargs)
    read = {name: value for name, value in bound.arguments.items() if not (how.ranked and name == "by")}
    valid, skipped, kept = (
        without_invalid_sets(read) if "sets" in read else without_invalid(read, part=how.part)
    )
    bound.arguments.update(valid)
    result = function(*bound.args, **bound.kwargs)
    return marked(result, skipped, kept, per_row=how.per_row)  # type: ignore[no-any-return]


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


def _documented(text: str | None, bundle: dict[str, Any]) -> str | None:
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


def with_positive(given: Mapping[str, Any], positive: Hashable) -> dict[str, Any]:
    """The arguments `y`, `p` (or `forecasts`) and `classes` of a function, with the event as second class.

    A single column of probabilities is that of the event. Two columns without names are swapped if the event
    is the first class.

    >>> changed = with_positive({"y": ["sick", "well"], "p": [0.9, 0.2]}, "sick")
    >>> changed["classes"], changed["p"]
    (('well', 'sick'), [0.9, 0.2])
    >>> changed = with_positive({"y": [0, 1], "p": [[0.9, 0.1], [0.2, 0.8]]}, 0)
    >>> changed["classes"], changed["p"].tolist()
    ((1, 0), [[0.1, 0.9], [0.8, 0.2]])
    """
    name = "p" if "p" in given else "forecasts"
    if given.get(name) is None:
        raise InputError(
            "names a class that outcomes and forecasts are about",
            argument="positive",
            kind="missing",
            found="no forecasts are given",
            remedies=[Remedy("Pass them, or leave `positive` out.", python_only=True)],
        )
    several = isinstance(given[name], Mapping)
    models = dict(given[name]) if several else {"": given[name]}
    arrays = {model: to_array(p, "p") for model, p in models.items()}
    columns = next(
        (
            column_names
            for array, column_names in arrays.values()
            if column_names is not None and array.ndim == 2
        ),
        None,
    )
    classes = _classes(given, columns, [array for array, _ in arrays.values()])
    try:
        at = classes.index(positive)
    except Exception:
        # Values such as arrays, tensors and NA do not tell whether they equal a name.
        at = -1
    if len(classes) != 2 or at < 0:
        raise InputError(
            "must be one of two classes",
            argument="positive",
            kind="label",
            found=f"it is {show(positive)}, and the classes are {join(map(show, classes))}",
            values=[positive],
        )
    changed = dict(given)
    pair = (classes[1 - at], positive)
    if at == 0:
        models = {
            model: models[model] if column_names or p.ndim == 1 else _swapped(p)
            for model, (p, column_names) in arrays.items()
        }
        changed[name] = models if several else models[""]
        outcomes, column_names = to_array(given["y"], "y")
        if outcomes.ndim == 2 and column_names is None and not _by_rater(given):
            changed["y"] = _swapped(outcomes)
    if given.get("classes") is not None or pair != (0, 1):
        changed["classes"] = pair
    return changed


def _classes(given: Mapping[str, Any], columns: tuple[Any, ...] | None, arrays: list[Any]) -> tuple[Any, ...]:
    """The two classes: named by the caller or by columns, positions, or the labels that happened."""
    if given.get("classes") is not None:
        return class_names(given["classes"])
    if columns is not None:
        return tuple(columns)
    if given.get("y") is None:
        raise InputError("names a class of outcomes, and there are none", argument="positive")
    outcomes = to_host(to_array(given["y"], "y")[0])
    if _by_rater(given):
        outcomes = outcomes.ravel()
    if outcomes.ndim != 1 or outcomes.dtype.kind in "biu":
        return (0, 1)
    labels = tuple(
        dict.fromkeys(label for label in outcomes.tolist() if label is not None and label == label)
    )
    if len(labels) != 2 or any(array.ndim == 2 for array in arrays):
        raise InputError(
            "needs the names of both classes",
            argument="positive",
            kind="order",
            found=f"the outcomes are {join(map(show, labels[:4]))}",
            remedies=[passing("in the order of the columns of probabilities", classes=...)],
        )
    return labels


def _by_rater(given: Mapping[str, Any]) -> bool:
    """Whether the columns of the outcomes are raters, not classes."""
    return isinstance(given.get("raters"), str) and given["raters"] == "columns"


def _swapped(array: Any) -> Any:
    """The two columns in the other order; later checks refuse any other number of columns."""
    if array.shape[1] != 2:
        return array
    if isinstance(array, np.ndarray):
        return array[:, ::-1]
    return namespace_of(array).flip(array, axis=1)
