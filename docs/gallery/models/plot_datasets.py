"""
Which classifier is best on problems like these?
================================================

One data set says which model is best there. To choose a default for problems of a kind, compare over
several data sets: ``vx.compare_folds`` for each of them, and ``vx.compare_datasets`` for all.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification, make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import verax as vx

problems = {
    "cancer": load_breast_cancer(return_X_y=True),
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "moons": make_moons(300, noise=0.3, random_state=0),
}
for i in range(5):
    problems[f"simulated {i}"] = make_classification(300, 10, n_informative=4, flip_y=0.1, random_state=i)
classifiers = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
    "naive Bayes": GaussianNB(),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
}


def validated(x, y):
    """The folds of a data set, and the forecasts of each classifier for the fold it was not trained on."""
    folds = np.zeros(len(y), int)
    forecasts = {name: np.zeros((len(y), y.max() + 1)) for name in classifiers}
    for k, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(x, y)):
        folds[test] = k
        for name, classifier in classifiers.items():
            forecasts[name][test] = classifier.fit(x[train], y[train]).predict_proba(x[test])
    return folds, forecasts


compared = {}
for name, (x, y) in problems.items():
    folds, forecasts = validated(x, y)
    compared[name] = vx.compare_folds(y, forecasts, folds=folds, rule="brier")

# %%
# On one data set there are two answers. The interval of the method allows for training on other data,
# and is wider than that of the fitted models.

print(compared["cancer"])
method = compared["cancer"].difference("logistic regression", "naive Bayes").interval
fitted = compared["cancer"].rows.difference("logistic regression", "naive Bayes").interval
assert method.high - method.low > fitted.high - fitted.low

# %%
# Over all data sets, each counts once. Models that are joined at the right are not significantly
# different.

found = vx.compare_datasets(compared, rope=0.01)
found.plot()
print(found)
assert found.best() == "random forest"
