"""Texts from outside, made safe to show on a terminal and on a page."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import Any

# Control characters, marks that are not seen or change the direction of text, line separators, and lone
# surrogates.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Text for a terminal, with control and invisible characters as escapes.

    >>> print(visible("red\x1b[31m, line\nnext"))
    red\x1b[31m, line
    next
    """
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def on_a_line(text: str) -> str:
    r"""Visible text on one line: line breaks and tabs are escapes as well.

    >>> on_a_line("two\nlines")
    'two\\nlines'
    """
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int) -> str:
    """A text cut to `most` characters, with the number of those left out.

    >>> shortened("x" * 30, 20)
    'xxxx... (30 in all)'
    """
    if len(text) <= most:
        return text
    end = f"... ({len(text):,} in all)"
    return text[: most - len(end) - 1] + end


def bound(value: float) -> str:
    """A bound on an error with one digit, rounded up, so that it stays one.

    >>> bound(0.00141), bound(0.02), bound(0.0), bound(9.6e-7)
    ('0.002', '0.02', '0', '1e-06')
    """
    nearest = f"{value:.1g}"
    if not math.isfinite(value) or float(nearest) >= value:
        return nearest
    return f"{float(nearest) + 10.0 ** math.floor(math.log10(value)):.1g}"


def percent(x: float, digits: int | None = None, sign: str = "") -> str:
    """A share in percent, with two significant digits or a given number of decimals.

    It reads 0 only if it is zero. With `sign` "+" positive ones have a sign.

    >>> percent(0.7412), percent(0.00123), percent(-0.05), percent(0.5, 1), percent(1.0)
    ('74%', '0.12%', '−5%', '50.0%', '100%')
    >>> percent(0.0004, 0), percent(0.0, 0), percent(0.0312, 1, "+")
    ('0.04%', '0%', '+3.1%')
    """
    if math.isnan(x):
        return "–"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    value = 100 * x
    small = value and abs(value) < 0.5 / 10 ** (6 if digits is None else digits)
    if small and abs(value) < 1e-5:
        text = f"{value:{sign}.1g}"
    elif digits is None or small:
        magnitude = math.floor(math.log10(abs(value))) if value else 0
        text = f"{value:{sign}z.{min(6, max(0, 1 - magnitude))}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:{sign}z.{digits}f}"
    return f"{text}%".replace("-", "−")


def percent_span(low: float, high: float) -> str:
    """An interval of shares, with enough digits for its ends to differ.

    >>> percent_span(0.251, 0.374), percent_span(0.1604, 0.1623), percent_span(0.5, 0.5)
    ('25% to 37%', '16.0% to 16.2%', '50% to 50%')
    """
    if percent(low) != percent(high) or low == high:
        return f"{percent(low)} to {percent(high)}"
    digits = next((d for d in range(1, 5) if percent(low, d) != percent(high, d)), 5)
    return f"{percent(low, digits)} to {percent(high, digits)}"


def in_format(value: Any, spec: str) -> str:
    """A value in a format; a share in a format of percentages, such as ".1%", reads 0 only if it is zero.

    >>> in_format(0.0004, ".1%"), in_format(-0.25, "+.0%"), in_format(1.5, ".2f")
    ('0.04%', '−25%', '1.50')
    """
    if not spec.endswith("%") or not isinstance(value, Real):
        return format(value, spec)
    sign, _, digits = spec.removesuffix("%").replace("z", "").partition(".")
    return percent(float(value), int(digits or 6), sign)
