"""The shape of packages and tests; `test_house.py` has the law of what may import what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import verax as vx
from house import FACES, FLOOR, House, imports, room_at, statements, wing_at

ROOT = Path(vx.__file__).parent

PUBLIC_PACKAGES = {
    "adapters",
    "compat",
    "diagrams",
    "errors",
    "files",
    "report",
    "results",
    "rules",
    "selection",
}


def name_of(path: Path) -> str:
    parts = ["verax", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def house() -> House:
    """The house as it stands. Asked for by tests, not at import: every worker imports this file."""
    return House(ROOT)


def room(module: str) -> str:
    """The package, or the module at the root, that a module belongs to."""
    return module.split(".")[1]


# Wings, and what stands at the top, keep the law of the house.
PACKAGES = {name.rpartition(".")[0] for name in MODULES if "." in name} - {"verax", "verax.wings"}


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_circles_between_the_parts_of_a_package(package):
    depth = package.count(".") + 1

    def part(module: str) -> str | None:
        inside = module.startswith(f"{package}.")
        return module.split(".")[depth] if inside else None

    parts: dict[str, set[str]] = {}
    for name, others in house().arrows.items():
        if part(name) is not None:
            parts.setdefault(part(name), set()).update({part(o) for o in others} - {None, part(name)})
    try:
        tuple(TopologicalSorter(parts).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


# ---- tests keep the law of the room they stand in -----------------------------------------------------

TESTS = Path(__file__).parent
# What tests replace in verax: to see which path is taken, to let it fail, or to stand in for a device. What
# decides on a path is a setting, which `change` sets.
REPLACED = {
    "CosineRecipe.take": "which recipes are asked for",
    "DecisionMetric.slopes_at": "a metric without derivatives",
    "Device.launch": "which kernels are launched",
    "LocalHandle._summarise": "how often rows are read",
    "LogOddsBins.start": "last digits of another machine",
    "Moments.of": "whether losses are fused",
    "PandasFrame.batches": "whether frames are converted",
    "PartitionTask.score": "how many threads score a partition",
    "RuleSums.update": "which rows take a pass of their own",
    "SavedHandle._merged": "which summaries are read",
    "TableHandle._summarise": "failures of the machine",
    "Unity.clear": "every row in doubt",
    "WorseRecipe.take": "whether rows are read again",
    "Writer.plain": "files that no version writes",
    "_ListReduction._read": "how often lists are read",
    "alarms.since_onset": "evidence of a certain size",
    "analysis.means_of": "which influences are asked for",
    "breakdown._bound": "which threads take part",
    "dask_engine.opened": "tables in parts of any order",
    "files.read_lists": "whether records are read",
    "logits._run": "whether gradients are compiled",
    "metrics.widen": "devices without float64",
    "places.locate": "an emulated GPU",
    "scan.validate": "whether rows are compiled",
    "tour.digits": "a tour of one problem",
    "stepbets._INFORMATION": "the bet with any stake",
    "vx.report": "an import that is undone",
}


def own_names(tree: ast.AST) -> set[str]:
    """The names that a test file imports from verax."""
    found = set()
    for node, _ in statements(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "verax":
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname for alias in node.names if alias.name.split(".")[0] == "verax"}
    return found - {None}


def replaced(source: str) -> Iterator[str]:
    """What a test replaces in verax by `setattr` or `mock.patch.object`: an owner and a name."""
    if not re.search(r"\b(?:setattr|object)\(", source):
        return
    tree = ast.parse(source)
    names = own_names(tree)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        target, *others = node.args
        if node.func.attr not in ("setattr", "object"):
            continue
        if isinstance(target, ast.Constant):
            if str(target.value).startswith("verax."):
                yield ".".join(str(target.value).split(".")[-2:])
        elif ast.unparse(target).split(".")[0] in names and isinstance(others[0], ast.Constant):
            yield f"{ast.unparse(target).split('.')[-1]}.{others[0].value}"


@cache
def texts_of_tests() -> dict[str, str]:
    """The text of every test file, by its path."""
    return {str(path.relative_to(TESTS)): path.read_text() for path in sorted(TESTS.rglob("*.py"))}


def is_public(module: str) -> bool:
    """Whether users import a module: the face of the package, or a package of their own."""
    parts = module.split(".")[1:]
    if module in FACES:
        return True
    return (len(parts) < 2 and set(parts) <= PUBLIC_PACKAGES | {"__main__"}) or parts[0] == "adapters"


# Tests that look up from their room, and for what.
LOOK_UP = {
    "analyses/test_verdicts_of_results.py": "what all pages say of all results",
    "cli/test_evaluate.py": "files of the tour",
    "common/test_summaries.py": "summaries of every room",
    "engines/test_compiled.py": "formulas of rules",
    "engines/test_kernels.py": "the same formula on a GPU",
    "engines/test_paths.py": "formulas of rules",
    "inference/test_groups.py": "influences of comparisons",
    "inputs/test_shares.py": "sums of shares",
    "inputs/test_validity.py": "rows that engines check",
    "report/test_browser.py": "every page in a browser",
    "report/test_page.py": "every page",
    "scores/test_compiled_gradients.py": "the loop of many classes, which training asks for",
    "scans/test_gathering.py": "every way to gather parts",
    "wings/theory/test_papers_command.py": "commands of the pages of papers",
}


def test_tests_keep_the_law_of_where_they_stand():
    """A test imports what the files of its room may import. Those outside of rooms are the roof."""
    uses = house().uses()
    illegal: dict[str, list[str]] = {}
    for path, text in texts_of_tests().items():
        place = path.replace("/test_", "/")
        if wing_at(place) or room_at(place) in FLOOR:
            named = {m for m, how in imports(text, "tests", MODULES).items() if how != "text"}
            inside = {module for module in named & MODULES.keys() if not is_public(module)}
            broken = {module: house().broken(place, module, uses) for module in inside}
            if any(broken.values()):
                illegal[path] = [f"{module}: {law}" for module, law in broken.items() if law]
    assert illegal.keys() == LOOK_UP.keys(), illegal


def test_tests_set_settings_instead_of_replacing_names():
    found = {f"{path}: {name}" for path, text in texts_of_tests().items() for name in replaced(text)}
    other = {each for each in found if each.split(": ")[1] not in REPLACED}
    assert other == set(), "make it a setting in verax/_settings.py, and set it with `change`"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('monkeypatch.setattr("verax.scans.loaded.MOST", 1)', ["loaded.MOST"]),
        ("from verax.scans import loaded\nmonkeypatch.setattr(loaded, 'MOST', 1)", ["loaded.MOST"]),
        ("import verax as vx\npatch.setattr(vx.rules, 'RULES', {})", ["rules.RULES"]),
        ("from verax.x import A\nmock.patch.object(A, 'b', 1)", ["A.b"]),
        ("import os\nmonkeypatch.setattr(os, 'replace', f)", []),
        ("change(compiled_from=0)", []),
    ],
)
def test_the_test_sees_all_that_is_replaced(source, expected):
    assert list(replaced(source)) == expected


# Pairs of classes that are one thing at two places.
SAME_NAME = {
    "Loss": "for PyTorch and for Keras",
    "RefinementScore": "for PyTorch and for Keras",
    "Score": "for PyTorch and for Keras",
}


def classes_of(module: str) -> set[str]:
    """The classes of a module; a text alone may also have those of an example."""
    tree = ast.parse(MODULES[module].read_text())
    return {node.name for node, _ in statements(tree) if isinstance(node, ast.ClassDef)}


def test_classes_of_different_modules_have_different_names():
    """Classes that only their module sees, with an underscore, are free."""
    places: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for found in re.findall(r"^ *class ([A-Za-z]\w*)[(:]", path.read_text(), re.MULTILINE):
            places.setdefault(found, []).append(name)
    places = {
        name: [module for module in modules if name in classes_of(module)]
        for name, modules in places.items()
        if len(modules) > 1
    }
    shared = {name: modules for name, modules in places.items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in SAME_NAME} == {}
    assert set(SAME_NAME) == set(shared)


def is_code(node: ast.stmt) -> bool:
    """Whether a statement of a package's `__init__` is more than text, imports, names and their types."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return any(is_code(inner) for inner in node.body)
    if isinstance(node, ast.AnnAssign):
        return node.value is not None
    if isinstance(node, ast.Assign):
        targets = ast.unparse(node.targets[0])
        lazy = targets == "(__getattr__, __dir__)" and ast.unparse(node.value).startswith("exports(")
        return targets != "__all__" and not lazy
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return not (docstring or isinstance(node, (ast.Import, ast.ImportFrom)))


