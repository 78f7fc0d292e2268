"""Row statistics of top lists, by array calls and compiled.

A list is scored as the distribution it is padded to: listed classes have their confidence, all
others share what is left. Its statistics need the listed entries only, so their cost is that of the
list, whatever the number of classes. An invalid list is scored as its largest valid sublist plus a fine,
except by rules that look at the answer alone: whether it is right does not depend on the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from verax.common.checks import as_float, beyond_floats
from verax.engines.stats import Formula, Reduction, RowStats, compute, formula_for, reduction, validate
from verax.errors import RuleError
from verax.inputs.arrays import Array, Floats, Ints
from verax.inputs.lists.ragged import ListMasses, Ragged
from verax.inputs.lists.rows import NO_ORDER, ListBatch, ListRows
from verax.kernels.statistics import PLACE

# What an invalid list costs by every rule that does not say otherwise.
FINE = 1.0

_RANKS = frozenset({"above", "tied"})
# What most rules need, kept between calls, and what is made of these and of the survey.
_KEPT = ("p_true", "rest_sq", "hit")
_KNOWN = frozenset({*_KEPT, "log_true", "invalid"})
_NOT_HERE = {
    "hit_lowest": (
        "A top list does not say which of its unlisted classes has the lowest index, so ties cannot be "
        "broken by index: the score of an empty list would depend on the numbering of the classes. "
        "Use ties='fractional'."
    ),
    "decision": "A top list need not name a class; use `hit`, which shares ties, or `right`.",
}


def _refuse(needs: Collection[str]) -> None:
    for name in sorted(needs):
        if name.startswith("cdf_"):
            raise RuleError(NO_ORDER)
        if name in _NOT_HERE:
            raise RuleError(_NOT_HERE[name])


# ---- what depends on the kind of rows -------------------------------------------------------------


@dataclass(frozen=True)
class Fined:
    """A rule that does not look at the validity of lists, plus the fine for invalid ones."""

    rule: Formula

    @property
    def needs(self) -> frozenset[str]:
        return self.rule.needs | {"invalid"}

    def formula(self, stats: RowStats) -> Array:
        return stats.loss(self.rule) + FINE * stats.invalid


@dataclass(frozen=True)
class AnswerAlone:
    """A rule that looks at the answer alone: at the classes that a list puts first, valid or not."""

    rule: Formula

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"answered"})

    def formula(self, stats: RowStats) -> Array:
        return self.rule.formula(RowStats(stats.xp, stats.n_classes, hit=stats.answered))


@formula_for.register
def _(_rows: ListRows, rule: Formula) -> Formula:
    if getattr(rule, "answer_alone", False):
        return AnswerAlone(rule)
    return rule if {"invalid", "answered"} & rule.needs else Fined(rule)


@validate.register
def _(batch: ListBatch) -> tuple[bool, bool]:
    return True, batch.weights is None or bool(batch.weights.any())


@compute.register
def _(batch: ListBatch, needs: Collection[str]) -> RowStats:
    _refuse(needs)
    lists, survey, m = batch.lists, batch.survey, as_float(batch.n_classes)
    t, row = lists.confidences, lists.row_of
    kept = np.arange(t.size) < (lists.offsets[:-1] + survey.kept)[row]
    is_outcome = lists.classes == batch.y[row]
    hit_entries = np.flatnonzero(is_outcome & kept)
    unlisted = m - survey.kept
    with np.errstate(divide="ignore", invalid="ignore"):
        proxy = np.where(unlisted > 0, survey.unaccounted_kept / unlisted, 0.0)
    others = unlisted - 1
    p_true = proxy.copy()
    p_true[row[hit_entries]] = t[hit_entries]
    others[row[hit_entries]] += 1
    rest_sq = lists.sums(np.where(kept & ~is_outcome, t * t, 0.0)) + (others * proxy) * proxy
    stats = RowStats(np, batch.n_classes, p_true=p_true, rest_sq=rest_sq)
    if beyond_floats(batch.n_classes):
        # The share of an unlisted class is below all floats; its logarithm is not.
        with np.errstate(divide="ignore"):
            stats.log_p = np.log(survey.unaccounted_kept) - math.log(batch.n_classes)
            stats.log_p[row[hit_entries]] = np.log(np.minimum(t[hit_entries], 1.0))
    outcome_entries = np.flatnonzero(is_outcome)
    invalid = survey.kept < lists.lengths
    if {"hit", "answered"} & set(needs):
        hit = _hits(lists, survey, hit_entries, m)
        stats.add(hit=hit, answered=np.where(invalid, _first(lists, outcome_entries), hit))
    if "right" in needs:
        stats.add(right=_right(batch))
    listed = np.zeros(batch.y.size)
    listed[row[outcome_entries]] = 1.0
    stats.add(
        invalid=invalid.astype(np.float64),
        length=lists.lengths.astype(np.float64),
        unaccounted=survey.unaccounted,
        listed=listed,
    )
    if _RANKS & set(needs):
        stated = np.full(batch.y.size, np.inf)
        stated[row[outcome_entries]] = t[outcome_entries]
        stats.add(
            above=lists.sums((t > stated[row]).astype(np.float64)),
            tied=lists.sums((t == stated[row]).astype(np.float64)),
        )
    return stats


def _hits(lists: Ragged, survey: ListMasses, hit_entries: Ints, m: float) -> Floats:
    """1/t for outcomes among the t most likely classes; 1/m for all where the distribution is uniform."""
    top = np.where(survey.kept > 0, lists.firsts, 0.0)
    return np.where(m * top <= 1 + survey.tolerance, 1 / m, _first(lists, hit_entries))


def _first(lists: Ragged, outcomes: Ints) -> Floats:
    """1/t for outcomes among the t classes that a list puts first; `outcomes` are their entries."""
    row, t, top = lists.row_of, lists.confidences, lists.firsts
    n_first = lists.sums((t == top[row]).astype(np.float64))
    shares = np.zeros(lists.n_rows)
    best = outcomes[t[outcomes] == top[row[outcomes]]]
    shares[row[best]] = 1 / n_first[row[best]]
    return shares


def _right(batch: ListBatch) -> Floats:
    """1 where the outcome is the class decided for; an empty list decides for none."""
    decided = batch.lists.decisions(None if batch.vocabulary is None else batch.vocabulary.ranks)
    return np.asarray(decided == batch.y, np.float64)


class _ListReduction(Reduction):
    def __init__(self, rows: ListRows, block: int, needs: frozenset[str]) -> None:
        from verax.kernels.lists import row_stats

        _refuse(needs)
        super().__init__(rows.n_classes, block, needs)
        self._kernel = row_stats(ranks=bool(_RANKS & needs))
        self._kept = rows.kept if needs <= _KNOWN else None

    def __call__(self, batch: ListBatch) -> tuple[RowStats, int]:
        n = batch.n_rows
        block = batch.start, batch.start + n
        known = None if self._kept is None else self._kept.get(*block)
        if known is not None:
            for name, values in known.items():
                self._buffer[PLACE[name], :n] = values
            np.less(batch.survey.kept, batch.lists.lengths, out=self._buffer[PLACE["invalid"], :n])
            return self._views(n), 0
        self._read(batch)
        if self._kept is not None:
            self._kept.put(*block, {name: self._buffer[PLACE[name], :n] for name in _KEPT})
        return self._views(n), 0

    def _read(self, batch: ListBatch) -> None:
        lists, survey = batch.lists, batch.survey
        self._kernel(
            lists.classes,
            lists.confidences,
            lists.offsets,
            survey.unaccounted,
            survey.kept,
            survey.unaccounted_kept,
            batch.y,
            as_float(batch.n_classes),
            survey.tolerance,
            self._buffer,
        )
        if "right" in self.needs:
            self._buffer[PLACE["right"], : batch.y.size] = _right(batch)


@reduction.register
def _(rows: ListRows, block: int, needs: frozenset[str]) -> Reduction:
    return _ListReduction(rows, block, needs)
