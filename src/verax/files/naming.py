"""Names of columns: which are called like outcomes, probabilities or logits, and what classes they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

# With underscores for separators of any kind.
TARGETS = (
    *("label", "labels", "target", "targets", "y", "y_true", "outcome", "outcomes", "truth", "true_label"),
    *("y_test", "y_val", "y_valid"),
    *("class", "true_class", "actual", "ground_truth", "gt", "true"),
)
# Ambiguous names, read as the outcomes where no column has one of those above.
MAYBE_TARGETS = (
    *("obs", "observed", "obs_cat", "category", "correct", "answer", "correct_answer", "grade", "diagnosis"),
    "resolution",
)
PROBS = (
    *("p", "prob", "probs", "proba", "probas", "probability", "probabilities", "y_prob", "y_proba"),
    *("y_probs", "pred_prob", "pred_probs", "pred_proba", "predicted_probability", "softmax"),
)
# Ambiguous names, read as probabilities where there are no others and values lie between 0 and 1.
MAYBE_PROBS = (
    *("y_pred_proba", "y_pred_prob", "y_pred_probs", "y_pred_probas", "y_score", "y_scores", ".pred"),
    *("predicted_prob", "predicted_proba", "predicted_probabilities", "pred_probability"),
    *("prediction_probability", "scored_probabilities"),
)
# Words of probabilities only before a class in brackets: confidence(yes) of RapidMiner.
BRACKETED = ("confidence",)
LOGITS = ("logit", "logits", "z", "y_logit", "y_logits")

IDS = (
    *("id", "ids", "index", "idx", "key", "uid", "uuid", "guid", "row_id", "rowid", "sampleid", "name"),
    *("filename", "file", "file_name", "image", "image_name", "path", "case", "row"),
)
SEPARATORS = "_.-: "
# What follows a word in P(Yes), Prob[Yes] and P (Churn=Yes), up to the class.
_BRACKET = re.compile(r"\s*[(\[](?:[^=()\[\]]+=)?(?=[^()\[\]]+[)\]]$)")
# CatBoost writes Probability:Class=Yes.
_CLASS_IS = "class="
# A shorter prefix, such as the p of price, proves nothing.
LONG = 4


def spoken(name: str) -> str:
    """A name in small letters, with an underscore for every run of separators and blanks.

    >>> spoken(" Correct Answer"), spoken("y.true")
    ('correct_answer', 'y_true')
    """
    return re.sub(r"[\s_.\-:]+", "_", name.strip().lower())


def is_id(name: str) -> bool:
    """Whether a column is called like one that identifies rows; a frame's index has no name.

    >>> [is_id(name) for name in ("id", "PassengerId", "customerID", "image_id", "", "paid", "price")]
    [True, True, True, True, True, False, False]
    """
    whole = spoken(name) in (*IDS, "unnamed_0", "")
    return whole or bool(re.search(r"([a-z0-9]I[dD]|[\s_.\-:](id|ids|uid|uuid|key))$", name.strip()))


def literal(pattern: str) -> str:
    """What stands before the first wildcard of a pattern."""
    return re.split(r"[*?\[]", pattern)[0]


def prefix_of(name: str, words: Sequence[str]) -> str | None:
    """The longest known beginning of a name, with its separator or bracket; None where there is none.

    >>> prefix_of("p_cat", PROBS), prefix_of("P(Yes)", PROBS), prefix_of("Probability:Class=Yes", PROBS)
    ('p_', 'P(', 'Probability:Class=')
    """
    best = None
    for word in words:
        if not name.lower().startswith(word):
            continue
        rest = name[len(word) :]
        if len(rest) > 1 and rest[0] in SEPARATORS:
            named = len(rest) > 1 + len(_CLASS_IS) and rest[1:].lower().startswith(_CLASS_IS)
            prefix = name[: len(word) + 1 + len(_CLASS_IS) * named]
        elif rest.isdecimal():
            prefix = name[: len(word)]
        elif bracket := _BRACKET.match(rest):
            prefix = name[: len(word) + bracket.end()]
        else:
            continue
        if best is None or len(prefix) > len(best):
            best = prefix
    return best


def without(prefix: str, names: Sequence[str]) -> tuple[str, ...]:
    """Names without their common beginning, and without the separators and blanks that follow it.

    >>> without("Model", ["Model Home", "Model - Away"]), without("p_", ["p__a", "p_-1"])
    (('Home', 'Away'), ('_a', '-1'))
    >>> without("P(", ["P(No)", "P(Yes)"])
    ('No', 'Yes')
    """
    rests = [name[len(prefix) :] for name in names]
    if re.search(r"[(\[]", prefix):
        return tuple(rest.rstrip(")]") or name for rest, name in zip(rests, names, strict=True))
    if prefix and prefix[-1] not in SEPARATORS:
        bare = [re.sub(r"^([\s_.:]|-(?!\d))+", "", rest) for rest in rests]
        rests = bare if len(set(bare)) == len(bare) else rests
    return tuple(rest or name for rest, name in zip(rests, names, strict=True))


def _common(names: Sequence[str]) -> str:
    """What all names begin with."""
    low, high = min(names), max(names)
    end = next(
        (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high))
    )
    return low[:end]


def stripped(names: Sequence[str]) -> tuple[str, ...]:
    """Names without what they have in common, cut where a word ends."""
    prefix = prefix_of(names[0], PROBS + MAYBE_PROBS + BRACKETED + LOGITS)
    if len(names) == 1:
        return without(prefix or "", names)
    if prefix and prefix[-1] in "([=" and all(name.startswith(prefix) for name in names):
        return without(prefix, names)
    common = _common(names)
    if common.lower() in PROBS + LOGITS:
        return without(common, names) if all(len(n) > len(common) for n in names) else tuple(names)
    letters = common.rstrip("0123456789")
    if letters and all(re.fullmatch(r"\d+", name[len(letters) :]) for name in names):
        return without(letters, names)
    end = max((common.rfind(s) for s in SEPARATORS), default=-1)
    return without(common[: end + 1], names)


def class_names(columns: tuple[str, ...], labels: Collection[str]) -> tuple[str, ...]:
    """The columns without what they have in common at either end, whichever has the labels seen.

    >>> class_names(("qa", "qb"), ["a"]), class_names(("Home win", "Away win"), ["Home", "Away"])
    (('a', 'b'), ('Home', 'Away'))
    """
    end = len(_common([name[::-1] for name in columns]))
    ways = [columns, without(_common(columns), columns), without("", [c[: len(c) - end] for c in columns])]
    return named_like(labels, ways) or stripped(columns)


def named_like(labels: Collection[str], ways: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The first names that have all the labels seen; None where there are none."""
    return next((names for names in ways if labels and set(labels) <= set(names)), None)
