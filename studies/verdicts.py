"""What verax says, and how often it is wrong: error rates of verdicts on designs of known truth.

    python studies/verdicts.py                  # add a round of samples to every cell
    python studies/verdicts.py NAME ...         # cells whose names contain all of these texts
    python studies/verdicts.py --rounds 5       # several rounds, the cells with the fewest samples first
    python studies/verdicts.py --fresh NAME ... # forget what is kept of these cells first
    python studies/verdicts.py --table          # the tables of studies/verdicts.md
    python studies/verdicts.py --list

A cell is a question, a design, a number of classes, a number of rows, and whether rows are independent,
grouped or weighted. Counts are kept in studies/results/verdicts.csv after every cell, so a run may be
stopped. The designs, and which claims are true of them, are in studies/verdict_designs.py.
"""

from __future__ import annotations

import argparse
import csv
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import verax as vx
from covers.claims import share_of
from verax.analyses.subgroups.verdict import verdict_of
from verax.inference.findings import Claim, Finding, Verdict
from verdict_designs import DESIGNS, SCALES, SIZES, Design, Rows, Scale, Truth, losses, truth_of

RESULTS = Path(__file__).parent / "results" / "verdicts.csv"
KEY = ("question", "design", "classes", "rows", "dependence")
COLUMNS = (*KEY, "claim", "samples", "made", "false", "missed")
# What is counted besides single claims: any claim of miscalibration, and any claim that is false.
ANY_CALIBRATION, ANY = "any claim of miscalibration", "any claim"
CALIBRATION = frozenset(
    {
        *(Claim.TOO_HIGH, Claim.TOO_LOW, Claim.TOO_EXTREME, Claim.TOO_TIMID),
        *(Claim.OVERCONFIDENT, Claim.UNDERCONFIDENT, Claim.MISCALIBRATED),
    }
)
# The rate that a claim may be false at.
LEVEL = 0.05
# Questions that take long.
SLOW = frozenset({"recalibration", "page"})
# Fresh rows that tell whether a fitted recalibration helps.
FRESH = 4000

# A verdict, and the recalibration that it may claim to help.
Asked = tuple[Verdict, Any]

# ---- questions ---------------------------------------------------------------------------------


def _card(rows: Rows) -> Asked:
    return vx.evaluate(rows.y, rows.p, **rows.options).verdict, None


def _comparison(rows: Rows) -> Asked:
    return vx.compare(rows.y, dict(rows.made.forecasts), **rows.options).verdict, None


def _subgroups(rows: Rows) -> Asked:
    return vx.subgroups(rows.y, rows.p, by=rows.made.by, least=1, **rows.options).verdict, None


def _recalibration(rows: Rows) -> Asked:
    found = vx.recalibrate(rows.y, rows.p, **rows.options)
    return found.verdict, found


def _with_subgroups(rows: Rows) -> Asked:
    """What `verax evaluate --by` claims: of all rows, and of the subgroups of two columns."""
    columns = {"site": rows.made.by, "half": np.arange(len(rows.y)) % 2}
    how = {"least": 1, **rows.options}
    parts = {name: vx.subgroups(rows.y, rows.p, by=by, **how) for name, by in columns.items()}
    return verdict_of(rows.y, rows.p, parts=parts, **rows.options)[0], None


def _page(rows: Rows) -> Asked:
    """What a page claims, with recalibration."""
    found = vx.report.Report.of(rows.y, rows.p, **rows.options)
    return found.verdict, found.contents.found["recalibration"][found.contents.best.name].recalibration


QUESTIONS: dict[str, Callable[[Rows], Asked]] = {
    "card": _card,
    "comparison": _comparison,
    "subgroups": _subgroups,
    "recalibration": _recalibration,
    "card with subgroups": _with_subgroups,
    "page": _page,
}


# ---- judging -----------------------------------------------------------------------------------


def rule_of(finding: Finding) -> str:
    """The rule that the numbers of a finding are by."""
    return next((name for name in finding.numbers if name in ("brier", "log_score", "rps")), "brier")


