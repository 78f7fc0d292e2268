"""From the text of a printed kernel to instructions of the compiler.

Printed kernels are long and simple: loops over rows, local arrays, and hundreds of lines of arithmetic. numba
spends most of its time inferring their types. Here each line becomes instructions at once, so a kernel is
ready several times sooner. numba still unpacks the arguments, optimises, and keeps the machine code.

The language is a part of Python: `for` over `range`, `if`, assignments to names and to items, one `return` at
the end with its type as annotation (`-> int`), arithmetic, comparisons, and the calls in `_CALLS`. Numbers
are floats, integers, unsigned integers (`U(3)`) and truth values. Indices are neither checked nor counted
from the end.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

# The type checker does not know all members.
types: Any = _types

_FLOAT, _INTEGER, _TRUTH = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
_RETURNED = {"int": types.int64, "float": types.float64, "bool": types.boolean}
# A sum that may be added up in any order: each lane of a vector then has its own part of it.
_ANY_ORDER = ("reassoc", "contract")


@dataclass(frozen=True)
class _Number:
    """A value with its type; unsigned integers have the same instructions but for four of them."""

    value: Any
    signed: bool = True

    @property
    def is_float(self) -> bool:
        return bool(self.value.type == _FLOAT)


@dataclass(frozen=True)
class _Given:
    """An array that the caller passes."""

    proxy: Any
    type: Any


@dataclass(frozen=True)
class _Local:
    """An array of fixed shape on the stack, for floats or unsigned integers."""

    pointer: Any
    shape: tuple[int, ...]


def translated(source: str) -> Any:
    """The function that a text defines, as an intrinsic of numba's with the same arguments."""
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    names = [argument.arg for argument in function.args.args]
    returned = _returned(function.returns)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arguments = zip(names, signature.args, values, strict=True)
        return _Translator(context, builder, function).run(arguments, returned)

    def typed(_context: Any, *kinds: Any) -> Any:
        return returned(*kinds), generate

    # numba goes by the number of parameters.
    kinds = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("_context", *names)]
    typed.__signature__ = Signature(kinds)  # type: ignore[attr-defined]
    return intrinsic(typed)


def _returned(annotation: ast.expr | None) -> Any:
    if annotation is None:
        return types.none
    if isinstance(annotation, ast.Tuple):
        return types.Tuple([_returned(part) for part in annotation.elts])
    assert isinstance(annotation, ast.Name)
    return _RETURNED[annotation.id]


