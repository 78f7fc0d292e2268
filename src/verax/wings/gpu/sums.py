"""The sums of several rules over rows on a GPU, by one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from verax._settings import settings
from verax.engines.stats import Formula
from verax.engines.sums import LateSum, Moments, Sum
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, move_like, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.outcomes import Outcomes
from verax.wings.gpu import places
from verax.wings.gpu.driver import Args, Device, Room
from verax.wings.gpu.places import Place, Scratch, View, layout
from verax.wings.gpu.printer import (
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
from verax.wings.gpu.printer import SUMS as BAD_SUMS

# Rows that are not in standard form are brought to it at once, up to this many numbers.
_MOST_COPIED = 2**28
# Parts of the rows that tell the rough size of the losses, where rows are read in parts.
_PROBED_PARTS = 2
# Most blocks that add a table of counts to a metric's.
_MOST_ADDING = 1024
VALUE_TYPES = frozenset({"float64", "float32", "float16", "bfloat16"})
OUTCOME_TYPES = frozenset({"int64", "int32", "int16", "int8", "uint8"})
# Numbers of a rule that a kernel has left: the moments, with weights also those of squared weights, a better
# shift, and whether that is needed or sums are not finite.
_ROWS, _WEIGHTED_ROWS, _NOT_FINITE = 8, 14, 2


class DeviceSums(NamedTuple):
    """Sums over rows on a GPU; weights are in the requested unit.

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


class _Input(NamedTuple):
    """The memory of some rows, and the arrays that must stay alive while it is used."""

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
    if rows.n_rows * rows.n_classes < settings.gpu_from:
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
    """The kernel for these rows (`sums_program`), written once."""
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
    types = of_p.dtype, of_y.dtype, None if of_w is None else of_w.dtype
    form = _row_layout(rows.n_classes, types, logits, **layout(of_p))
    return _Input(place, form, of_p, of_y, of_w, (p, y, w))


