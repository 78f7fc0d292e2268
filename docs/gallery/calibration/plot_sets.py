"""
Which classes might it be?
==========================

A prediction set names several classes. Split conformal prediction makes sets that cover the outcome with a
stated probability; ``vx.evaluate_sets`` shows for whom they do not. The data are generated.
"""

import numpy as np

import verax as vx

rng = np.random.default_rng(1)
grades = ["none", "mild", "moderate", "severe", "worst"]
z = rng.normal(size=(3000, 1))
p = np.exp(-((z - np.arange(-2, 3)) ** 2) / 0.8)
p /= p.sum(axis=1, keepdims=True)
truth = p**0.6 / (p**0.6).sum(axis=1, keepdims=True)  # the forecasts are overconfident
y = np.array([rng.choice(5, p=row) for row in truth])
held_out, test = slice(0, 1000), slice(1000, 3000)

# %%
# The ranked probability score makes sets of ordered classes without gaps. A bar is a set, a dot an outcome.

made = vx.conformal(y[held_out], p[held_out], level=0.9, score="rps", classes=grades)
found = vx.evaluate_sets(y[test], made.apply(p[test]), ordered=True)
print(found.verdict)
found.plot_spans()

# %%
# The level holds on average, not for every grade: extreme grades are covered less often.

for line in found.by_class:
    print(f"{line.label}: {line.coverage:.1%}{' (significant)' if line.flagged else ''}")
