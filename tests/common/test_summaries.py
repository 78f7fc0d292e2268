"""Summaries whose fields say how they merge: what is generated, and what reading refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax as vx
from verax.common.packing import dump
from verax.common.specs import Array, Each, Number, Truth, Valued, Whole
from verax.common.summaries import KINDS, Summary, from_bytes, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.sums import Sum, Sums


class Inner(Summary):
    n: int = merges(Whole())


class Example(Summary, kind="example of the tests"):
    n: int = merges(Whole())
    least: float = merges(Number("least"))
    all_whole: bool = merges(Truth("all"))
    sums: Sum = merges(Sums("k", 2))
    most: Any = merges(Array("f8", "k", how="most"))
    inner: Any = merges(Each(Valued(Inner), "union"))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Any = merges(ByLabel("k"), default=None)


@pytest.fixture(autouse=True, scope="module")
def known():
    KINDS["example of the tests"] = Example
    yield
    del KINDS["example of the tests"]


def example(n=1, labels=("a", "b"), k=3):
    sums = np.arange(2.0 * k).reshape(k, 2) + n
    groups = np.full((len(labels), k), float(n))
    inner = {"x": Inner(n), f"only {n}": Inner(n)}
    return Example(
        n, n / 2, n % 2 == 1, Sum.of(sums), np.arange(float(k)) * n, inner, np.array(labels), groups
    )


def test_every_field_merges_as_it_says():
    found = example(1).merge(example(2, ("b", "c")))
    assert (found.n, found.least, found.all_whole) == (3, 0.5, False)
    np.testing.assert_array_equal(found.sums.high, 2 * np.arange(6.0).reshape(3, 2) + 3)
    np.testing.assert_array_equal(found.most, [0, 2, 4])
    assert {name: own.n for name, own in found.inner.items()} == {"x": 3, "only 1": 1, "only 2": 2}
    assert found.labels.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found.groups[:, 0], [1, 3, 2])


def test_merging_is_compiled_to_plain_code_once():
    example().merge(example())
    assert Example.merge.__code__.co_filename.startswith("<merge of ")
    assert "merge" not in vars(Inner) or Inner.merge.__code__ is not Example.merge.__code__


def test_bytes_give_the_same_summary():
    summary = example(2)
    found = from_bytes(summary.to_bytes())
    assert type(found) is Example
    assert found.to_bytes() == summary.to_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": "many"}, "`n` is 'many', and should be a whole number"),
        ({"n": -1}, "`n` is -1"),
        ({"n": 10**400}, "`n` is"),
        ({"least": float("nan")}, "`least` is nan"),
        ({"all_whole": 1}, "`all_whole` is 1, and should be true or false"),
        ({"sums": np.zeros((2, 4, 3))}, "`sums` has shape"),
        ({"most": np.zeros(7)}, "`most` has shape"),
        ({"most": np.zeros(3, "f4")}, "`most` is an array of float32"),
        ({"most": np.array([0.0, np.nan, 1.0])}, "`most` has invalid numbers"),
        ({"inner": {"x": {"n": 0.5}}}, "`inner.x.n` is 0.5"),
        ({"labels": None}, "`groups` does not belong"),
        ({"labels": np.array(["b", "a"])}, "`labels` has names that repeat or are not in order"),
        ({"more": 1}, "`more` is not known"),
    ],
)
def test_other_values_are_refused_by_name(change, said):
    values = {**example().to_values(), **change}
    with pytest.raises(vx.InputError, match=re.escape(said)):
        Example.from_bytes(dump("example of the tests", values))


def test_a_missing_field_is_named():
    values = example().to_values()
    del values["sums"]
    with pytest.raises(vx.InputError, match="their part `sums` is missing"):
        Example.from_bytes(dump("example of the tests", values))


def test_known_sizes_are_required():
    with pytest.raises(vx.InputError, match="`sums` has shape"):
        Example.from_bytes(example().to_bytes(), {"k": 4})


@pytest.mark.parametrize("other", [example(k=4), Inner(1)])
def test_what_does_not_go_together_is_not_merged(other):
    with pytest.raises(vx.VeraxError, match="cannot be merged"):
        example().merge(other)


def test_merging_files_knows_every_kind():
    """All classes with a kind are imported before files are merged without their recipes."""
    source = Path(vx.__file__).parent
    pattern = re.compile(r'Summary,\s+kind="([^"]+)"|@register\("([^"]+)"\)')
    kinds = {a or b for path in source.rglob("*.py") for a, b in pattern.findall(path.read_text())}
    code = "from verax.scans.shards import know_summaries as k; k()\n"
    code += "from verax.common.summaries import KINDS; print('\\n'.join(KINDS))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # The module that defines summaries has an example in its documentation.
    assert kinds - {"longest list"} <= set(run.stdout.splitlines())
