"""Ranked models and their differences: the methods that all comparisons of models share."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from verax.analyses.comparison.records import Difference, Model, gap_numbers, pair_of
from verax.common.checks import check_choice, check_names, looked_up
from verax.common.faces import facts_of
from verax.display.tables import Column, FrameKind, Table
from verax.inference.intervals import with_ends

if TYPE_CHECKING:
    from verax.display.figures import Figure, Sheet

# Of more models the best are drawn.
_MOST_DRAWN = 30


class RankedModels:
    """Models in order under each rule, and the differences of all pairs; a base of results."""

    models: dict[str, list[Model]]
    differences: dict[str, list[Difference]]
    confidence: float
    # Losses are lower for better models; scores of other packages may be higher.
    higher_is_better: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return sorted({m.name for models in self.models.values() for m in models})

    def best(self, rule: str | None = None) -> str:
        """The model with the smallest mean loss, or the highest mean grade, under a rule.

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
        return looked_up(by_rule, next(iter(by_rule)) if rule is None else rule, "rule")

    def difference(self, a: str, b: str, rule: str | None = None) -> Difference:
        """The difference of two models, in the given direction.

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
            The mean loss of `a` minus that of `b`, with interval and p-value; of grades the mean grade.
        """
        differences: list[Difference] = self._of(self.differences, rule)
        return pair_of(differences, a, b, f"; the models are {', '.join(self.names)}")

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All means and differences as one flat dict of floats, for loggers of metrics.

        Under each rule every model has the names `rps/new`, `rps/new_low` and `rps/new_high`, and every pair
        `rps/new - old` with its ends and `_p`, Holm's p-value.

        Parameters
        ----------
        prefix : str, default ""
            A prefix of every name, such as `"val_"`.

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
        numbers: dict[str, float] = {}
        for rule, models in self.models.items():
            for model in models:
                numbers |= with_ends(f"{prefix}{rule}/{model.name}", model.mean, model.interval)
            for gap in self.differences[rule]:
                numbers |= gap_numbers(f"{prefix}{rule}/{gap.a} - {gap.b}", gap)
        return {name: float(value) for name, value in numbers.items()}

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
        by_rule: Mapping[str, Sequence[Model | Difference]] = (
            self.models if of == "models" else self.differences
        )
        columns = [Column("rule", value=itemgetter(0))]
        for attribute in facts_of(Model if of == "models" else Difference):
            prefix = attribute.removesuffix("interval")
            ends = attribute != prefix
            name = f"{prefix}low {prefix}high" if ends else {"name": "model"}.get(attribute, attribute)
            columns.append(Column(name, value=partial(_field, attribute)))
        return Table(columns, [(rule, line) for rule, lines in by_rule.items() for line in lines]).frame(kind)

    def plot(self, rules: Sequence[str] | None = None) -> Any:
        """Draw the mean loss of each model and its difference from the best one, a panel per rule.

        Parameters
        ----------
        rules : sequence of str, optional
            The names of the rules to draw; all of them by default.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. If there are more than 30 models, it shows the best.
        """
        from verax.display.plots import draw

        names = list(self.models) if rules is None else check_names("rules", rules)
        for name in names:
            self._of(self.models, name)
        return draw(self._sheet(names))

    def _sheet(self, rules: Sequence[str]) -> Sheet:
        """The models under each rule."""
        from verax.display.figures import Sheet, row_height

        better = list(dict.fromkeys(map(self.better, rules)))
        figures = [self._figure(rule, alone=len(better) == 1).bare() for rule in rules]
        columns = min(len(figures), 2)
        longest = max(len(figure.y.names) for figure in figures)
        size = (6.2 if columns == 1 else 3.3, row_height(longest) + 0.15)
        return Sheet(figures, columns, size, x=better[0] if len(better) == 1 else "", key="above")

    def _figure(self, rule: str, *, alone: bool = True) -> Figure:
        """The models under a rule, with intervals of the differences from the best."""
        from verax.display.axes import Axis
        from verax.display.figures import rows_figure
        from verax.display.marks import Guide, Mark, Ranged, Ranges

        best, *others = self.models[rule][:_MOST_DRAWN]
        rows = [Ranged(best.name, best.mean, note=_infinite(best))]
        for model in others:
            gap = self.difference(model.name, best.name, rule)
            low, high = (best.mean + end for end in gap.interval)
            worse = gap.p_adjusted <= 1 - self.confidence
            rows.append(Ranged(model.name, model.mean, low, high, worse, _infinite(model)))
        several = len(self.models[rule]) > 2
        level = f"{100 * self.confidence:g}% interval of the difference from the best"
        ranges = Ranges(
            "mean",
            rows,
            f"{level}, not adjusted" if several else level,
            f"significantly worse{' after Holm’s correction' if several else ''}",
            flag=("soft", "square"),
        )
        marks: list[Mark] = [Guide("best model", "x", best.mean)] if math.isfinite(best.mean) else []
        title = rule if alone else f"{rule}: {self.better(rule)}"
        return rows_figure(title, ranges, Axis(self.better(rule)), "model", *marks)

    def better(self, rule: str) -> str:
        """What the means under a rule are and which direction is better, in words.

        Parameters
        ----------
        rule : str
            The name of the rule.

        Returns
        -------
        str
            Such as "mean loss, lower is better".
        """
        return "mean score, higher is better" if self.higher_is_better else "mean loss, lower is better"


def _infinite(model: Model) -> str:
    """What figures say in the place of an infinite mean."""
    n = 0 if math.isfinite(model.mean) else model.infinite_rows
    return f"infinite in {n:,} row{'s' * (n != 1)}" if n else ""


def _field(name: str, line: tuple[str, Model | Difference]) -> Any:
    return getattr(line[1], name)


def letter_display(ranked: Sequence[str], different: Collection[tuple[str, str]]) -> dict[str, str]:
    """The compact letter display of names in the order of their ranks.

    Each letter marks a set of names that do not differ significantly. For every pair that differs, a set
    that holds both is split in two, and sets within others are dropped (insert and absorb).

    References
    ----------
    Piepho (2004), doi:10.1198/1061860043515

    >>> letter_display(["a", "b", "c"], [("a", "c")])
    {'a': 'a', 'b': 'ab', 'c': 'b'}
    >>> letter_display(["a", "b", "c"], [("a", "b")])
    {'a': 'a', 'b': 'b', 'c': 'ab'}
    """
    sets = [frozenset(ranked)]
    for pair in different:
        if not set(pair) <= set(ranked):
            continue
        split = [part for s in sets for part in ([s - {name} for name in pair] if s >= set(pair) else [s])]
        sets = [s for s in dict.fromkeys(split) if not any(s < other for other in split)]
    rank = {name: i for i, name in enumerate(ranked)}
    sets.sort(key=lambda s: sorted(rank[name] for name in s))
    return {name: "".join(_letter(i) for i, s in enumerate(sets) if name in s) for name in ranked}


def _letter(i: int) -> str:
    """One of a to z, then A to Z, then numbers in brackets: (53), (54)."""
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return alphabet[i] if i < len(alphabet) else f"({i + 1})"
