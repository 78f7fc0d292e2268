"""The options that commands on files of predictions share: those of `Reading`, and a few more."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from verax.cli.arguments import FORMATS, Typed
from verax.cli.config import Config
from verax.errors import InputError, Remedy, VeraxError, show
from verax.inputs.reading import OPTIONS, Reading, flag_of, in_commands

FILES_HELP = (
    "Predictions of one model: a file (.csv, .tsv, .parquet, .arrow, .jsonl, .json, .npz, .npy, .xlsx), a "
    "folder, a pattern such as 'preds/*.csv', or several; - is standard input; name=FILE names the model."
)
Given = Annotated[list[str], typer.Argument(metavar="FILE...", help=FILES_HELP)]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule", metavar="RULE", help="A rule, such as rps or 'penalized(brier)'. May be repeated."
    ),
]
Least = Annotated[int, typer.Option(metavar="N", help="Minimum subgroup size, in rows.")]
Draws = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Number of draws behind the interval of the calibration error. By default 100.",
        show_default=False,
    ),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML report to this file.")
]
Save = Annotated[
    Path | None,
    typer.Option("--save", metavar="FILE", help="Save mergeable results to this file, for `verax merge`."),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="WAY",
        rich_help_panel="Saved files",
        help="How --save names groups: keyed (default: digests, whose key stays in a file of yours), "
        "plain, or none (parts then cannot be merged by groups).",
        show_default=False,
    ),
]
StdinFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        rich_help_panel="Input",
        help=f"Format of standard input (-), one of {', '.join(FORMATS)}. By default by content.",
    ),
]
ConfigFile = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        rich_help_panel="Input",
        help="File that says how files are read, in place of options. By default the nearest verax.toml, or "
        "pyproject.toml with [tool.verax], from the current folder up to the repository's root (with .git); "
        "none for no file.",
    ),
]


def drawing(what: str) -> Any:
    """The option that draws something."""
    return typer.Option("--plot", metavar="FILE", help=f"Draw {what} to this file.")


Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")]
Confidence = Annotated[
    float,
    typer.Option(
        callback=lambda value: _level(value), metavar="LEVEL", help="Level of the confidence intervals."
    ),
]


def _level(confidence: float) -> float:
    """Refuse a level that is no probability, or so near 1 that its quantile is infinite."""
    if not (confidence > 0 and (1 + confidence) / 2 < 1):
        raise InputError(
            f"must lie between 0 and 1, not {show(confidence)}", argument="confidence", values=[confidence]
        )
    return confidence


# What options are called besides where rows are answers to questions.
_OF_ANSWERS = {"id": "question", "epoch": "repeat"}


def option_of(name: str, *, apart: bool = True, answers: bool = False) -> inspect.Parameter:
    """An option of reading, as a parameter of a command: apart in its panel, or among its own.

    In commands on `answers` some have another name besides.
    """
    option, flag = OPTIONS[name], flag_of(name)
    hint, default = _HINTS[option.form]
    stated = Reading.__dataclass_fields__[name].default
    if option.form in ("text", "mark") and stated is not None:
        hint, default = str, stated
    about = typer.Option(
        f"--{flag}",
        *([f"--{_OF_ANSWERS[name]}"] if answers and name in _OF_ANSWERS else []),
        help=in_commands(name),
        metavar=option.metavar or None,
        rich_help_panel=option.panel if apart else None,
    )
    return keyword(flag.replace("-", "_"), default, Annotated[hint, about])


# The type and the default of an option, by how it is typed.
_HINTS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(("text", "names", "classes", "mark"), (str | None, None)),
    **dict.fromkeys(("each", "columns"), (list[str] | None, None)),
    "flag": (bool, False),
    "whole": (int | None, None),
    "number": (float | None, None),
    "file": (str | None, None),
    "pair": (str, "0,1"),
}


def typed_value(name: str, given: Any) -> Any:
    r"""The value of an option of reading from what was typed.

    >>> typed_value("id", "patient, visit"), typed_value("probs", ["a=x,y", "b=z"])
    (['patient', 'visit'], {'a': ['x', 'y'], 'b': ['z']})
    >>> typed_value("classes", "128256"), typed_value("delimiter", r"\t"), typed_value("invalid", True)
    (128256, '\t', 'skip')
    """
    option = OPTIONS[name]
    if given is None:
        return Reading.__dataclass_fields__[name].default
    if option.form in ("names", "each"):
        return split(given)
    if option.form == "columns":
        return _by_model(name, given)
    if option.form == "classes":
        names = split(given)
        return int(names[0]) if len(names) == 1 and names[0].isdecimal() else names
    if option.form == "flag":
        return option.value if given else Reading.__dataclass_fields__[name].default
    if option.form == "mark":
        return given.replace("\\t", "\t")
    return _pair(name, given) if option.form == "pair" else given


def _by_model(name: str, texts: list[str]) -> list[str] | dict[str, list[str]]:
    """Columns, or those of each model in one file, given as name=columns."""
    parts = [text.partition("=") for text in texts]
    if len(parts) < 2 or not all(model and equals and columns for model, equals, columns in parts):
        return split(texts)
    models = [model.strip() for model, _, _ in parts]
    twice = next((model for model in models if models.count(model) > 1), None)
    if twice is not None:
        raise InputError(
            "must have a different name for each model", argument=name, found=f"{show(twice)} is there twice"
        )
    return {model: split(columns) for model, (_, _, columns) in zip(models, parts, strict=True)}


def _pair(name: str, text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError("must be two numbers, such as 0,1", argument=name, values=[text]) from None
    return low, high


# Options that say the same in different ways: one that is typed displaces the others of a file.
_INSTEAD = (
    ("target", "raters", "raters_are", "rater_column", "label_column"),
    ("probs", "sets", "grades", "answer", "gold"),
    ("position", "after", "last_match"),
)


def reading_of(given: Mapping[str, Any], config: Config | None) -> Reading:
    """How files are read, from the values of options by field; what was typed overrides what a file says."""
    typed = {name: typed_value(name, value) for name, value in given.items() if Typed.is_typed(flag_of(name))}
    if config is None:
        return Reading.of(None, typed)
    said = {name: value for name, value in _said(config, typed).items() if name in given}
    return Reading.of(None, said | typed)


def _said(config: Config, stated: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of options that are not stated otherwise."""
    instead = {name for group in _INSTEAD if not stated.keys().isdisjoint(group) for name in group}
    return {name: value for name, value in config.reading.given().items() if name not in instead}


