"""
Is my own loss a proper score?
==============================

A score is proper if misreporting never lowers the expected loss. Many home-made losses are not
proper. ``vx.certify`` searches for a forecast that beats the truth, and ``vx.diagrams.landscape`` draws the
expected loss over all forecasts of three classes.

Here the loss is the mean absolute error, which looks harmless.
"""

import numpy as np

import verax as vx


def absolute_error(y, p):
    """The mean absolute error against the outcome as 0 and 1."""
    return float(np.abs(p - np.eye(len(p))[y]).mean())


certificate = vx.certify(absolute_error, n_classes=3)
print(certificate.findings["proper"].counterexample)
assert not certificate.proper

# %%
# With beliefs of 0.5, 0.3 and 0.2, the expected absolute error is lowest for a forecast that is
# certain of the first class: it rewards overconfidence.

found = vx.diagrams.landscape(absolute_error, truth=[0.5, 0.3, 0.2])
print(found)
found.plot()

# %%
# The expected squared error is lowest at the belief itself.

honest = vx.diagrams.landscape(vx.brier, truth=[0.5, 0.3, 0.2])
print(honest)
honest.plot()
assert np.allclose(honest.minimiser, [0.5, 0.3, 0.2])
