"""Which recalibration method is best? A leaderboard over data sets, models and calibration sets.

    python studies/recalibration_board.py [folder with the data sets]
    python studies/recalibration_board.py --again verax      # measure methods with this name again

OMP_NUM_THREADS=1 makes the CPU seconds of all packages comparable.

Prints the tables of studies/recalibration.md. Forecasts and losses are kept in build/recalibration, so that a
method can be measured again without training. The other packages are probmetrics, splinecalib, netcal,
betacal and venn-abers; those that are not installed are left out, by name. The data are not part of the
repository.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from boards.experiments import MANY, Experiment, experiments
from boards.measuring import RULES, Ledger, Outcome
from boards.methods import METHODS, Method
from boards.standings import GROUPS, overview, standings, table

HERE = Path(__file__).parent


def main() -> None:
    """Measure what has not been measured, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--cache", type=Path, default=HERE.parent / "build" / "recalibration")
    parser.add_argument("--again", action="append", default=[], help="measure methods with this name again")
    parser.add_argument("--only", default="", help="measure only methods with this text in their names")
    parser.add_argument("--without", help="measure no methods with this text in their names")
    parser.add_argument("--tables", action="store_true", help="only print what is known")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.cache / "losses.jsonl")
    for text in options.again:
        ledger.forget(text)
    methods = [method for method in METHODS if method.installed]
    print("Not installed:", ", ".join(m.name for m in METHODS if not m.installed) or "none")
    if not options.tables:
        wanted = [m for m in methods if options.only in m.name]
        wanted = [m for m in wanted if not options.without or options.without not in m.name]
        ledger.complete(in_turn(experiments(options.data, options.cache)), wanted)
    report(ledger)


def in_turn(given: Iterable[Experiment]) -> list[Experiment]:
    """One experiment of each data set, then another of each; those that take longest come last.

    A run that is broken off has then measured something of every kind.
    """
    seen: Counter[str] = Counter()
    found = []
    for each in given:
        found.append((each.n_classes > MANY, seen[each.data], each))
        seen[each.data] += 1
    return [each for _, _, each in sorted(found, key=lambda item: item[:2])]


def _complete(outcomes: list[Outcome], methods: list[Method]) -> list[Outcome]:
    """Outcomes of the experiments in which all methods that fit have been measured."""
    missing = {
        o.experiment: {m.name for m in methods if m.fits(o.n_classes, ordered=o.ordered)} for o in outcomes
    }
    for o in outcomes:
        missing[o.experiment].discard(o.method)
    return [o for o in outcomes if not missing[o.experiment]]


def report(ledger: Ledger) -> None:
    """Print all tables."""
    known = [method for method in METHODS if method.installed]
    field, own = ({method.name for method in known if method.own is single} for single in (False, True))
    for shown, title in ((field, "The field"), (own, "Single methods of verax, against the field")):
        outcomes = _complete(list(ledger.outcomes.values()), [m for m in known if m.name in field | shown])
        n_data = len({o.data for o in outcomes})
        print(f"\n## {title}\n{len({o.experiment for o in outcomes})} experiments with {n_data} data sets")
        if not outcomes:
            continue
        print(overview(outcomes, field, sorted(shown)))
        for rule in RULES:
            for group in GROUPS:
                if rule != "rps" or group.name == "ordered classes":
                    print(table(standings(outcomes, rule, group, field, sorted(shown)), rule, group))
    for method, failed in ledger.failures.items():
        print(f"\n{method} failed in {len(failed)} experiments, for example {failed[0]}")


if __name__ == "__main__":
    main()
