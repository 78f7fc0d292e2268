"""Texts from outside, made safe to show on a terminal and on a page."""

from __future__ import annotations

import math
import re

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