@lru_cache(maxsize=128)
def _row_layout(
    n_classes: int, types: tuple[str, str, str | None], logits: bool, columns: bool, dense: bool
) -> RowLayout:
    """The layout of rows of these types; the same object again, for quick look-ups."""
    return RowLayout(n_classes, *types, columns=columns, dense=dense, logits=logits)


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
        The head has the shifts, the counts and sums, the moments of the rules, the heaviest weight, and how
        many blocks have ended.
    """

    program: Program
    n_rows: int
    n_rules: int
    args: Args

    def __init__(self, program: Program, n_rows: int, n_rules: int) -> None:
        self.program, self.n_rows, self.n_rules = program, n_rows, n_rules
        self.blocks: int = program.blocks(n_rows)
        self.moments_at: int = n_rules + program.n_quantities
        self.n_head: int = self.moments_at + (_WEIGHTED_ROWS if program.form.weight else _ROWS) * n_rules + 2
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
        """Set the addresses of rows and results, and compile."""
        self._device, self._stream, self._cells, self._weighted = (
            place.device,
            place.stream,
            cells,
            w is not None,
        )
        program = self.program
        at = memory + 8 * self.n_rules
        # One assignment after the other takes a fraction of the time that a call with all of them takes.
        self.args = args = Args()
        args.p, (args.row_stride, args.column_stride) = p.pointer, p.strides
        args.y, args.y_stride = y.pointer, y.strides[0]
        if w is not None:
            args.w, args.w_stride = w.pointer, w.strides[0]
        args.n, args.step, args.parts, args.ignore = self.n_rows, 32, program.threads_per_row, ignore
        args.clear, args.scale, args.limb = clear, scale, 1 / self.limb
        args.shift, args.totals = memory, at
        args.ended = memory + 8 * (self.n_head - 1)
        args.heaviest = args.ended - 8
        args.partial = memory + 8 * self.n_head if room is None else room
        args.blocks = self.blocks
        self._device.prepare(
            self.program.source,
            self.program.shared,
            *("tally", "heaviest", "add_to_states"),
        )

    def _launch(self, name: str, blocks: int, threads: int, shared: int = 0) -> None:
        self._device.launch(self.program.source, name, blocks, threads, shared, self._stream, self.args)

    def weigh(self) -> None:
        """Find the heaviest weight, in units of which weights are counted."""
        if self._weighted:
            self._launch("heaviest", 256, 256)

    def probe(self, zeroed: int = 0, n_zeroed: int = 0) -> None:
        """Find the mean losses of a few rows, spread over all, as shifts; set `n_zeroed` numbers to zero."""
        args, program = self.args, self.program
        args.zeroed, args.n_zeroed = zeroed, n_zeroed
        args.step = 32 * max(1, args.n // settings.gpu_probed)
        args.cells, args.blocks = None, 1
        # Where a warp takes a few rows at a time, one after the other, it takes fewer.
        args.parts = _PROBED_PARTS
        args.probing = 1
        self._launch("tally", 1, program.threads, program.shared)
        args.step, args.blocks, args.parts, args.probing = 32, self.blocks, program.threads_per_row, 0

    def sum(self, result: int | None = None, n_result: int = 0) -> None:
        """Sum all rows; bring the first numbers of the head to where the host reads them."""
        args = self.args
        args.cells, args.result, args.n_result = self._cells, result, n_result
        self._launch("tally", self.blocks, self.program.threads, self.program.shared)

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
        self._read, self._scale = read, scale
        self._weighted = read.w is not None
        self._device, self._stream = read.place.device, read.place.stream
        self._pass = Pass(program, rows.n_rows, n_rules)
        # The head, the table of counts, the sums of blocks.
        self._n_kept = self._pass.n_head + self._pass.n_cells
        self._late = self._pass.n_cells >= settings.gpu_table_left_from

    def result(self) -> DeviceSums | None:
        work, device, stream = self._pass, self._device, self._stream
        size = 8 * (self._n_kept + work.n_room)
        n_answers = work.n_head if self._late else self._n_kept
        with device.current():
            room = device.borrow(8 * n_answers, 0 if self._late else size)
            try:
                self._bind(size, None if self._late or room is None else room.memory)
                # A probe has one block, which sets few numbers to zero in no time.
                small = self._n_rules > 0 and not self._weighted and not self._late
                if not small:
                    device.clear(self._memory, 8 * self._n_kept, stream)
                work.weigh()
                if self._n_rules:
                    work.probe(*(self._cells - 16, 2 + work.n_cells) if small else ())
                sums = self._sums(room, n_answers)
                if isinstance(sums, np.ndarray):
                    # The rows that were probed are not like the others. Now the means are known.
                    device.copy_over(self._memory, sums, stream)
                    device.clear(self._cells, 8 * work.n_cells, stream)
                    sums = self._sums(room, n_answers, final=True)
            finally:
                if room is not None:
                    device.give_back()
        return None if isinstance(sums, np.ndarray) else sums

    def _bind(self, size: int, memory: int | None) -> None:
        """Place the sums in memory lent by the device, or in scratch memory."""
        read, work, rows = self._read, self._pass, self._rows
        self._scratch: Scratch | None = None
        if memory is None:
            self._scratch = read.place.scratch(size)
            memory = self._scratch.pointer
        self._memory: int = memory
        self._cells = self._memory + 8 * work.n_head
        work.bind(
            read.place,
            read.p,
            read.y,
            read.w,
            clear=rows.unity.clear(rows.n_classes),
            memory=memory,
            cells=self._cells if work.n_cells else None,
            room=memory + 8 * self._n_kept,
            scale=self._scale,
        )

    def _sums(self, room: Room | None, n: int, *, final: bool = False) -> DeviceSums | Floats | None:
        if room is None:
            self._pass.sum()
            head = np.empty(n)
            self._device.fetch(head, self._memory, self._stream)
        else:
            self._pass.sum(room.host, n)
            head = self._device.receive(n, self._stream)
        return self._interpret(head, final=final)

    def _interpret(self, head: Floats, *, final: bool) -> DeviceSums | Floats | None:
        """The sums as a tally has them; better shifts, where these cost digits; None for array calls."""
        program, n, weighted, work = self._program, self._n_rules, self._weighted, self._pass
        numbers: list[float] = head[n : work.moments_at].tolist()
        counts, sums = numbers[: program.n_counts], numbers[program.n_counts :]
        if counts[VALUES] or counts[BAD_SUMS] or counts[TARGETS] or counts[WEIGHTS]:
            return None
        if counts[ROWS] != self._rows.n_rows:
            raise VeraxError(
                f"Only {counts[ROWS]:.0f} of {self._rows.n_rows} rows were scored; this is a bug in verax."
            )
        if weighted and not counts[POSITIVE]:
            return None
        shape = _WEIGHTED_ROWS if weighted else _ROWS, n
        *rows, better, verdict = head[work.moments_at : work.n_head - 2].reshape(shape)
        worst = max(verdict.tolist(), default=0)
        if worst == _NOT_FINITE:
            return None
        if worst and not final:
            return better
        at = n + program.n_counts if weighted else n + ROWS
        moments = [_moments(rows[i : i + 6]) for i in range(0, len(rows), 6)]
        heaviest = float(head[work.n_head - 2])
        cells = head[work.n_head :].view(np.uint64)
        tables = self._tables(cells, sums[-2:] if weighted else counts[-1:], heaviest)
        return DeviceSums(
            weight=Sum.once(head[at : at + 1]),
            moments=moments[0],
            n_positive=counts[POSITIVE if weighted else ROWS],
            square_sum=Sum.once(head[at + 1 : at + 2]) if weighted else None,
            squares=moments[1] if weighted else None,
            cells=tables[0] if tables else None,
            square_cells=tables[1] if weighted and tables else None,
            n_zero=int(counts[ZERO]),
        )

    def _tables(self, cells: Any, right: list[float], heaviest: float) -> list[Sum]:
        """The tables of weights and of squared weights, where decisions are counted.

        `cells` are their integers, unless these stay on the GPU; `right` are weights of correct decisions.
        """
        count = (2 if self._weighted else 1) if self._pass.n_cells else 0
        if not count:
            return []
        size = self._pass.n_cells // count
        unit = math.ldexp(1.0, math.frexp(heaviest * self._scale)[1])
        only_outcomes = self._program.n_cells == self._program.form.n_classes
        tables = []
        for which in range(count):
            table = _Table(
                self._device,
                self._scratch,
                self._cells + 8 * which * size,
                size,
                self._pass.limb if self._weighted else None,
                (unit,) * (which + 1),
                right[which] if only_outcomes else None,
            )
            part = slice(which * size, (which + 1) * size)
            tables.append(LateSum(table.fetch) if self._late else Sum.once(table.read(cells[part])))
        return tables


class _Table(NamedTuple):
    """A table of counts on a GPU; it keeps the memory, and nothing else, alive."""

    device: Device
    memory: Scratch | None
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


def _moments(rows: Sequence[Floats]) -> Moments:
    """Moments from the results of a kernel (`settle_moments`)."""
    weight, high, low, m2, infinite, count = rows
    none = np.zeros(len(weight))
    return Moments(Sum(weight, none), Sum(high, low), m2, Sum(infinite, none), count)
