"""`recalibrate`: which method improves the probabilities, and by how much on held-out rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, Unpack

import numpy as np

from verax.analyses.dealing import dealt
from verax.analyses.list_samples import ListSample
from verax.analyses.sampled import rows_to_fit, sampled_lists
from verax.common.checks import check_choice, check_count, check_flag
from verax.errors import InputError, RuleError
from verax.inference.intervals import check_confidence, check_seed
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.rows import NO_ORDER
from verax.inputs.memory import holds_lists, open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.rows import with_single_classes
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import Padded, padded
from verax.scores.gradients.logits import check_trainable
from verax.scores.metrics import needs_order
from verax.scores.naming import METHODS_ELSEWHERE
from verax.scores.registry import each_of, headline_rule, name_of, parse
from verax.wings.recalibrate.choosing import FoldedRows, Study, mean_loss, notes_on_fits, to_nest
from verax.wings.recalibrate.lists import FoldedLists
from verax.wings.recalibrate.records import (
    BEST,
    BLEND,
    FOLDS,
    LISTS,
    TITLES,
    TITLES_OF_LISTS,
    methods_of,
    methods_of_lists,
    rows_tried,
)
from verax.wings.recalibrate.result import ListRecalibration, Recalibration
from verax.wings.recalibrate.rows import SMALLEST

T = TypeVar("T")
_ONE_WAY = (
    "Of two kinds of groups, the one with fewer groups stays together in folds, and intervals allow for it "
    "alone."
)


@reads
def recalibrate(
    y: object,
    p: object = None,
    *,
    method: str | Sequence[str] = BEST,
    rule: Rule | str | None = None,
    ordered: bool = False,
    folds: int = FOLDS,
    seed: int = 0,
    confidence: float = 0.95,
    **read: Unpack[RowOptions],
) -> Recalibration:
    """Recalibrate probabilities, with the cross-validated gain of each method.

    Gains are measured in cross-validation. Of several methods the simplest whose loss is within one standard
    error of the smallest is picked. It is used if the forecasts as they are fail a test of calibration (Rao's
    score test, 5 %) and its gain exceeds one standard error; otherwise nothing is done. The methods, simplest
    first:

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
        trained on these rows. Or predictions that `scan` has opened, in place of both `y` and `p`. "best"
        tries its methods on at most 20,000 rows (fewer with more than five classes), drawn at random
        (`sampled`). A method by name is fitted to all rows, and to 100,000 of those that `scan` has opened.
    p : array_like of shape (N, K) or (N,), or TopLists, optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough. Or top lists.
    method : str or sequence of str, default "best"
        A method, "best", "blend", or methods among which to choose; a method by itself is taken whatever it
        gains, and only the choice among several is tested.
    rule : Rule or str, optional
        The proper rule that is minimised and measured. By default the one that cards and reports lead with:
        RPS for ordered classes, else Brier. An isotonic fit is the best by every proper score. Top lists
        need a symmetric rule, such as Brier or the log score.
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
    arXiv:1910.12656; Berta, Holzmüller, Jordan and Bach (2025), arXiv:2511.03685; Rao (1948),
    doi:10.1017/S0305004100023987 (the score test).

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 3))
    >>> q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    >>> y = np.array([rng.choice(3, p=row) for row in q])
    >>> p = q**2 / (q**2).sum(axis=1, keepdims=True)  # overconfident
    >>> recalibration = vx.recalibrate(y, p)
    >>> recalibration.method, recalibration.trial("temperature").detail
    ('temperature', 'temperature 2.02')
    >>> better = recalibration.apply(p)
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
        drawn, asking = sampled_lists(handle, _most(method, LISTS))
        how: dict[str, Any] = {"method": method, "folds": folds, "seed": seed, "confidence": confidence}
        made = recalibrate_lists(drawn, asking.n_rows, handle.n_classes, rule=chosen, **how)
        made = made.with_skipped(asking.skipped)
        return made if handle is crossed else replace(made, notes=(*made.notes, _ONE_WAY))
    asked = methods_named(method, TITLES)
    in_order = needs_order([] if chosen is None else [chosen], ordered=ordered)
    y, p, options, tell = rows_to_fit(y, p, read, ordered=in_order, most=_most(method, rows_tried))
    given = Forecasts(y, p, ordered=in_order, **options)
    chosen = headline_rule(ordered=ordered) if chosen is None else chosen
    return tell(recalibrated(given, asked, chosen, folds, confidence, seed, ordered=ordered))


