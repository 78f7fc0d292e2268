"""Kernels as users get them: all other tests compile without optimising, which takes a third of the time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba")

# Loops over few and over many classes, top lists, pairs of models, histograms and derivatives.
CODE = """
import numpy as np
from numba.core import config, event
import verax as vx
from verax._settings import settings

class Count(event.Listener):
    compiled = 0
    def on_start(self, found): pass
    def on_end(self, found): self.compiled += 1

count = Count()
event.register("numba:compile", count)
settings.compiled_at_once, settings.compiled_from = 0, 2**16
rng = np.random.default_rng(0)


def rows(k, n):
    p = rng.dirichlet(np.full(k, 0.5), n)
    return np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1), p


def results():
    for k in (3, 200):
        yield f"{k} classes", vx.evaluate(*data[k], ordered=True).to_dict(stored=False)
    y, p = data[3]
    yield "two models", vx.compare(y, {"a": p, "b": p[:, ::-1]}, rule="brier").to_dict()
    yield "one class against the others", vx.roc_auc(y, p)
    y, p = data[12]
    yield "lists", vx.evaluate(y, vx.TopLists.from_probabilities(p, 4)).to_dict(stored=False)
    yield "retention", vx.retention(y, p, rule="brier", metric="accuracy").values


def numbers(found):
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (list, tuple, np.ndarray)):
        return [number for each in found for number in numbers(each)]
    found = getattr(found, "value", found)
    return [float(found)] if isinstance(found, (int, float)) else []


data = {k: rows(k, settings.compiled_from // k + 7) for k in (3, 12, 200)}
fast = {name: numbers(found) for name, found in results()}
print(int(config.OPT), count.compiled)
settings.compiled_from = 2**62
for name, found in results():
    assert fast[name], name
    np.testing.assert_allclose(fast[name], numbers(found), rtol=1e-12, atol=1e-15, err_msg=name)
"""


@pytest.mark.slow
def test_optimised_kernels_say_what_array_calls_say(tmp_path):
    environment = {**os.environ, "NUMBA_OPT": "3", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    level, compiled = map(int, done.stdout.split())
    assert level == 3
    assert compiled >= 8
