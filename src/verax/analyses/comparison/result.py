"""`Comparison`: the means, ranks and differences of models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from verax.analyses.comparison.answers import GapBounds, ModelAnswers
from verax.analyses.comparison.findings import TESTED, findings_of
from verax.analyses.comparison.ranked import RankedModels
from verax.analyses.comparison.reasons import Claims, Traits
from verax.analyses.comparison.records import Difference, MarginTest, Model, margin_tests
from verax.analyses.comparison.tables import grade_named, tables_of
from verax.analyses.comparison.ungraded import Unsettled
from verax.common.faces import Hidden, Mark, Maybe
from verax.display.tables import Table, Tabled
from verax.inference.findings import Claim, Finding, WithVerdict
from verax.inference.intervals import Interval
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.skipping import MaySkip
from verax.scores.registry import constant_bounds

# JSON has these only if models may have different questions.
_GRADED = (
    "missing",
    "grades",
    "grade_differences",
    "answers",
    "gap_bounds",
    "peers",
    "baselines",
    "tasks",
    "unsettled",
)


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(WithVerdict, RankedModels, Tabled, MaySkip):
    """Models compared under one or several rules.

    Attributes
    ----------
    models : dict of str to list of Model
        By rule, the mean loss, rank and interval of each model; of grades the mean grade.
    differences : dict of str to list of Difference
        By rule, the differences of all pairs of models.
    traits : dict of str to Traits
        By model, how often it is right and how confident it is.
    n_rows : int
        The number of rows.
    n_groups : int, tuple of int or None
        The number of groups, of each kind; None without groups.
    method : str
        How standard errors and p-values were computed.
    confidence : float
        Confidence level of the intervals.
    reference : str or None
        The reference of skill.
    notes : tuple of str
        Remarks for the reader.
    claims : Claims or None
        Significant claims about traits of the models; None if they were not tested.
    margin : float or None
        The non-inferiority margin; None without one.
    missing : str or None
        How questions that some models were not asked are treated; None if all models have the same rows.
    answers : dict of str to list of ModelAnswers
        By rule, the number of questions and answers of each model; empty for forecasts of the same rows.
    gap_bounds : dict of str to list of GapBounds
        By rule, bounds of each difference that allow for ungraded answers; empty if all are graded.
    peers : dict of str to list of Model
        By rule, the loss of each model minus the mean loss of the others on the same questions; empty unless
        models answered different questions.
    baselines : dict of str to list of Model
        By rule, the loss of each model minus that of a uniform forecast, on the questions that it answered;
        empty for grades, and unless models answered different questions.
    tasks : dict of str to Comparison
        The comparison within each task, with Holm's correction over all tasks; empty without tasks.
    unsettled : list of Unsettled
        Differences of grades that are significant, or have their sign, only if ungraded answers count as
        wrong, or only if they are left out.

    Examples
    --------
    >>> import verax as vx
    >>> y = [0, 1, 0, 1]
    >>> found = vx.compare(y, {"good": [0.2, 0.8, 0.3, 0.9], "flat": [0.5] * 4}, rule="brier")
    >>> found.best(), round(found.difference("good", "flat").difference, 3)
    ('good', -0.41)
    """

    models: dict[str, list[Model]]
    differences: dict[str, list[Difference]]
    traits: dict[str, Traits]
    n_rows: int
    n_groups: GroupCount | None
    method: str
    confidence: float
    reference: str | None
    notes: tuple[str, ...] = ()
    claims: Hidden[Claims | None] = None
    margin: float | None = None
    missing: Maybe[str | None] = None
    answers: Maybe[dict[str, list[ModelAnswers]]] = field(default_factory=dict)
    gap_bounds: Maybe[dict[str, list[GapBounds]]] = field(default_factory=dict)
    peers: Maybe[dict[str, list[Model]]] = field(default_factory=dict)
    tasks: Maybe[dict[str, Comparison]] = field(default_factory=dict)
    baselines: Maybe[dict[str, list[Model]]] = field(default_factory=dict)
    unsettled: Maybe[list[Unsettled]] = field(default_factory=list)

    _notes_apart = True

    _facts = ("disagreements", "undecided", "margin_tests", "grades", "grade_differences")

    def _as_dict(self) -> dict[str, Any]:
        facts = super()._as_dict()
        absent = _GRADED if self.missing is None else ()
        return {name: fact for name, fact in facts.items() if name not in absent}

    @property
    def grades(self) -> Annotated[dict[str, Interval], Mark.MAYBE, Mark.ENDS]:
        """The interval of the mean grade of each model; empty if there are no grades."""
        return {
            m.name: m.interval
            for rule, models in self.models.items()
            if grade_named(rule) is not None
            for m in models
        }

    @property
    def grade_differences(self) -> Maybe[list[Difference]]:
        """The mean grade of `a` minus that of `b`, for all pairs: positive if `a` is better.

        Empty if there are no grades.
        """
        return next((gaps for rule, gaps in self.differences.items() if grade_named(rule) is not None), [])

    @property
    def margin_tests(self) -> list[MarginTest]:
        """For both directions of each pair, whether a model is worse by less than the margin."""
        if self.margin is None:
            return []
        return margin_tests(self._of(self.differences, None), self.margin, self.confidence)

    @property
    def undecided(self) -> list[str]:
        """What would settle the best two models under the first rule, in words."""
        findings = self._findings()
        open_ = [finding for finding in findings if finding.claim in (Claim.LEAD_OPEN, Claim.EQUIVALENT)]
        equal = [
            finding.text for finding in open_ if finding.claim is Claim.EQUIVALENT and self.margin is None
        ]
        steps = [finding.step.text for finding in open_ if finding.step is not None]
        return equal or [f"{text[0].upper()}{text[1:]}." for text in steps]

    @property
    def disagreements(self) -> list[str]:
        """Pairs of models that rules order differently, and why, in words."""
        return [finding.text for finding in self._findings() if finding.claim is Claim.RULES_DISAGREE]

    def _findings(self) -> list[Finding]:
        return findings_of(self)

    def _tested_together(self) -> str:
        return TESTED

    def _ranges(self) -> dict[str, tuple[float, float, float]]:
        known = {rule: ends for rule in self.models if (ends := _ends(rule)) is not None}
        return {
            f"{rule} of {m.name}": (m.mean, *ends) for rule, ends in known.items() for m in self.models[rule]
        }

    def better(self, rule: str) -> str:
        return super().better(rule) if grade_named(rule) is None else "mean grade, higher is better"

    def _tables(self) -> list[Table]:
        return tables_of(self)

    def _heading(self) -> str:
        return f"verax comparison: {len(self.names)} models, {self._rows_in_words}; {self.method}"

    @property
    def repeated(self) -> bool:
        """Whether rows are questions that were asked several times, each with the mean of its answers."""
        answers = next(iter(self.answers.values()), [])
        return any(model.asked > model.questions for model in answers)

    @property
    def _rows_in_words(self) -> str:
        """The number of rows and groups; questions that were repeated are their own groups."""
        if self.repeated and self.n_groups == self.n_rows:
            return f"{self.n_rows:,} questions that were repeated"
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        return f"{self.n_rows:,} {'questions' if self.repeated else 'rows'}{groups}"

    def _notes(self) -> list[str]:
        return [*self.notes, *self.remarks]


def _ends(rule: str) -> tuple[float, float] | None:
    """The lowest and highest mean of a rule or grade, if it is known without the classes."""
    scale = grade_named(rule)
    return constant_bounds(rule) if scale is None else (scale.low, scale.high)
