"""`evaluate_sets`: how good prediction sets are."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from verax.analyses.unitsums import UnitSums, check_weight
from verax.common.checks import as_float, check_flag
from verax.errors import InputError, Remedy
from verax.inference.estimates import holm
from verax.inference.intervals import Interval, check_confidence, skewed, t_quantile
from verax.inference.shares import between
from verax.inputs.breakdown import breakdowns
from verax.inputs.handles import Handle, Recipe
from verax.inputs.memory import open_rows
from verax.inputs.options import reads
from verax.inputs.sets.given import as_sets
from verax.inputs.sets.rows import check_level, members_by, no_way
from verax.scores.sets import LevelSet
from verax.wings.sets.result import CoverageLine, SetEvaluation, SetMeasure, Span
from verax.wings.sets.summaries import (
    FEW,
    MOST_CLASSES,
    MOST_SPANNED,
    Judged,
    MissRecipe,
    PartRecipe,
    SetRecipe,
    SizeCounts,
    SizeRecipe,
    SpanCounts,
    SpanRecipe,
    size_name,
    units_by_label,
)

# The cost of a class where neither it nor a level is stated.
_COST = 0.1
# Fewer misses say little about their distance.
_FEW_MISSES = 10


class SetReading(TypedDict, total=False):
    """The options by which sets, and probabilities that state sets, are read."""

    classes: Sequence[Hashable] | None
    normalize: bool
    logits: bool
    invalid: Literal["raise", "skip"]
    weights: object | None
    groups: object | None


@reads
def evaluate_sets(
    y: object,
    sets: object = None,
    *,
    level: float | None = None,
    threshold: float | None = None,
    ordered: bool = False,
    by: object | None = None,
    confidence: float = 0.95,
    **read: Unpack[SetReading],
) -> SetEvaluation:
    """Judge prediction sets: coverage, size, and the scores that coverage alone lacks.

    Coverage is not proper: a constant set reaches any level. So sets are also scored, by the level-set score
    (t for every class, 1 for a miss), which elicits the classes whose probability is above t, and for
    ordered classes by Winkler's interval score.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. Or predictions that
        `scan` has opened, in place of both `y` and `sets`.
    sets : mask of shape (N, K), N collections of classes, Sets or TopLists, optional
        The sets: booleans or 0 and 1 with a column per class; for each row the labels or positions of its
        classes; or what `conformal(...).apply` made. Top lists are the sets of the classes they name.
        From probabilities (floats), sets are built as stated: with `level` the most likely classes until they
        reach it, else those above `threshold`.
    level : float, optional
        The coverage that the sets claim, such as 0.9. By default what they know themselves: that of
        `conformal`, or the probability that lists and probabilities give their classes.
    threshold : float, optional
        The cost t of one more class in the level-set score, where a miss costs 1. By default 1 - level, or
        0.1 where there is no level.
    ordered
    by : array_like of shape (N,), mapping of str to these, frame, or str, optional
        Labels of subgroups, one breakdown for each column. Of a handle, the names of columns that `scan` was
        told of.
    confidence : float, default 0.95
        Confidence level of the intervals and of the tests.
    **read

    Returns
    -------
    SetEvaluation
        Coverage, sizes and scores with intervals; coverage by class, size and subgroup.

    See Also
    --------
    conformal : Make sets that reach a level.
    compare : Compare sets of several models by a score.

    References
    ----------
    Gneiting and Raftery (2007), doi:10.1198/016214506000001437; Angelopoulos and Bates (2023),
    doi:10.1561/2200000101

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(4), 2000)
    >>> y = np.array([rng.choice(4, p=row) for row in p])
    >>> found = vx.evaluate_sets(y, p, level=0.9)
    >>> f"{found.coverage:.3f}", f"{found.size:.2f}"
    ('0.946 (0.935 to 0.955)', '3.07 (3.04 to 3.09)')
    """
    check_confidence(confidence)
    ordered = check_flag("ordered", ordered)
    claimed = None if level is None else check_level(level)
    made = members_by(level, threshold)
    given = as_sets(sets, y, read.get("classes"))
    if given is None and not isinstance(y, Handle):
        raise InputError("must be given beside the outcomes", argument="sets", kind="missing")
    if ordered and (y.lists if isinstance(y, Handle) else getattr(given, "of_lists", False)):
        raise InputError(
            "cannot be used with top lists, whose classes have no positions",
            argument="ordered",
            remedies=[Remedy("Make the sets with Sets.from_labels(..., classes=...).", python_only=True)],
        )
    options: dict[str, Any] = {name: value for name, value in read.items() if value is not None}
    labels = breakdowns(by, y if isinstance(y, Handle) else None)
    handle = open_rows(
        y, given, ordered=ordered, single=True, sets=True, by=labels if labels else None, **options
    )
    claimed = _level_of(handle) if claimed is None else claimed
    if made is None and not (handle.sets or handle.lists):
        raise no_way()
    t = check_level(threshold, "threshold") if threshold is not None else None
    if t is None:
        t = _COST if claimed is None else 1 - claimed
    judged = Judged(made, claimed, t, ordered)
    return _Reading(handle, judged, tuple(labels), confidence).result()


def _level_of(handle: Handle) -> float | None:
    """The level that the sets themselves claim."""
    rows: Any = handle if handle.kept is None else handle.kept.rows
    return getattr(rows, "level", None)


@dataclass(frozen=True)
class _Reading:
    """One reading of sets, from which everything is concluded."""

    handle: Handle
    judged: Judged
    columns: tuple[str, ...]
    confidence: float

    def _recipes(self) -> dict[str, Recipe[Any]]:
        model, judged = self.handle.one_model(), self.judged
        recipes: dict[str, Recipe[Any]] = {
            "units": SetRecipe(model, judged, judged.measures),
            "sizes": SizeRecipe(model, judged),
            "by size": PartRecipe(model, judged, "size"),
        }
        if self.handle.n_classes <= MOST_CLASSES:
            recipes["by class"] = PartRecipe(model, judged, "class")
        if judged.ordered:
            recipes["misses"] = MissRecipe(model, judged)
            if self.handle.n_classes <= MOST_SPANNED:
                recipes["spans"] = SpanRecipe(model, judged)
        for name in self.columns:
            recipes[f"by {name}"] = PartRecipe(model, judged, "column", name)
        return recipes

    def result(self) -> SetEvaluation:
        """The evaluation."""
        summaries = self.handle.summarise(self._recipes())
        sums: UnitSums = summaries["units"]
        check_weight(sums.total)
        all_sets = _Sums(sums, self.judged.measures, self.confidence)
        has_claim = all_sets.mean("claimed") > 0.5
        coverage, excess = all_sets.share("covered"), all_sets.mean("excess")
        claimed = coverage.value - excess if has_claim else None
        if self.judged.level is not None:
            claimed = self.judged.level
        target = None if has_claim else coverage.value
        classes = _tested(summaries.by_name.get("by class"), sums.total, target, self.confidence)
        by_size = _tested(summaries["by size"], sums.total, target, self.confidence)
        sizes = _sizes(summaries["sizes"])
        spans = _spans(summaries.by_name.get("spans"), self.handle.n_classes)
        frequencies = np.sort([line.share for line in classes])[::-1]
        return SetEvaluation(
            summaries.n_rows,
            self.handle.n_classes,
            sums.units.n if sums.groups is not None else None,
            self.judged.ordered,
            self.judged.level,
            claimed,
            coverage,
            self._excess(all_sets, coverage) if has_claim else None,
            all_sets.measured("size", (0.0, as_float(self.handle.n_classes))),
            _median(sizes),
            sizes,
            all_sets.share("empty"),
            all_sets.share("single"),
            self.judged.t,
            all_sets.level_set(LevelSet(self.judged.t).bounds(self.handle.n_classes)),
            all_sets.measured("winkler", (0.0, math.inf))
            if self.judged.ordered and self.judged.level is not None
            else None,
            all_sets.share("gapless") if self.judged.ordered else None,
            self._miss_distance(summaries["misses"]) if self.judged.ordered else None,
            _constant_size(frequencies, claimed),
            _constant_score(frequencies, self.judged.t),
            self._in_order(classes),
            tuple(_named(line, self.handle.n_classes) for line in by_size),
            {
                name: _tested(summaries[f"by {name}"], sums.total, target, self.confidence)
                for name in self.columns
            },
            spans,
            self.handle.class_names if spans else (),
            self.confidence,
            tuple(self._cautions(coverage, all_sets.mean("empty"))),
        ).with_skipped(summaries.skipped)

    def _excess(self, sums: _Sums, coverage: SetMeasure) -> SetMeasure:
        """The coverage minus the claim: of one level, the interval of the coverage minus it."""
        level = self.judged.level
        if level is None:
            return sums.measured("excess")
        ends = (end - level for end in coverage.interval)
        interval = coverage.interval
        moved = Interval(*ends, confidence=interval.confidence).by(interval.method, interval.caution)
        return SetMeasure(coverage.value - level, moved if interval.defined else interval)

    def _miss_distance(self, sums: UnitSums) -> SetMeasure | None:
        """The mean distance of misses: a ratio of two means."""
        distance, missed = sums.mean[0].tolist()
        if not missed > 0 or self.handle.n_classes == 2:
            return None
        ratio = distance / missed
        of_distance, both, of_missed = (float(sums.covariance[0, i, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        variance = max(of_distance - 2 * ratio * both + ratio**2 * of_missed, 0.0) / missed**2
        units = sums.units
        misses = missed * (units.freedom + 1)
        if not units.grouped:
            units = replace(units, degrees=max(misses - 1, 1.0))
        caution = "" if misses >= _FEW_MISSES else f"only {misses:.0f} misses"
        bounds = 1.0, float(self.handle.n_classes - 1)
        interval = units.interval(ratio, variance, self.confidence, bounds=bounds, n=misses, caution=caution)
        return SetMeasure(ratio, interval)

    def _in_order(self, lines: tuple[CoverageLine, ...]) -> tuple[CoverageLine, ...]:
        """Classes in their own order, where it is known."""
        names = self.handle.classes
        if names is None or self.handle.lists:
            return lines
        order = {str(name): i for i, name in enumerate(names)}
        return tuple(sorted(lines, key=lambda line: order.get(str(line.label), len(order))))

    def _cautions(self, coverage: SetMeasure, empty: float) -> list[str]:
        cautions = [coverage.interval.caution] if coverage.interval.caution else []
        if empty == 1:
            cautions.append("all sets are empty: nothing is predicted")
        elif coverage.value == 0:
            cautions.append("no outcome is in its set; do sets and outcomes use the same class names?")
        if self.judged.ordered and self.judged.level is not None and 0 < empty < 1:
            cautions.append("empty sets have no interval, so the Winkler score is infinite")
        return cautions


@dataclass(frozen=True)
class _Sums:
    """Sums of measures, and what follows from them."""

    sums: UnitSums
    names: tuple[str, ...]
    confidence: float

    def mean(self, name: str) -> float:
        """The mean of a measure."""
        return float(self.sums.mean[self.names.index(name), 0])

    def variance(self, name: str) -> float:
        """The variance of that mean."""
        return float(self.sums.covariance[self.names.index(name), 0, 0])

    def _known(self, value: float) -> str:
        """Why there is no interval of a mean; empty where there is one."""
        units = self.sums.units
        return "" if units.n > 1 and math.isfinite(value) else units.caution or "the estimate is undefined"

    def share(self, name: str) -> SetMeasure:
        """A share with its interval; over groups, with the effective number of rows."""
        value = min(max(self.mean(name), 0.0), 1.0)
        why = self._known(value)
        if why:
            return SetMeasure(value, Interval.undefined(why, method="mid-P", confidence=self.confidence))
        interval = self.sums.share(self.names.index(name)).interval(self.confidence)
        return SetMeasure(value, interval if interval.caution else interval.doubted(self.sums.units.caution))

    def level_set(self, bounds: tuple[float, float]) -> SetMeasure:
        """The level-set score: that part of its variance which is of misses is as skewed as their share.

        Limits of the share and of the rest are joined as if the two were independent (MOVER, Zou and Donner
        2008, doi:10.1002/sim.3095).
        """
        score, covered = self.measured("level_set", bounds), self.share("covered")
        if not (score.interval.defined and covered.interval.defined):
            return score
        units = self.sums.units
        rest = max(self.variance("level_set") - self.variance("covered"), 0.0)
        half = t_quantile(units.freedom, self.confidence) * math.sqrt(rest)
        fewer, more = (abs(covered.value - end) for end in (covered.interval.high, covered.interval.low))
        ends = score.value - math.hypot(fewer, half), score.value + math.hypot(more, half)
        interval = Interval(*ends, confidence=self.confidence).within(bounds)
        return SetMeasure(score.value, interval.by(score.interval.method, score.interval.caution))

    def measured(self, name: str, bounds: tuple[float, float] = (-math.inf, math.inf)) -> SetMeasure:
        """A mean with its interval, within bounds."""
        value, variance, units = self.mean(name), self.variance(name), self.sums.units
        why = self._known(value) or self._known(variance)
        if why:
            return SetMeasure(value, Interval.undefined(why, method=units.method, confidence=self.confidence))
        n = units.freedom + 1
        interval = self.sums.mean_of(self.names.index(name), bounds).interval(self.confidence)
        return SetMeasure(value, interval.doubted(skewed(n, value, math.sqrt(variance * n))))

    def p_value(self, target: float) -> float:
        """Whether the coverage differs from the target: the test that its interval inverts."""
        if self._known(self.variance("covered")) or not between(target):
            return math.nan
        return self.sums.share(self.names.index("covered")).shares.p_value(target)


def _tested(
    breakdown: Any, total: float, target: float | None, confidence: float
) -> tuple[CoverageLine, ...]:
    """The coverage of every label, tested against what is claimed, with Holm's correction."""
    if breakdown is None:
        return ()
    by_label = [(label, _Sums(sums, FEW, confidence)) for label, sums in units_by_label(breakdown).items()]
    by_label = [(label, sums) for label, sums in by_label if sums.sums.total > 0]
    aims = [s.mean("covered") - s.mean("excess") if target is None else target for _, s in by_label]
    p_values = np.array([sums.p_value(aim) for (_, sums), aim in zip(by_label, aims, strict=True)])
    adjusted = holm(p_values)
    lines = []
    for (label, sums), aim, p, corrected in zip(by_label, aims, p_values, adjusted, strict=True):
        coverage = sums.share("covered")
        lines.append(
            CoverageLine(
                label,
                sums.sums.n,
                sums.sums.total / total,
                coverage.value,
                coverage.interval,
                sums.mean("size"),
                float(aim),
                float(p),
                float(corrected),
                bool(corrected <= 1 - confidence),
            )
        )
    return tuple(lines)


