"""The result of a comparison of models: means, ranks and differences, as data and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from operator import itemgetter
from typing import Any, Literal

from verax.analyses.comparison.answers import GapBounds, ModelAnswers
from verax.analyses.comparison.claims import Claims
from verax.analyses.comparison.reasons import disagreements
from verax.analyses.comparison.records import Difference, MarginTest, Model, gap_numbers, margin_tests
from verax.analyses.comparison.tables import grade_named, headline_of, tables_of
from verax.analyses.comparison.traits import Traits
from verax.analyses.comparison.undecided import what_would_decide
from verax.common.checks import check_choice
from verax.display.tables import Column, FrameKind, Table, Tabled
from verax.inference.intervals import Interval, with_ends
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.skipping import MaySkip
from verax.scores.registry import constant_bounds, name_of


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Tabled, MaySkip):
    """Models compared under one or several rules.

    Attributes
    ----------
    models : dict of str to list of Model
        By rule, the mean loss, rank and interval of each model.
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
        What skill is measured against.
    notes : tuple of str
        Remarks for the reader.
    claims : Claims or None
        Which traits of the models differ beyond chance; None where that was not tested.
    margin : float or None
        By how much a model may be worse; None where that was not asked.
    missing : str or None
        How questions that some model was not asked are dealt with; None where all have the same rows.
    answers : dict of str to list of ModelAnswers
        By rule, how many questions each model was asked, and what became of them; empty for forecasts of the
        same rows.
    gap_bounds : dict of str to list of GapBounds
        By rule, what ungraded answers leave open of each difference; empty where all are graded.
    peers : dict of str to list of Model
        By rule, the loss of each model minus the mean loss of the others on the same questions; empty unless
        models answered different questions.
    baselines : dict of str to list of Model
        By rule, the loss of each model minus that of the same probability for every class, on the questions
        that it answered; empty for grades, and unless models answered different questions.
    tasks : dict of str to Comparison
        The same for each task, with Holm's correction over all tasks; empty without tasks.

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
    claims: Claims | None = None
    margin: float | None = None
    missing: str | None = None
    answers: dict[str, list[ModelAnswers]] = field(default_factory=dict)
    gap_bounds: dict[str, list[GapBounds]] = field(default_factory=dict)
    peers: dict[str, list[Model]] = field(default_factory=dict)
    tasks: dict[str, Comparison] = field(default_factory=dict)
    baselines: dict[str, list[Model]] = field(default_factory=dict)

    _notes_apart = True

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return sorted({m.name for models in self.models.values() for m in models})

    def best(self, rule: str | None = None) -> str:
        """The model with the smallest mean loss under a rule.

        Parameters
        ----------
        rule : str, optional
            The name of the rule; by default the first.

        Returns
        -------
        str
            The name of the model.
        """
        return str(self._of(self.models, rule)[0].name)

    def leader(self, rule: str | None = None) -> str | None:
        """The model that is significantly better than every other under a rule.

        Parameters
        ----------
        rule : str, optional
            The name of the rule; by default the first.

        Returns
        -------
        str or None
            The name of the model; None if there is none.
        """
        best, *others = self._of(self.models, rule)
        gaps = [self.difference(best.name, m.name, rule).p_adjusted for m in others]
        return str(best.name) if all(p <= 1 - self.confidence for p in gaps) else None

    def _of(self, by_rule: dict[str, Any], rule: str | None) -> Any:
        if rule is not None and rule not in by_rule:
            raise KeyError(f"{rule!r} is not in this comparison; it has {', '.join(by_rule)}")
        return by_rule[rule or next(iter(by_rule))]

    def difference(self, a: str, b: str, rule: str | None = None) -> Difference:
        """The difference of two models, in the direction asked for.

        Parameters
        ----------
        a : str
            The name of a model.
        b : str
            The name of another.
        rule : str, optional
            The name of the rule; by default the first.

        Returns
        -------
        Difference
            The mean loss of `a` minus that of `b`, with interval and p-value.
        """
        found: list[Difference] = self._of(self.differences, rule)
        for d in found:
            if (d.a, d.b) == (a, b):
                return d
            if (d.a, d.b) == (b, a):
                return d.turned
        raise KeyError(f"there is no pair of {a!r} and {b!r}; the models are {', '.join(self.names)}")

    @property
    def grades(self) -> dict[str, Interval]:
        """The interval of the mean grade of each model; empty where answers were not graded."""
        scale = next((rule for rule in map(grade_named, self.models) if rule is not None), None)
        if scale is None:
            return {}
        return {m.name: (-m.interval).shifted(scale.high) for m in self.models[name_of(scale)]}

    @property
    def headline(self) -> str:
        """Which model is best under the first rule, and how sure that is, in a sentence."""
        return headline_of(self)

    @property
    def margin_tests(self) -> list[MarginTest]:
        """For both directions of each pair of models, whether one is worse by less than the margin."""
        if self.margin is None:
            return []
        return margin_tests(self._of(self.differences, None), self.margin, self.confidence)

    @property
    def undecided(self) -> list[str]:
        """Under the first rule, how many more rows would tell the best two models apart, in words."""
        rule, models = next(iter(self.models.items()))
        # Pairs of models have rows of their own.
        if len(models) < 2 or self.missing == "pairwise":
            return []
        gap = self.difference(models[0].name, models[1].name, rule)
        return what_would_decide(rule, gap, self.n_rows, self.n_groups, self.confidence)

    @property
    def disagreements(self) -> list[str]:
        """Where the rules order two models differently, and why, in words."""
        return disagreements(self.differences, self.traits, self.claims, 1 - self.confidence)

    def _as_dict(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_groups": self.n_groups,
            "method": self.method,
            "confidence": self.confidence,
            "reference": self.reference,
            "models": {rule: [vars(m) for m in models] for rule, models in self.models.items()},
            "differences": {rule: [vars(d) for d in found] for rule, found in self.differences.items()},
            "traits": {name: vars(t) for name, t in self.traits.items()},
            "disagreements": self.disagreements,
            "undecided": self.undecided,
            "margin": self.margin,
            "margin_tests": [vars(test) for test in self.margin_tests],
            "notes": list(self.notes),
            **self._of_questions(),
            **self._noted(),
        }

    def _ranges(self) -> dict[str, tuple[float, float, float]]:
        known = {rule: ends for rule in self.models if (ends := constant_bounds(rule)) is not None}
        return {
            f"{rule} of {m.name}": (m.mean, *ends) for rule, ends in known.items() for m in self.models[rule]
        }

    def _of_questions(self) -> dict[str, Any]:
        """What there is to say of questions, where rows are questions."""
        if self.missing is None:
            return {}
        return {
            "missing": self.missing,
            "answers": {rule: [vars(own) for own in found] for rule, found in self.answers.items()},
            "gap_bounds": {rule: [vars(own) for own in found] for rule, found in self.gap_bounds.items()},
            "peers": {rule: [vars(own) for own in found] for rule, found in self.peers.items()},
            "baselines": {rule: [vars(own) for own in found] for rule, found in self.baselines.items()},
            "tasks": {task: own._as_dict() for task, own in self.tasks.items()},
        }

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All means and differences as one flat dict of floats, for loggers of metrics.

        Under each rule every model has the names `rps/new`, `rps/new_low` and `rps/new_high`, and every pair
        `rps/new - old` with its ends and `_p`, Holm's p-value.

        Parameters
        ----------
        prefix : str, default ""
            What stands before every name, such as `"val_"`.

        Returns
        -------
        dict of str to float
            The numbers; some may be infinite or NaN.

        Examples
        --------
        >>> import verax as vx
        >>> models = {"old": [0.4, 0.5, 0.4], "new": [0.2, 0.7, 0.4]}
        >>> found = vx.compare([0, 1, 1], models, rule="brier").flat()
        >>> round(found["brier/new"], 3), round(found["brier/old - new"], 3)
        (0.327, 0.187)
        """
        found: dict[str, float] = {}
        for rule, models in self.models.items():
            for model in models:
                found |= with_ends(f"{prefix}{rule}/{model.name}", model.mean, model.interval)
            for gap in self.differences[rule]:
                found |= gap_numbers(f"{prefix}{rule}/{gap.a} - {gap.b}", gap)
        return {name: float(value) for name, value in found.items()}

    def to_frame(self, kind: FrameKind = "pandas", *, of: Literal["models", "differences"] = "models") -> Any:
        """One row per rule and model, or per rule and pair of models.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.
        of : {"models", "differences"}, default "models"
            What the rows are.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        check_choice("of", of, ("models", "differences"))
        found: Mapping[str, Sequence[Model | Difference]] = (
            self.models if of == "models" else self.differences
        )
        columns = [Column("rule", value=itemgetter(0))]
        for each in fields(Model if of == "models" else Difference):
            prefix = each.name.removesuffix("interval")
            ends = each.name != prefix
            name = f"{prefix}low {prefix}high" if ends else {"name": "model"}.get(each.name, each.name)
            columns.append(Column(name, value=partial(_field, each.name)))
        return Table(columns, [(rule, line) for rule, lines in found.items() for line in lines]).frame(kind)

    def plot(self, rules: Sequence[str] | None = None) -> Any:
        """Draw the mean loss of each model and its difference from the best one, a panel per rule.

        Parameters
        ----------
        rules : sequence of str, optional
            The names of the rules to draw; all of them by default.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. Of more than 30 models the best are drawn.
        """
        from verax.display.ranking import draw_ranking

        names = list(self.models) if rules is None else list(rules)
        for name in names:
            self._of(self.models, name)
        return draw_ranking(self, names)

    def _tables(self) -> list[Table]:
        return tables_of(self)

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        return f"verax comparison: {len(self.names)} models, {self.n_rows:,} rows{groups}; {self.method}"

    def _notes(self) -> list[str]:
        return [*self.disagreements, *self.undecided, *self.notes, *self._said()]


def _field(name: str, line: tuple[str, Model | Difference]) -> Any:
    return getattr(line[1], name)
