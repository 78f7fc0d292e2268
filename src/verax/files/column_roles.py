"""Which column of a file is what: as the caller says, or by name where only one reading is possible."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from verax.errors import InputError, Kind, Remedy, join, passing, show
from verax.files.families import (
    PERCENT,
    Array,
    Family,
    can_be_a_class,
    complete,
    completions,
    families,
    total_of,
)
from verax.files.followed import event_column, refuse_unfollowed
from verax.files.naming import (
    LOGITS,
    LONG,
    MAYBE_PROBS,
    MAYBE_TARGETS,
    PROBS,
    SEPARATORS,
    TARGETS,
    class_names,
    is_id,
    literal,
    named_like,
    prefix_of,
    spoken,
    stripped,
    without,
)
from verax.files.predictions import Roles
from verax.inputs.reading import Reading, named_columns

# What columns hold: numbers, whole numbers, lists of numbers, texts of which some are numbers (reading
# them will name those that are not), objects, anything else.
REAL, INTEGER, LIST, DOUBTFUL, OBJECT, OTHER = "real", "integer", "list", "doubtful", "object", "other"


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of the columns of a file before all rows are read.

    Attributes
    ----------
    kinds : Mapping[str, str]
        What each column holds: REAL, INTEGER, LIST, DOUBTFUL, OBJECT or OTHER.
    numbers : Callable
        Gives the first rows of some columns as (n, m) numbers, with NaN where there is none.
    lists : Callable
        Gives the first rows of a column of lists as (n, m) numbers.
    labels : Collection[str]
        Some of the texts that the target holds, for columns that are named like classes.
    """

    kinds: Mapping[str, str]
    numbers: Callable[[Sequence[str]], Array]
    lists: Callable[[str], Array]
    labels: Collection[str] = ()

    def less(self, columns: Collection[str]) -> ColumnFacts:
        """The same without some columns."""
        left = {name: kind for name, kind in self.kinds.items() if name not in columns}
        return ColumnFacts(left, self.numbers, self.lists, self.labels)

    @property
    def numeric(self) -> list[str]:
        """The columns that hold numbers, or should."""
        return [name for name, kind in self.kinds.items() if kind in (REAL, INTEGER, DOUBTFUL)]


# The columns of probabilities, and the names of their classes if they have any.
Chosen = tuple[tuple[str, ...], tuple[str, ...] | None]


def find_roles(look: ColumnFacts, request: Reading, *, where: str) -> Roles:
    """Decide which column is what.

    Parameters
    ----------
    look : ColumnFacts
    request : Reading
    where : str
        The file, for messages.
    """
    columns = list(look.kinds)
    target = find_target(columns, request, where) if not request.late else ""
    groups, ids = named_columns(request.groups), named_columns(request.id)
    named = [request.weights, *groups, *request.by, *ids, request.time]
    options = ["weights", *["groups"] * len(groups), *["by"] * len(request.by), *["id"] * len(ids), "time"]
    for option, name in zip(options, named, strict=True):
        if name is not None:
            require_column(name, columns, option, where)
    others = {target, *request.raters, *(name for name in named if name is not None)}
    others |= set() if not request.late else {name for name in columns if spoken(name) in TARGETS}
    left = look.less(others)
    by_sums = False
    not_taken: tuple[str, ...] = ()
    if request.columns:
        probs, names = _stated(left, request, where)
        not_taken = tuple(
            dict.fromkeys(name for lacking in _lacking(left, probs, request) for name in lacking)
        )
    else:
        (probs, names), by_sums = _guessed(left, request, where)
        not_taken = _not_taken(left, probs, request)
    if _may_be_censored(target, probs, look, request):
        free = [name for name in left.numeric if name not in probs]
        stated = request.target is not None
        refuse_unfollowed(target, free, left.numbers, stated=stated, where=where)
    return Roles(
        target,
        probs,
        names,
        request.weights,
        request.groups,
        request.by,
        request.id,
        request.logits,
        not_taken=not_taken,
        found_by="sums" if by_sums else "name",
        raters=request.raters,
        raters_are=request.raters_are,
        sets=bool(request.sets),
        time=request.time,
    )