def is_true(finding: Finding, truth: Truth, helps: Callable[[], bool]) -> bool:
    """Whether a claim is true of the population."""
    claim, model = finding.claim, (*finding.about, "model")[0]
    signs = {Claim.TOO_HIGH: 1, Claim.TOO_LOW: -1, Claim.TOO_EXTREME: -1, Claim.TOO_TIMID: 1}
    if claim in signs:
        known = dict(truth.bias if claim in (Claim.TOO_HIGH, Claim.TOO_LOW) else truth.slope)
        # Events are called "class 3" or "class 3 or higher"; one without a slope has no sign.
        events = [name.removeprefix("class ").removesuffix(" or higher") for name in finding.about]
        return bool(events) and all(known.get(event) == signs[claim] for event in events)
    if claim in (Claim.OVERCONFIDENT, Claim.UNDERCONFIDENT):
        return truth.confidence == (1 if claim == Claim.OVERCONFIDENT else -1)
    if claim == Claim.MISCALIBRATED:
        return not truth.calibrated
    if claim == Claim.SUBGROUP:
        # A verdict on all rows says which column a subgroup is of.
        names = [name.removeprefix("site = ") for name in finding.about]
        if truth.calibrated:
            return False
        # Halves of the rows hold as many rows of a bad subgroup as any other.
        return bool(names) and all(name.startswith("half") or truth.subgroups.get(name) for name in names)
    if claim in (Claim.AS_A_WHOLE, Claim.ALL_SUBGROUPS):
        return _true_together(finding, truth)
    if claim in (Claim.BETTER, Claim.WORSE):
        wanted, rule = (1 if claim == Claim.BETTER else -1), rule_of(finding)
        model = model if (rule, model) in truth.skill else "model"
        return truth.skill[rule, model] == wanted
    if claim == Claim.BEST:
        return all(
            s == 1 for (rule, a, _), s in truth.lead.items() if rule == rule_of(finding) and a == model
        )
    if claim == Claim.RULES_DISAGREE:
        return any(s == 1 for (_, a, _), s in truth.lead.items() if a in finding.about)
    if claim == Claim.HELPS:
        return helps()
    if claim == Claim.HARMS:
        return not helps()
    raise ValueError(f"{claim} has no truth in these designs")


def _true_together(finding: Finding, truth: Truth) -> bool:
    """Whether subgroups are off together as claimed: of two classes the event, else the most likely class."""
    if truth.calibrated:
        return False
    if "slope" in finding.numbers:
        wanted = 1 if finding.numbers["slope"] > 1 else -1
        return len(truth.bias) > 1 or all(slope == wanted for slope in truth.slope.values())
    wanted = 1 if finding.numbers["observed_to_expected"] < 1 else -1
    off = truth.confidence if len(truth.bias) > 1 else next(iter(truth.bias.values()))
    # Halves of the rows hold as many rows of a bad subgroup as any other.
    everywhere = finding.claim == Claim.AS_A_WHOLE or "half" in finding.about or all(truth.subgroups.values())
    return off == wanted and everywhere


def expected(question: str, truth: Truth) -> set[str]:
    """The claims of a question that are true of a design, so that a verdict without them misses them."""
    if question == "comparison":
        models = {a for _, a, _ in truth.lead}
        ahead = {
            m for m in models if all(s == 1 for (r, a, _), s in truth.lead.items() if r == "brier" and a == m)
        }
        return {Claim.BEST} if ahead else set()
    if question == "subgroups":
        off = truth.subgroups.values()
        return {Claim.ALL_SUBGROUPS} if all(off) else {Claim.SUBGROUP} if any(off) else set()
    if question == "recalibration":
        return set() if truth.calibrated else {Claim.HELPS}
    skills = {s for (rule, _), s in truth.skill.items() if rule in ("brier", "rps")}
    found = {Claim.BETTER} if skills == {1} else {Claim.WORSE} if skills == {-1} else set()
    if question == "card with subgroups" and any(truth.subgroups.values()):
        return found | {Claim.SUBGROUP}
    return found if truth.calibrated else found | {ANY_CALIBRATION}


