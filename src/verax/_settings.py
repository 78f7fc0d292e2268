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
    # Probabilities that a process scores by array calls before it loads a kernel: both take about as long.
    compiled_at_once: int = 2**23
    # Probabilities. The launch of a GPU kernel takes longer than array calls on fewer.
    gpu_from: int = 2**19
    # Threads that share a computation; None: one for each core that this process may use.
    cores: int | None = None

    # ---- exact or in bins, in memory or in parts -----------------------------------------------------

    # Distinct values, or rows, that a summary of parts keeps. It is exact up to here, in tens of megabytes.
    exact_up_to: int = 2**20
    # Bins of a summary of more values; neighbours are joined where there would be more.
    bins_up_to: int = 2**20
    # Rows that are not in memory and are read again, for what one pass cannot give: a short second pass.
    read_again_up_to: int = 2**17
    # Probabilities of a file that are held in memory. A report on this number takes about 0.8 GB, and
    # histograms give the same within small bounds, in a fraction of the time.
    held_up_to: int = 2**23
    # Bytes on disk of a file of unknown length that is held: about the same number of probabilities.
    held_bytes_up_to: int = 2**27
    # Rows of a Parquet file of lists. More are read in batches of columns, several times as fast as records.
    lists_held_up_to: int = 2**17
    # Hashes of rows that a sketch keeps. Fewer distinct rows are counted exactly.
    hashes_kept: int = 2**14
    # Rows that a method is fitted to where the rows are not in memory. Of more, these are drawn at random.
    sampled_rows: int = 100_000
    # Probabilities of a card for which the command line computes calibration without being asked: every
    # class is fitted on its own.
    calibration_up_to: int = 2**21

    # ---- parts of files ------------------------------------------------------------------------------

    # Rows of a part, and the probabilities in it: what one thread scores at a time, in tens of megabytes.
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

    # Seconds to wait for another process that has locked a file: it writes for less than one.
    lock_wait: float = 30.0
    # Seconds until the command line shows its progress: shorter commands need none.
    progress_after: float = 2.0

    # ---- budgets of the report -----------------------------------------------------------------------

    # Draws behind calibration tests, of distributions and of lists, and behind bands of reliability curves.
    report_tests: int = 1000
    report_list_tests: int = 999
    report_bands: int = 200
    # Recalibration methods that are tried: the menu of `recalibrate`.
    report_methods: str | tuple[str, ...] = "best"
    # Probabilities of all models together that they are tried on: some seconds. Of more, rows are drawn.
    report_recalibrated: int = 60_000
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
