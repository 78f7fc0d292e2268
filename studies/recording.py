"""Keep what a study prints, together with what it was made from, and put it into the study's page.

    python studies/ordered.py FOLDER            # print the tables
    python studies/ordered.py FOLDER --save     # and keep them in studies/results/ordered.json and the page
    python studies/recording.py                 # write all kept tables into their pages
    python studies/recording.py --stale         # name the studies whose code changed since

A page has a place for each table, between two comments:

    <!-- table: NAME -->
    <!-- end -->

`results/*.json` holds the tables by name, the version of verax, the seed, a digest of each data file that was
read, and a digest of each module of which a function ran. Comments and docstrings do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import re
import sys
import threading
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import verax as vx
import widths_measured
from measured import summary

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results"
SOURCES = (HERE, ROOT / "src" / "verax")
PLACE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
MARKER = re.compile(r"<!-- table: ([\w-]+) -->")


class Data:
    """The folder of the data, which remembers what was read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: set[str] = set()

    def file(self, name: str) -> Path:
        """The path of a file, given as "folder/name"."""
        self.read.add(name)
        return self.folder / name

    def digests(self) -> dict[str, str]:
        return {name: _short((self.folder / name).read_bytes()) for name in sorted(self.read)}


def run(script: str, tables: Mapping[str, Callable[[Data], None]], *, seed: int = 0) -> None:
    """Print the tables of a study, each under its name, and keep them if asked to."""
    parser = argparse.ArgumentParser(prog=Path(script).name)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--save", action="store_true", help="keep the tables in studies/results")
    options = parser.parse_args()
    data, kept = Data(options.folder), {}
    with _watched() if options.save else contextlib.nullcontext(set()) as modules:
        for name, table in tables.items():
            kept[name] = _printed(table, data)
            print(f"\n## {name}\n\n{kept[name]}", flush=True)
    if options.save:
        used = sorted({Path(script).resolve(), *modules})
        record = {
            "version": vx.__version__,
            "seed": seed,
            "data": data.digests(),
            "code": {str(path.relative_to(ROOT)): digest(path) for path in used},
            "tables": {name: text.splitlines() for name, text in kept.items()},
        }
        path = RESULTS / f"{Path(script).stem}.json"
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        write(path.stem, kept)


def _printed(table: Callable[[Data], None], data: Data) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        table(data)
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


@contextlib.contextmanager
def _watched() -> Iterator[set[Path]]:
    """The files of studies and of verax of which a function was called, once the block has ended."""
    names: set[str] = set()
    modules: set[Path] = set()

    def note(frame: FrameType, _event: str, _argument: Any) -> None:
        names.add(frame.f_code.co_filename)

    sys.settrace(note)
    threading.settrace(note)
    try:
        yield modules
    finally:
        sys.settrace(None)
        threading.settrace(None)
    # Calls of compiled loops are not seen.
    names |= {str(m.__file__) for n, m in sys.modules.items() if n.startswith("verax.kernels.")}
    known = {Path(name).resolve() for name in names if name.endswith(".py")}
    modules |= {p for p in known if any(p.is_relative_to(source) for source in SOURCES)}
    modules.discard(Path(__file__).resolve())


def digest(path: Path) -> str:
    """A digest of the tokens of a module, without comments, docstrings and line breaks."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING}
    texts: list[str] = []
    begins = True  # of a statement: a text there is a docstring
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in skipped or (begins and token.type == tokenize.STRING):
                continue
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            texts.append("\n" if token.type == tokenize.NEWLINE else token.string.strip())
    return _short(" ".join(texts).encode())


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def records() -> dict[str, dict[str, Any]]:
    """What was kept, by the name of the study."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def tables() -> dict[str, dict[str, str]]:
    """The tables of each page as they should be."""
    kept = {
        study: {n: "\n".join(t) for n, t in record["tables"].items()} for study, record in records().items()
    }
    return kept | {"coverage": {"summary": summary()}, "widths": widths_measured.tables()}


def page(study: str) -> Path:
    return HERE / f"{study}.md"


def written(text: str, kept: Mapping[str, str]) -> str:
    """A page with these tables in their places."""

    def fill(place: re.Match[str]) -> str:
        table = kept.get(place["name"])
        return place[0] if table is None else f"{place[1]}\n{table}\n\n{place[3]}"

    return PLACE.sub(fill, text)


def write(study: str, kept: Mapping[str, str]) -> None:
    """Put tables into the page of a study."""
    page(study).write_text(written(page(study).read_text(), kept))


def changed(record: Mapping[str, Any]) -> list[str]:
    """The modules that are not what they were in the run."""
    now = {name: digest(ROOT / name) if (ROOT / name).exists() else None for name in record["code"]}
    return [name for name, was in record["code"].items() if now[name] != was]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write kept tables into the pages of studies.")
    parser.add_argument("--stale", action="store_true", help="only name studies whose code changed")
    if parser.parse_args().stale:
        for study, record in records().items():
            print(f"{study}: {', '.join(changed(record)) or 'as it was'}")
        return
    for study, kept in tables().items():
        write(study, kept)


if __name__ == "__main__":
    main()