def _named(line: CoverageLine, n_classes: int) -> CoverageLine:
    """A line of sizes, named by all sizes that are counted there."""
    return CoverageLine(**{**vars(line), "label": size_name(int(line.label), n_classes)})


def _sizes(counts: SizeCounts) -> dict[int, float]:
    """The share of sets of each size."""
    weights = counts.weights[:, 0]
    shares = weights / weights.sum()
    return {int(size): float(share) for size, share in zip(counts.sizes, shares, strict=True) if share > 0}


def _spans(counts: SpanCounts | None, k: int) -> tuple[Span, ...]:
    """The spans of ordered sets with the outcomes of each, most frequent first."""
    if counts is None or not counts.weights.sum() > 0:
        return ()
    ends, y = np.divmod(counts.labels, k)
    different, place = np.unique(ends, return_inverse=True)
    table = np.zeros((len(different), k))
    table[place, y] = counts.weights[:, 0]
    total = table.sum(axis=1)
    order = np.argsort(-total, kind="stable")
    return tuple(
        Span(
            int(different[i] // k),
            int(different[i] % k),
            float(total[i] / total.sum()),
            tuple((table[i] / total[i]).tolist()),
        )
        for i in order.tolist()
        if total[i] > 0
    )


def _median(sizes: Mapping[int, float]) -> int:
    reached = np.cumsum(list(sizes.values())) >= 0.5 - 1e-12
    return int(list(sizes)[int(np.argmax(reached))])


def _constant_size(frequencies: Any, claimed: float | None) -> int | None:
    """How many of the most frequent classes have the claimed coverage together."""
    if claimed is None or not len(frequencies):
        return None
    return int(np.argmax(np.cumsum(frequencies) >= min(claimed, 1 - 1e-12) - 1e-12)) + 1


def _constant_score(frequencies: Any, t: float) -> float | None:
    """The level-set score of the classes that are more frequent than t."""
    if not len(frequencies):
        return None
    chosen = frequencies[frequencies > t]
    return float(1 + (t - chosen).sum())
