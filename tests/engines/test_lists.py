"""Top lists on both paths: compiled and not, the same numbers; and nothing depends on the compiler."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

import verax as vx
from cases import COMPILED_FROM
from verax.engines import lists as engine
from verax.engines.scan import scan_rows
from verax.engines.stats import compute
from verax.inputs.lists import ragged
from verax.inputs.lists.ragged import Ragged, frozen
from verax.kernels.statistics import PLACE
from verax.rules import Holds, Properties

pytest.importorskip("numba")

from verax.kernels import lists as list_kernels

SUPPLIED = (
    *("p_true", "rest_sq", "hit", "answered", "right", "invalid", "listed", "length", "unaccounted"),
    *("above", "tied"),
)


def random_lists(n_entries=COMPILED_FROM, m=60, longest=40, seed=0):
    """Unsorted ragged lists with ties, zeros, full sums, uniform lists and invalid ones."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, longest + 1, 2 * n_entries // longest + 100)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = len(lengths)
    row = np.repeat(np.arange(n), lengths)
    # Distinct classes: an arithmetic walk with a stride prime to m.
    start, stride = rng.integers(0, m, n), rng.choice([1, 7, 11, 13], n)
    classes = (start[row] + stride[row] * (np.arange(offsets[-1]) - offsets[row])) % m
    t = rng.integers(0, 6, offsets[-1]) / 5 + rng.random(offsets[-1]) * rng.integers(0, 2, n)[row]
    total = np.bincount(row, t, n)
    scale = np.where(rng.random(n) < 0.3, 1.0, rng.random(n)) / np.maximum(total, 1e-9)
    t = np.minimum(t * scale[row], 1.0)
    uniform = rng.random(n) < 0.05
    t[uniform[row]] = 1 / m
    return classes, t, offsets, rng.integers(0, m, n)


@pytest.mark.parametrize("m", [60, 128_256, 2**40])
def test_both_paths_give_the_same_lists_and_statistics(m, change):
    classes, t, offsets, y = random_lists()
    seen = {}

    class Keep:
        def visit(self, stats, batch, chunk):
            assert stats.buffer is not None
            seen[batch.start] = {name: getattr(stats, name).copy() for name in SUPPLIED}

    compiled = vx.TopLists.from_arrays(classes, t, n_classes=m, offsets=offsets)
    assert not compiled.valid.all()
    assert compiled.valid.any()
    scan_rows(compiled.with_outcomes(y), SUPPLIED, Keep)
    change(kernels=False)
    plain = vx.TopLists.from_arrays(classes, t, n_classes=m, offsets=offsets)
    assert (plain.classes == compiled.classes).all()
    assert (plain.confidences == compiled.confidences).all()
    np.testing.assert_allclose(plain.unaccounted, compiled.unaccounted, rtol=1e-13)
    assert (plain.valid == compiled.valid).all()
    assert (plain.largest_valid().lengths == compiled.largest_valid().lengths).all()
    rows = plain.with_outcomes(y)
    for start, values in seen.items():
        expected = compute(rows.batch(start, start + len(values["hit"])), SUPPLIED)
        for name, value in values.items():
            np.testing.assert_allclose(value, getattr(expected, name), rtol=2e-13, err_msg=name)
    assert sum(len(values["hit"]) for values in seen.values()) == len(y)


def test_scores_agree_and_the_default_call_is_fused(change, monkeypatch):
    classes, t, offsets, y = random_lists()
    lists = vx.TopLists.from_arrays(classes, t, n_classes=60, offsets=offsets)
    w = np.random.default_rng(1).exponential(size=len(y))
    rules = ["padded(brier)", "padded(spherical)", "padded(pbs)"]
    fused = {}
    for weights in (None, w):
        with monkeypatch.context() as patch:
            patch.setattr(
                "verax.engines.tally.Moments.of", lambda *_: pytest.fail("the losses were not fused")
            )
            fused[weights is None] = vx.evaluate(y, lists, weights=weights, rules=rules)
    samples = vx.padded(vx.log_score).samples(y, lists)
    change(kernels=False)
    for weights in (None, w):
        plain = vx.evaluate(y, lists, weights=weights, rules=rules)
        for name in (*rules, *plain.metrics):
            assert fused[weights is None][name] == pytest.approx(plain[name], rel=1e-12)
    np.testing.assert_allclose(samples, vx.padded(vx.log_score).samples(y, lists), rtol=1e-12)


