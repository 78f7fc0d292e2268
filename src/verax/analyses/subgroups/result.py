"""Subgroups, each with its card and its decomposition, as data and as tables."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Self

from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.family import FamilyColumn, level_of_subgroups
from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.scores import FEWEST
from verax.analyses.subgroups.sentences import NAMED, called, subgroup_findings, untested_sentence
from verax.analyses.subgroups.together import Pooled
from verax.analyses.words import clean
from verax.common.checks import looked_up
from verax.common.faces import Key
from verax.display.tables import NO_HEADING, Column, Table, Tabled, value_with_interval
from verax.inference.findings import Claim, Finding, VerdictOnceCalled, WithVerdict, listed
from verax.inputs.skipping import MaySkip
from verax.scores.combinators import padded
from verax.scores.registry import name_of, stored_rule

_TESTED = (
    "Subgroups are tested for calibration each and together, with half of the level for either, and pairs of "
    "models in all of them (Holm's correction)."
)
WITHIN_GROUPS = "Each subgroup is one group: rows within it are assumed independent."
TIME_ORDERED = (
    "Models are compared on the rows of a subgroup in order of time; scores and calibration tests assume "
    "independent rows."
)


class Subgroups(WithVerdict, Tabled, MaySkip, Mapping[Any, Any]):
    """Subgroups by label; (label, model) where there are several models, whose comparisons are beside.

    Parameters
    ----------
    lines : list of Subgroup
        A line for each subgroup and model.
    comparisons : dict of label to Comparison
        The comparison of the models in each subgroup, with Holm's correction over the pairs of all subgroups;
        empty for one model.
    rule : str
        The rule that was decomposed.
    by : str
        The name of what makes the subgroups.
    within_groups : bool, default False
        Whether the subgroups are the groups themselves.
    time_ordered : bool, default False
        Whether the rows are in order of time.
    among : int, optional
        How many subgroups were tested together, where these are some of them.
    level : float, optional
        The level of the tests; by default a fifth of one minus the confidence level.
    pooled : mapping of str to Pooled, optional
        What the subgroups show together, by model.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random(200)
    >>> site = np.repeat(["north", "south"], 100)
    >>> found = vx.subgroups(rng.random(200) < q, q, by=site)
    >>> list(found), len(found.flagged)
    (['north', 'south'], 0)
    """

    lines: Annotated[list[Subgroup], Key("subgroups")]
    comparisons: dict[Any, Comparison]
    rule: str
    by: str
    within_groups: bool
    time_ordered: bool
    among: int
    level: float
    pooled: Mapping[str, Pooled]

    _facts = (
        *("by", "rule", "level", "untested", "within_groups", "time_ordered", "lines", "together"),
        "comparisons",
    )

    def __init__(
        self,
        lines: list[Subgroup],
        comparisons: dict[Any, Comparison],
        rule: str,
        by: str,
        *,
        within_groups: bool = False,
        time_ordered: bool = False,
        among: int | None = None,
        level: float | None = None,
        pooled: Mapping[str, Pooled] | None = None,
    ) -> None:
        self.lines, self.comparisons, self.rule, self.by = lines, comparisons, rule, by
        self.within_groups, self.time_ordered = within_groups, time_ordered
        self.among = len({line.label for line in lines}) if among is None else among
        confidence = self._score(lines[0]).interval.confidence
        self.level = level_of_subgroups(confidence) if level is None else level
        self.pooled = dict(pooled or {})
        self.several: bool = len({line.model for line in lines}) > 1

    def changed(self, **values: Any) -> Self:
        """The same with other values of some of what it was made of.

        Parameters
        ----------
        **values
            The values.

        Returns
        -------
        Subgroups
            A new result.
        """
        found = copy.copy(self)
        vars(found).update(values)
        return found

    def tested_at(self, level: float, column: FamilyColumn) -> Self:
        """The same with p-values that are corrected for more subgroups.

        Parameters
        ----------
        level : float
            The level of the tests.
        column : Column
            The lines, in their order, and what they show together.

        Returns
        -------
        Subgroups
            A new result.
        """
        return self.changed(level=level, lines=column.lines, pooled=dict(column.pooled))

    @property
    def _by_key(self) -> dict[Any, Subgroup]:
        return {(line.label, line.model) if self.several else line.label: line for line in self.lines}

    def __getitem__(self, key: Any) -> Subgroup:
        return looked_up(self._by_key, key, "subgroup")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def flagged(self) -> list[Subgroup]:
        """The subgroups whose miscalibration stands out."""
        return [line for line in self.lines if line.stands_out]

    @property
    def untested(self) -> str:
        """Which subgroups have no p-value of calibration, and why, in a sentence; empty where all have."""
        return untested_sentence({called(self.by, line.label): line for line in self.lines if line.untested})

    @property
    def together(self) -> list[Pooled]:
        """What the subgroups show together, for each model."""
        return [*self.pooled.values()]

    @property
    def limits(self) -> str:
        """Which kinds of tests were left out in how many of the tested subgroups, in a sentence."""
        tested = [line for line in self.lines if line.p_value is not None]
        left = {
            kind: sum(p is None for p in values)
            for kind, values in (
                ("slope", [line.p_slope for line in tested]),
                ("shape", [line.p_shape for line in tested]),
            )
        }
        told = [f"{n:,} for {kind}" for kind, n in left.items() if n]
        if not told:
            return ""
        return (
            f"Tested subgroups that were not tested {' and '.join(told)} of the calibration curve: "
            f"that takes {FEWEST[1]:g} and {FEWEST[2]:g} expected rows of either outcome."
        )

    @property
    def verdict(self) -> VerdictOnceCalled:
        """The subgroups that are significantly miscalibrated, and the best model of each, as a verdict."""
        return VerdictOnceCalled(self._findings(), _TESTED)

    def _findings(self) -> list[Finding]:
        models = dict.fromkeys(line.model for line in self.lines)
        found = [finding for model in models for finding in self._of_model(model)]
        return [*found, *self._leads()]

    def _of_model(self, model: str) -> list[Finding]:
        """The claims about the subgroups of one model."""
        lines = {called(self.by, line.label): line for line in self.lines if line.model == model}
        pooled = {self.by: self.pooled[model]} if model in self.pooled else {}
        return subgroup_findings(lines, pooled, self.level, model if self.several else "The model")

    def _leads(self) -> list[Finding]:
        """The best model of each subgroup, and the subgroups without one."""
        found, undecided = [], []
        for label, comparison in self.comparisons.items():
            leader, name = comparison.leader(self.rule), clean(label, 40)
            if leader is None:
                undecided.append(name)
                continue
            others = [other for other in comparison.names if other != leader]
            p = max(comparison.difference(leader, other, self.rule).p_adjusted for other in others)
            shown = "< 0.0001" if p < 1e-4 else f"= {p:.4f}"
            text = f"{name}: {leader} is significantly best by {self.rule} (p {shown}, Holm)."
            level = round(1 - comparison.confidence, 12)
            found.append(Finding(Claim.BEST, text, (name, leader), p_value=p, level=level))
        if undecided:
            text = f"No model is significantly best by {self.rule} in {listed(undecided, NAMED)}."
            found.append(Finding(Claim.LEAD_OPEN, text, tuple(undecided)))
        return found

    def _given(self) -> dict[str, Any]:
        given = (
            "lines",
            "comparisons",
            "rule",
            "by",
            "within_groups",
            "time_ordered",
            "among",
            "level",
            "pooled",
        )
        return {name: getattr(self, name) for name in given}

    def plot(self) -> Any:
        """Draw the miscalibration of each subgroup, and which are significantly miscalibrated.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. Of more than 40 subgroups those with the largest miscalibration are drawn.
        """
        from verax.display.comparisons import subgroups_sheet
        from verax.display.marks import Ranged
        from verax.display.plots import draw

        rows = []
        for line in self.lines:
            model = f", {line.model}" if self.several else ""
            name = f"{line.label}{model} ({line.card.n_rows:,} rows)"
            parts = line.decomposition.whole
            rows.append(Ranged(name, parts.miscalibration, flagged=line.stands_out))
        return draw(subgroups_sheet(rows, self.rule))

    def _heading(self) -> str:
        return f"verax subgroups by {self.by}"

    def _tables(self) -> list[Table]:
        """One row per subgroup and model: rows, score, accuracy, components and the test of calibration."""
        two = any(line.events is not None for line in self.lines)
        columns = [
            Column("by", value=lambda _: self.by),
            Column("subgroup", self.by, lambda line: str(line.label), _label, right=False),
            Column("model", "model" if self.several else "", right=False),
            Column("n_rows", "rows", ",", lambda line: line.card.n_rows),
            Column("rule", value=lambda _: self.rule),
            Column("mean", self.rule, self._score_text, lambda line: self._score(line).mean),
            Column("low high", value=lambda line: self._score(line).interval),
            Column("accuracy", "accuracy", ".3f", lambda line: line.card.accuracy),
            Column("miscalibration", "miscalibration", ".4f", _part("miscalibration")),
            Column("discrimination", value=_part("discrimination")),
            Column("uncertainty", value=_part("uncertainty")),
            Column("observed", "O" if two else "", ",.0f", _counted("observed")),
            Column("expected", "E" if two else "", ",.1f", _counted("expected")),
            Column("observed_to_expected", "O:E" if two else "", _ratio, _counted("ratio")),
            Column("observed_to_expected_low observed_to_expected_high", value=_counted("interval")),
            Column("p_shift"),
            Column("p_slope"),
            Column("p_shape"),
            Column("p_value"),
            Column("p_adjusted", f"p (level {self.level:g})", lambda line: _or_dash(line.p_adjusted, ".3f")),
            Column("level", value=lambda _: self.level),
            Column("stands_out", NO_HEADING, lambda line: "stands out" * line.stands_out, right=False),
        ]
        return [Table(columns, self.lines)]

    def _score(self, line: Subgroup) -> CardLine:
        return score_of(line.card, self.rule)

    def _score_text(self, line: Subgroup) -> str:
        score = self._score(line)
        return value_with_interval(score.mean, score.interval, ".4f")

    def _notes(self) -> list[str]:
        notes = [WITHIN_GROUPS] if self.within_groups else []
        notes += [TIME_ORDERED] if self.time_ordered else []
        return [*notes, *filter(None, [self.limits]), *self.remarks]

    @property
    def leaders(self) -> list[str]:
        """The best model of each subgroup, a sentence each; empty for one model."""
        return [each.text for each in self._leads()]


def score_of(card: Scorecard, rule: str) -> CardLine:
    """The line of a rule on a card; on that of top lists the rule is padded."""
    return card.scores[rule] if rule in card.scores else card.scores[name_of(padded(stored_rule(rule)))]


def _label(line: Subgroup) -> Any:
    """The label of a subgroup, as Python has it."""
    return line.label.item() if hasattr(line.label, "item") else line.label


def _part(name: str) -> Callable[[Subgroup], Any]:
    """A number of the decomposition of a subgroup."""
    return lambda line: getattr(line.decomposition.whole, name)


def _counted(name: str) -> Callable[[Subgroup], Any]:
    """A number of the observed and expected events of a subgroup; NaN without them."""
    missing: Any = (math.nan, math.nan) if name == "interval" else math.nan
    return lambda line: missing if line.events is None else getattr(line.events, name)


def _ratio(line: Subgroup) -> str:
    """Observed divided by expected events, with the interval."""
    if line.events is None:
        return "-"
    return value_with_interval(line.events.ratio, line.events.interval, ".2f")


def _or_dash(value: float | None, spec: str) -> str:
    return "-" if value is None else format(value, spec)
