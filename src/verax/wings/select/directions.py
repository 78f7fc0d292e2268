"""The parts of a logged metric's name: data set, quantity, better direction.

Nothing is guessed. verax rules are losses; common losses and scores have a known direction; for
everything else the caller must state it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from verax.errors import InputError, VeraxError, join, passing, show
from verax.scores.base import Rule
from verax.scores.metrics import METRICS
from verax.scores.registry import stored_rule

Direction = Literal["min", "max"]

# Words in front of a name, or after it, that say which part of the data it is about.
PARTS = {
    **dict.fromkeys(("val", "valid", "validation", "eval", "dev"), "validation"),
    **dict.fromkeys(("train", "training", "learn"), "train"),
    **dict.fromkeys(("test", "testing"), "test"),
}
_SEPARATORS = "_/.-: "
# XGBoost and LightGBM number the data sets that they were given: validation_0-logloss, valid_1_auc.
_NUMBERED = re.compile(r"(val|valid|validation|eval)_(\d+)(?=[_/.\-: ])")
# What cross-validation of XGBoost, LightGBM and CatBoost writes after a metric; a spread is no metric.
_MEAN, _SPREAD = re.compile(r"[-_ ]mean$"), re.compile(r"[-_ ](std|stdv)$")

F1 = frozenset({"f1", "f1_score", "f_score", "f_measure"})
ACCURACY = frozenset(
    {"accuracy", "acc", "categorical_accuracy", "sparse_categorical_accuracy", "binary_accuracy"}
)
# Better one way by definition, not by custom. Separators, capitals and the words of _KINDS do not matter.
HIGHER = (
    F1
    | ACCURACY
    | {"precision", "recall", "sensitivity", "specificity", "tpr", "tnr", "ppv", "npv"}
    | {"auc", "auroc", "roc_auc", "auc_roc", "average_precision", "ap", "map", "auprc", "pr_auc", "aucpr"}
    | {"mcc", "matthews_corrcoef", "matthews_correlation", "cohen_kappa", "quadratic_weighted_kappa"}
    | {"top_1", "top_5", "top_1_accuracy", "top_5_accuracy", "top_k_categorical_accuracy"}
    | {"sparse_top_k_categorical_accuracy", "exact_match", "iou", "mean_iou", "miou", "jaccard", "dice"}
    | {"ndcg", "mrr", "c_index", "concordance", "r2", "r2_score", "skill"}
    | {name for name, metric in METRICS.items() if metric.higher_is_better}
)
LOWER = frozenset(
    {
        "loss",
        "log_loss",
        "mlogloss",
        "multi_logloss",
        "binary_logloss",
        "nll",
        "negative_log_likelihood",
        "ce",
        "bce",
        "xent",
    }
    | {"perplexity", "ppl"}
    | {"cross_entropy", "cross_entropy_loss", "categorical_crossentropy", "sparse_categorical_crossentropy"}
    | {"binary_crossentropy", "kl", "kld", "kl_divergence", "brier_score", "brier_loss", "hinge", "merror"}
    | {"error", "error_rate", "mse", "rmse", "mean_squared_error", "mean_absolute_error", "wer", "cer"}
    | {"fpr", "fnr", "ece", "mce", "calibration_error", "expected_calibration_error", "miscalibration"}
    | {"refinement"}
    | {name for name, metric in METRICS.items() if not metric.higher_is_better}
)
# Last words that say what a number is, whatever stands before them: "focal_loss", "class_3_f1".
_LOSSES = ("loss", "error", "crossentropy", "perplexity", "refinement")
_SCORES = ("accuracy", "acc", "f1", "auc", "auroc", "precision", "recall", "iou", "kappa")
# A negated loss is a score, and the other way round; which one is meant, these words do not say.
_NEGATED = re.compile(r"neg|minus|inverse|inv|one_minus|1-")
# Words that say which kind of mean or of problem.
_KINDS = ("multiclass", "multilabel", "macro", "micro", "weighted", "samples", "ovr", "ovo")
# What loggers write beside metrics.
NO_METRIC = frozenset(
    {"lr", "learning_rate", "grad_norm", "runtime", "samples_per_second", "steps_per_second", "total_flos"}
    | {"tokens_per_second", "num_tokens", "wall_time", "timestamp", "time", "relative_time", "hp_metric"}
    | {
        "",
        "unnamed_0",
        "passed_time",
        "remaining_time",
        "relative_time_process",
        "relative_time_wall",
        "epoch_time",
        "num_input_tokens_seen",
    }
)


def unknown_direction(metrics: Sequence[str]) -> InputError:
    """The error about metrics whose better direction is not known."""
    return InputError(
        "must say which direction is better",
        argument="directions",
        kind="missing",
        found=f"it is not known for {join(map(show, metrics))}",
        values=list(metrics),
        remedies=[passing("or 'max'", directions={metrics[0]: "min"})],
    )


def is_higher_better(score: str, better: Literal["lower", "higher"] | None) -> bool:
    """Whether higher values of a score are better: as the caller or else its name says."""
    if better is not None:
        return better == "higher"
    direction = Name.of(score).direction
    if direction is None:
        raise InputError(
            "must say which scores are better",
            argument="better",
            kind="missing",
            found=f"the name {show(score)} does not",
            remedies=[passing("for losses, or 'higher' for accuracies", better="lower")],
        )
    return direction == "max"


@dataclass(frozen=True)
class Name:
    """The name of a logged metric, read.

    Attributes
    ----------
    part : "validation", "train", "test", or "" if it does not say.
    base : the quantity, in lower case, without the part.
    rule : the rule of verax that it names, if it names one.
    direction : which way is better, where that is known; None otherwise.
    is_metric : whether it measures a model, as far as the name says; learning rates and times do not.
    number : which of several data sets it is about, where they are numbered; -1 otherwise.
    """

    part: str
    base: str
    rule: Rule | None
    direction: Direction | None
    is_metric: bool = True
    number: int = -1

    @classmethod
    def of(cls, name: str) -> Name:
        """Read a name such as "val_pbs", "val/pbs", "pbs/val", "val_pbs_epoch" or "validation/epoch_loss"."""
        # Lightning appends this to what it averages over the steps of an epoch, Keras prepends it.
        given = name.strip().removesuffix("_epoch").lower()
        numbered = _NUMBERED.match(given)
        number = -1 if numbered is None else int(numbered[2])
        part, base = _part_of(_MEAN.sub("", _NUMBERED.sub(r"\1", given)))
        base = base.removeprefix("epoch_")
        rule, direction = _rule(base), _direction(base)
        if rule is None and "/" in base:
            # Folders in front of the name, of which one may be the part: "metrics/val/brier".
            *folders, last = base.split("/")
            inner, base = _part_of(last)
            part = part or next((PARTS[f] for f in folders if f in PARTS), inner)
            rule, direction = _rule(base), _direction(base)
        if rule is not None:
            return cls(part, base, rule, "min", number=number)
        measures = _squeezed(base) not in _NO_METRIC and not _SPREAD.search(base)
        return cls(part, base, None, direction, measures, number)

    @property
    def is_target(self) -> bool:
        """Whether the metric is one that the papers compare rules with: F1 or accuracy."""
        return _plain(self.base) in _TARGETS

    @property
    def is_judge(self) -> bool:
        """Whether epochs are selected by it unless others are named: a rule of verax, or its refinement."""
        return self.rule is not None or re.split(r"[\W_]+", self.base)[-1] == "refinement"


def _squeezed(name: str) -> str:
    """A name without capitals and separators."""
    return re.sub(r"[\W_]+", "", name.lower())


def _plain(name: str) -> str:
    """A squeezed name without words for kinds of means: "macro_F1-score" is "f1score"."""
    squeezed = _squeezed(name)
    for kind in _KINDS:
        shorter = squeezed.removeprefix(kind).removesuffix(kind)
        squeezed = shorter or squeezed
    return squeezed


_TARGETS, _HIGHER, _LOWER, _NO_METRIC = (
    frozenset(map(_squeezed, s)) for s in (F1 | ACCURACY, HIGHER, LOWER, NO_METRIC)
)


def _direction(base: str) -> Direction | None:
    """The better direction, from a name without its part; None if the name does not tell."""
    plain = _plain(base)
    if plain in _LOWER or plain in _HIGHER:
        return "min" if plain in _LOWER else "max"
    if _NEGATED.match(base):
        return None
    words = re.split(r"[\W_]+", base)
    while len(words) > 1 and words[-1] in _KINDS:
        words.pop()
    if words[-1] in _LOSSES:
        return "min"
    return "max" if words[-1] in _SCORES else None


def _part_of(name: str) -> tuple[str, str]:
    for word, part in PARTS.items():
        if name.startswith(word) and name[len(word) : len(word) + 1] in (*_SEPARATORS,):
            return part, name[len(word) :].lstrip(_SEPARATORS)
        if name.endswith(word) and name[: -len(word)][-1:] in (*_SEPARATORS,):
            return part, name[: -len(word)].rstrip(_SEPARATORS)
    return "", name


def _rule(text: str) -> Rule | None:
    try:
        return stored_rule(text)
    except VeraxError:
        return None
