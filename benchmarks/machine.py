"""The machine that figures come from: the first line of every benchmark."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "verax-scores",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "pyarrow",
    "xgboost",
    "xgboost-cpu",
    "torch",
)


def describe() -> str:
    """Cores, processor, and the versions of Python and of the packages that are installed."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{cores} cores, {platform.machine()}, {platform.system()}; Python {python}, {', '.join(found)}"


if __name__ == "__main__":
    print(describe())
