"""The Keras adapter: here on PyTorch, and on other backends in a process each."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("suite_keras")

from installing import installing  # noqa: E402
from suite_keras import *  # noqa: E402, F403 - its marks, too


@pytest.mark.long
@pytest.mark.parametrize("backend", ["jax", "tensorflow"])
def test_the_suite_passes_on(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
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
    assert result.stdout.startswith(f"verax.adapters.keras needs {named}: {installing('keras')} and a ")
