"""Titles of scores, texts from outside made safe to show, and numbers rounded for the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from verax.analyses.calibration.components import Components
from verax.common.texts import percent, visible
from verax.scores.metrics import METRICS
from verax.scores.registry import RULES

# How long a text from outside (a class, an id, a file name) may be before it is cut.
LONGEST = 120

# Numbers below this are written with an exponent.
_TINY = 1e-6

# Orders of rows beside those by rules.
_ORDERS = {"max_probability": "Largest probability", "entropy": "Entropy"}


def title_of(name: str) -> str:
    """The title of a rule, a metric or an order of rows; its own name where it has none.

    >>> title_of("rps"), title_of("expected brier"), title_of("focal")
    ('Ranked probability score', 'Expected Brier score', 'focal')
    """
    if name.startswith("expected "):
        inner = title_of(name.removeprefix("expected "))
        return f"Expected {inner}"
    known = RULES.get(name) or METRICS.get(name)
    return (known.title if known is not None else _ORDERS.get(name, "")) or name


_SHORT = {
    "brier": "Brier",
    "log_score": "Log",
    "rps": "RPS",
    "ranked_log": "Ranked log",
    "spherical": "Spherical",
}


def short_of(name: str) -> str:
    """The same, short enough for a legend.

    >>> short_of("rps"), short_of("expected rps"), short_of("max_probability")
    ('RPS', 'Expected RPS', 'Largest probability')
    """
    if name.startswith("expected "):
        return f"Expected {short_of(name.removeprefix('expected '))}"
    return _SHORT.get(name, title_of(name))


def said(name: str) -> str:
    """The name of a rule in a sentence.

    >>> said("rps"), said("brier"), said("log_score")
    ('RPS', 'Brier score', 'log score')
    """
    return _SHORT[name] if name == "rps" else within(title_of(name))


def within(title: str) -> str:
    """A title inside a sentence.

    >>> within("Ranked probability score"), within("RPS"), within("Brier score")
    ('ranked probability score', 'RPS', 'Brier score')
    """
    named = title.partition(" ")[0] in ("Brier",) or title[1:2].isupper()
    return title if named else title[:1].lower() + title[1:]


def chance(p: float) -> str:
    """A probability of one class.

    >>> chance(0.931), chance(0.0004), chance(0.00001), chance(0.0), chance(0.9996), chance(0.99999)
    ('0.93', '0.0004', '<0.0001', '0', '0.9996', '>0.9999')
    """
    if p <= 0 or p >= 1:
        return f"{p:.0f}"
    if 0.01 <= p <= 0.99:
        return f"{p:.2f}"
    return "<0.0001" if p < 1e-4 else ">0.9999" if p > 1 - 1e-4 else f"{p:.4f}"


def clean(value: object, longest: int = LONGEST) -> str:
    r"""A text from outside as it can be shown: one that encodes, without control characters, not too long.

    Control characters and halves of surrogate pairs are written out; line breaks stay.

    >>> clean("a\x00b\nc"), clean("x" * 10, 4)
    ('a\\x00b\nc', 'xxx…')
    """
    text = visible(str(value)[: 4 * longest]).replace("\t", "\\t")
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def distinct(values: Iterable[object]) -> tuple[str, ...]:
    """A different text for each value, also where `clean` makes the same text of two.

    >>> distinct([1, "1", "b"])
    ('1', '1 (2)', 'b')
    """
    taken: dict[str, int] = {}
    texts = []
    for value in values:
        text = clean(value)
        shown = text
        while shown in taken:
            taken[text] += 1
            shown = f"{text} ({taken[text]})"
        taken[shown] = 1
        texts.append(shown)
    return tuple(texts)


# Labels that say nothing alone.
_BARE = frozenset({"yes", "no", "true", "false"})


def class_titles(labels: Sequence[str], outcome: str) -> tuple[str, ...]:
    """The names of classes in a sentence or a title: with that of the outcome if they are numbers.

    >>> class_titles(["0", "1"], "churn"), class_titles(["low", "high"], "risk"), class_titles(["0", "1"], "")
    (('churn = 0', 'churn = 1'), ('low', 'high'), ('0', '1'))
    """
    bare = all(label.lstrip("-").isdigit() or label.lower() in _BARE for label in labels)
    if not outcome or not bare:
        return tuple(labels)
    return tuple(f"{clean(outcome, 40)} = {label}" for label in labels)


def number(x: float | None, digits: int = 4) -> str:
    """A number with a given number of decimals, more where all would be zero; a dash if undefined.

    >>> number(0.04057), number(0.00001234), number(float("inf")), number(float("nan")), number(-0.25, 2)
    ('0.0406', '0.000012', '∞', '–', '−0.25')
    >>> number(8.2e-12), number(-3e-7)
    ('8.2e−12', '−3.0e−7')
    """
    if x is None or math.isnan(x):
        return "–"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if 0 < abs(x) < _TINY:
        mantissa, _, exponent = f"{x:.1e}".partition("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    if x != 0 and abs(x) < 10 ** (1 - digits):
        digits = 1 - math.floor(math.log10(abs(x)))
    return f"{x:z,.{digits}f}".replace("-", "−")


def span(interval: Sequence[float] | None, digits: int = 4) -> str:
    """An interval.

    >>> span((0.1, 0.25)), span((float("nan"), float("nan"))), span(None)
    ('0.1000 to 0.2500', '–', '–')
    """
    if interval is None or any(math.isnan(end) for end in interval):
        return "–"
    return f"{number(interval[0], digits)} to {number(interval[1], digits)}"


def alike(low: float, high: float) -> bool:
    """Whether the ends of an interval are equal for all purposes: rows that all have the same loss.

    >>> alike(0.5, 0.5 + 1e-9), alike(0.5, 0.501)
    (True, False)
    """
    return bool(high - low <= 1e-6 * max(1.0, abs(low)))


def abbreviated(texts: Sequence[str], longest: int = 22) -> list[str]:
    """Texts for an axis, long ones without their middle; those that would look alike keep more.

    >>> abbreviated(["moderate", "a very long name of a class, first", "a very long name of a class, second"])
    ['moderate', 'a very lon…lass, first', 'a very lon…ass, second']
    """
    longest = max(longest, 4)
    while True:
        shown = [_middle_cut(text, longest) for text in texts]
        if len(set(shown)) == len(set(texts)) or longest > LONGEST:
            return shown
        longest += 8


def _middle_cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    tail = longest // 2
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"


def part_of(x: float) -> str:
    """A share of rows in whole percent; with decimals where it is not quite nothing or all.

    >>> part_of(0.734), part_of(0.005), part_of(0.0004), part_of(0.996), part_of(0.99996), part_of(1.0)
    ('73%', '0.5%', '0.04%', '99.6%', '>99.9%', '100%')
    """
    if 0 < x < 0.01:
        return percent(x)
    # Shares of raters add up to 1 within rounding.
    if 0.99 < x < 1 - 1e-11:
        return ">99.9%" if x > 0.999 else percent(x, 1)
    return percent(x, 0)


def probability(p: float | None) -> str:
    """A p-value."""
    if p is None or math.isnan(p):
        return "–"
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}" if p < 0.1 else f"{p:.2f}"


def p_of(whole: Components) -> str:
    """The p-value of calibration; at most one over the number of draws and one where no draw reaches it."""
    return f"p {'≤' if whole.p_is_bound else '='} {probability(whole.p_value)}"


def large(n: int) -> str:
    """A number of classes, which may be astronomical.

    >>> large(1200), large(10**20)
    ('1,200', '1e+20')
    """
    return f"{n:,}" if n < 10**15 else f"{float(n):.3g}"


def count(n: float, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> count(1, "row"), count(1200, "row"), count(2, "class", "classes")
    ('1 row', '1,200 rows', '2 classes')
    """
    return f"{n:,.10g} {one if n == 1 else many or one + 's'}"
