"""The base class of scoring rules: everything that follows from a rule's formula."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Unpack

import numpy as np

from verax.common.checks import in_digits, with_checked_classes
from verax.common.wings import answer_to
from verax.engines.differences import PairedTally
from verax.engines.scan import scan_rows
from verax.engines.stats import Formula, RowStats, compute, formula_for
from verax.engines.tally import RuleSums
from verax.errors import InputError, RuleError
from verax.inputs.arrays import Array, is_traced, move_like, namespace_of, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Part, Recipe, refuse_graded
from verax.inputs.memory import pair
from verax.inputs.options import OutcomeOptions, WeightedOptions, reads, reads_per_row
from verax.inputs.rows import RowBatch, Rows, ScoredRows
from verax.scores.properties import Properties

# The most classes of top lists that `by_outcome` goes through, one after the other.
_MOST_OUTCOMES = 2**16
# Up to this many probabilities the number of calls decides how long they take, not the number of rows.
_FEW_NUMBERS = 2**12


P = ParamSpec("P")


def _scores_estimators(call: Callable[P, float]) -> Callable[P, float]:
    """A rule that is also a scikit-learn scorer: three arguments, of which the first is an estimator."""

    @wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> float:
        if len(args) == 4 and hasattr(args[1], "fit"):
            return float(answer_to("scorer")(args[0])(*args[1:], **kwargs))
        return call(*args, **kwargs)

    return called


class Rule(ABC):
    """A scoring rule: the loss of forecast p when class y happens.

    Subclasses are frozen dataclasses. They define `formula`, the loss as a formula over the row statistics
    named in `needs` (see `verax.engines.stats.RowStats`), their `properties` and their `bounds`; the rest
    follows. A formula uses arithmetic and the functions of `stats.xp`, so it runs on any array, can be
    differentiated, and compiles.

    Attributes
    ----------
    name : str
        Name in texts; by default the class name in lower case.
    title : str
        Name in headings.
    summary : str
        One-line summary.
    description : str
        Description for readers of a report.
    latex : str
        The loss as TeX.
    use : str
        When to use it.
    avoid : str
        When not to use it.
    reference : str
        Publication that defines it.
    ordinal : bool
        Whether it depends on the order of the classes.
    answer_alone : bool
        Whether it depends on the most likely class alone. Top lists are then judged by their first class,
        and their validity does not matter.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1], [[0.75, 0.25], [0.5, 0.5]]
    >>> vx.brier(y, p), vx.brier.samples(y, p).tolist()
    (0.3125, [0.125, 0.5])
    >>> isinstance(vx.brier, vx.rules.Rule)
    True
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    description: ClassVar[str] = ""
    latex: ClassVar[str] = ""
    use: ClassVar[str] = ""
    avoid: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    ordinal: ClassVar[bool] = False
    answer_alone: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "name"):
            cls.name = cls.__qualname__.rpartition(".")[2].lower()
        for method in ("bounds", "sup_correct", "inf_wrong"):
            if method in cls.__dict__:
                setattr(cls, method, with_checked_classes(cls.__dict__[method]))

    @property
    def __name__(self) -> str:
        """Name for tools that expect a function, such as `sklearn.metrics.make_scorer`."""
        return repr(self)

    @property
    @abstractmethod
    def needs(self) -> frozenset[str]:
        """Names of the row statistics that the formula uses."""

    @abstractmethod
    def formula(self, stats: RowStats) -> Array:
        """Compute the losses from row statistics.

        Parameters
        ----------
        stats : RowStats
            The statistics named in `needs`, each with a number per row, and the array namespace `xp`.

        Returns
        -------
        array of shape (N,)
            The losses.
        """

    @property
    @abstractmethod
    def properties(self) -> Properties:
        """Declared properties, each with the numbers of classes for which it holds."""

    @abstractmethod
    def bounds(self, n_classes: int) -> tuple[float, float]:
        """Return the smallest and the largest loss for `n_classes` classes.

        Parameters
        ----------
        n_classes : int
            The number of classes, K.

        Returns
        -------
        tuple of two floats
            The smallest and the largest loss.
        """

    def sup_correct(self, n_classes: int) -> float:
        """Return the supremum of the loss over forecasts whose unique mode is the outcome.

        Parameters
        ----------
        n_classes : int
            The number of classes, K.

        Returns
        -------
        float
            The supremum.

        Raises
        ------
        RuleError
            If it is not known for this rule.
        """
        raise RuleError(self._no_constant("supremum over correct forecasts"))

    def inf_wrong(self, n_classes: int) -> float:
        """Return the infimum of the loss over forecasts whose unique mode is not the outcome.

        Parameters
        ----------
        n_classes : int
            The number of classes, K.

        Returns
        -------
        float
            The infimum.

        Raises
        ------
        RuleError
            If it is not known for this rule.
        """
        raise RuleError(self._no_constant("infimum over wrong forecasts"))

    def _no_constant(self, what: str) -> str:
        return f"The {what} is not known for {self}; give the penalty as a number."

    # ---- use -------------------------------------------------------------------------------

    @_scores_estimators
    @reads
    def __call__(self, y: object, p: object = None, **read: Unpack[WeightedOptions]) -> float:
        """Compute the weighted mean loss of forecasts `p` for outcomes `y`.

        Called as scikit-learn calls scorers, with a fitted estimator, features and outcomes, it returns minus
        the mean loss: `scoring=vx.brier` is `scoring=vx.adapters.sklearn.scorer("brier")`.

        Parameters
        ----------
        y
        p
        **read

        Returns
        -------
        float
            The weighted mean loss.
        """
        if isinstance(y, Handle):
            return mean_of_handle(self, y.in_order() if self.ordinal else y)
        rows = pair(y, p, ordered=self.ordinal, **read)
        formula = formula_for(rows, self)
        return float(RuleSums([formula], rows.n_classes, counts=False).update(rows).moments.mean[0])

    @reads_per_row
    def samples(self, y: object, p: object, **read: Unpack[OutcomeOptions]) -> Array:
        """Compute the loss of each row, as an array of the same kind as `p`.

        PyTorch and JAX can differentiate it. Inside `jax.jit` values cannot be checked: make sure that rows
        are valid.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, K)
            Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows.
        p : array_like of shape (N, K) or (N,), or TopLists
            Forecasts: probabilities of the K classes; for two classes, one column with those of
            class 1 is enough.
        **read

        Returns
        -------
        array of shape (N,)
            The losses; NaN for skipped rows.
        """
        return losses_of([self], pair(y, p, ordered=self.ordinal, **read))[0]

    # ---- under a known truth ---------------------------------------------------------------

    def by_outcome(self, p: Any) -> Array:
        """Compute the loss of each forecast for each possible outcome.

        Parameters
        ----------
        p : array_like of shape (N, K) or (K,), or TopLists
            One forecast or several.

        Returns
        -------
        array of the shape of `p`
            The loss if class j happens, in column j.

        Examples
        --------
        >>> import verax as vx
        >>> vx.rps.by_outcome([0.25, 0.5, 0.25]).tolist()
        [0.3125, 0.0625, 0.3125]
        """
        with_class = None if isinstance(p, type) else getattr(p, "with_class", None)
        if with_class is None or not isinstance(getattr(p, "n_classes", None), int):
            rows, single = distributions(p, "p")
            losses = losses_by_outcome(self, rows)
            return losses[0, :] if single else losses
        k = int(p.n_classes)
        if k > _MOST_OUTCOMES:
            raise InputError(
                f"must have at most {_MOST_OUTCOMES} classes here, to score every class as the outcome",
                argument="p",
                found=f"there are {in_digits(k, 3)}",
            )
        return np.stack([_losses_at_once(self, with_class(outcome)) for outcome in range(k)], axis=1)

    def expected(self, p: object, q: object) -> Any:
        """Compute the expected loss of forecast `p` if the true distribution is `q`.

        Parameters
        ----------
        p : array_like of shape (N, K) or (K,), or TopLists
            One forecast or several.
        q : array_like of shape (N, K) or (K,)
            The true distribution, one for all forecasts or one for each.

        Returns
        -------
        float or array of shape (N,)
            The expected loss of each forecast.

        Examples
        --------
        >>> import verax as vx
        >>> vx.brier.expected([0.5, 0.5], [0.75, 0.25])
        0.5
        """
        truth, single = distributions(q, "q")
        losses = self.by_outcome(p)
        xp = namespace_of(losses)
        losses = losses[None, :] if losses.ndim == 1 else losses
        truth = move_like(truth, losses)
        (n, k), (n_truths, k_truth) = losses.shape, truth.shape
        if k != k_truth:
            raise InputError(
                f"must have {k} classes, as the forecasts do",
                argument="q",
                kind="length",
                found=f"it has {k_truth}",
            )
        if n != n_truths and 1 not in (n, n_truths):
            raise InputError(
                f"must have one row, or {n} as the forecasts do",
                argument="q",
                kind="length",
                found=f"it has {n_truths}",
            )
        # What cannot happen costs nothing, however large its loss: 0 * inf = 0.
        possible = xp.where(truth > 0, losses, xp.zeros_like(losses))
        result = xp.sum(truth * possible, axis=1)
        return float(result[0]) if single and result.shape[0] == 1 else result

    def entropy(self, q: object) -> Any:
        """Compute the expected loss of the true distribution `q` itself.

        Parameters
        ----------
        q : array_like of shape (N, K) or (K,)
            One true distribution or several.

        Returns
        -------
        float or array of shape (N,)
            The smallest possible expected loss, if the rule is proper.
        """
        return self.expected(q, q)

    def divergence(self, p: object, q: object) -> Any:
        """Compute the excess expected loss of forecast `p` over that of the truth `q`.

        Parameters
        ----------
        p : array_like of shape (N, K) or (K,), or TopLists
            One forecast or several.
        q : array_like of shape (N, K) or (K,)
            The true distribution, one for all forecasts or one for each.

        Returns
        -------
        float or array of shape (N,)
            The difference; never negative if the rule is proper.
        """
        expected = self.expected(p, q)
        entropy = self.entropy(q)
        return expected - (move_like(entropy, expected) if hasattr(expected, "shape") else entropy)

    # ---- text ------------------------------------------------------------------------------

    def __repr__(self) -> str:
        arguments = []
        parameters: Iterable[Any] = fields(self) if is_dataclass(self) else ()
        for f in parameters:
            value = getattr(self, f.name)
            if isinstance(value, Rule):
                arguments.append(repr(value))
            elif value != f.default:
                arguments.append(f"{f.name}={value!r}")
        return f"{self.name}({', '.join(arguments)})" if arguments else self.name


