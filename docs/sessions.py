"""Write what is shown below the commands in the documentation anew: `python docs/sessions.py [PAGE...]`.

A page shows the output of a command in full, or with `...` in place of lines. Where the output has changed,
the lines that are shown are replaced by those of today at the same places; a command for which that fails is
named, to be edited by hand. `tests/cli/test_examples.py` runs the commands and compares.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import demofiles  # noqa: E402
from commandline import verax  # noqa: E402
from pages import PAGES, name_of  # noqa: E402

SESSION = re.compile(r"^\$ (verax .*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def matches(shown: str, text: str) -> bool:
    """Whether a page shows the output; three dots stand for anything, and lines may be broken elsewhere."""
    pattern = re.escape(" ".join(shown.split())).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, " ".join(text.split())) is not None


def renewed(shown: str, text: str) -> str:
    """What a page shows, with the lines of today in place of those that are most like them."""
    today, found, at = text.splitlines(), [], 0
    parts = re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)
    for k, part in enumerate(parts):
        lines = part.splitlines()
        if not lines:
            found.append("")
            continue
        start = _nearest(lines[0], today, at) if k else 0
        # The last part of a page ends where the output ends; others end at the line most like their last.
        last = k == len(parts) - 1 and len(parts) > 1
        end = len(today) - 1 if last or len(parts) == 1 else _nearest(lines[-1], today, start)
        # A sentence is shown to its end.
        while lines[-1].endswith(".") and not today[end].endswith(".") and end + 1 < len(today):
            end += 1
        found.append("".join(f"{line}\n" for line in today[start : end + 1]))
        at = end + 1
    return "...\n".join(found)


def _nearest(line: str, today: list[str], start: int) -> int:
    likeness = [difflib.SequenceMatcher(None, line, other).ratio() for other in today[start:]] or [0.0]
    return start + likeness.index(max(likeness))


def renew(page: Path) -> None:
    """Write a page anew, and say what has to be looked at."""
    before = text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```console\n(.*?)^```", before, re.DOTALL | re.MULTILINE):
        for command, shown in SESSION.findall(block):
            ran = verax(*shlex.split(command)[1:], columns=80)
            today = ran.stdout + ran.stderr
            if matches(shown, today):
                continue
            new = renewed(shown, today)
            print(f"{name_of(page)}: {command}{'' if matches(new, today) else ': EDIT BY HAND'}")
            text = text.replace(f"$ {command}\n{shown}", f"$ {command}\n{new}")
    if text != before:
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            demofiles.write_all(Path(folder))
            demofiles.write_demo(Path(folder))
            os.chdir(folder)
            renew(page)
            os.chdir(ROOT)
