"""Cards as values that are stored, and as fields again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verax.analyses.cards.rows import CardSums
from verax.common.packing import UnreadableError
from verax.common.specs import Label, Several
from verax.common.stored import inside, truth
from verax.common.summaries import fields_of
from verax.inference.intervals import Resampling
from verax.inputs.skipping import Skipped
from verax.scores.storing import metric_named, metric_values, tally_of, tally_values


def card_values(card: CardSums, skipped: Skipped | None) -> dict[str, Any]:
    """The values of a card to store, with the rows that were left out."""
    return {
        "tally": tally_values(card.tally),
        "classes": card.classes,
        "ordered": card.ordered,
        "metrics": metrics_of(card),
        "resampling": card.resampling.to_values(),
        "skipped": None if skipped is None else skipped.to_values(),
        **{name: getattr(card, name) for name in card._stored},
    }


def card_fields(cls: type[CardSums], values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a card of this class from what was stored."""
    with inside("tally"):
        tally = tally_of(values["tally"])
    classes = values["classes"]
    if classes is not None:
        with inside("classes"):
            classes = Several(Label()).read(classes, {})
    if tally.counts is None or (classes is not None and len(set(classes)) != tally.n_classes):
        raise UnreadableError("does not belong to the sums", "classes")
    with inside("ordered"):
        ordered = truth(values["ordered"])
    return {
        "tally": tally,
        "classes": classes,
        "ordered": ordered,
        "count_metrics": tuple(map(metric_named, values["metrics"])),
        "resampling": Resampling.checked(**values["resampling"]),
        **fields_of(cls._stored, {name: values[name] for name in cls._stored}, {"n_rows": tally.n_rows}),
    }


def metrics_of(card: CardSums) -> list[dict[str, Any]]:
    """The metrics of decisions on a card, as they are stored."""
    return [metric_values(metric) for metric in card.count_metrics]
