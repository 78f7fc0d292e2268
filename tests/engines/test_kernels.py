"""Kernels of a GPU against the array path: on a GPU where there is one, and on the host by an emulator."""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import verax as vx
from cases import RULES, facts_of, forecasts, number
from emulator import EmulatedDevice, emulated, gpu, only_on_gpu  # noqa: F401 - fixtures
from test_vectors import MAKERS, close, entries
from verax.engines.tally import RuleSums
from verax.engines.tracing import differentiate, record
from verax.rules import Holds, Properties
from verax.wings.gpu import driver
from verax.wings.gpu.printer import RowLayout, sums_program

pytestmark = pytest.mark.frameworks
torch = pytest.importorskip("torch")


@dataclass(frozen=True, repr=False)
class Sharp(vx.rules.Rule):
    """A rule that verax does not have, which may be infinite."""

    name = "sharp"
    needs = frozenset({"rest_sq", "top", "cdf_l1"})
    properties = Properties(**dict.fromkeys(Properties.__dataclass_fields__, Holds.UNKNOWN))

    def formula(self, stats):
        xp = stats.xp
        return xp.exp(xp.abs(stats.top - stats.p_true)) / stats.p_true + xp.sqrt(stats.rest_sq) - stats.cdf_l1

    def bounds(self, n_classes):
        return 0.0, np.inf


ALL = [*RULES, vx.padded(vx.zero_one), Sharp()]
# In the emulator fewer: together they read all statistics.
FEW = [vx.brier, vx.pll, vx.spherical, vx.rules.ZeroOne("lowest"), vx.rps, vx.ranked_log, Sharp()]


def rules_for(gpu, *, tame=False):
    return [rule for rule in (ALL if gpu.name == "cuda" else FEW) if not (tame and isinstance(rule, Sharp))]


def rows_of(p, y, w=None, **options):
    return vx.Forecasts(y, p, weights=w, **options)


def by_arrays(p, y, w=None, rules=(), **options):
    """The tally of the same numbers in NumPy, by array calls."""
    host = [
        None if x is None else (x.double() if x.is_floating_point() else x).cpu().numpy() for x in (p, y, w)
    ]
    rows = rows_of(*host, **options)
    rows.unity = vx.Forecasts(y, p, **options).unity
    return RuleSums(rules, rows.n_classes).update(rows)


def by_kernel(gpu, p, y, w=None, rules=(), **options):
    gpu.launches.clear()
    rows = rows_of(p, y, w, **options)
    tally = RuleSums(rules, rows.n_classes).update(rows)
    assert "tally" in gpu.launches
    return tally


