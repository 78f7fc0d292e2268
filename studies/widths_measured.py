"""What the study of widths measured, as it was kept, and its tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

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


def tables() -> dict[str, str]:
    """The tables and figures of the page, by their names."""
    rows = kept()
    return {"summary": summary(rows), "figures": pictures(rows), "worst": worst(rows)}
