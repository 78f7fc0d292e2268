"""Hugging Face transformers: any rule as the loss of a `Trainer`, and metrics of its evaluations.

Neither needs a subclass: `Trainer(compute_loss_func=loss("rps"), compute_metrics=metrics(["rps", "pbs"]))`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from verax.adapters.torch.losses import Loss
from verax.errors import InputError
from verax.inputs.arrays import Array
from verax.scores.base import Rule
from verax.scores.registry import fitting_rules, name_of

# What a collator writes where there is no target.
_IGNORED = -100


def loss(rule: Rule | str, *, ignore_index: int = _IGNORED, **options: Any) -> Callable[[Any, Any, Any], Any]:
    """Create a `compute_loss_func` for a `Trainer` from a rule.

    It reads the logits of the model's output: (N, K) of sequences, (N, T, K) of tokens. With gradient
    accumulation the Trainer passes the number of targets of all steps, which the sum is then divided by.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.
    ignore_index : int, default -100
        Target of rows, or tokens, to ignore.
    **options : Any
        Further options of `verax.adapters.torch.Loss`, such as `class_weights` and `labels`.

    Returns
    -------
    callable
        A function of outputs, labels and the number of targets.

    Examples
    --------
    >>> import torch
    >>> from verax.adapters.transformers import loss
    >>> logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    >>> round(loss("rps")({"logits": logits}, torch.tensor([0, 2])).item(), 4)
    0.1689
    """
    mean = Loss(rule, ignore_index=ignore_index, **options)
    total = Loss(rule, ignore_index=ignore_index, reduction="sum", **options)

    def compute(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        logits, target = _logits_of(outputs), labels
        if mean.binary is None and logits.ndim > 2:
            target = (
                target.reshape(-1, logits.shape[-1]) if target.ndim == logits.ndim else target.reshape(-1)
            )
            logits = logits.reshape(-1, logits.shape[-1])
        measure = mean if num_items_in_batch is None else total
        measure = measure.to(logits.device)
        value = measure(logits, target)
        return value if num_items_in_batch is None else value / num_items_in_batch

    return compute


def metrics(
    rules: Sequence[Rule | str] | None = None, *, ordered: bool = False, ignore_index: int = _IGNORED
) -> Callable[[Any], dict[str, float]]:
    """Create a `compute_metrics` for a `Trainer`: the mean loss by each rule.

    The Trainer puts "eval_" before the names, so that `metric_for_best_model="eval_rps"` with
    `greater_is_better=False` keeps the best model by RPS. Invalid rows raise an `InputError` that names them.

    Parameters
    ----------
    rules : sequence of Rule or str, optional
        The rules, or their names; by default all applicable ones.
    ordered : bool, default False
        Whether the classes have an order.
    ignore_index : int, default -100
        Target of rows, or tokens, to ignore.

    Returns
    -------
    callable
        A function of an `EvalPrediction`, whose predictions are logits (N, K) or (N, T, K).

    Examples
    --------
    >>> import numpy as np
    >>> from verax.adapters.transformers import metrics
    >>> logits = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    >>> values = metrics(["rps", "brier"])((logits, np.array([0, 2])))
    >>> {name: round(value, 4) for name, value in values.items()}
    {'rps': 0.1689, 'brier': 0.4234}
    """
    chosen = fitting_rules(rules, ordered)

    def compute(prediction: Any) -> dict[str, float]:
        given, labels = prediction[0], prediction[1]
        logits = np.asarray(given[0] if isinstance(given, (tuple, list)) else given)
        rows, y = logits.reshape(-1, logits.shape[-1]), np.asarray(labels).reshape(-1)
        if len(rows) != len(y):
            raise InputError(
                "must be one class for each row of logits",
                argument="labels",
                kind="length",
                found=f"there are {len(y)}, and {len(rows)} rows",
            )
        kept = y != ignore_index
        rows, y = rows[kept].astype(np.float64), y[kept]
        return {name_of(rule): _mean(rule, y, rows) for rule in chosen}

    return compute


def _mean(rule: Rule, y: Array, logits: Array) -> float:
    return float(rule(y, logits, logits=True)) if len(y) else float("nan")


def _logits_of(outputs: Any) -> Any:
    """The logits of a model's output: an object, a mapping, or a tuple that begins with them."""
    if isinstance(outputs, dict):
        return outputs["logits"]
    return outputs[0] if isinstance(outputs, (tuple, list)) else outputs.logits
