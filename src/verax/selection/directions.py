"""What the name of a logged metric says: which part of the data, which quantity, which way is better.

Nothing is guessed. Rules of verax are losses; a short list of metrics is better one way by
definition; for everything else whoever asks has to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from verax.errors import InputError, VeraxError, join, passing, show
from verax.scores.base import Rule
from verax.scores.metrics import METRICS
from verax.scores.registry import parse

Direction = Literal["min", "max"]

# Words in front of a name, or after it, that say which part of the data it is about.
_PARTS = {
    **dict.fromkeys(("val", "valid", "validation", "eval", "dev"), "validation"),
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_SEPARATORS = "_/.-: "

F1 = frozenset(
    {"f1", "f1_score", "f1_macro", "macro_f1", "f1_micro", "micro_f1", "f1_weighted", "weighted_f1"}
)
ACCURACY = frozenset(
    {"accuracy", "acc", "categorical_accuracy", "sparse_categorical_accuracy", "binary_accuracy"}
)
# Better one way by definition, not by custom.
HIGHER = (
    F1
    | ACCURACY
    | {"precision", "recall", "auc", "auroc", "roc_auc", "mcc"}
    | {name for name, metric in METRICS.items() if metric.higher_is_better}
)
LOWER = frozenset(
    {"loss", "log_loss", "logloss", "nll", "cross_entropy", "error", "error_rate", "ece"}
    | {name for name, metric in METRICS.items() if not metric.higher_is_better}
)


def unknown_direction(metrics: Sequence[str]) -> InputError:
    """The error about metrics of which nobody has said whether lower or higher is better."""
    return InputError(
        "must say which direction is better",
        argument="directions",
        kind="missing",
        found=f"it is not known for {join(map(show, metrics))}",
        values=list(metrics),
        remedies=[passing("or 'max'", directions={metrics[0]: "min"})],
    )


@dataclass(frozen=True)
class Name:
    """The name of a logged metric, read.

    Attributes
    ----------
    part : "validation", "train", "test", or "" if it does not say.
    base : the quantity, in lower case, without the part.
    rule : the rule of verax that it names, if it names one.
    direction : which way is better, where that is known; None otherwise.
    """

    part: str
    base: str
    rule: Rule | None
    direction: Direction | None

    @classmethod
    def of(cls, name: str) -> Name:
        """Read a name such as "val_pbs", "val/pbs", "pbs/val" or "val_pbs_epoch"."""
        # Lightning appends this to what it averages over the steps of an epoch.
        part, base = _part_of(name.removesuffix("_epoch").lower())
        rule = _rule(base)
        if rule is not None or base in LOWER:
            return cls(part, base, rule, "min")
        return cls(part, base, None, "max" if base in HIGHER else None)

    @property
    def is_target(self) -> bool:
        """Whether it is what the papers compare rules with: F1 or accuracy."""
        return self.base in F1 or self.base in ACCURACY


def _part_of(name: str) -> tuple[str, str]:
    for word, part in _PARTS.items():
        if name.startswith(word) and name[len(word) : len(word) + 1] in (*_SEPARATORS,):
            return part, name[len(word) :].lstrip(_SEPARATORS)
        if name.endswith(word) and name[: -len(word)][-1:] in (*_SEPARATORS,):
            return part, name[: -len(word)].rstrip(_SEPARATORS)
    return "", name


def _rule(text: str) -> Rule | None:
    try:
        return parse(text)
    except VeraxError:
        return None
