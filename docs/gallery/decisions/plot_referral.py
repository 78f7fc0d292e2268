"""
How many cases should be referred to a doctor?
==============================================

A model need not decide every case. Keeping the certain ones and referring the others reduces
errors. By how much, and what is it worth?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import verax as vx

x, y = load_breast_cancer(return_X_y=True)
malignant = y == 0
forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
p = cross_val_predict(forest, x, malignant, cv=5, method="predict_proba")

# %%
# The error rate among the tumours kept, most certain first, for every share kept. With a fifth
# referred, errors fall from 3.7 % to 0.7 %.

curve = vx.risk_coverage(malignant, p, bootstrap=200)
curve.plot()
assert curve.risk_at(1) > 5 * curve.risk_at(0.8)
print(curve)

# %%
# Whether to refer depends on the cost of errors. Say that a missed cancer costs 10 and a false
# alarm 1. A case is referred if even the cheaper decision is expected to cost more than asking a
# doctor.

costs = [[0, 1], [10, 0]]  # rows: benign, malignant; columns: what was decided
doctor = np.linspace(0.02, 0.6, 30)
found = vx.deferral(malignant, p, costs=costs, defer=doctor)
print(vx.deferral(malignant, p, costs=costs, defer=[0.05, 0.1, 0.2, 0.4]))

figure, axes = plt.subplots(2, 1, figsize=(6.4, 4.4), sharex=True, layout="constrained")
axes[0].plot(doctor, [100 * line.share for line in found.lines], color="#0072B2")
axes[0].set(ylabel="referred (%)", ylim=(0, None))
axes[1].plot(doctor, [line.saved for line in found.lines], color="#0072B2")
low, high = zip(*(line.saved_interval for line in found.lines), strict=True)
axes[1].fill_between(doctor, low, high, color="#0072B2", alpha=0.2, linewidth=0)
axes[1].axhline(0, color="grey", linewidth=0.8)
axes[1].set(xlabel="cost of asking the doctor (a false alarm costs 1)", ylabel="saved per case")