@pytest.mark.parametrize("name", [n for n, p in MODULES.items() if p.name == "__init__.py" and n != "verax"])
def test_packages_hold_no_code(name):
    body = ast.parse(MODULES[name].read_text()).body
    assert ast.get_docstring(ast.parse(MODULES[name].read_text()))
    assert not [ast.unparse(node) for node in body if is_code(node)]
    if room(name) not in PUBLIC_PACKAGES:
        assert len(body) == 1


def test_no_module_hides_a_public_function():
    children = {room(name) for name in MODULES if name != "verax"}
    assert not children & (set(vx.__all__) - PUBLIC_PACKAGES)


@pytest.mark.parametrize(
    ("source", "module", "expected"),
    [
        ("import verax", "verax.scores.rules", {"verax"}),
        ("import verax as vx", "verax.scores.rules", {"verax"}),
        ("from verax import __version__", "verax.scores.rules", {"verax"}),
        ("from verax import files, evaluate", "verax.cli.app", {"verax", "verax.files"}),
        ("import verax.scores.rules", "verax.cli.app", {"verax.scores.rules"}),
        ("def f():\n    from verax.engines.tally import Tally", "verax.cli.app", {"verax.engines.tally"}),
        ("if TYPE_CHECKING:\n    from verax.report import Report", "verax.errors", {"verax.report"}),
        ("try:\n    f()\nexcept E:\n    import verax.report", "verax.errors", {"verax.report"}),
        ("match x:\n    case 1:\n        import verax.report", "verax.errors", {"verax.report"}),
        ("from . import tally", "verax.engines.scan", {"verax.engines.tally"}),
        ("from .tally import Tally", "verax.engines.scan", {"verax.engines.tally"}),
        ("from .. import evaluate", "verax.engines.scan", {"verax"}),
        ("from ..scores import rules", "verax.engines.scan", {"verax.scores.rules"}),
        ("import numpy as np", "verax.engines.scan", set()),
    ],
)
def test_the_test_sees_all_kinds_of_imports(source, module, expected):
    assert imports(source, module, MODULES).keys() == expected
