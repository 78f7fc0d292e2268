"""Everything a report says, as data: what there is to say about each model, and about all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verax.analyses.calibration.claims import ClassBias, ListClaim, Overconfidence
from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.curves import ListReliability
from verax.analyses.calibration.slope_result import CalibrationLine, CalibrationSlopes
from verax.analyses.calibration.sources import ANY, WHOLE
from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import Worst
from verax.inputs.arrays import Floats
from verax.report.breakdowns import Breakdowns
from verax.report.checks import Check
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel
from verax.scores.combinators import Padded
from verax.scores.registry import name_of


@dataclass(frozen=True)
class ClassLoss:
    """The mean loss of the rows of one class by each rule, with intervals."""

    position: int
    n_rows: int
    means: dict[str, float]
    intervals: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Decisions:
    """What deciding costs: by the most likely class, and by the smallest expected cost."""

    likeliest: float
    cheapest: float


@dataclass(frozen=True, eq=False)
class Distributions:
    """What only full distributions tell.

    Attributes
    ----------
    slopes : CalibrationSlopes or None
        None where fitting them takes too long, with many rows and classes.
    class_biases : list
        Which events are too high or too low.
    """

    overconfidence: Overconfidence
    slopes: CalibrationSlopes | None
    class_biases: list[ClassBias]
    by_class: list[ClassLoss]
    decisions: Decisions | None

    @property
    def slope(self) -> CalibrationLine | None:
        """The event whose slope and intercept are the least likely of calibrated forecasts."""
        farthest = None if self.slopes is None else self.slopes.farthest
        return None if farthest is None else farthest[0]

    @property
    def slope_p(self) -> float | None:
        """Its p-value, corrected for having looked at all events."""
        farthest = None if self.slopes is None else self.slopes.farthest
        return None if farthest is None else farthest[1]

    def to_dict(self, problem: Problem) -> dict[str, Any]:
        """Everything as plain Python values."""
        return {
            "sureness": self.overconfidence.to_dict(),
            "slopes": None if self.slopes is None else self.slopes.to_dict(stored=False),
            "by_class": [{"class": problem.names[line.position], **vars(line)} for line in self.by_class],
            "decisions": None if self.decisions is None else vars(self.decisions),
        }


@dataclass(frozen=True, eq=False)
class ListFindings:
    """What only top lists tell: the claims of the first places and of the whole list."""

    curves: ListReliability
    claims: tuple[ListClaim, ...]

    @property
    def whole(self) -> ListClaim:
        """The sum of the list against coverage."""
        return self.claims[-1]

    @property
    def first(self) -> ListClaim | None:
        """The claim of the first place; None where all lists are empty."""
        return self.claims[0] if self.claims[0].name != WHOLE else None

    def so_far(self) -> list[tuple[int, float, float]]:
        """For the first places the share of outcomes among them, and the share claimed."""
        sums, claimed, happened = [], 0.0, 0.0
        places = [claim for claim in self.claims if claim.name not in (ANY, WHOLE)]
        for i, claim in enumerate(places, start=1):
            claimed, happened = claimed + claim.share * claim.claimed, happened + claim.share * claim.happened
            sums.append((i, happened, claimed))
        return sums

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        return {
            "claims": [claim.to_dict() for claim in self.claims],
            "reliability": self.curves.to_dict(stored=False),
        }


@dataclass(frozen=True, eq=False)
class Findings:
    """What there is to say about one model.

    Attributes
    ----------
    dense : Distributions or None
        What only full distributions tell.
    places : ListFindings or None
        What only top lists tell.
    """

    name: str
    card: Scorecard
    decomposition: Decomposition
    worst: Worst
    panels: list[ReliabilityPanel]
    dense: Distributions | None
    places: ListFindings | None

    def score(self, rule: str) -> CardLine:
        """The line of the card with a rule's name; of lists, with that of the rule that is padded."""
        return next(line for line in self.card.scores.values() if inner_name(line) == rule)


