"""The package as a whole: imports, names, documentation."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import verax as vx
from installing import installing
from pages import PAGES, ROOT, name_of
from verax.inputs.options import _OPTIONS

MODULES = [m.name for m in pkgutil.walk_packages(vx.__path__, "verax.") if m.name != "verax.__main__"]


# Former names that the tests of this page ask for.
ASKED_FOR = {"Recorded", "fit_pool", "sets"}
HEAVY = ["numba", "scipy", "sklearn", "pandas", "polars", "pyarrow", "matplotlib", "jinja2"]
HEAVY += ["torch", "jax", "keras", "xgboost", "mlflow"]
# What the examples of a part of the package, or of a page, are written with.
FRAMEWORKS = {
    "verax.adapters.boosting.classifier": ["lightgbm"],
    "verax.adapters.jax": ["jax"],
    "verax.adapters.keras": ["keras"],
    "verax.adapters.mlflow": ["mlflow"],
    "verax.adapters.torch": ["torch", "torchmetrics"],
    "verax.adapters.transformers": ["torch"],
    "boosting.md": ["xgboost", "lightgbm", "catboost"],
    "horizon.md": ["sksurv"],
    "training.md": ["torch", "torchmetrics", "jax"],
}


def skip_without_frameworks(name: str) -> None:
    for part, frameworks in FRAMEWORKS.items():
        if name == part or name.startswith(part + "."):
            for framework in frameworks:
                pytest.importorskip(framework)


def imported_by(code: str) -> set[str]:
    """The packages and modules that a fresh interpreter has imported after this code."""
    code = f"import sys\ntry:\n    {code}\nexcept SystemExit as end:\n    assert not end.code\n"
    code += "print('\\n' + ' '.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("module", ["verax", "verax.cli.commands"])
def test_importing_imports_nothing_heavy(module):
    assert imported_by(f"import {module}").isdisjoint(HEAVY)


def test_numpy_is_imported_by_the_first_name_that_needs_it():
    assert "numpy" not in imported_by("import verax; verax.InputError; dir(verax)")
    assert "numpy" in imported_by("import verax; verax.brier")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_help_imports_neither_numpy_nor_commands(arguments):
    found = imported_by(f"from verax.cli.app import run; run({arguments})")
    assert found.isdisjoint([*HEAVY, "numpy"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scoring_a_small_file_imports_no_more_than_it_needs(ending, tmp_path):
    n = 2000
    p = np.random.default_rng(0).dirichlet([1, 1, 1], n)
    table = pa.table({"label": np.arange(n) % 3, **{f"p_{j}": p[:, j] for j in range(3)}})
    path = tmp_path / f"rows.{ending}"
    (papq.write_table if ending == "parquet" else pacsv.write_csv)(table, path)
    found = imported_by(f"from verax.cli.app import run; run(['evaluate', {str(path)!r}, '--ordered'])")
    assert "pyarrow" in found
    # Old versions of pyarrow import pandas to make an array of NumPy.
    known = {"pyarrow"} if int(pa.__version__.partition(".")[0]) >= 18 else {"pyarrow", "pandas"}
    # P-values of calibration slopes are Student's, from SciPy; its other parts are not needed.
    assert found.isdisjoint({*HEAVY, "narwhals", "scipy.stats"} - known - {"scipy"})
    # What other options, other files and two classes need.
    assert found.isdisjoint(
        {"verax.cli.costs", "verax.files.outcomes_beside", "verax.wings.decide.rates.result"}
    )


def test_a_page_of_a_few_rows_imports_no_more_than_it_needs():
    found = imported_by("import verax as vx; vx.report.Report.of([0, 1] * 20, [0.2, 0.7] * 20).to_html()")
    assert "jinja2" in found
    # P-values of calibration slopes are Student's, from SciPy.
    assert found.isdisjoint({*HEAVY, "narwhals", "scipy.stats"} - {"jinja2", "scipy"})


def test_every_promised_name_is_there():
    for name in vx.__all__:
        assert getattr(vx, name) is not None
        assert name in dir(vx)
    with pytest.raises(AttributeError, match=r"no attribute 'briar'\. Did you mean 'brier'"):
        vx.briar  # noqa: B018


@pytest.mark.parametrize(
    ("name", "place"),
    [
        *(("Scorecard", "results"), ("Rule", "rules"), ("RULES", "rules"), ("RuleError", "errors")),
        *((name, "rules") for name in ("AbsRPS", "Brier", "Log", "RPS", "RankedLog", "SaRPS")),
        *(("Spherical", "rules"), ("ZeroOne", "rules"), ("expected_hessian", "rules")),
        *((name, "diagrams") for name in ("landscape", "murphy", "score_map")),
    ],
)
def test_names_that_have_moved_say_where_they_are(name, place):
    with pytest.warns(DeprecationWarning, match=f"verax.{name} is now verax.{place}.{name}"):
        assert getattr(vx, name) is getattr(getattr(vx, place), name)


def test_names_that_say_something_else_now_still_work():
    p = [[0.8, 0.2], [0.3, 0.7]]
    with pytest.warns(DeprecationWarning, match=r"verax\.sets is now verax\.evaluate_sets\."):
        assert vx.sets is vx.evaluate_sets
    with pytest.warns(DeprecationWarning, match=r"verax\.fit_pool is now verax\.fit_combination\."):
        assert vx.fit_pool is vx.fit_combination
    with pytest.warns(DeprecationWarning, match=r"now verax\.scan\(source, record=True\)"):
        former = vx.Recorded
    shard = former(vx.scan(pa.table({"label": [0, 1], "p_0": [0.8, 0.3], "p_1": [0.2, 0.7]})), model="m")
    assert vx.brier(shard) == vx.brier([0, 1], p)
    assert shard.models == ("m",)


def functions():
    """The public functions, and the methods of public classes that make one."""
    places = (vx, vx.diagrams, vx.report.Report, vx.Tally, vx.Monitor)
    for place in places:
        for name in getattr(place, "__all__", vars(place)):
            value = getattr(place, name)
            if name[0] != "_" and inspect.isfunction(inspect.unwrap(value) if callable(value) else value):
                yield name, value


# Grades are on their way out of `compare`, and with them five of its parameters.
MOST = {"compare": 16}


def test_functions_have_few_parameters_beside_those_that_say_how_rows_are_read():
    shared = {field.name for field in dataclasses.fields(vx.Reading)} | set(_OPTIONS)
    own = {name: set(inspect.signature(value).parameters) - shared for name, value in functions()}
    assert len(own) > 60
    assert {name: sorted(found) for name, found in own.items() if len(found) > MOST.get(name, 15)} == {}


def test_code_and_pages_write_names_as_they_are_now():
    moved = {
        name for place in ("errors", "results", "rules", "diagrams") for name in getattr(vx, place).__all__
    }
    names = "|".join(({*moved, *vx._RENAMED} - {*vx.__all__}) - ASKED_FOR)
    former = re.compile(
        rf"\b(?:vx|verax)\.(?:{names})\b|^ *from verax import .*\b(?:{names})\b", re.MULTILINE
    )
    paths = [
        path
        for name in ("src", "docs", "tests", "studies", "benchmarks")
        for path in (ROOT / name).rglob("*")
    ]
    pages = [
        path for path in paths if path.suffix in (".py", ".md", ".ipynb") and "generated" not in path.parts
    ]
    found = {
        str(page): former.findall(page.read_text(encoding="utf-8")) for page in [*pages, ROOT / "README.md"]
    }
    assert len(found) > 600
    assert {page: names for page, names in found.items() if names} == {}


def test_all_names_of_version_0_2_are_still_there():
    moved = """CalibrationLine CalibrationSlopes Certificate Combination Comparison Components DecisionCurve
        DecisionCurves Decomposition Deferral Holds Landscape LengthComparison ListCard ListDecomposition
        ListReliability MissingPackageError Murphy ParseError Properties RULES RankScore RankScores
        Recalibration Reliability ReliabilityCurve RetentionCurve RetentionCurves RiskCoverage Rule RuleError
        Scorecard Subgroups Thresholds"""
    found = {name for place in (vx.errors, vx.results, vx.rules) for name in place.__all__}
    assert set(moved.split()) <= found - set(vx.__all__)
    assert len(vx.__all__) <= 82


@pytest.mark.parametrize(
    ("name", "line"), [("auc", "vx.roc_auc"), ("qwk", '"qwk"'), ("Report", "vx.report.Report.of")]
)
def test_names_of_other_packages_are_answered_with_the_line_to_type(name, line):
    with pytest.raises(AttributeError, match=f"Type .*{line}"):
        getattr(vx, name)


def test_hints_are_lines_that_run():
    known = {
        "y": [0, 1, 2] * 4,
        "p": np.tile([0.2, 0.3, 0.5], (12, 1)),
        "decisions": [2] * 12,
        "K": 3,
        "vx": vx,
    }
    two = {**known, "y": [0, 1] * 6, "p": np.linspace(0.1, 0.9, 12)}
    rates = ("f1", "ppv", "sensitivity", "specificity", "operating")
    for name, line in vx._HINTS.items():
        if name != "scorer" and "half" not in line:
            for each in line.split(", or "):
                assert eval(each, two if any(rate in each for rate in rates) else known) is not None


# A whole report takes seconds; make docs runs its example, as it runs those of all pages.
DEAR_MODULES = ("verax.report.document",)


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.pages if name in DEAR_MODULES else ()) for name in MODULES],
)
def test_examples_in_docstrings(name):
    skip_without_frameworks(name)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        # Only kernels need the compiler.
        if missing.name not in ("numba", "llvmlite") or name.rpartition(".")[0] != "verax.kernels":
            raise
        pytest.skip("needs numba")
    assert module.__doc__
    # To look for examples takes longer than to run most of them.
    if ">>> " in Path(module.__file__).read_text(encoding="utf-8"):
        assert doctest.testmod(module).failed == 0


# The examples of these pages take seconds each; `make docs` runs them. What they call is tested elsewhere,
# and the examples of its docstrings are run here.
DEAR = ("docs/guide/report.md", "docs/guide/recalibration.md")


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.pages if name_of(page) in DEAR else ()) for page in PAGES],
    ids=name_of,
)
def test_examples_in_the_documentation(page):
    skip_without_frameworks(page.name)
    result = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
    if name_of(page) in ("README.md", "docs/guide/scores.md", "docs/guide/toplists.md"):
        assert result.attempted > 0


@pytest.mark.parametrize(
    ("package", "call", "said"),
    [
        ("matplotlib", "vx.reliability([0, 1], [0.2, 0.7]).plot()", "Drawing needs matplotlib: {plot}"),
        ("sklearn", "vx.adapters.sklearn", "verax.adapters.sklearn needs scikit-learn: {sklearn}"),
        ("jinja2", "vx.report.Report.of([0, 1] * 20, [0.2, 0.7] * 20).to_html()", "needs jinja2: {report}"),
    ],
)
def test_what_is_optional_says_how_to_get_it(package, call, said):
    code = f"import sys; sys.modules[{package!r}] = None; import verax as vx\ntry:\n    {call}\n"
    code += "except vx.errors.MissingPackageError as error: print(error)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ways = {extra: f"{installing(extra)}." for extra in ("plot", "sklearn", "report")}
    assert said.format_map(ways) in found.stdout
