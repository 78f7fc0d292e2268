"""
Scores of a model
=================

Every rule that fits, in one pass, with intervals.
"""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

import verax as vx

features, y = load_iris(return_X_y=True)
p = cross_val_predict(LogisticRegression(max_iter=500), features, y, method="predict_proba")
print(vx.evaluate(y, p))
vx.reliability(y, p).plot()
