"""
What does a temperature gain for top log-probabilities?
=======================================================

A language model answers with A, B, C or D, and its interface returns the log-probabilities of these four
tokens of 32,000. Its logits are twice too large, so that it is overconfident. Does dividing them by a
temperature help?

The answers are generated. Questions come from 40 documents, which are kept together in the folds.
"""

import numpy as np

import verax as vx

n, vocabulary = 1000, 32_000
rng = np.random.default_rng(0)
truth = 1.5 * rng.normal(size=(n, 4))
p, q = (np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in (truth, 2 * truth))
y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 3)
# Two percent of the probability goes to other tokens.
answers = [dict(enumerate(row)) for row in (0.98 * q).tolist()]
lists = vx.TopLists.from_dicts(answers, n_classes=vocabulary).largest_valid()

# %%
# Every scaling is fitted and measured by cross-validation. "rest" is a factor for all unlisted tokens.

found = vx.recalibrate(y, lists, rule="log_score", groups=np.arange(n) % 40)
print(found)
found.plot()

# %%
# A temperature alone gains little: it would give most of the probability to 31,996 unlisted tokens. Together
# with a factor for these it nearly finds the true temperature of 2.

assert found.method == "temperature_rest"
assert found.trial("temperature").gain.value < 0.3 * found.gain.value

# %%
# The scaled lists name the same tokens in the same order, with other probabilities.

better = found.apply(lists)
print({name: round(t, 3) for name, t in lists.to_dicts()[0].items()})
print({name: round(t, 3) for name, t in better.to_dicts()[0].items()})
assert better.valid.all()
