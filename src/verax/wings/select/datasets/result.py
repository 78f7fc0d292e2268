"""The result of a comparison over data sets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from verax.analyses.comparison.records import pair_of
from verax.analyses.comparison.sides import with_partners
from verax.analyses.comparison.tables import LETTERS, shown_p, signed
from verax.common.checks import check_choice
from verax.common.faces import Brief, Hidden
from verax.display.tables import Column, FrameKind, Table, Tabled, interval_head
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict, in_brackets, listed
from verax.inference.intervals import Interval
from verax.inference.signflips import Friedman
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip

if TYPE_CHECKING:
    from verax.display.figures import Sheet

# Of more models the best are drawn.
_MOST_DRAWN = 30


@dataclass(frozen=True)
class DatasetModel:
    """One model over several data sets.

    Attributes
    ----------
    name : str
        The name of the model.
    mean_rank : float
        The mean of its ranks in the data sets, 1 for the best; ties share the mean of their ranks.
    interval : Interval
        Its confidence interval, for data sets of the same kind.
    rank : int
        The place by mean rank.
    letters : str
        Two models share a letter if and only if they do not differ significantly; empty without tests.
    mean : float
        The mean score.
    best_on : int
        On how many data sets it is the best, ties included.
    """

    name: str
    mean_rank: float
    interval: Brief[Interval]
    rank: int
    letters: str
    mean: float
    best_on: int


@dataclass(frozen=True)
class DatasetDifference:
    """Scores of model `a` minus those of model `b` over data sets.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    difference : float
        The typical difference: the median of the means of all pairs of data sets (Hodges and Lehmann).
    interval : Interval
        Its confidence interval.
    p_value : float
        The two-sided p-value of the signed-rank test with Pratt's zeros.
    p_adjusted : float
        The same, corrected for all pairs (Holm).
    wins : int
        On how many data sets `a` is better.
    ties : int
        On how many both have the same score.
    losses : int
        On how many `b` is better.
    better : float
        The posterior probability that `a` is typically better by more than the region of practical
        equivalence.
    alike : float
        The probability that they typically differ by less.
    worse : float
        That `a` is typically worse by more than that.
    """

    a: str
    b: str
    difference: float
    interval: Brief[Interval]
    p_value: float
    p_adjusted: float
    wins: int
    ties: int
    losses: int
    better: float
    alike: float
    worse: float

    @property
    def turned(self) -> DatasetDifference:
        """The difference of `b` and `a`."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=-self.difference,
            interval=-self.interval,
            wins=self.losses,
            losses=self.wins,
            better=self.worse,
            worse=self.better,
        )


