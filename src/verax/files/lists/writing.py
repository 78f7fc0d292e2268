"""Lists written as JSON Lines, in a shape that is read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from verax.display.writing import written
from verax.errors import InputError
from verax.files.lists.listfile import ListFile
from verax.inputs.lists.toplists import TopLists

# The endings of the files that are written.
WRITTEN = (".jsonl", ".ndjson")


def check_can_hold_lists(path: Path) -> None:
    """Refuse a name that does not end like JSON Lines."""
    if path.suffix.lower() not in WRITTEN:
        raise InputError(
            "must end in .jsonl, because lists are written as JSON Lines",
            argument="out",
            kind="file",
            found=f"it ends in {path.suffix!r}" if path.suffix else "it has no ending",
            values=[str(path)],
        )


def write_lists(read: ListFile, lists: TopLists, out: Path) -> int:
    """Write other lists of the records that were read; the number of records.

    A record has its id and its subgroups, if they were asked for, the outcome, the classes (`labels`) and
    their probabilities (`scores`), most likely first.
    """
    check_can_hold_lists(out)
    ids = [None] * len(read) if read.ids is None else read.ids
    beside = {name: labels.tolist() for name, labels in read.by.items()}
    with written(out) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for i, (row, name, outcome) in enumerate(zip(lists, ids, read.y, strict=True)):
            record: dict[str, Any] = {} if name is None else {"id": name}
            record |= {field: labels[i] for field, labels in beside.items()}
            record |= {"outcome": outcome, "labels": list(row), "scores": list(row.values())}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return len(read)
