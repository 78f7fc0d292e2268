"""`conformal`: sets with a guaranteed coverage, by split conformal prediction."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Unpack

from verax.analyses.sets.conformal_result import Conformal
from verax.analyses.sets.nonconformity import Nonconformity
from verax.analyses.sets.quantiles import GroupRecipe, ScoreCounts, ScoreRecipe
from verax.analyses.unitsums import check_weight
from verax.inference.intervals import check_seed
from verax.inputs.groups import check_several
from verax.inputs.memory import open_rows
from verax.inputs.options import Reading, reads
from verax.inputs.sets.rows import check_level
from verax.scores.base import Rule


@reads
def conformal(
    y: object,
    p: object = None,
    *,
    level: float = 0.9,
    score: Rule | str = "lac",
    seed: int = 0,
    **read: Unpack[Reading],
) -> Conformal:
    """Calibrate prediction sets to a coverage, by split conformal prediction.

    The nonconformity of a class says how unusual it would be as the outcome. The threshold is the
    ceil((n + 1) level)-th smallest nonconformity of n calibration rows that the model has not seen. A set
    holds the classes whose nonconformity is at most that. If new rows are exchangeable with the calibration
    rows, their sets cover with a probability of at least the level, on average over rows: not for every
    class or subgroup, which `evaluate_sets` tells.

    - "lac": one minus the probability of the class. The smallest sets on average; doubtful rows may have
      empty ones.
    - "aps": the probability of all likelier classes, plus a share of its own that looks random. Sets adapt
      to how hard a row is, and are larger.
    - a rule: the loss if the class happens. RPS gives sets of ordered classes without gaps.

    With groups, the rows of a group count as much as one row together, and the guarantee is for a row of a
    new group. With weights, a new row has the mean weight.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    level : float, default 0.9
        The coverage to reach.
    score : {"lac", "aps"} or Rule, default "lac"
        The nonconformity score.
    seed : int, default 0
        Random seed of the shares of "aps".
    **read

    Returns
    -------
    Conformal
        The threshold, ready to `apply` to new rows.

    See Also
    --------
    sets : Judge the sets on rows of their own.

    References
    ----------
    Sadinle, Lei and Wasserman (2019), doi:10.1080/01621459.2017.1395341; Romano, Sesia and Candes (2020),
    arXiv:2006.02544; Lee, Barber and Willett (2023), arXiv:2306.06342 (groups)

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(4), 2000)
    >>> y = np.array([rng.choice(4, p=row) for row in p])
    >>> found = vx.conformal(y[:1000], p[:1000], level=0.9)
    >>> f"{vx.evaluate_sets(y[1000:], found.apply(p[1000:])).coverage:.3f}"
    '0.887 (0.866 to 0.905)'
    """
    asked, measure = check_level(level), Nonconformity.of(score, _seed(seed))
    handle = open_rows(y, p, ordered=measure.ordinal, dense=True, single=True, **read)
    model = handle.one_model()
    found = handle.summarise({"scores": ScoreRecipe(model, measure), "groups": GroupRecipe(model)})
    counts: ScoreCounts = found["scores"]
    uneven = counts.least < counts.most
    shares = found["groups"].by_label()
    if shares is not None:
        check_several(len(shares))
        counts = handle.summarise({"scores": ScoreRecipe(model, measure, shares)})["scores"]
    check_weight(counts.weight)
    n = counts.n if shares is None else len(shares)
    # Of decimal levels, (n + 1) * level is a whole number as often as it should be.
    exact = Fraction(asked).limit_denominator(10**6)
    threshold, within = counts.quantile(float(exact), counts.weight / n)
    return Conformal(
        asked,
        measure,
        threshold,
        counts.n,
        None if shares is None else n,
        handle.n_classes,
        handle.classes,
        within,
        tuple(_notes(asked, threshold, n, within, grouped=shares is not None, uneven=uneven)),
    ).with_skipped(found.skipped)


def _seed(seed: int) -> int:
    check_seed(seed)
    return int(seed)


def _notes(
    level: float, threshold: float, n: int, within: float, *, grouped: bool, uneven: bool
) -> list[str]:
    """What to know of the construction, a sentence each."""
    notes = []
    unit = "groups" if grouped else "rows"
    if math.isinf(threshold):
        need = math.ceil(level / (1 - level) - 1e-9)
        notes.append(
            f"Too few calibration {unit}: {n:,}, and level {level:g} needs at least {need:,}. Every set has "
            "all classes."
            if n < need
            else "The level takes in rows whose score is infinite, so every set has all classes."
        )
    if grouped:
        notes.append(
            "Every group counts the same (group-weighted quantile). The guarantee is for rows of new groups."
        )
    if uneven:
        notes.append("A new row is given the mean weight; with other weights the coverage is approximate.")
    if within > 0:
        notes.append(f"Scores were counted in bins: the threshold is at most {within:.2g} too large.")
    return notes