def assert_same(found, wanted):
    for name in ("moments", "squared"):
        a, b = getattr(found, name), getattr(wanted, name)
        if name == "squared":
            assert a[0] == pytest.approx(b[0], rel=1e-13)
            a, b = a[1], b[1]
        np.testing.assert_allclose(a.finite_mean, b.finite_mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(a.weight.high, b.weight.high, rtol=1e-13)
        np.testing.assert_allclose(a.m2, b.m2, rtol=1e-10, atol=1e-13 * b.weight.high[0])
        np.testing.assert_array_equal(a.n_infinite, b.n_infinite)
        np.testing.assert_allclose(a.infinite.high, b.infinite.high, rtol=1e-13)
    assert found.weight == pytest.approx(wanted.weight, rel=1e-13)
    assert (found.n_rows, found.n_positive, found.exponent) == (
        wanted.n_rows,
        wanted.n_positive,
        wanted.exponent,
    )
    assert found.counts.n_zero == wanted.counts.n_zero
    assert found.counts.zero_rows == wanted.counts.zero_rows
    np.testing.assert_allclose(found.counts.cells.high, wanted.counts.cells.high, rtol=1e-13)
    np.testing.assert_allclose(found.counts.squared.high, wanted.counts.squared.high, rtol=1e-13)
    np.testing.assert_allclose(found.variances(), wanted.variances(), rtol=1e-10, atol=1e-16)


def check(gpu, p, y, w=None, tame=False, **options):
    rules = rules_for(gpu, tame=tame)
    assert_same(by_kernel(gpu, p, y, w, rules, **options), by_arrays(p, y, w, rules, **options))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("k", [2, 3, 5, 8, 9, 17, 33, 100, 1000, 1100])
def test_sums_are_those_of_the_array_path(gpu, k, dtype):
    only_on_gpu(
        gpu,
        (k, dtype) in {(2, "float64"), (5, "float32"), (17, "float16"), (8, "bfloat16"), (100, "float32")},
    )
    y, p = forecasts(200 if k > 99 else 700, k)
    check(gpu, gpu.put(p, getattr(torch, dtype)), gpu.put(y))


def test_rows_that_ask_for_care(gpu):
    # What the pass without branches leaves to another one, between rows that it keeps.
    y, p = forecasts(70, 5, ties=False)
    p, y[:14] = p.astype(np.float32), np.arange(14) % 5
    p[0], p[1], p[2] = 0.2, [0, 1, 0, 0, 0], [1, 0, 0, 0, 0]
    p[3], p[4] = [-0.0, 0.5, 0, 0.5, -0.0], [0.5, 0.5, -0.0, 0, 1e-42]
    p[5], p[6] = [1e-45, 0, 0, 0, 1], [1, 1e-30, 1e-38, 0, 0]
    p[7], p[8], p[9] = [0.4, 0.1, 0.4, 0.1, 0], [0, 0, 0.5, 0.5, 0], [1 - 1e-7, 0, 0, 0, 1e-7]
    p[10], p[11] = [0.3, 0.3, 0.1, 0.3, 0], [0, 0.25, 0.25, 0.25, 0.25]
    p, y = gpu.put(p), gpu.put(y)
    check(gpu, p, y)
    # No logarithm asks whether the outcome has a probability.
    assert by_kernel(gpu, p, y, rules=[vx.brier]).counts.n_zero == int((p[range(70), y] == 0).sum()) > 0


@pytest.mark.long
@pytest.mark.parametrize("k", [110, 240, 500, 1000, 1100])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_largest_of_many_classes(gpu, k, dtype):
    # Several are as likely, in threads of both sides of the outcome, and the outcome itself.
    only_on_gpu(gpu, (k, dtype) in {(240, "float32"), (1000, "float64")})
    rng = np.random.default_rng(k)
    p, y = rng.dirichlet(np.ones(k), size=70), rng.integers(0, k, 70)
    y[:3] = 0, k - 1, k // 2
    for i in range(0, 70, 2):
        p[i, rng.integers(0, k, 3)] = 0.1
        p[i, y[i]] = 0.1 if i % 4 else p[i, y[i]]
    p[1], p[3] = 1, np.arange(k) == y[3]
    p[5, ::2] = -0.0
    y[7], p[7, k - 4 : k - 2] = k // 3, 0.2
    y[9], p[9, 3:5] = k // 3, 0.2
    p = torch.as_tensor(p / p.sum(axis=1, keepdims=True)).to(getattr(torch, dtype))
    check(gpu, gpu.put(p), gpu.put(y), tame=True)


@pytest.mark.long
@pytest.mark.parametrize("k", [8, 40, 100, 1000])
def test_sides_of_thresholds_that_nearly_vanish(gpu, k):
    # Products of cumulative probabilities underflow, or are zero; outcomes at both ends and between.
    only_on_gpu(gpu, k in (40, 1000))
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.ones(k), size=45)
    y = np.resize([0, 1, k // 2, k - 2, k - 1], 45)
    for i, tiny in enumerate([0.0, 1e-300, 1e-40, 1e-9]):
        rows = slice(10 * i, 10 * i + 10)
        # First nearly all probability above the outcome, then nearly all below it; ends keep the rest.
        p[rows] = tiny
        p[10 * i : 10 * i + 5, -1] = p[10 * i + 5 : 10 * i + 10, 0] = 1 - tiny * (k - 1)
    check(gpu, gpu.put(p), gpu.put(y), tame=True)


@pytest.mark.parametrize("k", [5, 17, 100, 1100])
@pytest.mark.parametrize("weights", ["real", "single", "whole", "extreme", "tiny"])
def test_weights(gpu, k, weights):
    only_on_gpu(
        gpu, (k, weights) in {(5, "real"), (5, "extreme"), (5, "tiny"), (17, "whole"), (100, "single")}
    )
    y, p = forecasts(300, k)
    rng = np.random.default_rng(k)
    w = {
        "real": rng.exponential(size=300),
        "single": rng.exponential(size=300).astype(np.float32),
        "whole": rng.integers(0, 3, 300),
        "extreme": rng.exponential(size=300) * 1e300,
        "tiny": rng.exponential(size=300) * 10.0 ** rng.integers(-9, 1, 300),
    }[weights]
    check(gpu, gpu.put(p), gpu.put(y), gpu.put(w))


@pytest.mark.parametrize("k", [5, 17, 100])
@pytest.mark.parametrize("layout", ["columns", "rows", "both"])
def test_strided_rows(gpu, k, layout):
    only_on_gpu(gpu, (k, layout) in {(5, "columns"), (17, "both"), (17, "rows")})
    y, p = forecasts(300, k)
    wide = torch.zeros(600, 2 * k, dtype=torch.float64)
    if layout == "columns":
        wide = torch.zeros(k, 300, dtype=torch.float64)
        wide = gpu.put(wide).T
    else:
        wide = gpu.put(wide)[::2, : k if layout == "rows" else 2 * k : 1 if layout == "rows" else 2]
    wide.copy_(gpu.put(p))
    check(gpu, wide, gpu.put(np.repeat(y, 2))[::2])


@pytest.mark.parametrize("k", [2, 5, 17, 100])
@pytest.mark.parametrize("spread", [3.0, 400.0])
def test_logits(gpu, k, spread):
    only_on_gpu(gpu, k in (5, 17))
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, k)) * spread
    z[7, 1] = -np.inf
    # Numbers like 1e300 have squares that no path can add up.
    check(gpu, gpu.put(z), gpu.put(rng.integers(0, k, 300)), tame=spread > 100, logits=True)


