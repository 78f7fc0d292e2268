"""How many small faults of the source the tests find: seeded, each fault against the tests nearest to it.

    python tests/mutate.py --count 60 --seed 1
    python tests/mutate.py --count 9 --within 'retention/bins|inputs/options'
    python tests/mutate.py --covered .coverage      # the tests that run the changed line, cheapest first

A fault is one flipped comparison, one number that is off by one, one dropped or negated term, or one merge
that keeps one side alone. It is written into a copy of `src`; then the test files that name the module run,
nearest first, until one fails that passes without the fault. What is left over is printed with its place:
either the tests miss something, or the fault changes nothing that anybody can see, or the time was too short.

With `--covered`, made by `pytest --cov=verax --cov-context=test`, only tests that run the changed line are
run, so all of the suite is asked at little cost. `--kept` names a file of tests, one per line: the others are
left out, which tells what a smaller suite would find.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
_FLIPPED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
# Kernels of the GPU run where there is one; texts for people are no numbers.
_LEFT_OUT = ("cli/schemas/", "report/templates", "_version", "__main__", "errors.py")


@dataclass(frozen=True)
class Fault:
    """One change of one file."""

    path: Path
    line: int
    kind: str
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line} {self.kind}: {self.before} -> {self.after}"


def _changes(node: ast.AST) -> list[tuple[str, ast.AST]]:
    """What may be done to a node, by kind."""
    found: list[tuple[str, ast.AST]] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _FLIPPED:
        flipped = ast.Compare(node.left, [_FLIPPED[type(node.ops[0])]()], node.comparators)
        found.append(("comparison", flipped))
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        # A text is put together by the same signs.
        if not any(isinstance(side, (ast.JoinedStr, ast.List)) for side in (node.left, node.right)):
            found.append(("sign", ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)))
            if isinstance(node.op, (ast.Add, ast.Sub)):
                found.append(("dropped term", node.left))
    elif isinstance(node, ast.BoolOp):
        found.append(("dropped condition", node.values[0]))
    elif isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1000:
        found.append(("off by one", ast.Constant(node.value + 1)))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "merge":
        found.append(("merge", node.func.value))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found.append(("not", node.operand))
    return found


def faults(path: Path) -> list[Fault]:
    """All faults that a file may get; texts, types and statements of imports are left alone."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    raw, found = text.encode(), []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation is not None:
            children = [child for child in ast.iter_child_nodes(node) if child is not node.annotation]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            children = [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.body]
            inside = True
        elif isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ):
            return
        else:
            children = list(ast.iter_child_nodes(node))
        if inside:
            for kind, new in _changes(node):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                before, after = raw[start:end].decode(), ast.unparse(new)
                changed = (raw[:start] + f"({after})".encode() + raw[end:]).decode()
                short = [" ".join(each.split())[:60] for each in (before, after)]
                found.append(Fault(path, node.lineno, kind, *short, changed))
        for child in children:
            visit(child, inside)

    visit(ast.parse(text), False)
    return found


def sample(count: int, seed: int, within: str = "") -> list[Fault]:
    """Faults at random, in files whose path has a pattern: larger files have more of them."""
    pool = [
        fault
        for path in sorted(SOURCE.rglob("*.py"))
        if not any(part in path.as_posix() for part in _LEFT_OUT) and re.search(within, path.as_posix())
        for fault in faults(path)
    ]
    return random.Random(seed).sample(pool, min(count, len(pool)))


