"""What the tests of files share: some rows, and what is said about a file that is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import verax as vx
from cases import forecasts
from verax import files

CSV = "label,p_a,p_b\na,0.2,0.8\nb,0.5,0.5\n"
N = 500
ROWS = forecasts(N, 3, ties=False)
NAMES = np.array(["no", "some", "much"])


def table(dtype=np.float64):
    y, p = ROWS
    columns = {"who": np.arange(N) // 2, "label": NAMES[y]}
    columns |= {f"p_{name}": p[:, j].astype(dtype) for j, name in enumerate(NAMES)}
    return pa.table({**columns, "w": np.linspace(0.5, 2, N), "site": np.array(["x", "y"])[np.arange(N) % 2]})


def refuses(path, facts, **options):
    """The error about a file: "argument kind", the row that it names, and the options that would help."""
    with pytest.raises(vx.InputError) as caught:
        files.read(path, **options)
    error = caught.value
    argument, kind, *more = facts.split()
    assert (error.argument, error.kind) == (argument, kind), error
    rows = [int(word[4:]) for word in more if word.startswith("row=")]
    assert list(error.rows[:1]) == rows, error
    helping = [name for remedy in error.remedies for name in remedy.options]
    assert helping == [word for word in more if not word.startswith("row=")], error
    assert len(str(error).splitlines()) == 1
    return error
