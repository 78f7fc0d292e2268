"""What is translated means what it means in Python."""

import math
from fractions import Fraction

import numpy as np
import pytest

from verax.kernels.functions import bits, compiled, from_bits, higher, lower, select, text_of
from verax.kernels.ledger import kernels
from verax.kernels.texts import compile_text

pytestmark = pytest.mark.skipif(kernels() is None, reason="needs numba")

ALL_OF_IT = """\
def kernel(x, n, columns, codes, given, doubt, out, marks) -> int:
    table = np.zeros((2, 3))
    kinds = np.zeros(4, np.uint64)
    scratch = np.empty(5)
    total = 0.0
    high = 0.0
    found = 0
    for start in range(0, n, 4):
        stop = min(4, n - start)
        for i in range(stop):
            v = x[start + i, 1]
            half = columns[1][start + i] / 2.0
            code = codes[start + i]
            kinds[i] = U(code) * U(3) + U(1)
            root = math.sqrt(abs(v)) - -half
            scratch[i] = select(v > half, fma(v, half, 1.0), root)
            total = plus(total, scratch[i])
            table[code, i % 3] += scratch[i]
            high = select(v >= high, v, high)
        for i in range(1, stop):
            if (kinds[i] > kinds[i - 1]) & (scratch[i] != 0.5) or not doubt and i == 2:
                found += 1
                marks[start + i] = x[start + i, 0] < math.inf
    for row in range(2):
        for column in range(3):
            out[row, column] = table[row, column]
    out[0, 3] = total - high
    out[1, 3] = given + np.float64(n - found) + (U(n) << U(3) >> U(1) | U(1)) + np.int64(7.9)
    found &= 15
    return found
"""


def in_python(source):
    """The same text, run by Python."""
    scope = {
        "np": np,
        "math": math,
        "select": lambda condition, a, b: a if condition else b,
        "plus": lambda a, b: a + b,
        "fma": lambda a, b, c: a * b + c,
        "bits": lambda a: np.float64(a).view(np.uint64),
        "from_bits": lambda a: a.view(np.float64),
        "U": np.uint64,
    }
    exec(source, scope)
    return scope["kernel"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", ["rows", "columns", "strided"])
@pytest.mark.parametrize("doubt", [False, True])
def test_the_same_as_in_python(dtype, layout, doubt):
    rng = np.random.default_rng(0)
    n = 11
    x = rng.normal(size=(n, 3)).astype(dtype)
    x = {"rows": x, "columns": np.asfortranarray(x), "strided": np.repeat(x, 2, axis=0)[::2]}[layout]
    x[5, 0], x[6, 0] = np.inf, np.nan
    columns = tuple(rng.normal(size=(2, n)))
    codes = rng.integers(0, 2, n).astype(np.int32)
    results = []
    for kernel in (compile_text(ALL_OF_IT, __file__), in_python(ALL_OF_IT)):
        out, marks = np.zeros((2, 4)), np.zeros(n, np.bool_)
        found = kernel(x, n, columns, codes, 2, doubt, out, marks)
        results.append((out, marks, found))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-14)
    assert results[0][1].tolist() == results[1][1].tolist()
    assert results[0][2] == results[1][2] > 0
    assert 0 < results[0][1].sum() < n


@pytest.mark.parametrize(
    "line", ["x = x ** 2.0", "x = max(y for y in (x, 1.0))", "x = math.sin(x)", "assert x > 0.0"]
)
def test_what_is_not_part_of_the_language_is_refused(line):
    from numba.core.errors import NumbaError

    kernel = compile_text(f"def kernel(x) -> float:\n    {line}\n    return x", __file__)
    with pytest.raises((SyntaxError, KeyError, NumbaError)):
        kernel(1.0)


def test_numbers_survive_what_is_done_to_their_bits():
    text = "def kernel(x) -> tuple[float, bool]:\n    y = from_bits(bits(x) & U(9223372036854775807))\n"
    kernel = compile_text(text + "    same = bits(y) == bits(abs(x))\n    return y, same", __file__)
    assert kernel(-2.5) == (2.5, True)
    assert kernel(-0.0) == (0.0, True)
    assert kernel(-math.inf) == (math.inf, True)


def test_signs_of_integers_and_missing_numbers():
    text = """\
def kernel(x, codes) -> tuple[int, bool, bool, float, bool]:
    top = np.int64(bits(x) >> U(60))
    larger = bits(x) > 1
    other = x != x
    code = np.float64(codes[0])
    below = codes[0] < 0
    return top, larger, other, code, below
"""
    kernel = compile_text(text, __file__)
    codes = np.array([-3], np.int32)
    # The first bits of a negative number are 1100: an unsigned integer, which is large.
    assert kernel(-2.5, codes) == (12, True, False, -3.0, True)
    assert kernel(math.nan, codes)[2]


LIMIT, MASK, WITH_REST = 3, np.uint64(2**64 - 2), True


