"""Thresholds between code paths: compiled or array calls, exact or in bins, whole or in parts.

The path changes time and memory, and results within the error that they state. Modules read `settings.NAME`
at the time of use, so a change takes effect at once, in all threads. Forked worker processes inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass
class _Settings:
    """All thresholds, with their units and the reasons for their defaults."""

    # ---- compiled loops and threads ------------------------------------------------------------------

    # Whether compiled loops may be used at all. Without numba there are none, whatever this says.
    kernels: bool = True
    # Probabilities. Array calls take a few milliseconds for fewer, and loading a kernel takes longer.
    compiled_from: int = 2**19
    # Probabilities in a part of many: such parts share the time of loading.
    compiled_in_parts_from: int = 2**12
    # Probabilities that array calls score in the time of such a part, however small.
    part_overhead: int = 2**15
    # Probabilities that a process scores by array calls before it loads a kernel: both take about as long.
    compiled_at_once: int = 2**23
    # Logits of a search for the best of a few numbers, which calls a loop again and again.
    search_compiled_from: int = 2**15
    # Calls of a loss in a training loop: array calls have then taken about as long as loading a loop does.
    loss_compiled_after: int = 1000
    # Rows that CatBoost has shown: array calls have then taken about as long as compiling a loop does.
    catboost_compiled_from: int = 2**12
    # Threads that share a computation; None: one for each core that this process may use.
    cores: int | None = None
    # Rows, or bins, from which work pays for threads.
    threads_from: int = 2**16
    # Rows that one thread sums up at a time in a comparison; merged in order, so threads change no number.
    compared_at_once: int = 2**16

    # ---- GPU -----------------------------------------------------------------------------------------

    # Whether kernels compute losses and metrics of PyTorch; None: where the tensors are on a GPU.
    torch_kernels: bool | None = None
    # Numbers of a tensor that NumPy computes with: its calls cost less, but PyTorch has threads.
    torch_host_up_to: int = 2**20
    # Probabilities. The launch of a GPU kernel takes longer than array calls on fewer.
    gpu_from: int = 2**19
    # Rows that tell the rough size of the losses: 32 for each warp of one block.
    gpu_probed: int = 256
    # Counts of a table that is fetched from the GPU when it is looked at: smaller ones come with the sums.
    gpu_table_left_from: int = 2**12

    # ---- exact or in bins, in memory or in parts -----------------------------------------------------

    # Distinct values, or rows, that a summary of parts keeps. It is exact up to here, in tens of megabytes.
    exact_up_to: int = 2**20
    # Bins of a summary of more values; neighbours are joined where there would be more.
    bins_up_to: int = 2**20
    # Rows that are not in memory and are read again, for what one pass cannot give: a short second pass.
    read_again_up_to: int = 2**17
    # Probabilities of a file whose rows are kept in memory by commands, which then read it once. What they
    # print does not depend on it.
    held_up_to: int = 2**23
    # Bytes on disk of a file of unknown length that is held: about the same number of probabilities.
    held_bytes_up_to: int = 2**27
    # Rows of a Parquet file of lists. More are read in batches of columns, several times as fast as records.
    lists_held_up_to: int = 2**17
    # Hashes of rows that a sketch keeps. Fewer distinct rows are counted exactly.
    hashes_kept: int = 2**14
    # Rows that note the cell of their group, to be counted late. Notes of more would take much memory.
    cells_noted_up_to: int = 2**23
    # Rows after which sums of tables move to pairs of doubles, which lose nothing.
    settled_after: int = 2**18
    # Rows that 32-bit counts of tables hold.
    counted_up_to: int = 2**32 - 1
    # Cells of a confusion matrix that is filled: metrics are then the same to the last digit, however many
    # cells occur.
    filled_up_to: int = 2**12
    # Groups that sums by event and cell tell apart; more share slots by their hashes.
    group_slots: int = 512
    # Cells of neighbouring forecasts that outcomes are drawn in, at least.
    fewest_cells: int = 256
    # Entries of lists from which statements are counted in cells: sorting them takes much longer.
    entries_in_cells_from: int = 2**22
    # Cells from which rows are drawn instead of counts of cells, several times as fast.
    rows_drawn_from: int = 2**14
    # Groups that are each left out by the jackknife. Of more, those above a share of the weight are; the
    # influence of the others comes from the derivatives of the metric.
    left_out_up_to: int = 1000
    left_out_share: float = 1e-3
    # Rows that a method is fitted to where the rows are not in memory. Of more, these are drawn at random.
    sampled_rows: int = 100_000
    # Probabilities of a card for which the command line computes calibration without being asked: every
    # class is fitted on its own.
    calibration_up_to: int = 2**21

    # ---- searches of recalibration -------------------------------------------------------------------

    # Rows that a choice among methods is made on, in Python, commands and reports. Of more, these are drawn
    # at random.
    recalibrated_rows: int = 20_000
    # Rows that the curvature is computed from, which scales a search: it need not be exact.
    curvature_rows: int = 2**12
    # Classes from which the curvature pays near the end of a search for one number.
    curvature_classes_from: int = 20
    # Numbers of a matrix whose whole curvature is inverted; of more, that of each class.
    curvature_up_to: int = 160
    # Products that are made at a time, of at least this number of rows: sums are then added less often.
    products_at_once: int = 2**21
    product_rows: int = 128
    # Multiplications of a matrix product that libraries do in one thread: threads wait for each other where
    # processors are busy, and the sums depend on their number.
    product_in_one_thread: int = 2**18

    # ---- parts of files ------------------------------------------------------------------------------

    # Rows of a part, and the probabilities in it: what one thread scores at a time.
    part_rows: int = 2**17
    part_probabilities: int = 2**21
    # Rows of a table of lists in a part, and records: a record takes many times the memory of a row.
    list_part_rows: int = 2**16
    list_part_records: int = 2**12
    # Bytes of text that are parsed at a time: the column types of a block are found together.
    text_block: int = 2**22
    # Bytes of memory of this machine, which an array in a file must not exceed; None: those it reports.
    memory: int | None = None

    # ---- what a file may ask for ---------------------------------------------------------------------
    # More is refused, because a small file must not fill the machine. SECURITY.md states these limits.

    # Columns of a table, and bytes of its first line.
    most_columns: int = 2**16
    longest_header: int = 2**24
    # Bytes of a line of JSON, levels of nesting in it, and cells of a table of lines with different keys.
    longest_line: int = 2**28
    most_levels: int = 256
    most_cells: int = 2**25
    # Bytes of standard input that are kept in a temporary file.
    most_piped: int = 2**34
    # Bytes of a file that is copied from a web server.
    most_fetched: int = 2**36
    # Bytes in memory of saved arrays that are stored in a shorter form.
    most_expanded: int = 2**28
    # Members of an archive, bytes of a member, and bytes above which its compression ratio is limited.
    most_members: int = 2**22
    largest_member: int = 2**30
    large_member: int = 2**24
    most_ratio: int = 200
    # Characters of a cell of a table, and of a line, in a terminal; the rest is cut.
    longest_cell: int = 200
    longest_shown: int = 5000

    # ---- waiting -------------------------------------------------------------------------------------

    # Seconds to wait for another process that has locked a file, which rarely takes more than one.
    lock_wait: float = 30.0
    # Seconds of a store's clock after which a claim is of a process that ended without removing it.
    claim_left: float = 300.0
    # Seconds in which a web server must send anything worth the name.
    remote_wait: float = 30.0
    # Seconds until the command line shows its progress: shorter commands need none.
    progress_after: float = 2.0
    # Bytes of a text after which reading reports how far it has come.
    progress_bytes: int = 2**22

    # ---- budgets of the report -----------------------------------------------------------------------

    # Draws behind calibration tests, of distributions and of lists, and behind bands of reliability curves.
    report_tests: int = 1000
    report_list_tests: int = 1000
    report_bands: int = 200
    # Recalibration methods that are tried: the menu of `recalibrate`, or names; none if empty.
    report_methods: str | tuple[str, ...] = "best"
    # Probabilities of a model that they are tried on: with more, which are of very many classes, none is.
    report_recalibrated: int = 250_000
    # Subgroups of a column that are kept while rows are read in parts.
    report_subgroups: int = 100


settings = _Settings()


@contextmanager
def changed(**values: Any) -> Iterator[None]:
    """Change settings for a while, in all threads.

    >>> with changed(compiled_from=0):
    ...     settings.compiled_from
    0
    >>> settings.compiled_from
    524288
    """
    before = {name: getattr(settings, name) for name in values}
    try:
        for name, value in values.items():
            setattr(settings, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
