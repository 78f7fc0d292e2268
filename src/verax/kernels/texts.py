"""The text of compiled loops: lines of straight arithmetic, and how a text becomes a kernel.

Kernels are printed for a number of classes and a set of rules, as one function that calls no other. numba
keeps them on disk under a name that carries the digest of their text.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

Kernel = Callable[..., Any]


def pattern(x: float) -> int:
    """The 64 bits of a float, as an integer."""
    return int(np.float64(x).view(np.uint64))


_MANTISSA = 2**52 - 1
_ONE, _INFINITY, _SMALLEST_NORMAL = pattern(1.0), pattern(math.inf), pattern(2.0**-1022)
_ROOT_OF_HALF = pattern(math.sqrt(0.5))
# 2^52 + n has the integer n in its last bits: a conversion that every processor can do on several numbers.
_INTEGERS, _INTEGERS_FROM = pattern(2.0**52), 2.0**52
_ROUNDING = 1.5 * 2.0**52

# ln 2 in two parts; multiples of the first by integers of 11 bits are exact.
_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# log(1 + f) = 2s + s * P(s^2), s = f / (2 + f): coefficients of P that minimise the largest error on the
# interval around f = 0 from the root of 1/2 to that of 2 (as in fdlibm).
LOG = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
# Below this exp gives 0, above the other it overflows.
EXP_FROM, EXP_TO = -708.0, 709.0


class Lines:
    """The body of a loop over rows: every line gives a name to the result of one expression."""

    def __init__(self, indent: int) -> None:
        self.text: list[str] = []
        self.indent = " " * indent
        self._conditions: list[str] = []
        self._n = 0

    def add(self, line: str) -> None:
        """A line as it is."""
        self.text.append(self.indent + line)

    def let(self, expression: str, name: str | None = None) -> str:
        """The name of the value of an expression."""
        if name is None:
            self._n += 1
            name = f"x{self._n}"
        self.add(f"{name} = {expression}")
        return name

    def require(self, condition: str) -> None:
        """Note that the results mean nothing where the condition does not hold."""
        self._conditions.append(self.let(condition))

    def all_hold(self, name: str) -> str:
        """Whether all conditions so far hold."""
        return self.let(" & ".join(self._conditions) or "True", name)

    def take_conditions(self) -> list[str]:
        """The conditions so far, which are no longer noted here."""
        taken, self._conditions = self._conditions, []
        return taken

    def give_conditions(self, conditions: Sequence[str]) -> None:
        """Note conditions that were taken."""
        self._conditions.extend(conditions)

    # ---- several numbers -------------------------------------------------------------------

    def total(self, terms: Sequence[str]) -> str:
        """Their sum, in order."""
        return self.running(terms)[-1]

    def running(self, terms: Sequence[str]) -> list[str]:
        """Their running sums, in order."""
        sums = [terms[0]]
        for term in terms[1:]:
            sums.append(self.let(f"{sums[-1]} + {term}"))
        return sums

    def split(self, before: Sequence[str], after: Sequence[str]) -> list[str]:
        """For each place among one more: the sum of `before` that precedes it and of `after` that follows."""
        up, down = self.running(before), self.running(after[::-1])[::-1]
        inner = [self.let(f"{a} + {b}") for a, b in zip(up, down[1:], strict=False)]
        return [down[0], *inner, up[-1]]

    def smallest(self, terms: Sequence[str]) -> str:
        """The smallest of them, none of which is missing."""
        least = terms[0]
        for term in terms[1:]:
            least = self.let(f"lower({least}, {term})")
        return least

    def largest(self, terms: Sequence[str]) -> str:
        """The largest of them."""
        most = terms[0]
        for term in terms[1:]:
            most = self.let(f"select({term} > {most}, {term}, {most})")
        return most

    def choose(self, conditions: Sequence[str], values: Sequence[str]) -> str:
        """The value of the first condition that holds; the last value if none of the others does."""
        chosen = values[-1]
        for condition, value in zip(reversed(conditions[:-1]), reversed(values[:-1]), strict=True):
            chosen = self.let(f"select({condition}, {value}, {chosen})")
        return chosen

    def quotient(self, a: str, b: str, inverse: str) -> str:
        """The value of a / b, with 1 / b known: as exact as a division, which takes longer."""
        q = self.let(f"{a} * {inverse}")
        return self.let(f"fma(fma(-{q}, {b}, {a}), {inverse}, {q})")

    # ---- functions -------------------------------------------------------------------------

    def require_normal(self, x: str, least: float = 2.0**-1022) -> None:
        """Require a finite number that is no smaller than `least`: one that `log` knows."""
        self._conditions.append(self.is_normal(x, least))

    def is_normal(self, x: str, least: float = 2.0**-1022) -> str:
        """Whether it is such a number."""
        low = pattern(least)
        return self.let(f"bits({x}) - U({low}) < U({_INFINITY - low})")

    def log(self, x: str) -> str:
        """The natural logarithm of a positive normal number, within two units in the last place."""
        return self._log(self.let(f"bits({x})"))

    def _log(self, pattern_of_x: str, exponent: str | None = None, error: str | None = None) -> str:
        """The logarithm of (x + error) * 2^exponent, for an error far smaller than x."""
        n = self.let(f"({pattern_of_x} + U({(1024 << 52) - _ROOT_OF_HALF})) >> U(52)")
        f = self.let(f"from_bits({pattern_of_x} - (({n} - U(1024)) << U(52))) - 1.0")
        k = self.let(f"from_bits({n} | U({_INTEGERS})) - {_INTEGERS_FROM + 1024!r}")
        if exponent is not None:
            k = self.let(f"{k} + {exponent}")
        if error is not None:
            f = self.let(f"fma({error}, from_bits((U(2047) - {n}) << U(52)), {f})")
        s = self.let(f"{f} / (2.0 + {f})")
        z = self.let(f"{s} * {s}")
        r = repr(LOG[-1])
        for c in LOG[-2::-1]:
            r = self.let(f"fma({r}, {z}, {c!r})")
        series = self.let(f"fma({s}, {z} * {r}, {s} + {s})")
        return self.let(f"fma({k}, {math.log(2)!r}, {series})")

    def log_of_product(self, factors: Sequence[str], least: float = 2.0**-1022) -> str:
        """The sum of the logarithms of some numbers, as the one logarithm of their product.

        Exponents are added up apart, so that the product neither overflows nor underflows, and the rounding
        errors of its mantissa come along, so that it stays exact where the factors are nearly 1. Requires
        that all factors are normal.
        """
        mantissas, exponents = [], []
        for factor in factors:
            self.require_normal(factor, least)
            b = self.let(f"bits({factor})")
            mantissas.append(self.let(f"from_bits(({b} & U({_MANTISSA})) | U({_ONE}))"))
            exponents.append(self.let(f"{b} >> U(52)"))
        product, error = mantissas[0], None
        for m in mantissas[1:]:
            high = self.let(f"{product} * {m}")
            low = self.let(f"fma({product}, {m}, -{high})")
            error = low if error is None else self.let(f"fma({error}, {m}, {low})")
            product = high
        n = self.total(exponents)
        shift = _INTEGERS_FROM + 1023 * len(factors)
        exponent = self.let(f"from_bits({n} | U({_INTEGERS})) - {shift!r}")
        return self._log(self.let(f"bits({product})"), exponent, error)

    def exp(self, x: str) -> str:
        """The exponential function up to EXP_TO, within two units in the last place; below EXP_FROM 0."""
        inside = self.let(f"{x} >= {EXP_FROM!r}")
        t = self.let(f"select({inside}, {x}, 0.0)")
        rounded = self.let(f"{t} * {1 / math.log(2)!r} + {_ROUNDING!r}")
        k = self.let(f"{rounded} - {_ROUNDING!r}")
        high = self.let(f"fma({k}, {-_LN2_HIGH!r}, {t})")
        r = self.let(f"fma({k}, {-_LN2_LOW!r}, {high})")
        # Taylor's series: the next term is below 2^-58 of the result, because |r| < 0.35.
        series = repr(1 / math.factorial(13))
        for n in range(12, 1, -1):
            series = self.let(f"fma({series}, {r}, {1 / math.factorial(n)!r})")
        series = self.let(f"fma({series}, {r} * {r}, {r}) + 1.0")
        # The last bits of `rounded` are those of the integer k.
        scaled = self.let(f"from_bits(bits({series}) + (bits({rounded}) << U(52)))")
        return self.let(f"select({inside}, {scaled}, 0.0)")


@cache
def compile_text(source: str, file: str) -> Kernel:
    """The kernel that a text defines as `kernel`; `file` is the module that printed it.

    numba's disk cache goes by file, name and byte code. The name carries the digest of the text and of what
    translates it, so that it can neither confuse two kernels nor outlive a change of either.
    """
    from verax.kernels import arithmetic, translation

    digest = hashlib.sha256((source + _text_of(translation.__file__)).encode()).hexdigest()[:16]
    arguments = source[source.index("(") : source.index(")") + 1]
    caller = f"def kernel_{digest}{arguments}:\n    return translated{arguments}"
    with arithmetic.one_at_a_time:
        scope: dict[str, Any] = {"translated": translation.translated(source), "__name__": __name__}
        exec(compile(caller, file, "exec"), scope)
    return arithmetic.compiled(scope[f"kernel_{digest}"])  # type: ignore[no-any-return]


@cache
def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as text:
        return text.read()
