"""
Can I fix the probabilities without retraining?
===============================================

Naive Bayes assumes independent features. Here half of them are mixtures of the others, so it counts
the same evidence twice and becomes overconfident. ``vx.recalibrate`` learns a function that
corrects its forecasts, measures the gain on held-out rows, and changes nothing if no method helps.
The data are generated.
"""

from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

import verax as vx

x, y = make_classification(
    4000, n_features=12, n_informative=6, n_redundant=6, n_classes=3, class_sep=0.8, random_state=0
)
train, held_out, test = slice(0, 1000), slice(1000, 2000), slice(2000, 4000)
model = GaussianNB().fit(x[train], y[train])

# %%
# Fit to rows that the model was not trained on. Each method is cross-validated within these rows,
# and the simplest one that is about as good as the best is chosen.

found = vx.recalibrate(
    y[held_out], model.predict_proba(x[held_out]), method=["temperature", "bcts", "vector", "isotonic"]
)
print(found)
found.plot()

# %%
# The gain holds on the test rows, which have not been used so far.

before = model.predict_proba(x[test])
after = found.apply(before)
comparison = vx.compare(y[test], {"before": before, "after": after}, rule=["log_score", "brier"])
print(comparison)
assert comparison.leader("log_score") == comparison.leader("brier") == "after"

# %%
# Before: the model is overconfident. When it is confident of a class, it is wrong too often, and
# vice versa.

vx.reliability(y[test], before).plot()

# %%
# After: the curves are much closer to the diagonal.

vx.reliability(y[test], after).plot()
