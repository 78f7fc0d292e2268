"""From the text of a kernel to instructions of the compiler.

Kernels are simple: loops over rows, local arrays, and up to hundreds of lines of arithmetic. numba spends
most of its time inferring their types. Here each line becomes instructions at once, so a kernel is ready
several times sooner. numba still unpacks the arguments, optimises, and keeps the machine code.

The language is a part of Python: `for` over `range`, `while`, `if`, `continue`, `break`, assignments to names
and to items, `return` with its type as annotation (`-> int`, `-> tuple[int, float]`), arithmetic,
comparisons, the calls in `_CALLS`, and calls of further functions in the text, which are written in their
place. Numbers are floats, integers, unsigned integers (`U(3)`) and truth values. An array may be indexed by
fewer numbers than it has axes, and sliced along its next axis. Indices and slices are neither checked nor
counted from the end. In `a and b[i]` and in `b[i] if a else c` the array is read only where Python reads it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as _types
from numba.extending import intrinsic

# The type checker does not know all members.
types: Any = _types

_FLOAT, _INTEGER, _TRUTH = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
_RETURNED = {"int": types.int64, "float": types.float64, "bool": types.boolean}
_KINDS = {"int": _INTEGER, "float": _FLOAT, "bool": _TRUTH}
# A sum that may be added up in any order: each lane of a vector then has its own part of it.
_ANY_ORDER = ("reassoc", "contract")
# Numbers none of which is missing: extremes of several rows can then be found at a time.
_NONE_MISSING = ("nnan", "nsz")


@dataclass(frozen=True)
class _Number:
    """A value with its type; all but four instructions are the same for unsigned integers."""

    value: Any
    signed: bool = True

    @property
    def is_float(self) -> bool:
        return bool(self.value.type == _FLOAT)

    @property
    def is_truth(self) -> bool:
        return bool(self.value.type == _TRUTH)


@dataclass(frozen=True)
class _Given:
    """An array that the caller passes."""

    proxy: Any
    type: Any

    @property
    def n_axes(self) -> int:
        return int(self.type.ndim)


@dataclass(frozen=True)
class _Local:
    """An array of fixed shape on the stack, for floats or integers."""

    pointer: Any
    shape: tuple[int, ...]
    signed: bool

    @property
    def n_axes(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class _View:
    """A part of an array: the indices of its first axes, and where a slice of the next begins."""

    array: _Given | _Local
    fixed: tuple[Any, ...] = ()
    begin: Any = None
    size: Any = None

    @property
    def is_item(self) -> bool:
        return len(self.fixed) == self.array.n_axes


# What a name stands for; a list is a tuple of the text.
_Value: TypeAlias = "_Number | _View | list[Any]"


def translated(source: str) -> Any:
    """The first function that a text defines, as an intrinsic of numba's with the same arguments."""
    functions = [
        definition for definition in ast.parse(source).body if isinstance(definition, ast.FunctionDef)
    ]
    function, helpers = functions[0], {definition.name: definition for definition in functions[1:]}
    names = [argument.arg for argument in function.args.args]
    kinds = _kinds(function)
    returned = [_RETURNED[kind] for kind in kinds]
    result = types.Tuple(returned) if len(returned) > 1 else (*returned, types.none)[0]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        translator = _Translator(context, builder, function, helpers)
        arguments = zip(names, signature.args, values, strict=True)
        numbers = translator.run({name: translator.given(kind, value) for name, kind, value in arguments})
        if len(numbers) > 1:
            return context.make_tuple(builder, result, [number.value for number in numbers])
        return numbers[0].value if numbers else context.get_dummy_value()

    def typed(_context: Any, *given: Any) -> Any:
        return result(*given), generate

    # numba goes by the number of parameters.
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("_context", *names)]
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return intrinsic(typed)


def _kinds(function: ast.FunctionDef) -> list[str]:
    """The names of the types that a function returns."""
    match function.returns:
        case None | ast.Constant(value=None):
            return []
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=parts)):
            return [ast.unparse(part) for part in parts]
        case annotation:
            return [ast.unparse(annotation)]


