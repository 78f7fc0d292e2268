"""Framework-independent early stopping."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from verax.analyses.cards.evaluation import card_value
from verax.analyses.measures import ORIENTATIONS
from verax.common.checks import check_choice, check_count, check_flag, check_number, is_called
from verax.errors import InputError, ParseError, Remedy, VeraxError, passing, show
from verax.inputs.options import RowOptions
from verax.scores.base import Rule
from verax.scores.metrics import HIGHER, LOWER
from verax.scores.registry import name_of, parse
from verax.wings.select.directions import Direction

if TYPE_CHECKING:
    from verax.wings.select.refinement.epochs import RefinementLoss

_COUNTERS = ("epoch", "best", "best_epoch", "waited", "n_not_finite")


class EarlyStopping:
    """Stop training when it no longer improves, and keep the best state.

    Parameters
    ----------
    rule : Rule or str, optional
        The rule behind the values; rules are losses, so lower is better. Or a metric of a card by its name,
        such as "accuracy", "qwk" or "auc". For any other metric pass `mode` instead. One of the two is
        required; the direction is never guessed.
    monitor : {"refinement"}, optional
        Stop by the refinement: the loss by the rule after recalibration, cross-validated (see
        `RefinementLoss`). Pass outcomes and forecasts of the validation rows to `step`, which computes it, or
        its value. The rule is then the log score by default.
    method : str or sequence of str, default "temperature"
        With `monitor`, how to recalibrate, as in `vx.recalibrate`.
    mode : {"min", "max"}, optional
        Whether lower or higher is better.
    patience : int, default 10
        Number of consecutive epochs without improvement before stopping. The first one stops with 1, and also
        with 0, as in Keras and Lightning.
    min_delta : float, default 0.0
        Minimum improvement.
    warmup : int, default 0
        Number of initial epochs to ignore: they count neither as best nor against `patience`.
    restore : bool, default False
        Whether to keep a copy of the state of the best epoch, passed to `step`.

    Attributes
    ----------
    epoch : int
        Number of epochs seen.
    best : float or None
        The best value; None before any.
    best_epoch : int or None
        The number of its epoch, counted from 0.
    waited : int
        The number of epochs since then.

    Notes
    -----
    NaN and infinite values never improve. They count against `patience` like any other epoch without
    improvement, and in `n_not_finite`.

    Examples
    --------
    >>> from verax.selection import EarlyStopping
    >>> stopping = EarlyStopping("pbs", patience=2, restore=True)
    >>> for epoch, value in enumerate([0.9, 0.6, 0.7, 0.65, 0.5]):
    ...     if stopping.step(value, state={"weights": [epoch]}):
    ...         break
    >>> epoch, stopping.best, stopping.best_epoch, stopping.best_state
    (3, 0.6, 1, {'weights': [1]})

    The loss rises when forecasts become overconfident. The refinement falls as long as they learn:

    >>> y = [0, 1, 0, 1, 1, 0] * 20
    >>> epochs = [0.45, 0.4, 0.48, 0.55, 0.5, 0.5] * 20, [0.001, 0.999, 0.02, 0.98, 0.001, 0.1] * 20
    >>> kept = []
    >>> for monitor in (None, "refinement"):
    ...     stopping = EarlyStopping("log_score", monitor=monitor)
    ...     for p in epochs:
    ...         _ = stopping.step(y=y, p=p)
    ...     kept.append(stopping.best_epoch)
    >>> kept
    [0, 1]
    """

    epoch: int
    n_not_finite: int
    waited: int

    def __init__(
        self,
        rule: Rule | str | None = None,
        *,
        monitor: str | None = None,
        method: str | Sequence[str] = "temperature",
        mode: Direction | None = None,
        patience: int = 10,
        min_delta: float = 0.0,
        warmup: int = 0,
        restore: bool = False,
    ) -> None:
        self._loss = _loss_of(monitor, rule, method)
        self.monitor: str | None = monitor
        self.metric: str | None = rule if isinstance(rule, str) and rule in ORIENTATIONS else None
        self.rule: Rule | None = None if rule is None or self.metric is not None else _rule(rule)
        if self._loss is not None:
            self.rule = self._loss.rule
        self.mode = _direction(self.rule, self.metric, mode)
        check_count("patience", patience, least=0)
        check_count("warmup", warmup, least=0)
        wanted = "must be a finite number that is not negative"
        self.min_delta: float = float(check_number("min_delta", min_delta, wanted, lambda d: d >= 0))
        self.patience = patience
        self.warmup = warmup
        self.restore: bool = check_flag("restore", restore)
        self.epoch = 0
        self.best: float | None = None
        self.best_epoch: int | None = None
        self.waited = 0
        self.n_not_finite = 0
        self._state: Any = None

    def step(
        self,
        value: Any = None,
        state: Any = None,
        *,
        y: object = None,
        p: object = None,
        **read: Unpack[RowOptions],
    ) -> bool:
        """Record the value of an epoch and return whether to stop.

        Parameters
        ----------
        value : float, array or tensor, optional
            The value: a number, or an array or tensor that holds one. Required without `y` and `p`.
        state : object or callable, optional
            With `restore`, the state to keep if this epoch is the best so far; it is deep-copied. Or a
            function that returns it, such as `model.state_dict` or `model.get_weights`, called only then.
        y : array_like of shape (N,) or (N, K), or Handle, optional
            Outcomes: those of the validation rows, in place of `value`. It is then the mean loss by the
            rule, or the refinement.
        p : array_like of shape (N, K) or (N,), or TopLists, optional
            Forecasts: those of the same rows.
        **read : Any
            How rows are read, as in `vx.evaluate`: `logits`, `classes`, `weights`, `groups`, ...

        Returns
        -------
        bool
            Whether to stop.
        """
        given = y is not None or p is not None
        number = self._measured(value, y, p, read) if given else _number(value)
        self._check_state(state)
        self.epoch += 1
        self.n_not_finite += not math.isfinite(number)
        if self.epoch <= self.warmup:
            return False
        if self.improves(number):
            self.best, self.best_epoch, self.waited = number, self.epoch - 1, 0
            if self.restore:
                self._state = copy.deepcopy(state() if callable(state) else state)
        else:
            self.waited += 1
        return self.should_stop

    def _measured(self, value: Any, y: object, p: object, read: RowOptions) -> float:
        if value is not None:
            raise InputError("must not be given beside `y` and `p`", argument="value", values=[value])
        if self.metric is not None:
            return card_value(self.metric, y, p, **read)
        if self.rule is None:
            raise InputError(
                "must be given: only rules and metrics of a card are computed from `y` and `p`",
                argument="value",
                kind="missing",
                remedies=[passing("or another rule, to EarlyStopping", rule="brier")],
            )
        loss: Any = self.rule if self._loss is None else self._loss
        return float(loss(y, p, **read))

    def improves(self, value: float) -> bool:
        """Whether a value is better than the best so far by more than `min_delta`.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        bool
            Whether it is better.
        """
        value = _number(value)
        if not math.isfinite(value):
            return False
        if self.best is None:
            return True
        gain = self.best - value if self.mode == "min" else value - self.best
        return gain > self.min_delta

    @property
    def should_stop(self) -> bool:
        """Whether the last `patience` epochs, at least one, brought no improvement."""
        return self.waited >= max(self.patience, 1)

    @property
    def best_state(self) -> Any:
        """The state of the best epoch."""
        if not self.restore:
            raise VeraxError("No state was kept; pass restore=True to EarlyStopping.")
        if self.best is None:
            raise VeraxError("No epoch has had a finite value after the warm-up, so there is no best state.")
        return self._state

    def _check_state(self, state: Any) -> None:
        if self.restore and state is None:
            raise InputError(
                "must be given to every step, because the best one is to be restored",
                argument="state",
                kind="missing",
                remedies=[
                    Remedy("A function such as model.state_dict is called only when the value improves.")
                ],
            )
        if not self.restore and state is not None:
            raise InputError(
                "must not be given, because it would not be kept",
                argument="state",
                remedies=[passing("to EarlyStopping", restore=True)],
            )
        # A torch module is also a function of its input.
        if callable(getattr(state, "state_dict", None)):
            raise InputError(
                f"must be what to keep, not a {type(state).__name__}",
                argument="state",
                kind="type",
                remedies=[Remedy("Pass its state_dict.")],
            )

    @property
    def _named(self) -> str | None:
        """The name of the rule or metric behind the values, if it is known."""
        return self.metric if self.rule is None else name_of(self.rule)

    # ---- to be continued -------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to resume: counters, best value and its state."""
        return {
            "mode": self.mode,
            "rule": self._named,
            **({} if self.monitor is None else {"monitor": self.monitor}),
            **{name: getattr(self, name) for name in _COUNTERS},
            "state": copy.deepcopy(self._state),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Resume from `state_dict`; the rule or mode must be the same.

        Parameters
        ----------
        saved : dict
            The return value of `state_dict`.
        """
        current = self.state_dict()
        if not isinstance(saved, Mapping):
            raise InputError(
                f"must come from state_dict(), not be {show(saved)}", argument="saved", kind="type"
            )
        if missing := current.keys() - saved.keys():
            raise InputError(
                "must come from state_dict()",
                argument="saved",
                kind="missing",
                found=f"it lacks {', '.join(sorted(missing))}",
            )
        for name in ("mode", "rule", "monitor"):
            if saved.get(name) is not current.get(name) and not is_called(saved.get(name), current.get(name)):
                raise InputError(
                    f"must have the same {name}",
                    argument="saved",
                    found=f"it has {show(saved.get(name))}, this has {show(current.get(name))}",
                    values=[saved.get(name)],
                )
        for name in _COUNTERS:
            setattr(self, name, saved[name])
        self._state = copy.deepcopy(saved["state"])

    def __repr__(self) -> str:
        what = f"mode={self.mode!r}" if self._named is None else f"{self._named!r}"
        if self.monitor is not None:
            what += f", monitor={self.monitor!r}"
        best = "nothing yet" if self.best is None else f"{self.best:.6g} in epoch {self.best_epoch}"
        return f"EarlyStopping({what}, patience={self.patience}): best {best}, waited {self.waited}"


def _rule(rule: Rule | str) -> Rule:
    try:
        return parse(rule)
    except ParseError as error:
        raise ParseError(
            f"{error} For a metric that is neither a rule nor on a card, leave it out and say mode='min' or "
            "mode='max'."
        ) from None


def _loss_of(
    monitor: str | None, rule: Rule | str | None, method: str | Sequence[str]
) -> RefinementLoss | None:
    """The function that computes the monitored number, if it is more than a rule."""
    if monitor is None:
        return None
    check_choice("monitor", monitor, ("refinement",))
    from verax.wings.select.refinement.epochs import RefinementLoss

    return RefinementLoss("log_score" if rule is None else _rule(rule), method=method)


def _direction(rule: Rule | None, metric: str | None, mode: Direction | None) -> Direction:
    if (rule is None and metric is None) == (mode is None):
        raise InputError(
            "must be given for a metric that is no rule, and only then: a direction is never guessed",
            argument="mode",
            kind="missing",
            remedies=[passing(mode="min"), passing("for a rule", rule=...)],
        )
    if rule is not None:
        return "min"
    if metric is not None:
        if ORIENTATIONS[metric] not in (LOWER, HIGHER):
            raise InputError(
                "must be a metric of which lower or higher is better",
                argument="rule",
                found=f"of {metric}, {ORIENTATIONS[metric]}",
                values=[metric],
                remedies=[passing("to stop by calibration and discrimination together", rule="log_score")],
            )
        return "max" if ORIENTATIONS[metric] == HIGHER else "min"
    if not isinstance(mode, str) or mode not in ("min", "max"):
        raise InputError(f"must be 'min' or 'max', not {show(mode)}", argument="mode", values=[mode])
    return mode


def _number(value: Any) -> float:
    if hasattr(value, "detach"):  # torch warns where a gradient is lost by accident
        value = value.detach()
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise InputError(
            f"must be one number, not {show(value)}", argument="value", kind="type", values=[value]
        ) from None
