"""From traces of formulas to the CUDA C++ text of a kernel, with its geometry and the places of its sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from verax.engines.stats import Formula
from verax.engines.tracing import Trace, differentiate, record
from verax.kernels.statistics import MODE

# How each operation is written in C++.
_TEXTS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "log": "log_of({})",
    "sqrt": "sqrt_of({})",
    "exp": "exp_of({})",
    "abs": "abs_of({})",
    "maximum": "maximum({}, {})",
    "minimum": "minimum({}, {})",
    "sign": "sign_of({})",
    "pick": "({} >= {} ? {} : {})",
}
# How some are written where the second operand is a constant.
_WITH_NUMBER = {"maximum": "larger({}, {})", "minimum": "smaller({}, {})"}
# How some are written where they may not branch: `sure` becomes false where the result may be wrong.
_QUICK = {name: f"quick_{name}({{}}, sure)" for name in ("log", "sqrt", "exp")}
_QUICK["div"] = "quick_div({}, {}, sure)"
# Results of these are finite if their operands are, unless they overflow, which shows in the sums.
_TAME = frozenset({"add", "sub", "mul", "neg", "sqrt", "abs", "maximum", "minimum", "sign", "pick"})
_UNBOUNDED = frozenset({"log_true", "cdf_log"})

_VALUES = {"float64": (0, "double"), "float32": (1, "float"), "float16": (2, "unsigned short")}
_VALUES["bfloat16"] = 3, "unsigned short"
_INTEGERS = {"int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int"}
_INTEGERS["int64"] = "long long"

# Up to this many classes a thread keeps a whole row in registers.
_IN_REGISTERS = 8
# Most classes of a thread before a row gets more threads; most bytes of a row that one thread walks over.
_PER_THREAD, _WALKED = 33, 432
# Bytes of shared memory for the tiles of a block, where several warps fit, and the most that one may have.
_TILES, _LARGEST_TILE = 108 * 2**10, 200 * 2**10
# A table of counts up to this size is kept in shared memory.
_TABLE = 8 * 2**10
# What all blocks of a multiprocessor may have together, and what each takes beside what it asks for.
_SHARED, _RESERVED = 227 * 2**10, 2**10
# The threads of a warp pool their sums where at least this many work on a row.
_POOLED = 16
# Bytes of a row's summary (`struct Summary`), and of one that is split at the outcome (`struct Brief`).
_SUMMARY, _BRIEF = 112, 72
# Grids are no larger than this, whatever the GPU, so that results do not depend on it: eight blocks for each
# multiprocessor of an H100 or, where each takes many turns, the number it runs at a time.
_BLOCKS, _MULTIPROCESSORS = 1056, 132
# Bytes of the table of logarithms.
_LOGS = 128 * 16

# The texts of kernels, in this order.
_FILES = ("numbers", "rows", "quick", "walks", "sides", "moments", "sums", "losses")

# The integer counts, in this order.
ROWS, ZERO, VALUES, SUMS, TARGETS, WEIGHTS, POSITIVE = range(7)


@dataclass(frozen=True)
class RowLayout:
    """Types and memory layout of rows.

    Attributes
    ----------
    n_classes : int
        The number of classes K.
    value, outcome, weight : str
        The types of forecasts, outcomes and weights; `weight` is None without weights.
    dense : bool
        Whether rows follow each other without gaps.
    columns : bool
        Whether the values of a row are strided.
    logits : bool
        Whether forecasts are logits.
    ignore : bool
        Whether rows with a certain outcome are left out.
    classed : bool
        Whether outcome classes have weights.
    computed : str
        The type that is computed in.
    """

    n_classes: int
    value: str
    outcome: str
    weight: str | None = None
    dense: bool = True
    columns: bool = False
    logits: bool = False
    ignore: bool = False
    classed: bool = False
    computed: str = "float64"


@dataclass(frozen=True)
class Program:
    """The text of a kernel and how to launch it.

    Attributes
    ----------
    source : str
        CUDA C++.
    form : RowLayout
        What rows it reads.
    rows_per_block : int
        How many rows a block works on at a time.
    threads, shared : int
        Threads of a block, and its bytes of shared memory.
    n_counts, n_sums : int
        How many counts and sums there are.
    n_cells, n_limbs : int
        Cells of the table of counts, and integers per cell; the table is in global memory afterwards.
    infinite : tuple of int
        The rules whose loss may be infinite.
    threads_per_row : int
        How many threads work on a row.
    most_blocks : int
        The most blocks of a grid.
    """

    source: str
    form: RowLayout
    rows_per_block: int
    threads: int
    shared: int
    n_counts: int = 0
    n_sums: int = 0
    n_cells: int = 0
    n_limbs: int = 0
    infinite: tuple[int, ...] = ()
    threads_per_row: int = 1
    most_blocks: int = _BLOCKS

    @property
    def n_quantities(self) -> int:
        return self.n_counts + self.n_sums

    def blocks(self, n_rows: int) -> int:
        """The size of the grid, which depends on the rows alone."""
        return max(1, min(self.most_blocks, -(-n_rows // self.rows_per_block)))


@dataclass(frozen=True)
class _Geometry:
    registers: bool
    threads_per_row: int
    classes_per_thread: int
    warps: int
    tiles: int
    walks: bool = False
    split: bool = False

    @classmethod
    def of(cls, n_classes: int, bytes_per_value: int, arrays: int) -> _Geometry | None:
        """The division of K classes among threads; None where a row is too long for shared memory."""
        if n_classes <= _IN_REGISTERS:
            return cls(True, 1, n_classes, 8, 0)
        threads = 1
        while threads < 32 and -(-n_classes // threads) > _PER_THREAD:
            threads *= 2
        # An odd number, so that the threads of a warp read different banks of shared memory.
        classes = -(-n_classes // threads) | 1
        return cls._of_tiles(threads, classes, 32 * classes * bytes_per_value * arrays)

    @classmethod
    def of_probabilities(cls, n_classes: int, bytes_per_value: int) -> _Geometry | None:
        """The division of rows of K contiguous probabilities among threads."""
        if n_classes * bytes_per_value > _WALKED:
            return cls.of_sides(n_classes, bytes_per_value)
        # An odd number of those that are read at once, so that threads read different banks.
        width = 16 // bytes_per_value
        classes = width * (-(-n_classes // width) | 1)
        return cls._of_tiles(1, classes, 32 * classes * bytes_per_value, walks=True)

    @classmethod
    def of_sides(cls, n_classes: int, bytes_per_value: int) -> _Geometry | None:
        """The division of the K - 1 classes beside the outcome among threads (`sides.cu`)."""
        threads = 4
        while threads < 32 and -(-(n_classes - 1) // (threads - 1)) > _PER_THREAD:
            threads *= 2
        # One thread less has room for all classes, because on each side one may have room left.
        classes = -(-(n_classes - 1) // (threads - 1)) | 1
        rows = 32 // threads
        places = threads * classes + (32 if rows > 1 else 1)
        return cls._of_tiles(threads, classes, rows * places * bytes_per_value, split=True)

    @classmethod
    def _of_tiles(
        cls, threads: int, classes: int, tile: int, *, walks: bool = False, split: bool = False
    ) -> _Geometry | None:
        if tile > _LARGEST_TILE:
            return None
        warps = max(w for w in (8, 4, 2, 1) if w == 1 or w * tile <= _TILES)
        return cls(False, threads, classes, warps, -(-warps * tile // 16) * 16, walks, split)


def sums_program(rules: Sequence[Formula], form: RowLayout, *, decisions: bool, most: int) -> Program | None:
    """The kernel that sums the losses of `rules` and counts decisions; None where there is none.

    `most` is the largest number of classes for which a table of outcomes and decisions is kept; beyond, only
    outcomes and correct decisions are counted.
    """
    trace = record(rules, form.n_classes, log_true=form.logits)
    # Probabilities are kept as they came, which takes less memory; those of logits are computed.
    narrow = not form.logits
    size = _size_of(form.value if narrow else form.computed)
    geometry = _Geometry.of(form.n_classes, size, 1)
    if narrow and not form.columns and form.n_classes > _IN_REGISTERS:
        geometry = _Geometry.of_probabilities(form.n_classes, size) or geometry
    if trace is None or geometry is None:
        return None
    k, weighted = form.n_classes, form.weight is not None
    infinite = _may_be_infinite(trace)
    n_limbs = 6 if weighted else 1
    n_cells = 0 if not decisions else k * k if k <= most else k
    table_bytes = n_cells * n_limbs * (8 if weighted else 4)
    table = 0 if not decisions else 3 if k > most else 1 if table_bytes <= _TABLE else 2
    n_counts = 7 + len(infinite) + (table == 3 and not weighted)
    first, step = (2, 4) if weighted else (0, 2)
    n_sums = first + step * len(trace.losses) + (4 * len(infinite) if weighted else 0)
    n_sums += 2 * (table == 3 and weighted)
    # Tiles and, in their place at last, the sums of the warps; then summaries of rows, shifts, the table.
    summaries_at = max(geometry.tiles, geometry.warps * (n_counts + n_sums) * 8)
    several = geometry.threads_per_row > 1
    shift_at = summaries_at + several * geometry.warps * 32 * (_BRIEF if geometry.split else _SUMMARY)
    logs_at = -(-(shift_at + 8 * len(trace.losses)) // 16) * 16
    rare_at = logs_at + _LOGS
    table_at = rare_at + -(-4 * n_counts // 8) * 8
    shared = table_at + (table_bytes if table == 1 else 0)
    # Where a warp works on a row long enough, its threads pool their sums.
    pooled = not weighted and n_sums <= 32 and geometry.split and geometry.threads_per_row >= _POOLED
    # More blocks at a time hide more waiting, unless their sums do not fit the registers.
    spare = pooled and size <= 4 and 3 * (shared + _RESERVED) <= _SHARED
    per_sm = 1 if weighted else 3 if (geometry.registers and n_sums <= 12) or spare else 2
    settings = {
        "SUMMARIES_AT": summaries_at,
        "BRIEF": _BRIEF,
        "SHIFT_AT": shift_at,
        "LOGS_AT": logs_at,
        "RARE_AT": rare_at,
        "TALLY": 1,
        "RULES": len(trace.losses),
        "COUNTS": n_counts,
        "SUMS": n_sums,
        "FIRST_SUM": first,
        "SUM_STEP": step,
        "TABLE": table,
        "TABLE_AT": table_at,
        "BLOCKS_PER_SM": per_sm,
        "POOLED": int(pooled),
        "NARROW": int(narrow),
    }
    texts = [
        _formulas(trace),
        _quick_formulas(trace),
        _add_finite(trace, infinite, weighted, first, step),
        _accumulate(trace, infinite, weighted, pooled, first, step),
        _infinite_at(infinite),
    ]
    source = _source(form, geometry, settings, _needs(trace, decisions), texts)
    return Program(
        source,
        form,
        geometry.warps * 32,
        32 * geometry.warps,
        shared,
        n_counts,
        n_sums,
        n_cells,
        n_limbs,
        infinite,
        geometry.threads_per_row,
        _BLOCKS if weighted or (several and not pooled) else per_sm * _MULTIPROCESSORS,
    )


def loss_program(rule: Formula, form: RowLayout, *, by_row: bool) -> Program | None:
    """The kernel for the loss of each row of logits, or for their weighted sum (`forward`, `settle`)."""
    trace = record([rule], form.n_classes, log_true=form.logits)
    geometry = _Geometry.of(form.n_classes, _size_of(form.computed), 1)
    if trace is None or geometry is None:
        return None
    settings = {
        "FORWARD": 1,
        "EACH": int(by_row),
        "RULES": 1,
        "SUMS": 2,
        "HELD": int(_keeps_row(form, geometry)),
    }
    source = _source(form, geometry, settings, _needs(trace, False), [_formulas(trace)])
    shared = max(geometry.tiles, geometry.warps * 2 * 8)
    rows = geometry.warps * 32 // geometry.threads_per_row
    return Program(source, form, rows, 32 * geometry.warps, shared, 0, 2)


def gradient_program(rule: Formula, form: RowLayout, *, with_loss: bool = False) -> Program | None:
    """The kernel that computes the gradient of the loss in logits (`backward`).

    With `with_loss` it computes the loss, too (`settle`), and the gradient is multiplied later by what comes
    from above (`rescale`).
    """
    trace = record([rule], form.n_classes, log_true=form.logits)
    if trace is None:
        return None
    whole, slopes = differentiate(trace)
    geometry = _Geometry.of(form.n_classes, _size_of(form.computed), 1)
    if "cdf_log" in trace.statistics and not _keeps_row(form, geometry):
        geometry = _Geometry.of(form.n_classes, _size_of(form.computed), 2)
    if geometry is None:
        return None
    needs = _needs(trace, False)
    needs["NEEDS_OTHERS"] = int(bool({"p_true", "log_true"} & set(slopes)))
    needs["NEEDS_HALVES"] = 1
    needs["NEEDS_MODES"] |= "top" in slopes
    has = {f"HAS_{name.upper()}": int(name in slopes) for name in _DIRECTIONS}
    has["HAS_LOG_TRUE"] = needs["NEEDS_OTHERS"]
    settings = {"BACKWARD": 1, "WITH_LOSS": int(with_loss), "SUMS": 2 * with_loss, "RULES": 1}
    settings["HELD"] = int(_keeps_row(form, geometry))
    texts = [_slopes(whole, slopes), *([_formulas(trace)] if with_loss else [])]
    source = _source(form, geometry, settings | has, needs, texts)
    rows = geometry.warps * 32 // geometry.threads_per_row
    shared = max(geometry.tiles, geometry.warps * 2 * 8)
    return Program(source, form, rows, 32 * geometry.warps, shared, 0, 2 * with_loss)


def _keeps_row(form: RowLayout, geometry: _Geometry | None) -> bool:
    """Whether a thread keeps its share of a row of logits, with the results, in registers."""
    if geometry is None or geometry.registers:
        return False
    return form.computed == "float32" and geometry.classes_per_thread <= _PER_THREAD


# ---- pieces of text ----------------------------------------------------------------------------


def _size_of(dtype: str) -> int:
    return 8 if dtype == "float64" else 4


def _may_be_infinite(trace: Trace) -> tuple[int, ...]:
    """The rules whose loss may be infinite."""
    wild = set(_UNBOUNDED)
    for step in trace.steps:
        if step.operation not in _TAME or wild & set(step.operands):
            wild.add(step.name)
    return tuple(r for r, loss in enumerate(trace.losses) if loss in wild)


def _needs(trace: Trace, decisions: bool) -> dict[str, int]:
    read = set(trace.statistics)
    return {
        "NEEDS_REST": int("rest_sq" in read),
        "NEEDS_MODES": int(decisions or bool(read & MODE)),
        "NEEDS_CDF": int(bool(read & {"cdf_l1", "cdf_l2"})),
        "NEEDS_CDF_LOG": int("cdf_log" in read),
        "NEEDS_OTHERS": 0,
        "NEEDS_HALVES": 0,
    }


def _source(
    form: RowLayout,
    geometry: _Geometry,
    settings: dict[str, int],
    needs: dict[str, int],
    texts: Sequence[str],
) -> str:
    code, value = _VALUES[form.value]
    real = "double" if form.computed == "float64" else "float"
    defines = {
        "TALLY": 0,
        "FORWARD": 0,
        "BACKWARD": 0,
        "WITH_LOSS": 0,
        "NARROW": 0,
        "POOLED": 0,
        "HELD": 0,
        "EACH": 0,
        "COUNTS": 0,
        "SUMS": 0,
        "TABLE": 0,
        "K": form.n_classes,
        "S": geometry.threads_per_row,
        "E": geometry.classes_per_thread,
        "WARPS": geometry.warps,
        "REGISTERS": int(geometry.registers),
        "WALKS": int(geometry.walks),
        "SPLIT": int(geometry.split),
        "DENSE": int(form.dense),
        "COLUMNS": int(form.columns),
        "LOGITS": int(form.logits),
        "WEIGHTED": int(form.weight is not None),
        "CLASSED": int(form.classed),
        "IGNORE": int(form.ignore),
        "VALUE": code,
        "PLAIN": 2.0 ** -_bits_per_factor(geometry, real),
    }
    lines = [f"#define {name} {number}" for name, number in (defines | needs | settings).items()]
    lines += [
        f"typedef {real} real;",
        f"typedef {value} value_t;",
        f"typedef {_INTEGERS[form.outcome]} outcome_t;",
    ]
    lines += [f"typedef {'float' if form.weight == 'float32' else 'double'} weight_t;", ""]
    numbers, *rest = (_text(name) for name in _FILES)
    return "\n".join([*lines, numbers, *texts, *rest])


def _bits_per_factor(geometry: _Geometry, real: str) -> float:
    """Smallest factors, as a power of 1/2, of a product that is not guarded against underflow (`PLAIN`)."""
    if geometry.walks:
        return 200.0
    if geometry.registers or geometry.split:
        return (900 if real == "double" else 100) / (geometry.classes_per_thread + 1)
    return 100.0 if real == "double" else 15.0


@cache
def _text(name: str) -> str:
    return files("verax.wings.gpu").joinpath(f"{name}.cu").read_text()


def _steps(trace: Trace, floor: str = "{}", texts: Mapping[str, str] = _TEXTS) -> list[str]:
    """The statements that compute the steps of a trace; statistics are read through `floor`."""
    lines = [f"    const real {name} = {floor.format(f'stats.{name}')};" for name in trace.statistics]
    lines += [f"    const real c{i} = {_literal(value)};" for i, value in enumerate(trace.constants)]
    numbers = {f"c{i}" for i, value in enumerate(trace.constants) if not math.isnan(value)}
    for step in trace.steps:
        text = texts[step.operation]
        if step.operation in _WITH_NUMBER and step.operands[1] in numbers:
            text = _WITH_NUMBER[step.operation]
        lines += [f"    const real {step.name} = {text.format(*step.operands)};"]
    return lines


def _literal(value: float) -> str:
    if math.isnan(value):
        return "(real)NOT_A_NUMBER"
    return f"(real){value!r}" if math.isfinite(value) else f"(real){'-' if value < 0 else ''}INFINITE"


def _formulas(trace: Trace) -> str:
    lines = ["__device__ inline void formulas(const Stats& stats, real* losses) {", *_steps(trace)]
    lines += [f"    losses[{r}] = {loss};" for r, loss in enumerate(trace.losses)]
    return "\n".join([*lines, "}"])


def _quick_formulas(trace: Trace) -> str:
    """The formulas without branches; rows for which `sure` becomes false are computed again with care."""
    lines = ["__device__ inline void quick_formulas(const Stats& stats, real* losses, bool& sure) {"]
    lines += _steps(trace, texts=_TEXTS | _QUICK)
    lines += [f"    losses[{r}] = {loss};" for r, loss in enumerate(trace.losses)]
    return "\n".join([*lines, "}"])


def _add_finite(trace: Trace, infinite: tuple[int, ...], weighted: bool, first: int, step: int) -> str:
    """The statements that add the losses of a row, none of which is infinite."""
    lines = ["__device__ inline void add_finite("]
    lines += ["    const real* losses, double w, const double* shift, double* sums) {"]
    lines += _of_weights(weighted)
    lines += [f"    {{ {_add_loss(r, first + step * r, weighted)} }}" for r in range(len(trace.losses))]
    extra = first + step * len(trace.losses)
    for place in range(len(infinite) if weighted else 0):
        lines += [f"    sums[{extra + 4 * place}] += w; sums[{extra + 4 * place + 1}] += v;"]
    return "\n".join([*lines, "}"])


def _of_weights(weighted: bool) -> list[str]:
    """The statements that add a weight and its square."""
    return ["    const double v = w * w;", "    sums[0] += w;", "    sums[1] += v;"] if weighted else []


def _pooled(trace: Trace, infinite: tuple[int, ...]) -> list[str]:
    """The statements that add the losses of the rows of a warp to its sums."""
    lines = []
    for r in range(len(trace.losses)):
        counted = "counted"
        if r in infinite:
            lines += [f"    const bool finite{r} = losses[{r}] != INF;"]
            lines += [f"    if (counted && !finite{r}) atomicAdd(rare + {7 + infinite.index(r)}, 1);"]
            counted = f"counted && finite{r}"
        lines += [f"    const double d{r} = {counted} ? (double)losses[{r}] - shift[{r}] : 0.0;"]
        lines += [f"    pool(sums, {2 * r}, d{r}); pool(sums, {2 * r + 1}, d{r} * d{r});"]
    return lines


def _accumulate(
    trace: Trace, infinite: tuple[int, ...], weighted: bool, pooled: bool, first: int, step: int
) -> str:
    lines = [
        "__device__ inline void accumulate(",
        "    const real* losses, double w, bool counted, const double* shift, int* rare, double* sums) {",
    ]
    if pooled:
        return "\n".join([*lines, *_pooled(trace, infinite), "}"])
    lines += _of_weights(weighted)
    n = len(trace.losses)
    extra = first + step * n
    finite = {r: _add_loss(r, first + step * r, weighted) for r in range(n)}
    other = {}
    for place, r in enumerate(infinite):
        other[r] = f"atomicAdd(rare + {7 + place}, w > 0);"
        if weighted:
            e = extra + 4 * place
            finite[r] += f" sums[{e}] += w; sums[{e + 1}] += v;"
            other[r] += f" sums[{e + 2}] += w; sums[{e + 3}] += v;"
    for r, text in finite.items():
        choice = f"if (losses[{r}] == INF) {{ {other[r]} }} else " if r in infinite else ""
        lines += [f"    {choice}{{ {text} }}"]
    return "\n".join([*lines, "}"])


def _infinite_at(infinite: tuple[int, ...]) -> str:
    """The place of a rule among those whose loss may be infinite, or -1."""
    choice = "".join(f"r == {r} ? {place} : " for place, r in enumerate(infinite))
    return f"__device__ inline int infinite_at(int r) {{ return {choice}-1; }}"


def _add_loss(r: int, at: int, weighted: bool) -> str:
    """Add a finite loss, relative to its shift, to its sums."""
    text = f"const double d = (double)losses[{r}] - shift[{r}];"
    if not weighted:
        return text + f" sums[{at}] += d; sums[{at + 1}] = fma(d, d, sums[{at + 1}]);"
    text += f" const double x = w * d, u = v * d; sums[{at}] += x; sums[{at + 2}] += u;"
    return text + f" sums[{at + 1}] = fma(x, d, sums[{at + 1}]); sums[{at + 3}] = fma(u, d, sums[{at + 3}]);"


# The directions in which a row of logits moves the statistics.
_DIRECTIONS = ("log_true", "rest_sq", "cdf_l2", "cdf_l1", "cdf_log", "top")
# A statistic below this counts as this: its logarithm and its root then have finite derivatives.
_FLOOR = "({0} < TINY ? TINY : {0})"


def _slopes(trace: Trace, slopes: dict[str, str]) -> str:
    """The partial derivatives; the probability of the outcome moves in the direction of its logarithm."""
    lines = ["#define TINY ((real)(sizeof(real) == 8 ? 1e-300 : 1e-37))"]
    lines += ["__device__ inline void slopes(const Stats& stats, Partials& d) {"]
    for line in _steps(trace, _FLOOR):
        lines += [line.replace(_FLOOR.format("stats.log_true"), "stats.log_true")]
    terms = [slopes[name] for name in ("log_true",) if name in slopes]
    terms += [f"{slopes['p_true']} * p_true"] if "p_true" in slopes else []
    lines += [f"    d.log_true = {' + '.join(terms)};"] if terms else []
    lines += [f"    d.{name} = {slopes[name]};" for name in _DIRECTIONS[1:] if name in slopes]
    return "\n".join([*lines, "}"])