class _Translator:
    """Writes the instructions of one kernel, statement by statement."""

    def __init__(self, context: Any, builder: Any, function: ast.FunctionDef) -> None:
        self._context, self._builder, self._function = context, builder, function
        # What names stand for: numbers, arrays, tuples of arrays, and places of numbers that loops change.
        self._names: dict[str, Any] = {}
        self._places: dict[str, tuple[Any, bool]] = {}
        self._changing = _changing(function.body)

    def run(self, arguments: Iterable[tuple[str, Any, Any]], returned: Any) -> Any:
        """Write all of it, with the names, types and values of the arguments; the value that is returned."""
        self._names = {name: self._argument(kind, value) for name, kind, value in arguments}
        *body, last = self._function.body
        self._block(body)
        if not isinstance(last, ast.Return):
            self._block([last])
            return self._context.get_dummy_value()
        if isinstance(last.value, ast.Tuple):
            parts = [self._number(part).value for part in last.value.elts]
            return self._context.make_tuple(self._builder, returned, parts)
        assert last.value is not None
        return self._number(last.value).value

    def _argument(self, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            members = cgutils.unpack_tuple(self._builder, value, len(kind))
            return [self._argument(own, member) for own, member in zip(kind, members, strict=True)]
        if isinstance(kind, types.Array):
            return _Given(self._context.make_array(kind)(self._context, self._builder, value), kind)
        return self._widened(kind, value)

    def _widened(self, kind: Any, value: Any) -> _Number:
        """A number of any type as one of the four."""
        if isinstance(kind, types.Float):
            return _Number(value if kind.bitwidth == 64 else self._builder.fpext(value, _FLOAT))
        if isinstance(kind, types.Boolean):
            return _Number(value)
        if kind.bitwidth < 64:
            widen = self._builder.sext if kind.signed else self._builder.zext
            value = widen(value, _INTEGER)
        return _Number(value, kind.signed)

    # ---- statements ------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, value)
                case ast.AugAssign(target=target, op=operation, value=value):
                    self._assign(target, ast.BinOp(target, operation, value))
                case ast.For(target=ast.Name(id=name), iter=ast.Call(args=limits), body=body):
                    with self._loop(limits) as index:
                        self._names[name] = index
                        self._block(body)
                case ast.If(test=test, body=body, orelse=[]):
                    with self._builder.if_then(self._number(test).value):
                        self._block(body)
                case _:
                    raise SyntaxError(f"not translated: {ast.unparse(statement)}")

    @contextmanager
    def _loop(self, limits: Sequence[ast.expr]) -> Iterator[_Number]:
        """A loop over a range whose step is positive."""
        builder, numbers = self._builder, [self._number(limit).value for limit in limits]
        start = numbers[0] if len(numbers) > 1 else _INTEGER(0)
        stop, step = numbers[min(1, len(numbers) - 1)], numbers[2] if len(numbers) > 2 else _INTEGER(1)
        before, head = builder.block, builder.append_basic_block("for")
        body, after = builder.append_basic_block("for.body"), builder.append_basic_block("for.end")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(_INTEGER)
        index.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", index, stop), body, after)
        builder.position_at_end(body)
        yield _Number(index)
        index.add_incoming(builder.add(index, step, flags=("nsw",)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            self._store(target, self._number(value))
            return
        assert isinstance(target, ast.Name)
        if isinstance(value, ast.Call) and ast.unparse(value.func) in ("np.zeros", "np.empty"):
            self._names[target.id] = self._local(value)
        elif target.id in self._changing:
            number = self._number(value)
            if target.id not in self._places:
                with self._builder.goto_entry_block():
                    place = self._builder.alloca(number.value.type)
                self._places[target.id] = place, number.signed
            self._builder.store(number.value, self._places[target.id][0])
        else:
            self._names[target.id] = self._number(value)

    # ---- arrays ----------------------------------------------------------------------------

    def _local(self, call: ast.Call) -> _Local:
        """An array on the stack, from np.zeros or np.empty; a second argument makes it one of integers."""
        given = ast.literal_eval(call.args[0])
        shape = given if isinstance(given, tuple) else (given,)
        kind = _INTEGER if len(call.args) > 1 else _FLOAT
        with self._builder.goto_entry_block():
            pointer = self._builder.alloca(kind, _INTEGER(math.prod(shape)))
        if ast.unparse(call.func) == "np.zeros":
            with self._loop([ast.Constant(math.prod(shape))]) as index:
                self._builder.store(kind(0), self._builder.gep(pointer, [index.value], inbounds=True))
        return _Local(pointer, shape)

    def _array(self, node: ast.expr) -> Any:
        """What an expression names: an array, or a member of a tuple of arrays."""
        if isinstance(node, ast.Subscript):
            return self._array(node.value)[ast.literal_eval(node.slice)]
        assert isinstance(node, ast.Name)
        return self._names[node.id]

    def _address(self, node: ast.Subscript) -> tuple[Any, Any]:
        """The array of an item, and where the item is."""
        array = self._array(node.value)
        of = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self._number(each).value for each in of]
        if isinstance(array, _Given):
            proxy, builder = array.proxy, self._builder
            shape, strides = (cgutils.unpack_tuple(builder, part) for part in (proxy.shape, proxy.strides))
            place = cgutils.get_item_pointer2(
                self._context, builder, proxy.data, shape, strides, array.type.layout, indices
            )
            return array, place
        at = indices[0]
        for size, index in zip(array.shape[1:], indices[1:], strict=True):
            at = self._builder.add(self._builder.mul(at, _INTEGER(size)), index)
        return array, self._builder.gep(array.pointer, [at], inbounds=True)

    def _load(self, node: ast.Subscript) -> _Number:
        array, place = self._address(node)
        if isinstance(array, _Given):
            item = self._context.unpack_value(self._builder, array.type.dtype, place)
            return self._widened(array.type.dtype, item)
        return _Number(self._builder.load(place), signed=False)

    def _store(self, node: ast.Subscript, number: _Number) -> None:
        array, place = self._address(node)
        if isinstance(array, _Given):
            value = self._as_float(number) if array.type.dtype == types.float64 else number.value
            self._context.pack_value(self._builder, array.type.dtype, value, place)
        else:
            self._builder.store(number.value, place)

    # ---- numbers ---------------------------------------------------------------------------

    def _number(self, node: ast.expr) -> _Number:
        match node:
            case ast.Constant(value=bool(value)):
                return _Number(_TRUTH(int(value)))
            case ast.Constant(value=int(value)):
                return _Number(_INTEGER(value))
            case ast.Constant(value=float(value)):
                return _Number(_FLOAT(value))
            case ast.Name(id=name) if name in self._places:
                place, signed = self._places[name]
                return _Number(self._builder.load(place), signed)
            case ast.Name(id=name):
                number: _Number = self._names[name]
                return number
            case ast.Subscript():
                return self._load(node)
            case ast.Attribute(value=ast.Name(id="math"), attr="inf"):
                return _Number(_FLOAT(math.inf))
            case ast.Attribute(value=array, attr="size"):
                return _Number(self._array(array).proxy.nitems)
            case ast.BinOp(left=left, op=operation, right=right):
                return self._binary(type(operation).__name__, self._number(left), self._number(right))
            case ast.Compare(left=left, ops=[operation], comparators=[right]):
                return self._compared(_SIGNS[type(operation)], self._number(left), self._number(right))
            case ast.BoolOp(op=operation, values=[first, *others]):
                found = self._number(first)
                for other in others:
                    name = "BitAnd" if isinstance(operation, ast.And) else "BitOr"
                    found = self._binary(name, found, self._number(other))
                return found
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Number(self._builder.not_(self._number(operand).value))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._number(operand)
                return _Number((self._builder.fneg if number.is_float else self._builder.neg)(number.value))
            case ast.Call(func=function, args=arguments):
                numbers = [self._number(argument) for argument in arguments]
                return _CALLS[ast.unparse(function)](self, *numbers)
        raise SyntaxError(f"not translated: {ast.unparse(node)}")

    def _as_float(self, number: _Number) -> Any:
        if number.is_float:
            return number.value
        convert = self._builder.sitofp if number.signed else self._builder.uitofp
        return convert(number.value, _FLOAT)

    def _alike(self, a: _Number, b: _Number) -> tuple[Any, Any, bool]:
        """Two numbers as values of one type, and whether they are signed."""
        if a.is_float or b.is_float:
            return self._as_float(a), self._as_float(b), True
        return a.value, b.value, a.signed and b.signed

    def _binary(self, operation: str, a: _Number, b: _Number) -> _Number:
        x, y, signed = self._alike(a, b)
        if operation == "Div":
            return _Number(self._builder.fdiv(self._as_float(a), self._as_float(b)))
        floats, integers = _OPERATIONS[operation]
        name = floats if x.type == _FLOAT else integers
        name = {"ashr": "lshr", "srem": "urem"}.get(name, name) if not signed else name
        return _Number(getattr(self._builder, name)(x, y), signed)

    def _compared(self, sign: str, a: _Number, b: _Number) -> _Number:
        x, y, signed = self._alike(a, b)
        if x.type == _FLOAT:
            compare = self._builder.fcmp_unordered if sign == "!=" else self._builder.fcmp_ordered
        else:
            compare = self._builder.icmp_signed if signed else self._builder.icmp_unsigned
        return _Number(compare(sign, x, y))

    def _select(self, condition: _Number, a: _Number, b: _Number) -> _Number:
        x, y, signed = self._alike(a, b)
        return _Number(self._builder.select(condition.value, x, y), signed)

    def _plus(self, total: _Number, term: _Number) -> _Number:
        return _Number(self._builder.fadd(total.value, term.value, flags=_ANY_ORDER))

    def _fma(self, *numbers: _Number) -> _Number:
        return _Number(self._builder.fma(*(self._as_float(number) for number in numbers)))

    def _function_of(self, name: str, number: _Number) -> _Number:
        function = self._builder.module.declare_intrinsic(name, [_FLOAT])
        return _Number(self._builder.call(function, [self._as_float(number)]))

    def _least(self, a: _Number, b: _Number) -> _Number:
        return self._select(self._compared("<", a, b), a, b)

    def _bits(self, number: _Number) -> _Number:
        return _Number(self._builder.bitcast(number.value, _INTEGER), signed=False)

    def _from_bits(self, number: _Number) -> _Number:
        return _Number(self._builder.bitcast(number.value, _FLOAT))

    def _integer(self, number: _Number, signed: bool) -> _Number:
        if not number.is_float:
            return _Number(number.value, signed)
        convert = self._builder.fptosi if signed else self._builder.fptoui
        return _Number(convert(number.value, _INTEGER), signed)


_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
# For each operation the instruction on floats and that on integers.
_OPERATIONS = {
    "Add": ("fadd", "add"),
    "Sub": ("fsub", "sub"),
    "Mult": ("fmul", "mul"),
    "Mod": ("frem", "srem"),
    "BitAnd": ("", "and_"),
    "BitOr": ("", "or_"),
    "LShift": ("", "shl"),
    "RShift": ("", "ashr"),
}
_CALLS: dict[str, Callable[..., _Number]] = {
    "select": _Translator._select,
    "plus": _Translator._plus,
    "fma": _Translator._fma,
    "bits": _Translator._bits,
    "from_bits": _Translator._from_bits,
    "min": _Translator._least,
    "abs": lambda own, x: own._function_of("llvm.fabs", x),
    "math.sqrt": lambda own, x: own._function_of("llvm.sqrt", x),
    "U": lambda own, x: own._integer(x, False),
    "np.int64": lambda own, x: own._integer(x, True),
    "np.float64": lambda own, x: _Number(own._as_float(x)),
}


def _changing(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that are given values in more than one block: what a loop or a condition changes."""
    blocks: dict[str, set[int]] = {}

    def visit(body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, (ast.For, ast.If)):
                visit(statement.body)
                continue
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            target = statement.target if isinstance(statement, ast.AugAssign) else target
            if isinstance(target, ast.Name):
                blocks.setdefault(target.id, set()).add(id(body))

    visit(statements)
    return frozenset(name for name, places in blocks.items() if len(places) > 1)
