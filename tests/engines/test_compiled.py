"""Which path a call takes, that both agree, and that nothing depends on the compiler being there."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from cases import COMPILED_FROM, forecasts
from verax.engines import fusion
from verax.engines.scan import Plan, scan_rows
from verax.engines.stats import RowStatistic, compute
from verax.engines.tally import RuleSums
from verax.engines.tracing import OPERATIONS, record
from verax.kernels import functions, ledger
from verax.kernels.fewclasses import FEW
from verax.kernels.statistics import PLACE, STATISTICS
from verax.kernels.texts import Lines, compile_text
from verax.rules import Holds, Properties
from verax.scores.base import losses_of

pytest.importorskip("numba")

NAMES = ("decision", "top", "p_true", "rest_sq")
UNKNOWN = Properties(*[Holds.UNKNOWN] * 7)


class Spy:
    def __init__(self):
        self.blocks = []

    def visit(self, stats, batch, chunk):
        self.blocks.append((stats.buffer is not None, len(batch.y)))


def test_large_numpy_input_is_compiled_and_small_is_not():
    k = 4
    for n, compiled in ((COMPILED_FROM // k - 1, False), (COMPILED_FROM // k, True)):
        y, p = forecasts(n, k)
        visitors = scan_rows(vx.Forecasts(y, p), {"rest_sq"}, Spy)
        blocks = [block for visitor in visitors for block in visitor.blocks]
        assert {path for path, _ in blocks} == {compiled}
        assert sum(rows for _, rows in blocks) == n


def test_statistics_outlive_the_buffers_of_their_block():
    y, p = forecasts(COMPILED_FROM // 4 + 1, 4)
    found = dict(
        zip(NAMES, losses_of([RowStatistic(name) for name in NAMES], vx.Forecasts(y, p)), strict=True)
    )
    expected = compute(vx.Forecasts(y, p).batch(0, len(y)), frozenset(NAMES))
    for name, values in found.items():
        np.testing.assert_allclose(values, getattr(expected, name), rtol=1e-12)


@pytest.mark.parametrize("k", [4, FEW + 1])
def test_the_default_call_uses_the_fused_kernel(k, monkeypatch):
    y, p = forecasts(COMPILED_FROM // k + 1, k, ties=False)
    p += 1e-3
    p /= p.sum(axis=1, keepdims=True)
    expected = vx.evaluate(y, p, ordered=True)
    monkeypatch.setattr("verax.engines.tally.Moments.of", lambda *_: pytest.fail("the losses were not fused"))
    monkeypatch.setattr("verax.engines.scan.validate", lambda *_: pytest.fail("the rows were not compiled"))
    again = vx.evaluate(y, p, ordered=True)
    assert again.to_dict(stored=False) == expected.to_dict(stored=False)


def test_array_calls_answer_until_compiling_pays(change):
    change(compiled_from=100, compiled_at_once=1000, compiled_in_parts_from=80, part_overhead=0)

    def compiled(n, work="work"):
        y, p = forecasts(n, 4)
        return Plan.of(vx.Forecasts(y, p), work).compiled

    assert not compiled(24)
    assert [compiled(100) for _ in range(5)] == [False, False, True, True, True]
    assert not compiled(24), "small inputs never are"
    assert compiled(25), "what has paid once stays compiled"
    assert not compiled(25, "other work")
    with ledger.expecting(1000):
        assert compiled(25, "more work")
        assert [compiled(20, "parts") for _ in range(14)] == [False] * 12 + [True] * 2
        assert not compiled(19, "parts"), "tiny parts never are"
    assert not compiled(20, "parts")
    assert not compiled(25, "still more")
    assert compiled(250, "large work")
    change(part_overhead=420)
    with ledger.expecting(1000):
        assert [compiled(20, "small parts") for _ in range(3)] == [False, True, True], "calls take time"


def test_the_first_call_in_a_process_does_not_compile():
    code = """
import sys, numpy as np, verax as vx
p = np.random.default_rng(0).dirichlet(np.ones(5), 200_000)
vx.evaluate(np.zeros(200_000, int), p, ordered=True)
print("numba" in sys.modules)
"""
    assert run(code) == "False\n"


def test_the_first_call_with_lists_does_not_compile_either():
    code = """