def _may_be_censored(target: str, probs: Sequence[str], look: ColumnFacts, request: Reading) -> bool:
    """Whether outcomes are events whose censored rows nothing accounts for."""
    settled = request.complete or request.time is not None or request.raters or request.sets
    two = len(probs) <= 2 and look.kinds[probs[0]] != LIST
    return bool(target) and not settled and two


def find_target(columns: Sequence[str], request: Reading, where: str) -> str:
    """The column of outcomes; of several raters that of the first."""
    if request.raters:
        return request.raters[0]
    if request.target is not None:
        return require_column(request.target, columns, "target", where)
    candidates = [c for c in columns if spoken(c) in TARGETS]
    candidates = candidates or [c for c in columns if spoken(c) in MAYBE_TARGETS]
    if len(candidates) == 1:
        return candidates[0]
    event = event_column(columns, stated=request.complete or request.time is not None)
    if event is not None and not candidates:
        return event
    if candidates:
        raise _refusal(
            "Several columns may hold the outcomes",
            "target",
            where,
            join(candidates),
            passing("to choose", target=...),
        )
    words = (*PROBS, *MAYBE_PROBS)
    others = [c for c in columns if not prefix_of(c, PROBS) and spoken(c) not in words] or columns
    named = [c for c in others if c and not is_id(c)]
    raise _refusal(
        "No column has a usual name of outcomes (label, target, y, ...)",
        "target",
        where,
        f"it has {_listing(others)}",
        passing(target=named[0] if len(named) == 1 else ...),
        kind="missing",
    )


def _refusal(
    requirement: str, argument: str, where: str, found: str = "", *remedies: Remedy, kind: Kind = "value"
) -> InputError:
    return InputError(requirement, argument=argument, kind=kind, found=found, remedies=remedies, source=where)


def require_column(name: str, columns: Sequence[str], option: str, where: str) -> str:
    """The name of a column, which must be there."""
    if name in columns:
        return name
    near = difflib.get_close_matches(name, columns, n=1)
    raise _missing(name, option, where, near, f"it has {_listing(columns)}")


def _missing(name: str, option: str, where: str, near: Sequence[str], found: str) -> InputError:
    """The error about a column that is not there, with one that is much like it or with all that are."""
    hints = [Remedy(f"Did you mean {show(other)}?") for other in near]
    requirement = f"There is no column {show(name)} ({option})"
    return _refusal(requirement, option, where, "" if hints else found, *hints, kind="missing")


