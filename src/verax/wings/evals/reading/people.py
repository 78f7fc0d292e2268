"""Columns of grades by people beside those of a judge, which must not be passed over in silence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from verax.errors import Remedy, passing

# What such columns are called.
_PEOPLE = ("human", "people", "annotator", "expert", "manual", "rater")
_JUDGES = ("judge", "llm_judge", "autorater", "grader")
_ENDS = ("", "_grade", "_score", "_label", "_correct", "_rating", "_verdict")


def by_people(names: Iterable[str]) -> list[str]:
    """The columns that are called as grades by people are.

    >>> by_people(["qid", "Human", "judge_score", "human_score"])
    ['Human', 'human_score']
    """
    return _called(names, _PEOPLE)


def unused_people(table: Any, used: Sequence[str]) -> str:
    """A line about grades by people that are not used; empty where there are none."""
    for name in by_people(table.column_names):
        cells = table[name].to_pylist()
        known = sum(cell is not None and cell == cell and str(cell).strip() != "" for cell in cells)
        if name not in used and known:
            judge = next(iter(used), None)
            how = f" (--judge {judge} --grade {name} corrects by them)" if judge is not None else ""
            return (
                f"caution: {name} has grades by people of {known:,} of {len(cells):,} answers, not used{how}"
            )
    return ""


def remedies_for(names: Sequence[str]) -> list[Remedy]:
    """How to read a file that has grades of a judge and of people, and no other column of grades."""
    if not (_called(names, _JUDGES) and by_people(names)):
        return []
    return [passing("where people checked a judge's grades", judge=..., grade=...)]


def _called(names: Iterable[str], stems: Sequence[str]) -> list[str]:
    known = {f"{stem}{end}" for stem in stems for end in _ENDS}
    return [name for name in names if name.casefold() in known]
