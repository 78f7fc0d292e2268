"""The report: computed once, then written as a page or as plain values."""

from __future__ import annotations

import inspect
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from verax._version import __version__
from verax.common.checks import check_choice
from verax.common.strictjson import plain
from verax.display.writing import written
from verax.errors import InputError
from verax.inference.intervals import WeightsAre, check_confidence
from verax.inputs.arrays import Ints
from verax.inputs.handles import Handle, check_alone
from verax.inputs.skipping import Skipped, without_invalid
from verax.report.contents import Contents, compute
from verax.report.elsewhere import look_at
from verax.report.lists.contents import ListContents
from verax.report.lists.contents import compute as compute_lists
from verax.report.lists.contents import to_dict as lists_dict
from verax.report.lists.problem import ListProblem, holds_lists
from verax.report.lists.verdict import verdict_of as list_verdict
from verax.report.page import render
from verax.report.problem import Problem
from verax.report.verdict import verdict_of
from verax.scores.base import Rule
from verax.scores.metrics import CostsLike
from verax.scores.registry import name_of


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """All there is to say about one or several models' probabilities, as one page.

    Made by `Report.of`. `to_html` and `save` need the packages of `verax[report]`; `verdict` and `to_dict`
    do not.
    """

    contents: Contents | ListContents
    title: str
    source: str

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
        weights_are: WeightsAre = "importance",
        time_ordered: bool = False,
        confidence: float = 0.95,
        seed: int = 0,
        invalid: Literal["raise", "skip"] = "raise",
        skipped: Skipped | None = None,
        numbers: Ints | None = None,
    ) -> Report:
        """Compute everything.

        Parameters
        ----------
        y : array or Handle
            Outcomes as for `evaluate`; or predictions that `scan` has opened, in place of everything that has
            a value per row. They are read once, and the page says what comes from histograms.
        classes, ordered, costs, weights, weights_are, groups, rules, normalize, logits, invalid
            As for `evaluate`.
        p : array, TopLists or dict
            The forecasts of one model, or of several by name: {name: p, ...}. For top lists the page is about
            coverage, the calibration of places and of the whole list, and what shorter lists lose; full
            distributions among them are cut to lists of the same length.
        by : array, dict or None
            Labels of subgroups: {name: column, ...}, or one column.
        ids : array or None
            (N,) names of the rows; by default their numbers.
        time_ordered : bool
            As for `compare`, which compares the models. All other intervals take rows to be independent.
        title, source : str
            The title of the page, and where the rows come from.
        confidence, seed
            Level of all intervals and tests, and random seed.
        skipped, numbers : Skipped, array or None
            What rows were left out before as invalid, and (N,) the numbers of all others; for callers that
            left them out themselves.

        Examples
        --------
        >>> import verax as vx
        >>> p = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]] * 20
        >>> report = vx.report.Report.of([0, 1, 2] * 20, p, classes=["low", "middle", "high"], ordered=True)
        >>> report.verdict.partition(":")[0]
        'The model is far better than knowing the class frequencies alone'
        """
        check_confidence(confidence)
        check_choice("invalid", invalid, ("raise", "skip"))
        if isinstance(y, Handle):
            beside = {"p": p, "classes": classes, "weights": weights, "groups": groups, "by": by, "ids": ids}
            also = [name for name, value in beside.items() if value is not None]
            check_alone("Report.of", inspect.signature(cls.of), y, also)
            read = {"ordered": ordered, "costs": costs, "rules": rules, "weights_are": weights_are}
            return cls(look_at(y, confidence=confidence, seed=seed, **read), title, source)  # type: ignore[arg-type]
        if holds_lists(p):
            _refuse_for_lists(
                ordered=ordered, costs=costs is not None, by=by is not None, invalid=invalid == "skip"
            )
            lists = ListProblem.of(
                y,
                p,
                weights=weights,
                groups=groups,
                ids=ids,
                rules=rules,
                weights_are=weights_are,
                time_ordered=time_ordered,
                classes=classes,
                normalize=normalize,
                logits=logits,
            )
            lists = replace(lists, skipped=skipped)
            return cls(compute_lists(lists, confidence=confidence, seed=seed), title, source)
        given: dict[str, Any] = {"y": y, "p": p, "weights": weights, "groups": groups, "by": by, "ids": ids}
        if by is not None and not isinstance(by, Mapping):
            given["by"] = {str(getattr(by, "name", None) or "subgroup"): by}
        if invalid == "skip":
            scale = {"classes": classes, "normalize": normalize, "logits": logits}
            valid, skipped, numbers = without_invalid({**given, **scale})
            given = {name: valid[name] for name in given}
        problem = Problem.of(
            given.pop("y"),
            given.pop("p"),
            **given,
            classes=classes,
            ordered=ordered,
            costs=costs,
            rules=rules,
            normalize=normalize,
            weights_are=weights_are,
            time_ordered=time_ordered,
            logits=logits,
        )
        problem = replace(problem, skipped=skipped, numbers=numbers)
        return cls(compute(problem, confidence=confidence, seed=seed), title, source)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        contents = self.contents
        return list_verdict(contents) if isinstance(contents, ListContents) else verdict_of(contents)

    def __repr__(self) -> str:
        problem = self.contents.problem
        models = "" if len(problem.models) == 1 else f", {len(problem.models)} models"
        return f"verax report: {problem.n_rows:,} rows, {problem.n_classes:,} classes{models}. {self.verdict}"

    def to_html(self) -> str:
        """The page: one HTML file that needs nothing else."""
        return render(self.contents, title=self.title, source=self.source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page. A file of that name is replaced when the new one is complete, not before."""
        text = self.to_html()
        with written(Path(path)) as new:
            new.write_text(text, encoding="utf-8", newline="\n")

    def _about(self) -> dict[str, Any]:
        return {
            "verax": __version__,
            "title": self.title,
            "source": self.source,
            "verdict": self.verdict,
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything on the page as strict JSON; infinities are texts, NaN is None."""
        found = plain(self._shown())
        assert isinstance(found, dict)
        return found

    def _shown(self) -> dict[str, Any]:
        contents = self.contents
        if isinstance(contents, ListContents):
            return self._about() | lists_dict(contents)
        problem = contents.problem
        return {
            **self._about(),
            "n_rows": problem.n_rows,
            "classes": list(problem.names),
            "ordered": problem.ordered,
            "primary": contents.primary,
            "confidence": contents.confidence,
            "seed": contents.seed,
            "replicates": contents.replicates,
            "models": {
                found.name: {
                    "card": found.card.with_skipped(problem.skipped, problem.numbers).to_dict(stored=False),
                    "skill": {
                        name_of(rule): _skill(contents, found.name, name_of(rule)) for rule in problem.rules
                    },
                    "decomposition": found.decomposition.to_dict(stored=False),
                    "sureness": found.sureness.to_dict(),
                    "worst": found.worst.to_dict(stored=False),
                    "reliability": [panel.to_dict() for panel in found.panels],
                    "recalibration": found.remedy.to_dict(),
                    "retention": [curve.to_dict(stored=False) for curve in found.retained],
                    "selective": [curve.to_dict(stored=False) for curve in found.selected],
                    "by_class": [
                        {"class": problem.names[line.position], **vars(line)} for line in found.by_class
                    ],
                    "decisions": None if found.decisions is None else vars(found.decisions),
                }
                for found in contents.findings
            },
            "subgroups": {name: found.to_dict(stored=False) for name, found in contents.subgroups.items()},
            "left_out": {name: [list(pair) for pair in left] for name, left in contents.left_out.items()},
            "comparison": contents.comparison.to_dict(stored=False),
            "checks": [vars(check) for check in contents.checks],
            "skipped": None if problem.skipped is None else problem.skipped.to_dict(),
        }


def _refuse_for_lists(**given: bool) -> None:
    """Refuse what has no meaning for top lists, or is not on their page."""
    for name in (name for name, passed in given.items() if passed):
        raise InputError("cannot be used in a report on top lists", argument=name)


def _skill(contents: Contents, model: str, rule: str) -> dict[str, Any]:
    skill, interval = contents.skill(model, rule)
    return {"skill": skill, "interval": list(interval), "reference": "frequencies"}