@dataclass(frozen=True)
class Cell:
    """One question about one design, with so many classes and rows."""

    question: str
    design: Design
    scale: Scale
    rows: int
    dependence: str

    @property
    def key(self) -> tuple[str, ...]:
        """What names it."""
        return self.question, self.design.name, self.scale.name, str(self.rows), self.dependence

    @property
    def samples(self) -> int:
        """How many samples a round takes: fewer where they take long."""
        slow = self.scale.classes > 5 or self.question in SLOW
        return (
            5
            if slow
            else 10
            if self.rows > 1000 or self.scale.classes > 2 or "subgroups" in self.question
            else 20
        )

    def counted(self, first: int, samples: int) -> dict[str, Counter[str]]:
        """How often each claim was made, false and missed, over some samples."""
        truth = truth_of(self.design, self.scale, self.dependence)
        wanted = expected(self.question, truth)
        found: dict[str, Counter[str]] = {}
        for i in range(first, first + samples):
            said = self.said([zlib.crc32(", ".join(self.key).encode()), i], truth)
            made, false = {name for name, _ in said}, {name for name, true in said if true is False}
            made |= {ANY} if any(true is not None for _, true in said) else set()
            false |= {ANY} if false else set()
            if made & CALIBRATION:
                made.add(ANY_CALIBRATION)
                false |= {ANY_CALIBRATION} if truth.calibrated else set()
            for name in {*made, *wanted, ANY}:
                own = found.setdefault(name, Counter())
                own["made"] += name in made
                own["false"] += name in false
                own["missed"] += name in wanted and not (name in made and name not in false)
        return found

    def said(self, seed: list[int], truth: Truth) -> list[tuple[str, bool | None]]:
        """The claims of the verdict on one sample, and whether they are true; None if they assert nothing."""
        rows = self.design.rows(self.scale, self.rows, self.dependence, seed)
        verdict, recalibration = QUESTIONS[self.question](rows)

        def helps() -> bool:
            fresh = self.design.make(self.scale, FRESH, np.random.default_rng(1))
            (p,) = fresh.forecasts.values()
            recalibrated = np.asarray(recalibration.apply(p))
            before, after = (losses(x, fresh.q)[recalibration.rule] for x in (p, recalibrated))
            return float(after.mean()) < float(before.mean())

        return [
            (str(each.claim), is_true(each, truth, helps) if each.claim.asserts else None)
            for each in verdict.findings
        ]


def all_cells() -> list[Cell]:
    """Every question about every design. Few designs have 5,000 rows or 40 classes, which take long."""
    found = []
    for design in DESIGNS.values():
        for question in design.asks:
            for scale in (scale for scale in SCALES if design.fits(scale)):
                for rows in SIZES:
                    slow = rows > 1000 or scale.classes > 5 or question in SLOW
                    if slow and not (design.main and rows >= 5 * scale.classes):
                        continue
                    if "subgroups" in question and rows < 200:
                        # Some subgroups would have rows of one group only, which is refused.
                        continue
                    if question in SLOW and (rows > 1000 or scale.classes > 5):
                        continue
                    found += [Cell(question, design, scale, rows, arm) for arm in design.arms]
    return found


# ---- what is kept ------------------------------------------------------------------------------


def kept() -> dict[tuple[str, ...], dict[str, Counter[str]]]:
    """Counts of earlier runs: by cell, then by claim."""
    found: dict[tuple[str, ...], dict[str, Counter[str]]] = {}
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            for row in csv.DictReader(file):
                counts = Counter({name: int(row[name]) for name in ("samples", "made", "false", "missed")})
                found.setdefault(tuple(row[name] for name in KEY), {})[row["claim"]] = counts
    return found


def keep(found: dict[tuple[str, ...], dict[str, Counter[str]]]) -> None:
    """Write all counts, in the order of the cells."""
    with RESULTS.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for cell in all_cells():
            for name, own in sorted(found.get(cell.key, {}).items()):
                counts = (own[column] for column in ("samples", "made", "false", "missed"))
                writer.writerow((*cell.key, name, *counts))


