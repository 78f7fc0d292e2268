"""Metrics of epochs from their validation forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verax.analyses.cards.evaluation import evaluate
from verax.analyses.measures import ORIENTATIONS, is_ordinal
from verax.errors import InputError, VeraxError, show
from verax.inputs.handles import Handle
from verax.inputs.options import RowOptions
from verax.scores.base import Rule
from verax.scores.metrics import HIGHER, LOWER
from verax.wings.select.refinement.epochs import RefinementLoss as RefinementLoss

REFINEMENT = "refinement"
# What epochs are measured by unless rules are named.
DEFAULT = ("brier", "log_score", "pbs", REFINEMENT)


def measured(
    epochs: object, rules: Sequence[Rule | str] | None, method: str | Sequence[str], read: RowOptions
) -> list[dict[str, Any]]:
    """The records of a history: the mean loss of each epoch by some rules, its refinement and its metrics.

    Parameters
    ----------
    epochs : mapping of number to (y, p) or Handle
        Validation outcomes and forecasts of each epoch.
    rules : sequence of Rule or str, optional
        Rules by name, and "refinement", or "RULE_refinement" for another rule than the log score; and metrics
        of a card by name, such as "qwk".
    method : str or sequence of str
        How to recalibrate.
    read : RowOptions
        How rows are read.
    """
    if not isinstance(epochs, Mapping) or not epochs:
        raise InputError(
            f"must be a mapping of epochs to (outcomes, forecasts), not {show(epochs)}",
            argument="epochs",
            kind="type",
        )
    if rules is not None and not isinstance(rules, (list, tuple)):
        raise InputError(f"must be a list of rules, not {show(rules)}", argument="rules", kind="type")
    wanted = list(DEFAULT if rules is None else rules)
    refined = {name: name for name in wanted if isinstance(name, str) and name.endswith(REFINEMENT)}
    losses = {
        name: RefinementLoss(name.removesuffix(REFINEMENT).rstrip("_") or "log_score", method=method)
        for name in refined
    }
    metrics = [name for name in wanted if isinstance(name, str) and _is_metric(name)]
    plain = [rule for rule in wanted if not (isinstance(rule, str) and (rule in refined or rule in metrics))]
    ordered = any(loss.rule.ordinal for loss in losses.values()) or any(map(is_ordinal, metrics))
    records = []
    for epoch, given in epochs.items():
        rows = (given,) if isinstance(given, Handle) else _pair(epoch, given)
        card = evaluate(*rows, rules=plain or ["brier"], ordered=ordered, **read)
        values = {name: card[name] for name in card.scores} if plain else {}
        values |= {name: loss(*rows, **read) for name, loss in losses.items()}
        values |= {name: card[name] for name in metrics}
        values |= _f1(card) | {name: card[name] for name in ("accuracy",) if name in card.metrics}
        records.append({"epoch": epoch, **values})
    return records


def _f1(card: Any) -> dict[str, float]:
    """F1 of the event of two classes, or the mean over more; lists and very many classes have none."""
    name = "f1" if "f1" in card.metrics else "macro_f1"
    try:
        return {name: card[name]}
    except (KeyError, VeraxError):
        return {}


def _is_metric(name: str) -> bool:
    """Whether a card has this number, and lower or higher is better."""
    return ORIENTATIONS.get(name) in (LOWER, HIGHER)


def _pair(epoch: object, given: Any) -> tuple[Any, Any]:
    try:
        y, p = given
    except (TypeError, ValueError):
        raise InputError(
            "must hold outcomes and forecasts for every epoch, (y, p)",
            argument="epochs",
            kind="type",
            found=f"epoch {show(epoch)} holds {show(given)}",
        ) from None
    return y, p
