"""Rules as torchmetrics metrics: sums on the device, merged across processes, looked at in `compute` only."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from verax.adapters.torch.rows import TensorRows, read
from verax.adapters.training import is_differentiable
from verax.arrays import sum_tolerance, widen
from verax.errors import InputError
from verax.metrics import CostsLike, fitting_metrics
from verax.outcomes import check_classes
from verax.registry import name_of, parse
from verax.rule import Rule
from verax.scorecard import Scorecard, fitting_rules
from verax.tally import CONFUSION_UP_TO, Moments, Sum, Tally

# What is counted, in this order; from the third on, rows that must not be there.
_ROWS, _IMPOSSIBLE, _VALUES, _SUMS, _TARGETS, _WEIGHTS = range(6)


class _RuleSums(Metric):
    """The sums of the losses of several rules.

    Floating sums are pairs, a total and what rounding took from it, so that they stay exact where a
    device has no float64. Every state is a sum, so processes merge by adding.
    """

    full_state_update = False
    higher_is_better: bool | None = False
    counts: Tensor

    def __init__(self, rules: Sequence[Rule], *, logits: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rules = tuple(rules)
        self.logits = logits
        self._needs = frozenset(name for rule in self.rules for name in rule.needs)
        # A MetricCollection takes metrics whose states agree after one batch for one and the same. Two
        # rules can agree there and not later, so their states have different names.
        self._name = f"sums_{zlib.crc32(repr(self.rules).encode()):08x}"
        # The weight, and for each rule the sums of w * loss, w * loss^2 and of w at infinity.
        self._add_sum(self._name, 1 + 3 * len(self.rules))
        self.add_state("counts", torch.zeros(6, dtype=torch.int64), dist_reduce_fx="sum")

    def _add_sum(self, name: str, size: int) -> None:
        self.add_state(name, torch.zeros(2, size, dtype=torch.float64), dist_reduce_fx="sum")

    @property
    def is_differentiable(self) -> bool:  # type: ignore[override]
        """Whether the value changes smoothly with the predictions."""
        return all(is_differentiable(rule) for rule in self.rules)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> torch.nn.Module:
        # Some devices have no float64, and moving such a tensor there fails.
        if widen(fn(torch.zeros(0, device=self.device))).dtype != torch.float64:
            for name, default in self._defaults.items():
                if isinstance(default, Tensor) and default.dtype == torch.float64:
                    self._defaults[name] = default.float()
                    setattr(self, name, getattr(self, name).float())
        return super()._apply(fn, exclude_state)

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Take in predictions (N, K), class positions (N,) and weights (N,); nothing is looked at."""
        self._add(preds, target, weights, self._needs)

    def _add(self, preds: Tensor, target: Tensor, weights: Tensor | None, needs: frozenset[str]) -> Any:
        batch = read(preds, target, weights, logits=self.logits, dtype=self._dtype_of_sums)
        stats = batch.statistics(needs)
        w = torch.ones_like(stats.p_true) if batch.weights is None else batch.weights
        sums = [w.sum()]
        for rule in self.rules:
            loss = stats.loss(rule)
            infinite = loss == torch.inf
            finite = torch.where(infinite, 0.0, loss)
            sums += [(w * finite).sum(), (w * finite * finite).sum(), torch.where(infinite, w, 0.0).sum()]
        self._plus(self._name, torch.stack(sums))
        impossible = stats.impossible & (w > 0)
        invalid = _invalid(batch, w, sum_tolerance(preds))
        everyone = torch.ones_like(impossible)
        self.counts = self.counts + torch.stack([everyone, impossible, *invalid]).sum(dim=1)
        return batch, stats, w

    @property
    def _dtype_of_sums(self) -> torch.dtype:
        dtype: torch.dtype = getattr(self, self._name).dtype
        return dtype

    def _plus(self, name: str, terms: Tensor) -> None:
        """Add to a sum; what rounding takes from the total goes to its second row (Knuth's two-sum)."""
        high, low = getattr(self, name)
        total = high + terms
        virtual = total - high
        lost = (high - (total - virtual)) + (terms - virtual)
        setattr(self, name, torch.stack([total, low + lost]))

    def _check(self) -> None:
        """Raise the error that the counted rows call for, if there is one."""
        counts = self.counts.tolist()
        for kind, (argument, requirement, remedy) in (_OF_LOGITS if self.logits else _OF_ROWS).items():
            if counts[kind]:
                found = f"{counts[kind]:,} of {counts[_ROWS]:,} rows do not"
                text = f"`{argument}` {requirement}; {found}. {remedy}"
                raise InputError(text.rstrip(), argument=argument)


