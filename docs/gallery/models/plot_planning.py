"""
How many patients are enough?
=============================

A small pilot compares two models of a tumour's malignancy. Their difference is not significant. How
many patients would show one? ``vx.plan`` answers from the spread of the pilot.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import verax as vx

data = load_breast_cancer()
pilot = np.random.default_rng(0).permutation(len(data.target))[:200]
x, y = data.data[pilot], data.target[pilot]
models = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(60, min_samples_leaf=5, random_state=0),
}
forecasts = {name: cross_val_predict(model, x, y, method="predict_proba") for name, model in models.items()}

# %%
# The line is the number of patients for 90 % power. The shaded range is what 200 patients leave open:
# a few of them make much of the spread.

plan = vx.plan(y, forecasts, rule="brier", difference=0.02)
plan.plot()
print(plan)
assert plan.rows > 200

# %%
# For the accuracy of one model, plus or minus two points, no second model is needed.

print(vx.plan(y, forecasts["logistic"], rule="accuracy", width=0.02))

# %%
# Before there is any pilot, the bounds of the rule give the worst case. It is far too pessimistic here.

worst_case = vx.plan(rule="brier", difference=0.02)
print(f"{worst_case.rows:,} instead of {plan.rows:,} patients")
assert worst_case.rows > 10 * plan.rows
