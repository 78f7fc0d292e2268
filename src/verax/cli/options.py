"""The options that commands on files of predictions share, and the object that they come to."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import typer

from verax.cli.arguments import FORMATS, Typed
from verax.cli.progress import advance
from verax.common.paths import Files
from verax.errors import InputError, VeraxError, show

if TYPE_CHECKING:
    from verax.files.predictions import Request
    from verax.inputs.handles import Handle

FILES_HELP = (
    "Predictions of one model: .csv, .tsv (also .gz), .parquet, .arrow, .feather, .jsonl, .json, .npz, .npy. "
    "A file, a folder, a pattern such as 'preds/*.csv', or several; - is standard input; "
    "name=FILE names the model."
)
Given = Annotated[list[str], typer.Argument(metavar="FILE...", help=FILES_HELP)]
Target = Annotated[
    str | None, typer.Option(help="Column of outcomes. By default the one called label, target, y, ...")
]
Raters = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns with the labels of one rater each, in place of --target: comma-separated names, or a "
        "pattern such as 'rater_*'; cells may be empty. A row is a case, with its mean loss over the raters."
    ),
]
RatersAre = Annotated[
    str,
    typer.Option(
        help="What the columns of --raters hold: labels, or for each class the number of raters who chose it "
        "(counts) or their share (shares). Columns of numbers are named like the classes: 'n_*'."
    ),
]
RaterColumn = Annotated[
    str | None,
    typer.Option(
        help="Of a long table with a row for each label: the column of raters, with --label-column and, for "
        "the case, --id. Probabilities are the same in all rows of a case."
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option(help="Of a long table of raters: the column of their labels.")
]
SetColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Prediction sets in the file: a column that names the classes of each set, as a list or as "
        "'a|b', with --classes; or a column of 0 and 1 for each class, as names or a pattern such as 'in_*'."
    ),
]
Probs = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns of probabilities: comma-separated names, or a pattern such as 'p_*'. By default found "
        "by name."
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        help="Class names, comma-separated, ordered classes lowest first; for top lists also their number."
    ),
]
Ordered = Annotated[bool, typer.Option("--ordered", help="The classes are ordered: add ordinal scores.")]
Positive = Annotated[
    str | None,
    typer.Option(
        help="Of two classes, the event: the class of a single column of probabilities, and the one that "
        "rates are about. By default the second."
    ),
]
Weights = Annotated[str | None, typer.Option(help="Column of weights.")]
WeightsAre = Annotated[
    str, typer.Option(help="Meaning of weights: importance, or counts (a row of weight 3 is three rows).")
]
Groups = Annotated[
    str | None,
    typer.Option(
        help="Column of clusters, such as patients, whose rows are resampled together; two columns, such as "
        "league,date, for two-way clustering."
    ),
]
By = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of subgroups to score separately; age:4 cuts a column of numbers into 4 groups of about "
        "equal size. May be repeated."
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Column that identifies rows; several, such as patient,visit, if they do so together.",
    ),
]
Logits = Annotated[bool, typer.Option("--logits", help="The columns hold logits.")]
Normalize = Annotated[bool, typer.Option("--normalize", help="Divide each row by its sum.")]
HeadOutputs = Annotated[
    str,
    typer.Option(
        "--outputs",
        help="What the columns of --probs hold: class probabilities, or those at thresholds of ordered "
        "classes: P(Y <= k), P(Y > k) as CORAL returns them, or P(Y > k | Y > k - 1) as CORN does.",
    ),
]
Percent = Annotated[bool, typer.Option("--percent", help="The columns hold percentages: divide by 100.")]
SkipInvalid = Annotated[
    bool,
    typer.Option("--skip-invalid", help="Leave out rows that are invalid or lack a value; they are counted."),
]
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
        help="Minimum number of draws for calibration tests of subgroups; 0 for no tests. By default 1000, "
        "fewer for very many rows.",
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
Delimiter = Annotated[str | None, typer.Option(help="Column separator of a CSV file.")]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a CSV file.")]
StdinFormat = Annotated[
    str | None,
    typer.Option(
        "--format", help=f"Format of standard input (-), one of {', '.join(FORMATS)}. By default by content."
    ),
]
Outcomes = Annotated[
    Path | None,
    typer.Option(help="Another file with the outcomes, matched by --id or by order."),
]
MergeVariants = Annotated[
    str | None,
    typer.Option(
        help="Add the probabilities of variants of a class. same: identical text; space: ignore surrounding "
        "white space; case: ignore case as well; punctuation: ignore surrounding punctuation as well."
    ),
]
OmitMissing = Annotated[bool, typer.Option("--omit-missing", help="Leave out entries without a number.")]
OmitOthers = Annotated[
    bool,
    typer.Option("--omit-others", help="Leave out entries that are not among --classes."),
]
Position = Annotated[
    int | None,
    typer.Option(help="Which generated token to read, counted from 0; -1 is the last. By default the first."),
]
After = Annotated[
    str | None,
    typer.Option(
        help="Read the token after this text, such as 'Answer:', in place of --position. It is a regular "
        "expression; a group in it is the answer: 'Answer: *([A-D])'."
    ),
]
LastMatch = Annotated[
    bool, typer.Option("--last-match", help="Of several matches of --after, read the token at the last.")
]
Samples = Annotated[
    str,
    typer.Option(
        help="Of several sampled answers to a request: first, pool (average them; without log-probabilities, "
        "the share of each answer) or repeats (each is a row; those of one request form a group)."
    ),
]
PerLength = Annotated[
    bool,
    typer.Option("--per-length", help="Divide log-likelihoods by the lengths of choices (lm-eval logs)."),
]
ShapeName = Annotated[
    str | None, typer.Option("--shape", help="Shape of the records, instead of recognising it.")
]
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


@dataclass(frozen=True)
class Reading:
    """How a file of predictions is read: the options that `reads_files` adds to a command."""

    target: Target = None
    raters: Raters = None
    raters_are: RatersAre = "labels"
    rater_column: RaterColumn = None
    label_column: LabelColumn = None
    probs: Probs = None
    sets: SetColumns = None
    classes: Classes = None
    ordered: Ordered = False
    positive: Positive = None
    weights: Weights = None
    weights_are: WeightsAre = "importance"
    groups: Groups = None
    by: By = None
    row_id: Id = None
    logits: Logits = False
    normalize: Normalize = False
    percent: Percent = False
    outputs: HeadOutputs = "probabilities"
    skip_invalid: SkipInvalid = False
    delimiter: Delimiter = None
    decimal: Decimal = "."
    stdin_format: StdinFormat = None
    outcomes: Outcomes = None
    merge_variants: MergeVariants = None
    omit_missing: OmitMissing = False
    omit_others: OmitOthers = False
    position: Position = None
    after: After = None
    last_match: LastMatch = False
    samples: Samples = "first"
    per_length: PerLength = False
    shape: ShapeName = None

    def scan(
        self,
        path: Files,
        model: str,
        *,
        classes: Sequence[Hashable] | None = None,
        hold: Literal["fitting", "all"] = "fitting",
        pooled: Literal["refused", "named", "matched"] = "refused",
    ) -> Handle:
        """Files as a handle; lists are recognised by their content where no columns are named.

        See `ScanOptions` for `hold` and `pooled`.
        """
        from verax.scans.options import ScanOptions
        from verax.scans.scan import FILES, open_asked

        if self.holds_lists(path):
            return self.scan_lists(path, hold=hold, pooled=pooled)
        named = self.named_probs
        given = {**self._request(), **({} if classes is None else {"classes": classes})}
        asked = ScanOptions.of(named or split(self.sets or self.probs) or None, advance, False, **given)
        if named is None:
            asked = replace(asked, probs={model: asked.request.probs})
        return open_asked(path, replace(asked, pooled=pooled, rounded=True), FILES)

    def holds_lists(self, path: Files) -> bool:
        """Whether files hold top lists, by their content."""
        from verax.files.lists import holds_lists

        named = self.probs or self.sets or self.raters or self.rater_column
        return not named and holds_lists(path, logits=self.logits, **self.of_lists)

    @property
    def request(self) -> Request:
        """The options as readers of files take them."""
        from verax.files.predictions import Request

        return Request.of(probs=split(self.probs) or None, ordered=self.ordered, **self._request())

    def scan_lists(
        self,
        path: Files,
        *,
        hold: Literal["fitting", "all"] = "fitting",
        densify: bool = True,
        pooled: Literal["refused", "named", "matched"] = "refused",
    ) -> Handle:
        """Files of lists as a handle; see `ScanOptions` for the options."""
        from verax.scans.options import LIST_OPTIONS, ScanOptions
        from verax.scans.scan import FILES, open_asked

        listed = self.of_lists
        options = {name: listed.pop(name) for name in LIST_OPTIONS}
        given = {**self._request(), "classes": listed["classes"]}
        asked = ScanOptions.of(None, advance, options, **given)
        asked = replace(asked, hold=hold, densify=densify, pooled=pooled)
        return open_asked(path, asked, FILES)

    @property
    def of_lists(self) -> dict[str, Any]:
        """The options as readers of lists take them."""
        names = split(self.classes)
        number = len(names) == 1 and names[0].isdecimal()
        return {
            "outcome": self.target,
            "outcomes": self.outcomes,
            "id": split(self.row_id) or None,
            "classes": int(names[0]) if number else names or None,
            "weights": self.weights,
            "groups": split(self.groups) or None,
            "by": list(self.bins),
            "shape": self.shape,
            "position": self.position,
            "after": self.after,
            "last_match": self.last_match,
            "samples": self.samples,
            "per_length": self.per_length,
            "normalize": self.normalize,
            "invalid": "skip" if self.skip_invalid else "raise",
            "missing": "omit" if self.omit_missing else "raise",
            "others": "omit" if self.omit_others else "raise",
            "merge_variants": self.merge_variants,
            "delimiter": self.of_texts["delimiter"],
        }

    @property
    def named_probs(self) -> dict[str, list[str]] | None:
        """The columns of each model in one file, given as name=columns; None where they are not."""
        parts = [text.partition("=") for text in self.probs or ()]
        if len(parts) < 2 or not all(name and equals and columns for name, equals, columns in parts):
            return None
        names = [name.strip() for name, _, _ in parts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                "must have a different name for each model",
                argument="probs",
                found=f"{show(twice)} is there twice",
            )
        return {name: split(columns) for name, (_, _, columns) in zip(names, parts, strict=True)}

    @property
    def bins(self) -> dict[str, int]:
        """The columns of subgroups, each with the number of groups that it is cut into; 0 for its labels."""
        found = {}
        for text in split(self.by):
            name, colon, number = text.rpartition(":")
            cut = bool(colon) and number.isascii() and number.isdecimal() and 2 <= int(number) <= 100
            found[name if cut else text] = int(number) if cut else 0
        return found

    @property
    def scale(self) -> dict[str, bool]:
        """What the numbers are, as keywords of the functions that score them."""
        return {"normalize": self.normalize, "logits": self.logits}

    @property
    def of_texts(self) -> dict[str, Any]:
        """How numbers stand in a file of text."""
        mark = None if self.delimiter is None else self.delimiter.replace("\\t", "\t")
        return {"delimiter": mark, "decimal": self.decimal}

    def _classes(self) -> dict[str, Any]:
        """The names of the classes; of sets that hold positions also their number."""
        names = None if self.classes is None else split(self.classes)
        if not self.sets:
            return {"classes": names}
        if names and len(names) == 1 and names[0].isdecimal():
            return {"sets": True, "classes": None, "n_classes": int(names[0])}
        return {"sets": True, "classes": names}

    def _request(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "raters": split(self.raters),
            "raters_are": self.raters_are,
            "rater_column": self.rater_column,
            "label_column": self.label_column,
            **self._classes(),
            "weights": self.weights,
            "groups": split(self.groups) or None,
            "by": list(self.bins),
            "id": split(self.row_id) or None,
            "positive": self.positive,
            "logits": self.logits,
            "normalize": self.normalize,
            "percent": self.percent,
            "outputs": self.outputs,
            "outcomes_file": None if self.outcomes is None else str(self.outcomes),
            "invalid": "skip" if self.skip_invalid else "raise",
            **self.of_texts,
        }


# Fields of `Reading` that are about files of lists only.
_OF_LISTS = (
    *("merge_variants", "omit_missing", "omit_others", "position", "after", "last_match"),
    *("samples", "per_length", "shape"),
)


# Options that some commands have beside those of `Reading`.
_MORE: dict[str, Any] = {"html": Html, "save": Save, "require": Annotated[list[str] | None, typer.Option()]}


Typed.reading = frozenset(Reading.__dataclass_fields__)


def reads_files(
    *, without: Mapping[str, str] | None = None, lists: bool = False, sets: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `Reading`, which it receives as its parameter `reading`.

    Parameters
    ----------
    without : Mapping[str, str]
        Options that the command has no use for, each with the reason, which whoever passes one is told. An
        empty reason leaves the option out.
    lists : bool
        The command also reads files of lists, and has their options.
    sets : bool
        The command also reads files of prediction sets.
    """
    reasons = dict(without or {})
    left_out = {*reasons, *(() if lists else _OF_LISTS), *(() if sets else ("sets",))}
    hints = get_type_hints(Reading, include_extras=True)
    shared = [
        keyword(name, getattr(Reading, name), hint) for name, hint in hints.items() if name not in left_out
    ]
    refused = [
        keyword(name, getattr(Reading, name, None), _hidden((hints | _MORE)[name]))
        for name, reason in reasons.items()
        if reason
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            for parameter in refused:
                if given.pop(parameter.name) != parameter.default:
                    typed = "id" if parameter.name == "row_id" else parameter.name.replace("_", "-")
                    reason = reasons[parameter.name]
                    raise VeraxError(f"--{typed} cannot be used with `{Typed.path()}`: {reason}.")
            reading = Reading(**{parameter.name: given.pop(parameter.name) for parameter in shared})
            command(reading=reading, **given)

        own = [
            p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "reading"
        ]
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + shared + refused
        signature = inspect.Signature(parameters)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run

    return decorate


def keyword(name: str, default: Any, hint: Any) -> inspect.Parameter:
    """A parameter of a command that is an option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _hidden(hint: Any) -> Any:
    """An option that --help does not show."""
    kind, about = get_args(hint)
    about = copy.copy(about)
    about.hidden = True
    return Annotated[kind, about]


def split(texts: str | list[str] | None) -> list[str]:
    """Names separated by commas, given once or several times, as one list.

    >>> split(["a, b", "c"])
    ['a', 'b', 'c']
    """
    given = [texts] if isinstance(texts, str) else texts or []
    return [part.strip() for text in given for part in text.split(",") if part.strip()]
