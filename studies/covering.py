"""Do intervals and tests keep their word? Coverage and sizes by simulation, claim by claim.

    python studies/covering.py              # all claims
    python studies/covering.py NAME ...     # those whose names contain one of these texts
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
import time

# Each module registers the claims of its subject.
from covers import (  # noqa: F401
    calibration_tests,
    cards,
    comparisons,
    decision_curves,
    decomposition,
    few,
    gains,
    monitoring,
    questions,
    ranks,
    raters,
    rates,
    repeated,
    rows_kept,
    sets,
    shares,
    unforeseen,
)
from covers.claims import CLAIMS
from measured import COLUMNS, RESULTS, kept, summary
from recording import write


def keep(measured: list[dict[str, str]]) -> None:
    """Write what was measured in place of earlier runs of the same claims, in the order of all claims."""
    rows = kept() | {row["claim"]: row for row in measured}
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in CLAIMS if name in rows)


def main() -> None:
    """Measure the claims asked for and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="texts that the names of claims contain")
    parser.add_argument("--replications", type=int, help="instead of those of each claim")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help=f"write to {RESULTS.name}")
    parser.add_argument("--summary", action="store_true", help="only show what is kept")
    parser.add_argument("--list", action="store_true", help="only list the claims")
    options = parser.parse_args()
    chosen = [c for c in CLAIMS.values() if not options.names or any(t in c.name for t in options.names)]
    if options.summary:
        print(summary())
        return
    if options.list:
        print("\n".join(c.name for c in chosen))
        return
    print("| claim | measured | Monte Carlo error | wanted | holds | seconds |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    measured = []
    for c in chosen:
        began = time.perf_counter()
        share, error = c.measure(options.replications or c.replications, options.seed)
        numbers = [f"{100 * x:.1f}" for x in (share, error)]
        low, high = (f"{100 * x:g}" for x in c.wanted)
        holds = "yes" if c.holds(share, error) else "no"
        measured.append(dict(zip(COLUMNS, (c.name, *numbers, low, high, holds), strict=True)))
        cells = [c.name, *numbers, f"{low} to {high}", holds, f"{time.perf_counter() - began:.0f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    if options.save:
        keep(measured)
        write("coverage", {"summary": summary()})


if __name__ == "__main__":
    main()
