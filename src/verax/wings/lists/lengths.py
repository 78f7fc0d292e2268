"""Gain from longer lists: hard predictions, lists of several lengths, full distributions.

The expected padded score of a true list never gets worse when the list grows, so predictions of
different lengths can be compared by one number. How much it improves depends on the rule.
"""

from __future__ import annotations

import itertools
import textwrap
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from verax.analyses.comparison.records import Difference
from verax.analyses.parts import faults_in
from verax.analyses.units import IndependentUnits
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums, means_of
from verax.common.checks import (
    any_number,
    check_count,
    check_flag,
    check_names,
    check_number,
    in_digits,
    looked_up,
)
from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.display.tables import Column, Table, Tabled
from verax.errors import InputError, show
from verax.inference.findings import Claim, Finding, WithVerdict
from verax.inference.intervals import check_confidence
from verax.inputs.arrays import Floats, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.lists.ragged import Ragged
from verax.inputs.lists.reading import TOLERANCE
from verax.inputs.lists.rows import ListFaults, ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.rows import Rows
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import Padded, padded
from verax.scores.registry import as_rules, name_of, padded_rules

if TYPE_CHECKING:
    from verax.display.figures import Figure, Sheet

# Relative differences of means, and their variances, below this are rounding.
_ROUNDING = 1e-12
# A hard prediction that loses more than this multiple of the largest loss of a list does not set the scale.
_FAR = 4.0


