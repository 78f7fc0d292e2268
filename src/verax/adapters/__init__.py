"""verax inside other tools: each adapter is derived from the rule, so a new rule needs no change here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verax.common.packages import exports

# Every adapter imports its tool.
__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = exports(
    __name__,
    {
        name: name
        for name in ("boosting", "jax", "keras", "mlflow", "sklearn", "torch", "training", "transformers")
    },
    missing={
        "jax": ("verax.adapters.jax needs JAX", "jax"),
        "sklearn": ("verax.adapters.sklearn needs scikit-learn", "sklearn"),
    },
)