def recalibrated(
    given: Forecasts,
    asked: list[str],
    rule: Rule,
    folds: int,
    confidence: float,
    seed: int,
    *,
    ordered: bool,
) -> Recalibration:
    """The recalibration of forecasts in memory, in the order of their classes where the rule needs it."""
    forecasts = with_single_classes(given)
    forecasts.check()
    groups = forecasts.groups
    outcomes, rows, weights = rows_of(forecasts)
    check_trainable(rule, forecasts.n_classes)
    methods = methods_of(asked, forecasts.n_classes, ordered=needs_order([rule], ordered=ordered))
    nested = bool(to_nest(methods, asked))
    dealt_to = dealt(forecasts.n_rows, groups, folds, seed, weights, nested=nested)
    sample = FoldedRows(outcomes, weights, groups, rule, dealt_to, seed, rows, ordered)
    facts = Study(sample, methods, asked, confidence).facts()
    return Recalibration(
        **facts | {"n_rows": given.n_rows},
        classes=forecasts.classes,
        ordered=ordered,
        frequencies=_frequencies(sample),
        notes=(*_notes(sample, methods, forecasts.classes), *_worse(sample, facts["held_out"], asked)),
    )


def rows_of(forecasts: Forecasts) -> tuple[Ints, Floats, Floats | None]:
    """Outcomes, probabilities and weights of valid forecasts, on the host."""
    batch = forecasts.batch(0, forecasts.n_rows)
    rows = np.ascontiguousarray(to_host(widen(batch.p)), dtype=float)
    return to_host(batch.y), rows, None if batch.weights is None else to_host(batch.weights)


def recalibrate_lists(
    drawn: ListSample,
    n_given: int,
    m: int,
    *,
    rule: Rule | None,
    method: str | Sequence[str] = BEST,
    folds: int = FOLDS,
    seed: int = 0,
    confidence: float = 0.95,
) -> ListRecalibration:
    """The recalibration of a sample of the lists given, of m classes."""
    asked, rows = methods_named(method, TITLES_OF_LISTS), drawn.lists(m)
    batch = rows.batch(0, rows.n_rows)
    inner = rule.rule if isinstance(rule, Padded) else rule
    chosen = headline_rule(ordered=False) if inner is None else padded(inner).rule
    # A list is of many classes, and no rule has a gradient for a few of them only.
    check_trainable(chosen, min(m, 3))
    methods = methods_of_lists(asked, complete=rows.lists.lengths.min(initial=m) == m)
    dealt_to = dealt(rows.n_rows, rows.groups, folds, seed, batch.weights)
    sample = FoldedLists(batch.y, batch.weights, rows.groups, chosen, dealt_to, seed, rows)
    are = f"{drawn.n_invalid:,} of {n_given:,} lists {'is' if drawn.n_invalid == 1 else 'are'} invalid"
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
    if rows.n_rows == drawn.n_rows:
        return result.with_cases(n_given)
    return result.with_sample(rows.n_rows, n_given)


def _most(method: str | Sequence[str], most: T) -> T | None:
    """The limit of the rows that are tried; what is asked for by name is fitted to all rows."""
    return most if method == BEST or method == [BEST] else None


def methods_named(method: str | Sequence[str], known: Mapping[str, str]) -> list[str]:
    """The methods asked for, by name; `known` are those of this kind of forecasts."""
    names = [method] if isinstance(method, str) else list(each_of(method))
    alone = [BEST, BLEND] if known is TITLES else [BEST]
    if not names:
        raise InputError("must name at least one method", argument="method")
    for name in names:
        methods = [*known, *(alone if len(names) == 1 else [])]
        check_choice("method", name, methods, elsewhere=METHODS_ELSEWHERE)
    return list(dict.fromkeys(names))


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
    rule = headline_rule(ordered=sample.ordered)
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
