"""Top lists of two models with everything that a scan may read, as a table and in memory."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import verax as vx

N, M = 900, 30
NAMES = [f"c{j}" for j in range(M)]
COLUMNS = {"target": "truth", "weights": "w", "groups": "who", "id": "number", "by": "site"}
# How `scan` is told where the lists of each model are.
MODELS = {"a": ["a_labels", "a_scores"], "b": "b"}


@cache
def table():
    """Lists of two models: in two columns, and in one that maps classes to probabilities."""
    rng = np.random.default_rng(3)
    p = np.stack([rng.dirichlet(np.full(M, 0.2), N) for _ in range(2)])
    y = (rng.random(N)[:, None] > np.cumsum(p[0], axis=1)).sum(axis=1).clip(0, M - 1)
    order = np.argsort(-p, axis=2)
    listed = [
        [[(NAMES[j], float(p[k, i, j])) for j in order[k, i, : rng.integers(0, 6)]] for i in range(N)]
        for k in range(2)
    ]
    maps = pa.map_(pa.string(), pa.float64())
    return pa.table(
        {
            "truth": np.array(NAMES)[y],
            "a_labels": pa.array([[name for name, _ in row] for row in listed[0]], pa.list_(pa.string())),
            "a_scores": pa.array([[t for _, t in row] for row in listed[0]], pa.list_(pa.float64())),
            "b": pa.array(listed[1], maps),
            "w": rng.integers(1, 4, N) * 0.5,
            "who": rng.integers(0, 40, N),
            "site": np.array(["north", "south"])[rng.integers(0, 2, N)],
            "number": np.arange(N) + 5000,
        }
    )


@cache
def in_memory():
    """Outcomes and the lists of both models."""
    rows = [{**row, "b": dict(row["b"])} for row in table().to_pylist()]
    lists = {
        "a": [dict(zip(row["a_labels"], row["a_scores"], strict=True)) for row in rows],
        "b": [row["b"] for row in rows],
    }
    y = [row["truth"] for row in rows]
    return y, {name: vx.TopLists.from_dicts(each, n_classes=M) for name, each in lists.items()}


OWN = {"weights": np.asarray(table()["w"]), "groups": np.asarray(table()["who"])}
IDS = [str(number) for number in table()["number"].to_pylist()]


@cache
def compared():
    """What a comparison of both models in memory says."""
    y, models = in_memory()
    return vx.compare(y, models, rule=["brier", "log_score"], reference="uniform", **OWN).to_dict()