@dataclass(frozen=True, repr=False, eq=False)
class DatasetComparison(WithVerdict, Tabled, MaySkip):
    """Models compared over several data sets.

    Attributes
    ----------
    models : list of DatasetModel
        The models by mean rank, with intervals.
    differences : list of DatasetDifference
        All pairs of models.
    friedman : Friedman
        The test of whether the mean ranks of all models differ: its chi-squared statistic and p-value.
    score : str
        The name of the scores.
    datasets : tuple
        The names of the data sets.
    columns : tuple of str
        The models in the order of the columns of `values`.
    values : array of shape (N, M)
        The score of each model (column) on each data set (row).
    rope : float
        Half the width of the region of practical equivalence.
    confidence : float
        Confidence level of the intervals.
    higher_is_better : bool
        Whether higher scores are better.
    left_out : tuple
        Data sets that were left out because some model has no score there.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.compare_datasets([[0.1, 0.2], [0.3, 0.2], [0.1, 0.4]], models=["a", "b"], better="lower")
    >>> found.best(), round(found.models[0].mean_rank, 2), found.tested
    ('a', 1.33, False)
    """

    models: list[DatasetModel]
    differences: list[DatasetDifference]
    friedman: Friedman
    score: str
    datasets: tuple[Any, ...]
    columns: Hidden[tuple[str, ...]]
    values: Floats
    rope: float
    confidence: float
    higher_is_better: bool = False
    left_out: tuple[Any, ...] = ()

    _notes_apart = True

    _facts = ("_n_datasets", "tested", "_values", "notes")

    @property
    def _n_datasets(self) -> int:
        return len(self.datasets)

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader."""
        return self._notes()

    @property
    def _values(self) -> dict[str, list[float]]:
        return dict(zip(self.columns, self.values.T.tolist(), strict=True))

    @property
    def tested(self) -> bool:
        """Whether there are enough data sets for a test."""
        return self.friedman.p_value == self.friedman.p_value

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return sorted(self.columns)

    def best(self) -> str:
        """The model with the smallest mean rank.

        Returns
        -------
        str
            The name of the model.
        """
        return self.models[0].name

    def leader(self) -> str | None:
        """The model that is significantly better than every other.

        Returns
        -------
        str or None
            The name of the model; None if there is none.
        """
        best, *others = self.models
        p = [self.difference(best.name, other.name).p_adjusted for other in others]
        return best.name if all(p_value <= 1 - self.confidence for p_value in p) else None

    def difference(self, a: str, b: str) -> DatasetDifference:
        """The difference of two models, in the direction asked for.

        Parameters
        ----------
        a : str
            The name of a model.
        b : str
            The name of another.

        Returns
        -------
        DatasetDifference
            The typical score of `a` minus that of `b`, with interval and p-value.
        """
        return pair_of(self.differences, a, b, f"; the models are {', '.join(self.names)}")

    def _findings(self) -> list[Finding]:
        # A rate of one side has no partner here: there is one score.
        values = {model.name: model.mean for model in self.models}
        return with_partners(
            self._by_rank(),
            self.score,
            (self.score,),
            lambda model, _: values[model],
            lambda a, b, _: self.difference(a, b),
            list(values),
        )

    def _by_rank(self) -> list[Finding]:
        """The model with the best mean rank, or the open question."""
        best, other = self.models[:2]
        n = len(self.datasets)
        ranks = f"mean rank {best.mean_rank:.2f}{in_brackets(best.interval)} of {len(self.models)}"
        ranks += f" over {n} data sets"
        numbers = {"mean_rank": (best.mean_rank, best.interval)}
        if not self.tested:
            text = f"{best.name} ranks first, with {ranks}. With fewer than six data sets there is no test."
            step = NextStep("compare the models on at least six data sets")
            return [Finding(Claim.TOO_FEW, text, (best.name,), numbers, step=step)]
        gap, level = self.difference(best.name, other.name), round(1 - self.confidence, 12)
        p = {name: self.difference(best.name, name).p_adjusted for name in self.columns if name != best.name}
        known: dict[str, Any] = {"numbers": numbers, "p_value": max(p.values()), "level": level}
        won = f"better than {other.name} on {gap.wins} of {n} (p {shown_p(gap.p_adjusted)}, Holm)"
        near = [name for name, p_value in p.items() if p_value > level]
        if not near:
            others = other.name if len(p) == 1 else f"the {len(p)} other models"
            text = f"{best.name} is significantly better than {others}: {ranks}, {won}."
            return [Finding(Claim.BEST, text, (best.name,), **known)]
        text = (
            f"No model is significantly better than all others. {best.name} ranks first, with {ranks}, "
            f"{won}, but is not significantly different from {listed(near)}."
        )
        return [Finding(Claim.LEAD_OPEN, text, (best.name, *near), **known)]

    def _tested_together(self) -> str:
        return "All pairs of models are tested together (Holm's correction)."

    def to_frame(self, kind: FrameKind = "pandas", *, of: Literal["models", "differences"] = "models") -> Any:
        """One row per model, or per pair of models.

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
        return self._tables()[of == "differences"].frame(kind)

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean rank of each model with its interval, and which do not differ significantly.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        return draw(self._sheet(), ax)

    def _sheet(self) -> Sheet:
        """The mean ranks with their intervals; lines join models that do not differ significantly."""
        from verax.display.axes import Axis
        from verax.display.figures import Sheet, row_height, rows_figure
        from verax.display.marks import Ranged, Ranges

        best, models = self.models[0], self.models[:_MOST_DRAWN]
        worse = {
            model.name
            for model in models[1:]
            if self.difference(model.name, best.name).p_adjusted <= 1 - self.confidence
        }
        rows = [Ranged(m.name, m.mean_rank, *m.interval, flagged=m.name in worse) for m in models]
        letters = sorted({letter for model in models for letter in model.letters}) if self.tested else []
        alike = [[i for i, model in enumerate(models) if letter in model.letters] for letter in letters]
        ranges = Ranges(
            "mean rank",
            rows,
            f"{100 * self.confidence:g}% interval",
            "significantly worse than the first",
            flag=("soft", "square"),
            joined=[places for places in alike if len(places) > 1],
            joining="joined at the right: not significantly different",
        )
        label = f"mean rank over {len(self.datasets)} data sets, 1 is best"
        x = Axis(label, 0.9, len(self.models) + 0.1)
        figure = rows_figure("", ranges, x, "model")
        note = "" if self.tested else "Too few for intervals and tests."
        return Sheet([figure], size=(5.9, row_height(len(rows))), note=note, key="above")

    def _tables(self) -> list[Table]:
        head = interval_head(self.confidence)
        better = "higher" if self.higher_is_better else "lower"
        ranking = [
            Column("rank", "rank"),
            Column("model", "model", value="name", right=False),
            Column("mean_rank", "mean rank", ".3f"),
            Column("low high", head, ".3f", "interval", right=False),
            Column("mean", f"mean {self.score}", ".5f", spare=2),
            Column("best_on", "best on", spare=1),
            LETTERS,
        ]
        pairs = [
            Column("a"),
            Column("b"),
            Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
            Column("difference", "typical difference", lambda d: signed(d.difference), brief="difference"),
            Column("low high", head, ".6f", "interval", right=False),
            Column("", "a wins / ties / b wins", lambda d: f"{d.wins} / {d.ties} / {d.losses}"),
            Column("wins"),
            Column("ties"),
            Column("losses"),
            Column("p_value", "p", lambda d: shown_p(d.p_value), spare=3),
            Column("p_adjusted", "p (Holm)", lambda d: shown_p(d.p_adjusted)),
            Column("better", "a better" if self.tested else "", ".3f", spare=2),
            Column("alike", f"within {self.rope:g}" if self.rope and self.tested else "", ".3f"),
            Column("worse", "b better" if self.tested else "", ".3f", spare=2),
        ]
        title = f"{self.score} ({better} is better)"
        return [Table(ranking, self.models, title), Table(pairs, self.differences, "Pairs: signed-rank test")]

    def _heading(self) -> str:
        return f"verax comparison over data sets: {len(self.columns)} models, {len(self.datasets)} data sets"

    def _notes(self) -> list[str]:
        said = []
        if self.tested:
            said.append(
                f"Friedman's test of all models: chi-squared {self.friedman.statistic:.4g}, p "
                f"{shown_p(self.friedman.p_value)}."
            )
        else:
            said.append(
                f"No test: with {len(self.datasets)} data sets not even a model that is always better would "
                "be significant. Six are the least."
            )
        if self.left_out:
            n = len(self.left_out)
            said.append(f"{n} data set{'s' * (n > 1)} left out, where some model has no score.")
        return said
