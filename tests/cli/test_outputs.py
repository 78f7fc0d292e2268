"""What could not be written is refused before any row is read."""

from __future__ import annotations

import os
import sys

import pytest

from commandline import verax
from installing import installing

# The last row is invalid: whoever reads the rows complains about it.
BROKEN = "label,p_a,p_b\n" + "a,0.7,0.3\nb,0.4,0.6\n" * 20 + "a,0.7,0.7\n"
COMMANDS = {
    "evaluate": ("broken.csv",),
    "toplist": ("broken.csv",),
    "compare": ("x=broken.csv", "y=broken.csv"),
    "decompose": ("broken.csv",),
    "retain": ("broken.csv",),
    "decide": ("broken.csv",),
    "recalibrate": ("broken.csv",),
    "sets": ("broken.csv", "--level", 0.9),
    "plan": ("broken.csv", "--width", 0.1),
    "monitor": ("broken.csv", "--time", "label", "--reference", 0.5, "--state", "a.state"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "broken.csv").write_text(BROKEN)
    (tmp_path / "graded.csv").write_text("correct\n" + "1\n0\n" * 20)
    monkeypatch.chdir(tmp_path)


def outputs(command):
    help_text = verax(command, "--help").stdout
    return [
        option for option in ("--html", "--save", "--plot", "--state", "--out") if f" {option} " in help_text
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_folder_is_refused_first(command):
    for option in outputs(command):
        refused = verax(command, *COMMANDS[command], option, "missing/file.png")
        assert refused.returncode == 2
        assert refused.stderr.startswith("verax: There is no folder"), option
        assert "missing to write file.png to" in refused.stderr


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_refused_first(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    refused = verax("evaluate", "broken.csv", "--save", "closed/a.verax")
    assert (refused.returncode, refused.stderr) == (3, "verax: closed/a.verax: Permission denied\n")


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_report_without_its_package_is_refused_first(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    refused = verax(command, *COMMANDS[command], "--html", "report.html")
    assert refused.returncode == 2
    assert f": {installing('report')}." in refused.stderr
    assert "sum to 1" in verax(command, *COMMANDS[command]).stderr


def test_a_page_that_needs_no_packages_is_written_without_them(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert verax("evaluate", "graded.csv", "--grade", "correct", "--html", "page.html").returncode == 0
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize("command", ["decompose", "retain", "decide", "plan"])
def test_a_plot_without_matplotlib_is_refused_first(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    refused = verax(command, *COMMANDS[command], "--plot", "curve.png")
    assert refused.returncode == 2
    assert f"Drawing needs matplotlib: {installing('plot')}." in refused.stderr


@pytest.mark.parametrize("command", ["decompose", "retain", "decide", "plan"])
def test_an_unknown_format_of_figures_is_refused_first(command):
    refused = verax(command, *COMMANDS[command], "--plot", "curve.doc")
    assert refused.returncode == 2
    assert "--plot must end in one of" in refused.stderr
