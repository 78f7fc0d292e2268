"""
Which checkpoint should I keep?
===============================

A network is trained on a small set of noisy images and scored on validation rows after every epoch.
Different scores would keep different epochs. The penalized Brier score ``pbs`` is proper and adds a
constant for a wrong first choice, so it reflects both probabilities and errors.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import verax as vx

x, y = load_digits(return_X_y=True)
x = (x + np.random.default_rng(0).normal(0, 6, x.shape)) / 16
x_train, x_val, y_train, y_val = train_test_split(x, y, train_size=0.06, stratify=y, random_state=0)
network = MLPClassifier(64, learning_rate_init=0.005, alpha=0, batch_size=16, random_state=0)
stopping = vx.selection.EarlyStopping("pbs", patience=8, restore=True)

records, stopped = [], None
for epoch in range(40):
    network.partial_fit(x_train, y_train, classes=range(10))
    p = network.predict_proba(x_val)
    scores = {
        "log_score": vx.log_score(y_val, p),
        "pbs": vx.pbs(y_val, p),
        "accuracy": 1 - vx.zero_one(y_val, p),
    }
    records.append({"epoch": epoch, **scores})
    if stopped is None and stopping.step(scores["pbs"], state=lambda: (network.coefs_, network.intercepts_)):
        stopped = epoch

# %%
# The log score is best early: after that the network becomes overconfident. Accuracy creeps up to
# the end. The penalized score keeps an epoch between the two, with nearly the accuracy of the last
# one and better probabilities.

history = vx.selection.History.from_records(records)
history.plot()
print(history)
assert history.best("log_score").epoch < history.best("pbs").epoch < history.best("accuracy").epoch

# %%
# To stop early, let ``EarlyStopping`` end the loop. It keeps a copy of the weights of the best
# epoch.

print(f"Stops after epoch {stopped}, keeps epoch {stopping.best_epoch} with pbs {stopping.best:.3f}.")