import sys, numpy as np, verax as vx
classes = np.tile(np.arange(20), (30_000, 1))
lists = vx.TopLists.from_arrays(classes, np.full(classes.shape, 0.04), n_classes=128_256)
vx.evaluate(np.zeros(30_000, int), lists)
print("numba" in sys.modules)
"""
    assert run(code) == "False\n"


DENSE = {name for name in PLACE if STATISTICS[name].family != "list"}


@pytest.mark.parametrize("k", [2, 3, 5, 8, 9, 13, 31, 40, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_both_paths_give_the_same_statistics(k, dtype, layout):
    y, p = forecasts(COMPILED_FROM // k + 1, k)
    p = np.array(p, dtype=dtype, order=layout)
    forecast = vx.Forecasts(y.astype(np.int32), p)
    seen = {}

    class Keep:
        def visit(self, stats, batch, chunk):
            assert stats.buffer is not None
            seen[batch.start] = {name: getattr(stats, name).copy() for name in (*DENSE, "decision")}

    scan_rows(forecast, DENSE, Keep)
    for start in (0, max(seen)):
        n = len(seen[start]["p_true"])
        plain = compute(forecast.batch(start, start + n), {*DENSE, "decision"})
        for name, values in seen[start].items():
            np.testing.assert_allclose(values, getattr(plain, name), rtol=2e-13, err_msg=name)


@pytest.mark.parametrize("k", [11, 14, 129, 1024])
def test_any_number_of_classes_by_one_kernel(change, k):
    """Products of probabilities are taken by fours, which need not come out even."""
    y, p = forecasts(COMPILED_FROM // k + 1, k)
    # Outcomes that were ruled out, and sides of thresholds that are tiny or have a subnormal probability.
    p[:9, :] = 0.0
    p[:9, 7] = 1.0
    p[:9, 0] = [0.0, 0.0, 1e-70, 1e-250, 5e-324, 1e-310, 1e-17, 0.0, 0.0]
    y[:9] = [7, 8, 0, 0, 0, 0, 0, k - 1, 0]
    y[9:60] = p[9:60].argmax(axis=1)
    weights = np.random.default_rng(0).random(len(y))
    ordinal = [
        vx.brier,
        vx.log_score,
        vx.zero_one,
        vx.rules.ZeroOne("lowest"),
        vx.abs_rps,
        vx.rps,
        vx.ranked_log,
    ]
    found = {}
    for path in ("compiled", "arrays"):
        found[path] = [
            RuleSums(rules, k).update(vx.Forecasts(y, p, weights=w))
            for rules, w in ((ordinal, None), ([vx.brier], weights))
        ]
        change(compiled_from=2**60)
    for own, other in zip(*found.values(), strict=True):
        for name in ("finite_mean", "std", "n_infinite"):
            expected = getattr(other.moments, name)
            np.testing.assert_allclose(getattr(own.moments, name), expected, rtol=1e-12)
        np.testing.assert_allclose(own.counts.cells.high, other.counts.cells.high, rtol=1e-12)
        assert own.counts.zero_rows == other.counts.zero_rows
        np.testing.assert_allclose(own.n_positive, other.n_positive)


@pytest.mark.parametrize(("n_groups", "noted"), [(1, 0), (3, 2**23), (53, 0), (53, 2**23)])
def test_groups_by_one_kernel(change, monkeypatch, n_groups, noted):
    """Large groups fill the counters of their cells many times, in a thread and where threads are merged.

    Cells of rows are noted and counted late, or counted at once.
    """
    change(cells_noted_up_to=noted)
    k = 4
    y, p = forecasts(2 * COMPILED_FROM // k + 1, k)
    p[:5], y[:5] = [0.0, 0.0, 1.0, 0.0], [1, 2, 0, 2, 3]
    groups = np.random.default_rng(0).integers(7, 7 + n_groups, len(y)) ** 2
    found = []
    for threads in (1, 2, 0):
        change(cores=threads, compiled_from=COMPILED_FROM if threads else 2**60)
        rows = vx.Forecasts(y, p, groups=groups)
        rules = [vx.brier, vx.pbs, vx.log_score, vx.zero_one]
        found.append(RuleSums(rules, k).update(rows).clusters)
    one, two, arrays = found
    np.testing.assert_array_equal(arrays.sums.high[:, 0], np.unique(groups, return_counts=True)[1])
    assert one.sums.high.tobytes() == two.sums.high.tobytes(), "threads do not matter"
    for own in (one, two):
        np.testing.assert_allclose(own.sums.high, arrays.sums.high, rtol=1e-12)
        np.testing.assert_array_equal(own.infinite, arrays.infinite)
        np.testing.assert_array_equal(own.cells.keys, arrays.cells.keys)
        np.testing.assert_array_equal(own.cells.sums.high, arrays.cells.sums.high)
        assert own.labels.tolist() == sorted(set(groups.tolist()))


@pytest.mark.parametrize("n_groups", [3, 53, 2**16])
def test_groups_of_parts(change, n_groups):
    """Parts with different groups are merged before their cells are listed; counters fill again on the way.

    With very many groups cells are listed first, because a byte for each would take more memory.
    """
    change(cores=2, compiled_from=COMPILED_FROM)
    k, rules = 4, [vx.brier, vx.pbs, vx.log_score, vx.zero_one]
    y, p = forecasts(2 * COMPILED_FROM // k + 1, k)
    p[:5], y[:5] = [0.0, 0.0, 1.0, 0.0], [1, 2, 0, 2, 3]
    groups = np.random.default_rng(0).integers(0, n_groups, len(y))
    halves = slice(0, len(y) // 2), slice(len(y) // 2, len(y))
    groups[halves[0]] += n_groups // 3
    one, two = (RuleSums(rules, k).update(vx.Forecasts(y[i], p[i], groups=groups[i])) for i in halves)
    # Merging changes neither part, so they can be merged twice.
    merged = [one.merge(two).clusters, two.merge(one).clusters]
    change(compiled_from=2**60)
    arrays = RuleSums(rules, k).update(vx.Forecasts(y, p, groups=groups)).clusters
    for own in (*merged, pickle.loads(pickle.dumps(one.merge(two).clusters))):
        assert own.labels.tolist() == arrays.labels.tolist()
        np.testing.assert_allclose(own.sums.high, arrays.sums.high, rtol=1e-12)
        np.testing.assert_array_equal(own.infinite, arrays.infinite)
        np.testing.assert_array_equal(own.cells.keys, arrays.cells.keys)
        np.testing.assert_array_equal(own.cells.sums.high, arrays.cells.sums.high)


@dataclass(frozen=True, repr=False)
class Mine(vx.rules.Rule):
    """A rule that the fusion can translate: the squared miss of the outcome alone."""

    name = "mine"
    summary = "squared miss"
    reference = "doi:none"
    needs = frozenset()
    properties = UNKNOWN

    def formula(self, stats):
        return (1 - stats.p_true) ** 2

    def bounds(self, n_classes):
        return 0.0, 1.0


@dataclass(frozen=True, repr=False)
class Untraceable(Mine):
    """A rule that it cannot: a comparison decides."""

    def formula(self, stats):
        return stats.xp.where(stats.p_true > 0.5, 0 * stats.p_true, 1 + 0 * stats.p_true)


@pytest.mark.parametrize("rule", [Mine(), Untraceable()])
def test_a_rule_from_outside_runs_on_every_path(rule):
    y, p = forecasts(COMPILED_FROM // 3 + 1, 3)
    losses = rule.samples(y, p)
    said = pytest.warns(
        RuntimeWarning, match="of mine is computed by array calls.* because it calls `where`|compares"
    )
    with said if isinstance(rule, Untraceable) else nullcontext():
        assert rule(y, p) == pytest.approx(losses.mean(), rel=1e-12)
    assert rule.samples(y[:50], p[:50]) == pytest.approx(losses[:50], rel=1e-14)
    assert vx.evaluate(y, p, rules=[rule, "brier"]).scores["mine"].proper == "unknown"


@dataclass(frozen=True, repr=False)
class Power(Mine):
    """A power of the miss, which may be zero."""

    power: float = 3.0

    def formula(self, stats):
        return (
            (1 - stats.p_true) ** self.power + stats.xp.pow(1 + stats.p_true, -self.power) + 2.0**stats.p_true
        )


@pytest.mark.parametrize("power", [0, 1, 2, 3.0, 7, 0.5, 1.5, 2.5, 1 / 3, 2.2, 100])
def test_powers_are_compiled(power):
    """NumPy's powers are the reference; a formula without a trace would warn."""
    y, p = forecasts(COMPILED_FROM // 3 + 1, 3)
    p[:3], y[:3] = [1.0, 0.0, 0.0], 0
    p_true = p[np.arange(len(y)), y]
    expected = (1 - p_true) ** power + (1 + p_true) ** -power + 2.0**p_true
    assert Power(power)(y, p) == pytest.approx(expected.mean(), rel=1e-13)


@dataclass(frozen=True, repr=False)
class ByNumPy(Mine):
    """A rule whose formula calls NumPy's functions instead of those of its array namespace."""

    def formula(self, stats):
        miss = np.subtract(1.0, stats.p_true)
        return np.square(miss) + np.power(abs(miss), 1.5) - np.maximum(np.log(1 + np.sqrt(miss)), 0.1)


def test_formulas_of_numpy_functions_are_compiled():
    y, p = forecasts(COMPILED_FROM // 3 + 1, 3)
    miss = 1 - p[np.arange(len(y)), y]
    expected = miss**2 + miss**1.5 - np.maximum(np.log(1 + np.sqrt(miss)), 0.1)
    assert ByNumPy()(y, p) == pytest.approx(expected.mean(), rel=1e-13)


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        (lambda stats: np.tanh(stats.p_true), "it calls `np.tanh`"),
        (lambda stats: stats.p_true.clip(0.1, 0.9), "it uses `clip` of an array"),
        (lambda stats: stats.p_true // 0.1, "one of its operations has no compiled form"),
        (lambda stats: stats.p_true**stats.p_true, "exponent is not a number"),
    ],
)
def test_rules_that_are_not_compiled_say_so_once(formula, reason):
    @dataclass(frozen=True, repr=False)
    class Slow(Mine):
        def formula(self, stats):
            return formula(stats)

    y, p = forecasts(COMPILED_FROM // 3 + 1, 3)
    with pytest.warns(RuntimeWarning, match=f"of mine is computed by array calls.*{reason}"):
        vx.compare(y, {"a": p, "b": p[::-1]}, rule=Slow())
    Slow()(y, p)


@dataclass(frozen=True, repr=False)
class Forgetful(Mine):
    """A rule that does not say what it uses."""

    name = "forgetful"

    def formula(self, stats):
        return stats.cdf_l2 * 1.0


@pytest.mark.parametrize("n", [50, COMPILED_FROM // 3 + 1])
def test_a_statistic_that_is_not_named_is_not_there(n):
    y, p = forecasts(n, 3)
    with pytest.raises(vx.errors.RuleError, match="a statistic that `needs` does not name"):
        Forgetful()(y, p)


class Plain(vx.rules.Rule):
    """The least that a rule of one's own can be: no dataclass, no name, no summary."""

    needs = frozenset({"rest_sq"})
    properties = UNKNOWN

    def formula(self, stats):
        return stats.rest_sq

    def bounds(self, n_classes):
        return 0.0, 1.0


def test_a_plain_rule():
    y, p = forecasts(50, 3)
    rule = Plain()
    assert repr(rule) == "plain"
    card = vx.evaluate(y, p, rules=[rule, "brier"])
    assert card["plain"] == card[rule] == pytest.approx(rule(y, p))
    assert len(card.to_frame()) == 3
    with pytest.raises(vx.errors.RuleError, match="is not known to be proper"):
        vx.penalized(rule)
    with pytest.raises(vx.InputError, match="two different rules are called 'plain'"):
        vx.evaluate(y, p, rules=[rule, Plain()])


def test_one_loop_serves_every_number_of_classes():
    rules = tuple(vx.rules.RULES.values())
    kernels = {id(fusion.fuse(rules, k, False)[0]) for k in (4, 11, 1000)}
    assert len(kernels) == 1


def test_an_inner_loss_is_computed_once():
    trace = record((vx.log_score, vx.pll), 3)
    assert [step.operation for step in trace.steps].count("log") == 1
    assert trace.losses[0] in trace.steps[-1].operands


def test_a_trace_computes_what_the_formulas_do():
    rules = (*vx.rules.RULES.values(), Mine(), vx.rules.Log(clip=0.1), vx.penalized(vx.rps, "minimal"))
    y, p = forecasts(50, 4, ties=False)
    needs = {"log_true", *(name for rule in rules for name in rule.needs)}
    stats = compute(vx.Forecasts(y, p).batch(0, 50), needs)
    for log_true in (False, True):
        trace = record(rules, 4, log_true=log_true)
        assert ("log_true" in trace.statistics) is log_true
        known = {name: getattr(stats, name) for name in trace.statistics}
        known |= {f"c{i}": value for i, value in enumerate(trace.constants)}
        functions = {
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "neg": np.negative,
        }
        for step in trace.steps:
            assert len(step.operands) == OPERATIONS[step.operation]
            call = functions.get(step.operation) or getattr(np, step.operation)
            known[step.name] = call(*(known[name] for name in step.operands))
        for rule, loss in zip(rules, trace.losses, strict=True):
            np.testing.assert_allclose(known[loss], rule.samples(y, p), rtol=1e-15)


def run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **environment},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_everything_works_without_numba():
    code = """
import sys
sys.modules["numba"] = None
import numpy as np, verax as vx
rng = np.random.default_rng(0)
p = rng.dirichlet(np.ones(5), 150_000)
y = rng.integers(0, 5, 150_000)
print(repr(vx.evaluate(y, p, ordered=True)["rps"]), repr(float(vx.brier.samples(y, p).sum())))
"""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 150_000)
    y = rng.integers(0, 5, 150_000)
    assert len(p) * 5 >= COMPILED_FROM
    without = [float(text) for text in run(code).split()]
    assert without == pytest.approx([vx.rps(y, p), vx.brier.samples(y, p).sum()], rel=1e-12)


def test_small_calls_do_not_wait_for_the_compiler():
    code = """
import sys, numpy as np, verax as vx
p = np.random.default_rng(0).dirichlet(np.ones(5), 1000)
vx.evaluate(np.zeros(1000, int), p, ordered=True)
print("numba" in sys.modules)
"""
    assert run(code) == "False\n"


@pytest.mark.slow
def test_kernels_are_kept_between_processes(tmp_path):
    code = """
import numpy as np, verax as vx
from verax.engines.fusion import Layout, fuse_rows
from verax._settings import settings
settings.compiled_at_once = 0
p = np.full((settings.compiled_from // 5 + 1, 5), 0.2)
vx.evaluate(np.zeros(len(p), int), p, rules=["brier", "zero_one"])
rules = tuple(map(vx.parse, ["brier", "zero_one"]))
kernel = fuse_rows(rules, Layout(5, False, "probabilities", False, False, True))[0]
print(len(kernel.signatures), len(kernel.stats.cache_hits))
"""
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0\n"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1 1\n"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows():
    import tracemalloc

    extra = []
    for n in (1_500_000, 6_000_000):
        p, y = np.full((n, 4), 0.25, np.float32), np.zeros(n, np.int32)
        vx.brier(y, p)
        tracemalloc.start()
        RuleSums(list(vx.rules.RULES.values()), 4).update(vx.Forecasts(y, p))
        extra.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(extra) < 64e6
    # Threads may hold a part more or less; one number per row would be 36e6 more.
    assert extra[1] < extra[0] + 9e6


def first_of(numbers) -> float:
    return numbers[0]


def last_of(numbers) -> float:
    return numbers[len(numbers) - 1]


def test_texts_are_parsed_by_one_thread_at_a_time(monkeypatch):
    parse, inside, most = ast.parse, [], []

    def noted(*arguments, **options):
        inside.append(None)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        return parse(*arguments, **options)

    monkeypatch.setattr(ast, "parse", noted)
    kernels = [functions.compiled(first_of), functions.compiled(last_of)] * 2
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda kernel: kernel(np.array([1.0, 2.0])), kernels))
    assert (found, max(most)) == ([1.0, 2.0, 1.0, 2.0], 1)


