"""Models compared over several data sets: signed ranks for pairs, mean ranks for all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from verax.analyses.comparison.ranked import letter_display
from verax.common.checks import check_choice, check_count, check_number
from verax.engines.pieces import all_pairs
from verax.errors import InputError, Remedy, join, show
from verax.inference.estimates import holm
from verax.inference.intervals import Interval, Resampling, bounded, few
from verax.inference.signflips import (
    Friedman,
    dirichlet_weights,
    friedman,
    midranks,
    practical_ranks,
    shift,
    signed_rank,
    without_rounding,
)
from verax.inputs.arrays import Floats
from verax.wings.select.datasets.given import Missing, ScoreTable, read_table
from verax.wings.select.datasets.result import DatasetComparison, DatasetDifference, DatasetModel
from verax.wings.select.directions import is_higher_better

# With fewer data sets even a model that is always better has a p-value above 5 percent.
LEAST = 6
TOO_FEW = f"no test: fewer than {LEAST} data sets"


def compare_datasets(
    table: object = None,
    *,
    datasets: object = None,
    models: object = None,
    scores: object = None,
    better: Literal["lower", "higher"] | None = None,
    rule: str | None = None,
    missing: Missing = "refuse",
    rope: float = 0.0,
    confidence: float = 0.95,
    draws: int = 20_000,
    seed: int = 0,
) -> DatasetComparison:
    """Compare models over several data sets by their mean ranks and by signed ranks of their differences.

    Data sets are the independent units. With fewer than six there is no test, because none could be
    significant: ranks are shown without intervals and p-values.

    Parameters
    ----------
    table : mapping, frame or array_like of shape (N, M), optional
        The score of each model on each data set. A mapping from data sets to scores by model, to scorecards
        by model, or to comparisons. A frame: long, with columns of data sets, models and scores, or wide,
        with a column of data sets and one per model. An array with a row per data set.
    datasets : str or array_like, optional
        The column of data sets of a frame; by default one called dataset, or the first that holds no numbers.
        Without `table`, the data set of each score. With an array, names of its rows.
    models : str or array_like, optional
        The column of models of a long frame; by default one called model. Without `table`, the model of each
        score. With an array, names of its columns.
    scores : str or array_like, optional
        The column of scores of a long frame; by default the only one of numbers. Without `table`, the scores.
    better : {"lower", "higher"}, optional
        Which scores are better. By default as the name of the scores says: rules are losses, accuracies are
        not. Needed where the name does not say it.
    rule : str, optional
        Which score of cards or comparisons to use; by default the first.
    missing : {"refuse", "drop"}, default "refuse"
        What to do with data sets that lack the score of some model: refuse them, or leave them out.
    rope : float, default 0.0
        Half the width of the region of practical equivalence: models whose scores differ by less are alike
        for practical purposes.
    confidence : float, default 0.95
        Confidence level of the intervals and tests.
    draws : int, default 20_000
        Number of draws from the posterior of the Bayesian signed-rank test.
    seed : int, default 0
        Random seed.

    Returns
    -------
    DatasetComparison
        Mean ranks, Friedman's test, and the differences of all pairs.

    Raises
    ------
    InputError
        If a score is missing, or there are several for a data set and model.

    See Also
    --------
    compare : Models on the rows of one data set.
    compare_folds : Models over the folds of one data set.

    References
    ----------
    Demsar (2006), jmlr.org/papers/v7/demsar06a; Pratt (1959), doi:10.1080/01621459.1959.10501526; Benavoli,
    Corani, Demsar and Zaffalon (2017), jmlr.org/papers/v18/16-305.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> base = rng.uniform(0.1, 0.4, 12)
    >>> table = {f"data {i}": {"new": x, "old": x + 0.02, "naive": x + 0.2} for i, x in enumerate(base)}
    >>> found = vx.compare_datasets(table, better="lower", rope=0.01)
    >>> found.best(), found.difference("new", "old").p_value
    ('new', 0.00048828125)
    """
    check_choice("better", better, ("lower", "higher", None))
    check_choice("missing", missing, get_args(Missing))
    rope = check_number("rope", rope, "must be a number of at least 0", lambda value: value >= 0)
    check_count("draws", draws, least=100)
    plan = Resampling.checked(confidence, 1000, seed)
    given, left_out = read_table(table, datasets, models, scores, rule).complete(missing)
    _check(given)
    higher = is_higher_better(given.score, better)
    losses = -given.values if higher else given.values
    losses = without_rounding(losses, float(np.abs(losses).max()))
    n = len(given.datasets)
    ranks = midranks(losses)
    tested = n >= LEAST
    pairs = _differences(given, losses, rope, plan, draws, tested=tested)
    if higher:
        pairs = [replace(d, difference=-d.difference, interval=-d.interval) for d in pairs]
    return DatasetComparison(
        _models(given, ranks, pairs, plan, tested=tested),
        pairs,
        friedman(ranks) if tested else Friedman(math.nan, math.nan),
        given.score,
        given.datasets,
        given.models,
        given.values,
        rope,
        plan.confidence,
        higher,
        left_out,
    )


def _check(given: ScoreTable) -> None:
    """Refuse too few models, no data sets, and infinite scores."""
    if len(given.models) < 2:
        raise InputError(
            "must name at least two models", argument="models", found=f"there are {len(given.models)}"
        )
    if not len(given.datasets):
        raise InputError("must have scores of all models on some data set", argument="table", kind="length")
    rows, columns = np.nonzero(~np.isfinite(given.values))
    if len(rows):
        shown = [
            f"{given.models[c]} on {show(given.datasets[r])}"
            for r, c in zip(rows[:3], columns[:3], strict=True)
        ]
        raise InputError(
            "must be finite",
            argument="scores",
            kind="finite",
            found=f"{join(shown)} {'is' if len(rows) == 1 else 'are'} infinite",
            count=len(rows),
            remedies=[Remedy("Use a bounded score, such as brier, or a log score with a floor.")],
        )


def _differences(
    given: ScoreTable, losses: Floats, rope: float, plan: Resampling, draws: int, *, tested: bool
) -> list[DatasetDifference]:
    """The differences of all pairs of models, of losses."""
    n, largest = len(losses), float(np.abs(losses).max())
    weights = dirichlet_weights(n, draws, plan.seed)
    differences = []
    for a, b in all_pairs(len(given.models)):
        gaps = losses[:, a] - losses[:, b]
        # Equal differences of other scores are rounded otherwise.
        gaps = np.sign(gaps) * without_rounding(np.abs(gaps), largest)
        middle, low, high = shift(gaps, plan.confidence)
        how: dict[str, Any] = {"method": "signed ranks", "confidence": plan.confidence}
        interval = Interval.undefined(TOO_FEW, **how)
        better, alike, worse = math.nan, math.nan, math.nan
        if tested:
            known = not math.isnan(low)
            interval = Interval(low, high, **how) if known else Interval.undefined("too few data sets", **how)
            better, alike, worse = practical_ranks(gaps, rope, weights)
        differences.append(
            DatasetDifference(
                given.models[a],
                given.models[b],
                middle,
                interval,
                signed_rank(gaps).p_value if tested else math.nan,
                math.nan,
                int((gaps < 0).sum()),
                int((gaps == 0).sum()),
                int((gaps > 0).sum()),
                better,
                alike,
                worse,
            )
        )
    adjusted = holm(np.array([d.p_value for d in differences]))
    return [replace(d, p_adjusted=float(p)) for d, p in zip(differences, adjusted, strict=True)]


def _models(
    given: ScoreTable, ranks: Floats, pairs: list[DatasetDifference], plan: Resampling, *, tested: bool
) -> list[DatasetModel]:
    """Models by their mean ranks."""
    mean, n = ranks.mean(axis=0), len(ranks)
    order = np.argsort(mean, kind="stable").tolist()
    names = [given.models[i] for i in order]
    apart = [(d.a, d.b) for d in pairs if d.p_adjusted <= 1 - plan.confidence]
    letters = letter_display(names, apart) if tested else dict.fromkeys(names, "")
    models = []
    for place, i in enumerate(order):
        interval = Interval.undefined(TOO_FEW, confidence=plan.confidence)
        if tested:
            variance = ranks[:, i].var(ddof=1) / n
            ends = 1.0, float(len(names))
            known = bounded(float(mean[i]), float(variance), n - 1, n, ends, plan)
            interval = known.by("t of ranks", few(n, "data set", "data sets"))
        models.append(
            DatasetModel(
                given.models[i],
                float(mean[i]),
                interval,
                place + 1,
                letters[given.models[i]],
                float(given.values[:, i].mean()),
                int((ranks[:, i] == ranks.min(axis=1)).sum()),
            )
        )
    return models