def inner_name(line: CardLine) -> str:
    """The name of the rule of a line; of a padded rule, of what is padded."""
    if line.rule is None:
        return line.name
    return name_of(line.rule.rule) if isinstance(line.rule, Padded) else line.name


@dataclass(frozen=True, eq=False)
class Contents:
    """What there is to say about all models.

    Attributes
    ----------
    comparison : Comparison
        Of the models, with their skill against class frequencies, or against empty lists; also of a single
        model.
    parts : Breakdowns
        The subgroups.
    replicates : int
        The number of draws behind calibration tests.
    class_rows : array of shape (K,) or None
        The number of rows of each class; None for top lists.
    precision : str
        What comes from bins, and how far it can be off; empty where everything is exact.
    answers : Comparison or None
        The classes that several models list first, by the zero-one loss; None for full distributions, which
        are compared by it among others.
    found : Mapping[str, Any]
        The results of the sections of wings that have something to say, by their keys.
    """

    problem: Problem
    primary: str
    findings: list[Findings]
    comparison: Comparison
    parts: Breakdowns
    checks: list[Check]
    replicates: int
    confidence: float
    seed: int
    class_rows: Floats | None = None
    precision: str = ""
    answers: Comparison | None = None
    found: Mapping[str, Any] = field(default_factory=dict)

    @property
    def subgroups(self) -> dict[str, Subgroups]:
        """The subgroups that are shown, by the name of the breakdown."""
        return self.parts.shown

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """The names of the breakdowns, in the order of the page."""
        return tuple(dict.fromkeys([*self.parts.left_out, *self.parts.shown, *self.parts.too_many]))

    @property
    def best(self) -> Findings:
        """The model with the smallest mean of the primary rule."""
        name = self.comparison.best(self.primary)
        return next(f for f in self.findings if f.name == name)

    def interval(self, model: str, rule: str) -> tuple[float, float]:
        """The interval of one model's mean: the card's, wherever the page shows it."""
        return next(f for f in self.findings if f.name == model).score(rule).interval

    def skill(self, model: str, rule: str) -> tuple[float, tuple[float, float]]:
        """One minus the mean loss over that of the reference, with its interval."""
        standing = next(m for m in self.comparison.models[rule] if m.name == model)
        return standing.skill, standing.skill_interval

    def to_dict(self, of_models: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Everything as plain Python values; `of_models` is what sections of wings have on each model."""
        problem = self.problem
        lists = problem.lists
        return {
            "n_rows": problem.n_rows,
            "n_classes": problem.n_classes,
            **({} if lists else {"classes": list(problem.names), "ordered": problem.ordered}),
            "primary": self.primary,
            "confidence": self.confidence,
            "seed": self.seed,
            "replicates": self.replicates,
            "models": {part.name: {**self._model(part), **of_models[part.name]} for part in self.findings},
            "subgroups": {name: part.to_dict(stored=False) for name, part in self.subgroups.items()},
            "left_out": {name: [list(pair) for pair in left] for name, left in self.parts.left_out.items()},
            "comparison": self.comparison.to_dict(stored=False),
            "checks": [vars(check) for check in self.checks],
            "precision": self.precision,
            "skipped": None if problem.skipped is None else problem.skipped.to_dict(),
        }

    def _model(self, model: Findings) -> dict[str, Any]:
        skills = {}
        for rule in self.comparison.models:
            skill, interval = self.skill(model.name, rule)
            skills[rule] = {
                "skill": skill,
                "interval": list(interval),
                "reference": self.comparison.reference,
            }
        details = model.places.to_dict() if model.places is not None else {}
        if model.dense is not None:
            details = model.dense.to_dict(self.problem)
            details["reliability"] = [panel.to_dict() for panel in model.panels]
        return {
            "card": model.card.with_skipped(self.problem.skipped).to_dict(stored=False),
            "skill": skills,
            "decomposition": model.decomposition.to_dict(stored=False),
            "worst": model.worst.to_dict(stored=False),
            **details,
        }
