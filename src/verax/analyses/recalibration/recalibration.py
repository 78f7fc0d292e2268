"""`recalibrate`: which method improves the probabilities, and by how much on held-out rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from verax.analyses.dealing import dealt
from verax.analyses.list_samples import ListSample
from verax.analyses.recalibration.choosing import FoldedRows, mean_loss
from verax.analyses.recalibration.list_fitting import FoldedLists
from verax.analyses.recalibration.records import BEST, BLEND, TITLES, TITLES_OF_LISTS
from verax.analyses.recalibration.result import ListRecalibration, Recalibration
from verax.analyses.recalibration.rows import SMALLEST
from verax.analyses.recalibration.study import Study, has_strengths, notes_on_fits
from verax.analyses.sampled import rows_to_fit, sampled_lists
from verax.common.checks import check_choice, check_count, check_flag
from verax.errors import InputError, RuleError, passing
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.rows import NO_ORDER, ListRows
from verax.inputs.memory import holds_lists, open_rows
from verax.inputs.options import Reading, reads
from verax.inputs.pairs import one_class_each
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import Padded, padded
from verax.scores.gradients.logits import check_trainable
from verax.scores.metrics import needs_order
from verax.scores.registry import RULES, each_of, name_of, parse

_ONE_WAY = (
    "Of two kinds of groups, the one with fewer groups stays together in folds, and intervals allow for it "
    "alone."
)
# Methods that are for two classes only.
_TWO_CLASSES = {"quadratic", "beta", "spline"}


@reads
def recalibrate(
    y: object,
    p: object = None,
    *,
    method: str | Sequence[str] = BEST,
    rule: Rule | str | None = None,
    ordered: bool = False,
    folds: int = 5,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[Reading],
) -> Recalibration:
    """Recalibrate probabilities, with the cross-validated gain of each method.

    Gains are measured in cross-validation. "best" finds the method with the smallest cross-validated loss. If
    its gain is not significant (one-sided t test, 5 %), it does nothing. Otherwise it takes the simplest
    method that also gains and whose loss is within one standard error of the smallest. The gain of the choice
    is cross-validated as well, by repeating it without each fold. The methods, simplest first:

    - "none": nothing;
    - "temperature": the logarithms of the probabilities divided by one number;
    - "prior": a factor for the odds of each class (a prior shift);
    - "bcts": temperature with class offsets; for two classes that is Platt scaling;
    - "quadratic": a quadratic function of the log odds that does not decrease, for two classes;
    - "beta": beta calibration, for two classes;
    - "ordered": for ordered classes, a temperature, then one non-decreasing quadratic function of the log
      odds of all thresholds, and a factor for each class, held to those of "unchanged";
    - "svector": structured vector scaling, that is a temperature, then a slope and an offset for each class
      that are held to those of "unchanged";
    - "vector": a slope and an offset for each class;
    - "spline": a smooth non-decreasing function of the log odds, for two classes; its smoothness is chosen
      within the cross-validation;
    - "smatrix": structured matrix scaling, that is "svector" with a matrix of slopes, those off the diagonal
      held to zero most;
    - "dirichlet": Dirichlet calibration, that is matrix scaling of the log-probabilities, with a penalty on
      all but the diagonal (ODIR), whose strength is chosen within the cross-validation;
    - "isotonic": a non-decreasing function of the probability of each class, normalised; if `ordered`, of
      each threshold, kept monotone.

    "blend" is the average of all of them, weighted by their cross-validated losses: no single method that can
    be explained, but a lower loss in most experiments (studies/recalibration.md).

    Top lists are scaled as their padded distributions are, which keeps their classes, their order and their
    validity. The methods are "none", "temperature", "rest" (a factor for the probability of unlisted classes)
    and "temperature_rest" (both). The result is a `ListRecalibration`, whose `apply` takes lists.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K), or Handle
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows. The model was not
        trained on these rows. Or predictions that `scan` has opened, in place of both `y` and `p`; of more
        than 100,000 rows, or 8 million probabilities, the fit uses a random sample (`sampled`).
    p : array_like of shape (N, K) or (N,), or TopLists, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough. Or top lists.
    method : str or sequence of str, default "best"
        A method, "best", "blend", or methods among which to choose; a method by itself is taken whatever it
        gains.
    rule : Rule or str, optional
        The proper rule that is minimised and measured. By default the log score where it is finite, else RPS
        for ordered classes and Brier for others. An isotonic fit is the best by every proper score. Top lists
        need a symmetric rule, such as these two.
    ordered
    folds : int, default 5
        Number of folds. Rows of a group stay together, so there are no more folds than groups; of two kinds
        of groups it is those of the first that do, and for top lists those of the kind with fewer groups.
    seed : int, default 0
        Random seed of the folds.
    confidence
    **read

    Returns
    -------
    Recalibration
        The chosen method, ready to `apply`, and what each method gains; a `ListRecalibration` of top lists.

    See Also
    --------
    decompose : How much there is to gain.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), arXiv:1706.04599; Alexandari, Kundaje and Shrikumar (2020),
    arXiv:1901.06852; Kull, Silva Filho and Flach (2017), doi:10.1214/17-EJS1338SI; Kull et al. (2019),
    arXiv:1910.12656; Berta, Holzmüller, Jordan and Bach (2025), arXiv:2511.03685.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 3))
    >>> q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    >>> y = np.array([rng.choice(3, p=row) for row in q])
    >>> p = q**2 / (q**2).sum(axis=1, keepdims=True)  # overconfident
    >>> found = vx.recalibrate(y, p)
    >>> found.method, found.trial("temperature").detail
    ('temperature', 'temperature 2.01')
    >>> better = found.apply(p)
    """
    ordered = check_flag("ordered", ordered)
    check_count("folds", folds, least=2)
    check_seed(seed)
    check_confidence(confidence)
    chosen = None if rule is None else parse(rule)
    if holds_lists(y, p):
        if ordered:
            raise RuleError(NO_ORDER)
        crossed = open_rows(y, p, single=True, **read)
        handle = crossed.one_way()
        drawn, asking = sampled_lists(handle)
        how: dict[str, Any] = {"method": method, "folds": folds, "seed": seed, "confidence": confidence}
        made = recalibrate_lists(drawn, handle.n_classes, rule=chosen, **how).with_skipped(asking.skipped)
        return made if handle is crossed else replace(made, notes=(*made.notes, _ONE_WAY))
    asked = _asked(method, TITLES)
    in_order = needs_order([] if chosen is None else [chosen], ordered=ordered)
    y, p, own, tell = rows_to_fit(y, p, read, ordered=in_order)
    forecasts = one_class_each(Forecasts(y, p, ordered=in_order, **own))
    forecasts.check()
    groups = forecasts.groups
    outcomes, rows, weights = rows_of(forecasts)
    chosen = _default(outcomes, rows, weights, ordered) if chosen is None else chosen
    check_trainable(chosen, forecasts.n_classes)
    methods = _methods(asked, forecasts.n_classes, in_order)
    nested = len(methods) > 1 or has_strengths(methods)
    dealt_to = dealt(forecasts.n_rows, groups, folds, seed, weights, nested=nested)
    sample = FoldedRows(outcomes, weights, groups, chosen, dealt_to, seed, rows, ordered)
    facts = Study(sample, methods, asked, confidence).facts()
    found = Recalibration(
        **facts,
        classes=forecasts.classes,
        ordered=ordered,
        frequencies=_frequencies(sample),
        notes=(*_notes(sample, methods, forecasts.classes), *_worse(sample, facts["held_out"], asked)),
    )
    return tell(found)


def rows_of(forecasts: Forecasts) -> tuple[Ints, Floats, Floats | None]:
    """Outcomes, probabilities and weights of valid forecasts, on the host."""
    batch = forecasts.batch(0, forecasts.n_rows)
    rows = np.ascontiguousarray(to_host(widen(batch.p)), dtype=float)
    return to_host(batch.y), rows, None if batch.weights is None else to_host(batch.weights)


def recalibrate_lists(
    drawn: ListSample,
    m: int,
    *,
    rule: Rule | None,
    method: str | Sequence[str] = BEST,
    folds: int = 5,
    seed: int = 0,
    confidence: float = 0.95,
) -> ListRecalibration:
    """The recalibration of a sample of lists of m classes."""
    asked, rows = _asked(method, TITLES_OF_LISTS), drawn.lists(m)
    batch = rows.batch(0, rows.n_rows)
    inner = rule.rule if isinstance(rule, Padded) else rule
    chosen = _default_of_lists(rows) if inner is None else padded(inner).rule
    # A list is of many classes, and no rule has a gradient for a few of them only.
    check_trainable(chosen, min(m, 3))
    methods = asked
    if asked == [BEST] or len(asked) > 1:
        left = rows.lists.lengths.min(initial=m) < m
        tried = [name for name in TITLES_OF_LISTS if left or name in ("none", "temperature")]
        methods = [name for name in tried if asked == [BEST] or name in ("none", *asked)]
    dealt_to = dealt(rows.n_rows, rows.groups, folds, seed, batch.weights, nested=len(methods) > 1)
    sample = FoldedLists(batch.y, batch.weights, rows.groups, chosen, dealt_to, seed, rows)
    are = f"{drawn.n_invalid:,} of {drawn.n_rows:,} lists {'is' if drawn.n_invalid == 1 else 'are'} invalid"
    how = "scored as the largest valid sublist, and gains do not count the penalty"
    notes = (f"{are}, {how}.",) if drawn.n_invalid else ()
    result = ListRecalibration(
        **Study(sample, methods, asked, confidence).facts(),
        classes=None,
        ordered=False,
        frequencies=np.zeros(0),
        notes=(*notes, *notes_on_fits(sample, set(methods) - {"none"})),
        lists_of=m,
        n_invalid=drawn.n_invalid,
    )
    return result if rows.n_rows == drawn.n_rows else result.with_sample(rows.n_rows, drawn.n_rows)


def _asked(method: str | Sequence[str], known: Mapping[str, str]) -> list[str]:
    """The methods asked for, by name; `known` are those of this kind of forecasts."""
    names = [method] if isinstance(method, str) else list(each_of(method))
    alone = [BEST, BLEND] if known is TITLES else [BEST]
    if not names:
        raise InputError("must name at least one method", argument="method")
    for name in names:
        check_choice("method", name, [*known, *(alone if len(names) == 1 else [])])
    return list(dict.fromkeys(names))


def _methods(asked: list[str], n_classes: int, ordered: bool) -> list[str]:
    """The methods that are tried, doing nothing first."""
    two = n_classes == 2
    if not two:
        for name in _TWO_CLASSES & set(asked):
            raise InputError(
                f"{name} is for two classes",
                argument="method",
                found=f"there are {n_classes}",
                values=[name],
                remedies=[passing("for more classes", method="smatrix")],
            )
    if "ordered" in asked and (two or not ordered):
        raise InputError(
            "ordered is for three or more classes that have an order",
            argument="method",
            found="there are 2" if two else "these classes have none",
            values=["ordered"],
            remedies=[
                passing("for two classes", method="spline") if two else passing("if they do", ordered=True)
            ],
        )
    if asked not in ([BEST], [BLEND]):
        return asked if len(asked) == 1 else [name for name in TITLES if name in ("none", *asked)]
    if two:
        # Vector scaling and a matrix have the same functions of two classes as beta calibration.
        tried = {"none", "temperature", "prior", "bcts", "quadratic", "beta", "spline", "isotonic"}
    else:
        # Structured scaling does what vector scaling and Dirichlet calibration do, with less noise.
        tried = {"none", "temperature", "prior", "bcts", "svector", "smatrix", "isotonic"}
        tried |= {"ordered"} if ordered else set()
    return [name for name in TITLES if name in tried]


def _default(y: Ints, p: Floats, weights: Floats | None, ordered: bool) -> Rule:
    """The log score unless it is infinite."""
    impossible = p[np.arange(len(y)), y] <= 0
    if weights is not None:
        impossible &= weights > 0
    return _headline(ordered) if impossible.any() else RULES["log_score"]


def _headline(ordered: bool) -> Rule:
    """The rule that is always finite, by which cards and reports judge."""
    return RULES["rps" if ordered else "brier"]


def _default_of_lists(rows: ListRows) -> Rule:
    """The log score unless a list leaves nothing to its outcome."""
    (losses,) = losses_of([RULES["log_score"]], rows)
    return RULES["log_score" if np.isfinite(losses).all() else "brier"]


def _notes(sample: FoldedRows, methods: Sequence[str], classes: Sequence[Hashable] | None) -> tuple[str, ...]:
    never = np.flatnonzero(_frequencies(sample) == 0).tolist()
    gone = []
    if never:
        named = [str(k if classes is None else classes[k]) for k in never[:6]]
        more = f" and {len(never) - 6} more" if len(never) > 6 else ""
        gone = [
            f"Classes that never happened in these rows: {', '.join(named)}{more}. Their numbers rest on the "
            "penalty alone; add rows in which they happened, or merge them with other classes."
        ]
    fitted = set(methods) - {"none", "isotonic"}
    return (*notes_on_fits(sample, fitted), *gone, *(_saturated(sample.p) if fitted else []))


def _saturated(p: Floats) -> list[str]:
    if not ((p > 0) & (p < SMALLEST)).any():
        return []
    return [
        f"Probabilities reach {SMALLEST:g}, where double precision ends: smaller ones are zero, and their "
        "logarithms are lost. Divide the model's logits by 10 before the softmax, and recalibrate the result."
    ]


def _worse(sample: FoldedRows, held_out: Floats, asked: list[str]) -> list[str]:
    """That a method taken by name makes the headline score worse, although it was fitted by another rule."""
    rule = _headline(sample.ordered)
    if len(asked) > 1 or asked == [BEST] or sample.rule == rule:
        return []
    before, after = (
        mean_loss(np.asarray(losses_of([rule], Forecasts(sample.y, p))[0], dtype=float), sample.weights)
        for p in (sample.p, held_out)
    )
    if not after > before:
        return []
    name = name_of(rule)
    return [
        f"On held-out rows {name} rises from {before:.4g} to {after:.4g}, "
        f'because the fit minimises {name_of(sample.rule)}. Pass rule="{name}" to fit by {name}.'
    ]


def _frequencies(sample: FoldedRows) -> Floats:
    w = None if sample.weights is None else sample.weights / sample.weights.max()
    counts = np.bincount(sample.y, w, sample.p.shape[1]).astype(float)
    return np.asarray(counts / counts.sum())
