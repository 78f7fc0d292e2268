"""The package as a whole: imports, names, documentation."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import verax as vx

ROOT = Path(__file__).parents[1]
MODULES = [m.name for m in pkgutil.walk_packages(vx.__path__, "verax.") if m.name != "verax.__main__"]


@pytest.mark.parametrize("module", ["verax", "verax.cli"])
def test_importing_imports_nothing_heavy(module):
    code = f"""
import sys, {module}
heavy = "numba scipy sklearn pandas polars pyarrow matplotlib altair jinja2 torch jax keras xgboost mlflow"
print(sorted(set(heavy.split()) & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_every_promised_name_is_there():
    for name in vx.__all__:
        assert getattr(vx, name) is not None
        assert name in dir(vx)
    with pytest.raises(AttributeError, match="no attribute 'briar'"):
        vx.briar  # noqa: B018


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]), ids=lambda p: p.name
)
def test_examples_in_the_documentation(page):
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    if page.name in ("README.md", "scores.md", "toplists.md"):
        assert result.attempted > 0


ORDER = """
errors checks caching strictjson options paths
writing claims statistics tables arrays validity clusters outcomes forecasts rowstats _arithmetic _kernels
ragged _listkernels listed vocabulary labelsets logprobs listforms toplists pooling
_fusion tally rule rules combinators registry duals slopes gradients
_search properties resample metrics decisions scorecard
measures listcard comparability compat cuts figures curves inspection
pairs inference traits verdicts comparison sequences
events decomposition panels diagrams binning breakdown
selection.blocks selection.windows selection.directions selection.logs selection.traces
selection.choice selection.histories selection.stopping selection
adapters.sklearn adapters.mlflow adapters.boosting adapters.training adapters.keras
adapters.torch.rows adapters.torch.losses adapters.torch.metrics adapters.torch adapters
files.predictions files.finding files.extract files.labels files.texts files.columnar files.tables
files.archives files.sources
files.joining files.scoring files
report.words report.problem report.checks report.panels report.sureness report.contents report.verdict
report.definitions report.charts report.exhibits report.sections report.page report.document report
demo reproduce reproduce.ahmadian reproduce.galdran reproduce.resin
cli.words cli.frame cli.output cli.options cli.require cli.demo cli.evaluate cli.compare cli.worst cli.retain
cli.select cli.toplist cli.certify cli.reproduce cli
"""


def imports(module):
    """What a module of verax imports from others, leaving out what only its type checker does."""
    tree = ast.parse(Path(importlib.import_module(module).__file__).read_text())
    typing_only = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    skipped = {id(inner) for node in typing_only for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in skipped:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def test_imports_point_downward():
    rank = {f"verax.{name}": i for i, name in enumerate(ORDER.split())}
    assert set(MODULES) == set(rank)
    # The pass reaches up, late, for the compiled code that may not be there, and `evaluate` for the card
    # of top lists, which is a card itself.
    late = {
        ("verax.rowstats", "verax._kernels"),
        ("verax.ragged", "verax._listkernels"),
        ("verax.scorecard", "verax.listcard"),
    }
    for module in MODULES:
        for other in imports(module):
            if other in rank and (module, other) not in late:
                assert rank[other] < rank[module], (module, other)


def test_no_module_hides_a_public_function():
    assert not {name.removeprefix("verax.") for name in MODULES} & (
        set(vx.__all__) - {"adapters", "compat", "report", "selection"}
    )
