"""What the study of coverage measured, as it was kept."""

from __future__ import annotations

import csv
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "coverage.csv"
COLUMNS = ("claim", "measured", "error", "low", "high", "holds")


def kept() -> dict[str, dict[str, str]]:
    """What the last runs with --save measured, in percent, by the name of the claim."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        return {row["claim"]: row for row in csv.DictReader(file)}


def summary() -> str:
    """What was measured, a line of Markdown for each subject and range that is wanted."""
    lines: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for name, row in kept().items():
        own = lines.setdefault((name.partition(":")[0], f"{row['low']} to {row['high']}"), [])
        own.append((float(row["measured"]), row["holds"]))
    rows = kept().values()
    count = f"{len(rows):,} claims, of which {sum(row['holds'] == 'yes' for row in rows):,} hold."
    table = [
        count,
        "",
        "| subject | wanted | claims | hold | measured |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for (subject, wanted), found in lines.items():
        values, held = [x for x, _ in found if x == x], sum(holds == "yes" for _, holds in found)
        measured = f"{min(values):.1f} to {max(values):.1f}" if values else ""
        table.append(f"| {subject} | {wanted} | {len(found)} | {held} | {measured} |")
    return "\n".join(table)
