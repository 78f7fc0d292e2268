"""Rules for selecting epochs, compared over the folds of cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from verax.analyses.folds.folds import compare_folds
from verax.analyses.folds.result import FoldComparison
from verax.common.checks import check_choice
from verax.errors import InputError, show
from verax.scores.base import Rule
from verax.selection.epochs import Epochs
from verax.selection.history import History

Quantity = Literal["value", "pearson", "spearman"]


def select_over_folds(
    histories: Sequence[Epochs],
    metric: str,
    rules: Sequence[str | Rule] | None = None,
    *,
    of: Quantity = "value",
    patience: int | None = None,
    repeats: int | None = None,
    test_train: float | None = None,
    confidence: float = 0.95,
) -> FoldComparison:
    """Compare rules by a metric of the epochs that they keep, over the folds of cross-validation.

    Parameters
    ----------
    histories : sequence of History
        The history of the training of each fold.
    metric : str
        What the kept epochs are judged by, such as "test_macro_f1".
    rules : sequence of str or Rule, optional
        Metrics to select by; by default all verax rules in the first history.
    of : {"value", "pearson", "spearman"}, default "value"
        Compare the metric at the epoch kept, or the correlation of each rule with the metric over the epochs.
    patience : int, optional
        Keep the epoch of early stopping with this patience instead of the best of all epochs.
    repeats : int, optional
        How many rounds of cross-validation there are; by default 1.
    test_train : float, optional
        The number of test rows of a fold divided by that of training rows; by default from the number of
        folds.
    confidence : float, default 0.95
        Confidence level of the intervals.

    Returns
    -------
    FoldComparison
        The mean of each rule, and differences with corrected intervals: folds share training rows, so their
        standard deviation understates the uncertainty.

    See Also
    --------
    verax.compare_folds : The same of any scores.

    Examples
    --------
    >>> from verax.selection import History, select_over_folds
    >>> folds = [
    ...     {"brier": [0.6, 0.5, 0.55], "pbs": [0.9, 0.8, 0.7], "test_f1": [0.3, 0.4, 0.5 + fold / 50]}
    ...     for fold in range(5)
    ... ]
    >>> found = select_over_folds([History.from_columns(each) for each in folds], "test_f1")
    >>> {model.name: round(model.mean, 3) for model in next(iter(found.models.values()))}
    {'pbs': 0.54, 'brier': 0.4}
    """
    check_choice("of", of, ("value", "pearson", "spearman"))
    if not isinstance(histories, (list, tuple)) or not all(isinstance(h, History) for h in histories):
        raise InputError(
            f"must be a list of histories, one per fold, not {show(histories)}",
            argument="histories",
            kind="type",
        )
    if len(histories) < 2:
        raise InputError("must have at least two folds", argument="histories", kind="length")
    chosen = histories[0].select(rules, metric)
    names = [rule for rule in chosen.rules if rule not in chosen.against]
    scores: dict[str, list[float]] = {name: [] for name in names}
    for history in histories:
        selection = history.select(names, metric, patience=patience)
        (judged,) = selection.against
        kept = selection.best if patience is None else selection.stops
        for name in names:
            if of == "value":
                value = kept[name].at(judged)
            else:
                value = getattr(selection.correlation(name, metric), of)
            scores[name].append(value)
    higher = of != "value" or histories[0].direction(metric) == "max"
    return compare_folds(
        scores=scores,
        better="higher" if higher else "lower",
        repeats=repeats,
        test_train=test_train,
        confidence=confidence,
    )
