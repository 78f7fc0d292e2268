"""What a caller of `scan` says about predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from verax.analyses.comparison.opening import grade_scale
from verax.common.checks import is_whole
from verax.errors import InputError, passing, show
from verax.files.lists.recognising import ALL_SHAPES
from verax.files.lists.settings import ListSettings
from verax.files.outcomes_beside import Beside
from verax.files.predictions import PROBABILITIES, Request, each_name
from verax.scores.grades import Grade

# What may be said of top lists only, and what is said of them as of everything else.
LIST_OPTIONS = (
    *("shape", "outcomes", "position", "after", "last_match", "samples", "per_length"),
    *("missing", "others", "merge_variants"),
)
_SHARED = ("id", "weights", "groups", "by", "normalize", "invalid", "delimiter")


@dataclass(frozen=True)
class ScanOptions:
    """Which columns are what, for one model or several.

    Attributes
    ----------
    request : Request
        What is said about all models; for one model also its columns of probabilities.
    probs : Mapping[str, tuple[str, ...]] | None
        The columns of each of several models.
    progress : Callable[[int], None] | None
        Called with the number of rows of every part that has been read.
    settings : ListSettings | None
        What is said about top lists, where the predictions are such.
    may_be_lists : bool
        Nobody said whether they are.
    hold : str
        Which lists are read at once: "fitting" those that fit in memory, "all", or none.
    densify : bool
        Whether lists that are read at once and all name all classes are full distributions.
    grades : Mapping[str, str] | None
        The column of grades of each model, in place of probabilities; one without a name is called "".
    scale : Grade
        The range of grades.
    pooled : str
        Duplicate rows: "refused" where ids repeat or two files look like those of two models; of
        files that were "named" as those of one model, where ids repeat; "matched" by their ids elsewhere.
    rounded : bool
        Whether rows whose sums differ from 1 by rounding are divided by them; otherwise they are refused.
    """

    request: Request
    probs: Mapping[str, tuple[str, ...]] | None = None
    progress: Callable[[int], None] | None = None
    settings: ListSettings | None = None
    may_be_lists: bool = False
    hold: Literal["", "fitting", "all"] = ""
    densify: bool = False
    grades: Mapping[str, str] | None = None
    scale: Grade = field(default_factory=Grade)
    pooled: Literal["refused", "named", "matched"] = "refused"
    rounded: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns that identify rows."""
        return each_name(self.request.id)

    @property
    def distinct(self) -> bool:
        """Whether no two rows may have the same id: unless rows of an id are groups, or sampled repeats."""
        sampled = self.settings is not None and self.settings.samples == "repeats"
        grouped = set(self.ids) <= set(each_name(self.request.groups))
        return bool(self.ids) and not (self.pooled == "matched" or sampled or grouped)

    @property
    def may_be_two_models(self) -> bool:
        """Whether nothing says that the rows of several files are different rows of one model."""
        return self.pooled == "refused" and not self.ids

    def with_grades(self, grades: Any, grade_range: Any) -> ScanOptions:
        """The same for tables that have grades in place of probabilities."""
        named = grades if isinstance(grades, Mapping) else {"": grades}
        wrong = [column for column in named.values() if not isinstance(column, str)]
        if not named or wrong:
            raise InputError(
                "must be the column of grades, or that of each model by its name",
                argument="grades",
                kind="type",
                found=f"it is {show(grades)}",
            )
        own = {str(name): column for name, column in named.items()}
        return replace(self, grades=own, scale=grade_scale(grade_range), may_be_lists=False)

    @classmethod
    def of(
        cls,
        probs: Any,
        progress: Callable[[int], None] | None,
        lists: bool | Mapping[str, Any] | None = None,
        **given: Any,
    ) -> ScanOptions:
        """What a caller passes, with the types checked."""
        number = is_whole(given["classes"])
        if progress is not None and not callable(progress):
            raise InputError(
                f"must be a function that takes a number of rows, not {show(progress)}",
                argument="progress",
                kind="type",
                values=[progress],
            )
        if not (lists is None or isinstance(lists, (bool, Mapping))):
            raise InputError(
                "must be a truth value, or options of lists by name",
                argument="lists",
                kind="type",
                found=f"it is {show(lists)}",
            )
        if lists or isinstance(lists, Mapping) or (lists is None and number):
            options = lists if isinstance(lists, Mapping) else {}
            return cls._of_lists(probs, progress, options, given)
        may_be = lists is None and probs is None
        return replace(cls._of_columns(probs, progress, given), may_be_lists=may_be)

    @classmethod
    def _of_lists(
        cls, probs: Any, progress: Any, lists: Mapping[str, Any], given: dict[str, Any]
    ) -> ScanOptions:
        """What is said about top lists."""
        unknown = next((name for name in lists if name not in LIST_OPTIONS), None)
        if unknown is not None:
            raise InputError(
                f"must have options that lists have: {', '.join(LIST_OPTIONS)}",
                argument="lists",
                found=f"it has {show(unknown)}",
                values=[unknown],
            )
        named = not isinstance(given["classes"], bool) and not is_whole(given["classes"])
        asked = cls._of_columns(probs, progress, given if named else {**given, "classes": None})
        for name in ("positive", "logits", "percent", "raters"):
            if getattr(asked.request, name):
                raise InputError("does not apply to top lists", argument=name)
        if asked.request.outputs != PROBABILITIES:
            raise InputError("does not apply to top lists", argument="outputs")
        return asked.as_lists(lists, given["classes"])

    def as_lists(self, lists: Mapping[str, Any] | None = None, classes: Any = None) -> ScanOptions:
        """The same for top lists."""
        request = self.request
        settings = ListSettings.of(
            shapes=ALL_SHAPES,
            classes=request.classes if classes is None else classes,
            outcome=request.target,
            **{name: getattr(request, name) for name in _SHARED},
            **(lists or {}),
        )
        return replace(self, settings=settings, may_be_lists=False)

    def list_models(self, default: str) -> dict[str, ListSettings]:
        """What is asked of the lists of each model; one without a name is called `default`."""
        assert self.settings is not None
        each = {default: self.request.probs} if self.probs is None else self.probs
        for columns in each.values():
            if len(columns) > 2:
                raise InputError(
                    "must be the column of lists, or those of their classes and of their probabilities",
                    argument="probs",
                    found=f"there are {len(columns)}",
                    values=columns,
                )
        return {name: replace(self.settings, columns=columns) for name, columns in each.items()}

    @classmethod
    def _of_columns(cls, probs: Any, progress: Any, given: dict[str, Any]) -> ScanOptions:
        """What is said about columns of probabilities."""
        if not isinstance(probs, Mapping):
            return cls(Request.of(probs=probs, **given), None, progress)
        if not probs:
            raise InputError("must name at least one model", argument="probs", kind="length")
        each = {str(name): Request.of(probs=own, **given).probs for name, own in probs.items()}
        return cls(Request.of(probs=None, **given), each, progress)

    def models(self, default: str) -> dict[str, Request]:
        """What is asked of each model; one without a name is called `default`."""
        if self.probs is None:
            return {default: self.request}
        return {name: replace(self.request, probs=own) for name, own in self.probs.items()}

    def with_raters(self, names: tuple[str, ...]) -> ScanOptions:
        """The same where the labels of each rater are a column."""
        own = replace(self.request, raters=names, rater_column=None, label_column=None)
        return replace(self, request=own)

    def with_outcomes(self, found: Beside) -> ScanOptions:
        """The same for a table that has the outcomes of another file."""
        ids = found.id[0] if len(found.id) == 1 else found.id or None
        own = self.request.probs or found.probs
        request = replace(self.request, target=found.target, id=ids, probs=own, outcomes_file=None)
        probs = self.probs and {name: columns or found.probs for name, columns in self.probs.items()}
        return replace(self, request=request, probs=probs)

    def in_order(self) -> ScanOptions:
        """The same where the order of the classes must be known."""
        return replace(self, request=replace(self.request, ordered=True))


def unknown_source(source: object) -> InputError:
    """The error about a source that no engine reads."""
    return InputError(
        "must be a path, a list of paths, or a frame, table, data set or query",
        argument="source",
        kind="type",
        found=f"it is a {type(source).__name__}",
        remedies=[passing("as they are, if they are in memory", y=..., p=...)],
    )
