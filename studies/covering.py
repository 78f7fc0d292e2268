"""Do intervals and tests keep their word? Coverage and sizes by simulation, claim by claim.

    python studies/covering.py              # all claims
    python studies/covering.py NAME ...     # those whose names contain one of these texts
    python studies/covering.py --file FILE  # those whose names are the lines of a file
    python studies/covering.py --processes 16
    python studies/covering.py --save       # and keep what was measured in studies/results/coverage.csv
    python studies/covering.py --summary    # what is kept there, a line for each subject and range wanted
    python studies/covering.py --list

Prints a Markdown table: what was measured, its Monte Carlo error, and what is wanted. The tables of
studies/coverage.md come from here. The claims are in studies/covers, a module per subject. A claim is a
function of the number of replications and of the seed that returns a share and its Monte Carlo error; `claim`
registers it with the range that it should lie in.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

# Each module registers the claims of its subject.
from covers import (  # noqa: F401
    calibration_tests,
    cards,
    comparisons,
    decision_curves,
    decomposition,
    estimand,
    few,
    gains,
    horizon,
    judged,
    monitoring,
    mover,
    questions,
    ranks,
    raters,
    rates,
    ratios,
    repeated,
    rows_kept,
    sets,
    shares,
    sites,
    subgroups,
    unforeseen,
)
from covers.claims import CLAIMS, Claim
from measured import COLUMNS, RESULTS, kept, summary
from recording import write


def keep(measured: list[dict[str, str]]) -> None:
    """Write what was measured in place of earlier runs of the same claims, in the order of all claims."""
    rows = kept() | {row["claim"]: row for row in measured}
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in CLAIMS if name in rows)


def chosen(texts: list[str], names: Path | None) -> list[Claim]:
    """The claims whose names contain one of some texts or are lines of a file; all if neither is given."""
    if not texts and names is None:
        return list(CLAIMS.values())
    lines = [line for line in names.read_text().splitlines() if line.strip()] if names else []
    if unknown := [line for line in lines if line not in CLAIMS]:
        raise SystemExit(f"{names}: no claim is called {unknown[0]!r} ({len(unknown)} such lines)")
    named = set(lines)
    return [c for c in CLAIMS.values() if c.name in named or any(text in c.name for text in texts)]


def of_one_design(claims: list[Claim]) -> list[list[str]]:
    """Names of claims, those about the same samples together: they differ in what is measured of a design.

    A name is "subject: what, design". Claims of a design keep their samples, so one process measures them.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for c in claims:
        subject, _, rest = c.name.partition(": ")
        found.setdefault((subject, rest.partition(", ")[2] or rest), []).append(c.name)
    return list(found.values())


def measured(names: list[str], replications: int | None, seed: int) -> list[tuple[dict[str, str], float]]:
    """A row of the table for each claim, and the seconds that it took."""
    rows = []
    for c in map(CLAIMS.__getitem__, names):
        began = time.perf_counter()
        share, error = c.measure(replications or c.replications, seed)
        numbers = [f"{100 * x:.1f}" for x in (share, error)]
        low, high = (f"{100 * x:g}" for x in c.wanted)
        holds = "yes" if c.holds(share, error) else "no"
        row = dict(zip(COLUMNS, (c.name, *numbers, low, high, holds), strict=True))
        rows.append((row, time.perf_counter() - began))
    return rows


def in_processes(
    claims: list[Claim], processes: int, replications: int | None, seed: int
) -> Iterator[tuple[dict[str, str], float]]:
    """The rows of claims, as they are measured."""
    if processes == 1:
        for c in claims:
            yield from measured([c.name], replications, seed)
        return
    # Each process has one thread: NumPy and numba read these when they are imported.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    work = partial(measured, replications=replications, seed=seed)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for rows in pool.imap_unordered(work, of_one_design(claims)):
            yield from rows


def main() -> None:
    """Measure the claims asked for and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="texts that the names of claims contain")
    parser.add_argument("--file", type=Path, help="a file whose lines are names of claims")
    parser.add_argument("--processes", type=int, default=1, help="designs that are simulated at a time")
    parser.add_argument("--replications", type=int, help="instead of those of each claim")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help=f"write to {RESULTS.name}")
    parser.add_argument("--summary", action="store_true", help="only show what is kept")
    parser.add_argument("--list", action="store_true", help="only list the claims")
    options = parser.parse_args()
    if options.summary:
        print(summary())
        return
    claims = chosen(options.names, options.file)
    if options.list:
        print("\n".join(c.name for c in claims))
        return
    print("| claim | measured | Monte Carlo error | wanted | holds | seconds |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    for row, seconds in in_processes(claims, options.processes, options.replications, options.seed):
        name, share, error, low, high, holds = row.values()
        cells = [name, share, error, f"{low} to {high}", holds, f"{seconds:.0f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
        if options.save:
            keep([row])
    if options.save:
        write("coverage", {"summary": summary()})


if __name__ == "__main__":
    main()
