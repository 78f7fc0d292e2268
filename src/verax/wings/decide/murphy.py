"""Murphy diagrams: whether one model is better than another by every proper score, or by some.

Every proper score of a binary event is a mixture of elementary scores, one for each threshold. A model that
is better at every threshold is better by every proper score; where the curves cross, the ranking depends on
the score that is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np

from verax.common.checks import check_flag
from verax.display.tables import Column, Table
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.wings.decide.cells import Counted, check_grid, in_words, runs
from verax.wings.decide.curves import CurveDifference, EventCurve, EventCurves, all_curves

if TYPE_CHECKING:
    from verax.display.figures import Sheet

# Differences of mean scores that are smaller are rounding.
_ROUNDING = 1e-12
# The maximum number of events, and of pairs of models, that are drawn.
_MOST_EVENTS, _MOST_PAIRS = 5, 3

Order = Literal["a", "b", "same", "neither"]


@reads
def murphy(
    y: object,
    p: object = None,
    *,
    thresholds: Sequence[float] | None = None,
    ordered: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> Murphy:
    """Murphy diagrams: mean elementary scores by threshold, for every event and several models.

    The elementary score at threshold t is the regret of acting when the forecast exceeds t: t for acting
    where the event does not happen, 1 - t for not acting where it does, else 0. Lower is better. Every proper
    score of an event is a mixture of these. Their integral over t is half the squared error, so that the
    curves of all thresholds of ordered classes make the RPS, those of all classes the Brier score.

    Confidence intervals combine the Jeffreys intervals of the shares of false alarms and misses (MOVER).
    Bands of differences are simultaneous (sup-t) from the first to the last threshold at which at least 10
    rows are acted on by one model only.

    Parameters
    ----------
    y
        Beyond 2^20 distinct forecasts, whether a ranking is the same everywhere is decided where the bins of
        a histogram end.
    p : array_like of shape (N, K) or (N,), or mapping of str to these, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough. Or the forecasts of several models, by name.
    thresholds : sequence of floats, optional
        Increasing probabilities above 0 and below 1 for curves and bands; by default 0.01, ..., 0.99.
        Whether a ranking is the same everywhere is decided at all thresholds, not at these only.
    ordered : bool, default False
        Whether the events are thresholds of ordered classes, Y > class, instead of classes. Two classes have
        one event, class 1.
    confidence : float, default 0.95
        Confidence level of intervals and bands.
    seed : int, default 0
        Random seed of the simultaneous bands.
    **read

    Returns
    -------
    Murphy
        The curves and their differences.

    See Also
    --------
    net_benefit : The same as the benefit of acting.

    References
    ----------
    Ehm, Gneiting, Jordan and Krueger (2016), doi:10.1111/rssb.12154

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> y = [0, 0, 1, 1]
    >>> diagrams = vx.diagrams.murphy(y, {"sharp": [0.1, 0.2, 0.8, 0.9], "dull": [0.4, 0.4, 0.6, 0.6]})
    >>> diagrams.difference("sharp", "dull").order
    'a'
    >>> diagrams.sentences
    ['class 1: no difference is significant; in these rows every proper score prefers sharp.']
    """
    check_confidence(confidence)
    check_seed(seed)
    grid = check_grid(thresholds)
    check_flag("ordered", ordered)
    handle = open_rows(y, p, ordered=ordered, dense=True, **read)
    counted = Counted(handle, grid, "left", ordered=ordered, stretches=True)
    plan = _Plan(counted, confidence, seed)
    curves, gaps = all_curves(counted, plan.curve, plan.gap)
    return Murphy(curves, gaps, counted.rows, confidence).with_skipped(counted.skipped)


# ---- results -----------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class MurphyDifference(CurveDifference):
    """Mean elementary scores of model `a` minus those of model `b`: negative where `a` is better.

    Attributes
    ----------
    order : {"a", "b", "same", "neither"}
        Which of the two is at least as good at every threshold between 0 and 1, so by every proper
        score, in these rows.
    a_better : list of pairs of floats
        Ranges of thresholds at which `a` is better beyond chance, for all thresholds at once.
    b_better : list of pairs of floats
        Ranges of thresholds at which `b` is.

    See Also
    --------
    CurveDifference : What it shares with other differences.
    """

    order: Order
    a_better: list[tuple[float, float]]
    b_better: list[tuple[float, float]]

    def turned(self) -> Self:
        """The same with the two models exchanged."""
        other: dict[Order, Order] = {"a": "b", "b": "a", "same": "same", "neither": "neither"}
        turned = super().turned()
        return replace(turned, order=other[self.order], a_better=self.b_better, b_better=self.a_better)

    @property
    def sentence(self) -> str:
        """The differences beyond chance, and whether every proper score ranks the two alike in these rows."""
        if self.order == "same":
            return f"{self.a} and {self.b} have the same elementary scores."
        if self.a_better and self.b_better:
            return (
                f"the ranking depends on the score: {self.a} is better at thresholds "
                f"{in_words(self.a_better)} and {self.b} at {in_words(self.b_better)}."
            )
        chance = "no difference is significant"
        if self.a_better or self.b_better:
            better, worse = (self.a, self.b) if self.a_better else (self.b, self.a)
            where = in_words(self.a_better or self.b_better)
            chance = f"{better} is significantly better at thresholds {where}, {worse} nowhere"
        return f"{chance}; in these rows {self._in_sample()}."

    def _in_sample(self) -> str:
        if self.order == "neither":
            return "the ranking depends on the score"
        return f"every proper score prefers {self.a if self.order == 'a' else self.b}"


@dataclass(frozen=True, repr=False, eq=False)
class Murphy(EventCurves[EventCurve, MurphyDifference]):
    """The Murphy diagrams of all events: mean elementary scores, lower is better.

    See Also
    --------
    murphy : How to get it.

    Examples
    --------
    >>> import verax as vx
    >>> models = {"sharp": [0.1, 0.2, 0.8, 0.9], "dull": [0.4, 0.4, 0.6, 0.6]}
    >>> diagrams = vx.diagrams.murphy([0, 0, 1, 1], models)
    >>> diagrams.dominates("sharp", "dull")
    True
    """

    curves: tuple[EventCurve, ...]
    differences: tuple[MurphyDifference, ...]

    quantity = "elementary_score"

    @property
    def sentences(self) -> list[str]:
        """Which rankings hold for every proper score, in words."""
        return [f"{self.called(gap.event)}: {gap.sentence}" for gap in self.differences]

    def dominates(self, a: str, b: str) -> bool:
        """Whether `a` is at least as good as `b` by every proper score of every event, in these rows.

        Parameters
        ----------
        a : str
            The name of a model.
        b : str
            The name of another.

        Returns
        -------
        bool
            True if it is so at all thresholds.
        """
        names = {curve.event for curve in self.curves}
        return all(self.difference(a, b, event).order in ("a", "same") for event in names)

    def plot(self) -> Any:
        """Draw all curves, and below them the differences with their bands.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        return draw(self._sheet())

    def _sheet(self) -> Sheet:
        """The curves, a figure for each event, and below them the differences with their bands."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure, Sheet
        from verax.display.marks import Band, Guide, Line, Mark

        events, title = self._drawn(_MOST_EVENTS)
        pairs = list(dict.fromkeys((gap.a, gap.b) for gap in self.differences))[:_MOST_PAIRS]
        top = 1.05 * max(float(curve.values.max()) for curve in self.curves) or 1.0
        level, across = f"{100 * self.confidence:g}%", Axis("threshold", 0, 1)
        drawn: list[Figure] = []
        for event in events:
            curves = [curve for curve in self.curves if curve.event == event]
            lines = [Line(c.model, c.thresholds, c.values, i) for i, c in enumerate(curves)]
            label = "" if drawn else "mean elementary score\n(lower is better)"
            drawn.append(Figure(self.called(event), lines, across, Axis(label, 0, top)))
        for a, b in pairs:
            for event in events:
                gap = self.difference(a, b, event)
                x = gap.thresholds
                marks: list[Mark] = [
                    Guide("", "y", 0.0),
                    Line("", x, gap.values),
                    Band(f"{level} interval at each threshold", x, *gap.interval),
                    Band(f"{level} simultaneous band", x, *gap.band),
                ]
                label = "" if event != events[0] else f"{a} - {b}\n(negative: {a} is better)"
                drawn.append(Figure("", marks, across, Axis(label)))
        figures = [replace(figure, x=replace(across, label="")) for figure in drawn]
        size = ((5.6, 3.2, 2.4)[min(len(events), 3) - 1], 2.3)
        return Sheet(figures, len(events), size, title, x=across.label, shared="x row", key="above")

    def _heading(self) -> str:
        return self.rows.heading("Murphy diagrams")

    def _tables(self) -> list[Table]:
        def best(pair: MurphyDifference) -> str:
            named = {"neither": "neither", "same": "the same", "a": pair.a, "b": pair.b}
            return named[pair.order]

        def largest(pair: MurphyDifference) -> str:
            at = int(np.argmax(np.abs(pair.values)))
            return f"{pair.values[at]:+.4f} at {pair.thresholds[at]:g}"

        columns = [
            Column("event", "event", right=False),
            Column("a", "a", right=False),
            Column("b", "b", right=False),
            Column("", "better by every proper score", best, right=False),
            Column("", "largest difference, a - b", largest, right=False),
        ]
        return [Table(columns, self.differences)] if self.differences else []


# ---- scores ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The options of all curves."""

    counted: Counted
    confidence: float
    seed: int

    def curve(self, name: str, event: int) -> EventCurve:
        grid, states = self.counted.grid, self.counted.states(event, name)
        (acts,) = states.acts
        regret = np.where(states.happened, (1 - grid) * ~acts, grid * acts)
        mixture = states.mixture(regret)
        interval = mixture.interval(self.confidence)
        return EventCurve(name, self.counted.events[event], grid, mixture.mean, interval)

    def gap(self, a: str, b: str, event: int) -> MurphyDifference:
        grid, states = self.counted.grid, self.counted.states(event, a, b)
        first, second = states.acts
        factors = (first.astype(float) - second) * np.where(states.happened, grid - 1, grid)
        mixture = states.mixture(factors)
        band = mixture.band(self.confidence, self.seed)
        return MurphyDifference(
            a,
            b,
            self.counted.events[event],
            grid,
            mixture.mean,
            mixture.interval(self.confidence),
            band,
            order_of(self.counted.stretches(event, a, b)),
            runs(band[1] < 0, grid),
            runs(band[0] > 0, grid),
        )


def order_of(differences: Floats) -> Order:
    """Which of two forecasts has the smaller mean elementary score at every threshold.

    Between two neighbouring forecast values the mean scores are linear in the threshold, so it is enough to
    look at both ends of each such stretch.
    """
    better, worse = bool((differences < -_ROUNDING).any()), bool((differences > _ROUNDING).any())
    if better and worse:
        return "neither"
    return "a" if better else "b" if worse else "same"