def exact_log(x):
    with localcontext(prec=40):
        return Decimal(x).ln()


def test_the_logarithm_of_compiled_loops():
    rng = np.random.default_rng(0)
    powers = 2.0 ** -np.arange(1, 53)
    x = np.concatenate(
        [
            rng.random(1500),
            1 + rng.normal(size=1500) * 0.004,
            np.exp(rng.uniform(-708, 709, 500)),
            1 - powers,
            1 + powers,
            2.0 ** np.arange(-1022, 1024, 31),
            [np.nextafter(1, 0), np.sqrt(0.5), np.sqrt(2), 2.0**-1022, np.finfo(float).max],
        ]
    )
    log = function(lambda lines: (lines.require_normal("x"), lines.log("x"))[1])
    assert log(1.0) == (0.0, True)
    for value in x.tolist():
        truth = exact_log(value)
        found, known = log(value)
        assert abs(Decimal(found) - truth) <= 2 * Decimal(np.spacing(abs(float(truth)))), value
        assert known
    odd = [0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, np.nextafter(2.0**-1022, 0)]
    assert not any(log(value)[1] for value in odd)


def function(write):
    """A compiled function of x, as lines of text compute it, and whether what they require holds."""
    lines = Lines(4)
    lines.let(write(lines), "result")
    lines.all_hold("known")
    text = ["def kernel(x) -> tuple[float, bool]:", *lines.text, "    return result, known"]
    return compile_text("\n".join(text), __file__)


