"""The Keras adapter on every backend that is installed, each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.frameworks


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["torch", *(pytest.param(name, marks=pytest.mark.long) for name in ("jax", "tensorflow"))]
)
def test_the_suite_passes_on(backend):
    for package in ("keras", backend):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    suite = Path(__file__).parents[1] / "suite_keras.py"
    environment = {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", suite],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | environment,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout


@pytest.mark.parametrize(
    ("missing", "named"), [("keras", "Keras 3"), ("tensorflow", "the backend tensorflow")]
)
def test_missing_packages_are_named(missing, named):
    code = f"import sys; sys.modules[{missing!r}] = None\nimport verax as vx\n"
    code += "try:\n    import verax.adapters.keras\n"
    code += "except vx.errors.MissingPackageError as error:\n    print(error)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        check=True,
    )
    way = "pip install 'verax-scores[keras]'"
    assert result.stdout.startswith(f"verax.adapters.keras needs {named}: {way} and a ")
