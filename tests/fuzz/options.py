"""Options of curves, decisions, subgroups and the like: garbage is refused by an error that names it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

import verax as vx

N, K = 24, 3


def garbage(rng: np.random.Generator) -> object:
    """Something that a caller might pass by mistake, or by malice."""
    values = [
        None, True, False, 0, 1, -1, 3, 2.5, 0.1, 1e308, float("nan"), float("inf"), 10**400, 1j,
        "", "x", "qwk", "brier", "quadratic", "mean", "share", "a" * 5000, b"x",
        [], [0], [0, 0.1], [0, 0.1, 0.1], [0, "a"], [[]], [[0, 1], [1]], [None], [[None] * K] * K, (), {},
        {"a": 1}, set(),
        np.zeros(0), np.zeros((K, K)), np.eye(K), np.full((K, K), np.nan), np.eye(K, dtype=complex),
        np.array(["a"] * N), np.array([None] * N), np.arange(N), np.arange(N) // 12,
        np.float64(0.5), np.int64(2),
        np.datetime64("2020-01-01"), np.array(3), Fraction(1, 3), Decimal("0.5"), object(), object,
        vx.brier, vx.rules.RPS,
        range(3), iter([0, 0.5]), slice(3), NotImplemented, Ellipsis, vx.InputError, len,
    ]  # fmt: skip
    return values[int(rng.integers(len(values)))]


CALLS = {
    "retention": (
        lambda y, p, **o: vx.retention(y, p, **{"rule": "brier", "metric": "accuracy", **o}),
        ("metric", "removed", "area", "costs", "cost_scale", "decision_costs", "undefined", "ties"),
    ),
    "selective": (
        lambda y, p, **o: vx.selective(y, p, **{"metric": ["ec", "macro_f1"], **o}),
        ("metric", "removed", "area", "costs", "cost_scale", "decision_costs", "undefined", "ties"),
    ),
    "kappa": (
        lambda y, p, **o: vx.kappa(y, y, **{"n_classes": K, **o}),
        ("n_classes", "kind", "weights"),
    ),
    "expected_cost": (
        lambda y, p, **o: vx.expected_cost(y, y, **{"n_classes": K, **o}),
        ("n_classes", "costs", "normalize", "priors", "weights"),
    ),
    "decide": (lambda y, p, **o: vx.decide(p, **o), ("costs",)),
    "evaluate": (lambda y, p, **o: vx.evaluate(y, p, bootstrap=2, **o), ("costs",)),
    "worst": (lambda y, p, **o: vx.worst(y, p, rule="brier", **o), ("n", "ids")),
    "ece": (lambda y, p, **o: vx.ece(y, p, **o), ("bins", "kind", "binning")),
    "subgroups": (
        lambda y, p, **o: vx.subgroups(y, p, **{"by": np.arange(N) // 12, "least": 2, **o}),
        ("least", "costs"),
    ),
    "to_frame": (lambda y, p, **o: vx.evaluate(y, p, bootstrap=2).to_frame(**o), ("kind",)),
}


def attempt(rng: np.random.Generator) -> None:
    """One call with one or two options that are garbage."""
    y, p = rng.integers(0, K, N), rng.dirichlet(np.ones(K), N)
    name = str(rng.choice(list(CALLS)))
    call, known = CALLS[name]
    chosen = rng.choice(known, size=min(len(known), int(rng.integers(1, 3))), replace=False)
    options = {str(option): garbage(rng) for option in chosen}
    shown = f"{name}({', '.join(f'{k}={v!r:.60}' for k, v in options.items())})"
    own = any(callable(value) for value in options.values())
    try:
        with np.errstate(all="ignore"):
            call(y, p, **options)
    except Exception as error:
        complaint = fault(error, options)
        # A function that is passed as a metric may do what it likes.
        if complaint and not own:
            raise AssertionError(f"{shown}: {complaint}") from None


def fault(error: Exception, options: dict[str, object]) -> str:
    """What is wrong with the way in which a call was refused; nothing if all is well."""
    if not isinstance(error, vx.InputError):
        return f"{type(error).__name__}: {error!r:.200}"
    others = {"costs", "decision_costs", "normalize", "by", "metric", "y"}
    if error.argument not in {*options, *others}:
        return f"names {error.argument}: {error}"
    return f"{len(str(error))} characters" if len(str(error)) > 1000 else ""
