"""
Which classifier has the best probabilities?
============================================

Three classifiers predict whether a tumour is malignant or benign. Every prediction is cross-
validated: made by a model that has not seen the patient. ``vx.compare`` scores all of them on the
same patients and tests the differences patient by patient.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import verax as vx

data = load_breast_cancer()
y = data.target_names[data.target]
classes = ["benign", "malignant"]  # the order of the columns: scikit-learn sorts by the alphabet
classifiers = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(60, min_samples_leaf=2, random_state=0),
    "naive Bayes": GaussianNB(),
}
forecasts = {
    name: cross_val_predict(classifier, data.data, y, cv=5, method="predict_proba")
    for name, classifier in classifiers.items()
}

# %%
# A bar that does not reach the dashed line belongs to a model that is significantly worse than the
# best one. Logistic regression is best by both scores.

comparison = vx.compare(y, forecasts, rule=["brier", "log_score"], classes=classes)
comparison.plot()
print(comparison)
assert comparison.leader("brier") == "logistic regression"

# %%
# The two scores disagree about second place. No tree of the forest considered one of the tumours
# malignant. It was, and a probability of zero makes the log score infinite.

worst = vx.worst(y, forecasts["random forest"], rule="log_score", n=1, classes=classes)
print(worst)
assert worst[0].loss == float("inf")
