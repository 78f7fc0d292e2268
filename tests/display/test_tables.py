"""Tables of texts."""

from __future__ import annotations

from verax.display.tables import text_table


def test_a_row_of_a_table_is_one_line_without_control_characters():
    lines = text_table([["class", "n"], ["two\nlines", "1"], ["red\x1b[31m\ttab", "2"]])
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert "two\\nlines" in lines[1]
