"""
Two forecasters: should I follow one, or both?
==============================================

The mean of several forecasts is often better than each of them. ``vx.fit_combination`` finds the weights
with the lowest loss, cross-validates the pool, and tests whether it beats its parts.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import verax as vx

x, y = load_digits(return_X_y=True)
models = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "trees": ExtraTreesClassifier(50, random_state=0),
    "naive Bayes": GaussianNB(var_smoothing=0.01),
}
forecasts = {name: cross_val_predict(m, x, y, cv=4, method="predict_proba") for name, m in models.items()}

found = vx.fit_combination(y, forecasts, rule="brier")
print(found)

# %%
# The trees know something that logistic regression does not, so they get a fifth of the weight, and
# the combination is better than each of its parts.

found.comparison.plot()
assert found.beats_all
