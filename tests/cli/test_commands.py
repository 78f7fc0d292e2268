"""The command line: help, published numbers, certificates, and how it refuses."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import verax as vx
from cases import forecasts
from commandline import verax


@pytest.fixture
def predictions(tmp_path):
    y, p = forecasts(300, 5, ties=False)
    path = tmp_path / "predictions.npz"
    np.savez(path, probs=p, labels=y)
    return path


def test_help_and_version():
    assert verax("--version").stdout == f"verax {vx.__version__}\n"
    result = verax("--help")
    assert result.returncode == 0
    assert "reproduce" in result.stdout


def test_galdran():
    result = verax("reproduce", "galdran")
    assert result.returncode == 0, result.stderr
    assert "0.28125" in result.stdout
    assert "belongs to (1/2, 1/2, 0)" in result.stdout


def test_galdran_as_json(predictions):
    result = verax("reproduce", "galdran", predictions, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    wrong = {f["what"]: (f["printed"], f["computed"]) for f in found["findings"] if f["agrees"] is False}
    assert wrong == {
        "RPS of p1": (0.125, 0.28125),
        "RPS of p2": (0.25, 0.5625),
        "RPS over Brier for two classes": (1.0, pytest.approx(0.5)),
        "largest value for three classes": (1.0, 2.0),
    }
    assert all(f["erratum"] for f in found["findings"] if f["agrees"] is False)
    y, p = forecasts(300, 5, ties=False)
    removed = [i / 100 for i in range(20)]
    curve = vx.retention(y, p, rule="rps", metric="ec", removed=removed, area="steps", bootstrap=50)
    assert [c["area"] for c in found["aursc"] if (c["order"], c["metric"]) == ("rps", "ec")] == [curve.area]
    table = verax("reproduce", "galdran", predictions).stdout
    assert f"{curve.areas.mean():.2f} ± {curve.areas.std(ddof=1):.2f}" in table
    assert "cannot certify" in table


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 broken"])
def test_files_that_are_no_predictions(tmp_path, content):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    result = verax("reproduce", "galdran", path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"verax: {path} is ")
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" in verax("--debug", "reproduce", "galdran", path).stderr


def test_bad_input_is_one_line(tmp_path):
    np.savez(tmp_path / "p.npz", probs=np.full((3, 3), 0.5), labels=[0, 1, 2])
    result = verax("reproduce", "galdran", tmp_path / "p.npz")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"verax: {tmp_path / 'p.npz'}: The probabilities of a row must sum to 1")
    assert verax("reproduce", "nobody").stderr.startswith("verax: paper must be one of ahmadian,")


def test_certify():
    result = verax("certify", "sa_rps", "penalized(brier)", "--json")
    assert result.returncode == 0, result.stderr
    first, second = json.loads(result.stdout)["certificates"]
    assert first == vx.certify(vx.sa_rps, n_classes=3).to_dict(stored=False)
    assert (second["rule"], second["findings"]["superior"]["holds"]) == ("pbs", True)
    assert "11/54" in verax("certify", "sa_rps").stdout
    for arguments, complaint in (
        (["briar"], "There is no rule called 'briar'. Did you mean 'brier'?"),
        (["rps", "-k", 20], "--n-classes must be at most 8, not 20"),
    ):
        result = verax("certify", *arguments)
        assert result.returncode == 2
        assert complaint in result.stderr
        assert result.stderr.count("\n") == 1


def test_outcomes_are_numbered_alike():
    found = json.loads(verax("reproduce", "galdran", "--json").stdout)["findings"]
    texts = [(re.search(r"(sa-RPS|RPS) of \((.*)\), outcome (\d)", f["what"]), f) for f in found]
    numbered = [(match, f) for match, f in texts if match]
    assert len(numbered) == 7
    for match, finding in numbered:
        rule, p, y = match.groups()
        row = [float(x) for x in p.split(",")]
        # `certify` names outcomes by their position, as every function of verax does.
        assert vx.parse(rule.replace("-", "_").lower())([int(y)], [row]) == pytest.approx(finding["computed"])
    for command in (["reproduce", "galdran"], ["certify", "rps"]):
        assert "Classes and outcomes are numbered from 0." in verax(*command).stdout


def test_ahmadian():
    found = json.loads(verax("reproduce", "ahmadian", "--rounds", 2, "--json").stdout)["findings"]
    differ = {f["what"]: (f["printed"], f["computed"]) for f in found if f["agrees"] is False}
    # The errata: base 10, a forgotten penalty, and penalties larger than needed.
    assert differ == {
        "log score of the right forecast (.33, .34, .33)": (0.4685, pytest.approx(1.0788, abs=5e-5)),
        "log score of the wrong forecast (.51, .49, 0)": (0.3098, pytest.approx(0.7133, abs=5e-5)),
        "penalty of Brier for three classes": (pytest.approx(2 / 3), pytest.approx(1 / 6)),
        "penalty of the log score for three classes": (pytest.approx(1.098612), pytest.approx(0.405465)),
        "PBS of the truth (3/5, 2/5) in expectation": (0.48, pytest.approx(17 / 25)),
    }
    values = {f["what"]: f["computed"] for f in found}
    assert values["the same, ties counted as right: the uniform forecast"] == pytest.approx(1 / 2)
    assert values["mean PBS of a model that is right in 2 of 3 rows"] == pytest.approx(29801 / 22500)
    assert values["mean PBS of one that is right in 1 of 3"] == pytest.approx(17803 / 22500)
    assert values["PBS of the wrong forecast by the published function"] == pytest.approx(0.1734 + 2 / 3)
