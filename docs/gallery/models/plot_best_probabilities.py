"""
Which classifier has the best probabilities?
============================================

Three classifiers forecast whether a tumour is malignant or benign. Every forecast is made by a
model that has not seen the patient (cross-validation). ``vx.compare`` scores all of them on the
same patients, so that what counts is the difference patient by patient.
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
# A bar that does not reach the dashed line belongs to a model that is worse than the best one
# beyond chance. Logistic regression is the best by both scores.

comparison = vx.compare(y, forecasts, rule=["brier", "log"], classes=classes)
comparison.plot()
print(comparison)
assert comparison.leader("brier") == "logistic regression"

# %%
# The two scores do not agree about the second place. No tree of the forest thought that one of the
# tumours could be malignant. It was, and the log score never forgives a probability of zero.

worst = vx.worst(y, forecasts["random forest"], rule="log", n=1, classes=classes)
print(worst)
assert worst[0].loss == float("inf")
