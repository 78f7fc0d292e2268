"""Tables of results: declared once, shown in terminals and notebooks, and given as data frames.

A result that is `Tabled` declares its columns (name in data frames, heading for readers, format, value) and
the lines that they are taken from. What is drawn in the end are texts with the header first (`Cells`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, get_args

from verax._settings import settings
from verax.common.checks import check_choice
from verax.common.texts import in_format, on_a_line, shortened
from verax.errors import MissingPackageError

Cells = list[list[str]]
FrameKind = Literal["pandas", "polars", "pyarrow"]
# The heading of a column for readers that has none.
NO_HEADING = " "


@dataclass(frozen=True)
class Column:
    """A column of a result's table.

    Attributes
    ----------
    name : str
        Its name in data frames; two names, with a space between them, are those of the ends of an interval.
        Empty where only readers see it.
    head : str
        Its heading for readers; empty where only data frames have it.
    text : str or callable
        How a value is written, or what is written for a line.
    value : str or callable
        The value of a line, or the name of the line's attribute; by default the attribute of its name.
    right : bool
        Whether it is flush right.
    spare : int
        How soon it is given up where a terminal is too narrow: the greatest first, of equal ones the last.
    brief : str
        Its heading where there is no room for `head`; by default the same.
    """

    name: str
    head: str = ""
    text: str | Callable[[Any], str] = ""
    value: str | Callable[[Any], Any] = ""
    right: bool = True
    spare: int = 0
    brief: str = ""

    def of(self, line: Any) -> Any:
        """The value of a line."""
        return self.value(line) if callable(self.value) else getattr(line, self.value or self.name)

    def shown(self, line: Any) -> str:
        """The value of a line for readers; nothing where there is none."""
        if callable(self.text):
            return self.text(line)
        value = self.of(line)
        return "" if value is None else in_format(value, self.text)


@dataclass(frozen=True)
class Table:
    """The columns of a table and the lines that they are taken from.

    Attributes
    ----------
    ruled : bool
        Whether there are rules around its lines.
    first : Sequence
        The lines that a terminal shows, in this order, unless all are asked for; all where it is empty.
    """

    columns: Sequence[Column]
    lines: Sequence[Any]
    title: str = ""
    ruled: bool = False
    first: Sequence[Any] = ()

    def cells(self) -> Cells:
        """The table for readers, with its header."""
        shown = self._shown
        return [[c.head for c in shown], *([c.shown(line) for c in shown] for line in self.lines)]

    @property
    def right(self) -> list[int]:
        """The columns of `cells` that end at the right, as numbers do."""
        return [i for i, column in enumerate(self._shown) if column.right]

    def text(self, *, closed: bool = True) -> list[str]:
        """The lines for a terminal; `closed` with a rule below, where they are ruled."""
        lines = self._text_lines()
        rule = "-" * max(map(len, lines))
        return [lines[0], rule, *lines[1:], *([rule] if closed else [])] if self.ruled else lines

    def _text_lines(self) -> list[str]:
        room = _room.get()
        if room is None:
            return text_table(self.cells(), right=self.right)
        lines = self.first or self.lines
        room.lines += len(self.lines) - len(lines)
        return room.fit(replace(self, lines=lines))

    def frame(self, kind: FrameKind) -> Any:
        """The table as a data frame; values of different types in a column become texts."""
        columns: dict[str, list[Any]] = {}
        for column in self.columns:
            if not column.name:
                continue
            values = [column.of(line) for line in self.lines]
            low, _, high = column.name.partition(" ")
            if high:
                columns[low] = [None if value is None else value[0] for value in values]
                columns[high] = [None if value is None else value[1] for value in values]
            else:
                columns[low] = _of_one_type(values)
        return data_frame(columns, kind)

    @property
    def _shown(self) -> list[Column]:
        return [column for column in self.columns if column.head]


@dataclass
class LineRoom:
    """The width of a terminal, and what was left out of the tables that were fitted into it.

    Attributes
    ----------
    width : int
        Characters in a line.
    columns : dict
        The headings of columns that were given up.
    lines : int
        The number of lines that were left out.
    """

    width: int
    columns: dict[str, None] = field(default_factory=dict)
    lines: int = 0

    def fit(self, table: Table) -> list[str]:
        """The lines of a table, none of which is wider than the terminal.

        Brief headings are tried first, then numbers without the intervals in brackets after them. Then
        columns are given up: those that are `spare` until all is shown in full, others where texts would have
        to be cut too short. Those for which there is room come back.
        """
        shown, cells = table._shown, _clean(table.cells())
        full = [[row[i] for row in cells] for i in range(len(shown))]
        if self._over(map(_longest, full)):
            for column, texts in zip(shown, full, strict=True):
                texts[0] = column.brief or column.head
        movable = [i for i, column in enumerate(shown) if i or column.spare]
        order = sorted(movable, key=lambda i: (-shown[i].spare, -i))
        kept = dict(enumerate(full))
        for i in order:
            if shown[i].right and self._over(map(_longest, kept.values())):
                kept[i] = [_BRACKETS.sub("", text) for text in full[i]]
        for i in order:
            cut = not shown[i].spare
            widths = [
                min(_longest(texts), _SHORTEST) if cut and not shown[j].right else _longest(texts)
                for j, texts in kept.items()
            ]
            if len(kept) > 2 and self._over(widths):
                del kept[i]
        for i in reversed(order):
            if not self._over(map(_longest, {**kept, i: full[i]}.values())):
                kept[i] = full[i]
        self._note_missing(shown, full, kept)
        widths_of = {i: _longest(texts) for i, texts in kept.items()}
        while self._over(widths_of.values()):
            # The widest text gives way; numbers do not, unless nothing else is left.
            widest = max(widths_of, key=lambda i: (not shown[i].right and widths_of[i] > 6, widths_of[i]))
            if widths_of[widest] <= 1:
                break
            widths_of[widest] -= 1
        chosen = sorted(kept)
        texts_of = [[_cut(text, widths_of[i], name=not i) for text in kept[i]] for i in chosen]
        return text_table(
            [list(row) for row in zip(*texts_of, strict=True)],
            right=[k for k, i in enumerate(chosen) if shown[i].right],
        )

    def _note_missing(
        self, shown: Sequence[Column], full: Sequence[list[str]], kept: Mapping[int, list[str]]
    ) -> None:
        for i, column in enumerate(shown):
            if i not in kept:
                self.columns[column.head] = None
            elif kept[i] != full[i]:
                self.columns[f"{column.head} (interval)"] = None

    def _over(self, widths: Iterable[int]) -> bool:
        columns = list(widths)
        return sum(columns) + 2 * (len(columns) - 1) > self.width


# Where it is None, as in Python and notebooks, tables are as wide as they are.
_room: ContextVar[LineRoom | None] = ContextVar("room", default=None)
# Characters that LaTeX reads as commands, and how they are written.
_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_BRACKETS = re.compile(r" \(.* to .*\)$")
# Texts are not cut below this width while there is a column to give up.
_SHORTEST = 24


@contextmanager
def fitted(width: int | None) -> Iterator[LineRoom]:
    """Fit the tables that are written inside into lines of a width; None is any width."""
    room = LineRoom(width or 0)
    token = _room.set(None if width is None else room)
    try:
        yield room
    finally:
        _room.reset(token)


class Tabled:
    """A result that declares its tables once: `repr`, notebooks and data frames are made from them."""

    # Whether an empty line stands before the notes.
    _notes_apart: ClassVar[bool] = False

    def _heading(self) -> str:
        """Text above the tables; nothing where it is empty."""
        return ""

    def _told(self) -> Sequence[str]:
        """Lines of the verdict, below the heading; none where there is no verdict."""
        return ()

    def _tables(self) -> Sequence[Table]:
        """The tables that readers see; none where the notes say everything."""
        return ()

    def _notes(self) -> Sequence[str]:
        """Notes for readers of the tables."""
        return ()

    def _frame(self) -> Table | dict[str, list[Any]]:
        """The content of data frames, as a table or as columns; by default the first table."""
        return self._tables()[0]

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """The table as a data frame of the kind named, with numbers in full.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        table = self._frame()
        return table.frame(kind) if isinstance(table, Table) else data_frame(table, kind)

    def to_markdown(self) -> str:
        """The tables that readers see, in Markdown.

        Returns
        -------
        str
            The tables, each below its title; empty where the result has none.
        """
        return "\n\n".join(
            (f"**{_in_markdown(table.title)}**\n\n" if table.title else "") + markdown_table(table)
            for table in self._tables()
        )

    def to_latex(self) -> str:
        """The tables that readers see, in LaTeX.

        Returns
        -------
        str
            A ``tabular`` environment for each table, without captions; empty where the result has none.
        """
        return "\n\n".join(map(latex_table, self._tables()))

    def __repr__(self) -> str:
        return self._text(self._told())

    def _text(self, told: Sequence[str] = ()) -> str:
        """The heading, lines below it, the tables and the notes."""
        heading = self._heading()
        lines = [*([heading] if heading else []), *told]
        for i, table in enumerate(self._tables()):
            lines += [""] if i or table.title else []
            lines += [*([table.title] if table.title else []), *table.text(closed=not self._notes_apart)]
        notes = self._notes()
        return "\n".join([*lines, *([""] if notes and self._notes_apart else []), *notes])

    def _repr_html_(self) -> str:
        tables, heading, notes, told = self._tables(), self._heading(), self._notes(), self._told()
        if not tables:
            return f"<pre>{html.escape(repr(self))}</pre>"
        # A table with a title shows it in place of the heading, which then precedes it.
        above = f"<p>{html.escape(heading)}</p>" if tables[0].title else ""
        above += f"<p>{'<br>'.join(map(html.escape, told))}</p>" if told else ""
        captions = [tables[0].title or heading, *(table.title for table in tables[1:])]
        last = len(tables) - 1
        drawn = [
            html_table(table.cells(), caption=caption, notes=notes if i == last else ())
            for i, (table, caption) in enumerate(zip(tables, captions, strict=True))
        ]
        return above + "".join(drawn)


