"""The predictions that the files of a command line name: what every command reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from verax.cli.progress import advance
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy, RuleError
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.analyses.sets.conformal_result import Conformal
    from verax.analyses.subgroups.result import Subgroups
    from verax.inference.findings import Verdict
    from verax.inputs.skipping import MaySkip, Skipped
    from verax.report import Report
    from verax.scores.base import Rule

T = TypeVar("T")
M = TypeVar("M", bound="MaySkip")


def open_files(
    path: Files,
    model: str,
    reading: Reading,
    *,
    classes: Sequence[Hashable] | None = None,
    hold: Literal["fitting", "all"] = "fitting",
    densify: bool = True,
    pooled: Literal["refused", "named", "matched"] = "refused",
) -> Any:
    """Files as a handle; lists are recognised by their content where no columns are named.

    See `ScanOptions` for `hold`, `densify` and `pooled`.
    """
    from verax.scans.options import ScanOptions
    from verax.scans.scan import FILES, open_asked

    lists = reading.lists or holds_lists(path, reading)
    changed: dict[str, Any] = {"lists": lists, "by": tuple(reading.cuts)}
    if not lists:
        changed |= {} if classes is None else {"classes": tuple(classes)}
        if not reading.several:
            changed["sets" if reading.sets else "probs"] = {model: reading.columns}
    own = replace(reading, **changed)
    return open_asked(
        path, ScanOptions(own, advance, hold, densify and lists, pooled, rounded=not lists), FILES
    )


def holds_lists(path: Files, reading: Reading) -> bool:
    """Whether files hold top lists, by their content where no columns are named."""
    from verax.files.lists import holds_lists as recognised

    named = reading.probs or reading.sets or reading.raters or reading.rater_column
    return not named and recognised(path, reading)


@dataclass(frozen=True)
class Opened:
    """Files of one model that `scan` has opened.

    Attributes
    ----------
    file : str
        What they are called.
    model : str
        The name of the model.
    handle : LocalHandle
        The rows, wherever they are.
    bins : mapping of str to int
        Columns of subgroups that are cut into groups, and into how many.
    """

    file: str
    model: str
    handle: Any
    bins: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Sequence[str], reading: Reading) -> Opened:
        """The files that were named: a path, a pattern, a folder, or several, also as name=path."""
        from verax.files.joining import are_named, files_of_one_model

        model, paths = files_of_one_model(given)
        handle = open_files(paths, model, reading, pooled="named" if are_named(given) else "refused")
        if handle.lists and reading.ordered:
            from verax.inputs.lists.rows import NO_ORDER

            raise RuleError(NO_ORDER)
        return cls(called(paths), model, handle, reading.cuts)

    @property
    def lists(self) -> bool:
        """Whether the forecasts are top lists."""
        return bool(self.handle.lists)

    def rows(self, *, ordered: bool) -> GivenRows:
        """The rows, which are read if they fit in memory; `ordered`: the order of classes matters."""
        handle = self.handle.in_order() if ordered else self.handle
        return replace(GivenRows.of(handle, {self.model: self.file}), bins=self.bins)


@dataclass(frozen=True)
class GivenRows:
    """Rows as arguments of functions that take (y, p) or a handle.

    Attributes
    ----------
    given : tuple
        Outcomes and forecasts, or a handle.
    options : dict
        What belongs to them: classes, weights, groups, and how numbers are read.
    handle : LocalHandle
        The same rows as a handle.
    parts : mapping of str to Predictions or ListFile
        The rows of each model; none where they are not in memory.
    files : mapping of str to str
        The files of each model.
    skipped : Skipped or None
        Invalid rows that were left out of rows in memory.
    bins : mapping of str to int
        Columns of subgroups that are cut into groups, and into how many.
    """

    given: tuple[Any, ...]
    options: dict[str, Any]
    handle: Any
    parts: Mapping[str, Any]
    files: Mapping[str, str]
    skipped: Skipped | None = None
    _scale: Mapping[str, bool] = field(default_factory=dict)
    bins: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, handle: Any, files: Mapping[str, str]) -> GivenRows:
        """The rows of a handle, which are read if they fit in memory."""
        if not handle.fits:
            return cls((handle,), {}, handle, {}, files)
        held = handle.held()
        first = next(iter(held.rows.values()))
        own: dict[str, Any] = {"weights": first.weights, "groups": first.groups}
        if held.lists:
            return cls((first.y, first.lists), own, held, held.rows, files, first.skipped)
        if held.sets:
            from verax.files.set_columns import sets_of

            given = (first.outcomes, sets_of(first))
            return cls(given, own | {"classes": first.classes}, held, held.rows, files, first.skipped)
        scale = {"normalize": held.request.normalize, "logits": held.request.logits}
        own |= {"classes": first.classes, **scale}
        models = {name: rows.p for name, rows in held.rows.items()}
        p = models if held.several else first.p
        return cls((first.outcomes, p), own, held, held.rows, files, first.skipped, scale)

    @property
    def held(self) -> bool:
        """Whether the rows are in memory."""
        return bool(self.parts)

    @property
    def first(self) -> Any:
        """The rows in memory of the first model, which have ids and subgroups."""
        return next(iter(self.parts.values()), None)

    @property
    def outcome(self) -> str:
        """What the outcomes of rows in memory are called; empty for lists."""
        roles = getattr(self.first, "roles", None)
        return "" if roles is None else str(roles.outcome)

    def ask(self, function: Callable[..., T], **how: Any) -> T:
        """What a function finds in the rows; errors about rows of a file name the file and its columns."""
        try:
            return function(*self.given, **self.options, **how)
        except InputError:
            from verax.files.predictions import Predictions
            from verax.files.scoring import forecasts_of

            for rows in self.parts.values():
                if isinstance(rows, Predictions) and not rows.roles.sets:
                    forecasts_of(rows, **self._scale).check()
            raise

    def truncated(self, length: int | None) -> GivenRows:
        """The first entries of each list in memory."""
        if length is None:
            return self
        held = self.handle
        lists = {name: replace(read, lists=read.lists.truncate(length)) for name, read in self.parts.items()}
        about = {"name": held.name, "taken": held.taken, "notes": held.notes}
        return replace(GivenRows.of(type(held)(lists, held.request, **about), self.files), bins=self.bins)

    def with_sets(self, made: Conformal) -> GivenRows:
        """The same rows with the sets of a conformal predictor in place of probabilities."""
        if not self.held:
            return replace(self, given=(made.apply(self.handle),))
        y, p = self.given
        scale = {name: self.options[name] for name in ("normalize", "logits") if name in self.options}
        return replace(
            self.without(*scale), given=(y, made.apply(p, classes=self.options.get("classes"), **scale))
        )

    def without(self, *names: str) -> GivenRows:
        """The same without some of the options."""
        return replace(self, options={k: v for k, v in self.options.items() if k not in names})

    def marked(self, found: M) -> M:
        """A result that knows which rows were left out, and the numbers of all others."""
        return found if self.skipped is None else found.with_skipped(self.skipped, self.numbers)

    @property
    def numbers(self) -> Any:
        """The numbers in their file of rows in memory; None where they follow each other."""
        first = self.first
        if first is None or self.skipped is None:
            return None
        return first.places if hasattr(first, "places") else first.rows

    def subgroups(self, rule: str | None, **how: Any) -> dict[str, Subgroups]:
        """The scores by each column of subgroups."""
        columns = self.first.by if self.held else {name: name for name in self.handle.by}
        if not columns:
            return {}
        from verax.analyses.subgroups.subgroups import subgroups

        rows, found = self._one_way(), {}
        for name, column in columns.items():
            labels = cut(name, column, self.bins[name], held=self.held) if self.bins.get(name) else column
            found[name] = rows.ask(subgroups, by=labels, rule=rule, **how)
            found[name].by = name
        return found

    def _one_way(self) -> GivenRows:
        """The same rows with one kind of groups: of two, the one with fewer groups, as in the report."""
        from verax.inputs.groups import Groups

        groups = self.options.get("groups")
        if groups is None:
            return self
        return replace(self, options={**self.options, "groups": Groups.of(groups, len(self.first)).fewest})

    def verdict(self, rules: Sequence[Rule | str] | None, **how: Any) -> tuple[Verdict, dict[str, Subgroups]]:
        """What there is to claim of the models and their subgroups, the same as on the page."""
        from verax.analyses.subgroups.verdict import verdict_of

        if not self.held:
            return self.ask(verdict_of, rules=rules, **how)
        y, p = self.given
        models = p if isinstance(p, dict) else {next(iter(self.files)): p}
        how["outcome"] = self.outcome
        return replace(self, given=(y, models)).ask(verdict_of, rules=rules, **how)

    def report(self, **how: Any) -> Report:
        """The report on all models, with subgroups where it finds them itself (`reports_subgroups`)."""
        from verax.report import Report

        if not self.held:
            return self.ask(Report.of, **how)
        y, p = self.given
        models = p if isinstance(p, dict) else {next(iter(self.files)): p}
        how |= {"ids": self.first.ids, "skipped": self.skipped, "outcome": self.outcome}
        if "classes" in self.options:
            how["numbers"] = self.numbers
        return replace(self, given=(y, models)).ask(Report.of, **how)

    @property
    def reports_subgroups(self) -> bool:
        """Whether the report finds subgroups itself: those of distributions that are not in memory."""
        return not self.held and not self.handle.lists

    def together(self, *analyses: Callable[[GivenRows], Any]) -> list[Any]:
        """What each analysis finds; rows that are not in memory are read once for all."""
        if self.held:
            return [analysis(self) for analysis in analyses]
        from verax.scans.together import together

        def on_handle(analysis: Callable[[GivenRows], Any]) -> Callable[[Any], Any]:
            return lambda handle: analysis(replace(self, given=(handle,), handle=handle))

        return together(self.handle, [on_handle(each) for each in analyses])

    def taken(self) -> dict[str, Any]:
        """How the files of the first model were read, as plain Python values."""
        if self.handle.lists:
            return self.first.to_dict() if self.held else _taken_of_lists(self.handle)
        roles = self.first.roles if self.held else self.handle.roles
        return roles.to_dict()  # type: ignore[no-any-return]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of the rows: a sentence each."""
        return tuple(self.handle.notes)

    def said(self) -> list[str]:
        """How the files were read, and what to know of them, for the terminal."""
        file = next(iter(self.files.values()))
        return [f"{file}: {'; '.join(self.handle.taken)}", *(f"Note: {note}" for note in self.notes)]

    @property
    def source(self) -> str:
        """The file, how it was read, and what a reader of results should know, for the report."""
        sentences = [f"{Path(self.handle.name).name}: {'; '.join(self.handle.taken)}", *self.notes]
        return ". ".join(sentence.removesuffix(".") for sentence in sentences)


