"""A LightGBM classifier with correct probabilities after training with a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from verax.adapters.boosting.trees import probabilities

if TYPE_CHECKING:
    from verax.common.packages import Untyped as LGBMClassifier
else:
    from lightgbm import LGBMClassifier


class LightGBMClassifier(LGBMClassifier):
    """An `LGBMClassifier` that predicts probabilities and classes with custom objectives.

    LightGBM itself returns raw scores then. This class takes the parameters of `lightgbm.LGBMClassifier` and
    works wherever scikit-learn calls `predict_proba` or `predict`: `cross_val_score`, `GridSearchCV`,
    calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from verax.adapters.boosting import LightGBMClassifier, lightgbm_objective
    >>> from verax.adapters.sklearn import scorer
    >>> x = np.random.default_rng(0).normal(size=(90, 2))
    >>> y = np.digitize(x[:, 0], [-0.5, 0.5])
    >>> objective = lightgbm_objective("rps", order=[0, 1, 2])
    >>> model = LightGBMClassifier(objective=objective, n_estimators=5, n_jobs=1, verbose=-1)
    >>> bool((cross_val_score(model, x, y, cv=3, scoring=scorer("rps")) > -0.2).all())
    True
    """

    def predict_proba(self, X: Any, raw_score: bool = False, *args: Any, **kwargs: Any) -> Any:
        """Predict class probabilities, in the order of `classes_`; otherwise as in LightGBM.

        Parameters
        ----------
        X : array_like of N rows
            The features.
        raw_score : bool, default False
            Whether to return raw scores instead.
        *args : Any
            Further arguments of LightGBM's method.
        **kwargs : Any
            Further options of LightGBM's method.

        Returns
        -------
        array of shape (N, K)
            The probabilities.
        """
        other_output = raw_score or any(kwargs.get(name) for name in ("pred_leaf", "pred_contrib"))
        if other_output or not callable(self.objective):
            return super().predict_proba(X, raw_score, *args, **kwargs)  # type: ignore[misc]
        return probabilities(super().predict_proba(X, True, *args, **kwargs))  # type: ignore[misc]

    def predict(self, X: Any, raw_score: bool = False, *args: Any, **kwargs: Any) -> Any:
        """Predict the most likely class of each row; otherwise as in LightGBM.

        Parameters
        ----------
        X : array_like of N rows
            The features.
        raw_score : bool, default False
            Whether to return raw scores instead.
        *args : Any
            Further arguments of LightGBM's method.
        **kwargs : Any
            Further options of LightGBM's method.

        Returns
        -------
        array of shape (N,)
            The labels.
        """
        other_output = raw_score or any(kwargs.get(name) for name in ("pred_leaf", "pred_contrib"))
        if other_output or not callable(self.objective):
            return super().predict(X, raw_score, *args, **kwargs)  # type: ignore[misc]
        return self.classes_[np.argmax(self.predict_proba(X, False, *args, **kwargs), axis=1)]
