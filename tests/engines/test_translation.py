"""What is translated means what it means in Python."""

import math

import numpy as np
import pytest

from verax.kernels.loading import kernels
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
