"""
Which errors should I check first?
==================================

``vx.worst`` finds the rows with the largest loss and explains each. They are often label errors,
broken inputs, or a kind of case the model has never seen.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import verax as vx

digits = load_digits()
model = make_pipeline(StandardScaler(), LogisticRegression())
p = cross_val_predict(model, digits.data, digits.target, cv=5, method="predict_proba")

worst = vx.worst(digits.target, p, rule="log_score", n=10)
print(worst.to_frame()[["row", "outcome", "loss", "source"]].to_string(index=False))

# %%
# The ten handwritten digits that the model got most wrong. Some would puzzle a person.

figure, axes = plt.subplots(2, 5, figsize=(7, 3.6), layout="constrained")
for ax, case in zip(axes.flat, worst, strict=True):
    ax.imshow(digits.images[case.row], cmap="gray_r")
    said = p[case.row].argmax()
    ax.set_title(f"a {case.outcome}, but\n{said} had {p[case.row].max():.0%}", fontsize=9)
    ax.set_axis_off()
