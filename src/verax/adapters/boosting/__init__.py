"""Rules as evaluation metrics and training objectives of XGBoost, LightGBM and CatBoost.

The libraries call small objects that know how each passes predictions: as probabilities for built-in
objectives, as raw scores for custom ones (CatBoost: always). Labels are class positions. If these may be
positions of sorted labels (LGBMClassifier, CatBoost), ordinal rules require `order`. Only
`LightGBMClassifier` imports its library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from verax.common.packages import exports

if TYPE_CHECKING:
    from verax.adapters.boosting.catboost import catboost_metric, catboost_objective
    from verax.adapters.boosting.classifier import LightGBMClassifier
    from verax.adapters.boosting.trees import (
        lightgbm_metric,
        lightgbm_objective,
        probabilities,
        start_scores,
        xgboost_metric,
        xgboost_objective,
    )

__all__ = [
    "LightGBMClassifier",
    "catboost_metric",
    "catboost_objective",
    "lightgbm_metric",
    "lightgbm_objective",
    "probabilities",
    "start_scores",
    "xgboost_metric",
    "xgboost_objective",
]

__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = exports(
    __name__,
    {
        "LightGBMClassifier": "classifier",
        "catboost_metric": "catboost",
        "catboost_objective": "catboost",
        "lightgbm_metric": "trees",
        "lightgbm_objective": "trees",
        "probabilities": "trees",
        "start_scores": "trees",
        "xgboost_metric": "trees",
        "xgboost_objective": "trees",
    },
    missing={"lightgbm": ("{name} needs LightGBM", "lightgbm")},
)
