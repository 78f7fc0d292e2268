"""What the study of widths measured, as it was kept, and its tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from measured import kept as coverage_kept

RESULTS = Path(__file__).parent / "results" / "widths.csv"
COLUMNS = (
    "design", "family", "what", "samples", "coverage", "error", "below", "above", "width", "width_error",
    "cautioned",
)  # fmt: skip
# What an interval should do: cover, in percent, and be no wider than so many times the one that knows.
COVERS, WIDE = (93.0, 97.0), 1.3


def kept() -> list[dict[str, str]]:
    """What was measured."""
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def families(rows: Sequence[dict[str, str]]) -> Iterator[tuple[str, str, list[dict[str, str]]]]:
    """The lines of each kind of quantity, of independent rows and over groups."""
    for family in dict.fromkeys(row["family"] for row in rows):
        for where in ("rows", "groups"):
            own = [
                r
                for r in rows
                if r["family"] == family and (" groups (" in r["design"]) == (where == "groups")
            ]
            if own:
                yield family, where, own


def summary(rows: Sequence[dict[str, str]]) -> str:
    """A line for each kind of quantity."""
    table = [
        f"| quantity | over | cells | coverage: least | mean | below {COVERS[0]:g} "
        "| width: median | 90th percentile |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family, where, own in families(rows):
        coverage, error, width = (
            np.array([float(r[name]) for r in own]) for name in ("coverage", "error", "width")
        )
        least = int(coverage.argmin())
        low = int((coverage + 2 * error < COVERS[0]).sum())
        table.append(
            f"| {family} | {where} | {len(own)} | {coverage[least]:.1f} ± {error[least]:.1f} "
            f"| {coverage.mean():.1f} | {low} | {np.median(width):.2f} | {np.quantile(width, 0.9):.2f} |"
        )
    return "\n".join(table)


def worst(rows: Sequence[dict[str, str]]) -> str:
    """The cells of each kind that cover least, and those that are widest."""
    table = [
        "| quantity | design | coverage | misses below, above | width | cautioned |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for _, own in groupby(rows_by_family(rows), key=lambda r: r["family"]):
        lines = list(own)
        least = sorted(lines, key=lambda r: float(r["coverage"]))[:3]
        widest = sorted((r for r in lines if r not in least), key=lambda r: -float(r["width"]))[:3]
        table += [
            f"| {r['family']}: {r['what']} | {r['design']} | {r['coverage']} ± {r['error']} "
            f"| {r['below']}, {r['above']} | {float(r['width']):.2f} ± {float(r['width_error']):.2f} "
            f"| {r['cautioned']} % |"
            for r in (*least, *widest)
        ]
    return "\n".join(table)


def rows_by_family(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """All lines, those of a family together."""
    order = list(dict.fromkeys(row["family"] for row in rows))
    return sorted(rows, key=lambda r: order.index(r["family"]))


def pictures(rows: Sequence[dict[str, str]]) -> str:
    """The figure of each kind of quantity."""
    named = dict.fromkeys(row["family"] for row in rows)
    return "\n\n".join(f"![{family}: coverage against width](figures/{picture(family)})" for family in named)


def picture(family: str) -> str:
    """The file of the figure of a kind of quantity."""
    return f"widths-{family.replace(' ', '-')}.png"


# What is asked of answers, and the claims of the study of coverage that tell it; the others are in percent.
_ALIKE = "20 groups of 250 (equal), share"
ANSWERS = {
    "20 hospitals that are alike, 5,000 rows, 98.7 % right: width": f"groups: width, {_ALIKE} 0.987",
    "the same, 80 % right: width": f"groups: width, {_ALIKE} 0.8",
    "1 or 2 wrong rows in 14 or 20 groups: lower limit": "gates: lower limit",
    "a gate below the true share, groups that are alike: passed": "gates: passed above",
    "a gate at the true share: passed": "gates: passed at the bound",
    "shares near 1 without groups: true share above": "shares of rows: true share above",
    "`sensitivity>=0.9` in 8 to 15 hospitals: found": "a threshold is found, hospitals",
    "the same: the promise is kept": "promise is kept, hospitals",
    "all subgroups shifted: found": "subgroups: all shifted are found",
    "one or half of the subgroups off: all are said to be": "subgroups: all are said to be off",
    "subgroups: any false claim at 5 %": "subgroups: any false claim at 5 %",
    "rare events over groups: 99th percentile of width": "means of losses: 99th percentile of width",
    "series with seasons, equal models: false leads": "seasons: size",
    "conformal sets, weights: coverage within the range": "conformal range: weights",
    "conformal sets, ties: coverage within the range": "conformal range: ties",
}


def answers() -> str:
    """How sure and how wide answers are: of each kind the least and the greatest of what was measured."""
    table = ["| question | designs | least | greatest | command |", "| --- | ---: | ---: | ---: | --- |"]
    for what, name in ANSWERS.items():
        own = sorted((row for row in coverage_kept().values() if name in row["claim"]), key=_value)
        ends = " | ".join(_told(row, wide="width" in name) for row in (own[0], own[-1]))
        table.append(f"| {what} | {len(own)} | {ends} | `covering.py '{name}'` |")
    return "\n".join(table)


def _value(row: dict[str, str]) -> float:
    return float(row["measured"])


def _told(row: dict[str, str], *, wide: bool) -> str:
    """A number with its Monte Carlo error: in percent, or times the width of the interval that knows."""
    value, error = _value(row), float(row["error"])
    return f"{value / 100:.2f} ± {error / 100:.2f}" if wide else f"{value:.1f} ± {error:.1f} %"


def tables() -> dict[str, str]:
    """The tables and figures of the page, by their names."""
    rows = kept()
    own = {"summary": summary(rows), "figures": pictures(rows), "worst": worst(rows)}
    return {**own, "answers": answers()}