def with_said(reading: Reading) -> Reading:
    """The reading of a command with what `verax.toml` says of options that the command lacks."""
    if Typed.config is None:
        return reading
    own = {parameter.name for parameter in Typed.context.command.params}
    flags = {name: flag_of(name).replace("-", "_") for name, option in OPTIONS.items() if option.flag != "-"}
    said = _said(Typed.config, reading.given())
    return replace(reading, **{n: value for n, value in said.items() if n in flags and flags[n] not in own})


# Options that some commands have beside those of `Reading`.
_MORE: dict[str, Any] = {"html": Html, "save": Save, "require": Annotated[list[str] | None, typer.Option()]}


Typed.reading = frozenset(flag_of(name).replace("-", "_") for name in OPTIONS) | {"config", "stdin_format"}


def reads_files(
    *,
    without: Mapping[str, str] | None = None,
    lists: bool = False,
    sets: bool = False,
    grades: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `Reading`, which it receives as its parameter `reading`.

    Where no file is typed, those of `verax.toml` are its parameter `given`.

    Parameters
    ----------
    without : Mapping[str, str]
        Options that the command has no use for, each with the reason, which whoever passes one is told. An
        empty reason leaves the option out.
    lists : bool
        The command also reads files of lists, and has their options.
    sets : bool
        The command also reads files of prediction sets.
    grades : bool
        The command also reads graded answers.
    """
    more = {"lists": lists, "sets": sets, "grades": grades}
    return _reading({"distributions", "raters", *(kind for kind, read in more.items() if read)}, without)


def reads_answers(**without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of graded answers, as its parameter `reading`.

    Parameters
    ----------
    **without : str
        Options that the command has no use for, each with the reason.
    """
    return _reading({"grades"}, without)


def reads_only(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command some options of `Reading`, which it receives as its parameter `reading`."""
    return _reading({"distributions"}, {name: "" for name in OPTIONS if name not in names})


def _reading(
    kinds: set[str], without: Mapping[str, str] | None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of some kinds of rows."""
    reasons = dict(without or {})
    shared = {
        name: option_of(name, apart=option.kinds != ("grades",) or len(kinds) > 1, answers="grades" in kinds)
        for name, option in OPTIONS.items()
        if option.flag != "-" and kinds & {*option.kinds} and name not in reasons
    }
    refused = {
        name: option_of(name) if name in OPTIONS else keyword(name, None, _MORE[name])
        for name, reason in reasons.items()
        if reason
    }
    hidden = [p.replace(annotation=_hidden(p.annotation)) for p in refused.values()]
    more = [keyword("stdin_format", None, StdinFormat), keyword("config", None, ConfigFile)]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = dict(inspect.signature(command, eval_str=True).parameters)
        files = parameters.get("given")
        needs_files = files is not None and files.default is inspect.Parameter.empty
        if files is not None and needs_files:
            about = get_args(files.annotation)[1]
            parameters["given"] = files.replace(default=None, annotation=Annotated[list[str] | None, about])

        @functools.wraps(command)
        def run(**given: Any) -> None:
            for name, parameter in refused.items():
                if given.pop(parameter.name) != parameter.default:
                    typed = parameter.name.replace("_", "-")
                    raise VeraxError(f"--{typed} cannot be used with `{Typed.path()}`: {reasons[name]}.")
            for parameter in more:
                given.pop(parameter.name)
            if needs_files:
                _require_files(given["given"])
            fields = {name: given.pop(parameter.name) for name, parameter in shared.items()}
            command(reading=reading_of(fields, Typed.config), **given)

        of_command = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters.values() if p.name != "reading"
        ]
        signature = inspect.Signature([*of_command, *shared.values(), *more, *hidden])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        run.needs_files = needs_files  # type: ignore[attr-defined]
        return run

    return decorate


def _require_files(given: list[str] | None) -> None:
    if not given:
        raise InputError(
            "Missing argument 'FILE...'",
            argument="path",
            kind="missing",
            remedies=[Remedy('Name a file, or write files = ["preds.csv"] into verax.toml.')],
        )


def keyword(name: str, default: Any, hint: Any) -> inspect.Parameter:
    """A parameter of a command that is an option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _hidden(hint: Any) -> Any:
    """An option that --help does not show."""
    kind, about = get_args(hint)
    about = copy.copy(about)
    about.hidden = True
    return Annotated[kind, about]


def number_or_text(text: str) -> float | str:
    """What was typed as a number, where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def split(texts: str | list[str] | None) -> list[str]:
    """Names separated by commas, given once or several times, as one list.

    >>> split(["a, b", "c"])
    ['a', 'b', 'c']
    """
    given = [texts] if isinstance(texts, str) else texts or []
    return [part.strip() for text in given for part in text.split(",") if part.strip()]
