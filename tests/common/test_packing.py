"""Values as bytes: they come back equal, and anything else than what was written is refused."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from verax._version import __version__
from verax.common import packing
from verax.common.packing import dump, load
from verax.errors import InputError

LABELS = (
    st.text(),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, dt.UTC])).map(lambda moment: moment.replace(fold=0)),
    st.binary(),
    st.none(),
)
LEAVES = st.one_of(*LABELS, st.tuples(st.text(), st.integers()))
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(LEAVES, inner), max_leaves=8)
DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(),
    npst.unsigned_integer_dtypes(),
    npst.floating_dtypes(sizes=(16, 32, 64)),
    npst.datetime64_dtypes(endianness="<"),
    npst.unicode_string_dtypes(max_len=9),
    npst.byte_string_dtypes(max_len=9),
)
ARRAYS = npst.arrays(
    DTYPES, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=20), fill=st.nothing()
)


@settings(max_examples=20)
@given(st.dictionaries(st.text(), TREES))
def test_a_tree_of_values_comes_back_equal_and_of_the_same_types(values):
    found = load(dump("tree", values), "tree")
    assert found == values
    assert repr(found) == repr(values)


@pytest.mark.long
@given(ARRAYS)
def test_an_array_comes_back_bit_by_bit(array):
    found = load(dump("arrays", {"a": array}), "arrays")["a"]
    assert found.shape == array.shape
    assert found.dtype.kind == array.dtype.kind
    if array.dtype.kind == "U":
        assert found.tolist() == array.tolist()
    else:
        assert found.tobytes() == np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    found[...] = array  # it can be written to


SPECIAL = {
    "mostly zeros": np.r_[np.zeros(500), -0.0, np.nan, np.inf, 5e-324],
    "two-way": np.array([("é", 3), ("\ud800", -1)], [("first", "U2"), ("second", "i8")]),
    "texts of any length": np.array(["a", "", "long" * 9], np.dtypes.StringDType()),
    "every second": np.arange(40.0).reshape(2, 20)[:, ::2],
    "one": np.array(3),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_arrays(name):
    array, found = SPECIAL[name], load(dump("k", SPECIAL), "k")[name]
    assert found.shape == array.shape
    assert found.dtype.names == array.dtype.names
    assert np.array2string(found) == np.array2string(array)
    assert np.array_equal(np.signbit(found), np.signbit(array)) if array.dtype.kind == "f" else True


def test_scalars_of_numpy_keep_their_type():
    given_ = {"a": np.float32(0.1), "b": np.int8(3), "c": np.datetime64("2020-01-01"), "d": np.str_("x")}
    found = load(dump("k", given_), "k")
    assert found == given_
    assert [type(value) for value in found.values()] == [type(value) for value in given_.values()]
    assert math.isnan(load(dump("k", {"a": math.nan}), "k")["a"])


def test_zeros_take_no_room():
    assert len(dump("k", {"table": np.eye(1000)})) < 13_000
    assert len(dump("k", {"labels": np.array(["a", "b" * 1000] * 100)})) < 101_000 + 1000


@pytest.mark.parametrize(
    "value", [object(), np.array([{}]), {1, 2}, np.longdouble(1), np.array([None, "a"]), 1j, len]
)
def test_what_is_no_plain_value_is_refused(value):
    with pytest.raises(InputError, match="to be stored"):
        dump("k", {"a": value})


STORED = dump("k", {"a": np.arange(100), "b": ["texts", (1, 2.5)]})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "something else"),
        (b"PAR1", "something else"),
        (pickle.dumps({"a": 1}), "something else"),
        (STORED[:5], "complete"),
        (STORED[:30], "complete"),
        (STORED[:-1], "complete"),
        (STORED + b"\0", "complete"),
        (packing.MAGIC + struct.pack("<Q", 2) + STORED[16:], "newer"),
        (dump("other", {}), "'other'"),
        (dump("k", {}, version=2), f"the version is 2: verax {__version__} wrote them"),
        ("text", "bytes"),
    ],
)
def test_other_bytes_are_refused(data, says):
    with pytest.raises(InputError, match=says):
        load(data, "k")


def test_every_changed_byte_is_noticed():
    for place in range(len(STORED)):
        damaged = bytearray(STORED)
        damaged[place] ^= 0x41
        with pytest.raises(InputError):
            load(bytes(damaged), "k")


def sealed(values, body=b""):
    """Bytes with a valid checksum and any header."""
    header = json.dumps({"kind": "k", "version": 1, "values": values}).encode()
    lengths = (1, len(header), len(body))
    checksum = packing._checksum(*lengths, header, body)
    return struct.pack("<8s3Q16s", packing.MAGIC, *lengths, checksum) + header + body


@pytest.mark.parametrize(
    "value",
    [
        {"$": "array", "dtype": "|O", "shape": [1], "n": 8},
        {"$": "array", "dtype": "<f8", "shape": [2], "n": 8},
        {"$": "array", "dtype": "<f8", "shape": [1], "n": 800},
        {"$": "array", "dtype": "<f8", "shape": [1], "n": -8},
        {"$": "array", "dtype": "<f8", "shape": [10**12], "filled": 0, "n": 0},
        {"$": "array", "dtype": "<f8", "shape": [-1], "n": 8},
        {"$": "array", "dtype": "<f8", "shape": [20], "filled": 5, "n": 8},
        {"$": "texts", "shape": [1], "lengths": [8], "fixed": True, "n": 8},
        {"$": "eval", "of": "1"},
        {"$": "__init__"},
        {"$": "float", "of": "0"},
        {"$": "mapping", "of": [[[], 1]]},
    ],
)
def test_bytes_with_a_checksum_that_verax_would_not_write_are_refused(value):
    with pytest.raises(InputError, match="must be bytes that verax wrote"):
        load(sealed({"a": value}, b"\xff" * 8), "k")
    with pytest.raises(InputError):
        load(sealed([1]), "k")
