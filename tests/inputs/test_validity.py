"""One definition of a valid row, on every path; no row is lost, and no memory is trusted twice."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import NAMESPACES
from verax.engines import scan
from verax.inputs.validity import Unity

# Six decimals that sum to 1.000001.
AT_THE_LIMIT = [
    0.119922,
    0.134367,
    0.020263,
    0.154674,
    0.006694,
    0.092826,
    0.061639,
    0.026888,
    0.15831,
    0.224418,
]


def test_no_row_is_lost_near_the_tolerance():
    p, y = np.tile(np.full(10, 0.1), (300_000, 1)), np.zeros(300_000, int)
    p[140_000], y[140_000] = AT_THE_LIMIT, 3
    card = vx.evaluate(y, p)
    assert (card.weight, card.n_rows) == (300_000, 300_000)
    assert card["brier"] == pytest.approx(float(vx.brier.samples(y, p).mean()), rel=1e-12)


def exactly_valid(row, tolerance=1e-6):
    off = abs(sum(map(Fraction, row)) - 1)
    return min(row) >= 0 and off <= Fraction(tolerance) * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("to", NAMESPACES[:-1])
def test_probabilities_of_class_one_have_the_tolerance_that_rows_have(to):
    rows = to(np.array([[0.0, 1.0000009], [0.25, 0.75]]))
    single = to(np.array([1.0000009, 0.75]))
    for rule in (vx.brier, vx.log_score, vx.rps):
        assert rule([1, 1], single) == pytest.approx(rule([1, 1], rows), rel=1e-12)
    with pytest.raises(vx.InputError) as found:
        vx.brier([1, 1, 0], to(np.array([0.5, 1.000002, -1e-9])))
    assert (found.value.kind, found.value.rows) == ("sign", (1, 2))


def test_a_probability_of_class_one_above_one_is_never_rescaled():
    with pytest.raises(vx.InputError) as found:
        vx.brier([1, 0], [1.2, 0.5], normalize=True)
    assert found.value.rows == (0,)


@given(st.integers(2, 40), st.integers(0, 2**32), st.integers(-60, 60), st.sampled_from([-1, 1]))
def test_rows_at_the_very_limit_are_decided_by_their_exact_sum(k, seed, ulps, side):
    row = np.random.default_rng(seed).dirichlet(np.ones(k))
    target = Fraction(1) + side * Fraction(1e-6) * (1 + Fraction(1, 10**6))
    row[0] += float(target - sum(map(Fraction, row)))
    row[0] += ulps * 2.0**-53
    off = abs(abs(sum(map(Fraction, row)) - 1) - Fraction(1e-6) * (1 + Fraction(1, 10**6)))
    if off > Fraction(1, 2**51) and row[0] >= 0:
        assert bool(Unity(1e-6).holds(row[None])[0]) == exactly_valid(row)


@pytest.mark.parametrize("to", NAMESPACES[:-1])
def test_every_namespace_decides_alike(to):
    limit = 1e-6 * (1 + 1e-6)
    for excess in (limit - 1e-12, limit + 1e-12):
        row = [0.25, 0.25, 0.5 + excess]
        if excess < limit:
            vx.brier([0], to(np.array([row])))
        else:
            with pytest.raises(vx.InputError) as caught:
                vx.brier([0], to(np.array([row])))
            assert caught.value.kind == "sum"


@pytest.mark.parametrize("k", [3, 12])
def test_rows_in_doubt_are_decided_alike_by_the_compiled_pass(k, monkeypatch):
    """With a margin so wide that every row is in doubt, the compiled pass gives the same card."""
    rng = np.random.default_rng(5)
    p, y = rng.dirichlet(np.ones(k), 200_000), rng.integers(0, k, 200_000)
    clear = vx.evaluate(y, p, ordered=True)
    monkeypatch.setattr(Unity, "clear", lambda self, n_classes, epsilon=0.0: -1.0)
    doubtful = vx.evaluate(y, p, ordered=True)
    for name in clear.scores:
        assert doubtful[name] == pytest.approx(clear[name], rel=1e-12)
    assert np.array_equal(clear.tally.counts.confusion, doubtful.tally.counts.confusion)


def test_a_pass_that_leaves_rows_out_is_noticed(monkeypatch):
    forecasts = vx.Forecasts([0, 1, 0], [[0.5, 0.5]] * 3)
    monkeypatch.setattr(forecasts, "batches", lambda rows: [forecasts.batch(0, 2)])
    with pytest.raises(vx.VeraxError, match="2 of 3 rows"):
        scan.scan_rows(forecasts, {"p_true"}, lambda: type("V", (), {"visit": lambda *_: None})())


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 300_000])
@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ([-1.0, -3.0], "sign"),
        ([1e308, 1e308], "sum"),
        ([0.0, 0.0], "sum"),
        ([np.nan, 1], "finite"),
        ([-1.0, 3], "sign"),
    ],
)
def test_rescaling_refuses_what_has_no_meaning(row, kind, n):
    p = np.tile([0.25, 0.75], (n, 1))
    p[n // 2] = row
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate(np.zeros(n, int), p, normalize=True)
    assert (caught.value.kind, caught.value.rows) == (kind, (n // 2,))


def test_log_probabilities_are_not_inverted_by_rescaling():
    with pytest.raises(vx.InputError) as caught:
        vx.evaluate([0, 1], np.log([[0.9, 0.1], [0.2, 0.8]]), normalize=True)
    assert any("logits" in remedy.options for remedy in caught.value.remedies)


def run(script):
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


# ---- labels ------------------------------------------------------------------------------------

P = np.array([[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize("classes", [["True", "False"], ["false", "true"], ["yes", "no"], ["1", "0"]])
def test_booleans_beside_texts_that_mean_booleans_are_refused(classes):
    with pytest.raises(vx.InputError) as caught:
        vx.brier.samples([True, False], P, classes=classes)
    assert (caught.value.argument, caught.value.kind) == ("classes", "order")
    with pytest.raises(vx.InputError):
        vx.brier.samples(np.array([True, False]), pd.DataFrame(P, columns=classes))


def test_booleans_are_found_among_boolean_classes_and_are_positions_beside_other_names():
    assert vx.brier.samples([True, False], P, classes=[True, False]).tolist() == pytest.approx([0.02, 0.08])
    assert vx.brier.samples([False, True], P, classes=["benign", "malignant"]).tolist() == pytest.approx(
        [0.02, 0.08]
    )


@pytest.mark.parametrize("wrap", [lambda c: c, pd.Series])
def test_an_ordered_categorical_does_not_name_the_columns_of_an_array(wrap):
    y = wrap(pd.Categorical(["mild", "severe"], categories=["severe", "mild"], ordered=True))
    for score in (vx.brier, vx.rps, vx.evaluate):
        with pytest.raises(vx.InputError) as caught:
            score(y, P)
        assert caught.value.kind == "order"
        assert any("classes" in remedy.options for remedy in caught.value.remedies)
    assert vx.brier(y, P, classes=["mild", "severe"]) == pytest.approx(0.05)
    assert vx.rps(y, pd.DataFrame(P, columns=["mild", "severe"])) == pytest.approx(0.025)
    with pytest.raises(vx.InputError):
        vx.rps(y, pd.DataFrame(P, columns=["a", "b"]))


# ---- memory ------------------------------------------------------------------------------------

_RACE = """
    import threading, numpy as np, verax as vx
    rng = np.random.default_rng(0)
    k = {k}
    p = rng.dirichlet(np.ones(k), 400_000 // k * 4)
    y = rng.integers(0, k, len(p))
    stop = threading.Event()
    def write():
        while not stop.is_set():
            y[:] = 10**15
            p[:] = np.nan
            y[:] = 0
            p[:] = 1 / k
    thread = threading.Thread(target=write)
    thread.start()
    for _ in range(3):
        try:
            vx.evaluate(y, p, ordered=True)
        except vx.VeraxError:
            pass
    stop.set()
    thread.join()
"""


@pytest.mark.parametrize("k", [4, 20])
def test_memory_that_changes_during_the_call_does_no_harm(k):
    run(_RACE.format(k=k))


# ---- where numba cannot keep or compile code ---------------------------------------------------

_LARGE = """
    import warnings, numpy as np
    {setup}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import verax as vx
        from verax._settings import settings
        settings.compiled_at_once = 0
        p = np.tile([0.25, 0.75], (300_000, 1))
        assert vx.brier(np.zeros(300_000, int), p) == 1.125
        vx.brier(np.zeros(300_000, int), p)
    said = [str(w.message) for w in caught if w.category is RuntimeWarning]
    assert len(said) == 1, said
"""


@pytest.mark.parametrize(
    "setup",
    [
        "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'",
        "import numba.core.caching as c; c.CodeLibraryCacheImpl._locator_classes = []; "
        "c.CompileResultCacheImpl._locator_classes = []",
    ],
    ids=["told not to compile", "nowhere to keep code"],
)
def test_large_inputs_are_scored_without_a_compiler_or_its_cache(setup):
    if "numba" in setup:
        pytest.importorskip("numba")
    run(_LARGE.format(setup=setup))
