"""verax: how good are a classifier's probabilities, which model to keep, what to look at first.

>>> import verax as vx
>>> round(vx.rps([2, 0], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), 4)
0.0975
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from verax._version import __version__ as __version__

# `__init__.pyi` states each public name once. It is imported when first used, so `import verax` stays quick.
_named, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(name for name in _names if name != "__version__")

# What to type instead of names that other packages use.
_HINTS = {
    "Report": "vx.report.Report.of(y, p)",
    "accuracy": 'vx.evaluate(y, p)["accuracy"]',
    "accuracy_score": 'vx.evaluate(y, p)["accuracy"]',
    "auc": "vx.roc_auc(y, p)",
    "auroc": "vx.roc_auc(y, p)",
    "average_precision_score": "vx.average_precision(y, p)",
    "brier_score": "vx.brier(y, p)",
    "brier_score_loss": 'vx.rules.Brier(scale="half")(y, p)',
    "calibration_curve": "vx.reliability(y, p)",
    "calibration_error": "vx.ece(y, p)",
    "classification_report": "vx.evaluate(y, p)",
    "cohen_kappa_score": "vx.kappa(y, decisions, n_classes=K)",
    "confusion_matrix": "vx.evaluate(y, p).confusion",
    "cross_entropy": "vx.log_score(y, p)",
    "decision_curve": "vx.net_benefit(y, p)",
    "expected_calibration_error": "vx.ece(y, p)",
    "ece_score": "vx.ece(y, p)",
    "f1": 'vx.evaluate(y, p)["f1"], or vx.operating_points(y, p, threshold=0.5)',
    "f1_score": 'vx.evaluate(y, p)["f1"], or vx.operating_points(y, p, threshold=0.5)',
    "log_loss": "vx.log_score(y, p)",
    "nll": "vx.log_score(y, p)",
    "precision": 'vx.evaluate(y, p)["ppv"], or vx.operating_points(y, p, threshold=0.5)',
    "precision_score": 'vx.evaluate(y, p)["ppv"], or vx.operating_points(y, p, threshold=0.5)',
    "qwk": 'vx.evaluate(y, p, ordered=True)["qwk"], or vx.kappa(y, decisions, n_classes=K)',
    "ranked_probability_score": "vx.rps(y, p)",
    "recall": 'vx.evaluate(y, p)["sensitivity"], or vx.operating_points(y, p, threshold=0.5)',
    "recall_score": 'vx.evaluate(y, p)["sensitivity"], or vx.operating_points(y, p, threshold=0.5)',
    "roc_auc_score": "vx.roc_auc(y, p)",
    "scorer": "vx.adapters.sklearn.scorer(vx.rps)",
    "smECE": 'vx.smooth_ece(y, p, kind="classwise")',
    "sensitivity": 'vx.evaluate(y, p)["sensitivity"], or vx.operating_points(y, p, threshold=0.5)',
    "specificity": 'vx.evaluate(y, p)["specificity"], or vx.operating_points(y, p, threshold=0.5)',
}

# Where a former name is, what it is called there, and what to write.
_RENAMED = {
    "Recorded": ("scans.record", "Recorded", "verax.scan(source, record=True)"),
    "fit_pool": ("wings.lists.combination.combination", "fit_combination", "verax.fit_combination"),
    "sets": ("wings.sets.analysis", "evaluate_sets", "verax.evaluate_sets"),
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        globals()[name] = value = _named(name)
        return value
    if name.startswith("_"):
        raise AttributeError(f"module 'verax' has no attribute {name!r}")
    from verax.scores.registry import RULES

    # Rules that others have registered.
    return RULES[name] if name in RULES else _moved(name)


def _moved(name: str) -> Any:
    """What version 0.2 had under this name; where it is not known, an error with the line to type."""
    import difflib
    import warnings
    from importlib import import_module

    if name in _HINTS:
        raise AttributeError(f"module 'verax' has no attribute {name!r}. Type {_HINTS[name]}.")
    for place in ("errors", "results", "rules", "diagrams"):
        if name in import_module(f"verax.{place}").__all__:
            module, new, now = place, name, f"verax.{place}.{name}"
            break
    else:
        module, new, now = _RENAMED.get(name, ("", "", ""))
    if new:
        warnings.warn(f"verax.{name} is now {now}.", DeprecationWarning, stacklevel=3)
        return getattr(import_module(f"verax.{module}"), new)
    near = difflib.get_close_matches(name, [*__all__, *_HINTS], n=1)
    known = f" Did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"module 'verax' has no attribute {name!r}.{known}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