_MAYBE_LOGITS = "If these are logits, pass logits=True."
_OF_ROWS = {
    _VALUES: ("preds", "must hold finite probabilities that are not negative", _MAYBE_LOGITS),
    _SUMS: ("preds", "rows must sum to 1", _MAYBE_LOGITS),
    _TARGETS: ("target", "must hold class positions from 0 to K-1", "Leave other rows out."),
    _WEIGHTS: ("weights", "must be finite and not negative", ""),
}
_OF_LOGITS = _OF_ROWS | {
    _VALUES: ("preds", "must hold logits that are finite or -inf, and at least one finite a row", "")
}


def _invalid(batch: TensorRows, w: Tensor, tolerance: float) -> list[Tensor]:
    """Which rows break which requirement, in the order of the counts."""
    rows = batch.rows
    if batch.logits:
        values = ~(rows < torch.inf).all(dim=1) | (rows == -torch.inf).all(dim=1)
        sums = torch.zeros_like(values)
    else:
        values = ~((rows >= 0) & (rows < torch.inf)).all(dim=1)
        sums = ~values & ~((rows.sum(dim=1) - 1).abs() <= tolerance)
    return [values, sums, ~batch.inside, ~((w >= 0) & (w < torch.inf))]


class Score(_RuleSums):
    """The weighted mean loss of a rule over everything seen, as a torchmetrics metric. Lower is better.

    `update` adds to sums on the device and never waits for it; rows that are no forecasts are counted
    there and reported by `compute`. Sums are in float64 where the device has it, and processes add
    theirs up, so the result is that of all rows together, to rounding. In Lightning log the metric
    itself: `self.log("val_pbs", self.val_pbs)`, and monitor "val_pbs" with mode="min".

    Parameters
    ----------
    rule : a rule, or a text for `verax.parse`.
    logits : predictions are logits. They are never guessed.
    **kwargs : as for every torchmetrics metric.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.torch import Score
    >>> metric = Score("pbs")
    >>> metric.update(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), torch.tensor([0, 1]))
    >>> round(metric.compute().item(), 4)
    0.8333
    """

    def __init__(self, rule: Rule | str, *, logits: bool = False, **kwargs: Any) -> None:
        super().__init__([parse(rule)], logits=logits, **kwargs)

    @property
    def rule(self) -> Rule:
        """The rule that scores."""
        return self.rules[0]

    def compute(self) -> Tensor:
        """The mean loss; infinite as soon as one row's is, NaN without any weight."""
        self._check()
        weight, total, _, infinite = getattr(self, self._name).sum(dim=0)
        return torch.where(infinite > 0, torch.inf, total / (weight - infinite))

    def extra_repr(self) -> str:
        """What `print(model)` says about it."""
        return name_of(self.rule)


