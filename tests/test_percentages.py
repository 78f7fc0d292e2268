"""A share in percent reads 0% only if it is zero, because one function writes all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import verax as vx
from verax.common.texts import in_format, percent
from verax.display.tables import Column
from verax.inference.intervals import Interval

ROOT = Path(vx.__file__).parent
# Decimals that are cut: a share behind one of these formats may read 0.
CUT = re.compile(r".*\.?\d*[fe]$|.*%$|^$")
# Numbers in percent that are no shares of verax: printed tables of papers, and remainders in source code.
OTHER = {"wings/theory/papers/simulation.py", "kernels/fewclasses.py", "common/texts.py", "display/axes.py"}


def spec_of(value):
    parts = [] if value.format_spec is None else value.format_spec.values
    return "".join(part.value if isinstance(part, ast.Constant) else "?" for part in parts)


def made_by_hand(source):
    """The lines of a module where an f-string or a format cuts a percentage to some decimals."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            follows = [*node.values[1:], None]
            for value, after in zip(node.values, follows, strict=True):
                if not isinstance(value, ast.FormattedValue):
                    continue
                text = after.value if isinstance(after, ast.Constant) else ""
                spec = spec_of(value)
                if spec.endswith("%") or (CUT.match(spec) and re.match(r" ?(%|percent\b)", text)):
                    found.append(node.lineno)
    texts = [
        n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    return found + [n.lineno for n in texts if re.search(r"\{:[^{}]*(%\}|f\} ?%)", n.value)]


def test_percentages_made_by_hand_are_found():
    for line in ('f"{x:.0%}"', 'f"{100 * x:.1f}%"', 'f"{100 * x} %"', '"{:.1%}".format(x)', 'f"{x:.{n}%}"'):
        assert {1} == set(made_by_hand(line)), line
    for line in ('f"{100 * level:g}%"', 'f"{percent(x, 1)} of the rows"', 'f"{n:,} rows"'):
        assert made_by_hand(line) == [], line


def test_no_percentage_is_made_by_hand():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in sorted(ROOT.rglob("*.py"))
        if (lines := made_by_hand(path.read_text()))
    }
    assert {name: lines for name, lines in found.items() if name not in OTHER} == {}


@pytest.mark.parametrize("share", [1e-9, 0.0004, 0.00049, -0.0004])
def test_a_share_reads_0_only_if_it_is_zero(share):
    zero = re.compile(r"[−+-]?0(\.0*)?%")
    for text in (percent(share), percent(share, 0), percent(share, 1), in_format(share, "+.1%")):
        assert not zero.fullmatch(text), text
    assert not zero.fullmatch(Column("x", "x", ".1%", lambda _: share).shown(None))
    low, _, high = format(Interval(-abs(share), abs(share)), ".1%").partition(" to ")
    assert not zero.fullmatch(low)
    assert not zero.fullmatch(high)
    assert [in_format(0.0, ".1%"), percent(0.0), percent(0.0, 0)] == ["0.0%", "0%", "0%"]
    assert not zero.fullmatch(in_format(np.float32(share), ".1%"))