def test_threads_do_not_change_the_numbers(change):
    classes, t, offsets, y = random_lists()
    results = set()
    for n_threads in (1, 2, 5):
        change(cores=n_threads)
        lists = vx.TopLists.from_arrays(classes, t, n_classes=60, offsets=offsets)
        results.add((vx.padded(vx.brier)(y, lists), lists.n_invalid, float(lists.unaccounted.sum())))
    assert len(results) == 1


def test_rules_one_after_the_other_read_the_lists_once(monkeypatch):
    classes, t, offsets, y = random_lists()
    lists = vx.TopLists.from_arrays(classes, t, n_classes=60, offsets=offsets)
    rules = [vx.padded(rule) for rule in (vx.brier, vx.log_score, vx.pbs)] + [vx.spherical, vx.zero_one]
    read = []
    own = engine._ListReduction._read
    monkeypatch.setattr(engine._ListReduction, "_read", lambda *args: (read.append(1), own(*args))[1])

    def fresh():
        return vx.TopLists.from_arrays(classes, t, n_classes=60, offsets=offsets)

    w = np.random.default_rng(1).exponential(size=len(y))
    assert [rule(y, lists) for rule in rules] == [rule(y, fresh()) for rule in rules]
    read.clear()
    assert rules[2](y, lists, weights=w) == rules[2](y, fresh(), weights=w)
    n_blocks = len(read)
    np.testing.assert_array_equal(rules[1].samples(y, lists), rules[1].samples(y, fresh()))
    assert len(read) == 2 * n_blocks
    # The caller's outcomes may change between calls; what is kept does not travel.
    y[::3] = classes[offsets[:-1][::3] % len(classes)]
    expected = rules[2](y, fresh())
    assert rules[2](y, lists) == expected
    assert rules[2](y[:100], lists[:100]) == rules[2](y[:100], fresh()[:100])
    copied = pickle.loads(pickle.dumps(lists))
    assert copied._kept is None
    assert rules[2](y, copied) == expected


def test_long_lists_are_sorted_and_searched_for_repeats(change):
    rng = np.random.default_rng(2)
    n, k = COMPILED_FROM // 64, 64
    classes = np.argsort(rng.random((n, 200)), axis=1)[:, :k]
    t = rng.dirichlet(np.ones(k + 5), n)[:, :k].round(3) * 0.9
    order = np.argsort(-t, axis=1, kind="stable")
    lists = vx.TopLists.from_arrays(classes, t, n_classes=200)
    assert (lists.confidences.reshape(n, k) == np.take_along_axis(t, order, axis=1)).all()
    assert (lists.classes.reshape(n, k) == np.take_along_axis(classes, order, axis=1)).all()
    classes[77, 50] = classes[77, 3]
    for _ in range(2):
        with pytest.raises(vx.InputError, match=f"row 77 lists again {classes[77, 3]}"):
            vx.TopLists.from_arrays(classes, t, n_classes=200)
        change(kernels=False)


def test_short_lists_with_repeats_are_named_on_both_paths(change):
    classes, t, offsets, _ = random_lists()
    row = int(np.flatnonzero(np.diff(offsets) > 5)[3])
    classes[offsets[row] + 4] = classes[offsets[row]]
    for _ in range(2):
        with pytest.raises(vx.InputError, match=f"row {row} lists again {classes[offsets[row]]}"):
            vx.TopLists.from_arrays(classes, t, n_classes=60, offsets=offsets)
        change(kernels=False)