def interval_head(confidence: float) -> str:
    """The heading of a column of intervals."""
    return f"{100 * confidence:g}% interval"


def value_with_interval(value: float, interval: Any, spec: str) -> str:
    """A number with its confidence interval in brackets, where it has one."""
    known = interval is not None and interval.defined
    return f"{value:{spec}} ({interval:{spec}})" if known else f"{value:{spec}}"


def text_table(cells: Cells, *, right: Collection[int] = ()) -> list[str]:
    """Lines with aligned columns; those numbered in `right` are flush right.

    Control characters and line breaks in the cells are shown as escapes, so each row stays one line.
    """
    cells = _clean(cells)
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _clean(cells: Cells) -> Cells:
    return [[shortened(on_a_line(text), settings.longest_cell) for text in row] for row in cells]


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts))


def _cut(text: str, width: int, *, name: bool) -> str:
    """A text of at most this width: without what a semicolon or a bracket begins, or without its last words.

    A name keeps both ends, which tell it from others; so do both names of a difference.

    >>> _cut("share of the events (recall)", 22, name=False), _cut("a-long-name.parquet", 12, name=True)
    ('share of the events', 'a-lon...quet')
    """
    if len(text) <= width:
        return text
    one, minus, other = text.partition(" - ")
    if name and minus and width > 20:
        half = (width - len(minus)) // 2
        # Room that one name does not need goes to the other.
        first = _cut(one, max(half, width - len(minus) - len(other)), name=True)
        return f"{first}{minus}{_cut(other, width - len(minus) - len(first), name=True)}"
    if name or width < 12:
        half = max(width - 2, 0) // 2
        return f"{text[:half]}...{text[len(text) - (width - 3 - half) :]}" if width > 6 else text[:width]
    for mark in ("; ", " ("):
        before = text.partition(mark)[0]
        if width // 2 < len(before) <= width:
            return before
    return text[: width - 3].rpartition(" ")[0] + "..."


