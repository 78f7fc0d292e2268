"""The report: computed once, then written as a page or as plain values."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from typing import Any, Literal

from verax._version import __version__
from verax.analyses.subgroups.result import Subgroups
from verax.common.checks import check_choice
from verax.common.strictjson import plain
from verax.display.writing import written
from verax.errors import MissingPackageError
from verax.inference.findings import Verdict
from verax.inference.intervals import WeightsAre, check_confidence
from verax.inputs.arrays import Ints
from verax.inputs.shares import Raters
from verax.inputs.skipping import Skipped
from verax.report.analysis import look_at
from verax.report.breakdowns import Breakdowns
from verax.report.contents import Contents
from verax.report.page import render
from verax.report.problem import Problem, open_given
from verax.report.section import facts_of
from verax.report.verdict import in_one_family, verdict_of
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """All there is to say about one or several models' probabilities, as one page.

    Made by `Report.of`. `to_html` and `save` need the extra `report`; `verdict` and `to_dict`
    do not.

    Attributes
    ----------
    contents : Contents
        What was computed.
    title : str
        The title of the page.
    source : str
        Where the rows come from.
    made : str
        The date on which it was made.
    command : str
        The command that made it; empty in Python.
    required : tuple of (str, bool)
        What was required, such as "rps < 0.2", and whether it is met.
    typed : str
        The files and the options that say how they are read, as they were typed; empty in Python.
    read : str
        How the files were read; empty in Python.

    Examples
    --------
    >>> import verax as vx
    >>> report = vx.report.Report.of([0, 1] * 30, [0.2, 0.7] * 30, title="Rain")
    >>> report.title
    'Rain'
    """

    contents: Contents
    title: str
    source: str
    made: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())
    command: str = ""
    required: tuple[tuple[str, bool], ...] = ()
    typed: str = ""
    read: str = ""

    @classmethod
    def of(
        cls,
        y: object,
        p: object = None,
        *,
        classes: Sequence[Hashable] | None = None,
        ordered: bool = False,
        costs: CostsLike | None = None,
        weights: object | None = None,
        groups: object | None = None,
        by: object | None = None,
        ids: object | None = None,
        rules: Sequence[Rule | str] | None = None,
        title: str = "How good are these probabilities?",
        source: str = "",
        logits: bool = False,
        normalize: bool = False,
        raters: Raters | None = None,
        weights_are: WeightsAre = "importance",
        time_ordered: bool = False,
        confidence: float = 0.95,
        seed: int = 0,
        invalid: Literal["raise", "skip"] = "raise",
        skipped: Skipped | None = None,
        numbers: Ints | None = None,
        outcome: str = "",
    ) -> Report:
        """Compute everything that the page shows.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, K), or Handle
            Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
            `scan` has opened, in place of everything that has a value per row. They are read once, and the
            page says what comes from histograms.
        p : array_like of shape (N, K) or (N,), TopLists, or mapping of str to these, optional
            Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
            is enough. Or the forecasts of several models, by name. For top lists the page is about
            coverage, the calibration of places and of the whole list, and what shorter lists lose; full
            distributions among them are cut to lists of the same length.
        classes : sequence of K labels, optional
            Names of the columns of `p`, in order; for ordered classes lowest first.
        ordered : bool, default False
            Whether the classes have an order.
        costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
            The cost of each decision (column) for each outcome (row); "quadratic" if `ordered`.
        weights : array_like of shape (N,), optional
            Importance weights of the rows, not negative, not all zero. Only their ratios matter.
        groups : array_like of shape (N,), or two of them, optional
            Labels of clusters (patients, sites) whose rows belong together and are resampled together.
        by : array_like of shape (N,), or mapping of str to these, optional
            Labels of subgroups: {name: column, ...}, or one column.
        ids : array_like of shape (N,), optional
            Names of the rows; by default their numbers.
        rules : sequence of Rule or str, optional
            Rules to use instead of all applicable ones.
        title : str, default "How good are these probabilities?"
            The title of the page.
        source : str, default ""
            Where the rows come from.
        logits : bool, default False
            Whether `p` holds logits; the softmax is applied first.
        normalize : bool, default False
            Whether to divide each row of `p` by its sum first.
        raters : {"shares", "counts", "columns"}, optional
            What a 2-D `y` holds if not one-hot rows: shares of the classes, numbers of raters for each class,
            or the labels of one rater per column.
        weights_are : {"importance", "counts"}, default "importance"
            What weights are. "importance": how much each row counts; only their ratios matter. "counts":
            a row of weight 3 is three rows.
        time_ordered : bool, default False
            Whether the rows are in order of time, for `compare`, which compares the models. All other
            intervals assume independent rows.
        confidence : float, default 0.95
            Confidence level of all intervals and tests.
        seed : int, default 0
            Random seed.
        invalid : {"raise", "skip"}, default "raise"
            What to do with invalid rows: refuse them, or leave them out. The result counts and lists them
            (`skipped`), and rows keep their numbers.
        skipped : Skipped, optional
            The invalid rows that were left out before, for callers that left them out themselves.
        numbers : array of shape (N,), optional
            The numbers of all other rows, for the same callers.
        outcome : str, default ""
            What the outcomes are called, such as "churn". Classes that are numbers are then shown as
            "churn = 1". By default the column of predictions that `scan` has opened, unless it is called
            "label" or the like.

        Returns
        -------
        Report
            The report, which `save` writes.

        Examples
        --------
        >>> import verax as vx
        >>> p = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]] * 20
        >>> report = vx.report.Report.of([0, 1, 2] * 20, p, classes=["low", "middle", "high"], ordered=True)
        >>> report.verdict.partition(":")[0]
        'The model beats predicting class frequencies'
        """
        check_confidence(confidence)
        check_choice("invalid", invalid, ("raise", "skip"))
        handle, full = open_given(
            y,
            p,
            rules=rules,
            ordered=ordered,
            costs=costs,
            by=by,
            skip=invalid == "skip",
            skipped=skipped,
            numbers=numbers,
            classes=classes,
            weights=weights,
            groups=groups,
            ids=ids,
            normalize=normalize,
            logits=logits,
            raters=raters,
        )
        handle = handle.called(outcome)
        problem = Problem.of(
            handle,
            rules,
            ordered=ordered,
            costs=costs,
            weights_are=weights_are,
            time_ordered=time_ordered,
            full=tuple(full),
        )
        contents = look_at(handle, problem, confidence=confidence, seed=seed, full=full)
        return cls(in_one_family(contents), title, source)

    @property
    def verdict(self) -> Verdict:
        """What is claimed: which model to keep, how sure that is, whether it is calibrated, what helps."""
        claims = verdict_of(self.contents)
        return claims.with_source(self.typed) if self.typed else claims

    @property
    def subgroups(self) -> dict[str, Subgroups]:
        """The subgroups that are shown, by the name of the breakdown."""
        return dict(self.contents.subgroups)

    def with_subgroups(self, subgroups: Mapping[str, Subgroups]) -> Report:
        """The same report with subgroups that `subgroups` has found, instead of its own.

        Parameters
        ----------
        subgroups : mapping of str to Subgroups
            The subgroups, by the name of the breakdown.

        Returns
        -------
        Report
            A new report.
        """
        parts = Breakdowns(dict(subgroups), {name: [] for name in subgroups})
        return replace(self, contents=in_one_family(replace(self.contents, parts=parts)))

    def __repr__(self) -> str:
        problem = self.contents.problem
        models = "" if len(problem.models) == 1 else f", {len(problem.models)} models"
        return f"verax report: {problem.n_rows:,} rows, {problem.n_classes:,} classes{models}. {self.verdict}"

    def to_html(self) -> str:
        """The page: one HTML file that needs nothing else."""
        about = {"made": self.made, "command": self.command, "required": self.required, "read": self.read}
        return render(self.contents, self.verdict, title=self.title, source=self.source, **about)

    def _repr_html_(self) -> str:
        try:
            page = escape(self.to_html(), quote=True)
        except MissingPackageError:
            return f"<p>{escape(repr(self))}</p>"
        frame = "width: 100%; height: 40rem; border: 1px solid #ccc"
        return f'<iframe title="verax report" srcdoc="{page}" style="{frame}"></iframe>'

    def with_command(
        self, command: str, required: Sequence[tuple[str, bool]] = (), typed: str = "", read: str = ""
    ) -> Report:
        """The same report, which names the command that made it and what was required.

        Parameters
        ----------
        command : str
            The command.
        required : sequence of (str, bool), default ()
            Each requirement, and whether it is met.
        typed : str, default ""
            The files and the options that say how they are read, for the command of the next step.
        read : str, default ""
            How the files were read, for the data checks.

        Returns
        -------
        Report
            A new report.
        """
        return replace(self, command=command, required=tuple(required), typed=typed, read=read)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page. A file of that name is replaced when the new one is complete, not before.

        Parameters
        ----------
        path : str or path
            The file; `.html` is the usual ending.
        """
        text = self.to_html()
        with written(path) as new:
            new.write_text(text, encoding="utf-8", newline="\n")

    def _about(self) -> dict[str, Any]:
        return {
            "verax": __version__,
            "title": self.title,
            "source": self.source,
            "verdict": str(self.verdict),
            "findings": [finding.to_dict() for finding in self.verdict.findings],
            "made": self.made,
            "command": self.command,
            "read": self.read,
            "required": [{"requirement": text, "met": met} for text, met in self.required],
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything on the page as strict JSON; infinities are texts, NaN is None."""
        facts = plain(self._as_dict())
        assert isinstance(facts, dict)
        return facts

    def _as_dict(self) -> dict[str, Any]:
        return self._about() | facts_of(self.contents)