def test_other_forms_of_rows(gpu):
    y, p = forecasts(300, 5)
    rng = np.random.default_rng(0)
    check(gpu, gpu.put(p), gpu.put(y).double())
    check(gpu, gpu.put(p), gpu.put(y).to(torch.int8))
    check(gpu, gpu.put(p), gpu.put(y + 1), classes=[1, 2, 3, 4, 5])
    check(gpu, gpu.put(p), gpu.put(np.eye(5)[y]))
    check(gpu, gpu.put(rng.exponential(size=(300, 5))), gpu.put(y), normalize=True)
    check(gpu, gpu.put(rng.random(300)), gpu.put(y > 2))


@pytest.mark.parametrize("k", [20, 150, 600])
def test_ties_and_zeros_with_a_sign(gpu, k):
    # Rows in shared memory are compared by their bits, in which zeros have signs.
    y, p = forecasts(60, k)
    p[::3, 2:6] = -0.0
    p[::4] = 1 / k
    p[1::7] = np.eye(k)[np.resize([0, 3, k - 1], len(p[1::7]))]
    p[p == 0] = np.resize([0.0, -0.0], np.count_nonzero(p == 0))
    p /= p.sum(axis=1, keepdims=True)
    check(gpu, gpu.put(p), gpu.put(y), tame=True)


def test_two_passes_at_a_time(gpu, monkeypatch):
    # The memory that the device lends is taken, so this pass has its own.
    only_on_gpu(gpu, True)
    y, p = forecasts(300, 5)
    expected = by_kernel(gpu, gpu.put(p), gpu.put(y), rules=[vx.brier])
    kind = EmulatedDevice if gpu.name == "emulated" else driver.Device
    monkeypatch.setattr(kind, "borrow", lambda *_: None)
    found = by_kernel(gpu, gpu.put(p), gpu.put(y), rules=[vx.brier])
    assert_same(found, expected)


def test_losses_that_the_first_rows_do_not_tell(gpu, change):
    # A shift far from the losses costs digits, so the pass is repeated with their means.
    change(gpu_probed=1)
    n = 9600
    p = np.full((n, 5), 0.2)
    p[32:] = [1 - 4e-7, 1e-7, 1e-7, 1e-7, 1e-7]
    p[32:] += np.random.default_rng(0).random((n - 32, 5)) * 1e-9
    p /= p.sum(axis=1, keepdims=True)
    check(gpu, gpu.put(p), gpu.put(np.zeros(n, int)))
    assert gpu.launches.count("tally") == 3


