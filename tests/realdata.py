"""Real predictions that stand beside the repository, where they do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[2] / "shared" / "data"


def load(folder, file):
    """An archive of arrays, or the path of any other file; the test is skipped where it is not there."""
    path = DATA / folder / file
    if not path.exists():
        pytest.skip(f"{folder}/{file} is not here: the data are not part of the repository")
    return np.load(path) if path.suffix == ".npz" else path
