"""Everything on the page about top lists, computed by the library's own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verax.analyses.calibration.decomposition import decompose
from verax.analyses.calibration.lists import ListReliability
from verax.analyses.calibration.mass import ListDecomposition
from verax.analyses.calibration.places import ANY, WHOLE, Claim, ListEvents
from verax.analyses.calibration.reliability import reliability
from verax.analyses.cards.evaluation import evaluate
from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.listcard import ListCard
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.length_result import LengthComparison
from verax.analyses.comparison.lengths import compare_lengths
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import Worst, worst
from verax.report.checks import Check
from verax.report.lists.checks import look_over
from verax.report.lists.problem import ListProblem
from verax.scores.combinators import Padded, padded
from verax.scores.registry import name_of

WORST = 8
# So many places have a reliability curve, and so many a line in the table of coverage.
PANELS, PLACES = 5, 20
# Draws behind bands and tests of curves, and behind tests of the decomposition.
RESAMPLES, TESTS = 200, 99
# Up to so many entries of lists there are bands, and tests of the decomposition.
_BANDS, _TESTED = 2**21, 2**19


@dataclass(frozen=True, eq=False)
class ListFindings:
    """What there is to say about the lists of one model."""

    name: str
    card: ListCard
    reliability: ListReliability
    claims: tuple[Claim, ...]
    decomposition: ListDecomposition
    worst: Worst
    lengths: LengthComparison | None

    def score(self, rule: str) -> CardLine:
        """The line of the card with a rule's name."""
        return next(line for line in self.card.scores.values() if inner_name(line) == rule)

    @property
    def whole(self) -> Claim:
        """The sum of the list against coverage."""
        return self.claims[-1]

    def so_far(self) -> list[tuple[int, float, float]]:
        """For the first places the share of outcomes among them, and the share claimed."""
        found, claimed, happened = [], 0.0, 0.0
        places = [claim for claim in self.claims if claim.name not in (ANY, WHOLE)]
        for i, claim in enumerate(places, start=1):
            claimed, happened = claimed + claim.share * claim.claimed, happened + claim.share * claim.happened
            found.append((i, happened, claimed))
        return found

    @property
    def first(self) -> Claim | None:
        """The claim of the first place; None where all lists are empty."""
        return self.claims[0] if self.card.longest else None


@dataclass(frozen=True, eq=False)
class ListContents:
    """What there is to say about all of them.

    Attributes
    ----------
    subgroups : mapping
        The subgroups that the caller has computed, by the name of the breakdown.
    by : tuple of str
        The breakdowns that were asked for and are not on the page.
    """

    problem: ListProblem
    primary: str
    findings: list[ListFindings]
    comparison: Comparison
    checks: list[Check]
    confidence: float
    seed: int
    precision: str = ""
    subgroups: Mapping[str, Subgroups] = field(default_factory=dict)
    by: tuple[str, ...] = ()

    @property
    def best(self) -> ListFindings:
        """The model with the smallest mean of the primary rule."""
        name = self.comparison.best(self.primary)
        return next(f for f in self.findings if f.name == name)

    def interval(self, model: str, rule: str) -> Sequence[float]:
        """The interval of one model's mean: the card's, wherever the page shows it."""
        return next(f for f in self.findings if f.name == model).score(rule).interval

    def skill(self, model: str, rule: str) -> tuple[float, tuple[float, float]]:
        """One minus the mean loss over that of saying nothing, with its interval."""
        found = next(m for m in self.comparison.models[rule] if m.name == model)
        return found.skill, found.skill_interval


def inner_name(line: CardLine) -> str:
    """The name of the rule of a line, of what is padded."""
    assert line.rule is not None
    return name_of(line.rule.rule if isinstance(line.rule, Padded) else line.rule)


def compute(problem: ListProblem, *, confidence: float, seed: int) -> ListContents:
    """All that is on the page."""
    plan: dict[str, Any] = {"confidence": confidence, "seed": seed}
    findings = [_findings(problem, name, plan) for name in problem.models]
    comparison = compare(
        problem.y,
        problem.models,
        rule=list(problem.rules),
        reference="uniform",
        weights_are=problem.weights_are,
        time_ordered=problem.time_ordered,
        **problem.shared,
        **plan,
    )
    checks = look_over(problem, {found.name: found.card for found in findings})
    return ListContents(problem, name_of(problem.primary), findings, comparison, checks, **plan)


def _findings(problem: ListProblem, name: str, plan: dict[str, Any]) -> ListFindings:
    lists, y = problem.models[name], problem.y
    size = lists.confidences.size
    fined = [padded(rule) for rule in problem.rules]
    card = evaluate(y, lists, rules=fined, weights_are=problem.weights_are, **problem.shared, **plan)
    curves = reliability(
        y,
        lists,
        places=PANELS,
        resamples=RESAMPLES if size <= _BANDS else 0,
        **problem.shared,
        **plan,
    )
    parts = decompose(
        y, lists, rule="brier", bootstrap=TESTS if size <= _TESTED else 0, **problem.shared, **plan
    )
    found = worst(y, lists, rule=problem.primary, n=min(WORST, problem.n_rows), ids=problem.ids)
    assert isinstance(card, ListCard)
    assert isinstance(curves, ListReliability)
    assert isinstance(parts, ListDecomposition)
    return ListFindings(
        name=name,
        card=card,
        reliability=curves,
        claims=ListEvents.of(problem.rows(name), "the report").claims(PLACES),
        decomposition=parts,
        worst=found,
        lengths=_lengths(problem, name, plan["confidence"]),
    )


def _lengths(problem: ListProblem, name: str, confidence: float) -> LengthComparison | None:
    """What shorter lists would lose against the full distribution, or against the lists as they are."""
    rules = list(problem.rules)
    full = problem.full.get(name)
    if full is not None:
        return compare_lengths(
            problem.y, full, rule=rules, confidence=confidence, **problem.shared, **problem.form
        )
    if int(problem.models[name].lengths.max(initial=0)) < 2:
        return None
    return compare_lengths(
        problem.y, problem.models[name], rule=rules, confidence=confidence, **problem.shared
    )


def to_dict(contents: ListContents) -> dict[str, Any]:
    """Everything on the page as plain Python values."""
    return {
        "n_rows": contents.problem.n_rows,
        "n_classes": contents.problem.n_classes,
        "primary": contents.primary,
        "confidence": contents.confidence,
        "seed": contents.seed,
        "models": {
            found.name: {
                "card": found.card.to_dict(stored=False),
                "claims": [claim.to_dict() for claim in found.claims],
                "reliability": found.reliability.to_dict(stored=False),
                "decomposition": found.decomposition.to_dict(stored=False),
                "worst": found.worst.to_dict(stored=False),
                "lengths": None if found.lengths is None else found.lengths.to_dict(stored=False),
            }
            for found in contents.findings
        },
        "comparison": contents.comparison.to_dict(stored=False),
        "checks": [vars(check) for check in contents.checks],
        "subgroups": {name: found.to_dict(stored=False) for name, found in contents.subgroups.items()},
        **({"precision": contents.precision} if contents.precision else {}),
    }