@pytest.mark.parametrize("weighted", [False, True])
def test_large_tables_are_fetched_when_they_are_looked_at(gpu, change, weighted):
    change(gpu_table_left_from=2)
    y, p = forecasts(300, 5)
    w = np.random.default_rng(0).integers(0, 3, 300) / 8 if weighted else None
    card = vx.evaluate(gpu.put(y), gpu.put(p), weights=None if w is None else gpu.put(w))
    counts = card.tally.counts
    assert "high" not in vars(counts.cells)
    law = vx.evaluate(y, p, weights=w).tally.counts
    # A copy, and a card that is merged, have the numbers.
    copied = pickle.loads(pickle.dumps(counts))
    np.testing.assert_allclose(copied.cells.high, law.cells.high, rtol=1e-15)
    np.testing.assert_allclose(copied.squared.high, law.squared.high, rtol=1e-15)
    np.testing.assert_allclose(counts.confusion, law.confusion, rtol=1e-15)
    both = card.merge(card).tally.counts
    np.testing.assert_allclose(both.confusion, 2 * law.confusion, rtol=1e-15)


def test_a_card_takes_few_calls_of_the_host(gpu):
    # The kernel of a million rows ends sooner than the calls around it, so each one shows.
    y, p = forecasts(300, 5, ties=False)
    rows = gpu.put(y), gpu.put(p)
    vx.evaluate(*rows)
    gpu.launches.clear()
    package, calls = str(Path(vx.__file__).parent), []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        vx.evaluate(*rows)
    finally:
        sys.setprofile(before)
    assert gpu.launches == ["tally", "tally"]
    assert 0 < len(calls) <= 200


def test_the_same_bits_again(gpu):
    y, p = forecasts(700, 17)
    w = gpu.put(np.random.default_rng(0).exponential(size=700))
    first, second = (by_kernel(gpu, gpu.put(p), gpu.put(y), w, rules_for(gpu)) for _ in range(2))
    for a, b in ((first.moments, second.moments), (first.squares, second.squares)):
        np.testing.assert_array_equal(a.total.high, b.total.high)
        np.testing.assert_array_equal(a.m2, b.m2)
    np.testing.assert_array_equal(first.counts.cells.high, second.counts.cells.high)


@pytest.mark.parametrize("spoil", ["negative", "sum", "nan", "inf", "outcome", "weight", "light"])
@pytest.mark.parametrize("k", [5, 600])
def test_invalid_rows_are_named(gpu, spoil, k):
    y, p = forecasts(300, k, ties=False)
    w = np.ones(300) if k == 5 or spoil in ("weight", "light") else None
    if spoil == "negative":
        p[17, :2] += [-1, 1]
    elif spoil == "sum":
        p[17] *= 0.5
    elif spoil in ("nan", "inf"):
        p[17, 2] = float(spoil)
    elif spoil == "outcome":
        y[17] = k
    elif spoil == "weight":
        w[17] = -1
    else:
        w[:] = 0
    with pytest.raises(vx.InputError) as wanted:
        RuleSums([vx.brier], k).update(rows_of(p, y, w))
    with pytest.raises(vx.InputError) as found:
        RuleSums([vx.brier], k).update(rows_of(gpu.put(p), gpu.put(y), None if w is None else gpu.put(w)))
    like = ["argument", "kind", "rows"]
    assert facts_of(found.value, like) == facts_of(wanted.value, like)


def test_rows_that_are_valid_by_a_hair(gpu):
    # The kernel leaves what is not clear to the one definition.
    y, p = forecasts(300, 5, ties=False)
    p[3] *= 1 + 1e-6
    by_second_look = RuleSums([vx.brier], 5).update(rows_of(gpu.put(p), gpu.put(y)))
    assert by_second_look.moments.mean[0] == pytest.approx(vx.brier(y, p), rel=1e-13)


