"""The Keras adapter on every backend that is installed, each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_the_suite_passes_on(backend):
    for package in ("keras", backend):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    suite = Path(__file__).parent / "suite_keras.py"
    environment = {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", suite],
        capture_output=True,
        text=True,
        timeout=400,
        env=os.environ | environment,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout


def test_missing_packages_are_named():
    code = (
        "import sys; sys.modules['keras'] = None\nimport verax as vx\ntry:\n    import verax.adapters.keras\n"
    )
    code += "except vx.MissingPackageError as error:\n    print(error)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("verax.adapters.keras needs Keras 3: pip install 'verax[keras]' and a ")
