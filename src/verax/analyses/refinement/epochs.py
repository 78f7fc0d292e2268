"""The refinement of one epoch after another: the same rows, new forecasts, a number each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from verax.analyses.dealing import dealt
from verax.analyses.recalibration.choosing import mean_loss
from verax.analyses.recalibration.recalibration import rows_of
from verax.analyses.recalibration.rows import floors_of, relative
from verax.analyses.refinement.refinement import refinement
from verax.analyses.refinement.scaling import held_out_losses
from verax.common.checks import check_count
from verax.inference.intervals import check_seed
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle
from verax.inputs.memory import holds_lists
from verax.inputs.options import Reading, reads
from verax.inputs.rows import one_class_each
from verax.scores.base import Rule, losses_of
from verax.scores.gradients.logits import check_trainable
from verax.scores.registry import RULES, name_of, parse

QUICK = "temperature"
_PASS = RULES["log_score"]


class RefinementLoss:
    """The cross-validated loss after recalibration, as a number to monitor while a model trains.

    With temperature scaling, the default, a call takes a few passes over the rows: milliseconds for 5,000
    rows of 10 classes. The search begins where that of the last call ended. Other methods take as long as
    `vx.refinement` does.

    Parameters
    ----------
    rule : Rule or str, default "log_score"
        The proper rule that is minimised and measured.
    method : str or sequence of str, default "temperature"
        How to recalibrate, as in `vx.recalibrate`.
    folds : int, default 5
        Number of folds.
    seed : int, default 0
        Random seed of the folds.

    Examples
    --------
    >>> from verax.selection import RefinementLoss
    >>> loss = RefinementLoss("brier")
    >>> y, p = [0, 1, 0, 1, 1, 0] * 30, [0.02, 0.9, 0.6, 0.3, 0.99, 0.1] * 30
    >>> round(loss(y, p), 3)
    0.268
    """

    def __init__(
        self,
        rule: Rule | str = "log_score",
        *,
        method: str | Sequence[str] = QUICK,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.rule: Rule = parse(rule)
        self.method: str | Sequence[str] = method
        check_count("folds", folds, least=2)
        check_seed(seed)
        self.folds: int = folds
        self.seed: int = seed
        self._start: float | None = None

    @reads
    def __call__(self, y: object, p: object = None, **read: Unpack[Reading]) -> float:
        """The mean loss of the rows, each recalibrated by a fit that has not seen its fold.

        Parameters
        ----------
        y
        p
        **read

        Returns
        -------
        float
            The refinement. Lower is better.
        """
        if self.method != QUICK or isinstance(y, Handle) or holds_lists(y, p):
            how: dict[str, Any] = {"method": self.method, "folds": self.folds, "seed": self.seed}
            return float(refinement(y, p, rule=self.rule, ordered=self.rule.ordinal, **how, **read))
        forecasts = one_class_each(Forecasts(y, p, ordered=self.rule.ordinal, **_given(read)))
        check_trainable(self.rule, forecasts.n_classes)
        # One pass that checks the rows on the way, at a third of the price of `check`.
        losses_of([_PASS], forecasts)
        outcomes, rows, weights = rows_of(forecasts)
        folds = dealt(len(outcomes), forecasts.groups, self.folds, self.seed, weights)
        w = relative(weights, len(outcomes))
        found = []
        for floor in floors_of(rows):
            z = np.ascontiguousarray(np.log(np.maximum(rows, floor)).T)
            losses, t = held_out_losses(self.rule, z, outcomes, w, folds, self._start)
            found.append((mean_loss(losses, weights), t))
        loss, self._start = min(found)
        return loss

    def __repr__(self) -> str:
        return f"RefinementLoss({name_of(self.rule)!r}, method={self.method!r})"


def _given(read: Reading) -> dict[str, Any]:
    return {name: value for name, value in read.items() if name not in ("invalid", "positive")}
