"""Checks of predictions that are not in memory: what sums, extremes and hashes of rows tell of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.parts import probabilities
from verax.analyses.samples import Sketch, row_hashes
from verax.common.hashing import mixed
from verax.common.summaries import Array, Size, Sizes, Summary, Truth, Valued, merges, only_counts
from verax.engines.histograms import compiled
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import Part, Recipe
from verax.report.breakdowns import MOST_VALUES, Breakdowns
from verax.report.checks import (
    NO_COPIES,
    Check,
    certain,
    impossible,
    left_out_check,
    observed,
    saturated,
    small,
    unpredicted,
)
from verax.report.problem import Problem
from verax.report.words import count, percent

# Rows that are off one by more than this are counted.
_OFF = 1e-6


class _Off(Array):
    """Numbers of rows, which add up, and the largest differences."""

    def __init__(self, *shape: Size) -> None:
        super().__init__("f8", *shape, least=0)
        self.names = {"both_off": _both_off}

    def merged(self, name: str) -> str:
        return f"both_off(self.{name}, other.{name})"

    def read(self, stored: Any, sizes: Sizes) -> Any:
        found = super().read(stored, sizes)
        only_counts(found[:, 0])
        return found


def _both_off(a: Floats, b: Floats) -> Floats:
    return np.stack([a[:, 0] + b[:, 0], np.maximum(a[:, 1], b[:, 1])], axis=1)


class Survey(Summary, kind="survey"):
    """What was seen in the rows.

    Attributes
    ----------
    weighted, named : bool
        Whether rows have weights, and ids.
    rows : Sketch
        Hashes of the rows.
    ids : Sketch or None
        Hashes of their ids.
    off : array of shape (M, 2)
        For each model the number of rows that do not sum to one, and the largest difference.
    certain : array of shape (M,)
        How many probabilities are exactly 0 or 1.
    least, most : array of shape (M, K)
        The extremes of each column.
    """

    weighted: bool = merges(Truth("any"))
    named: bool = merges(Truth("first"))
    rows: Sketch = merges(Valued(Sketch))
    ids: Sketch | None = merges(Valued(Sketch, optional=True))
    off: Floats = merges(_Off("models", 2))
    certain: Ints = merges(Array("i8", "models", least=0))
    least: Floats = merges(Array("f8", "models", "classes", how="least"))
    most: Floats = merges(Array("f8", "models", "classes", how="most"))


@dataclass(frozen=True)
class SurveyRecipe(Recipe[Survey]):
    """Look at the rows of all models."""

    def take(self, part: Part) -> Survey:
        """At some rows."""
        return self.more(part, None)

    def more(self, part: Part, found: Survey | None) -> Survey:
        """At some rows, as far as they may add to what was seen before."""
        forecasts = [probabilities(part, name) for name in part.models]
        seen = [_looked_over(p) for p in forecasts]
        off, sure, least, most = (np.array(column) for column in zip(*seen, strict=True))
        ids = None if part.ids is None else _hashes_of(part.ids)
        return Survey(
            part.rows.weights is not None,
            part.ids is not None,
            Sketch.of(_told_apart(part, forecasts, int(sure.min())), None if found is None else found.rows),
            None if ids is None else Sketch.of(ids, None if found is None else found.ids),
            off,
            sure,
            least,
            most,
        )


def _told_apart(part: Part, forecasts: list[Floats], sure: int) -> Any:
    """The hashes of rows; rows of zeros and ones, of which every model has at least `sure`, have their own.

    They are alike without being copies.
    """
    hashes = row_hashes(part)
    if sure < forecasts[0].shape[1]:
        return hashes
    alike = saturated(forecasts)
    numbers = part.start + np.arange(len(hashes)) if part.numbers is None else part.numbers
    # Other files have rows of the same numbers.
    salt = np.bitwise_xor.reduce(hashes)
    return np.where(alike, mixed(numbers.astype(np.uint64) ^ salt), hashes)


def _looked_over(p: Floats) -> tuple[list[float], int, Floats, Floats]:
    """How many rows do not sum to one and by how much, how many numbers are 0 or 1, and the extremes."""
    if compiled(len(p)):
        from verax.kernels.filling import look_over

        least, most = np.full(p.shape[1], np.inf), np.full(p.shape[1], -np.inf)
        n_off, largest, sure = look_over(np.ascontiguousarray(p.T), _OFF, least, most)
        return [float(n_off), largest], sure, least, most
    columns = np.ascontiguousarray(p.T)
    gap = np.abs(np.add.reduce(columns) - 1)
    off = [float(np.count_nonzero(gap > _OFF)), float(gap.max())]
    sure = int(np.count_nonzero((columns == 0) | (columns == 1)))
    return off, sure, columns.min(axis=1), columns.max(axis=1)


def _hashes_of(ids: Any) -> Any:
    """64 bits of each id, as text."""
    texts = np.asarray(ids).astype(str)
    points = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    state = np.zeros(len(texts), np.uint64)
    for column in points.T:
        # What is beyond the end of a text must not matter: parts have different longest texts.
        state = np.where(column > 0, mixed(state ^ column), state)
    return mixed(state)


# ---- in words ----------------------------------------------------------------------------------


def survey_checks(
    problem: Problem,
    survey: Survey,
    cards: Mapping[str, Scorecard],
    class_rows: Floats,
    parts: Breakdowns,
) -> list[Check]:
    """All checks, in the order in which the page shows them."""
    numbers = problem.n_rows * problem.n_classes
    shares = {name: n / numbers for name, n in zip(cards, survey.certain.tolist(), strict=True)}
    return [
        *([] if problem.skipped is None else [left_out_check(problem.skipped)]),
        _repeated(survey.rows),
        *([] if survey.ids is None else [_repeated_ids(survey.ids)]),
        _sums(problem, survey, list(cards)),
        impossible(problem, cards),
        unpredicted(problem, cards),
        observed(problem, class_rows),
        _constant(problem, survey, list(cards)),
        certain(problem, shares),
        *(small(name, left) for name, left in parts.left_out.items()),
        *(_many(name) for name in parts.too_many),
    ]


def _about(sketch: Sketch) -> tuple[float, str]:
    """How many rows repeat another one, and that number in words."""
    n, error = sketch.repeats()
    share = n / sketch.n_rows
    if sketch.exact:
        return share, f"{count(n, 'row')} ({percent(share)})"
    return share, f"About {percent(share)} of the rows (standard error {percent(error / sketch.n_rows)})"


def _repeated(sketch: Sketch) -> Check:
    question = "Rows that are there twice"
    share, number = _about(sketch)
    if not share:
        many = "" if sketch.exact else f" in a sample of {len(sketch.counts):,} rows"
        return Check(question, "fine", NO_COPIES.format(many))
    how = f"{number} repeat another one in outcome and probabilities. If these are copies, the intervals are "
    return Check(question, "look" if share > 0.01 else "note", how + "too narrow.")


def _repeated_ids(sketch: Sketch) -> Check:
    question = "Ids that are there twice"
    share, number = _about(sketch)
    if not share:
        return Check(question, "fine", "Every id is there once." if sketch.exact else "None in a sample.")
    belong = "If their rows belong together, pass them as groups: intervals widen."
    return Check(question, "note", f"{number} repeat an id. {belong}")


def _sums(problem: Problem, survey: Survey, models: list[str]) -> Check:
    question = "Rows that do not sum to one"
    if problem.logits or problem.normalize:
        made = "made of logits" if problem.logits else "rescaled, as asked"
        return Check(question, "fine", f"Probabilities were {made}, so every row sums to one.")
    if survey.off[:, 1].max() <= _OFF:
        return Check(question, "fine", "Every row sums to one within a millionth.")
    several = len(models) > 1
    rows = "; ".join(
        f"{f'{name}: ' if several else ''}{count(n, 'row')}"
        for name, (n, _) in zip(models, survey.off.tolist(), strict=True)
        if n
    )
    far = f"{rows} differ from one by more than a millionth, by up to {survey.off[:, 1].max():.2g}. "
    return Check(question, "note", far + "That is within the tolerance; used as is.")


def _constant(problem: Problem, survey: Survey, models: list[str]) -> Check:
    question = "Forecasts that are always the same"
    same = (survey.least == survey.most).all(axis=1).tolist()
    constant = [name for name, is_same in zip(models, same, strict=True) if is_same]
    if not constant or problem.n_rows == 1:
        return Check(question, "fine", "No: forecasts differ from row to row.")
    who = "" if len(models) == 1 else f"{', '.join(constant)}: "
    return Check(question, "look", f"{who}every row has the same probabilities. Are these predictions?")


def _many(name: str) -> Check:
    few = f"More than {MOST_VALUES} different values: no subgroup was kept while the rows were read."
    return Check(f"Subgroups of {name}", "note", f"{few} Put values together to see them.")
