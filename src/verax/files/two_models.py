"""Files of two models that were named as one: the same rows are in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import exp, lgamma, log

from verax.errors import InputError, Remedy, passing, show
from verax.files.formats.several import Files

# What columns are called that may identify rows, where nobody names one.
_ID_NAMES = frozenset(
    (
        *("id", "ids", "_id", "uid", "uuid", "guid", "key", "index", "idx", "row", "row_id", "rowid", "qid"),
        *("sample_id", "example_id", "case_id", "item_id", "record_id", "question_id", "doc_id", "image_id"),
        *("instance_id", "patient_id", "subject_id", "filename", "file_name", "custom_id"),
    )
)
# Files are refused as those of two models where chance makes them look so less often than this: by the
# outcomes of the same ids, and by the order of the outcomes alone.
_BY_IDS, _BY_ORDER = 1e-3, 1e-6
# How many outcomes are compared in order.
_COMPARED = 1000
# How many rows of each file are looked at.
_HEAD = 2**16


@dataclass(frozen=True)
class FileHead:
    """The first rows of one of several files.

    Attributes
    ----------
    file : str
        Its name.
    outcomes : sequence
        What happened in each row; empty where that is not known.
    ids : sequence or None
        The ids of the rows, in a column that nobody named; None where there is none.
    """

    file: str
    outcomes: Sequence[Hashable]
    ids: Sequence[Hashable] | None = None


def refuse_same_rows(files: Files, outcomes: Sequence[str], needed: Sequence[str]) -> tuple[str, ...]:
    """Refuse files of columns that hold the same rows; see `refuse_two_models`."""
    known = [name for name in files.schema.names if name.casefold() in _ID_NAMES][:1]

    def heads() -> Iterator[FileHead]:
        for file, head in files.heads(outcomes, known, needed, _HEAD):
            cells = [head[name].to_pylist() for name in outcomes]
            ids = next((head[name].to_pylist() for name in known if name in head), None)
            yield FileHead(str(file), list(zip(*cells, strict=True)), ids)

    return refuse_two_models(heads(), *known)


def refuse_two_models(heads: Iterable[FileHead], column: str = "") -> tuple[str, ...]:
    """Refuse files that hold the same rows, which are those of two models; notes where that is not sure.

    Files with other ids are parts of one data set. Files with the same ids and other outcomes are parts that
    count from the same number. Files without ids are the same rows if their outcomes are in the same order.
    """
    found = [head for head in heads if head.outcomes or head.ids]
    with_ids = len(found) > 1 and all(_distinct(head.ids) for head in found)
    pair, chance = _same_ids(found) if with_ids else _same_order(found)
    if pair is None:
        return ()
    first, second = pair
    same = "the same outcomes, row by row"
    if with_ids:
        same = (
            f"the same ids in column {show(column)}{', and the same outcomes' if found[0].outcomes else ''}"
        )
    what = f"{first} and {second} have {same}"
    if chance < (_BY_IDS if with_ids else _BY_ORDER):
        raise InputError(
            "The files must hold different rows of one model",
            argument="path",
            kind="label",
            found=what,
            remedies=[
                compare_them(column if with_ids else ""),
                passing("if they are parts of one data set (a column that tells their rows apart)", id=...),
                Remedy("Or name them as files of one model: m=FILE m=FILE."),
            ],
        )
    return (f"{what}. If they are of two models, compare them: `verax compare a=FILE b=FILE`.",)


_Pair = tuple[str, str] | None


def _distinct(ids: Sequence[Hashable] | None) -> bool:
    return ids is not None and None not in ids and len(set(ids)) == len(ids)


def _same_ids(heads: Sequence[FileHead]) -> tuple[_Pair, float]:
    """Two files of which all rows with the same ids have the same outcome; how often chance would do that.

    Where outcomes are not known, the ids tell, unless they are numbers, which may begin at 0 in every file.
    """
    known: dict[Hashable, tuple[str, Hashable]] = {}
    for head in heads:
        shared: dict[str, list[tuple[Hashable, Hashable]]] = {}
        for own, outcome in zip_longest(head.ids or (), head.outcomes):
            if own in known:
                file, before = known[own]
                shared.setdefault(file, []).append((before, outcome))
            known.setdefault(own, (head.file, outcome))
        for file, pairs in shared.items():
            if not head.outcomes:
                return (file, head.file), float(all(str(own).isdecimal() for own in head.ids or ()))
            counts = Counter(outcome for _, outcome in pairs)
            alike = sum((n / len(pairs)) ** 2 for n in counts.values())
            if len(counts) > 1 and all(a == b for a, b in pairs):
                return (file, head.file), alike ** len(pairs) * len(heads)
    return None, 1.0


def _same_order(heads: Sequence[FileHead]) -> tuple[_Pair, float]:
    """Two files with the same outcomes in the same order; how often chance would do that.

    Outcomes that are sorted tell nothing but their counts, which parts of a data set may share.
    """
    known: dict[tuple[Hashable, ...], str] = {}
    for head in heads:
        first = tuple(head.outcomes[:_COMPARED])
        if not first:
            continue
        if first not in known:
            known[first] = head.file
            continue
        counts = Counter(first)
        runs = 1 + sum(a != b for a, b in pairwise(first))
        orders = lgamma(len(first) + 1) - sum(lgamma(n + 1) for n in counts.values())
        if len(counts) > 1:
            pairs = len(heads) * (len(heads) - 1) / 2
            unsorted = runs > len(counts)
            return (known[first], head.file), exp(log(pairs) - orders) if unsorted else 1.0
    return None, 1.0


def compare_them(column: str) -> Remedy:
    """How two models are compared, by a column of ids if there is one."""
    named = f" --id {column}" if column else ""
    return Remedy(f"For two models: `verax compare a=FILE b=FILE{named}`.")
