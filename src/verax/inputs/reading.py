"""How rows are found in a source: every reading option, named and described once.

`Reading` has a field for each option. The keywords of `scan`, the options of commands, the keys of
`verax.toml` and the documentation of all of them come from these fields.
"""

from __future__ import annotations

import difflib
import inspect
import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack

from verax.common.checks import check_choice, check_flag, check_names
from verax.common.toml import beside, table_of, to_toml
from verax.errors import InputError, Remedy, show
from verax.inputs import reading_checks as checks
from verax.inputs.cumulative import OUTPUTS
from verax.inputs.reading_checks import PROBABILITIES, RATERS_ARE
from verax.inputs.records.texts import RULES

P = ParamSpec("P")
T = TypeVar("T")
Columns = str | Sequence[str] | None
ByModel = str | Sequence[str] | Mapping[str, str | Sequence[str]] | None
Form = Literal[
    "text", "names", "each", "columns", "classes", "flag", "whole", "number", "file", "pair", "mark"
]
Kind = Literal["distributions", "lists", "sets", "raters", "grades"]

SAMPLES = ("first", "pool", "repeats")
UNGRADED = ("by-reason", "bounds", "exclude", "wrong")
EVERY: tuple[Kind, ...] = ("distributions", "lists", "sets", "raters", "grades")
FORECASTS = EVERY[:-1]


@dataclass(frozen=True)
class Option:
    """The name, type and description of a reading option, for functions, commands and `verax.toml`.

    Attributes
    ----------
    help : str
        Its description, with other options in backticks.
    type : str
        The type of its value, in words.
    panel : str
        The panel of `--help` that shows it.
    form : str
        How its value is written: "text", "flag", "names" and so on.
    kinds : tuple of str
        The kinds of rows to which it applies.
    metavar : str
        The placeholder of its value in the help of commands.
    flag : str
        Its name in commands; empty if that is the name of the field. "-" means that no command has it.
    value : object
        The value that a flag sets.
    choices : tuple of str
        The allowed values.
    """

    help: str
    type: str
    panel: str
    form: Form
    kinds: tuple[Kind, ...] = EVERY
    metavar: str = ""
    flag: str = ""
    value: object = True
    choices: tuple[str, ...] = ()


def _option(form: Form, panel: str, help: str, *, default: Any = None, **more: Any) -> Any:  # noqa: A002
    kind = more.pop("type", _TYPES[form])
    return field(default=default, metadata={"option": Option(help, kind, panel, form, **more)})


def _flag(panel: str, help: str, *, default: Any = False, **more: Any) -> Any:  # noqa: A002
    return _option("flag", panel, help, default=default, **more)


_column: Callable[..., Any] = partial(_option, "text", "Columns", metavar="COLUMN")
_graded: Callable[..., Any] = partial(_option, "text", "Graded answers", kinds=("grades",), metavar="COLUMN")


def _listed(form: Form, help: str, **more: Any) -> Any:  # noqa: A002
    return _option(form, "Top lists", help, kinds=("lists",), **more)


_TYPES: dict[Form, str] = {
    "text": "str",
    "names": "str or sequence of str",
    "each": "str or sequence of str",
    "columns": "str, sequence or dict",
    "classes": "sequence or int",
    "flag": "bool",
    "whole": "int",
    "number": "float",
    "file": "path",
    "pair": "tuple of two floats",
    "mark": "str",
}


class Keywords(TypedDict, total=False):
    """The fields of `Reading`, as callers may pass them."""

    target: str | None
    outcomes: str | PathLike[str] | None
    raters: Columns
    raters_are: Literal["labels", "counts", "shares"]
    rater_column: str | None
    label_column: str | None
    probs: ByModel
    sets: ByModel
    id: Columns
    weights: str | None
    weights_are: Literal["importance", "counts"]
    groups: Columns
    by: Columns
    time: str | None
    horizon: float | None
    complete: bool
    grades: str | Mapping[str, str] | None
    grade_range: tuple[float, float]
    answer: str | None
    gold: str | None
    confidence_column: str | None
    model_column: str | None
    task: str | None
    epoch: str | None
    ungraded: Literal["by-reason", "bounds", "exclude", "wrong"]
    classes: int | Sequence[Hashable] | None
    ordered: bool
    positive: str | None
    logits: bool
    normalize: bool
    percent: bool
    outputs: Literal["probabilities", "cumulative", "exceedance", "conditional"]
    invalid: Literal["raise", "skip"]
    delimiter: str | None
    decimal: str
    lists: bool | Mapping[str, Any] | None
    shape: str | None
    position: int | None
    after: str | None
    last_match: bool
    samples: Literal["first", "pool", "repeats"]
    per_length: bool
    merge_variants: str | None
    missing: Literal["raise", "omit"]
    others: Literal["raise", "omit"]


