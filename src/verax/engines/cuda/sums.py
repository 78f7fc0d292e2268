"""The sums of several rules over rows on a GPU, by one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verax.engines.arrays import compute
from verax.engines.cuda import places
from verax.engines.cuda.driver import Args, Device
from verax.engines.cuda.places import Place, Scratch, View, layout
from verax.engines.cuda.printer import (
    POSITIVE,
    ROWS,
    TARGETS,
    VALUES,
    WEIGHTS,
    ZERO,
    Program,
    RowLayout,
    sums_program,
)
from verax.engines.cuda.printer import SUMS as BAD_SUMS
from verax.engines.stats import Formula
from verax.engines.sums import LateSum, Moments, Sum
from verax.errors import VeraxError
from verax.inputs.arrays import Array, Floats, move_like, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.outcomes import Outcomes
from verax.kernels.limits import COMPILED_FROM

# Rows that are not in standard form are brought to it at once, up to this many numbers.
_MOST_COPIED = 2**28
# How many rows tell what the losses are roughly: 32 for each warp of one block, or so many parts of them.
_PROBE, _PROBED_PARTS = 256, 2
# Tables of at least this many counts are fetched from the GPU when they are looked at.
_LARGE_TABLE = 2**12
# Most blocks that add a table of counts to a metric's.
_MOST_ADDING = 1024
# How many numbers are looked at at a time where rows are looked for.
_BLOCK = 2**24
VALUE_TYPES = frozenset({"float64", "float32", "float16", "bfloat16"})
OUTCOME_TYPES = frozenset({"int64", "int32", "int16", "int8", "uint8"})
# As for compiled loops on the host (`engines.fusion.accept`): a shift may be this many times the mean loss,
# and ten standard deviations away from it unless it is as close as this share of the mean.
_FAR, _SPREAD, _CLOSE = 128.0, 0.99, 1e-6


@dataclass(frozen=True)
class DeviceSums:
    """What a tally needs to know of some rows; weights are in the unit that was asked for.

    Attributes
    ----------
    weight, square_sum : Sum
        The sum of the weights and of their squares; `square_sum` is None without weights.
    moments, squares : Moments
        Of the losses, and with the weights squared; `squares` is None without weights.
    n_positive : float
        How many rows have a positive weight.
    cells, square_cells : Sum
        Weights by outcome and decision as `Counts` keeps them, None where they were not asked for. Large
        tables stay on the GPU until they are looked at.
    n_zero : int
        How many rows with weight had given their outcome probability zero.
    """

    weight: Sum
    moments: Moments
    n_positive: float
    square_sum: Sum | None
    squares: Moments | None
    cells: Sum | None
    square_cells: Sum | None
    n_zero: int


@dataclass(frozen=True)
class _Input:
    """The memory of some rows, and what must stay alive while it is used."""

    place: Place
    form: RowLayout
    p: View
    y: View
    w: View | None
    keep: tuple[Any, ...]


def sums_on_gpu(
    rules: Sequence[Formula], rows: Any, *, decisions: bool, most: int, unit: float
) -> DeviceSums | None:
    """The sums over rows on a GPU; None where they must be taken by array calls.

    That is so where the rows are few or of another kind, where a formula cannot be traced, and where a row is
    not clearly valid: array calls then decide, and name the invalid ones.
    """
    if not isinstance(rows, Forecasts) or rows.groups is not None or rows.xp is np or rows.shared:
        return None
    if rows.n_rows * rows.n_classes < COMPILED_FROM:
        return None
    read = _read(rows)
    if read is None:
        return None
    program = program_of(tuple(rules), read.form, decisions, most)
    if program is None:
        return None
    return _Run(program, read, rows, len(rules), 1 / unit).result()


@lru_cache(maxsize=128)
def program_of(rules: tuple[Formula, ...], form: RowLayout, decisions: bool, most: int) -> Program | None:
    """The kernel for such rows (`sums_program`), written once."""
    return sums_program(rules, form, decisions=decisions, most=most)


def _read(rows: Forecasts) -> _Input | None:
    place = places.locate(rows.given)
    if place is None:
        return None
    p, logits = rows.given, rows.logits
    if not rows.as_given:
        if rows.n_rows * rows.n_classes > _MOST_COPIED:
            return None
        batch = rows.batch(0, rows.n_rows)
        p = batch.p if batch.logits is None else batch.logits
    assert isinstance(rows.outcomes, Outcomes)
    y = rows.outcomes.raw if rows.outcomes.are_positions else rows.outcomes.positions(0, rows.n_rows)
    w = rows.weights
    of_p, of_y, of_w = place.view(p), place.view(y), None if w is None else place.view(w)
    if of_y is None or of_y.dtype not in OUTCOME_TYPES:
        y = rows.outcomes.positions(0, rows.n_rows)
        of_y = place.view(y)
    if w is not None and (of_w is None or of_w.dtype not in ("float32", "float64")):
        w = widen(move_like(w, p))
        of_w = place.view(w)
    if of_p is None or of_y is None or of_p.dtype not in VALUE_TYPES or of_y.dtype not in OUTCOME_TYPES:
        return None
    if w is not None and (of_w is None or of_w.dtype not in ("float32", "float64")):
        return None
    form = RowLayout(
        rows.n_classes,
        of_p.dtype,
        of_y.dtype,
        None if of_w is None else of_w.dtype,
        **layout(of_p),
        logits=logits,
    )
    return _Input(place, form, of_p, of_y, of_w, (p, y, w))


class Pass:
    """The launches that sum rows, in the memory of the caller.

    Parameters
    ----------
    program, place, p, y, w
        The kernel, and the rows that it reads.
    n_rules : int
        How many rules the kernel has.
    clear, scale, ignore
        How far sums of rows may be from 1; what weights are multiplied by; the outcome of rows to leave out.
    memory : int
        The address of `n_head` numbers that are zero.
    room : int, optional
        The address of room for `n_room` numbers, where they do not follow these.
    cells : int, optional
        The address of the table of counts: integers that are zero.

    Attributes
    ----------
    n_head, n_room : int
        The head has the shifts, the counts and sums, and the heaviest weight.
    """

    program: Program
    n_rows: int
    n_rules: int

    def __init__(self, program: Program, n_rows: int, n_rules: int) -> None:
        self.program, self.n_rows, self.n_rules = program, n_rows, n_rules
        self.blocks: int = program.blocks(n_rows)
        self.n_head: int = n_rules + program.n_quantities + 1
        self.n_room: int = self.blocks * program.n_quantities
        self.n_cells: int = program.n_cells * program.n_limbs
        # Cells hold weights in units of the power of two above the heaviest: three integers, each by this
        # factor finer than the one before. Sums of one integer of all rows fit 63 bits.
        self.limb: float = 2.0 ** -min(52, 62 - n_rows.bit_length())

    def bind(
        self,
        place: Place,
        p: View,
        y: View,
        w: View | None,
        *,
        clear: float,
        memory: int,
        cells: int | None,
        room: int | None = None,
        scale: float = 1.0,
        ignore: int = 0,
    ) -> None:
        """Say where everything is, and compile."""
        self._device, self._stream, self._cells, self._weighted = (
            place.device,
            place.stream,
            cells,
            w is not None,
        )
        at = memory + 8 * self.n_rules
        self.args: Args = Args(
            p=p.pointer,
            row_stride=p.strides[0],
            column_stride=p.strides[1],
            y=y.pointer,
            y_stride=y.strides[0],
            w=None if w is None else w.pointer,
            w_stride=0 if w is None else w.strides[0],
            n=self.n_rows,
            step=32,
            parts=self.program.threads_per_row,
            ignore=ignore,
            clear=clear,
            scale=scale,
            limb=1 / self.limb,
            shift=memory,
            totals=at,
            heaviest=at + 8 * self.program.n_quantities,
            partial=memory + 8 * self.n_head if room is None else room,
            blocks=self.blocks,
        )
        self._device.prepare(
            self.program.source,
            self.program.shared,
            *("tally", "finish", "heaviest", "add_to_states"),
        )

    def _launch(self, name: str, blocks: int, threads: int, shared: int = 0) -> None:
        self._device.launch(self.program.source, name, blocks, threads, shared, self._stream, self.args)

    def weigh(self) -> None:
        """Find the heaviest weight, in units of which weights are counted."""
        if self._weighted:
            self._launch("heaviest", 256, 256)

    def probe(self) -> None:
        """Find the mean losses of a few rows, spread over all, as shifts."""
        args, program = self.args, self.program
        args.step = 32 * max(1, args.n // _PROBE)
        args.cells, args.blocks = None, 1
        # Where a warp takes a few rows at a time, one after the other, it takes fewer.
        args.parts = _PROBED_PARTS
        args.probing = 1
        self._launch("tally", 1, program.threads, program.shared)
        args.step, args.blocks, args.parts, args.probing = 32, self.blocks, program.threads_per_row, 0

    def sum(self) -> None:
        """Sum all rows."""
        self.args.cells = self._cells
        self._launch("tally", self.blocks, self.program.threads, self.program.shared)
        self._launch("finish", self.program.n_quantities, 32)

    def add_to(self, states: Sequence[int | None]) -> None:
        """Add what was summed, without shifts, to the five states of a metric, given by address."""
        args = self.args
        args.state_sums, args.state_counts, args.state_squares, *tables = states
        args.state_cells, args.state_squared_cells = tables
        self._launch("add_to_states", max(1, min(_MOST_ADDING, -(-self.program.n_cells // 256))), 256)


class _Run:
    """One pass over forecasts: launches, waits once, reads the sums."""

    def __init__(self, program: Program, read: _Input, rows: Forecasts, n_rules: int, scale: float) -> None:
        self._program, self._rows, self._n_rules = program, rows, n_rules
        self._weighted = read.w is not None
        place = read.place
        self._device, self._stream, self._scale = place.device, place.stream, scale
        self._pass = Pass(program, rows.n_rows, n_rules)
        # The head, the table of counts, the sums of blocks.
        self._n_kept = self._pass.n_head + self._pass.n_cells
        self._memory = place.scratch(8 * (self._n_kept + self._pass.n_room))
        start = self._memory.pointer
        self._cells = start + 8 * self._pass.n_head
        self._pass.bind(
            place,
            read.p,
            read.y,
            read.w,
            clear=rows.unity.clear(rows.n_classes),
            memory=start,
            cells=self._cells if self._pass.n_cells else None,
            room=start + 8 * self._n_kept,
            scale=scale,
        )

    def result(self) -> DeviceSums | None:
        with self._device.current():
            self._device.clear(self._memory.pointer, 8 * self._n_kept, self._stream)
            self._pass.weigh()
            if self._n_rules:
                self._pass.probe()
            found = self._sums()
            if isinstance(found, np.ndarray):
                # The rows that were probed are not like the others. Now the means are known.
                self._device.copy_over(self._memory.pointer, found, self._stream)
                self._device.clear(self._cells, 8 * self._pass.n_cells, self._stream)
                found = self._sums(final=True)
        return None if isinstance(found, np.ndarray) else found

    def _sums(self, *, final: bool = False) -> DeviceSums | Floats | None:
        self._pass.sum()
        late = self._pass.n_cells >= _LARGE_TABLE
        found = np.empty(self._pass.n_head if late else self._n_kept)
        self._device.fetch(found, self._memory.pointer, self._stream)
        head = found[: self._pass.n_head]
        return self._interpret(head, None if late else found[len(head) :].view(np.uint64), final=final)

    def _interpret(self, head: Floats, cells: Any, *, final: bool = False) -> DeviceSums | Floats | None:
        """The sums as a tally has them; better shifts, where these cost digits; None for array calls."""
        program, n = self._program, self._n_rules
        counts, sums = head[n : n + program.n_counts], head[n + program.n_counts : -1]
        shift, number = head[:n], counts.tolist()
        if number[VALUES] or number[BAD_SUMS] or number[TARGETS] or number[WEIGHTS]:
            return None
        if number[ROWS] != self._rows.n_rows:
            raise VeraxError(
                f"Only {number[ROWS]:.0f} of {self._rows.n_rows} rows were scored; this is a bug in verax."
            )
        if self._weighted and not number[POSITIVE]:
            return None
        first, step = (2, 4) if self._weighted else (0, 2)
        of_rules = sums[first : first + n * step].reshape(n, step)
        if not all(map(math.isfinite, of_rules.ravel().tolist())):
            return None
        weight, squared = (sums[0], sums[1]) if self._weighted else (number[ROWS], number[ROWS])
        finite, infinite, n_infinite = self._weights(weight, squared, counts, sums[first + n * step :])
        better = _better_shift(shift, finite[0], of_rules)
        if better is not None and not final:
            return better
        moments = [
            Moments.from_sums(
                finite[i],
                *of_rules[:, 2 * i : 2 * i + 2].T,
                shift=shift,
                infinite=infinite[i],
                count=n_infinite,
            )
            for i in range(2 if self._weighted else 1)
        ]
        tables = self._tables(cells, counts, sums, float(head[-1]))
        return DeviceSums(
            weight=Sum.of([weight]),
            moments=moments[0],
            n_positive=number[POSITIVE if self._weighted else ROWS],
            square_sum=Sum.of([squared]) if self._weighted else None,
            squares=moments[1] if self._weighted else None,
            cells=tables[0] if tables else None,
            square_cells=tables[1] if self._weighted and tables else None,
            n_zero=int(number[ZERO]),
        )

    def _weights(
        self, weight: float, squared: float, counts: Floats, extra: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """By rule: weights and squared weights of finite losses, of infinite ones; how many these are."""
        n, places = self._n_rules, list(self._program.infinite)
        infinite, n_infinite = np.zeros((2, n)), np.zeros(n)
        finite = np.add(infinite, [[weight], [squared]])
        found = counts[7 : 7 + len(places)]
        if any(found.tolist()):
            n_infinite[places] = found
            if not self._weighted:
                finite, infinite = finite - n_infinite, infinite + n_infinite
        if self._weighted:
            extra = extra[: 4 * len(places)].reshape(-1, 4).T
            finite[:, places], infinite[:, places] = extra[:2], extra[2:]
        return finite, infinite, n_infinite

    def _tables(self, cells: Any, counts: Floats, sums: Floats, heaviest: float) -> list[Sum]:
        """The tables of weights and of squared weights, where decisions are counted.

        `cells` are their integers, None where they stay on the GPU.
        """
        count = (2 if self._weighted else 1) if self._pass.n_cells else 0
        if not count:
            return []
        size = self._pass.n_cells // count
        unit = math.ldexp(1.0, math.frexp(heaviest * self._scale)[1])
        only_outcomes = self._program.n_cells == self._program.form.n_classes
        right = sums[-2:] if self._weighted else counts[-1:]
        tables = []
        for which in range(count):
            table = _Table(
                self._device,
                self._memory,
                self._cells + 8 * which * size,
                size,
                self._pass.limb if self._weighted else None,
                (unit,) * (which + 1),
                float(right[which]) if only_outcomes else None,
            )
            part = slice(which * size, (which + 1) * size)
            tables.append(LateSum(table.fetch) if cells is None else Sum.of(table.read(cells[part])))
        return tables


@dataclass(frozen=True)
class _Table:
    """A table of counts on a GPU; it keeps the memory, and nothing else, alive."""

    device: Device
    memory: Scratch
    pointer: int
    size: int
    finer: float | None
    units: tuple[float, ...]
    right: float | None

    def fetch(self) -> Floats:
        cells = np.empty(self.size, np.uint64)
        with self.device.current():
            # The kernels have ended: any stream will do.
            self.device.fetch(cells, self.pointer, 0)
        return self.read(cells)

    def read(self, cells: Any) -> Floats:
        """The weights that integers stand for; they take the place of integers that are counts."""
        if self.finer is None:
            table = cells.view(np.float64)
            np.copyto(table, cells)
        else:
            low, middle, high = cells.reshape(3, -1).astype(np.float64)[::-1]
            table = ((low * self.finer + middle) * self.finer + high) * self.finer
            for unit in self.units:
                table *= unit
        return table if self.right is None else np.append(table, self.right)


def _better_shift(shift: Floats, weight: Floats, of_rules: Floats) -> Floats | None:
    """The mean losses, where sums relative to `shift` lose digits; else None."""
    # Rules are few, and the numbers of one are compared faster than arrays are.
    given, sums = shift.tolist(), of_rules.tolist()
    better = [_better(a, w, *row[:2]) for a, w, row in zip(given, weight.tolist(), sums, strict=True)]
    return np.array(better) if better != given else None


def _better(shift: float, weight: float, first: float, second: float) -> float:
    total = abs(shift * weight + first)
    far = abs(shift) * weight > _FAR * total
    far = far or (first * first > _SPREAD * second * weight and abs(first) > _CLOSE * total)
    return shift + first / weight if far and weight > 0 else shift


def zero_rows(rows: Any, most: int) -> list[int]:
    """The first rows with weight that had given their outcome probability zero."""
    found: list[int] = []
    for batch in rows.batches(max(1, _BLOCK // rows.n_classes)):
        stats = compute(batch, {"log_true"})
        zero: Array = stats.impossible
        zero = zero if batch.weights is None else zero & (batch.weights > 0)
        found += (batch.start + np.flatnonzero(to_host(zero))).tolist()
        if len(found) >= most:
            break
    return found[:most]
