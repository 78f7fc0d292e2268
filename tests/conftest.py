"""Fixtures and settings for all test modules."""

# ruff: noqa: E402

from __future__ import annotations

import gc
import os
from contextlib import ExitStack
from pathlib import Path

# Before NumPy and PyTorch are imported: their threads would wait busily for cores that other workers use.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Before numba is imported: optimising takes two thirds of the time of compiling. Kernels of tests are kept
# apart from those of users; `engines/test_optimised.py`, make long and make test-oldest optimise as users do.
os.environ.setdefault("NUMBA_OPT", "0")
_KERNELS = os.environ.get("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "kernels"))
_LEVEL = f"-opt{os.environ['NUMBA_OPT']}"
os.environ["NUMBA_CACHE_DIR"] = _KERNELS.removesuffix(_LEVEL) + _LEVEL

# The key of ids of tests is not that of the user.
os.environ.setdefault("VERAX_IDS_KEY", str(Path(__file__).parents[1] / ".pytest_cache" / "ids.key"))

import pytest
from hypothesis import settings

from cases import RULES
from timing import (  # noqa: F401
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure_node,
    pytest_runtest_logreport,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_terminal_summary,
)
from verax._settings import changed

# Keras takes TensorFlow unless told otherwise, and the tests have PyTorch.
os.environ.setdefault("KERAS_BACKEND", "torch")

# The same examples everywhere, however slow the machine: a first example may have to compile.
settings.register_profile("verax", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile("verax")


# Millions of objects of frameworks and of tests stay to the end. To look through them for garbage again and
# again took a sixth of the time of collecting tests, and a twelfth of that of running them.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish():
    """Leave all that is there now out of the search for garbage."""
    gc.freeze()


@pytest.fixture
def write(tmp_path):
    """Files written where a test wants them."""

    def write(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(autouse=True)
def change():
    """Settings of this test, as `change(compiled_from=0)`.

    Large inputs are compiled in the first call already, as they are in later calls of a process.
    """
    with ExitStack() as changes:

        def change(**values):
            changes.enter_context(changed(**values))

        change(compiled_at_once=0)
        yield change


@pytest.fixture
def torch():
    """PyTorch; tests that ask for it are skipped, by name, where it is missing."""
    return pytest.importorskip("torch")


@pytest.fixture(params=RULES, ids=repr)
def rule(request):
    return request.param