@dataclass(frozen=True, repr=False, eq=False)
class LengthComparison(WithVerdict, Tabled, MaySkip):
    """Mean losses of predictions of growing length. `comparison["brier"]` has those of one rule.

    Attributes
    ----------
    predictions : tuple of str
        "hard", "top-1", ..., "full"; for given lists the last is "as given".
    rules : tuple of Padded
        The padded rules.
    means : dict of str to tuple of float
        Under the name of each inner rule the mean loss of every prediction.
    infinite : dict of str to tuple of float
        Likewise the number of rows whose loss is infinite; weights are scaled to a mean of one.
    lengths : tuple of int
        The lengths of the lists between "hard" and the last.
    n_rows : int
        The number of rows.
    n_classes : int
        The number of classes, K.
    n_invalid : int
        The number of invalid lists.
    covariances : dict of str to array
        Likewise the covariance matrix of these means.
    units : IndependentUnits
        What is independent: rows, or groups of them.
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.5, 0.44, 0.03, 0.03], [0.3, 0.6, 0.05, 0.05]]
    >>> comparison = vx.compare_lengths([1, 0], p, rule="brier")
    >>> comparison.predictions
    ('hard', 'top-1', 'top-2', 'top-3', 'full')
    """

    predictions: tuple[str, ...]
    rules: tuple[Padded, ...]
    means: dict[str, tuple[float, ...]]
    infinite: dict[str, tuple[float, ...]]
    lengths: tuple[int, ...]
    n_rows: int
    n_classes: int
    n_invalid: int
    covariances: dict[str, Floats]
    units: IndependentUnits
    confidence: float

    def __getitem__(self, name: str) -> tuple[float, ...]:
        return looked_up(self.means, name, "rule")

    def excess(self, name: str) -> tuple[float, ...]:
        """Excess of each loss over that of the last prediction, relative to that one.

        Parameters
        ----------
        name : str
            The name of an inner rule.

        Returns
        -------
        tuple of float
            The relative excess of each prediction.
        """
        losses = np.array(self[name])
        with np.errstate(invalid="ignore", divide="ignore"):
            return tuple((losses / losses[-1] - 1).tolist())

    def difference(self, a: str, b: str, rule: str | None = None) -> Difference:
        """Mean loss of prediction `a` minus that of `b`, by one rule.

        Parameters
        ----------
        a : str
            The name of a prediction.
        b : str
            The name of another.
        rule : str, optional
            The name of an inner rule; by default the first.

        Returns
        -------
        Difference
            The difference of the mean losses, with its interval.
        """
        name = next(iter(self.means)) if rule is None else rule
        means = self[name]
        for prediction in (a, b):
            looked_up(dict.fromkeys(self.predictions), prediction, "prediction")
        i, j = self.predictions.index(a), self.predictions.index(b)
        c = self.covariances[name]
        with np.errstate(invalid="ignore"):
            gap = float(np.float64(means[i]) - means[j])
        variance = _variance(c, i, j)
        if variance == 0 and abs(gap) <= _ROUNDING * max(abs(means[i]), abs(means[j])):
            # Equal predictions differ by rounding alone.
            gap = 0.0
        interval = self.units.interval(gap, variance, self.confidence)
        p = self.units.p_value(gap, variance)
        return Difference(a, b, gap, interval, p, p)

    def steps(self) -> tuple[str, ...]:
        """One prediction of each kind: hard, top-1, a longer list, and the last."""
        some = [k for k in self.lengths if k > 1]
        middle = [f"top-{5 if 5 in some else max(some)}"] if some else []
        first = ["top-1"] if 1 in self.lengths else []
        return ("hard", *first, *middle, self.predictions[-1])

    def length_within(self, name: str, share: float = 0.01, *, sure: bool = False) -> int | None:
        """The shortest length at which this and all longer lists have losses within `share` of the last.

        Parameters
        ----------
        name : str
            The name of an inner rule.
        share : float, default 0.01
            How much larger a loss may be, relative to the last.
        sure : bool, default False
            Whether the whole interval of the difference must be within it.

        Returns
        -------
        int or None
            The length; None if there is none.
        """
        share = check_number("share", share, "must be a number that is not negative", lambda s: s >= 0)
        if check_flag("sure", sure):
            last = self[name][-1]
            gaps = [self.difference(f"top-{k}", self.predictions[-1], name).interval for k in self.lengths]
            near = [bool(max(abs(gap.low), abs(gap.high)) <= share * last) for gap in gaps]
        else:
            near = [bool(abs(excess) <= share) for excess in self.excess(name)[1:-1]]
        for i, length in enumerate(self.lengths):
            if all(near[i:]):
                return length
        return None

    def words(self) -> list[str]:
        """The gain from additional classes: one paragraph per rule."""
        return [finding.text for finding in self._findings()]

    def _findings(self) -> list[Finding]:
        return [
            Finding(
                Claim.SCORE,
                f"{name}: {self._words(name)}",
                (name,),
                dict(zip(self.predictions, means, strict=True)),
            )
            for name, means in self.means.items()
        ]

    def _words(self, name: str) -> str:
        hard, *lists, last = self[name]
        whole = "the full distribution" if self.predictions[-1] == "full" else "the lists as given"
        if len({f"{loss:.9g}" for loss in (hard, *lists, last)}) == 1:
            return f"{last:.4g} for every prediction: only the most likely class counts."
        text = ""
        if 1 in self.lengths:
            wrong = ""
            if np.isinf(hard):
                # A share: rows without weight do not change it.
                share = self.infinite[name][0] / self.n_rows
                wrong = f" (a class that was ruled out happened in {100 * share:.3g}% of the rows)"
            text = f"the probability of the first class takes the loss from {hard:.4g}{wrong} "
            text += f"to {lists[self.lengths.index(1)]:.4g}. "
        elif lists:
            shortest = f"lists of {self.lengths[0]}" if self.lengths[0] else "empty lists"
            text = f"{shortest} have {lists[0]:.4g}. "
        if len(lists) < 1 or not np.isfinite(last):
            return text + (f"{whole[0].upper()}{whole[1:]} has {last:.4g}.")
        return text + self._growth(name, lists, last, whole)

    def _growth(self, name: str, lists: list[float], last: float, whole: str) -> str:
        # Measure the gain of further classes from top-1, if it was compared.
        at = self.lengths.index(1) if 1 in self.lengths else 0
        first, gain = lists[at], lists[at] - last
        if abs(gain) <= 1e-12 * max(abs(first), abs(last)):
            return "The other classes change nothing."
        gap = self.difference(f"top-{self.lengths[at]}", self.predictions[-1], name)
        if not gap.p_value <= 1 - self.confidence:
            return f"The other classes take it to {last:.4g}, which is not significantly different."
        if gain < 0:
            return (
                f"The other classes raise it again, to {last:.4g}: they do significantly more harm than good."
            )
        near = self.length_within(name)
        if near is None:
            longer = zip(self.lengths[at + 1 :], lists[at + 1 :], strict=True)
            shares = [f"lists of {k} have {100 * (first - m) / gain:.3g} %" for k, m in longer]
            reached = f"{', '.join(shares)} of that, and none is within 1 % of {whole}" if shares else ""
        elif near < self.lengths[at]:
            reached = f"lists of {near} are within 1 % of {whole}"
        else:
            mean = lists[self.lengths.index(near)]
            share = f"{100 * (first - mean) / gain:.3g} %"
            reached = f"lists of {near} have {share} of that and are within 1 % of {whole}"
        return f"The other classes take it to {last:.4g}" + (f": {reached}." if reached else ".")

    def comparability(self) -> list[str]:
        """Differences between consecutive kinds of prediction, with intervals: one sentence per rule."""
        sentences = []
        for name in self.means:
            gaps = [self.difference(a, b, name) for a, b in itertools.pairwise(self.steps())]
            texts = [_against(gap) for gap in gaps]
            sentences.append(f"{name}: {', '.join(texts)}.")
        return sentences

    def _as_dict(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_classes": self.n_classes,
            "predictions": list(self.predictions),
            "orientation": "lower is better",
            "means": {name: list(means) for name, means in self.means.items()},
            "excess": {name: list(self.excess(name)) for name in self.means},
            "length_within_1_percent": {name: self.length_within(name) for name in self.means},
            "words": self.words(),
            **self._concluded(),
            "confidence": self.confidence,
            "n_invalid": self.n_invalid,
            "differences": {
                name: [
                    {**vars(gap), "interval": list(gap.interval)}
                    for gap in (
                        self.difference(prediction, self.predictions[-1], name)
                        for prediction in self.predictions[:-1]
                    )
                ]
                for name in self.means
            },
            "comparability": self.comparability(),
            **self._noted(),
        }

    def _frame(self) -> Table:
        """One line per rule and prediction: the mean loss, and its excess over the last prediction."""

        def gap(line: tuple[str, int]) -> Difference:
            return self.difference(self.predictions[line[1]], self.predictions[-1], line[0])

        columns = [
            Column("rule", value=lambda line: line[0]),
            Column("prediction", value=lambda line: self.predictions[line[1]]),
            Column("mean", value=lambda line: self.means[line[0]][line[1]]),
            Column("excess", value=lambda line: self.excess(line[0])[line[1]]),
            Column("infinite_weight", value=lambda line: self.infinite[line[0]][line[1]]),
            Column("gap", value=lambda line: gap(line).difference),
            Column("gap_low gap_high", value=lambda line: gap(line).interval),
        ]
        return Table(columns, [(name, i) for name in self.means for i in range(len(self.predictions))])

    def _tables(self) -> list[Table]:
        columns = [Column("", "prediction", lambda i: self.predictions[i], right=False)]
        for name, means in self.means.items():
            columns.append(Column("", name, ".4f", means.__getitem__))
        return [Table(columns, range(len(self.predictions)), ruled=True)]

    def _heading(self) -> str:
        return f"gain from longer lists: {self.n_rows:,} rows, {in_digits(self.n_classes)} classes"

    def _told(self) -> list[str]:
        return [line for text in self.words() for line in textwrap.wrap(text, 106)]

    def _notes(self) -> list[str]:
        level = f"Against each other, with {100 * self.confidence:g}% intervals:"
        texts = [level, *self.comparability()]
        return [*(line for text in texts for line in textwrap.wrap(text, 106)), *self.remarks]

    def plot(self, rules: Sequence[str] | None = None, *, share: float = 0.01) -> Any:
        """Draw the excess loss of each prediction over the last, one panel per rule.

        Parameters
        ----------
        rules : sequence of str, optional
            The names of inner rules; all by default.
        share : float, default 0.01
            The height of the shaded strip, as a share of the last loss.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        names = list(self.means) if rules is None else check_names("rules", rules)
        return draw(self._sheet([name for name in names if self[name]], any_number("share", share)))

    def _sheet(self, rules: Sequence[str], share: float = 0.01) -> Sheet:
        """The excess loss of each prediction over the last, a figure per rule."""
        from verax.display.figures import Sheet

        what = "the full distribution" if self.predictions[-1] == "full" else "the lists as given"
        figures = [self._figure(rule, share).bare() for rule in rules]
        return Sheet(figures, size=(3.4, 2.6), y=f"loss above that of {what}", key="above")

    def _figure(self, rule: str, share: float) -> Figure:
        """The excess losses by one rule; those that no scale fits stand at its edge."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure
        from verax.display.marks import Guide, Line, Mark, Points, Shade

        last, shown = self.predictions[-1], self.predictions[:-1]
        gaps = [self.difference(prediction, last, rule) for prediction in shown]
        values = np.array([gap.difference for gap in gaps])
        # An interval need not be known, for one row or one group.
        low, high = (np.array([gap.interval[end] for gap in gaps]) for end in (0, 1))
        fits = _fits(values)
        x = np.arange(len(shown))
        level = f"{100 * self.confidence:g}% interval"
        marks: list[Mark] = [
            Guide("", "y", 0.0),
            Line("", x[fits], values[fits]),
            Points(f"difference with {level}", x, values, low, high),
        ]
        ends = [v[fits][np.isfinite(v[fits])] for v in (values, low, high)]
        within = share * abs(self.means[rule][-1])
        if np.isfinite(within):
            marks.append(Shade(f"within {100 * share:g}%", "y", -within, within, "soft"))
            ends.append(np.array([-within, within]))
        seen = np.concatenate([*ends, [0.0]])
        room = 0.05 * float(np.ptp(seen)) or 1.0
        y = Axis("loss above the last", float(seen.min()) - room, float(seen.max()) + room)
        return Figure(rule.replace("_", " "), marks, Axis("prediction", names=shown), y)


