"""
Would every proper score choose the same model?
===============================================

All proper scores of an event are mixtures of elementary scores, one for each decision threshold. If
one model is better at all thresholds, every proper score prefers it. If the curves cross, the
ranking depends on the score, that is, on the user. A Murphy diagram shows which case it is.

Two forecasts of whether diabetes progresses further than in half of the patients: naive Bayes with
all ten measurements, and logistic regression with blood pressure alone.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import verax as vx

x, progression = load_diabetes(return_X_y=True)
y = progression > np.median(progression)
models = {"naive Bayes": (GaussianNB(), x), "blood pressure": (LogisticRegression(C=100), x[:, [3]])}
forecasts = {
    name: cross_val_predict(model, columns, y, cv=10, method="predict_proba")
    for name, (model, columns) in models.items()
}

# %%
# The Brier score finds no difference, the log score a large one.

comparison = vx.compare(y, forecasts, rule=["brier", "log_score"])
for rule in ("brier", "log_score"):
    d = comparison.difference("naive Bayes", "blood pressure", rule)
    print(f"{rule}: {d.difference:+.3f} ({d.interval:.3f})")

# %%
# Naive Bayes discriminates well, so it is better for users who act at thresholds around 0.4. It is
# overconfident near 0 and 1 and fails users who act at small or large probabilities. The Brier
# score weights all thresholds equally and the two cancel; the log score gives most weight to the
# ends.

found = vx.diagrams.murphy(y, forecasts, classes=["slower", "faster"])
found.plot()
print(*found.sentences)
assert not found.dominates("naive Bayes", "blood pressure")
assert not found.dominates("blood pressure", "naive Bayes")