def losses_of(rules: Sequence[Formula], forecasts: Rows) -> list[Array]:
    """The losses of every row by each of several rules or metrics, from one pass over valid rows."""
    if isinstance(forecasts, ScoredRows):
        return [forecasts.losses(rule) for rule in rules]
    parts: dict[int, list[Array]] = {}
    formulas = [formula_for(forecasts, rule) if isinstance(rule, Rule) else rule for rule in rules]
    needs = {name for formula in formulas for name in formula.needs}
    scan_rows(forecasts, needs, lambda: _Losses(formulas, parts))
    blocks = [parts[start] for start in sorted(parts)]
    if len(blocks) == 1:
        return blocks[0]
    return [forecasts.xp.concat([block[i] for block in blocks]) for i in range(len(rules))]


def mean_of_handle(formula: Formula, handle: Handle) -> float:
    """The mean of a rule or of a metric of rows over all rows of a handle."""
    refuse_graded(handle)
    tally = handle.summarise({"losses": _LossRecipe(formula, handle.one_model())})["losses"]
    return float(tally.moments.mean[1])


@dataclass(frozen=True)
class _LossRecipe(Recipe[PairedTally], cases=True):
    """The mean loss of a model by a rule, or by a metric of rows."""

    rule: Formula
    model: str

    def take(self, part: Part) -> PairedTally:
        rows = part.models[self.model]
        batch = rows.batch(0, rows.n_rows)
        weights = None if batch.weights is None else to_host(batch.weights)
        (losses,) = losses_of([self.rule], rows)
        return PairedTally(1).update(np.asarray(to_host(losses), float)[:, None], weights)


