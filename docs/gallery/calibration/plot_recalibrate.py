"""
Can I repair the probabilities without training again?
======================================================

Naive Bayes takes its features to be independent. Here half of them are mixtures of the others, so
it counts the same evidence twice and becomes too sure. ``vx.recalibrate`` learns a function from
its forecasts to better ones, says what that gains on rows that it has not seen, and does nothing
where nothing helps. The data are generated.
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
# Learn from rows that the model was not trained on. Each method is judged by cross-validation
# within these rows, and the simplest one is taken that is about as good as the best.

found = vx.recalibrate(
    y[held_out], model.predict_proba(x[held_out]), method=["temperature", "bcts", "vector", "isotonic"]
)
print(found)
found.plot()

# %%
# The promise holds on the test rows, which nobody has looked at so far.

before = model.predict_proba(x[test])
after = found.apply(before)
comparison = vx.compare(y[test], {"before": before, "after": after}, rule=["log", "brier"])
print(comparison)
assert comparison.leader("log_score") == comparison.leader("brier") == "after"

# %%
# Before: where it is sure of a class, it is wrong too often, and the other way round.

vx.reliability(y[test], before).plot()

# %%
# After: the curves are much closer to the diagonal.

vx.reliability(y[test], after).plot()