def _fits(values: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The losses that set the scale: finite ones, except a first that is far above all others."""
    fits = np.isfinite(values)
    others = values[1:][fits[1:]]
    if fits[0] and len(others) > 1 and values[0] > _FAR * others.max() > 0:
        fits[0] = False
    return fits


def _variance(covariance: Floats, i: int, j: int) -> float:
    """The variance of a difference of means; NaN if a loss is infinite."""
    variances = covariance[[i, j], [i, j]]
    if not np.isfinite(variances).all():
        return np.nan
    variance = float(variances.sum() - 2 * covariance[i, j])
    return variance if i != j and variance > _ROUNDING * float(variances.sum()) else 0.0


def _against(gap: Difference) -> str:
    """The difference of two predictions, in words."""
    if not np.isfinite(gap.difference):
        return f"{gap.a} is infinite"
    if abs(gap.difference) < 1e-12:
        return f"{gap.a} equals {gap.b}"
    shown, way = (gap.interval, "above") if gap.difference >= 0 else (-gap.interval, "below")
    span = f" ({shown:z.4f})" if shown.defined else ""
    other = "the lists as given" if gap.b == "as given" else gap.b
    return f"{gap.a} is {abs(gap.difference):.4f}{span} {way} {other}"


# The lengths compared by default.
LENGTHS = (1, 2, 3, 5, 10, 20, 50, 100)


def shorter_lists(rows: ListRows, lengths: Sequence[int]) -> list[Rows]:
    """The first class of each list as if it were certain, and the lists cut to each length."""
    first = rows.heads(1)
    one = first.lists
    hard = first.with_lists(Ragged(one.classes, np.ones(one.classes.size), one.offsets), TOLERANCE)
    return [hard, *(rows.heads(length) for length in lengths)]


def names_of(lengths: Sequence[int], *, lists: bool) -> tuple[str, ...]:
    """Names of the predictions, from the hard one to the given one."""
    return ("hard", *(f"top-{length}" for length in lengths), "as given" if lists else "full")


def check_lengths(k: Sequence[int] | None, longest: int) -> list[int]:
    """The lengths to compare, given the length of the longest list."""
    if k is None:
        return [length for length in LENGTHS if length < max(longest, 2)]
    lengths: list[Any] = to_host(to_array(k, "k")[0]).reshape(-1).tolist()
    for length in lengths:
        check_count("k", length, least=0)
    if not lengths or max(lengths) > longest:
        raise InputError(
            f"must hold lengths from 0 to {longest}", argument="k", found=f"it is {show(k)}", values=lengths
        )
    return sorted(set(lengths))


@reads
def compare_lengths(
    y: object,
    p: object = None,
    *,
    k: Sequence[int] | None = None,
    rule: Rule | str | Sequence[Rule | str] | None = None,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> LengthComparison:
    """Score a classifier's hard prediction, its top lists and its full distribution on the same outcomes.

    Differences are means over the same rows, with intervals.

    Parameters
    ----------
    y
    p
        Lists take the place of the full distribution.
    k : sequence of int, optional
        The lengths to compare; 1, 2, 3, 5, 10, ... if not given.
    rule : Rule, str or sequence of these, optional
        Symmetric proper rules to use instead of all that are registered.
    confidence
    **read

    Returns
    -------
    LengthComparison
        The mean losses and their differences.

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.5, 0.44, 0.03, 0.03], [0.3, 0.6, 0.05, 0.05], [0.1, 0.2, 0.65, 0.05]]
    >>> comparison = vx.compare_lengths([1, 0, 2], p, rule="brier")
    >>> [round(mean, 4) for mean in comparison["brier"]]
    [1.3333, 0.77, 0.5314, 0.5318, 0.5318]
    >>> print(comparison)
    gain from longer lists: 3 rows, 4 classes
    brier: the probability of the first class takes the loss from 1.333 to 0.77. The other classes take it to
    0.5318, which is not significantly different.
    prediction   brier
    ------------------
    hard        1.3333
    top-1       0.7700
    top-2       0.5314
    top-3       0.5318
    full        0.5318
    ------------------
    Against each other, with 95% intervals:
    brier: hard is 0.5633 (-1.0105 to 2.1372) above top-1, top-1 is 0.2382 (-0.3279 to 0.8043) above top-3,
    top-3 equals full.
    """
    check_confidence(confidence)
    chosen = _choose(rule)
    handle = open_rows(y, p, single=True, **read)
    model = handle.one_model()
    longest = handle.n_classes
    if handle.lists:
        longest = handle.summarise({"longest": LongestRecipe(model)})["longest"].length
    recipe = LengthRecipe(model, tuple(chosen), tuple(check_lengths(k, longest)))
    means = means_of(handle, recipe)
    faults = faults_in(handle, means.summaries)
    return read_lengths(handle, recipe, means.sums, means.covariance, means.summaries, faults, confidence)


def _choose(rules: Rule | str | Sequence[Rule | str] | None) -> list[Padded]:
    if rules is None:
        return padded_rules()
    return [rule if isinstance(rule, Padded) else padded(rule) for rule in as_rules(rules)]


def read_lengths(
    handle: Handle,
    recipe: LengthRecipe,
    sums: UnitSums,
    covariance: Floats,
    summaries: Summaries,
    faults: dict[str, ListFaults],
    confidence: float,
) -> LengthComparison:
    """The comparison from sums over rows."""
    names = [name_of(rule.rule) for rule in recipe.rules]
    # In rows: weights with a mean of one.
    infinite = sums.infinite.high * (summaries.n_rows / sums.total)
    return (
        LengthComparison(
            names_of(recipe.lengths, lists=handle.lists),
            recipe.rules,
            {name: tuple(row.tolist()) for name, row in zip(names, sums.mean, strict=True)},
            {name: tuple(row.tolist()) for name, row in zip(names, infinite, strict=True)},
            recipe.lengths,
            summaries.n_rows,
            handle.n_classes,
            sum(fault.n_invalid for fault in faults.values()),
            dict(zip(names, covariance, strict=True)),
            sums.units,
            confidence,
        )
        .with_skipped(summaries.skipped)
        .with_faults(faults)
    )


def read_known_lengths(
    handle: Handle,
    recipe: LengthRecipe,
    sums: UnitSums,
    longest: int,
    summaries: Summaries,
    faults: dict[str, ListFaults],
    confidence: float,
) -> LengthComparison | None:
    """The comparison from sums that may include longer lists; None if all lists have one class."""
    lengths = tuple(check_lengths(None, longest))
    if longest < 2:
        return None
    at = [0, *(1 + recipe.lengths.index(length) for length in lengths), 1 + len(recipe.lengths)]
    some, known = sums.some(at), replace(recipe, lengths=lengths)
    return read_lengths(handle, known, some, some.covariance, summaries, faults, confidence)


@dataclass(frozen=True)
class LengthRecipe(UnitRecipe):
    """Sum the losses of a model's hard prediction, of its lists of some lengths, and of its full forecast."""

    model: str
    rules: tuple[Padded, ...]
    lengths: tuple[int, ...] = LENGTHS

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The numbers of rules and of predictions."""
        return {"blocks": len(self.rules), "columns": 2 + len(self.lengths)}

    def columns(self, part: Part) -> UnitColumns:
        """The losses of some rows, rule by rule."""
        rows = part.models[self.model]
        lists = self._lists(rows)
        # Lists shorter than a length stay as they are.
        n = bisect_left(self.lengths, lists.lists.lengths.max(initial=0)) if lists is rows else None
        shorter = shorter_lists(lists, self.lengths[:n])
        weights = rows.batch(0, rows.n_rows).weights
        w = np.ones(rows.n_rows) if weights is None else np.asarray(to_host(weights), float)
        sums = np.empty((len(self.rules), 2 + len(self.lengths), rows.n_rows))
        for c, prediction in enumerate([*shorter, rows]):
            for block, loss in zip(sums, losses_of(self.rules, prediction), strict=True):
                block[c] = to_host(loss)
        sums[:, len(shorter) + 1 :] = sums[:, len(shorter), None]
        if weights is not None:
            with np.errstate(invalid="ignore"):
                sums *= w
        return UnitColumns(w, sums, rows.groups)

    def _lists(self, rows: Rows) -> ListRows:
        if isinstance(rows, ListRows):
            return rows
        assert isinstance(rows, Forecasts)
        batch = rows.batch(0, rows.n_rows)
        # The hard prediction needs one class, even if all lengths are 0.
        lists = TopLists.from_probabilities(batch.p, max(1, *self.lengths))
        return lists.with_outcomes(batch.y, part=True)


class Longest(Summary, kind="longest list"):
    """The length of the longest list."""

    length: int = merges(Whole("most"))


@dataclass(frozen=True)
class LongestRecipe(Recipe[Longest]):
    """Find the length of a model's longest list."""

    model: str

    def take(self, part: Part) -> Longest:
        """Summarise one part."""
        rows = part.models[self.model]
        assert isinstance(rows, ListRows)
        return Longest(int(rows.lists.lengths.max(initial=0)))