@cache
def _modules() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """What every module defines for others, and which modules it imports."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        nodes = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
        imported = {n.module for n in nodes} | {f"{n.module}.{a.name}" for n in nodes for a in n.names}
        public = frozenset(name for name in defined if not name.startswith("_"))
        found[_name(path)] = (public, frozenset(imported))
    return found


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _words(tests: Path) -> dict[Path, Counter[str]]:
    """How often each name is in each test file."""
    return {
        file: Counter(
            re.findall(r"[A-Za-z_][\w.]*|\w+", file.read_text(encoding="utf-8").replace("vx.", " "))
        )
        for file in sorted(tests.rglob("test_*.py"))
    }


def nearest(path: Path, tests: Path) -> list[Path]:
    """At most eight test files: those that name the module, what it defines, or what imports it.

    A name that few test files have says more than one that all have.
    """
    weights = {_name(path): 20.0}
    modules, level, seen = _modules(), {_name(path)}, set()
    for weight in (8.0, 3.0, 1.0):
        seen |= level
        for module in level:
            for name in modules[module][0]:
                weights.setdefault(name, weight)
        level = {module for module, (_, imported) in modules.items() if imported & level} - seen
    words = _words(tests)
    scores: Counter[Path] = Counter()
    for word, weight in weights.items():
        having = [file for file, counts in words.items() if counts[word]]
        for file in having:
            scores[file] += weight * min(words[file][word], 5) / len(having)
    for file in words:
        scores[file] += 6.0 * (file.stem == f"test_{path.stem}") + 2.0 * (
            path.parent.name == file.parent.name
        )
    return [file for file, score in scores.most_common(8) if score > 0]


class Covered:
    """Which tests run a line, from what `pytest --cov=verax --cov-context=test` wrote."""

    def __init__(self, file: Path, costs: dict[str, float], kept: frozenset[str] | None) -> None:
        self._known, self._costs, self._kept = sqlite3.connect(file), costs, kept

    def running(self, fault: Fault) -> list[str] | None:
        """Tests that run the line of a fault, cheapest first; None where it is compiled or never run."""
        byte, bit = divmod(fault.line, 8)
        rows = self._known.execute(
            "select context.context, numbits from line_bits join file on file.id = file_id"
            " join context on context.id = context_id where path like ?",
            (f"%/{fault.path.relative_to(SOURCE)}",),
        )
        names = {name.partition("|")[0] for name, bits in rows if byte < len(bits) and bits[byte] >> bit & 1}
        names.discard("")
        if not names:
            return None
        if self._kept is not None:
            names &= self._kept
        return sorted(names, key=lambda name: (self._costs.get(name, 0.0), name))


class Bench:
    """A copy of the source with one fault at a time; kernels of what is not changed stay compiled."""

    def __init__(self, folder: Path, tests: Path, limit: float, marked: str, covered: Covered | None) -> None:
        self.folder, self.tests, self.limit, self.marked = folder, tests, limit, marked
        self.covered = covered
        shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def survives(self, fault: Fault) -> tuple[bool, str]:
        """Whether all tests pass in spite of a fault, and which one failed otherwise."""
        by = ""
        for chosen in self._rounds(fault):
            left, by = self._survives(fault, chosen)
            if not left:
                return False, by
        return True, by

    def _rounds(self, fault: Fault) -> Iterator[list[str]]:
        """Tests for a fault: those that are likely to find it first."""
        names = self.covered.running(fault) if self.covered else None
        if names is None:
            yield [str(file) for file in nearest(fault.path, self.tests)]
            return
        for start, stop in ((0, 60), (60, 600)):
            if known := self._found(names[start:stop]):
                listed = self.folder / "tests.txt"
                listed.write_text("\n".join(known), encoding="utf-8")
                yield [f"@{listed}"]

    def _found(self, names: list[str]) -> list[str]:
        """Those that pytest finds: it runs none of a list with a name that it does not know."""
        files = sorted({name.partition("::")[0] for name in names})
        ran = self._run("--collect-only", *files)
        known = set(ran.stdout.splitlines())
        known |= {name.partition("[")[0] for name in known}
        return [name for name in names if name in known]

    def _survives(self, fault: Fault, chosen: list[str]) -> tuple[bool, str]:
        copy = self.folder / "src" / fault.path.relative_to(SOURCE)
        for _ in range(3):
            copy.write_text(fault.text, encoding="utf-8")
            try:
                ran = self._run(*chosen)
            finally:
                shutil.copy2(fault.path, copy)
            if ran.returncode < 0:
                return True, "out of time"
            failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", ran.stdout, re.MULTILINE)
            # Without any test that applies pytest returns 5.
            if ran.returncode in (0, 5) or not failed:
                return True, ""
            if self._run(failed[0]).returncode == 0:
                return False, failed[0]
            # A test that fails without the fault, too, says nothing of it.
            chosen += ["--deselect", failed[0]]
        return True, "tests fail without it, too"

    def _run(self, *chosen: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PYTHONPATH": f"{self.folder}/src",
            "NUMBA_CACHE_DIR": f"{self.folder}/kernels",
            "PYTHONDONTWRITEBYTECODE": "",
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", self.marked]
        return subprocess.run(
            [*command, *chosen],
            cwd=self.tests.parent,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (self.limit, self.limit + 5)),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", default="", help="a pattern in the paths of files, such as planning/")
    parser.add_argument("--limit", type=int, default=120, help="processor seconds for each fault")
    parser.add_argument("--tests", type=Path, default=ROOT / "tests", help="another folder of tests")
    fast = "not slow and not long and not pages and not browser and not frameworks"
    parser.add_argument("--marked", default=fast, help="as of pytest -m")
    parser.add_argument("--covered", type=Path, help="a coverage file with contexts")
    parser.add_argument("--kept", type=Path, help="a file of the tests to ask, one per line")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults, from 0")
    options = parser.parse_args()
    killed, seen = 0, 0
    covered = None
    if options.covered:
        costs = ROOT / ".pytest_cache/v/verax/costs"
        known = json.loads(costs.read_text(encoding="utf-8")) if costs.exists() else {}
        kept = frozenset(options.kept.read_text(encoding="utf-8").splitlines()) if options.kept else None
        covered = Covered(options.covered, known, kept)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.tests.resolve(), options.limit, options.marked, covered)
        for number, fault in enumerate(sample(options.count, options.seed, options.within)):
            if options.only and number not in options.only:
                continue
            left, by = bench.survives(fault)
            seen, killed = seen + 1, killed + (not left)
            print(f"{number:3d} {'LEFT  ' if left else 'killed'} {fault}  [{by}]", flush=True)
    print(f"{killed} of {seen} faults were found.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