@dataclass(frozen=True, repr=False)
class Mine(vx.rules.Rule):
    """A symmetric rule from outside: the squared miss, and a constant where the mode is wrong."""

    name = "mine"
    summary = "squared miss"
    reference = "doi:none"
    needs = frozenset({"rest_sq", "hit"})
    properties = Properties(*[Holds.ALWAYS] * 4, *[Holds.UNKNOWN] * 3)

    def formula(self, stats):
        return (1 - stats.p_true) ** 2 + stats.rest_sq + (1 - stats.hit) / stats.n_classes

    def bounds(self, n_classes):
        return 0.0, 3.0


def test_a_rule_from_outside_reads_lists_on_every_path():
    classes, t, offsets, y = random_lists()
    lists = vx.TopLists.from_arrays(classes, t, n_classes=60, offsets=offsets)
    losses = Mine().samples(y, lists)
    assert Mine()(y, lists) == pytest.approx(losses.mean(), rel=1e-12)
    dense = lists[:300].largest_valid().padded()
    fines = (~lists.valid).astype(float)
    np.testing.assert_allclose(losses[:300], Mine().samples(y[:300], dense) + fines[:300], rtol=1e-12)
    fined = vx.padded(Mine(), 0.5).samples(y, lists)
    np.testing.assert_allclose(fined, losses - 0.5 * fines, rtol=1e-12)


def test_everything_works_without_numba():
    code = """
import sys
sys.modules["numba"] = None
import numpy as np, verax as vx
rng = np.random.default_rng(0)
classes = np.argsort(rng.random((40_000, 30)), axis=1)[:, :14]
t = rng.dirichlet(np.ones(15), 40_000)[:, :14]
lists = vx.TopLists.from_arrays(classes, t, n_classes=128_256)
card = vx.evaluate(rng.integers(0, 40, 40_000), lists)
print(repr(card["brier"]), repr(card["log_score"]), card.n_invalid, repr(card.coverage))
"""
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    outputs = [
        subprocess.run(
            [sys.executable, "-c", text],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "", **environment},
        ).stdout
        for text in (code, code.replace('sys.modules["numba"] = None', ""))
    ]
    first, second = ([float(number) for number in output.split()] for output in outputs)
    assert COMPILED_FROM <= 40_000 * 14
    assert first == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize("kind", ["distinct", "tied", "nearly tied", "sorted", "long"])
def test_lists_of_one_length_come_into_order(kind):
    rng = np.random.default_rng(3)
    k = 40 if kind == "long" else 21
    n = COMPILED_FROM // k + 1
    t = rng.random((n, k)) / k
    if kind == "tied":
        t = np.round(t * 100) / 100 / 2
    if kind == "nearly tied":
        t = 0.01 + rng.integers(0, 40, (n, k)) * 2.0**-60
    if kind == "sorted":
        t = -np.sort(-t, axis=1)
    classes = rng.permuted(np.tile(np.arange(60), (n, 1)), axis=1)[:, :k]
    lists = vx.TopLists.from_arrays(classes, t, n_classes=60)
    order = np.argsort(-t, axis=1, kind="stable")
    assert (lists.confidences == np.take_along_axis(t, order, axis=1).reshape(-1)).all()
    assert (lists.classes == np.take_along_axis(classes, order, axis=1).reshape(-1)).all()


@pytest.mark.parametrize("fault", [("classes", 60), ("classes", -1), ("classes", 0), ("confidences", np.nan)])
@pytest.mark.parametrize("k", [16, 40])
def test_faults_of_many_lists_are_named(fault, k):
    n = COMPILED_FROM // 16
    given = {"classes": np.tile(np.arange(k), (n, 1)), "confidences": np.full((n, k), 0.8 / k)}
    argument, value = fault
    given[argument][3, 2] = value
    with pytest.raises(vx.InputError) as caught:
        vx.TopLists.from_arrays(**given, n_classes=60)
    assert caught.value.argument == argument
    assert list(caught.value.rows) == [3]