class Card(_RuleSums):
    """All rules that fit, and what the decisions are worth, as a torchmetrics metric.

    `compute` gives a dictionary of numbers: the mean loss by each rule, accuracy, and for ordered
    classes quadratic kappa (`qwk`) and expected cost (`ec`). `scorecard` gives the `Scorecard` with
    its intervals. In Lightning, at the end of an epoch: `self.log_dict(self.card.compute())`, then
    `self.card.reset()`.

    Parameters
    ----------
    n_classes : the number of classes.
    ordered, rules, costs, classes : as for `verax.evaluate`.
    logits : predictions are logits. They are never guessed.
    prefix : what the names in the dictionary begin with, such as "val_".
    **kwargs : as for every torchmetrics metric.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.torch import Card
    >>> card = Card(3, ordered=True, rules=["pbs", "rps"], prefix="val_")
    >>> card.update(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), torch.tensor([0, 1]))
    >>> {name: round(value.item(), 4) for name, value in card.compute().items()}
    {'val_pbs': 0.8333, 'val_rps': 0.1175, 'val_accuracy': 0.5, 'val_qwk': 0.6667, 'val_ec': 0.5}
    """

    higher_is_better = None
    cells: Tensor

    def __init__(
        self,
        n_classes: int,
        *,
        ordered: bool = False,
        rules: Sequence[Rule | str] | None = None,
        costs: CostsLike | None = None,
        classes: Sequence[Hashable] | None = None,
        logits: bool = False,
        prefix: str = "",
        **kwargs: Any,
    ) -> None:
        if isinstance(n_classes, bool) or not isinstance(n_classes, int) or n_classes < 2:
            raise InputError(f"`n_classes` must be at least 2, not {n_classes!r}.", argument="n_classes")
        super().__init__(fitting_rules(rules, ordered), logits=logits, **kwargs)
        self.n_classes = n_classes
        self.ordered = ordered
        self.prefix = prefix
        self._classes = check_classes(classes, n_classes)
        self._metrics = fitting_metrics(ordered, costs, n_classes)
        self._tabled = n_classes <= CONFUSION_UP_TO
        # Weights by outcome and decision; of too many classes, by outcome, and of right decisions.
        self._add_sum("cells", n_classes**2 if self._tabled else n_classes + 1)

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Take in predictions (N, K), class positions (N,) and weights (N,); nothing is looked at."""
        k = 2 if preds.ndim == 1 else int(preds.shape[1])
        if k != self.n_classes:
            raise InputError(f"`preds` must have {self.n_classes} classes; they have {k}.", argument="preds")
        batch, stats, w = self._add(preds, target, weights, self._needs | {"decision"})
        y = batch.y.clamp(0, k - 1)
        cells = torch.zeros(self.cells.shape[1], dtype=w.dtype, device=w.device)
        if self._tabled:
            cells = cells.index_add(0, y * k + stats.decision, w)
        else:
            cells = cells.index_add(0, y, w)
            cells[k] = (w * (y == stats.decision)).sum()
        self._plus("cells", cells)

    def compute(self) -> dict[str, Tensor]:
        """The number of each rule and metric, under its name."""
        tally = self._tally()
        values = dict(zip(map(name_of, self.rules), tally.moments.mean, strict=True))
        counts = tally.counts
        assert counts is not None
        if counts.confusion is None:
            values["accuracy"] = np.divide(counts.n_correct, tally.weight.high[0])
        else:
            values |= {metric.name: metric.of(counts.confusion) for metric in self._metrics}
        dtype, device = self._dtype_of_sums, self.device
        return {
            self.prefix + name: torch.tensor(float(value), dtype=dtype, device=device)
            for name, value in values.items()
        }

    def scorecard(self) -> Scorecard:
        """The card of everything seen, by all processes; which rows had probability zero is not known."""
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        ):
            tally = self._tally()
        if not tally.weight.high[0] > 0:
            raise InputError("`preds` must have rows, and not all of weight zero.", argument="preds")
        return Scorecard(tally, self._classes, self.ordered, self._metrics)

    def _tally(self) -> Tally:
        self._check()
        sums = getattr(self, self._name).detach().cpu().double().sum(dim=0).numpy()
        cells = self.cells.detach().cpu().double().sum(dim=0).numpy()
        tally = Tally(self.rules, self.n_classes)
        tally.n_rows = int(self.counts[_ROWS])
        tally.weight = Sum.zeros(1).plus(sums[:1])
        table = sums[1:].reshape(len(self.rules), 3)
        tally.moments = Moments.from_sums(float(sums[0]), table, np.zeros(len(self.rules)))
        assert tally.counts is not None
        tally.counts.n_zero = int(self.counts[_IMPOSSIBLE])
        if self._tabled:
            tally.counts.confusion = cells.reshape(self.n_classes, self.n_classes)
        else:
            tally.counts.outcomes, tally.counts.correct = cells[:-1], float(cells[-1])
        return tally