class _Losses:
    """Keeps the losses of each block under the number of its first row."""

    def __init__(self, rules: Sequence[Formula], parts: dict[int, list[Array]]) -> None:
        self._rules, self._parts = rules, parts

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        losses = [_loss_of(rule, stats) for rule in self._rules]
        if losses and is_traced(losses[0]):
            # Nobody has looked at the values, and a formula may lose a NaN in a comparison.
            rows: Any = batch
            broken = 0 * stats.xp.sum(rows.p, axis=1)
            losses = [loss + broken for loss in losses]
        self._parts[batch.start] = losses


def _loss_of(rule: Formula, stats: RowStats) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = stats.loss(rule)
    # A rule may hand on a statistic as it is, and the compiled pass uses its buffers again.
    return loss.copy() if stats.buffer is not None and loss.base is not None else loss


def losses_by_outcome(rule: Formula, rows: Array) -> Array:
    """The losses of valid (N, K) rows for each outcome: in column j if class j happens."""
    xp, n, k = namespace_of(rows), int(rows.shape[0]), int(rows.shape[1])
    # A call takes as long for few rows as for one, so of few rows several outcomes are scored together.
    together = max(1, min(k, _FEW_NUMBERS // max(1, n * k)))
    columns: list[Array] = []
    for first in range(0, k, together):
        outcomes = range(first, min(first + together, k))
        y = xp.concat([xp.full((n,), outcome) for outcome in outcomes])
        losses = _losses_at_once(rule, Forecasts(y, xp.concat([rows] * len(outcomes))))
        columns += [losses[at * n : (at + 1) * n] for at in range(len(outcomes))]
    return xp.stack(columns, axis=1)


def _losses_at_once(rule: Formula, rows: Rows) -> Array:
    """The losses of valid rows, as one batch."""
    formula = formula_for(rows, rule)
    return _loss_of(formula, compute(rows.batch(0, rows.n_rows), formula.needs))


def distributions(p: object, argument: str) -> tuple[Array, bool]:
    """One or several distributions as checked (n, K) rows, and whether it was one."""
    rows, _ = to_array(p, argument)
    if rows.ndim not in (1, 2):
        raise InputError(
            "must have shape (K,) or (N, K)", argument=argument, kind="type", found=_shape_of(rows)
        )
    single = rows.ndim == 1
    rows = rows[None, :] if single else rows
    try:
        Forecasts(np.zeros(int(rows.shape[0]), np.int64), rows).check()
    except InputError as error:
        raise error.replace(argument=argument) from None
    return rows, single


def _shape_of(rows: Array) -> str:
    return f"its shape is {tuple(int(n) for n in rows.shape)}"
