"""The findings of a comparison: the best model, whether rules agree, and what would settle the rest."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verax.analyses.comparison.reasons import disagreements
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.tables import grade_named, shown_p
from verax.inference.findings import Claim, Finding, NextStep, in_brackets, listed
from verax.inference.intervals import Interval
from verax.inference.sizes import Goal, MeanSpread
from verax.inputs.groups import GroupCount, counts_by_kind

TESTED = "All pairs of models are tested together under each rule (Holm's correction)."
# The power to plan for.
POWER = 0.9
# A smaller difference is rounding.
_NOTHING = 1e-12
# Smaller pilots are too uncertain to plan from.
_LEAST_FREEDOM = 19
# If more than this multiple of the rows is needed, the difference does not matter in practice.
_FAR = 100
# Models whose mean losses differ by a smaller share are equal for all purposes.
PRACTICAL = 1e-4
# How many differences a sentence tells that depend on ungraded answers.
_SHOWN = 3
_SHARE = f"{100 * PRACTICAL:g}% of the mean loss"

# A `Comparison` or a `FoldComparison`, which take their findings from here.
Compared = Any


def findings_of(comparison: Compared) -> list[Finding]:
    """The findings of a comparison: the first rule, then margins, then rules that disagree."""
    rule = next(iter(comparison.models))
    graded = grade_named(rule) is not None
    ranking = Standings(
        comparison.models[rule],
        lambda a, b: comparison.difference(a, b, rule),
        "grade" if graded else rule,
        comparison.confidence,
        higher=graded,
    )
    leads = ranking.findings(lambda a, b: _deciding(comparison, rule, comparison.difference(a, b, rule)))
    leads = [*(_unsettled(finding, comparison) for finding in leads)]
    return [*leads, *(_equal(comparison, rule) or _margins(comparison)), *_disagreements(comparison)]


def _unsettled(finding: Finding, comparison: Compared) -> Finding:
    """The finding; a lead that depends on what ungraded answers count as is open."""
    # Other comparisons than those by question have no ungraded answers.
    known = [] if comparison.missing is None else comparison.unsettled
    pairs = [one for one in known if {one.a, one.b} & set(finding.about[:1])]
    if not pairs or finding.claim not in (Claim.BEST, Claim.LEAD_OPEN):
        return finding
    said = " ".join(one.sentence for one in pairs[:_SHOWN])
    if finding.claim is Claim.LEAD_OPEN:
        return replace(finding, text=f"{finding.text} {said}")
    ahead = finding.text.replace(" is significantly better than ", " is ahead of ", 1)
    return replace(finding, claim=Claim.LEAD_OPEN, text=f"{ahead} {said}", step=None)


@dataclass(frozen=True)
class Standings:
    """Models in order under one rule, with the difference of each pair.

    Attributes
    ----------
    models : sequence of Model
        The models, the best first.
    difference : callable
        The difference of two models by name.
    score : str
        The score that is averaged.
    confidence : float
        Confidence level.
    higher : bool
        Whether higher means are better.
    noun : str
        What is compared.
    where : str
        What the means are over, such as " over 5 folds".
    averaged : bool
        Whether the values are means of the score.
    """

    models: Sequence[Model]
    difference: Callable[[str, str], Difference]
    score: str
    confidence: float
    higher: bool = False
    noun: str = "model"
    where: str = ""
    averaged: bool = True

    @classmethod
    def of_values(
        cls,
        values: Mapping[str, tuple[float, Interval]],
        difference: Callable[[str, str], Any],
        score: str,
        **how: Any,
    ) -> Standings:
        """Models in order of a value other than a mean loss, such as an AUC: higher is better."""
        best_first = sorted(values.items(), key=lambda item: -item[1][0])
        models = [
            Model(name, value, interval, rank, "", math.nan, Interval.undefined(""), 0, value)
            for rank, (name, (value, interval)) in enumerate(best_first, 1)
        ]
        return cls(
            models, difference, score, best_first[0][1][1].confidence, higher=True, averaged=False, **how
        )

    @property
    def _called(self) -> str:
        return f"mean {self.score}" if self.averaged else self.score

    def findings(self, decide: Callable[[str, str], NextStep | None]) -> list[Finding]:
        """The best model, or the open question; `decide` gives the step that would settle a pair."""
        infinite = [model for model in self.models if model.infinite_rows]
        finite = [model for model in self.models if not model.infinite_rows]
        findings = [self._infinite(infinite)] if infinite else []
        if len(finite) == 1:
            return [*findings, self._alone(finite[0])]
        return [*findings, self._lead(finite, decide)] if finite else findings

    def _value(self, model: Model) -> str:
        return f"{self._called} {model.mean:.4g}{in_brackets(model.interval, 4)}{self.where}"

    def _ahead(self, best: Model, other: Model) -> Difference:
        """The difference, positive if the first is better."""
        a, b = (best.name, other.name) if self.higher else (other.name, best.name)
        return self.difference(a, b)

    def _alone(self, model: Model) -> Finding:
        numbers = {"mean": (model.mean, model.interval)}
        return Finding(Claim.SCORE, f"{model.name} has {self._value(model)}.", (model.name,), numbers)

    def _infinite(self, models: Sequence[Model]) -> Finding:
        """Models with an infinite mean: no interval, no test, and a rank that rests on a few rows."""
        rows = [f"{m.name} ({m.infinite_rows:,} row{'s' * (m.infinite_rows > 1)})" for m in models]
        which = "this row" if sum(m.infinite_rows for m in models) == 1 else "these rows"
        others = [f"{m.finite_mean:.4g} for {m.name}" for m in models if math.isfinite(m.finite_mean)]
        rest = f" Over the other rows, the mean is {listed(others)}." if others else ""
        step = NextStep(
            "look at the rows with an infinite loss, or compare by a bounded rule such as brier",
            f"vx.worst(y, p, rule={self.score!r})",
        )
        return Finding(
            Claim.INFINITE,
            f"The mean {self.score} is infinite for {listed(rows)}: the ranking rests on {which} alone."
            f"{rest}",
            tuple(m.name for m in models),
            {m.name: m.finite_mean for m in models},
            step=step,
        )

    def _lead(self, models: Sequence[Model], decide: Callable[[str, str], NextStep | None]) -> Finding:
        best, second, *_ = models
        gaps = {other.name: self._ahead(best, other) for other in models[1:]}
        near, level = gaps[second.name], round(1 - self.confidence, 12)
        p = [gap.p_adjusted for gap in gaps.values()]
        # An undefined p-value supports no claim.
        open_ = [name for name, gap in gaps.items() if not gap.p_adjusted <= level]
        numbers = {"mean": (best.mean, best.interval), "lead": (near.difference, near.interval)}
        facts: dict[str, Any] = {"level": level, "caution": near.interval.caution, "numbers": numbers}
        facts["p_value"] = math.nan if any(map(math.isnan, p)) else max(p)
        lead = f"{near.difference:.3g} ahead of {second.name}{in_brackets(near.interval)}"
        if not open_:
            others = second.name if len(gaps) == 1 else f"the {len(gaps)} other {self.noun}s"
            text = f"{best.name} is significantly better than {others}: {self._value(best)}, {lead}."
            return Finding(Claim.BEST, text, (best.name,), **facts)
        alone = ""
        if (
            near.p_adjusted > level
            and near.interval.defined
            and not near.interval[0] <= 0 <= near.interval[1]
        ):
            p_of_all = shown_p(near.p_adjusted)
            alone = f" This interval is for the pair alone; corrected for all pairs, p is {p_of_all}."
        about = (best.name, *open_)
        if len(gaps) == 1:
            return Finding(
                Claim.LEAD_OPEN,
                f"{self._of_two(best, second, near)}{alone}",
                about,
                **facts,
                step=decide(best.name, second.name),
            )
        return Finding(
            Claim.LEAD_OPEN,
            f"No {self.noun} is significantly better than all others. {best.name} ranks first, with "
            f"{self._value(best)}, but is not significantly different from {listed(open_)}. "
            f"{self._distance(best, second, near, lead)}{alone}",
            about,
            **facts,
            step=decide(best.name, open_[0]),
        )

    def _of_two(self, best: Model, other: Model, gap: Difference) -> str:
        means = f"{self._called} {best.mean:.4g} and {other.mean:.4g}{self.where}"
        if math.isnan(gap.difference):
            return f"{best.name} and {other.name} cannot be compared, as they share no question: {means}."
        if math.isnan(gap.p_adjusted):
            return f"{best.name} and {other.name} cannot be tested: {means}, difference {gap.difference:.3g}."
        return (
            f"{best.name} and {other.name} are not significantly different: {means}, {best.name} ahead by "
            f"{gap.difference:z.3g}{in_brackets(gap.interval)}."
        )

    def _distance(self, best: Model, other: Model, gap: Difference, lead: str) -> str:
        if math.isnan(gap.difference):
            return f"{best.name} and {other.name} share no question."
        return f"{best.name} is {lead}."


def rows_to_decide(
    gap: Difference, n_rows: int, n_groups: GroupCount | None, confidence: float
) -> float | None:
    """The total number of rows that would show a difference of the observed size; None if unknown."""
    if not (gap.standard_error > 0 and abs(gap.difference) > _NOTHING and gap.freedom >= _LEAST_FREEDOM):
        return None
    units = n_rows if n_groups is None else min(counts_by_kind(n_groups))
    goal = Goal(abs(gap.difference), 1 - confidence, POWER)
    return goal.units(MeanSpread(gap.standard_error, gap.freedom, units)) * n_rows / units


def _deciding(comparison: Compared, rule: str, gap: Difference) -> NextStep | None:
    """The step that would settle a pair without a significant difference; None if too little is known."""
    # Each pair has its own rows, so their number is not that of the comparison.
    if comparison.missing == "pairwise" or not gap.p_adjusted > 1 - comparison.confidence:
        return None
    if _NOTHING < abs(gap.difference) < _practical_size(comparison, rule):
        # A separate finding reports models that are shown to be equal.
        seen = "" if _is_equal(comparison, rule, gap) else f": the gap seen is below {_SHARE}"
        return NextStep(f"keep the simpler of {gap.a} and {gap.b}{seen}")
    rows = rows_to_decide(gap, comparison.n_rows, comparison.n_groups, comparison.confidence)
    if rows is None or rows <= comparison.n_rows:
        return None
    keep = f"keep the simpler of {gap.a} and {gap.b}"
    if rows > _FAR * comparison.n_rows:
        return NextStep(f"{keep}: a gap of this size would take more than {_FAR} times the rows to show")
    if comparison.margin is not None and abs(gap.difference) < comparison.margin:
        return NextStep(f"{keep}: the gap is below the margin of {comparison.margin:g}")
    more = rows - comparison.n_rows
    digits = 10 ** max(0, math.floor(math.log10(more)) - 1)
    more_rows = f"{math.ceil(more / digits) * digits:,}"
    # Grades and questions are planned for by their comparison, which knows their rows.
    pilot = "y, p" if comparison.missing is None else "comparison"
    pair = f"models=({gap.a!r}, {gap.b!r}), rule={rule!r}"
    command = f"plan {{source}} --models {shlex.quote(f'{gap.a},{gap.b}')}"
    if comparison.missing is None:
        command = f"verax {command} --rule {shlex.quote(rule)}"
    else:
        # `plan` lacks the options for forecasts that change over time.
        command = "" if grade_named(rule) is None else f"verax evals {command}"
    unit = "questions" if comparison.missing is not None and comparison.repeated else "rows"
    return NextStep(
        f"collect about {more_rows} more {unit}, which would show a gap of this size with {100 * POWER:g}% "
        "power",
        f"vx.plan({pilot}, {pair})",
        command,
    )


def _practical_size(comparison: Compared, rule: str) -> float:
    mean, scale = comparison.models[rule][0].mean, grade_named(rule)
    return float(PRACTICAL * (mean if scale is None else scale.high - mean))


def _is_equal(comparison: Compared, rule: str, gap: Difference) -> bool:
    size = _practical_size(comparison, rule)
    differ = abs(gap.difference) > _NOTHING and gap.p_adjusted > 1 - comparison.confidence
    return differ and gap.interval.defined and max(-gap.interval.low, gap.interval.high) < size


def _equal(comparison: Compared, rule: str) -> list[Finding]:
    """The best two models, if the whole interval of their difference is below the practical size."""
    models = comparison.models[rule]
    if len(models) < 2 or comparison.missing == "pairwise":
        return []
    gap = comparison.difference(models[0].name, models[1].name, rule)
    if not _is_equal(comparison, rule, gap):
        return []
    text = f"{gap.a} and {gap.b} are equal for all purposes: they differ by less than {_SHARE}."
    numbers: dict[str, Any] = {
        "difference": (gap.difference, gap.interval),
        "size": _practical_size(comparison, rule),
    }
    return [
        Finding(Claim.EQUIVALENT, text, (gap.a, gap.b), numbers, level=round(1 - comparison.confidence, 12))
    ]


def _margins(comparison: Compared) -> list[Finding]:
    """Pairs in which a model is shown to be worse by less than the margin."""
    level = round(1 - comparison.confidence, 12)
    shown = {(t.model, t.against): t for t in comparison.margin_tests if t.p_adjusted <= level}
    findings = []
    for (model, against), test in shown.items():
        other = shown.get((against, model))
        if other is not None and model > against:
            continue
        numbers = {"margin": comparison.margin, "upper_bound": test.bound}
        facts: dict[str, Any] = {"about": (model, against), "numbers": numbers, "level": level}
        if other is None:
            text = f"{model} is worse than {against} by less than {comparison.margin:g}"
            claim, p = Claim.NOT_INFERIOR, test.p_adjusted
        else:
            text = f"{model} and {against} differ by less than {comparison.margin:g}"
            claim, p = Claim.EQUIVALENT, max(test.p_adjusted, other.p_adjusted)
        findings.append(Finding(claim, f"{text} (p {_p(p)}).", p_value=p, **facts))
    return findings


def _p(value: float) -> str:
    shown = shown_p(value)
    return shown if shown.startswith("<") else f"= {shown}"


def _disagreements(comparison: Compared) -> list[Finding]:
    """Pairs of models that rules order differently; both orders are significant."""
    level = round(1 - comparison.confidence, 12)
    return [
        Finding(Claim.RULES_DISAGREE, text, pair, level=level, p_value=p)
        for pair, p, text in disagreements(
            comparison.differences, comparison.traits, comparison.claims, level
        )
    ]
