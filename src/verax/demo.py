"""A first look: two classifiers trained on the spot on data that comes with scikit-learn."""

from __future__ import annotations

import verax as vx


def main() -> None:
    """Grade disease progression in four ordered stages with two models, and print their cards."""
    import numpy as np
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    stages = ["low", "moderate", "high", "severe"]
    x, progression = load_diabetes(return_X_y=True)
    y = np.searchsorted(np.quantile(progression, [0.25, 0.5, 0.75]), progression)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.4, random_state=0, stratify=y)
    models = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "random forest": RandomForestClassifier(n_estimators=50, random_state=0),
    }
    print("Disease progression after one year, cut into four ordered stages (scikit-learn's diabetes data).")
    for name, model in models.items():
        p = model.fit(x_train, y_train).predict_proba(x_test)
        print(f"\n{name}\n{vx.evaluate(y_test, p, classes=stages, ordered=True)}")
    uniform = np.full((len(y_test), 4), 0.25)
    print(f"\nKnowing nothing (a quarter each) scores rps {vx.rps(y_test, uniform):.5f}.")
    print("\nIs the squared-absolute RPS proper? verax looks for a counterexample itself:\n")
    print(vx.certify(vx.sa_rps, n_classes=3))


if __name__ == "__main__":
    main()