def add_round(cell: Cell, known: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """The counts of a cell with those of one more round."""
    first = known[ANY]["samples"] if known else 0
    new = cell.counted(first, cell.samples)
    wanted = expected(cell.question, truth_of(cell.design, cell.scale, cell.dependence))
    total: dict[str, Counter[str]] = {}
    for name in {*known, *new}:
        own = Counter(known.get(name, {}))
        own.update(new.get(name, {}))
        own["samples"] = first + cell.samples
        # A claim that is true of the design and was not made in earlier rounds was missed there.
        own["missed"] = own["samples"] - (own["made"] - own["false"]) if name in wanted else 0
        total[name] = own
    return total


# ---- tables ------------------------------------------------------------------------------------


def rate(hits: int, samples: int) -> str:
    """A share in percent with its Monte Carlo error."""
    if not samples:
        return ""
    share, error = share_of([True] * hits + [False] * (samples - hits))
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def exceeds(hits: int, samples: int) -> bool:
    """Whether a share is above the level by more than two Monte Carlo errors."""
    share, error = share_of([True] * hits + [False] * (samples - hits))
    return share > LEVEL + 2 * error


def pooled(group: Callable[[tuple[str, ...]], Any]) -> dict[tuple[Any, str], Counter[str]]:
    """Counts added up over cells, by what `group` makes of a cell, and by claim.

    A claim that a cell never made was not made in all of its samples.
    """
    cells = kept()
    claims: dict[str, set[str]] = {}
    for key, own in cells.items():
        claims.setdefault(key[0], set()).update(own)
    found: dict[tuple[Any, str], Counter[str]] = {}
    for key, own in cells.items():
        samples = own[ANY]["samples"]
        for name in sorted(claims[key[0]]):
            counts = Counter(own.get(name, {}))
            counts["samples"] = samples
            counts["possible"] = samples if counts["missed"] + counts["made"] - counts["false"] else 0
            found[group(key), name] = found.get((group(key), name), Counter()) + counts
    return found


def tables() -> str:
    """The tables of the page: by claim, and any false claim by design."""
    silent = {ANY, ANY_CALIBRATION, *(str(claim) for claim in Claim if not claim.asserts)}
    by_design = pooled(lambda key: key[:3])
    lines = [
        "| question | claim | verdicts | made | false | false at most, in one design |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for (question, name), own in pooled(lambda key: key[0]).items():
        if name in silent:
            continue
        places = [(c, at) for (at, claim), c in by_design.items() if claim == name and at[0] == question]
        counts, where = max(places, key=lambda each: each[0]["false"] / each[0]["samples"])
        worst = (
            f"{rate(counts['false'], counts['samples'])}, {', '.join(where[1:])}" if counts["false"] else ""
        )
        made, false = (rate(own[what], own["samples"]) for what in ("made", "false"))
        lines.append(f"| {question} | `{name}` | {own['samples']:,} | {made} | {false} | {worst} |")
    lines[2:] = sorted(lines[2:])
    lines += ["", "| question | design | classes | verdicts | independent | grouped | weighted |"]
    lines.append("| --- | --- | --- | ---: | ---: | ---: | ---: |")
    rows = pooled(lambda key: (*key[:3], key[4]))
    for where in dict.fromkeys(at[:3] for at, _ in rows):
        found = [rows.get(((*where, arm), ANY)) for arm in ("independent", "grouped", "weighted")]
        shown = ["" if own is None else rate(own["false"], own["samples"]) for own in found]
        total = sum(own["samples"] for own in found if own is not None)
        lines.append(f"| {' | '.join([*where, f'{total:,}', *shown])} |")
    lines += ["", "| design | claim that is true | 60 rows | 200 | 1,000 | 5,000 |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    sizes = pooled(lambda key: (*key[:2], key[3]))
    for question, design, name in dict.fromkeys((*at[:2], name) for at, name in sizes):
        each = [sizes.get(((question, design, str(n)), name), Counter()) for n in SIZES]
        if any(own["missed"] for own in each):
            power = [rate(own["possible"] - own["missed"], own["possible"]) for own in each]
            lines.append(
                f"| {design} | `{name}` | {' | '.join(power)} |".replace(
                    f"`{ANY_CALIBRATION}`", ANY_CALIBRATION
                )
            )
    return "\n".join(lines)


def main() -> None:
    """Add rounds of samples to the cells asked for, or print what is kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="texts that the names of cells contain")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="forget what is kept of these cells")
    parser.add_argument("--table", action="store_true", help="only show what is kept")
    parser.add_argument("--list", action="store_true", help="only list the cells")
    options = parser.parse_args()
    if options.table:
        print(tables())
        return
    chosen = [cell for cell in all_cells() if all(t in ", ".join(cell.key) for t in options.names)]
    if options.list:
        print("\n".join(", ".join(cell.key) for cell in chosen))
        return
    if options.fresh:
        gone = {cell.key for cell in chosen}
        keep({key: own for key, own in kept().items() if key not in gone})
    for _ in range(options.rounds):
        for cell in chosen:
            began = time.perf_counter()
            found = kept()
            found[cell.key] = add_round(cell, found.get(cell.key, {}))
            keep(found)
            own = found[cell.key][ANY]
            said = f"{rate(own['false'], own['samples'])} false of {own['samples']}"
            print(f"{', '.join(cell.key)}: {said}, {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
