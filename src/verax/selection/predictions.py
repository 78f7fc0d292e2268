"""Metrics of epochs from their validation forecasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verax.analyses.cards.evaluation import evaluate
from verax.analyses.refinement.epochs import RefinementLoss as RefinementLoss
from verax.errors import InputError, show
from verax.inputs.handles import Handle
from verax.inputs.options import Reading
from verax.scores.base import Rule

REFINEMENT = "refinement"
# What epochs are measured by unless rules are named.
DEFAULT = ("brier", "log_score", "pbs", REFINEMENT)


def measured(
    epochs: object, rules: Sequence[Rule | str] | None, method: str | Sequence[str], read: Reading
) -> list[dict[str, Any]]:
    """The records of a history: the mean loss of each epoch by some rules, its refinement and its accuracy.

    Parameters
    ----------
    epochs : mapping of number to (y, p) or Handle
        Validation outcomes and forecasts of each epoch.
    rules : sequence of Rule or str, optional
        Rules by name, and "refinement", or "RULE_refinement" for another rule than the log score.
    method : str or sequence of str
        How to recalibrate.
    read : Reading
        How rows are read.
    """
    if not isinstance(epochs, Mapping) or not epochs:
        raise InputError(
            f"must be a mapping of epochs to (outcomes, forecasts), not {show(epochs)}",
            argument="epochs",
            kind="type",
        )
    wanted = list(DEFAULT if rules is None else rules)
    refined = {name: name for name in wanted if isinstance(name, str) and name.endswith(REFINEMENT)}
    losses = {
        name: RefinementLoss(name.removesuffix(REFINEMENT).rstrip("_") or "log_score", method=method)
        for name in refined
    }
    plain = [rule for rule in wanted if not (isinstance(rule, str) and rule in refined)]
    records = []
    for epoch, given in epochs.items():
        rows = (given,) if isinstance(given, Handle) else _pair(epoch, given)
        ordered = any(loss.rule.ordinal for loss in losses.values())
        card = evaluate(*rows, rules=plain or ["brier"], ordered=ordered, **read)
        values = {name: card[name] for name in card.scores} if plain else {}
        values |= {name: loss(*rows, **read) for name, loss in losses.items()}
        values |= {name: card[name] for name in ("f1", "accuracy") if name in card.metrics}
        records.append({"epoch": epoch, **values})
    return records


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
