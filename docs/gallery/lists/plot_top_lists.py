"""
How long must a top list be?
============================

An API serves a model with 1,000 classes and returns a few of them, each with a probability. verax
pads a list (the rest is shared evenly by the unlisted classes) and scores it like a full
distribution. Lists of any length can therefore be compared, down to a bare class name.

The data are generated: the probabilities fall off like those of an image classifier, and outcomes
are drawn from them.
"""

import numpy as np

import verax as vx

rng = np.random.default_rng(0)
logits = rng.normal(0, 4, (2000, 1000))
p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
y = (p.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)

# %%
# The Brier score hardly changes after the fifth class. The log score depends on every unlisted
# outcome and keeps improving.

found = vx.compare_lengths(y, p, k=[1, 2, 3, 5, 10, 20, 50], rule=["brier", "log_score"])
found.plot()
print(found)
assert found.length_within("brier", 0.01) == 5
assert found.length_within("log_score", 0.01) is None

# %%
# By far the largest step is the first one: from a bare class to a class with a probability.

step = found.difference("hard", "top-1", "brier")
print(f"A probability beside the name takes {step.difference:.2f} ({step.interval:.2f}) off the Brier score.")