class _Translator:
    """Writes the instructions of one function, statement by statement."""

    def __init__(
        self, context: Any, builder: Any, function: ast.FunctionDef, helpers: dict[str, ast.FunctionDef]
    ) -> None:
        self._context, self._builder, self._function, self._helpers = context, builder, function, helpers
        # What names stand for: numbers, arrays, tuples, and places of numbers that loops change.
        self._names: dict[str, _Value] = {}
        self._places: dict[str, tuple[Any, bool]] = {}
        self._changing = _changing(function)
        # Where `continue` and `break` lead to, innermost last; where `return` does, and what it leaves.
        self._loops: list[tuple[Any, Any]] = []
        self._exit: Any = None
        self._results: list[Any] = []

    def run(self, names: dict[str, _Value]) -> list[_Number]:
        """Write the whole function with these arguments; the numbers that it returns."""
        for name, value in names.items():
            self._bind(ast.Name(name), value)
        *body, last = self._function.body
        if any(isinstance(node, ast.Return) for statement in body for node in ast.walk(statement)):
            return self._run_to_exit()
        self._block(body)
        if not isinstance(last, ast.Return):
            self._block([last])
            return []
        return self._returned(last)

    def _run_to_exit(self) -> list[_Number]:
        """Write a function that returns in several places."""
        builder = self._builder
        with builder.goto_entry_block():
            self._results = [builder.alloca(_KINDS[kind]) for kind in _kinds(self._function)]
        self._exit = builder.append_basic_block("exit")
        self._block(self._function.body)
        builder.position_at_end(self._exit)
        return [_Number(builder.load(place)) for place in self._results]

    def _returned(self, statement: ast.Return) -> list[_Number]:
        assert statement.value is not None
        parts = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
        numbers = zip(map(self._number, parts), _kinds(self._function), strict=True)
        # A function of numbers of any type returns what they give.
        return [self._converted(number, _KINDS.get(kind, number.value.type)) for number, kind in numbers]

    def given(self, kind: Any, value: Any) -> _Value:
        """The value of an argument of the caller."""
        if isinstance(kind, types.BaseTuple):
            members = cgutils.unpack_tuple(self._builder, value, len(kind))
            return [
                self.given(member_kind, member) for member_kind, member in zip(kind, members, strict=True)
            ]
        if isinstance(kind, types.Array):
            return _View(_Given(self._context.make_array(kind)(self._context, self._builder, value), kind))
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
                case (
                    ast.Assign(targets=[target], value=value)
                    | ast.AnnAssign(target=target, value=ast.expr() as value)
                ):
                    self._bind(target, self._value(value))
                case ast.AugAssign(target=target, op=operation, value=value):
                    self._bind(target, self._number(ast.BinOp(target, operation, value)))
                case ast.For(target=ast.Name(id=name), iter=ast.Call(args=limits), body=body):
                    self._for(name, limits, body)
                case ast.While(test=test, body=body):
                    self._while(test, body)
                case ast.If(test=test, body=body, orelse=[]):
                    with self._builder.if_then(self._truth(test)):
                        self._block(body)
                case ast.If(test=test, body=body, orelse=others):
                    with self._builder.if_else(self._truth(test)) as (then, otherwise):
                        with then:
                            self._block(body)
                        with otherwise:
                            self._block(others)
                case ast.Expr(value=ast.Call(func=ast.Name(id="fetch"), args=[ast.Subscript() as item])):
                    self._fetch(item)
                case ast.Expr(
                    value=ast.Call(func=ast.Name(id="turn_square"), args=[*rows, ast.Subscript() as columns])
                ):
                    self._turn_square(rows, columns)
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Name(id="add_several"),
                        args=[ast.Subscript() as sums, ast.Subscript() as errors, *terms],
                    )
                ):
                    self._add_several(sums, errors, terms)
                case ast.Expr(value=ast.Call() as call):
                    self._value(call)
                case ast.Continue():
                    self._builder.branch(self._loops[-1][0])
                    return
                case ast.Break():
                    self._builder.branch(self._loops[-1][1])
                    return
                case ast.Return():
                    for place, number in zip(self._results, self._returned(statement), strict=True):
                        self._builder.store(number.value, place)
                    self._builder.branch(self._exit)
                    return
                case _:
                    raise SyntaxError(f"not translated: {ast.unparse(statement)}")

    def _for(self, name: str, limits: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        match limits:
            case [ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=of)])] if isinstance(
                self._names.get(of), list
            ):
                # Members of a tuple may differ in type, so each has instructions of its own.
                for member in range(len(self._names[of])):  # type: ignore[arg-type]
                    self._names[name] = _Number(_INTEGER(member))
                    self._block(body)
            case _:
                with self._loop(limits) as index:
                    self._names[name] = index
                    self._block(body)

    @contextmanager
    def _loop(self, limits: Sequence[ast.expr]) -> Iterator[_Number]:
        """A loop over a range, whose step is a constant."""
        builder, numbers = self._builder, [self._number(limit).value for limit in limits[:2]]
        start = numbers[0] if len(numbers) > 1 else _INTEGER(0)
        stop, step = numbers[-1], ast.literal_eval(limits[2]) if len(limits) > 2 else 1
        head, body, follow, after = (
            builder.append_basic_block(f"for{part}") for part in ("", ".body", ".next", ".end")
        )
        before = builder.block
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(_INTEGER)
        index.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<" if step > 0 else ">", index, stop), body, after)
        builder.position_at_end(body)
        self._loops.append((follow, after))
        yield _Number(index)
        self._loops.pop()
        self._go_on_to(follow)
        index.add_incoming(builder.add(index, _INTEGER(step), flags=("nsw",)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        builder = self._builder
        head, inside, after = (builder.append_basic_block(f"while{part}") for part in ("", ".body", ".end"))
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(self._truth(test), inside, after)
        builder.position_at_end(inside)
        self._loops.append((head, after))
        self._block(body)
        self._loops.pop()
        self._go_on_to(head)
        builder.position_at_end(after)

    def _go_on_to(self, block: Any) -> None:
        """End an open block with a jump to another, and write there."""
        if not self._builder.block.is_terminated:
            self._builder.branch(block)
        self._builder.position_at_end(block)

    def _bind(self, target: ast.expr, value: _Value) -> None:
        """Let a name stand for a value, or store it."""
        if isinstance(target, ast.Tuple):
            assert isinstance(value, list)
            for name, member in zip(target.elts, value, strict=True):
                self._bind(name, member)
        elif isinstance(target, ast.Subscript):
            assert isinstance(value, _Number)
            self._store(target, value)
        else:
            assert isinstance(target, ast.Name)
            if target.id in self._changing and isinstance(value, _Number):
                self._keep(target.id, value)
            else:
                self._names[target.id] = value

    def _keep(self, name: str, number: _Number) -> None:
        """Write a number to the place of its name."""
        if name not in self._places:
            with self._builder.goto_entry_block():
                place = self._builder.alloca(number.value.type)
            self._places[name] = place, number.signed
        place, _ = self._places[name]
        self._builder.store(self._converted(number, place.type.pointee).value, place)

    # ---- arrays ----------------------------------------------------------------------------

    def _local(self, call: ast.Call) -> _View:
        """An array on the stack, from np.zeros or np.empty; a second argument makes it one of integers."""
        given = ast.literal_eval(call.args[0])
        shape = given if isinstance(given, tuple) else (given,)
        kind = _INTEGER if len(call.args) > 1 else _FLOAT
        signed = len(call.args) == 1 or ast.unparse(call.args[1]) == "np.int64"
        with self._builder.goto_entry_block():
            pointer = self._builder.alloca(kind, _INTEGER(math.prod(shape)))
        # Vectors that begin where lines of the cache do lie in one of them each.
        pointer.align = 64
        if ast.unparse(call.func) == "np.zeros":
            with self._loop([ast.Constant(math.prod(shape))]) as index:
                self._builder.store(kind(0), self._builder.gep(pointer, [index.value], inbounds=True))
        return _View(_Local(pointer, shape, signed))

    def _part(self, node: ast.Subscript) -> Any:
        """An item: a member of a tuple, or a part of an array."""
        part = self._value(node.value)
        of = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(part, list):
            return part[self._number(of[0]).value.constant]
        assert isinstance(part, _View)
        for index_node in of:
            if isinstance(index_node, ast.Slice):
                begin = (
                    self._integer(self._number(index_node.lower), True).value
                    if index_node.lower
                    else _INTEGER(0)
                )
                assert index_node.upper is not None
                size = self._builder.sub(self._number(index_node.upper).value, begin)
                part = replace(part, begin=self._moved(part, begin), size=size)
            else:
                index = self._moved(part, self._integer(self._number(index_node), True).value)
                part = _View(part.array, (*part.fixed, index))
        return part

    def _moved(self, view: _View, index: Any) -> Any:
        return index if view.begin is None else self._builder.add(view.begin, index)

    def _address(self, view: _View) -> Any:
        """The address of an item."""
        array, builder = view.array, self._builder
        if isinstance(array, _Given):
            proxy = array.proxy
            shape, strides = (cgutils.unpack_tuple(builder, part) for part in (proxy.shape, proxy.strides))
            return cgutils.get_item_pointer2(
                self._context, builder, proxy.data, shape, strides, array.type.layout, list(view.fixed)
            )
        at = view.fixed[0]
        for size, index in zip(array.shape[1:], view.fixed[1:], strict=True):
            at = builder.add(builder.mul(at, _INTEGER(size)), index)
        return builder.gep(array.pointer, [at], inbounds=True)

    def _load(self, view: _View) -> _Number:
        place = self._address(view)
        if isinstance(view.array, _Given):
            kind = view.array.type.dtype
            return self._widened(kind, self._context.unpack_value(self._builder, kind, place))
        return _Number(self._builder.load(place), view.array.signed)

    def _store(self, node: ast.Subscript, number: _Number) -> None:
        view = self._part(node)
        place = self._address(view)
        if isinstance(view.array, _Local):
            self._builder.store(self._converted(number, place.type.pointee).value, place)
            return
        kind = view.array.type.dtype
        wanted = _FLOAT if isinstance(kind, types.Float) else _INTEGER
        value = self._converted(number, _TRUTH if isinstance(kind, types.Boolean) else wanted).value
        if isinstance(kind, types.Integer) and kind.bitwidth < 64:
            value = self._builder.trunc(value, ir.IntType(kind.bitwidth))
        if isinstance(kind, types.Float) and kind.bitwidth == 32:
            value = self._builder.fptrunc(value, ir.FloatType())
        self._context.pack_value(self._builder, kind, value, place)

    def _fetch(self, node: ast.Subscript) -> None:
        """Ask for an item to be brought near, because it will be changed."""
        bytes_ = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [bytes_, flag, flag, flag])
        function = self._builder.module.declare_intrinsic("llvm.prefetch", [bytes_], kind)
        place = self._builder.bitcast(self._address(self._part(node)), bytes_)
        self._builder.call(function, [place, flag(1), flag(3), flag(1)])

    def _add_several(self, sums: ast.Subscript, errors: ast.Subscript, terms: Sequence[ast.expr]) -> None:
        """Add terms to sums that lie side by side, all at once, and what is rounded off to others."""
        builder, kind = self._builder, ir.VectorType(_FLOAT, len(terms))
        term = kind(ir.Undefined)
        for lane, operand in enumerate(terms):
            term = builder.insert_element(term, self._number(operand).value, ir.IntType(32)(lane))
        places = [
            builder.bitcast(self._address(self._part(operand)), kind.as_pointer())
            for operand in (sums, errors)
        ]
        before, error = (builder.load(place, align=8) for place in places)
        after = builder.fadd(before, term)
        virtual = builder.fsub(after, before)
        rounded = builder.fadd(
            builder.fsub(before, builder.fsub(after, virtual)), builder.fsub(term, virtual)
        )
        builder.store(after, places[0], align=8)
        builder.store(builder.fadd(error, rounded), places[1], align=8)

    def _turn_square(self, rows: Sequence[ast.expr], columns: ast.Subscript) -> None:
        """Turn four numbers from each of four items on into columns of an array on the stack."""
        builder, local = self._builder, self._part(columns)
        lines = [self._four_of(self._part(row)) for row in rows if isinstance(row, ast.Subscript)]
        # First pairs of neighbours change places, then pairs of these.
        for apart in (1, 2):
            turned = list(lines)
            for a in (i for i in range(4) if not i & apart):
                b = a + apart
                for to, kept in ((a, 0), (b, apart)):
                    picks = [(lane & ~apart | kept) + (4 if lane & apart else 0) for lane in range(4)]
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), picks)
                    turned[to] = builder.shuffle_vector(lines[a], lines[b], mask)
            lines = turned
        for column, line in enumerate(lines):
            at = _View(local.array, (builder.add(local.fixed[0], _INTEGER(column)), local.fixed[1]))
            builder.store(line, builder.bitcast(self._address(at), line.type.as_pointer()), align=8)

    def _four_of(self, view: _View) -> Any:
        """Four numbers of a row, from an item on, as one value."""
        assert isinstance(view.array, _Given)
        builder, kind, four = self._builder, view.array.type.dtype, ir.VectorType(_FLOAT, 4)
        if isinstance(kind, types.Float) and view.array.type.layout == "C":
            place = self._address(view)
            given = ir.VectorType(place.type.pointee, 4)
            numbers = builder.load(builder.bitcast(place, given.as_pointer()), align=kind.bitwidth // 8)
            return numbers if kind.bitwidth == 64 else builder.fpext(numbers, four)
        numbers = four(ir.Undefined)
        *before, first = view.fixed
        for lane in range(4):
            item = _View(view.array, (*before, builder.add(first, _INTEGER(lane))))
            number = self._as_float(self._load(item))
            numbers = builder.insert_element(numbers, number, ir.IntType(32)(lane))
        return numbers

    def _shape(self, view: _View) -> list[Any]:
        """The sizes of the axes of an array or of a part of one."""
        if isinstance(view.array, _Local):
            sizes = [_Number(_INTEGER(size)) for size in view.array.shape]
        else:
            sizes = [_Number(size) for size in cgutils.unpack_tuple(self._builder, view.array.proxy.shape)]
        left = sizes[len(view.fixed) :]
        return left if view.size is None else [_Number(view.size), *left[1:]]

    def _length(self, value: _Value) -> _Number:
        if isinstance(value, list):
            return _Number(_INTEGER(len(value)))
        assert isinstance(value, _View)
        number: _Number = self._shape(value)[0]
        return number

    def _size(self, view: _View) -> _Number:
        """The number of items."""
        if isinstance(view.array, _Given) and not view.fixed and view.size is None:
            return _Number(view.array.proxy.nitems)
        return self._length(view)

    # ---- values ----------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression: a number, an array or a part of one, or several of them."""
        match node:
            case ast.Name(id=name) if name not in self._places:
                return self._names[name]
            case ast.Tuple(elts=parts):
                return [self._value(part) for part in parts]
            case ast.Attribute(value=array, attr="shape"):
                return self._shape(self._value(array))
            case ast.Subscript():
                item = self._part(node)
                return self._load(item) if isinstance(item, _View) and item.is_item else item
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="zeros" | "empty")):
                return self._local(node)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in self._helpers:
                return self._helped(self._helpers[name], [self._value(argument) for argument in arguments])
        return self._plain_number(node)

    def _helped(self, function: ast.FunctionDef, values: Sequence[_Value]) -> Any:
        """The results of a function of the text, written in the place of its call."""
        names = [argument.arg for argument in function.args.args]
        helper = _Translator(self._context, self._builder, function, self._helpers)
        results = helper.run(dict(zip(names, values, strict=True)))
        return results if len(results) != 1 else results[0]

    def _number(self, node: ast.expr) -> _Number:
        number: _Number = self._value(node)
        return number

    def _plain_number(self, node: ast.expr) -> _Number:
        match node:
            case ast.Constant(value=bool(value)):
                return _Number(_TRUTH(int(value)))
            case ast.Constant(value=int(value)):
                return _Number(_INTEGER(value if value < 2**63 else value - 2**64))
            case ast.Constant(value=float(value)):
                return _Number(_FLOAT(value))
            case ast.Name(id=name):
                place, signed = self._places[name]
                return _Number(self._builder.load(place), signed)
            case ast.Attribute(value=ast.Name(id="math" | "np"), attr="inf"):
                return _Number(_FLOAT(math.inf))
            case ast.Attribute(value=array, attr="size"):
                return self._size(self._value(array))
            case ast.BinOp(left=left, op=operation, right=right):
                return self._binary(type(operation).__name__, self._number(left), self._number(right))
            case ast.Compare(left=left, ops=[operation], comparators=[right]):
                return self._compared(_SIGNS[type(operation)], self._number(left), self._number(right))
            case ast.Compare(left=left, ops=[first, second], comparators=[middle, right]):
                parts: list[ast.expr] = [
                    ast.Compare(left, [first], [middle]),
                    ast.Compare(middle, [second], [right]),
                ]
                return self._number(ast.BoolOp(ast.And(), parts))
            case ast.BoolOp(op=operation, values=values):
                return self._decided(isinstance(operation, ast.And), values)
            case ast.IfExp(test=test, body=body, orelse=other):
                return self._either(test, body, other)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _Number(self._builder.not_(self._truth(operand)))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                number = self._number(operand)
                return _Number(self._builder.not_(number.value), number.signed)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self._number(operand)
                return _Number((self._builder.fneg if number.is_float else self._builder.neg)(number.value))
            case ast.Call(func=ast.Name(id="len"), args=[argument]):
                return self._length(self._value(argument))
            case ast.Call(func=function, args=arguments):
                numbers = [self._number(argument) for argument in arguments]
                return _CALLS[ast.unparse(function)](self, *numbers)
        raise SyntaxError(f"not translated: {ast.unparse(node)}")

    def _truth(self, node: ast.expr) -> Any:
        return self._converted(self._number(node), _TRUTH).value

    def _decided(self, all_of: bool, values: Sequence[ast.expr]) -> _Number:
        """Whether all or any of some conditions hold; those that read arrays are evaluated only if needed."""
        builder = self._builder
        holds = self._truth(values[0])
        for condition in values[1:]:
            if not _reads(condition):
                holds = (builder.and_ if all_of else builder.or_)(holds, self._truth(condition))
                continue
            before, also, after = builder.block, *(builder.append_basic_block("also") for _ in range(2))
            builder.cbranch(holds, *((also, after) if all_of else (after, also)))
            builder.position_at_end(also)
            also_holds = self._truth(condition)
            also = builder.block
            self._go_on_to(after)
            holds = builder.phi(_TRUTH)
            holds.add_incoming(_TRUTH(int(not all_of)), before)
            holds.add_incoming(also_holds, also)
        return _Number(holds)

    def _either(self, test: ast.expr, body: ast.expr, other: ast.expr) -> _Number:
        """One of two numbers; arrays are read only for the one that is chosen."""
        builder, condition = self._builder, self._truth(test)
        if not (_reads(body) or _reads(other)):
            return self._select(_Number(condition), self._number(body), self._number(other))
        sides, after = [], builder.append_basic_block("either.end")
        blocks = [builder.append_basic_block("either") for _ in range(2)]
        builder.cbranch(condition, *blocks)
        for block, expression in zip(blocks, (body, other), strict=True):
            builder.position_at_end(block)
            sides.append((self._number(expression), builder.block))
        is_float = any(number.is_float for number, _ in sides)
        kind = _FLOAT if is_float else sides[0][0].value.type
        ends = []
        for number, block in sides:
            builder.position_at_end(block)
            ends.append((self._converted(number, kind).value, block))
            builder.branch(after)
        builder.position_at_end(after)
        chosen = builder.phi(kind)
        for value, block in ends:
            chosen.add_incoming(value, block)
        return _Number(chosen, all(number.signed for number, _ in sides))

    def _converted(self, number: _Number, kind: Any) -> _Number:
        """A number as one of another type; floats become integers by a call alone."""
        if number.value.type == kind:
            return number
        if kind == _FLOAT:
            return _Number(self._as_float(number))
        if kind == _TRUTH:
            return self._compared("!=", number, _Number(kind(0) if number.is_truth else number.value.type(0)))
        if number.is_float:
            raise SyntaxError("not translated: a float in the place of an integer")
        return self._integer(number, number.signed)

    def _as_float(self, number: _Number) -> Any:
        if number.is_float:
            return number.value
        signed = number.signed and not number.is_truth
        return (self._builder.sitofp if signed else self._builder.uitofp)(number.value, _FLOAT)

    def _alike(self, a: _Number, b: _Number) -> tuple[Any, Any, bool]:
        """Two numbers as values of one type, and whether they are signed."""
        if a.is_float or b.is_float:
            return self._as_float(a), self._as_float(b), True
        if a.is_truth != b.is_truth:
            a, b = self._integer(a, a.signed), self._integer(b, b.signed)
        return a.value, b.value, a.signed and b.signed

    def _binary(self, operation: str, a: _Number, b: _Number) -> _Number:
        if operation in ("Add", "Sub", "Mult") and a.is_truth and b.is_truth:
            a, b = self._integer(a, True), self._integer(b, True)
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

    def _extreme(self, sign: str, first: _Number, *others: _Number) -> _Number:
        """The smallest or the largest number, the first of equals."""
        extreme = first
        for other in others:
            extreme = self._select(self._compared(sign, other, extreme), other, extreme)
        return extreme

    def _known_extreme(self, sign: str, a: _Number, b: _Number) -> _Number:
        """The extreme of two floats, neither of which is missing."""
        better = self._builder.fcmp_ordered(sign, b.value, a.value, flags=_NONE_MISSING)
        return _Number(self._builder.select(better, b.value, a.value, flags=_NONE_MISSING))

    def _absolute(self, number: _Number) -> _Number:
        if number.is_float:
            return self._function_of("llvm.fabs", number)
        negative = self._compared("<", number, _Number(_INTEGER(0)))
        return self._select(negative, _Number(self._builder.neg(number.value)), number)

    def _bits(self, number: _Number) -> _Number:
        return _Number(self._builder.bitcast(number.value, _INTEGER), signed=False)

    def _from_bits(self, number: _Number) -> _Number:
        return _Number(self._builder.bitcast(number.value, _FLOAT))

    def _integer(self, number: _Number, signed: bool) -> _Number:
        if number.is_truth:
            return _Number(self._builder.zext(number.value, _INTEGER), signed)
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
    "BitXor": ("", "xor"),
    "LShift": ("", "shl"),
    "RShift": ("", "ashr"),
}
_CALLS: dict[str, Callable[..., _Number]] = {
    "select": _Translator._select,
    "plus": _Translator._plus,
    "fma": _Translator._fma,
    "bits": _Translator._bits,
    "from_bits": _Translator._from_bits,
    "min": lambda writer, *numbers: writer._extreme("<", *numbers),
    "max": lambda writer, *numbers: writer._extreme(">", *numbers),
    "lower": lambda writer, a, b: writer._known_extreme("<", a, b),
    "higher": lambda writer, a, b: writer._known_extreme(">", a, b),
    "abs": _Translator._absolute,
    "math.sqrt": lambda writer, x: writer._function_of("llvm.sqrt", x),
    "math.log": lambda writer, x: writer._function_of("llvm.log", x),
    "math.exp": lambda writer, x: writer._function_of("llvm.exp", x),
    "np.rint": lambda writer, x: writer._function_of("llvm.rint", x),
    "U": lambda writer, x: writer._integer(x, False),
    "np.uint64": lambda writer, x: writer._integer(x, False),
    "np.int64": lambda writer, x: writer._integer(x, True),
    "int": lambda writer, x: writer._integer(x, True),
    "np.float64": lambda writer, x: _Number(writer._as_float(x)),
    "float": lambda writer, x: _Number(writer._as_float(x)),
}
CALLS = frozenset({*_CALLS, "fetch", "add_several", "turn_square"})


def _reads(node: ast.expr) -> bool:
    """Whether an expression reads an item of an array."""
    return any(isinstance(inner, ast.Subscript) for inner in ast.walk(node))


def _changing(function: ast.FunctionDef) -> frozenset[str]:
    """Names that are given values in more than one block: what a loop or a condition changes."""
    blocks = {argument.arg: {id(function.body)} for argument in function.args.args}

    def visit(body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, (ast.For, ast.While, ast.If)):
                visit(statement.body)
                visit(statement.orelse)
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
                targets = [statement.target]
            for target in targets:
                for assigned in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(assigned, ast.Name):
                        blocks.setdefault(assigned.id, set()).add(id(body))

    visit(function.body)
    return frozenset(name for name, places in blocks.items() if len(places) > 1)