def _listing(columns: Sequence[str], limit: int = 8) -> str:
    if len(columns) <= limit:
        return ", ".join(columns) or "no columns"
    first, last = columns[: limit - limit // 3], columns[-(limit // 3) :]
    return f"{', '.join(first)}, ..., {', '.join(last)} ({len(columns):,} columns)"


def _stated(look: ColumnFacts, request: Reading, where: str) -> Chosen:
    """The columns of probabilities that names and patterns ask for, and the names of their classes."""
    kinds = look.kinds
    probs = matching_columns(request.columns, list(kinds), "probs", where)
    if request.sets:
        # One column names the classes of each set; several are a mask.
        return probs, None if len(probs) == 1 else stripped(probs)
    lists = [name for name in probs if kinds[name] == LIST]
    if lists and len(probs) > 1:
        raise _refusal(
            f"Column {show(lists[0])} holds lists of probabilities, so it must be the only one",
            "probs",
            where,
        )
    if lists:
        return probs, None
    prefix = literal(request.columns[0])
    if len(request.columns) == 1 and prefix and prefix != request.columns[0]:
        return probs, _names(without(prefix, probs), probs, look.labels)
    return probs, _names(stripped(probs), probs, look.labels)


def matching_columns(
    patterns: Sequence[str], columns: Sequence[str], argument: str, where: str
) -> tuple[str, ...]:
    """The columns that names and patterns ask for, in the order asked, each pattern in file order."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        if pattern in columns:
            chosen[pattern] = None
            continue
        matches = fnmatch.filter(columns, pattern)
        if not matches:
            near = [] if literal(pattern) != pattern else difflib.get_close_matches(pattern, columns, n=1)
            raise _missing(pattern, argument, where, near, f"the other columns are {_listing(columns)}")
        chosen |= dict.fromkeys(matches)
    return tuple(chosen)


def _guessed(look: ColumnFacts, request: Reading, where: str) -> tuple[Chosen, bool]:
    """The one set of columns that can be the probabilities, and whether the sums of its rows say so."""
    kinds, words = look.kinds, LOGITS if request.logits else PROBS
    sets = _called(look, words)
    by_name = _by_classes(look, sets, request)
    if by_name is not None or len(sets) == 1:
        (probs, names) = by_name or sets[0]
        _refuse_lacking(look, probs, request, where)
        return (probs, names), False
    if not sets:
        sets, by_sums = _like_classes(look, request, where)
        if sets:
            return sets[0], by_sums
    if not sets and (numbered := _numbered(kinds)):
        whole = _completed(look, numbered[0][0], request, where)
        return (whole, whole), whole != numbered[0][0]
    sets = sets or [one for one in _single(look, words) if not _in_brackets(one[0][0])]
    if len(sets) == 1:
        return sets[0], False
    if sets:
        raise _several([probs for probs, _ in sets], request, where)
    if not any(kind in (REAL, INTEGER, LIST, DOUBTFUL) for kind in kinds.values()):
        raise _refusal(
            f"No column besides the outcomes holds numbers, so there are no {_what(request)}",
            "probs",
            where,
            f"the others are {_listing(list(kinds))}",
            *_objects(kinds),
            Remedy("Answers that were graded are for `verax evals evaluate FILE`."),
            kind="missing",
        )
    # A single column called z is as likely a feature.
    logits = [word for word in LOGITS if word != "z"]
    called = [] if request.logits else _called(look, logits) or _single(look, logits)
    if called:
        raise _refusal(
            "Some columns are named like logits, and none like probabilities",
            "logits",
            where,
            _listing(called[0][0]),
            passing("if they hold logits", logits=True),
            kind="missing",
        )
    if not request.logits:
        summing = _by_sums(look, request, where)
        if summing is not None:
            return summing, True
        maybe = _called(look, MAYBE_PROBS) or _single(look, (*MAYBE_PROBS, *PROBS))
        maybe = [(probs, names) for probs, names in maybe if {*probs} <= {*_shares(look)}]
        if len(maybe) == 1:
            return maybe[0], False
        if maybe:
            raise _several([probs for probs, _ in maybe], request, where)
    pattern = "logit_*" if request.logits else "p_*, prob_*, ..."
    sums = "" if request.logits else ", and no columns have rows that sum to 1"
    raise _refusal(
        f"No columns are named like {_what(request)} ({pattern}), nor like the classes{sums}",
        "probs",
        where,
        f"it has {_listing(list(kinds))}",
        _choose(look),
        *_objects(kinds),
        *_graded(look),
        kind="missing",
    )


def _graded(look: ColumnFacts) -> list[Remedy]:
    """Where answers and confidences in them are meant, not probabilities of classes."""
    known = {spoken(name): name for name in look.kinds}
    sure = next((known[name] for name in ("confidence", "conf") if name in known), None)
    words = ("prediction", "predicted", "pred", "answer")
    answer = next((known[name] for name in words if name in known), None)
    if sure is not None and answer is not None:
        how = f"--gold COLUMN --answer {answer} --confidence-column {sure}"
        return [Remedy(f"For confidences in one answer per row: `verax evals evaluate FILE {how}`.")]
    return []


def _choose(look: ColumnFacts) -> Remedy:
    alone = look.numeric if len(look.numeric) == 1 else _shares(look)
    if len(alone) == 1 and len(look.labels) < 3:
        return passing("if it is the probability of the second of two classes", probs=alone[0])
    return passing("(names, or a pattern)", probs=...)


def _shares(look: ColumnFacts) -> list[str]:
    """The columns of fractions whose first rows lie between 0 and 1."""
    real = [name for name, kind in look.kinds.items() if kind == REAL]
    first = look.numbers(real) if real else np.zeros((0, 0))
    return [name for name, values in zip(real, first.T, strict=True) if ((values >= 0) & (values <= 1)).all()]


def _several(sets: Sequence[Sequence[str]], request: Reading, where: str) -> InputError:
    named = " or ".join(f"({_listing(probs, 4)})" for probs in sets[:4])
    more = f" or {len(sets) - 4} more" if len(sets) > 4 else ""
    choose = passing("(names, or a pattern)", probs=...)
    requirement = f"Several sets of columns may hold the {_what(request)}"
    return _refusal(requirement, "probs", where, f"{named}{more}", choose)


def _by_classes(look: ColumnFacts, called: Sequence[Chosen], request: Reading) -> Chosen | None:
    """The columns that have the names of the classes given.

    None where not all classes name a column, or where columns named like probabilities match in number.
    """
    wanted = tuple(str(c) for c in request.names or ())
    fits = len(set(wanted)) == len(wanted) > 1 and set(wanted) <= set(look.numeric)
    if not fits or (len(called) == 1 and len(called[0][0]) == len(wanted)):
        return None
    return wanted, wanted


def _lacking(look: ColumnFacts, probs: Sequence[str], request: Reading) -> list[tuple[str, ...]]:
    """The other columns that hold what the rows of these lack; several sets where that is in doubt."""
    if request.logits or request.sets or len(probs) < 2 or len(look.numeric) <= len(probs):
        return []
    if complete(look.numbers(probs)):
        return []
    complete_sets = completions(look.numeric, look.numbers(look.numeric), probs)
    return [tuple(name for name in family.columns if name not in probs) for family in complete_sets]


def _completed(look: ColumnFacts, probs: tuple[str, ...], request: Reading, where: str) -> tuple[str, ...]:
    """The same columns with those that hold what their rows lack, in file order."""
    lacking = _lacking(look, probs, request)
    whole = [tuple(name for name in look.kinds if name in (*probs, *others)) for others in lacking]
    if len(whole) > 1:
        raise _several(whole, request, where)
    if not whole:
        return probs
    _refuse_percentages(Family(whole[0], total_of(look.numbers(whole[0])) or 0.0), request, where)
    return whole[0]


def _refuse_lacking(look: ColumnFacts, probs: Sequence[str], request: Reading, where: str) -> None:
    """Refuse columns that were named, or are called alike, if other columns hold what their rows lack."""
    lacking = _lacking(look, probs, request)
    if lacking:
        one = len(lacking) == len(lacking[0]) == 1
        named = " or ".join(_listing(others, 4) for others in lacking[:4])
        raise _refusal(
            f"The rows of {_listing(probs)} do not sum to 1, and what they lack is in {named}",
            "probs",
            where,
            "",
            passing("if it is a class" if one else "if they are classes", probs=[*probs, *lacking[0]])
            if len(lacking) == 1
            else passing("(all columns of probabilities)", probs=...),
        )


def _by_sums(look: ColumnFacts, request: Reading, where: str) -> Chosen | None:
    """The columns, or the column of lists, whose rows sum to 1; None where there are none."""
    numeric = look.numeric
    candidates = families(numeric, look.numbers(numeric)) if len(numeric) > 1 else []
    for name, kind in look.kinds.items():
        total = total_of(look.lists(name)) if kind == LIST else None
        candidates += [] if total is None else [Family((name,), total)]
    if len(candidates) > 1:
        raise _several([family.columns for family in candidates], request, where)
    if not candidates:
        return None
    (family,) = candidates
    _refuse_percentages(family, request, where)
    lists = look.kinds[family.columns[0]] == LIST
    return family.columns, None if lists else class_names(family.columns, look.labels)


def _refuse_percentages(family: Family, request: Reading, where: str) -> None:
    if family.total == PERCENT and not (request.normalize or request.percent):
        raise _refusal(
            f"The columns {_listing(family.columns)} hold percentages",
            "probs",
            where,
            "their rows sum to 100",
            passing("to divide every row by its sum", normalize=True),
        ).replace(values=[PERCENT])


def _like_classes(look: ColumnFacts, request: Reading, where: str) -> tuple[list[Chosen], bool]:
    """The columns that are called like the outcomes seen, with those of classes that were not seen.

    Where their rows do not sum to 1, others must belong to them: the only ones with which they do.
    """
    like = tuple(name for name in look.numeric if name in look.labels)
    numbered = _numbered(look.kinds)
    if numbered and set(like) <= set(numbered[0][0]):
        return [], False
    alone = len(like) == 1 and len(look.labels) == 2
    others = [name for name in look.numeric if name not in like]
    if len(like) < 2 and not alone:
        return [], False
    if request.logits:
        _refuse_other_logits(look, like, where)
        return [(like, like)], False
    whole = _completed(look, like, request, where)
    if whole != like:
        return [(whole, whole)], True
    if not others or (len(like) > 1 and total_of(look.numbers(like)) is not None):
        return [(like, like)], False
    values = look.numbers(look.numeric)
    candidates = families(look.numeric, values, must=like)
    if len(candidates) == 1:
        _refuse_percentages(candidates[0], request, where)
        return [(candidates[0].columns, candidates[0].columns)], True
    if candidates:
        raise _several([family.columns for family in candidates], request, where)
    maybe = _possible(look, others, request)
    if alone or not maybe:
        return [(like, like)], False
    given = look.numbers(like)
    blank = bool((given != given).any())
    sums = [sum(x for x in row if x == x) for row in given[:3].tolist()]
    lists = "to read lists, where a blank cell is a class that is not listed"
    raise _refusal(
        f"The columns {_listing(like)} are named like classes, and their rows do not sum to 1: is one of "
        f"the other columns a class that never occurred ({_listing(maybe, 4)})?",
        "probs",
        where,
        f"rows 0, 1, ... sum to {', '.join(map(show, sums))}, ...",
        *([passing(lists, shape="wide", classes=list(like))] if blank else []),
        passing("(all columns of probabilities)", probs=...),
    )


def _refuse_other_logits(look: ColumnFacts, like: Sequence[str], where: str) -> None:
    """Refuse logits beside other columns of real numbers: sums cannot tell whether those are classes."""
    others = [name for name in look.numeric if name not in like and look.kinds[name] == REAL]
    if others:
        raise _refusal(
            f"The columns {_listing(like)} are named like classes: is one of the other columns a class that "
            f"never happened ({_listing(others, 4)})?",
            "probs",
            where,
            "",
            passing("(all columns of logits)", probs=...),
        )


def _possible(look: ColumnFacts, columns: Sequence[str], request: Reading) -> list[str]:
    """Which columns may hold the probabilities of a class."""
    values = look.numbers(columns)
    return [
        name
        for j, name in enumerate(columns)
        if can_be_a_class(values[:, j], rescaled=request.normalize or request.percent)
    ]


def _objects(kinds: Mapping[str, str]) -> list[Remedy]:
    named = [name for name, kind in kinds.items() if kind == OBJECT]
    text = f"Objects ({_listing(named)}) are not read; write a column per class, or lists."
    return [Remedy(text)] if named else []


def _what(request: Reading) -> str:
    return "logits" if request.logits else "probabilities"


def _called(look: ColumnFacts, words: Sequence[str]) -> list[Chosen]:
    """Sets of columns, and columns of lists, that are called like probabilities."""
    kinds = look.kinds
    sets: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        prefix = prefix_of(name, words) if kind in (REAL, INTEGER, DOUBTFUL) else None
        if prefix:
            sets.setdefault(prefix, []).append(name)
    sets = {prefix: _with_words(prefix, names, kinds, words) for prefix, names in sets.items()}
    chosen: list[Chosen] = [
        (tuple(names), _names(without(prefix, names), tuple(names), look.labels))
        for prefix, names in sets.items()
        if len(names) > 1
    ]
    return chosen + [
        ((name,), None) for name, kind in kinds.items() if kind == LIST and name.lower() in words
    ]


def _names(usual: tuple[str, ...], columns: tuple[str, ...], labels: Collection[str]) -> tuple[str, ...]:
    """The classes of columns: their usual names, unless the outcomes are texts that are called otherwise.

    P_ChurnYes and P_ChurnNo, usually ChurnYes and ChurnNo, are then about Yes and No.
    """
    if len(columns) == 1 or all(re.fullmatch(r"[\s\d.,-]*", label) for label in labels):
        return usual
    return named_like(labels, (usual, class_names(columns, labels))) or usual


def _numbered(kinds: Mapping[str, str]) -> list[Chosen]:
    """The columns that are called by whole numbers; those of whole numbers only beside others."""
    names = tuple(
        name for name, kind in kinds.items() if kind in (REAL, INTEGER) and re.fullmatch(r"-?\d+", name)
    )
    return [(names, names)] if sum(kinds[name] == REAL for name in names) > 1 else []


def _single(look: ColumnFacts, words: Sequence[str]) -> list[Chosen]:
    """Single columns that are called like probabilities."""
    named = [(name, prefix_of(name, words)) for name in look.numeric]
    return [
        ((name,), None if prefix is None or prefix == name else without(prefix, [name]))
        for name, prefix in named
        if prefix or name.lower() in words or spoken(name) in words
    ]


def _in_brackets(name: str) -> bool:
    """Whether a name ends in a bracket: f(x) may be anything, so that P(Yes) alone is the last resort."""
    return name[-1:] in (")", "]")


def _with_words(prefix: str, names: list[str], kinds: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Numbered columns such as prob1 and prob2 together with the probtie between them, in file order."""
    if prefix[-1] in SEPARATORS or len(prefix) < LONG:
        return names
    joined = [
        name
        for name, kind in kinds.items()
        if kind in (REAL, INTEGER) and name.startswith(prefix) and name[len(prefix) :].isalpha()
    ]
    joined = [name for name in joined if name.lower() not in words]
    both = {*names, *joined}
    return [name for name in kinds if name in both]


def _not_taken(look: ColumnFacts, taken: Sequence[str], request: Reading) -> tuple[str, ...]:
    """Columns that were not taken though they are called like probabilities, or may be a further class."""
    words, known = LOGITS if request.logits else PROBS, set(taken)
    called = {
        name
        for name, kind in look.kinds.items()
        if kind in (REAL, OTHER) and name not in known and (prefix_of(name, words) or name.lower() in words)
    }
    others = [name for name in look.numeric if name not in known and name not in called]
    lists = look.kinds[taken[0]] == LIST
    if not lists and not request.logits and others:
        if total_of(look.numbers(taken)) is None:
            called.update(_possible(look, others, request))
        elif not any(prefix_of(name, words) for name in taken):
            # A class that is given no probability has a sum of its own.
            called.update(
                name for name, column in zip(others, look.numbers(others).T, strict=True) if not column.any()
            )
    return tuple(name for name in look.kinds if name in called)
