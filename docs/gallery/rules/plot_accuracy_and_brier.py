"""
Does accuracy choose the right model?
=====================================

Accuracy depends on the most likely class only. A model that is right slightly more often can have
much worse probabilities, and anybody who acts on the probabilities would keep the wrong model.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import verax as vx

x, y = load_digits(return_X_y=True)
models = {
    "random forest": RandomForestClassifier(60, random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
forecasts = {name: cross_val_predict(m, x, y, cv=5, method="predict_proba") for name, m in models.items()}
comparison = vx.compare(y, forecasts, rule=["zero_one", "brier"])
assert comparison.best("zero_one") == "random forest"
assert comparison.best("brier") == "logistic regression"
comparison.plot()

# %%
# verax explains the disagreement:

print(comparison.disagreements[0])

# %%
# The forest is underconfident: the mean probability of its first choice is 0.73, and 0.93 of them
# are right. A curve above the diagonal means that the model is right more often than it claims.
# Logistic regression stays near the diagonal.

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=0.8)
for (name, p), colour, style in zip(forecasts.items(), ("#D55E00", "#0072B2"), ("-", "-."), strict=True):
    curve = vx.reliability(p.argmax(axis=1) == y, p.max(axis=1), resamples=0).curves[0]
    ax.plot(curve.forecast, curve.frequency, color=colour, linestyle=style, label=name)
ax.set(xlabel="probability of the first choice", ylabel="accuracy", aspect="equal")
ax.legend(frameon=False, loc="lower right")