@dataclass(frozen=True, repr=False)
class Reading:
    """How rows are found in a source: which column is what, and how its values are read.

    Fields that are left out are found by the names and the values of columns. `scan` takes a reading, or the
    fields as keywords; commands have them as options; `verax.toml` has them as keys.

    Parameters
    ----------
    **keywords

    Examples
    --------
    >>> import verax as vx
    >>> reading = vx.Reading(target="grade", probs="p_*", classes=["mild", "severe"], id="patient")
    >>> print(reading.to_toml())
    target = "grade"
    probs = ["p_*"]
    id = "patient"
    classes = ["mild", "severe"]
    """

    target: str | None = _column(
        "Column of outcomes. By default the one with a usual name: label, target, y, ... For a .npy file "
        "of probabilities: the .npy file of outcomes.",
        kinds=FORECASTS,
    )
    outcomes: str | None = _option(
        "file",
        "Input",
        "Another file that holds the outcomes, matched by `id` or by order. `target` names its column.",
        kinds=FORECASTS,
        metavar="FILE",
    )
    raters: tuple[str, ...] = _option(
        "each",
        "Columns",
        "Columns with the labels of one rater each, in place of `target`, as names or as a pattern such as "
        "'rater_*'. Cells may be empty. A row is a case, with its mean loss over the raters.",
        default=(),
        kinds=("raters",),
        metavar="COLUMNS",
    )
    raters_are: str = _option(
        "text",
        "Columns",
        "Content of the columns of `raters`: labels, or for each class the number of raters who chose it "
        "(counts) or their share (shares). Columns of numbers are named like the classes: 'n_*'.",
        default="labels",
        kinds=("raters",),
        metavar="KIND",
        choices=RATERS_ARE,
    )
    rater_column: str | None = _column(
        "Column of raters in a long table with a row for each label. It needs `label_column` and, for the "
        "case, `id`. Probabilities are the same in all rows of a case. The table is held in memory.",
        kinds=("raters",),
    )
    label_column: str | None = _column("Column of labels in a long table of raters.", kinds=("raters",))
    probs: tuple[str, ...] | Mapping[str, tuple[str, ...]] = _option(
        "columns",
        "Columns",
        "Columns of probabilities, as names or as a pattern such as 'p_*'; or one column of lists. By "
        "default found by name. Several models in one table: a name and columns for each. Top lists: the "
        "columns of their classes and of their probabilities, or the one that holds both.",
        default=(),
        kinds=("distributions", "raters", "lists"),
        metavar="COLUMNS",
    )
    sets: tuple[str, ...] | Mapping[str, tuple[str, ...]] = _option(
        "columns",
        "Columns",
        "Prediction sets, in place of `probs`: a column that names the classes of each set, as a list or "
        "as 'a|b', with `classes`; or a column of 0 and 1 for each class, as names or as a pattern such as "
        "'in_*'.",
        default=(),
        kinds=("sets",),
        metavar="COLUMNS",
    )
    id: str | tuple[str, ...] | None = _option(
        "names",
        "Columns",
        "Column that identifies rows; several, such as patient and visit, if they do so together.",
        metavar="COLUMN",
    )
    weights: str | None = _column("Column of weights.")
    weights_are: str = _option(
        "text",
        "Columns",
        "Meaning of weights: importance, or counts (a row of weight 3 is three rows).",
        default="importance",
        metavar="KIND",
        choices=("importance", "counts"),
    )
    groups: str | tuple[str, str] | None = _option(
        "names",
        "Columns",
        "Column of clusters, such as patients, whose rows are resampled together; two columns, such as "
        "league and date, for two-way clustering.",
        metavar="COLUMN",
    )
    by: tuple[str, ...] = _option(
        "each",
        "Columns",
        "Columns of subgroups to score separately. age:4 cuts a column of numbers into 4 groups of about "
        "equal size.",
        default=(),
        metavar="COLUMN",
    )
    time: str | None = _column(
        "Column of times: of the event, or up to which a row without it was followed. With `horizon`, "
        "outcomes are whether the event happened by then; rows that were followed for less are censored.",
        kinds=("distributions",),
    )
    horizon: float | None = _option(
        "number",
        "Columns",
        "Time at which outcomes are judged, in the unit of `time`: that of the risks in `probs`, such as 5 "
        "years. Rows are weighted by the inverse probability of being followed (Kaplan-Meier).",
        kinds=("distributions",),
        metavar="T",
    )
    complete: bool = _flag(
        "Columns",
        "All rows were followed to the horizon of their probabilities, so that outcomes are as they stand "
        "also beside a column of times.",
        kinds=("distributions",),
    )
    grades: str | Mapping[str, str] | None = _graded(
        "Column of grades, in place of probabilities: 1 and 0, true and false, or scores in `grade_range`. "
        "Empty cells were not graded. For evaluation logs, the metric name. Several models in one table: a "
        "column for each name, in Python.",
        type="str or dict",
        flag="grade",
    )
    grade_range: tuple[float, float] = _option(
        "pair",
        "Graded answers",
        "Worst and best possible grade.",
        default=(0.0, 1.0),
        kinds=("grades",),
        metavar="LOW,HIGH",
    )
    answer: str | None = _graded("Column of answers, which are right if they equal `gold` as texts.")
    gold: str | None = _graded("Column of right answers, in place of `grades`.")
    confidence_column: str | None = _graded("Column of confidences: the probability that an answer is right.")
    model_column: str | None = _graded(
        "Column of models or forecasters whose answers or predictions are stacked in one file."
    )
    task: str | None = _graded("Column of tasks: also compare within each, with Holm's correction over all.")
    epoch: str | None = _graded(
        "Column that numbers the repeats of a question, whose grade is their mean. By default one called "
        "sample, trial, ... that counts within each question."
    )
    ungraded: str = _graded(
        "Answers without a grade. by-reason: wrong if the model is why (limit, empty, unparsable, refused), "
        "else left out, with bounds; bounds: left out, with bounds; exclude: left out; wrong: all wrong.",
        default="by-reason",
        metavar="HOW",
        choices=UNGRADED,
    )
    classes: int | tuple[Hashable, ...] | None = _option(
        "classes",
        "Classes",
        "Class names, ordered classes lowest first; for top lists and prediction sets also their number.",
        metavar="A,B,C",
        kinds=FORECASTS,
    )
    ordered: bool = _flag("Classes", "The classes are ordered: add ordinal scores.", kinds=FORECASTS)
    positive: str | None = _option(
        "text",
        "Classes",
        "The event of two classes: the class of a single column of probabilities, and the one that rates "
        "are about. By default the second.",
        kinds=("distributions", "raters"),
        metavar="CLASS",
    )
    logits: bool = _flag("Input", "The columns hold logits; the softmax is applied first.", kinds=FORECASTS)
    normalize: bool = _flag("Input", "Divide each row by its sum.", kinds=FORECASTS)
    percent: bool = _flag("Input", "The columns hold percentages: divide by 100.")
    outputs: str = _option(
        "text",
        "Input",
        "Content of the columns of `probs`: class probabilities, or those at thresholds of ordered "
        "classes, lowest first: P(Y <= k) (cumulative), P(Y > k) as CORAL returns them (exceedance), or "
        "P(Y > k | Y > k - 1) as CORN does (conditional).",
        default=PROBABILITIES,
        kinds=("distributions", "raters"),
        metavar="KIND",
        choices=(PROBABILITIES, *OUTPUTS),
    )
    invalid: str = _flag(
        "Input",
        "Leave out rows that are invalid or lack a value; they are counted.",
        default="raise",
        flag="skip-invalid",
        value="skip",
        choices=("raise", "skip"),
    )
    delimiter: str | None = _option(
        "mark",
        "Input",
        "Column separator of CSV files. By default a comma; in TSV files a tab.",
        metavar="CHAR",
    )
    decimal: str = _option("mark", "Input", "Decimal mark of CSV files.", default=".", metavar="CHAR")
    lists: bool | None = _flag(
        "Top lists",
        "The predictions are top lists. By default they are where `classes` is a number, and in files "
        "whose records hold lists. In Python also a dict of the options below.",
        default=None,
        type="bool or dict",
        kinds=("lists",),
        flag="-",
    )
    shape: str | None = _listed("text", "Shape of the records, instead of recognising it.", metavar="NAME")
    position: int | None = _listed(
        "whole",
        "Which generated token to read, counted from 0; -1 is the last. By default the first.",
        metavar="N",
    )
    after: str | None = _listed(
        "text",
        "Read the token after this text, such as 'Answer:', in place of `position`. It is a regular "
        "expression; a group in it is the answer: 'Answer: ([A-D])'.",
        metavar="TEXT",
    )
    last_match: bool = _flag("Top lists", "Use the last match of `after`.", kinds=("lists",))
    samples: str = _listed(
        "text",
        "Use of several sampled answers to a request: first, pool (average them; without log-probabilities, "
        "the share of each answer) or repeats (each is a row; those of one request form a group).",
        default="first",
        metavar="HOW",
        choices=SAMPLES,
    )
    per_length: bool = _flag(
        "Top lists",
        "Divide log-likelihoods by the lengths of choices (lm-eval logs).",
        kinds=("lists", "grades"),
    )
    merge_variants: str | None = _listed(
        "text",
        "Add the probabilities of variants of a class. same: identical text; space: ignore surrounding "
        "white space; case: ignore case as well; punctuation: ignore surrounding punctuation as well.",
        metavar="HOW",
        choices=tuple(RULES),
    )
    missing: str = _flag(
        "Top lists",
        "Leave out entries without a number.",
        default="raise",
        kinds=("lists",),
        flag="omit-missing",
        value="omit",
        choices=("raise", "omit"),
    )
    others: str = _flag(
        "Top lists",
        "Leave out entries that are not among `classes`.",
        default="raise",
        kinds=("lists",),
        flag="omit-others",
        value="omit",
        choices=("raise", "omit"),
    )

    if TYPE_CHECKING:

        def __init__(self, **keywords: Unpack[Keywords]) -> None: ...

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        checks.check_together(self)

    def __repr__(self) -> str:
        return f"Reading({', '.join(f'{name}={value!r}' for name, value in self.given().items())})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of forecasts of the only model; empty if they are to be found."""
        given = self.sets or self.probs
        assert not isinstance(given, Mapping)
        return given

    @property
    def several(self) -> tuple[str, ...]:
        """The names of several models in one table."""
        given = self.sets or self.probs
        return tuple(given) if isinstance(given, Mapping) else ()

    def models(self, default: str) -> dict[str, Reading]:
        """How the rows of each model are read.

        Parameters
        ----------
        default : str
            The name of a model without one.

        Returns
        -------
        dict of str to Reading
            A reading for each model, by its name.
        """
        what = "sets" if self.sets else "probs"
        given = getattr(self, what)
        if not isinstance(given, Mapping):
            return {check_names("default", [default])[0]: self}
        return {name: replace(self, **{what: columns}) for name, columns in given.items()}

    @property
    def names(self) -> tuple[Hashable, ...] | None:
        """The names of the classes."""
        return None if isinstance(self.classes, int) else self.classes

    @property
    def n_classes(self) -> int | None:
        """The number of classes, where their names are not stated."""
        return self.classes if isinstance(self.classes, int) else None

    @property
    def late(self) -> bool:
        """Whether outcomes come later, so that none are read."""
        return self.target == ""

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """The text before the token to read."""
        return None if self.after is None else re.compile(self.after)

    @property
    def scale(self) -> dict[str, bool]:
        """The scale of the numbers, as keywords of scoring functions."""
        return {"normalize": self.normalize, "logits": self.logits}

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns besides outcomes and forecasts, without repeats."""
        named = (*named_columns(self.id), self.weights, *named_columns(self.groups), *self.by)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def are_lists(self) -> bool | None:
        """Whether the predictions are top lists; None if only their content tells."""
        if self.lists is not None:
            return self.lists
        if self.sets or self.grades is not None:
            return False
        return True if self.n_classes is not None else False if self.probs else None

    @property
    def cuts(self) -> dict[str, int]:
        """The columns of subgroups, each with the number of groups to cut it into; 0 keeps its labels."""
        cuts = {}
        for text in self.by:
            name, colon, number = text.rpartition(":")
            cut = bool(colon) and number.isascii() and number.isdecimal() and 2 <= int(number) <= 100
            cuts[name if cut else text] = int(number) if cut else 0
        return cuts

    def given(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return {
            option.name: value
            for option in fields(self)
            if (value := getattr(self, option.name)) != option.default
        }

    @classmethod
    def of(cls, reading: Reading | None, keywords: Mapping[str, Any]) -> Reading:
        """A reading with some fields replaced by keywords, where `lists` may hold options of lists.

        Parameters
        ----------
        reading : Reading or None
            The reading; None for one of keywords alone.
        keywords : mapping of str to object
            The fields that are given.

        Returns
        -------
        Reading
            Both together.
        """
        if reading is not None and not isinstance(reading, Reading):
            raise InputError(
                "must be a Reading; other options are keywords",
                argument="reading",
                kind="type",
                found=f"it is {show(reading)}",
            )
        given = dict(keywords)
        lists = given.get("lists")
        if isinstance(lists, Mapping):
            allowed = [
                name for name, option in OPTIONS.items() if option.panel == "Top lists" and name != "lists"
            ]
            allowed.append("outcomes")
            unknown = next((name for name in lists if name not in allowed), None)
            if unknown is not None:
                raise InputError(
                    f"must have options that lists have: {', '.join(allowed)}",
                    argument="lists",
                    found=f"it has {show(unknown)}",
                    values=[unknown],
                )
            given |= {**lists, "lists": True}
        for name in ("probs", "sets"):
            if isinstance(given.get(name), Mapping) and not given[name]:
                raise InputError("must name at least one model", argument=name, kind="length")
        return cls(**given) if reading is None else replace(reading, **given)

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Reading:
        """Read the keys of a TOML file.

        Parameters
        ----------
        path : str or path
            `verax.toml`, which has the fields of `Reading` as keys, or `pyproject.toml`, which has them in
            the table `[tool.verax]`. The key `files`, the files that commands read, is left out.

        Returns
        -------
        Reading
            The reading that the file describes.

        Examples
        --------
        >>> import pathlib, tempfile, verax as vx
        >>> path = pathlib.Path(tempfile.mkdtemp(), "verax.toml")
        >>> _ = path.write_text(vx.Reading(target="grade", ordered=True).to_toml())
        >>> vx.Reading.from_toml(path).target
        'grade'
        """
        keys = table_of(path, "verax")
        keys.pop("files", None)
        unknown = next((key for key in keys if key not in OPTIONS), None)
        if unknown is not None:
            near = difflib.get_close_matches(unknown, [*OPTIONS, "files"], n=1)
            raise InputError(
                f"The key {show(unknown)} in {path} is unknown",
                argument="config",
                kind="file",
                remedies=[Remedy(f"Write {near[0]}." if near else "`verax help reading` lists all keys.")],
            )
        for key in ("outcomes", "target"):
            # A target may be a .npy file of outcomes.
            if isinstance(value := keys.get(key), str) and (key == "outcomes" or value.endswith(".npy")):
                keys[key] = beside(path, value)
        try:
            return cls.of(None, keys)
        except InputError as error:
            key = error.argument if error.argument in keys else next(iter(keys))
            raise InputError(
                f"The key {show(key)} in {path} {error.requirement}",
                argument="config",
                kind="file",
                found=error.found,
                values=error.values,
                remedies=[Remedy(f"Write {key} = {_example(key)}.")] if error.kind == "type" else [],
            ) from None

    def to_toml(self) -> str:
        """The fields that differ from their defaults, as text for `verax.toml`.

        Returns
        -------
        str
            A line for each.

        Examples
        --------
        >>> import verax as vx
        >>> vx.Reading(probs={"a": "a_*", "b": "b_*"}).to_toml()
        'probs = {a = ["a_*"], b = ["b_*"]}'
        """
        return "\n".join(f"{name} = {to_toml(value)}" for name, value in self.given().items())


OPTIONS: dict[str, Option] = {option.name: option.metadata["option"] for option in fields(Reading)}


def _example(key: str) -> str:
    """An example of a value for a key of `verax.toml`."""
    option = OPTIONS[key]
    if option.choices:
        return to_toml(option.choices[-1])
    examples = {"flag": "true", "whole": "0", "number": "5", "pair": "[0, 1]", "mark": '";"'}
    examples["classes"] = '["a", "b"]'
    return examples.get(option.form, to_toml(option.metavar))


def named_columns(columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """None, one or several columns as a tuple of names."""
    return () if columns is None else (columns,) if isinstance(columns, str) else columns


def _choice(choices: tuple[str, ...], argument: str, value: Any) -> Any:
    if value is not None or _DEFAULTS[argument] is not None:
        check_choice(argument, value, choices)
    return value


_BY_FORM: dict[Form, Any] = {
    "text": checks.text,
    "names": checks.texts,
    "each": checks.texts,
    "columns": checks.columns,
    "classes": checks.classes,
    "flag": check_flag,
    "whole": checks.position,
    "number": checks.positive_number,
    "file": checks.file,
    "pair": checks.pair,
    "mark": checks.mark,
}
_DEFAULTS: dict[str, Any] = {option.name: option.default for option in fields(Reading)}
_CHECKS: dict[str, Any] = {
    name: partial(_choice, option.choices) if option.choices else _BY_FORM[option.form]
    for name, option in OPTIONS.items()
}
_CHECKS |= {"groups": checks.group_columns, "id": checks.id_columns, "after": checks.after}
_CHECKS |= {"grades": checks.grades, "lists": checks.lists}


def described(names: Iterable[str] = OPTIONS) -> str:
    """The entries of a numpydoc section for some options."""
    return "\n".join(f"{name} : {_type(name)}\n{_wrapped(_in_python(name))}" for name in names)


def _type(name: str) -> str:
    option, default = OPTIONS[name], _DEFAULTS[name]
    choices = ", ".join(f'"{choice}"' for choice in option.choices)
    what = f"{{{choices}}}" if choices else option.type
    if default is None or default == ():
        return f"{what}, optional"
    shown = f'"{default}"' if isinstance(default, str) else default
    return f"{what}, default {shown}"


def _in_python(name: str) -> str:
    option = OPTIONS[name]
    if option.form != "flag" or option.value is True:
        return option.help
    return f'"{option.value}": {option.help[0].lower()}{option.help[1:]}'


def in_commands(name: str) -> str:
    """The help text of an option in commands, in which other options are named as they are typed."""
    return re.sub(r"`([a-z_]+)`", lambda match: f"--{flag_of(match[1])}", OPTIONS[name].help)


def flag_of(name: str) -> str:
    """The name of an option at the command line, without leading dashes.

    >>> flag_of("rater_column"), flag_of("invalid")
    ('rater-column', 'skip-invalid')
    """
    return OPTIONS[name].flag or name.replace("_", "-")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, initial_indent="    ", subsequent_indent="    ")


def takes_reading(function: Callable[P, T], names: Iterable[str] = OPTIONS) -> Callable[P, T]:
    """Show the fields of `Reading` that a function takes as `**keywords` one by one; refuse all others."""
    names = tuple(names)
    signature = inspect.signature(function)
    named = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    types = Keywords.__annotations__
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_DEFAULTS[name],
            annotation=getattr(types[name], "__forward_arg__", types[name]),
        )
        for name in names
    ]
    known = {parameter.name for parameter in (*named, *options)}

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        unknown = next((name for name in kwargs if name not in known), None)
        if unknown is not None:
            raise TypeError(unexpected(function.__name__, unknown, known))
        return function(*args, **kwargs)

    checked.__signature__ = signature.replace(parameters=[*named, *options])  # type: ignore[attr-defined]
    checked.__doc__ = _with_options(function.__doc__, names)
    return checked


def unexpected(function: str, name: str, known: Iterable[str]) -> str:
    """Python's error about an unknown keyword, with the one that was probably meant."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f". Did you mean {near[0]!r}?" if near else ""
    return f"{function}() got an unexpected keyword argument {name!r}{hint}"


def _with_options(text: str | None, names: Iterable[str] = OPTIONS) -> str:
    """A docstring with the line `**keywords` replaced by the options."""
    return (text or "").replace("    **keywords", textwrap.indent(described(names), "    "))


Reading.__doc__ = _with_options(Reading.__doc__)