def test_the_exponential_function_of_compiled_loops():
    rng = np.random.default_rng(0)
    exp = function(lambda lines: lines.exp("x"))
    values = [*rng.uniform(-708, 709, 3000), *rng.normal(size=1000), *rng.normal(size=500) * 1e-9]
    values += [0.0, -0.0, 709.0, -708.0, np.log(2) / 2, -np.log(2) / 2]
    for value in map(float, values):
        with localcontext(prec=40):
            truth = Decimal(value).exp()
        assert abs(Decimal(exp(value)[0]) - truth) <= 2 * Decimal(np.spacing(float(truth))), value
    assert [exp(value)[0] for value in (-708.1, -1e300, -np.inf)] == [0, 0, 0]


FACTORS = st.one_of(
    st.floats(0.0, 1.0, exclude_min=True),
    st.sampled_from([1.0, 1 - 2.0**-53, 1e-300, 2.0**-1022, 1e-16, 1 - 1e-9, 1 + 1e-7, 0.5]),
)


@pytest.mark.long
@pytest.mark.parametrize("n", [1, 2, 4, 11])
@given(data=st.data())
def test_a_sum_of_logarithms_is_the_logarithm_of_a_product(n, data):
    product = log_of_product(n)
    factors = data.draw(st.lists(FACTORS, min_size=n, max_size=n))
    found, known = product(np.array(factors))
    assert known == (min(factors) >= 2.0**-1022)
    if known:
        with localcontext(prec=60):
            truth = sum((Decimal(factor).ln() for factor in factors), Decimal(0))
        assert abs(Decimal(found) - truth) <= Decimal("1e-15") * abs(truth)


