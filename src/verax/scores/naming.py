"""Advice on unknown names: the nearest known one, and the names of other packages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# What other packages call rules.
_RULES_ELSEWHERE = {
    "nll": "log_score",
    "log_loss": "log_score",
    "logloss": "log_score",
    "cross_entropy": "log_score",
    "mse": "brier",
    "brier_score": "brier",
    "brier_score_loss": "brier",
}
# What they call metrics of decisions and measures of probabilities.
METRICS_ELSEWHERE = {
    "recall": "sensitivity",
    "tpr": "sensitivity",
    "tnr": "specificity",
    "precision": "ppv",
    "f1_score": "f1",
    "f1_macro": "macro_f1",
    "recall_macro": "balanced_accuracy",
    "macro_recall": "balanced_accuracy",
    "precision_macro": "macro_ppv",
    "macro_precision": "macro_ppv",
    "quadratic_weighted_kappa": "qwk",
    "cohen_kappa": "kappa",
    "cohen_kappa_score": "kappa",
    "roc_auc": "auc",
    "auroc": "auc",
    "c_statistic": "auc",
    "pr_auc": "average_precision",
    "concordance": "c_index",
    "expected_calibration_error": "ece",
    "calibration_slope": "slope",
    "calibration_intercept": "intercept",
}
_ELSEWHERE = _RULES_ELSEWHERE | METRICS_ELSEWHERE
# Those that rank rows, and the functions that compare models by them.
RANKINGS = {"auc": "roc_auc", "average_precision": "average_precision", "c_index": "c_index"}
# What they call methods of recalibration. Platt's is a slope and an intercept of the logit.
METHODS_ELSEWHERE = {
    **dict.fromkeys(("platt", "platt_scaling", "sigmoid", "logistic"), "bcts"),
    "temperature_scaling": "temperature",
    "vector_scaling": "vector",
    **dict.fromkeys(("matrix", "matrix_scaling"), "smatrix"),
    "isotonic_regression": "isotonic",
    "beta_calibration": "beta",
}


def metric_hint(name: str) -> str | None:
    """Advice on a metric passed as a rule; None for other names.

    >>> metric_hint("recall")[:56]
    "'recall' is a metric, not a rule: `evaluate` shows it as"
    """
    known = METRICS_ELSEWHERE.get(name.lower(), name.lower())
    if known not in METRICS_ELSEWHERE.values():
        return None
    called = "" if known == name else f" as {known!r}"
    compared = ""
    if known in RANKINGS:
        typed = f"`verax compare --rule {known}`"
        compared = f", and `{RANKINGS[known]}(y, {{name: p}})` compares models by it ({typed})"
    elif known in ("sensitivity", "specificity", "ppv", "f1", "balanced_accuracy"):
        typed = f"`verax compare --rule {known} --threshold 0.5`"
        compared = f", and `operating_points(y, {{name: p}})` compares models by it ({typed})"
    return f"{name!r} is a metric, not a rule: `evaluate` shows it{called}{compared}."


def suggestions(name: object, known: Iterable[str]) -> list[str]:
    """Sentences about an unknown name: the nearest known one, if there is any, and all of them.

    >>> suggestions("recall", ["accuracy", "sensitivity"])
    ["Did you mean 'sensitivity'?", 'Valid names are accuracy, sensitivity.']
    """
    names, text = list(known), str(name).lower()
    near = [_ELSEWHERE[text]] if _ELSEWHERE.get(text) in names else []
    near = near or difflib.get_close_matches(text, names, n=1)
    return [*(f"Did you mean {match!r}?" for match in near), f"Valid names are {', '.join(names)}."]
