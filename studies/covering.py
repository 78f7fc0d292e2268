"""Do intervals and tests keep their word? Coverage and sizes by simulation, claim by claim.

    python studies/covering.py              # all claims
    python studies/covering.py NAME ...     # those whose names contain one of these texts
    python studies/covering.py --list

Prints a Markdown table: what was measured, its Monte Carlo error, and what is wanted. The tables of
studies/coverage.md come from here. The claims are in studies/covers, a module per subject. A claim is a
function of the number of replications and of the seed that returns a share and its Monte Carlo error; `claim`
registers it with the range that it should lie in.
"""

from __future__ import annotations

import argparse
import time

# Each module registers the claims of its subject.
from covers import (  # noqa: F401
    calibration_tests,
    cards,
    comparisons,
    decision_curves,
    decomposition,
    gains,
    questions,
    ranks,
    raters,
    rates,
    repeated,
    rows_kept,
    sets,
)
from covers.claims import CLAIMS


def main() -> None:
    """Measure the claims asked for and print them as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="texts that the names of claims contain")
    parser.add_argument("--replications", type=int, help="instead of those of each claim")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="only list the claims")
    options = parser.parse_args()
    chosen = [c for c in CLAIMS.values() if not options.names or any(t in c.name for t in options.names)]
    if options.list:
        print("\n".join(c.name for c in chosen))
        return
    print("| claim | measured | Monte Carlo error | wanted | holds | seconds |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    for c in chosen:
        began = time.perf_counter()
        share, error = c.measure(options.replications or c.replications, options.seed)
        low, high = c.wanted
        cells = [
            c.name,
            f"{100 * share:.1f}",
            f"{100 * error:.1f}",
            f"{100 * low:g} to {100 * high:g}",
            "yes" if c.holds(share, error) else "no",
            f"{time.perf_counter() - began:.0f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
