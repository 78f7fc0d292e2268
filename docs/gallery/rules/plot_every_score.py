"""
Would every proper score choose the same model?
===============================================

All proper scores of an event are mixtures of elementary scores, one for each threshold from which
somebody acts. Where one model is better at all thresholds, every proper score prefers it. Where the
curves cross, it depends on the score, that is, on who is asking. A Murphy diagram shows which it
is.

Two forecasts of whether diabetes goes further than in half of the patients: naive Bayes with all
ten measurements, and logistic regression with the blood pressure alone.
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
# The Brier score sees no difference, the log score a large one.

comparison = vx.compare(y, forecasts, rule=["brier", "log"])
for rule in ("brier", "log_score"):
    d = comparison.difference("naive Bayes", "blood pressure", rule)
    print(f"{rule}: {d.difference:+.3f} ({d.interval:.3f})")

# %%
# Naive Bayes tells patients apart, so it is the better one for those who act at thresholds around
# 0.4. It is far too sure when it says almost 0 or almost 1, and fails those who act at small or at
# large probabilities. The Brier score weighs all thresholds alike and the two cancel; the log score
# gives most weight to the ends.

found = vx.murphy(y, forecasts, classes=["slower", "faster"])
found.plot()
print(*found.sentences)
assert not found.dominates("naive Bayes", "blood pressure")
assert not found.dominates("blood pressure", "naive Bayes")
