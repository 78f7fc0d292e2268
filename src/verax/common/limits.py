"""How much a file may ask for. More is refused, because a small file must not fill the machine.

SECURITY.md states these limits.
"""

from __future__ import annotations

# Columns of a table, and bytes of its first line.
MOST_COLUMNS = 2**16
LONGEST_HEADER = 2**24
# Bytes of a line of JSON, levels of nesting in it, and cells of a table of lines with different keys.
LONGEST_LINE = 2**28
MOST_LEVELS = 256
MOST_CELLS = 2**25
# Bytes of standard input that are kept in a temporary file.
MOST_PIPED = 2**34
# Bytes in memory of saved arrays that are stored in a shorter form.
MOST_EXPANDED = 2**28
# Members of an archive, bytes of a member, and bytes above which its compression ratio is limited.
MOST_MEMBERS = 2**22
LARGEST_MEMBER, LARGE_MEMBER, MOST_RATIO = 2**30, 2**24, 200
# Characters of a cell of a table, and of a line, in a terminal; the rest is cut.
LONGEST_CELL, LONGEST_SHOWN = 200, 5000
