"""
Are the probabilities of a top list calibrated?
===============================================

A language model returns its five most likely next words, each with a probability. Does the first
word happen as often as stated? Is the outcome on the list as often as the sum of the list claims?

The lists are generated. The true probabilities of 5,000 words fall with their rank, faster when the
next word is easy to guess; the model raises them to the power 1.15, so it is overconfident.
"""

import numpy as np

import verax as vx

n_rows, n_words = 3000, 5000
rng = np.random.default_rng(0)
steepness = rng.uniform(0.8, 2.2, (n_rows, 1))
truth = np.arange(1, n_words + 1) ** -steepness
truth /= truth.sum(axis=1, keepdims=True)
y = (truth.cumsum(axis=1) < rng.random((n_rows, 1))).sum(axis=1)
said = truth**1.15
lists = vx.TopLists.from_probabilities(said / said.sum(axis=1, keepdims=True), 5)

# %%
# Each place of the list makes a statement, and so does the list as a whole: that the outcome is one
# of its words.

found = vx.reliability(y, lists)
print(found)
found.plot(["place 1", "whole list"])

# %%
# The first word is overconfident, and so is the whole list: it leaves too little probability for
# unlisted words.

claim = found.claim("whole list")
print(f"claimed {claim.claimed:.3f}, happened {claim.happened:.3f}")
assert claim.p_adjusted < 0.001
