"""
How good is a model of ordered stages?
======================================

Disease progression after a year, in four stages, predicted from ten measurements. Calling stage 4 a
stage 1 is worse than calling it a stage 3, and the ranked probability score (RPS) takes this into
account.

The data are the 442 patients of the diabetes data set; the stages are quartiles of its progression
measure.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import verax as vx

x, progression = load_diabetes(return_X_y=True)
stages = ["slow", "moderate", "fast", "very fast"]
y = np.searchsorted(np.quantile(progression, [0.25, 0.5, 0.75]), progression)
p = cross_val_predict(LogisticRegression(C=10, max_iter=500), x, y, cv=10, method="predict_proba")

card = vx.evaluate(y, p, classes=stages, ordered=True)
print(card)

# %%
# The model names the right stage for fewer than half of the patients, but is within one stage for
# five in six. Compared with a forecast of one quarter for each stage, it reduces the RPS by about
# 30 %:

skill = vx.compare(y, {"model": p}, rule="rps", reference="uniform").models["rps"][0]
print(f"accuracy {card.accuracy:.2f}, off by at most one stage {card['off_by_one']:.2f}")
print(f"skill by RPS {skill.skill:.2f} ({skill.skill_interval:.2f})")

# %%
# Mean forecast for the patients of each stage. Neighbouring stages share the probability.

figure, ax = plt.subplots(figsize=(6.6, 3.4), layout="constrained")
left = np.zeros(4)
for k, colour in enumerate(("#c6dbef", "#6baed6", "#2171b5", "#08306b")):
    mean = np.array([p[y == stage, k].mean() for stage in range(4)])
    ax.barh(stages, mean, left=left, color=colour, label=stages[k])
    left += mean
ax.invert_yaxis()
ax.set(xlabel="mean forecast probability", ylabel="true stage", xlim=(0, 1))
figure.legend(title="forecast", loc="outside right center", frameon=False)

# %%
# The patients with the largest RPS. It adds up the squared distances between the cumulative forecast and
# the cumulative outcome, so probability far from the true stage costs most.

vx.worst(y, p, rule="rps", classes=stages).plot(3)
