"""The result of a comparison over folds: the method, and these fitted models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verax.analyses.comparison.findings import TESTED, Standings
from verax.analyses.comparison.ranked import RankedModels
from verax.analyses.comparison.records import Difference, Model
from verax.analyses.comparison.result import Comparison
from verax.analyses.comparison.sides import with_partners
from verax.analyses.comparison.tables import LETTERS, shown_p, signed
from verax.common.faces import Hidden
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.inference.estimates import Practical
from verax.inference.findings import Finding, WithVerdict
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip


@dataclass(frozen=True, repr=False, eq=False)
class FoldComparison(WithVerdict, RankedModels, Tabled, MaySkip):
    """Methods compared over folds of cross-validation, and their fitted models over the test rows.

    Attributes
    ----------
    models : dict of str to list of Model
        By score, the mean over folds, rank and corrected interval of each model, the best first.
    differences : dict of str to list of Difference
        By score, the differences of all pairs, with corrected intervals and p-values: about the method,
        trained on other data of the same kind.
    practical : dict of str to list of Practical
        By score, the posterior probabilities that the first of each pair is better, that both are alike
        for practical purposes, and that it is worse.
    values : dict of str to array
        By score, the mean of each fold (row) and model (column).
    columns : tuple of str
        The models in the order of these columns.
    folds : tuple
        The labels of the folds.
    test_train : float
        The number of test rows divided by that of training rows.
    repeats : int
        The number of rounds of cross-validation.
    rope : float
        Half the width of the region of practical equivalence.
    confidence : float
        Confidence level of the intervals.
    higher_is_better : bool
        Whether higher scores are better.
    rows : Comparison or None
        The paired comparison over the test rows of all folds: about these fitted models, on other rows. None
        where rows are not known, or those of several repeats are not matched.
    notes : tuple of str
        Remarks for the reader.

    Examples
    --------
    >>> import verax as vx
    >>> y, folds = [0, 1, 0, 1, 0, 1], [1, 1, 2, 2, 3, 3]
    >>> models = {"a": [0.2, 0.8, 0.3, 0.9, 0.1, 0.7], "b": [0.4, 0.5, 0.6, 0.6, 0.3, 0.5]}
    >>> found = vx.compare_folds(y, models, folds=folds, rule="brier")
    >>> found.best(), found.test_train, found.rows.n_rows
    ('a', 0.5, 6)
    """

    models: dict[str, list[Model]]
    differences: dict[str, list[Difference]]
    practical: dict[str, list[Practical]]
    values: dict[str, Floats]
    columns: Hidden[tuple[str, ...]]
    folds: tuple[Any, ...]
    test_train: float
    repeats: int
    rope: float
    confidence: float
    higher_is_better: bool = False
    rows: Comparison | None = None
    notes: tuple[str, ...] = ()

    _notes_apart = True

    _facts = ("_n_folds", "_values")

    @property
    def _n_folds(self) -> int:
        return len(self.folds)

    @property
    def _values(self) -> dict[str, dict[str, list[float]]]:
        return {
            score: dict(zip(self.columns, values.T.tolist(), strict=True))
            for score, values in self.values.items()
        }

    def _findings(self) -> list[Finding]:
        score, models = next(iter(self.models.items()))
        ranking = Standings(
            models,
            lambda a, b: self.difference(a, b, score),
            score,
            self.confidence,
            higher=self.higher_is_better,
            noun="method",
            where=f" over {len(self.folds)} folds",
        )
        values = {name: {m.name: m.mean for m in ranked} for name, ranked in self.models.items()}
        return with_partners(
            ranking.findings(lambda *_: None),
            score,
            self.models,
            lambda model, name: values[name][model],
            self.difference,
            [model.name for model in models],
        )

    def _tested_together(self) -> str:
        return TESTED

    def _tables(self) -> list[Table]:
        return [table for score in self.models for table in self._of_score(score)]

    def _of_score(self, score: str) -> list[Table]:
        head = interval_head(self.confidence)
        better = "higher" if self.higher_is_better else "lower"
        ranking = [
            Column("rank", "rank"),
            Column("name", "model", right=False),
            Column("mean", "mean over folds", ".5f"),
            Column("low high", head, ".5f", "interval", right=False),
            LETTERS,
        ]
        practical = {(p.a, p.b): p for p in self.practical[score]}
        pairs = [
            Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
            Column("difference", "method", lambda d: d.infinite_words or signed(d.difference)),
            Column("low high", head, ".6f", "interval", right=False),
            Column("p_value", "p", lambda d: shown_p(d.p_value), spare=2),
            Column("p_adjusted", "p (Holm)", lambda d: shown_p(d.p_adjusted)),
            Column("", "a better", lambda d: f"{practical[d.a, d.b].better:.3f}"),
        ]
        if self.rope:
            alike = f"within {self.rope:g}"
            pairs.append(Column("", alike, lambda d: f"{practical[d.a, d.b].alike:.3f}"))
        pairs.append(Column("", "b better", lambda d: f"{practical[d.a, d.b].worse:.3f}", spare=1))
        tables = [
            Table(ranking, self.models[score], f"{score} ({better} is better)"),
            Table(pairs, self.differences[score], "The method, trained on other data: corrected t test"),
        ]
        rows = self.rows
        if rows is not None:
            fitted = [
                Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
                Column("difference", "fitted models", lambda d: d.infinite_words or signed(d.difference)),
                Column("low high", head, ".6f", "interval", right=False),
                Column("p_value", "p", lambda d: shown_p(d.p_value)),
                Column("p_adjusted", "p (Holm)", lambda d: shown_p(d.p_adjusted)),
            ]
            title = f"These fitted models, on other rows: {rows.method}"
            tables.append(Table(fitted, rows.differences[score], title))
        return tables

    def _heading(self) -> str:
        rounds = f" in {self.repeats} repeats" if self.repeats > 1 else ""
        rows = "" if self.rows is None else f", {self.rows.n_rows:,} rows"
        return (
            f"verax comparison over folds: {len(self.columns)} models, {len(self.folds)} folds{rounds}{rows}"
            f"; test rows / training rows {self.test_train:.3g}"
        )

    def _notes(self) -> list[str]:
        return [*self.notes, *self.remarks]
