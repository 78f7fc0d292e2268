"""What several test modules share: array libraries, rules, random forecasts."""

from __future__ import annotations

import importlib
import sys
import warnings
from fractions import Fraction
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

import references
import verax as vx
from verax._settings import settings

# Of tests that call kernels themselves.
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs numba")

# Probabilities from which inputs are compiled, unless a test changes it.
COMPILED_FROM = settings.compiled_from

# The registered rules and one or more of every other parametrisation.
RULES = [
    *vx.rules.RULES.values(),
    vx.rules.Brier("half"),
    vx.rules.Brier("mean"),
    vx.rules.Log(base=2),
    vx.rules.RPS(normalized=False),
    vx.rules.AbsRPS(normalized=False),
    vx.rules.SaRPS("eq7"),
    vx.rules.ZeroOne("lowest"),
    vx.penalized(vx.rps),
    vx.penalized(vx.spherical, "minimal"),
    vx.penalized(vx.brier, 0.1, ties="lowest"),
    vx.penalized(vx.ranked_log, 1.0),
]
# Certificates do not change, and many tests look at the same ones.
certified = cache(vx.certify)
SMOOTH = [rule for rule in RULES if not isinstance(rule, vx.rules.ZeroOne)]
# Exact gradients and expected Hessians in logits.
GRADIENTS = [entry for entry in references.entries() if entry["rule"] == "grad_logits"]


def numpy_writeable(x):
    return np.array(x)


def numpy_readonly(x):
    x = np.array(x)
    x.flags.writeable = False
    return x


def numpy_fortran(x):
    return np.asfortranarray(x)


def strict(x):
    import array_api_strict

    return array_api_strict.asarray(x)


def torch(x):
    return pytest.importorskip("torch").tensor(x)


def jax(x):
    jnp = pytest.importorskip("jax.numpy")
    with warnings.catch_warnings():
        # JAX says so when it narrows float64, which is what it does unless told otherwise.
        warnings.filterwarnings("ignore", message=".*dtype float64 requested.*")
        return jnp.asarray(x)


@cache
def scoringrules():
    """The package of that name, by its array calls: its compiled ones are compiled anew by every import."""
    kept = sys.modules.get("numba")
    sys.modules["numba"] = None
    try:
        return importlib.import_module("scoringrules")
    finally:
        del sys.modules["numba"]
        if kept is not None:
            sys.modules["numba"] = kept


NAMESPACES = [numpy_writeable, numpy_readonly, numpy_fortran, strict, torch, jax]


def number(text):
    """A number of vectors.json as a float."""
    return float(text) if text in ("inf", "nan") else float(Fraction(text))


def forecasts(n, k, seed=0, *, ties=True):
    """Random forecasts and outcomes, every fourth row with ties and every ninth with zeros."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    if ties:
        p[::4] = rng.integers(1, 3, (len(p[::4]), k))
        p[::9, 0] = 0
        p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, k, n), p


def facts(argument, kind=None, *, rows=None, values=None):
    """What an InputError should say, in its fields; what is None is left open."""
    wanted = {"argument": argument, "kind": kind, "rows": rows, "values": values}
    return {name: value for name, value in wanted.items() if value is not None}


def facts_of(error, like):
    """The fields of an error that `like` names, as plain Python values."""
    given = {name: getattr(error, name) for name in like}
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    return {name: _plain(value) for name, value in given.items()}


def _plain(value):
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def card_of_file(source, *, rows=None, ordered=False, **options):
    """The card of an open file, read a number of rows at a time."""
    from dataclasses import replace

    from verax.scans.local import LocalHandle
    from verax.scans.parts import part_of

    class Opened(LocalHandle):
        name, models, n_rows = source.path, ("model",), source.n_rows
        classes, n_classes, taken, by = source.classes, source.width, source.taken, source.roles.by

        def in_order(self):
            return self

        def _work(self, times):
            request = replace(source.request, ordered=ordered)
            for batch in source.batches(rows, coded=True):
                yield lambda collector, batch=batch: collector.add(part_of({"model": batch}, request))

        def _summarise(self, recipes):
            # Batches without a valid row are not shown, but counted.
            return replace(super()._summarise(recipes), skipped=source.skipped)

    return vx.evaluate(Opened(), ordered=ordered, **options)


def top_list(classes, confidences, m):
    """One list of classes out of m."""
    return vx.TopLists.from_arrays([classes], [confidences], n_classes=m)
