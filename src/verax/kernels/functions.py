"""Kernels that are written as Python functions, compiled like printed texts.

A function and the functions that it calls become one text, in which the numbers they close over are written
out. The text is compiled at the first call. Operations that Python lacks are functions here; in a kernel each
is one instruction, which `kernels.translation` knows by name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from textwrap import dedent
from types import FunctionType
from typing import Any

import numpy as np

from verax.kernels.texts import Kernel, compile_text


def compiled(function: Callable[..., Any]) -> Kernel:
    """The kernel that a function in the language of `kernels.translation` describes.

    As `__wrapped__` the function stays what it is, so what a kernel means can be looked up by running it.
    """
    assert isinstance(function, FunctionType)

    @cache
    def kernel() -> Kernel:
        from verax.kernels.arithmetic import one_at_a_time

        with one_at_a_time:
            return compile_text(text_of(function), function.__code__.co_filename)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return kernel()(*arguments)

    return call


def text_of(function: FunctionType) -> str:
    """The text of a function, called `kernel`, and of those that it calls."""
    definitions: dict[str, ast.FunctionDef] = {}
    _collect(function, "kernel", definitions)
    return "\n".join(ast.unparse(definition) for definition in definitions.values())


def texts_of(*functions: Callable[..., Any]) -> str:
    """The texts of some functions and of those that they call, for a text that calls them by their names."""
    definitions: dict[str, ast.FunctionDef] = {}
    for function in functions:
        assert isinstance(function, FunctionType)
        _collect(function, function.__name__, definitions)
    return "\n".join(ast.unparse(definition) for definition in definitions.values())


def _collect(function: FunctionType, name: str, definitions: dict[str, ast.FunctionDef]) -> None:
    (definition,) = ast.parse(dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    definition.name, definition.decorator_list = name, []
    if ast.get_docstring(definition) is not None:
        del definition.body[0]
    for argument in definition.args.args:
        argument.annotation = None
    definitions[name] = definition
    code, cells = function.__code__, function.__closure__ or ()
    closed = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True)}
    local_names = frozenset(code.co_varnames)
    scope = {key: value for key, value in (function.__globals__ | closed).items() if key not in local_names}
    writing = _Writing(scope)
    definition.body = writing.block(definition.body)
    for helper in writing.called - definitions.keys():
        _collect(scope[helper], helper, definitions)


class _Writing(ast.NodeTransformer):
    """Replaces names of known numbers by these, and drops branches that they rule out."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._scope = scope
        self.called: set[str] = set()

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        return self.visit(ast.Module(statements, [])).body  # type: ignore[no-any-return]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = self._scope.get(node.id)
        if isinstance(known, np.uint64):
            return ast.Call(ast.Name("U", ast.Load()), [ast.Constant(int(known))], [])
        return ast.Constant(known) if isinstance(known, (bool, int, float)) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        from verax.kernels.translation import CALLS

        if isinstance(node.func, ast.Name):
            known = self._scope.get(node.func.id)
            if isinstance(known, FunctionType) and node.func.id not in CALLS:
                self.called.add(node.func.id)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):
            return self.block(node.body if test.value else node.orelse)
        return self.generic_visit(node)


# ---- operations


def select(condition: Any, first: Any, second: Any) -> Any:
    """`first` where the condition holds, else `second`; both are computed.

    >>> select(2 > 1, 0.5, 0.25)
    0.5
    """
    return first if condition else second


def plus(total: Any, term: Any) -> Any:
    """A sum that may be added up in any order."""
    return total + term


def fma(a: Any, b: Any, c: Any) -> Any:
    """The value of a * b + c; a kernel rounds it once."""
    return a * b + c


def lower(a: Any, b: Any) -> Any:
    """The smaller of two floats, none of which is missing."""
    return min(a, b)


def higher(a: Any, b: Any) -> Any:
    """The larger of two floats, none of which is missing."""
    return max(a, b)


def bits(x: Any) -> Any:
    """The 64 bits of a float, as an unsigned integer.

    >>> hex(bits(1.0))
    '0x3ff0000000000000'
    """
    return np.float64(x).view(np.uint64)


def from_bits(x: Any) -> Any:
    """The float of 64 bits."""
    return np.uint64(x).view(np.float64)


def fetch(item: Any) -> None:
    """Bring an item of an array near, because it will be changed soon; changes nothing."""


def add_several(total: Any, error: Any, *terms: Any) -> None:
    """Add terms to sums that lie side by side in an array from the item `total` on.

    What is rounded off is added to those from `error` on. A kernel does it for all terms at once.
    """


def turn_square(first: Any, second: Any, third: Any, fourth: Any, columns: Any) -> None:
    """Turn four numbers from each of four items of arrays on into columns of a local array."""
