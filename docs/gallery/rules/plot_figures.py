"""
Which figures are there, and which call draws each?
===================================================

Every result that has a figure draws it by ``plot()``. This page shows each once, on simulated forecasts of
four ordered grades by an honest and an overconfident model.
"""

import matplotlib.pyplot as plt
import numpy as np

import verax as vx

plt.rcParams["figure.max_open_warning"] = 0
rng = np.random.default_rng(0)
grades = ["none", "mild", "moderate", "severe"]
logits = 1.2 * rng.normal(size=(600, 4))
honest = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
y = (rng.random((600, 1)) > honest.cumsum(axis=1)[:, :3]).sum(axis=1)
sure = honest**2 / (honest**2).sum(axis=1, keepdims=True)
models = {"honest": honest, "sure": sure}
order = {"classes": grades, "ordered": True}
drawn = set()


def draw(result, how="plot"):
    """Draw a figure, and note whose it is."""
    getattr(result, how)()
    figure = plt.gcf()
    figure.set_figwidth(min(figure.get_figwidth(), 7.5))
    drawn.add((type(result).__name__, how))


# %%
# Which model is better: ``vx.compare``.

draw(vx.compare(y, models, rule="rps"))

# %%
# Folds of cross-validation: ``vx.compare_folds``.

folds = np.arange(600) % 5
draw(vx.compare_folds(y, models, rule="rps", folds=folds))

# %%
# Mean ranks of models over data sets: ``vx.compare_datasets``.

table = {
    f"data {i}": {name: 0.2 + 0.02 * rank + 0.01 * rng.random() for rank, name in enumerate("abc")}
    for i in range(8)
}
draw(vx.compare_datasets(table, better="lower"))

# %%
# How many rows show a difference of 0.01: ``vx.plan``.

draw(vx.plan(y, models, rule="rps", difference=0.01))

# %%
# Calibration: ``vx.reliability``.

draw(vx.reliability(y, sure, classes=grades))

# %%
# Many models at once: ``vx.diagrams.score_map``.

draw(vx.diagrams.score_map(y, models, rule="brier"))

# %%
# What recalibration gains: ``vx.recalibrate``.

found = vx.recalibrate(y, sure, rule="rps", **order)
draw(found)

# %%
# Subgroups: ``vx.subgroups``.

draw(vx.subgroups(y, honest, by={"site": np.where(np.arange(600) % 3, "north", "south")}, rule="brier"))

# %%
# The rows with the largest loss: ``vx.worst``.

draw(vx.worst(y, sure, rule="rps", classes=grades))

# %%
# Metrics after dropping the hardest rows: ``vx.retention``, and by doubt alone ``vx.selective``.

draw(vx.retention(y, honest, rule="rps", metric="qwk"))

# %%
# Several rules or metrics at once.

draw(vx.retention(y, honest, rule=["rps", "brier"], metric=["qwk", "accuracy"]))

# %%
# Risk and coverage of a model that may abstain: ``vx.risk_coverage``.

draw(vx.risk_coverage(y, honest, rule="zero_one"))

# %%
# Two classes: ROC curves with bands, ``vx.roc_curve``; ``vx.precision_recall_curve`` looks alike.

event = (y >= 2).astype(int)
risk = {name: p[:, 2:].sum(axis=1) for name, p in models.items()}
draw(vx.roc_curve(event, risk))

# %%
# Net benefit of acting at each threshold: ``vx.net_benefit``.

draw(vx.net_benefit(event, risk))

# %%
# Is one model better for all users: ``vx.diagrams.murphy``.

draw(vx.diagrams.murphy(event, risk))

# %%
# Prediction sets: coverage by size and class, ``vx.evaluate_sets``.

sets = vx.conformal(y[:300], honest[:300], level=0.9, score="rps", classes=grades).apply(honest[300:])
judged = vx.evaluate_sets(y[300:], sets, ordered=True)
draw(judged)

# %%
# The sets of ordered classes as bars.

draw(judged, "plot_spans")

# %%
# Raters: what the forecasts are worth in raters, ``vx.raters``.

votes = np.stack([rng.multinomial(5, p) for p in honest])
draw(vx.raters(votes, honest, raters="counts", rule="rps"))

# %%
# A monitor in production: ``vx.Monitor``.

monitor = vx.Monitor(0.6)
for day in range(12):
    monitor.update(
        y[50 * day : 50 * day + 50], (honest if day < 6 else sure)[50 * day : 50 * day + 50], time=day
    )
draw(monitor)

# %%
# The past by period: ``vx.over_time``.

days = np.datetime64("2026-01-01") + np.arange(600) // 5
draw(vx.over_time(y, honest, time=days, every="month"))

# %%
# Top lists: reliability by place, ``vx.reliability`` of lists.

lists = vx.TopLists.from_probabilities(sure, k=2)
draw(vx.reliability(y, lists))

# %%
# Recalibrated lists: ``vx.recalibrate`` of lists.

draw(vx.recalibrate(y, lists, rule="brier"))

# %%
# How long a list must be: ``vx.compare_lengths``.

draw(vx.compare_lengths(y, sure, rule="brier", k=[1, 2, 3, 4]))

# %%
# Epochs of a training: ``vx.selection.History``.

history = vx.selection.History.from_columns(
    {"val_brier": [0.6, 0.5, 0.45, 0.44, 0.46], "val_accuracy": [0.5, 0.6, 0.62, 0.66, 0.65]}
)
draw(history)

# %%
# Chosen rules against chosen metrics: ``history.select``.

draw(history.select(["brier"], ["accuracy"]))

# %%
# A rule's loss over all forecasts of three classes: ``vx.diagrams.landscape``.

draw(vx.diagrams.landscape(vx.rps, truth=[0.2, 0.5, 0.3]))

# %%
# No figure is missing.

kinds = [vars(vx.results)[name] for name in vx.results.__all__]
kinds += [vx.Monitor, vx.selection.History, type(history.select(["brier"], ["accuracy"]))]
known = {(kind.__name__, how) for kind in kinds for how in dir(kind) if how.startswith("plot")}
assert known == drawn, known ^ drawn
