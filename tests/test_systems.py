"""macOS and Windows, as far as Linux can stand in for them: names, encodings, modules, new processes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import verax as vx
from verax.common.urls import scheme_of
from verax.files import name_files

ROOT = Path(vx.__file__).parent
# Modules of one system, which others do not have.
OF_ONE = {"fcntl", "grp", "msvcrt", "nt", "posix", "pwd", "resource", "termios", "winreg"}
# An interpreter that complains where a text is read or written in the encoding of the system.
ENCODINGS = """
import sys, warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"verax\\b")
from verax.cli.app import run
run(sys.argv[1:])
"""
SPAWNED = """
import multiprocessing, sys
import verax as vx

def card(seed):
    import numpy as np
    rng = np.random.default_rng(seed)
    return vx.evaluate(rng.integers(0, 3, 500), rng.dirichlet([1, 1, 1], 500))["brier"]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(card, [1, 2, 3]) == [card(seed) for seed in (1, 2, 3)]
"""


@pytest.fixture
def predictions(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("label,p_Ärger,p_Ruhe\nÄrger,0.9,0.1\nRuhe,0.2,0.8\nRuhe,0.7,0.3\n", encoding="utf-8")
    return path


def at_import(tree: ast.AST):
    """What a module imports while it is imported itself, and not in functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from at_import(node)


def test_no_module_of_one_system_is_imported_with_verax():
    paths = sorted(ROOT.rglob("*.py"))
    assert len(paths) > 300
    found = {path.name: OF_ONE & set(at_import(ast.parse(path.read_text("utf-8")))) for path in paths}
    assert {name: modules for name, modules in found.items() if modules} == {}


@pytest.mark.parametrize("name", ["C:\\data\\preds.csv", "c:/data/preds.csv", "\\\\server\\share\\preds.csv"])
def test_drive_letters_are_no_schemes_and_no_names_of_models(name):
    assert not scheme_of(name)
    assert list(name_files([name]).values()) == [Path(name)]
    assert name_files([f"forest={name}"]) == {"forest": Path(name)}


def test_a_file_under_two_names_is_one_file(predictions):
    other = predictions.with_name("Predictions.csv")
    os.link(predictions, other)
    with pytest.raises(vx.InputError, match="must be named once"):
        vx.scan([predictions, other])


@pytest.mark.slow
def test_no_text_is_read_or_written_in_the_encoding_of_the_system(predictions):
    outputs = ["--json", "--html", str(predictions.with_suffix(".html"))]
    command = [sys.executable, "-X", "warn_default_encoding", "-c", ENCODINGS]
    for typed in (["evaluate", str(predictions), *outputs], ["init", str(predictions), "--yes"]):
        ran = subprocess.run(
            [*command, *typed], capture_output=True, encoding="utf-8", cwd=predictions.parent, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert "Ärger" in predictions.with_suffix(".html").read_text("utf-8")


@pytest.mark.slow
def test_processes_that_begin_anew_score_the_same(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SPAWNED)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