def test_memory_is_that_of_the_lists_whatever_the_number_of_classes():
    rng = np.random.default_rng(0)
    n, k = 60_000, 20
    classes = np.sort(rng.integers(0, 128_256 // k, (n, k)), axis=1) + np.arange(k) * (128_256 // k)
    t = np.sort(rng.dirichlet(np.ones(k + 1), n)[:, :k], axis=1)[:, ::-1].copy()
    y = rng.integers(0, 128_256, n)
    vx.evaluate(y, vx.TopLists.from_arrays(classes, t, n_classes=128_256))
    tracemalloc.start()
    vx.evaluate(y, vx.TopLists.from_arrays(classes, t, n_classes=128_256))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * (classes.nbytes + t.nbytes)


def test_lists_in_order_are_copied_too():
    classes, t = np.arange(20).reshape(2, 10), np.full((2, 10), 0.05)
    lists = vx.TopLists.from_arrays(classes, t, n_classes=30)
    assert not np.shares_memory(lists.confidences, t)
    assert not np.shares_memory(lists.classes, classes)
    assert not lists.confidences.flags.writeable


def test_no_kernel_leaves_its_arrays_whatever_they_hold():
    """Offsets, lengths and outcomes that make no sense, between walls that must not be touched."""
    rng = np.random.default_rng(0)
    wall = -7.0
    for _ in range(200):
        n, size = int(rng.integers(1, 6)), int(rng.integers(0, 80))
        offsets = rng.integers(-(2**40), 2**40, n + 1) if rng.random() < 0.5 else rng.integers(0, 90, n + 1)
        classes, t = rng.integers(0, 9, size), rng.random(size)
        held = np.full((3, size + 8), wall)
        codes = np.full(size + 8, int(wall))
        # As callers have them: another type would be compiled anew.
        fixed = frozen(classes), frozen(t)
        list_kernels.order(*fixed, frozen(offsets), codes[4 : 4 + size], held[0, 4 : 4 + size])
        out = np.full((4, n + 8), wall)
        kept = np.full(n + 8, int(wall))
        inner = slice(4, 4 + n)
        surveyed = out[0, inner], out[1, inner], kept[inner], out[2, inner]
        list_kernels.survey(fixed[1], frozen(offsets), 9.0, 0.0, *surveyed)
        twice, which = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        list_kernels.repeated(fixed[0], frozen(offsets), twice, which, list_kernels.no_slots())
        stats = np.full((32, n + 8), wall)  # more rows than there are statistics
        shape = (int(rng.integers(0, 4)), int(rng.integers(1, 33)))
        keys = rng.random(shape)
        start = int(rng.integers(-(2**40), 2**40)) if rng.random() < 0.5 else int(rng.integers(0, 90))
        list_kernels.pack(fixed[1], start, keys)
        list_kernels.unpack(keys, *fixed, start, codes[4 : 4 + size], held[0, 4 : 4 + size])
        tables = np.zeros((3, 6, 9))
        inside = tables[:, 1:5]
        given = *fixed, frozen(offsets), out[0, inner], frozen(np.arange(n)), np.ones(1)
        list_kernels.count_statements(*given, *inside, np.zeros((4, 4)))
        assert not tables[:, [0, 5]].any()
        wild = rng.integers(-(2**40), 2**40, n)
        list_kernels.row_stats(ranks=True)(
            *(*fixed, frozen(offsets), out[1, inner], wild, out[2, inner], wild, 9.0, 0.0, stats[:, inner])
        )
        for array in (held, codes[None], out, kept[None], stats):
            assert (array[:, :4] == wall).all()
            assert (array[:, -4:] == wall).all()


def test_the_compiled_constants_are_those_of_the_plain_path():
    assert set(SUPPLIED) <= set(PLACE)
    empty = Ragged(np.zeros(0, np.int64), np.zeros(0), np.zeros(4, np.int64))
    survey = empty.survey(5)
    assert survey.unaccounted.tolist() == [1.0, 1.0, 1.0]
    assert survey.kept.tolist() == [0, 0, 0]
    assert ragged.offsets_of(np.array([2, 0, 1])).tolist() == [0, 2, 2, 3]
