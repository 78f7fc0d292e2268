"""Numbers that carry their derivatives: a formula run on them gives its partial derivatives as well.

A `Dual` is an array with, for each variable it depends on, the array (or number) of its derivatives.
`DualNamespace` stands in for the array namespace of a formula, as symbols do where it is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from verax.inputs.arrays import Array

# A derivative that is the same for all rows stays a number, so that simple formulas cost no arrays.
Parts = dict[str, Any]


class Dual:
    """Values and, by name of the variable, their derivatives."""

    value: Array
    parts: Parts

    # NumPy leaves the arithmetic of an array and a dual to the dual.
    __array_ufunc__ = None
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, value: Array, parts: Parts) -> None:
        self.value, self.parts = value, parts

    def chain(self, value: Array, slope: Array) -> Dual:
        """A function of this number with that value and that derivative."""
        return Dual(value, {name: slope * part for name, part in self.parts.items()})

    def __add__(self, other: Any) -> Dual:
        value, parts = _split(other)
        return Dual(self.value + value, dict(_sums(self.parts, parts)))

    def __neg__(self) -> Dual:
        return self.chain(-self.value, -1.0)

    def __sub__(self, other: Any) -> Dual:
        value, parts = _split(other)
        return Dual(
            self.value - value, dict(_sums(self.parts, {name: -part for name, part in parts.items()}))
        )

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Dual:
        value, parts = _split(other)
        mine = {name: part * value for name, part in self.parts.items()}
        theirs = {name: part * self.value for name, part in parts.items()}
        return Dual(self.value * value, dict(_sums(mine, theirs)))

    def __truediv__(self, other: Any) -> Any:
        return self * _reciprocal(other)

    def __rtruediv__(self, other: Any) -> Any:
        return _reciprocal(self) * other

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, Dual):
            return _exp(power * _log(self))
        return self.chain(self.value**power, power * self.value ** (power - 1))

    def __rpow__(self, base: float) -> Any:
        return _exp(self * math.log(base))

    def __abs__(self) -> Dual:
        return self.chain(abs(self.value), np.sign(self.value))

    def __radd__(self, other: Any) -> Dual:
        return self.__add__(other)

    def __rmul__(self, other: Any) -> Dual:
        return self.__mul__(other)

    def __lt__(self, other: Any) -> Array:
        return self.value < _split(other)[0]

    def __le__(self, other: Any) -> Array:
        return self.value <= _split(other)[0]

    def __gt__(self, other: Any) -> Array:
        return self.value > _split(other)[0]

    def __ge__(self, other: Any) -> Array:
        return self.value >= _split(other)[0]

    def __eq__(self, other: object) -> Any:
        return self.value == _split(other)[0]

    def __ne__(self, other: object) -> Any:
        return self.value != _split(other)[0]


def _split(x: Any) -> tuple[Any, Parts]:
    return (x.value, x.parts) if isinstance(x, Dual) else (x, {})


def _sums(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in {**a, **b}:
        yield name, (a[name] + b[name] if name in a and name in b else a.get(name, b.get(name)))


def _reciprocal(x: Any) -> Any:
    return x.chain(1 / x.value, -1 / (x.value * x.value)) if isinstance(x, Dual) else 1 / x


def _exp(x: Any) -> Any:
    value = np.exp(_split(x)[0])
    return x.chain(value, value) if isinstance(x, Dual) else value


def _log(x: Any) -> Any:
    return x.chain(np.log(x.value), 1 / x.value) if isinstance(x, Dual) else np.log(x)


def where(condition: Array, a: Any, b: Any) -> Any:
    """Each value, with its derivatives, from `a` where the condition holds and from `b` elsewhere."""
    (a, mine), (b, theirs) = _split(a), _split(b)
    names = {**mine, **theirs}
    parts = {name: np.where(condition, mine.get(name, 0.0), theirs.get(name, 0.0)) for name in names}
    value = np.where(condition, a, b)
    return Dual(value, parts) if parts else value


def _picked(before: Callable[..., Array], a: Any, b: Any) -> Any:
    """The operand that comes before the other, the first of equal ones; NaN if either is."""
    value = _split(a)[0]
    return where(before(value, _split(b)[0]) | (value != value), a, b)


# The derivatives of the functions of one argument.
_SLOPES: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "expm1": np.exp,
    "log": lambda x: 1 / x,
    "log1p": lambda x: 1 / (1 + x),
    "log2": lambda x: 1 / (math.log(2) * x),
    "log10": lambda x: 1 / (math.log(10) * x),
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "square": lambda x: 2 * x,
    "abs": np.sign,
    "sin": np.cos,
    "cos": lambda x: -np.sin(x),
    "tanh": lambda x: 1 - np.tanh(x) ** 2,
    "asin": lambda x: 1 / np.sqrt(1 - x * x),
    "acos": lambda x: -1 / np.sqrt(1 - x * x),
    "atan": lambda x: 1 / (1 + x * x),
}

# What is constant between its jumps, or no number at all.
_STEPS = frozenset({"sign", "floor", "ceil", "round", "trunc", "isfinite", "isinf", "isnan", "signbit"})
_STEPS |= {"zeros_like", "ones_like", "full_like"}
_STEPS |= {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}

_OTHERS: dict[str, Callable[..., Any]] = {
    "where": where,
    "maximum": lambda a, b: _picked(np.greater_equal, a, b),
    "minimum": lambda a, b: _picked(np.less_equal, a, b),
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "negative": lambda a: -a,
    "positive": lambda a: a,
    "reciprocal": _reciprocal,
}


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    x = x if low is None else _OTHERS["maximum"](x, low)
    return x if high is None else _OTHERS["minimum"](x, high)


_OTHERS["clip"] = _clip


class DualNamespace:
    """The functions of NumPy that formulas use, for duals; anything without a dual is left to NumPy."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        if not callable(function) or isinstance(function, type):
            return function

        def call(*arguments: Any, **options: Any) -> Any:
            if not any(isinstance(a, Dual) for a in (*arguments, *options.values())):
                return function(*arguments, **options)
            if name in _OTHERS:
                return _OTHERS[name](*arguments, **options)
            values = [_split(a)[0] for a in arguments]
            if name in _SLOPES:
                return arguments[0].chain(function(*values), _SLOPES[name](values[0]))
            if name in _STEPS:
                return function(*values, **options)
            raise TypeError(f"the derivative of {name} is not known")

        return call
