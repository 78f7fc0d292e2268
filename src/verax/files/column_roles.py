"""Which column of a file is what: as the caller says, or by name where only one reading is possible."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence

from verax.errors import InputError, Kind, Remedy, join, passing, show
from verax.files.predictions import Request, Roles

TARGETS = (
    *("label", "labels", "target", "targets", "y", "y_true", "outcome", "outcomes", "truth", "true_label"),
    *("class", "actual", "ground_truth"),
)
# Names that may mean something else, taken for the outcomes where no column has one of those above.
MAYBE_TARGETS = ("obs", "observed", "obs.cat", "obs_cat", "category")
PROBS = (
    *("p", "prob", "probs", "proba", "probas", "probability", "probabilities", "y_prob", "y_proba"),
    *("y_probs", "pred_prob", "pred_probs", "pred_proba", "predicted_probability", "softmax"),
)
LOGITS = ("logit", "logits", "z", "y_logit", "y_logits")

# What columns hold: numbers, whole numbers, lists of numbers, texts of which some are numbers (reading
# them will name those that are not), objects, anything else.
REAL, INTEGER, LIST, DOUBTFUL, OBJECT, OTHER = "real", "integer", "list", "doubtful", "object", "other"
_SEPARATORS = "_.-: "
# A shorter prefix, such as the p of price, proves nothing.
_LONG = 4


def find_roles(
    kinds: Mapping[str, str], request: Request, *, where: str, labels: Collection[str] = ()
) -> Roles:
    """Decide which column is what.

    Parameters
    ----------
    kinds : Mapping[str, str]
        What each column holds: REAL, INTEGER, LIST, DOUBTFUL, OBJECT or OTHER.
    request : Request
    where : str
        The file, for messages.
    labels : Collection[str]
        Some of the texts that the target holds, for columns that are named like classes.
    """
    columns = list(kinds)
    target = find_target(columns, request, where)
    named = [request.weights, request.groups, *request.by, request.id]
    options = ["weights", "groups", *["by"] * len(request.by), "id"]
    for option, name in zip(options, named, strict=True):
        if name is not None:
            _require(name, columns, option, where)
    others = {target, *(name for name in named if name is not None)}
    left = {name: kind for name, kind in kinds.items() if name not in others}
    if request.probs:
        probs, names = _asked(left, request, where)
    else:
        probs, names = _guessed(left, request, where, labels)
    return Roles(
        target,
        probs,
        names,
        request.weights,
        request.groups,
        request.by,
        request.id,
        request.logits,
        not_taken=() if request.probs else _also_called(left, probs, request),
    )


def find_target(columns: Sequence[str], request: Request, where: str) -> str:
    """The column of outcomes."""
    if request.target is not None:
        return _require(request.target, columns, "target", where)
    found = [c for c in columns if c.lower() in TARGETS]
    found = found or [c for c in columns if c.lower() in MAYBE_TARGETS]
    if len(found) == 1:
        return found[0]
    if found:
        raise _refusal(
            "Several columns may hold the outcomes",
            "target",
            where,
            join(found),
            passing("to choose", target=...),
        )
    others = [c for c in columns if not _prefix(c, PROBS)] or columns
    raise _refusal(
        "No column is called like outcomes (label, target, y, ...)",
        "target",
        where,
        f"the file has {_listing(others)}",
        passing(target=...),
        kind="missing",
    )


def _refusal(
    requirement: str, argument: str, where: str, found: str = "", *remedies: Remedy, kind: Kind = "value"
) -> InputError:
    return InputError(requirement, argument=argument, kind=kind, found=found, remedies=remedies, source=where)


def _require(name: str, columns: Sequence[str], option: str, where: str) -> str:
    if name in columns:
        return name
    near = difflib.get_close_matches(name, columns, n=1)
    raise _missing(name, option, where, near, f"the file has {_listing(columns)}")


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


def _asked(
    kinds: Mapping[str, str], request: Request, where: str
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The columns that names and patterns ask for, in the order asked, each pattern in file order."""
    found: dict[str, None] = {}
    for pattern in request.probs:
        if pattern in kinds:
            found[pattern] = None
            continue
        matches = fnmatch.filter(kinds, pattern)
        if not matches:
            near = (
                [] if _literal(pattern) != pattern else difflib.get_close_matches(pattern, list(kinds), n=1)
            )
            raise _missing(pattern, "probs", where, near, f"the other columns are {_listing(list(kinds))}")
        found |= dict.fromkeys(matches)
    probs = tuple(found)
    lists = [name for name in probs if kinds[name] == LIST]
    if lists and len(probs) > 1:
        raise _refusal(
            f"Column {show(lists[0])} holds lists of probabilities, so it must be the only one",
            "probs",
            where,
        )
    if lists:
        return probs, None
    prefix = _literal(request.probs[0])
    if len(request.probs) == 1 and prefix and prefix != request.probs[0]:
        return probs, _without(prefix, probs)
    return probs, _strip(probs)


def _literal(pattern: str) -> str:
    """What stands before the first wildcard of a pattern."""
    return re.split(r"[*?\[]", pattern)[0]


