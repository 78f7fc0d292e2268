#!/usr/bin/env python3
"""The law of the house, measured: lines of core and wings, arrows that break the law, circles, call depth.

    python tests/house.py              the tree as it stands (src/verax)
    python tests/house.py --list       every arrow that breaks the law
    python tests/house.py --depth      also: how deep `evaluate` calls (runs it, second call)
    python tests/house.py --page       also: how deep `verax evaluate FILE --html` calls
    python tests/house.py --check      exit 1 where the law or a budget is broken

Reads imports at the top of files, inside functions, for type checkers, the constant names that are passed to
`import_module`, and the texts "verax.x.y" and "verax.x.y:name" of declarations.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tempfile
import threading
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

# From the ground up: a room may import from the floors below its own, not from its neighbours.
FLOORS = (
    ("errors", "_addresses", "_settings", "_version"),
    ("kernels",),
    ("common",),
    ("display", "inputs"),
    ("engines",),
    ("scores",),
    ("compat", "inference"),
    ("analyses",),
    ("files", "report"),
    ("scans",),
    ("cli",),
    ("__main__",),
)
FLOOR = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}
# Public lists of names. They may name anything, and nobody inside imports them.
LISTS = ("results", "diagrams", "rules", "selection", "files.lists", "files.logs")
FACES = {"verax", *(f"verax.{name}" for name in LISTS)}
# Wings, and outbuildings that obey the same law at an address of their own.
OUTBUILDINGS = {"adapters": "frameworks"}
# Which upper rooms a file of a wing may use, by its name or folder; every file may use the floors below.
DOORS = {
    "command": "cli",
    "cli": "cli",
    "section": "report",
    "page": "report",
    "form": "scans",
    "handle": "scans",
}
# At most: code lines of the core and of a wing, how deep `evaluate` calls, and through how many modules; the
# same of `verax evaluate FILE --html`, with two classes and with four.
CORE, WING, DEPTH, MODULES = 56_000, 5_000, 18, 22
PAGE_DEPTH, PAGE_MODULES = 30, 240


def code_lines(text: str) -> int:
    """Lines that are neither blank, comment nor docstring."""
    kept: set[int] = set()
    unseen = ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")
    skipped = {getattr(tokenize, name) for name in unseen}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            kept.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                kept -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(kept)


def statements(tree: ast.AST, kind: str = "top") -> Iterator[tuple[ast.AST, str]]:
    """Statements with how they run: at import ("top"), in a function ("lazy"), for type checkers ("type")."""
    yield tree, kind
    inner = kind
    if isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)) and kind == "top":
        inner = "lazy"
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        inner = "type"
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(tree, field, ()):
            yield from statements(node, inner if field == "body" else kind)


def imports(text: str, name: str, known: Container[str], *, is_package: bool = False) -> dict[str, str]:
    """The modules of verax that a text imports, and how: the strongest of top, lazy, type, name, text.

    `from verax import name` is an import of the root, unless `name` is a module.
    """
    found: dict[str, set[str]] = defaultdict(set)
    tree = ast.parse(text)
    for node, kind in statements(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.name].add(kind)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                own = name.split(".") if is_package else name.split(".")[:-1]
                above = own[: len(own) - node.level + 1]
                base = ".".join([*above, node.module] if node.module else above)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found[inner if inner in known else base].add(kind)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called == "import_module":
                found[str(node.args[0].value)].add("name")
        elif isinstance(node, ast.Constant) and str(node.value).startswith("verax."):
            found[str(node.value).partition(":")[0]].add("text")
    order = ("top", "lazy", "type", "name", "text")
    kinds = {other: min(how, key=order.index) for other, how in found.items()}
    return {other: how for other, how in kinds.items() if other.split(".")[0] == "verax"}


def wing_at(place: str) -> str:
    """The wing of a file at a place such as "wings/plan/command.py"; empty for the core."""
    parts = place.split("/")
    if parts[0] == "wings":
        return parts[1].removesuffix(".py") if parts[1] != "__init__.py" else ""
    return OUTBUILDINGS.get(parts[0], "")


def room_at(place: str) -> str:
    """The room of the core at a place."""
    first = place.split("/")[0].removesuffix(".py")
    return "" if first == "__init__" else first


def door_at(place: str) -> int:
    """The highest floor that a file of a wing may use."""
    parts = place.removesuffix(".py").split("/")[2:]
    opened = [FLOOR[DOORS[part]] for part in parts if part in DOORS]
    return max([FLOOR["analyses"], FLOOR["files"], *opened])


class House:
    """The files, their lines, where each is placed, and what each imports."""

    def __init__(self, root: Path) -> None:
        self.files: dict[str, Path] = {}
        self.place: dict[str, str] = {}
        for path in sorted(root.rglob("*.py")):
            place = path.relative_to(root).as_posix()
            parts = ["verax", *place.removesuffix(".py").split("/")]
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.files[name] = path
            self.place[name] = place
        texts = {name: path.read_text(encoding="utf-8") for name, path in self.files.items()}
        self.code = {name: code_lines(text) for name, text in texts.items()}
        self.arrows = {}
        for name, text in texts.items():
            found = imports(text, name, self.files, is_package=self.files[name].name == "__init__.py")
            self.arrows[name] = {
                other: how
                for other, how in found.items()
                if other in self.files and other != name and (how != "text" or self.wing(other))
            }

    def wing(self, name: str) -> str:
        """The wing of a file; empty for the core."""
        return wing_at(self.place[name])

    def room(self, name: str) -> str:
        """The room of a file of the core."""
        return room_at(self.place[name])

    def uses(self) -> dict[str, set[str]]:
        """Which other wings each wing says it uses, in its `wing.py`."""
        said: dict[str, set[str]] = defaultdict(set)
        for name, path in self.files.items():
            if path.name == "wing.py" and self.wing(name):
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.keyword) and node.arg == "uses":
                        texts = (c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant))
                        said[self.wing(name)].update(texts)
        return said

    # ---- the law ----------------------------------------------------------------------------

    def illegal(self) -> Iterator[tuple[str, str, str, str]]:
        """Arrows that break the law: from, to, how it is written, which article."""
        uses = self.uses()
        for name, others in sorted(self.arrows.items()):
            for other, kind in sorted(others.items()):
                law = "" if name in FACES else self.broken(self.place[name], other, uses)
                if law:
                    yield name, other, kind, law

    def broken(self, place: str, other: str, uses: dict[str, set[str]]) -> str:
        """The article of the law that a file at a place breaks if it imports another; empty if none."""
        a, b = wing_at(place), self.wing(other)
        room, floor = room_at(place), FLOOR.get(self.room(other), 0)
        if other == "verax":
            return "" if a or room == "__main__" else "nobody inside imports the facade"
        if other in FACES and not b:
            return "nobody inside imports a public list"
        if b and not a:
            return "the core knows no wing"
        if a and b:
            return "" if a == b or b in uses[a] else "a wing uses only wings that it declares"
        if a:
            high = a not in OUTBUILDINGS.values() and floor > door_at(place)
            return "only commands use cli/, only sections and pages use report/" if high else ""
        up = room != self.room(other) and floor >= FLOOR.get(room, len(FLOORS))
        return "arrows point down" if up else ""

    def circles(self) -> list[list[str]]:
        """Files that import each other, inside functions and for type checkers included."""
        names = list(self.files)
        place = {name: i for i, name in enumerate(names)}
        pairs = [(place[name], place[other]) for name in names for other in self.arrows[name]]
        graph = csr_array((np.ones(len(pairs)), tuple(zip(*pairs, strict=True))), shape=2 * (len(names),))
        return [[names[i] for i in circle] for circle in _circles(graph)]

    def circles_of_wings(self) -> list[list[str]]:
        """Wings that use each other, straight or through others."""
        wings = sorted({self.wing(name) for name in self.files} - {""})
        graph = np.zeros(2 * (len(wings),))
        for name, others in self.arrows.items():
            for other in others:
                a, b = self.wing(name), self.wing(other)
                if a and b and a != b:
                    graph[wings.index(a), wings.index(b)] = 1
        return [[wings[i] for i in circle] for circle in _circles(csr_array(graph))]

    def lines(self) -> tuple[Counter[str], Counter[str]]:
        """Code lines of the rooms of the core, and of the wings."""
        rooms: Counter[str] = Counter()
        wings: Counter[str] = Counter()
        for name, lines in self.code.items():
            wing = self.wing(name)
            (wings if wing else rooms)[wing or self.room(name) or "(face)"] += lines
        return rooms, wings


def _circles(graph: csr_array) -> list[list[int]]:
    """The nodes of each circle of a graph, the largest first."""
    _, parts = connected_components(graph, connection="strong")
    found = [np.flatnonzero(parts == part).tolist() for part in np.unique(parts)]
    return sorted((circle for circle in found if len(circle) > 1), key=len, reverse=True)


def depth(root: Path) -> tuple[int, int, int]:
    """How deep a second `evaluate` calls inside verax; the functions and modules that it enters."""
    sys.path.insert(0, str(root.parent))
    import verax as vx

    y, p = _rows(3)
    str(vx.evaluate(y, p))
    return entered(root, lambda: vx.evaluate(y, p))


def page_depth(root: Path, n_classes: int) -> tuple[int, int, int]:
    """The same of a later `verax evaluate FILE --html`."""
    sys.path.insert(0, str(root.parent))
    from verax.__main__ import main as verax

    y, p = _rows(n_classes)
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder, "rows.csv"), str(Path(folder, "page.html"))
        names = ",".join(["label", *(f"p_{k}" for k in range(n_classes))])
        rows = (f"{outcome},{','.join(map(str, row))}" for outcome, row in zip(y, p.tolist(), strict=True))
        file.write_text("\n".join([names, *rows, ""]))

        def run() -> None:
            sys.argv = ["verax", "evaluate", str(file), "--html", page]
            with redirect_stdout(io.StringIO()), suppress(SystemExit):
                verax()

        # Kernels and templates are compiled by the first calls.
        run()
        run()
        return entered(root, run)


def _rows(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and calibrated forecasts."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n_classes), 500)
    return np.array([rng.choice(n_classes, p=row) for row in p]), p


def entered(root: Path, call: Callable[[], object]) -> tuple[int, int, int]:
    """How deep a call goes inside verax, in its deepest thread; the functions and modules that it enters."""
    here, most, functions = threading.local(), 0, set()
    own = str(root)

    def watch(frame, event, _):
        nonlocal most
        if event in ("call", "return") and frame.f_code.co_filename.startswith(own):
            here.deep = getattr(here, "deep", 0) + (1 if event == "call" else -1)
            most = max(most, here.deep)
            functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    threading.setprofile(watch)
    sys.setprofile(watch)
    call()
    sys.setprofile(None)
    threading.setprofile(None)
    files = {file for file, _ in functions if file.endswith(".py")}
    return most, len(functions), len(files)


def main() -> int:
    """Print the house."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tree", nargs="?", default="src/verax", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--depth", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    root = given.tree.resolve()
    house = House(root)
    rooms, wings = house.lines()
    core = rooms.total()
    files = Counter(house.wing(name) or house.room(name) or "(face)" for name in house.files)
    broken, circles, loops = list(house.illegal()), house.circles(), house.circles_of_wings()
    print(f"house   {core + wings.total():7,} code lines in {len(house.files)} files")
    print(f"core    {core:7,}  (at most {CORE:,}){'' if core <= CORE else '  TOO MUCH'}")
    for room, lines in rooms.most_common():
        print(f"   {room:14}{lines:7,} {files[room]:4} files")
    print(f"wings   {wings.total():7,} in {len(wings)}  (each at most {WING:,})")
    for wing, lines in wings.most_common():
        print(f"   {wing:14}{lines:7,} {files[wing]:4} files{'' if lines <= WING else '  TOO MUCH'}")
    print(f"arrows that break the law: {len(broken)}")
    for law, n in Counter(law for *_, law in broken).most_common():
        print(f"   {n:4}  {law}")
    for one, other, kind, law in broken if given.list else ():
        print(f"      {one.removeprefix('verax.')} -> {other.removeprefix('verax.')}  [{kind}]  {law}")
    for what, found in (("files", circles), ("wings", loops)):
        print(f"circles of {what}: {len(found)}")
        for circle in found:
            print(f"   {len(circle)} {what}: {', '.join(circle[:4])} ...")
    deep = modules = 0
    if given.depth:
        deep, functions, modules = depth(root)
        print(
            f"evaluate: {deep} deep (at most {DEPTH}), {functions} functions in {modules} modules (at most "
            f"{MODULES})"
        )
    over = core > CORE or any(lines > WING for lines in wings.values()) or deep > DEPTH or modules > MODULES
    for n_classes in (2, 4) if given.page else ():
        deep, functions, modules = page_depth(root, n_classes)
        print(
            f"page of {n_classes} classes: {deep} deep (at most {PAGE_DEPTH}), {functions} functions in "
            f"{modules} modules (at most {PAGE_MODULES})"
        )
        over = over or deep > PAGE_DEPTH or modules > PAGE_MODULES
    return int(given.check and bool(over or broken or circles or loops))


if __name__ == "__main__":
    sys.exit(main())
