"""`refinement`: the loss that is left after the best recalibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from verax.errors import InputError, passing
from verax.inputs.options import RowOptions, reads
from verax.scores.base import Rule
from verax.wings.recalibrate.analysis import recalibrate
from verax.wings.recalibrate.records import BEST
from verax.wings.select.refinement.result import Refinement


@reads
def refinement(
    y: object,
    p: object = None,
    *,
    rule: Rule | str | None = None,
    method: str | Sequence[str] = BEST,
    ordered: bool = False,
    folds: int = 5,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> Refinement:
    """Loss after the best recalibration: the part that recalibration cannot remove. Lower is better.

    The mean loss of the forecasts is split in two. The refinement is the loss after recalibration, on rows
    that the recalibration has not seen (cross-validation). The calibration
    part is the loss minus the refinement: what `recalibrate` gains. Of two models that will be recalibrated
    before use, the one with the lower refinement is better, whatever their losses.

    `decompose` also splits a loss into parts. Its miscalibration is the gain of an isotonic fit to each
    class or threshold, measured on the rows of the fit, so it is never negative and too large with few rows
    or many classes. Its remainder (uncertainty minus discrimination) is a refinement in sample. The parts
    here are those of a recalibration that can be deployed, on held-out rows. The calibration part is negative
    where recalibration makes forecasts worse.

    Parameters
    ----------
    y
        The model was not trained on these rows. Of more than 100,000 rows behind a handle the result is that
        of a random sample (`sampled`).
    p
    rule : Rule or str, optional
        The proper rule that is minimised and measured. By default the log score where it is finite, else RPS
        for ordered classes and Brier for others. Top lists need a symmetric rule.
    method : str or sequence of str, default "best"
        How to recalibrate, as in `recalibrate`. "temperature" is quick and enough to compare epochs of a
        training run. "best" may do nothing.
    ordered
    folds : int, default 5
        Number of folds. Rows of a group stay together.
    seed : int, default 0
        Random seed of the folds.
    confidence
    **read

    Returns
    -------
    Refinement
        The loss, the refinement and the calibration part, with confidence intervals.

    See Also
    --------
    recalibrate : The recalibration itself, ready to apply.
    decompose : Miscalibration, discrimination and uncertainty in sample.
    verax.selection.EarlyStopping : Early stopping by the refinement of every epoch.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach (2025), arXiv:2501.19195.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 3))
    >>> q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    >>> y = np.array([rng.choice(3, p=row) for row in q])
    >>> p = q**2 / (q**2).sum(axis=1, keepdims=True)  # overconfident
    >>> parts = vx.refinement(y, p, rule="log_score", method="temperature")
    >>> round(parts.loss.value, 3), round(parts.refinement.value, 3)
    (0.987, 0.871)
    >>> round(vx.log_score(y, q), 3)
    0.871
    """
    how = {"method": method, "rule": rule, "ordered": ordered, "folds": folds, "seed": seed}
    recalibration = recalibrate(y, p, **how, confidence=confidence, **read)  # type: ignore[arg-type]
    if recalibration.comparison is None:
        raise InputError(
            "must recalibrate: without it the refinement is the loss",
            argument="method",
            values=[recalibration.method],
            remedies=[passing(method="temperature"), passing(method=BEST)],
        )
    parts = Refinement.of(recalibration)
    if recalibration.sampled is not None:
        parts = parts.with_sample(*recalibration.sampled)
    return parts.with_skipped(recalibration.skipped)