def _guessed(
    kinds: Mapping[str, str], request: Request, where: str, labels: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """The one set of columns whose names say that they are probabilities."""
    words = LOGITS if request.logits else PROBS
    found = _candidates(kinds, words, labels)
    if len(found) == 1:
        return found[0]
    choose = passing("(names, or a pattern)", probs=...)
    if found:
        sets = " or ".join(f"({_listing(probs, 4)})" for probs, _ in found)
        raise _refusal(f"Several sets of columns may hold the {_what(request)}", "probs", where, sets, choose)
    # A single column called z is as likely a feature.
    logits = [] if request.logits else _candidates(kinds, [word for word in LOGITS if word != "z"], ())
    if not any(kind in (REAL, INTEGER, LIST, DOUBTFUL) for kind in kinds.values()):
        raise _refusal(
            f"No column besides the outcomes holds numbers, so there are no {_what(request)}",
            "probs",
            where,
            f"the others are {_listing(list(kinds))}",
            *_objects(kinds),
            kind="missing",
        )
    if logits:
        raise _refusal(
            "There are columns that are called like logits and none like probabilities",
            "logits",
            where,
            _listing(logits[0][0]),
            passing("if they hold logits", logits=True),
            kind="missing",
        )
    pattern = "logit_*" if request.logits else "p_*, prob_*, ..."
    raise _refusal(
        f"No columns are called like {_what(request)} ({pattern}), nor like the classes",
        "probs",
        where,
        f"the file has {_listing(list(kinds))}",
        choose,
        *_objects(kinds),
        kind="missing",
    )


def _objects(kinds: Mapping[str, str]) -> list[Remedy]:
    named = [name for name, kind in kinds.items() if kind == OBJECT]
    text = f"Objects ({_listing(named)}) are not read; write a column per class, or lists."
    return [Remedy(text)] if named else []


def _what(request: Request) -> str:
    return "logits" if request.logits else "probabilities"


def _candidates(
    kinds: Mapping[str, str], words: Sequence[str], labels: Collection[str]
) -> list[tuple[tuple[str, ...], tuple[str, ...] | None]]:
    """Sets of columns that may be the probabilities, with the names of their classes."""
    numeric = [name for name, kind in kinds.items() if kind in (REAL, INTEGER, DOUBTFUL)]
    sets: dict[str, list[str]] = {}
    for name in numeric:
        prefix = _prefix(name, words)
        if prefix:
            sets.setdefault(prefix, []).append(name)
    sets = {prefix: _with_words(prefix, names, kinds, words) for prefix, names in sets.items()}
    found: list[tuple[tuple[str, ...], tuple[str, ...] | None]] = [
        (tuple(names), _without(prefix, names)) for prefix, names in sets.items() if len(names) > 1
    ]
    found += [((name,), None) for name, kind in kinds.items() if kind == LIST and name.lower() in words]
    if found:
        return found
    like_classes = tuple(name for name in numeric if name in labels)
    if len(like_classes) > 1 or (len(like_classes) == 1 and len(labels) == 2):
        return [(like_classes, like_classes)]
    numbered = tuple(name for name in numeric if kinds[name] == REAL and re.fullmatch(r"-?\d+", name))
    if len(numbered) > 1:
        return [(numbered, numbered)]
    single = [(name, _prefix(name, words)) for name in numeric]
    return [
        ((name,), None if prefix is None or prefix == name else _without(prefix, [name]))
        for name, prefix in single
        if prefix or name.lower() in words
    ]


def _with_words(prefix: str, names: list[str], kinds: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Numbered columns such as prob1 and prob2 together with the probtie between them, in file order."""
    if prefix[-1] in _SEPARATORS or len(prefix) < _LONG:
        return names
    joined = [
        name
        for name, kind in kinds.items()
        if kind == REAL and name.startswith(prefix) and name[len(prefix) :].isalpha()
    ]
    joined = [name for name in joined if name.lower() not in words]
    return [name for name in kinds if name in {*names, *joined}]


def _also_called(kinds: Mapping[str, str], taken: Sequence[str], request: Request) -> tuple[str, ...]:
    """Columns of numbers that are called like the probabilities taken, and were not."""
    words = LOGITS if request.logits else PROBS
    return tuple(
        name
        for name, kind in kinds.items()
        if kind == REAL and name not in taken and (_prefix(name, words) or name.lower() in words)
    )


def _prefix(name: str, words: Sequence[str]) -> str | None:
    """The longest known beginning of a name, with its separator; None where there is none."""
    best = None
    for word in words:
        if not name.lower().startswith(word):
            continue
        rest = name[len(word) :]
        if len(rest) > 1 and rest[0] in _SEPARATORS:
            prefix = name[: len(word) + 1]
        elif rest.isdecimal():
            prefix = name[: len(word)]
        else:
            continue
        if best is None or len(prefix) > len(best):
            best = prefix
    return best


def _without(prefix: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name[len(prefix) :] or name for name in names)


def _common(names: Sequence[str]) -> str:
    """What all names begin with."""
    low, high = min(names), max(names)
    end = next(
        (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high))
    )
    return low[:end]


def _strip(names: Sequence[str]) -> tuple[str, ...]:
    """Names without what they have in common, cut where a word ends."""
    if len(names) == 1:
        prefix = _prefix(names[0], PROBS + LOGITS)
        return _without(prefix or "", names)
    common = _common(names)
    if common.lower() in PROBS + LOGITS:
        return _without(common, names) if all(len(n) > len(common) for n in names) else tuple(names)
    end = max((common.rfind(s) for s in _SEPARATORS), default=-1)
    return _without(common[: end + 1], names)