def between(values, a, b) -> tuple[float, int]:
    """The sum of the values from a to b, and how many of them are positive."""
    total, n = 0.0, 0
    for i in range(a, b):
        if values[i] <= 0.0:
            continue
        total += values[i]
        n += 1
    return total, n


def written(x, offsets, columns, marks, out, whole) -> tuple[int, float, int]:
    """All that functions may do beside what printed texts do."""
    n, k = x.shape
    room = np.zeros((2, 4))
    seen, last = 0, k - 1
    for i in range(len(offsets) - 1):
        a, b = offsets[i], offsets[i + 1]
        if not 0 <= a <= b or b > n:
            return i, -1.0, seen
        own = x[i]
        part, n_positive = between(own, 0, k)
        marks[i] = part > 3.0 or own[0] < -0.5
        seen += marks[i]
        j = last
        while j > 0 and own[j] < own[j - 1]:
            j -= 1
            if j == LIMIT - 2:
                break
        for c in range(len(columns)):
            out[i, c] += columns[c][i] if c < j else -1.0 if i & 1 else 0.25
        row = out[i, 0:2]
        for at in range(last, -1, -2):
            row[at & 1] += own[at] * (1.0 if at < j else 0.5)
        if n_positive == k:
            room[0, i & 3] = lower(own[0], own[1])
        elif n_positive:
            room[1, i & 3] = higher(own[0], own[1])
        else:
            room[0, i & 3], room[1, i & 3] = math.log(1.0 + i), np.rint(2.5 * i)
        if WITH_REST:
            whole[i] = int(from_bits(bits(own[0]) & MASK) * 100.0) ^ abs(i - 2) + ~i
    total = 0.0
    for i in range(4):
        total += room[0, i] - room[1, i] * max(i, 1, 2) + float(select(i > 1, True, False))
    return len(offsets), total, seen


@pytest.mark.parametrize("last", [40, 41], ids=["to the end", "early"])
def test_functions_mean_what_they_mean_in_python(last):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 5))
    x[::3] = abs(x[::3])
    x[1::7] = -abs(x[1::7])
    offsets = np.array([*range(40), last])
    results = []
    for kernel in (compiled(written), written):
        marks, out, whole = np.zeros(40, np.bool_), np.zeros((40, 3)), np.zeros(40, np.int32)
        found = kernel(x, offsets, (x[:, 0].copy(), np.arange(40), x[:, 1]), marks, out, whole)
        results.append((out, marks, whole, found))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-14)
    assert (results[0][1] == results[1][1]).all()
    assert (results[0][2] == results[1][2]).all()
    assert results[0][3] == pytest.approx(results[1][3], rel=1e-14)
    assert results[0][3][0] == (41 if last == 40 else 39)
    assert 0 < results[0][3][2] < 40


def test_numbers_are_written_out_so_that_a_changed_one_is_a_changed_kernel():
    text = text_of(written)
    assert text.startswith("def kernel(x, offsets, columns, marks, out, whole) -> tuple[int, float, int]:")
    assert "def between(values, a, b)" in text
    for name in ("LIMIT", "MASK", "WITH_REST"):
        assert name not in text


def test_a_float_is_no_integer():
    from numba.core.errors import NumbaError

    def changing(x) -> int:
        n = 0
        for i in range(3):
            n = x * i
        return n

    with pytest.raises((SyntaxError, NumbaError)):
        compiled(changing)(0.5)


def test_terms_are_added_side_by_side_with_what_is_rounded_off():
    text = """\
def kernel(sums, terms):
    for i in range(len(terms)):
        add_several(sums[1, 0], sums[1, 3], terms[i, 0], terms[i, 1], terms[i, 2])
"""
    terms = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 1e9, 1e-9]
    sums = np.zeros((3, 7))
    compile_text(text, __file__)(sums, terms)
    for lane in range(3):
        exact = sum(map(Fraction, terms[:, lane]))
        # Without the second part it would be off by a unit in the last place or more.
        assert abs(Fraction(sums[1, lane]) + Fraction(sums[1, 3 + lane]) - exact) < abs(exact) / 2**100
    assert not sums[[0, 2]].any()
    assert sums[1, 6] == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_squares_are_turned(dtype, order):
    text = """\
def kernel(x, first, second, out):
    held = np.zeros((6, 5))
    row = x[first + 2]
    turn_square(x[first, second], x[first + 1, second], row[second], x[first + 3, second], held[1, 1])
    for i in range(6):
        for j in range(5):
            out[i, j] = held[i, j]
"""
    x = np.asarray(np.arange(63).reshape(9, 7), dtype, order=order)
    out = np.ones((6, 5))
    compile_text(text, __file__)(x, 2, 3, out)
    expected = np.zeros((6, 5))
    expected[1:5, 1:] = x[2:6, 3:].T
    assert out.tolist() == expected.tolist()