def test_exact_vectors(gpu):
    by_size = {}
    for parameter in entries(*MAKERS):
        entry = parameter.values[0]
        by_size.setdefault(len(entry["p"]), []).append(entry)
    assert len(by_size) > 2
    for k, cases in by_size.items():
        if gpu.name == "emulated":
            cases = cases[:4] if k == 3 else []
        rules = [MAKERS[entry["rule"]](entry["params"], k) for entry in cases]
        distinct = list(dict.fromkeys(rules))
        for entry, rule in zip(cases, rules, strict=True):
            p = gpu.put(np.array([[number(x) for x in entry["p"]]]))
            tally = by_kernel(gpu, p, gpu.put(np.array([entry["y"]])), rules=distinct)
            assert close(tally.moments.mean[distinct.index(rule)], entry["expected"]), entry


def test_small_inputs_and_formulas_without_a_trace_take_array_calls(gpu, change):
    y, p = forecasts(100, 5)

    class Compares(Sharp):
        def formula(self, stats):
            return stats.xp.where(stats.p_true > 0.5, stats.p_true, stats.rest_sq)

    rule = Compares()
    with pytest.warns(RuntimeWarning, match="computed by array calls.*it calls `where`"):
        assert rule(gpu.put(y), gpu.put(p)) == pytest.approx(rule(y, p), rel=1e-13)
    change(gpu_from=10**6)
    assert vx.rps(gpu.put(y), gpu.put(p)) == pytest.approx(vx.rps(y, p), rel=1e-13)
    assert gpu.launches == []


def test_rows_too_long_for_shared_memory_take_array_calls():
    assert sums_program([vx.brier], RowLayout(60_000, "float32", "int64"), decisions=True, most=1024) is None


def test_streams_of_the_caller(gpu):
    only_on_gpu(gpu, False)
    y, p = forecasts(100_000, 5)
    expected = vx.evaluate(y, p, ordered=True)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        there = torch.zeros(100_000, 5, dtype=torch.float64, device="cuda")
        torch.cuda._sleep(20_000_000)
        there.copy_(gpu.put(p))
        card = vx.evaluate(gpu.put(y), there, ordered=True)
    assert card["rps"] == pytest.approx(expected["rps"], rel=1e-12)


@pytest.mark.parametrize("library", ["cupy", "jax"])
def test_other_libraries_on_a_gpu(gpu, library):
    only_on_gpu(gpu, False)
    module = pytest.importorskip("cupy" if library == "cupy" else "jax.numpy")
    y, p = forecasts(2000, 5)
    p = p.astype(np.float32)
    w = np.random.default_rng(0).exponential(size=2000).astype(np.float32)
    found = by_kernel(gpu, module.asarray(p), module.asarray(y.astype(np.int32)), module.asarray(w), ALL)
    rows = rows_of(p.astype(np.float64), y, w)
    rows.unity = rows_of(p, y).unity
    assert_same(found, RuleSums(ALL, 5).update(rows))


# ---- derivatives of traces ---------------------------------------------------------------------


@pytest.mark.parametrize("rule", [r for r in ALL if not isinstance(r, vx.rules.ZeroOne)], ids=repr)
def test_derivatives_of_traces_are_slopes(rule):
    trace = record([rule], 5, log_true=True)
    whole, slopes = differentiate(trace)
    rng = np.random.default_rng(0)
    stats = dict(zip(trace.statistics, rng.uniform(0.1, 0.8, len(trace.statistics)), strict=True))
    if "log_true" in stats:
        stats["log_true"] *= -1
    for name, slope in slopes.items():
        near = [run(trace, stats | {name: stats[name] + h})[trace.losses[0]] for h in (-1e-6, 1e-6)]
        assert run(whole, stats)[slope] == pytest.approx((near[1] - near[0]) / 2e-6, rel=1e-6, abs=1e-8)


def run(trace, stats):
    """The values of all steps of a trace."""
    values = dict(stats) | {f"c{i}": value for i, value in enumerate(trace.constants)}
    functions = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "neg": np.negative,
        "log": np.log,
        "sqrt": np.sqrt,
        "exp": np.exp,
        "abs": np.abs,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "sign": np.sign,
        "pick": lambda a, b, x, y: x if a >= b else y,
    }
    for step in trace.steps:
        values[step.name] = functions[step.operation](*(values[operand] for operand in step.operands))
    return values