def html_table(cells: Cells, *, caption: str = "", notes: Collection[str] = ()) -> str:
    """A table element; every text is escaped."""
    header, *body = ([html.escape(text) for text in row] for row in cells)
    head = "".join(f"<th>{text}</th>" for text in header)
    rows = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in body)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    below = f"<p>{'<br>'.join(html.escape(note) for note in notes)}</p>" if notes else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}"


def markdown_table(table: Table) -> str:
    r"""A table in Markdown, with numbers flush right.

    >>> print(markdown_table(Table([Column("a", "a|b", ".1f", float)], [1, 2])))
    | a\|b |
    | ---: |
    | 1.0 |
    | 2.0 |
    """
    header, *body = ([_in_markdown(text) for text in row] for row in _clean(table.cells()))
    rule = ["---:" if i in table.right else "---" for i in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *body])


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\|*_`<>])", r"\\\1", text)


def latex_table(table: Table) -> str:
    r"""A table in LaTeX, with numbers flush right.

    >>> print(latex_table(Table([Column("a", "a_b", ".0%", float)], [1])))
    \begin{tabular}{r}
    a\_b \\
    \hline
    100\% \\
    \end{tabular}
    """
    header, *body = (" & ".join(map(_in_latex, row)) + r" \\" for row in _clean(table.cells()))
    sides = "".join("r" if column.right else "l" for column in table._shown)
    return "\n".join([rf"\begin{{tabular}}{{{sides}}}", header, r"\hline", *body, r"\end{tabular}"])


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in text)


def band_columns(band: Any, n: int) -> dict[str, list[Any]]:
    """The columns "low" and "high" of a curve with n points; None in all of them where it has no band."""
    low, high = ([None] * n, [None] * n) if band is None else (end.tolist() for end in band)
    return {"low": low, "high": high}


def stacked(parts: Iterable[Mapping[str, list[Any]]]) -> dict[str, list[Any]]:
    """Columns of the same names, below each other."""
    columns: dict[str, list[Any]] = {}
    for part in parts:
        for name, values in part.items():
            columns.setdefault(name, []).extend(values)
    return columns


def _of_one_type(values: list[Any]) -> list[Any]:
    """The values; as texts where their types differ."""
    types = {type(value) for value in values if value is not None}
    if len(types) > 1 and not types <= {int, float}:
        return [None if value is None else str(value) for value in values]
    return values


def data_frame(columns: dict[str, list[Any]], kind: FrameKind) -> Any:
    """Columns as a data frame of the kind named."""
    import narwhals as nw

    check_choice("kind", kind, get_args(FrameKind))
    try:
        return nw.from_dict(columns, backend=kind).to_native()
    except (ImportError, ModuleNotFoundError):
        raise MissingPackageError(
            f"to_frame needs {kind}: install it, or ask for another kind of frame."
        ) from None