def cut(name: str, column: Any, n: int, *, held: bool) -> Any:
    """Labels of groups of about equal size, by the numbers of a column; each names its range.

    >>> cut("age", [20, 30, 40, 50], 2, held=True).tolist()
    ['1: 20 to 30', '1: 20 to 30', '2: 40 to 50', '2: 40 to 50']
    """
    import numpy as np

    if not held:
        raise InputError(
            "cannot be cut into groups: the file is too large to be held in memory",
            argument="by",
            values=[name],
            remedies=[Remedy("Add a column of groups to the file.")],
        )
    try:
        values = np.asarray(column).astype(float)
    except ValueError:
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise InputError("must be a column of numbers to be cut into groups", argument="by", values=[name])
    edges = np.unique(np.quantile(values, np.arange(1, n) / n, method="lower"))
    place = np.searchsorted(edges, values, side="left")
    order = {i: j for j, i in enumerate(np.unique(place).tolist())}
    names = {}
    for i, j in order.items():
        own = values[place == i]
        low, high = f"{own.min():g}", f"{own.max():g}"
        # Labels are shown in the order of their texts.
        rank = f"{j + 1:0{len(str(len(order)))}}"
        names[i] = f"{rank}: {low}" if low == high else f"{rank}: {low} to {high}"
    return np.array([names[i] for i in place.tolist()])


def _taken_of_lists(handle: Any) -> dict[str, Any]:
    return {
        "shape": handle.taken[0].partition(": ")[2],
        "taken": list(handle.taken),
        "counts": dict(getattr(handle, "counts", {})),
        "skipped": None,
        "notes": list(handle.notes),
    }