@cache
def log_of_product(n):
    return function(lambda lines: lines.log_of_product([f"x[{i}]" for i in range(n)]))


@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-310])
def test_what_is_odd_to_the_logarithm_is_left_to_numpy(tiny):
    y, p = forecasts(COMPILED_FROM // 2, 2, ties=False)
    p[1000, :] = tiny, 1 - tiny
    y[1000] = 0
    moments = RuleSums([vx.log_score, vx.ranked_log], 2).update(vx.Forecasts(y, p)).moments
    with np.errstate(divide="ignore"):
        losses = -np.log(p[np.arange(len(y)), y])
    finite = losses[np.isfinite(losses)]
    assert moments.weight.high[0] == len(finite)
    assert moments.infinite.high.tolist() == [len(y) - len(finite)] * 2
    np.testing.assert_allclose(moments.total.high, finite.sum(), rtol=1e-12)


def test_the_table_of_statistics_is_the_only_one():
    """What the gradients know are statistics of the table, and all of its dense ones."""
    from verax.scores.gradients.statistics import DIRECTIONS, Values

    of_rows = {name for name, s in STATISTICS.items() if s.family not in ("list", "set", "grade")}
    assert set(DIRECTIONS) <= of_rows
    assert {name for name in of_rows if hasattr(Values, name)} == of_rows
    assert list(PLACE.values()) == list(range(len(PLACE)))


def test_a_formula_that_reads_what_it_does_not_name_is_told_which():
    @dataclass(frozen=True, repr=False)
    class Careless(Mine):
        needs = frozenset()

        def formula(self, stats):
            return stats.cdf_l2

    with pytest.raises(vx.errors.RuleError, match="cdf_l2 was not asked for"):
        Careless()([0], [[0.5, 0.5]])
