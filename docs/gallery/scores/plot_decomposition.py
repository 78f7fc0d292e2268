"""
Where does the loss come from?
==============================

A score mixes three things: how hard the outcomes are to predict, how well the model discriminates,
and whether its probabilities are calibrated. ``vx.decompose`` separates them: score =
miscalibration - discrimination + uncertainty. This tells you what to do: recalibrate, or find a
better model.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import verax as vx

x, y = load_digits(return_X_y=True)
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(50, random_state=0),
    "naive Bayes": GaussianNB(),
    "decision tree": DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
}
found = {}
for name, model in models.items():
    p = cross_val_predict(model, x, y, cv=4, method="predict_proba")
    found[name] = vx.decompose(y, p, rule="brier")
    d = found[name]
    print(f"{name}: {d.score:.3f} = {d.miscalibration:.3f} - {d.discrimination:.3f} + {d.uncertainty:.3f}")

# %%
# Up is better: the model discriminates. Left is better: its probabilities are calibrated. All
# points on a line have the same Brier score. The forest discriminates as well as logistic
# regression; recalibrated, it would be as good. The tree is rather well calibrated but
# discriminates too little, so recalibration would not help it.

figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
for score in (0.1, 0.2, 0.3, 0.4, 0.5):
    ends = np.array([-0.015, 0.15])
    ax.plot(ends, 0.9 - score + ends, color="#999999", linewidth=0.7)
    ax.text(0.152, 1.05 - score, f"Brier {score}", color="#666666", fontsize=8, va="center")
for (name, d), marker in zip(found.items(), "osD^", strict=True):
    ax.plot(d.miscalibration, d.discrimination, marker, color="#0072B2", markersize=8)
    ax.text(d.miscalibration, d.discrimination - 0.035, name, ha="center", bbox={"color": "white", "pad": 1})
ax.set(xlabel="miscalibration (lower is better)", ylabel="discrimination (higher is better)")
ax.set_xlim(-0.015, 0.175)
