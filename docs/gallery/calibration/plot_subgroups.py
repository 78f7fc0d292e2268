"""
Is the model fair to every clinic?
==================================

A model may be calibrated overall and wrong for some subgroups. ``vx.subgroups`` scores and tests it
in each of them, and corrects for the number of tests.

The data are generated: forecasts for 3,000 patients of eight clinics, calibrated in seven of them.
In clinic H the disease is rarer than the model predicts.
"""

import numpy as np

import verax as vx

rng = np.random.default_rng(0)
clinic = rng.choice(list("ABCDEFGH"), 3000, p=[0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05, 0.05])
p = rng.beta(1.2, 2.5, 3000)
odds = p / (1 - p) * np.where(clinic == "H", 0.3, 1)
ill = rng.random(3000) < odds / (1 + odds)

found = vx.subgroups(ill, p, by=clinic, rule="brier")
print(found)
assert [line.label for line in found.flagged] == ["H"]

# %%
# Miscalibration is never zero, and small clinics show more of it by chance. Diamonds are beyond chance.

found.plot()
