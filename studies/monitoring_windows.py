"""What evidently and NannyML say of the streams of `studies/monitoring.py`, one window of 100 rows at a time.

    python studies/monitoring_windows.py [--runs 10]

It needs neither verax nor its packages: run it in an environment with evidently and NannyML.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

K, ROWS, STEPS, CHANGE, REFERENCE = 3, 100, 200, 50, 1000
HOWS = ("", "one class 20%", "sharper by 2.5")


def rows(rng, n, how=""):
    """Calibrated forecasts with outcomes, or those after a change."""
    p = rng.dirichlet(np.full(K, 1.2), n)
    y = np.minimum((p.cumsum(axis=1) <= rng.random((n, 1))).sum(axis=1), K - 1)
    if how.startswith("one class"):
        y = np.where(rng.random(n) < 0.2, K - 1, y)
    elif how:
        p = p**2.5 / (p**2.5).sum(axis=1, keepdims=True)
    return y, p


def stream(run, how):
    """A reference, and the rows after it."""
    rng = np.random.default_rng([10, run])
    parts = [rows(rng, ROWS * CHANGE), rows(rng, ROWS * (STEPS - CHANGE), how)]
    return rows(rng, REFERENCE), tuple(np.concatenate([part[i] for part in parts]) for i in (0, 1))


def losses(y, p):
    """Brier losses."""
    return ((p - np.eye(K)[y]) ** 2).sum(axis=1)


def evidently_alarms(reference, later):
    """Windows whose losses drift by the default test of evidently for references of at most 1,000 rows."""
    from evidently.legacy.calculations.stattests import ks_stat_test
    from evidently.legacy.core import ColumnType

    before, now = pd.Series(losses(*reference)), losses(*later).reshape(STEPS, ROWS)
    return np.array([ks_stat_test.func(before, pd.Series(own), ColumnType.Numerical, 0.05)[1] for own in now])


def nannyml_alarms(reference, later):
    """Windows whose accuracy is beyond three standard deviations, by NannyML's defaults."""
    import nannyml

    def frame(y, p):
        own = {f"p{k}": p[:, k] for k in range(K)}
        return pd.DataFrame({"y": y.astype(str), "top": p.argmax(axis=1).astype(str), **own})

    calculator = nannyml.PerformanceCalculator(
        problem_type="classification_multiclass",
        y_true="y",
        y_pred="top",
        y_pred_proba={str(k): f"p{k}" for k in range(K)},
        metrics=["accuracy"],
        chunk_size=ROWS,
    )
    calculator.fit(frame(*reference))
    found = calculator.calculate(frame(*later)).filter(period="analysis").to_df()
    return found["accuracy", "alert"].to_numpy(bool)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    for name, alarms in (("evidently, KS", evidently_alarms), ("NannyML, accuracy", nannyml_alarms)):
        cells = []
        for how in HOWS:
            found = np.stack([alarms(*stream(run, how)) for run in range(runs)])
            if not how:
                cells.append(f"{100 * found.any(axis=1).mean():.0f} ({100 * found.mean():.1f} of windows)")
                continue
            after = found[:, CHANGE:]
            seen = after.any(axis=1)
            delay = f"{np.median(after[seen].argmax(axis=1) + 1) * ROWS:,.0f}" if seen.any() else "never"
            cells.append(f"{delay} ({100 * seen.mean():.0f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
