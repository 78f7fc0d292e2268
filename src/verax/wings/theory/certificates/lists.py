"""Certificates of scores of top lists and of sets, which are compared under exact truths.

A score is consistent for lists of k classes if no such list has a smaller expected loss than a true one: the
k most likely classes with their probabilities. It is strictly so if every other list has a larger one. It is
comparable across lengths if a longer true list never has a larger expected loss than a shorter one
(Resin 2023, Theorems 8 to 10).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np

from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.lists.toplists import TopLists
from verax.scores.combinators import Padded
from verax.scores.sets import SetRule
from verax.wings.theory.certificates.probes import ForecastPanel, expected, magnitude
from verax.wings.theory.certificates.sweeps import compositions

# Confidences and truths are multiples of one part of these, by the number of classes, so that the uniform
# truth is among them.
_PARTS = {2: 60, 3: 24, 4: 24, 5: 15, 6: 12, 7: 7, 8: 8}
# Exact lists differ by far more than rounding: this share of the largest loss is none.
_ROUNDING = 1e-11

List = tuple[Fraction | None, ...]


@dataclass(frozen=True)
class ListFailure:
    """A list that does as well as a true one, or better, or a longer true list that does worse.

    Attributes
    ----------
    lists : tuple of two lists
        The list and the true one; classes that are not listed have None.
    truth : tuple of Fraction
        The distribution of the outcome.
    losses : tuple of two floats
        Their expected losses.
    """

    lists: tuple[List, List]
    truth: tuple[Fraction, ...]
    losses: tuple[float, float]


def list_findings(rule: Padded, n_classes: int) -> Iterator[tuple[str, int, ListFailure | None]]:
    """Each property of lists, the number of comparisons, and a failure if there is one."""
    parts = _PARTS[n_classes]
    truths = compositions(parts, n_classes)
    # Lists have every set of classes, and the rule is symmetric: truths in one order stand for all.
    truths = truths[(np.diff(truths, axis=1) <= 0).all(axis=1)]
    panels = [_Panel.of(rule, truths, k, parts) for k in range(1, n_classes)]
    for strict in (False, True):
        for panel in panels:
            name = f"{'strictly_' * strict}consistent_top_{panel.k}"
            yield name, panel.gap.size, panel.failure(strict=strict)
    yield "comparable_lengths", len(truths) * (len(panels) - 1), _incomparable(panels)


def lists_note(n_classes: int) -> str:
    """The comparisons, in words."""
    parts = _PARTS[n_classes]
    return (
        f"Top lists: all lists with confidences that are multiples of 1/{parts}, invalid ones too, were "
        "compared with the true lists of all such truths, length by length; truths that differ in the "
        "numbering of classes count once."
    )


@dataclass(frozen=True)
class _Panel:
    """All lists of k classes, and their expected losses under all truths."""

    k: int
    parts: int
    truths: Ints
    # Positions of the listed classes, and their confidences in parts, (L, k).
    sets: Ints
    counts: Ints
    # Expected losses minus that of the first true list, (L, T), and what rounding may do to it.
    gap: Floats
    doubt: float
    true: Bools
    # The first true list of each truth, and its expected loss.
    honest: Ints
    best: Floats

    @classmethod
    def of(cls, rule: Padded, truths: Ints, k: int, parts: int) -> _Panel:
        m = truths.shape[1]
        some = np.array(list(combinations(range(m), k)))
        # The last number is what a list leaves.
        shares = compositions(parts, k + 1)[:, :k]
        sets, counts = np.repeat(some, len(shares), axis=0), np.tile(shares, (len(some), 1))
        lists = TopLists.from_arrays(sets, counts / parts, n_classes=m)
        loss = np.stack([rule.samples(np.full(len(sets), y), lists) for y in range(m)], axis=1)
        # A true list has the largest probabilities of its truth: none outside is above its smallest.
        listed_counts = truths.T[sets].transpose(2, 0, 1)
        largest = truths[:, :k].sum(axis=1)
        true = ((listed_counts == counts).all(axis=2) & (counts.sum(axis=1) == largest[:, None])).T
        values = expected(loss, truths.T / parts)
        honest = true.argmax(axis=0)
        best = values[honest, np.arange(len(truths))]
        with np.errstate(invalid="ignore"):
            gap = np.where(values == best, 0.0, values - best)
        doubt = _ROUNDING * float(magnitude(loss).max())
        return cls(k, parts, truths, sets, counts, gap, doubt, true, honest, best)

    def failure(self, *, strict: bool) -> ListFailure | None:
        """The first list that beats a true one; of strict scores, or one that ties without being true."""
        wrong = self.gap < -self.doubt
        if strict:
            wrong |= (np.abs(self.gap) <= self.doubt) & ~self.true
        places = np.argwhere(wrong)
        if not len(places):
            return None
        row, t = places[0]
        losses = float(self.best[t] + self.gap[row, t]), float(self.best[t])
        return ListFailure((self.list(row), self.list(self.honest[t])), self.truth(t), losses)

    def list(self, row: int) -> List:
        listed = dict(zip(self.sets[row].tolist(), self.counts[row].tolist(), strict=True))
        m = self.truths.shape[1]
        return tuple(Fraction(listed[c], self.parts) if c in listed else None for c in range(m))

    def truth(self, t: int) -> tuple[Fraction, ...]:
        return tuple(Fraction(n, self.parts) for n in self.truths[t].tolist())


def _incomparable(panels: list[_Panel]) -> ListFailure | None:
    """A truth under which a longer true list has the larger expected loss."""
    for short, long in pairwise(panels):
        with np.errstate(invalid="ignore"):
            worse = long.best - short.best > short.doubt
        for t in np.flatnonzero(worse)[:1]:
            lists = long.list(long.honest[t]), short.list(short.honest[t])
            return ListFailure(lists, long.truth(t), (float(long.best[t]), float(short.best[t])))
    return None


# ---- sets elicited by set scores


# The most truths that all sets are compared under.
_MOST_TRUTHS = 5000
_ROUNDING_OF_SETS = 1e-9


def elicitation_note(rule: SetRule, panel: ForecastPanel) -> str:
    """Whether any of the 2**K sets has a smaller expected loss than the set that the truth asks for.

    The search for properties compares the sets that some forecast asks for; this compares all of them.
    """
    truths = np.asarray(panel.p, float)[:_MOST_TRUTHS]
    k = truths.shape[1]
    masks = np.array(list(product([False, True], repeat=k)))
    losses = rule.by_set(masks)
    with np.errstate(invalid="ignore"):
        expected = np.where(np.isfinite(losses).all(axis=1), truths @ np.nan_to_num(losses.T), np.inf)
    elicited = np.einsum("nk,nk->n", truths, rule.by_set(rule.elicited(truths)))
    beaten = int(np.count_nonzero(expected.min(axis=1) < elicited - _ROUNDING_OF_SETS))
    result = "none beats" if not beaten else f"{beaten:,} times one beats"
    return (
        f"Forecasts stand for the sets that they ask for. All {len(masks):,} sets were compared under "
        f"{len(truths):,} truths: {result} the set that the truth asks for."
    )
