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
    assert "explained: the printed value" in result.stdout


def test_galdran_as_json(predictions):
    result = verax("reproduce", "galdran", predictions, "--json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    wrong = {f["what"]: (f["printed"], f["computed"]) for f in found["findings"] if f["agrees"] is False}
    assert wrong == {
        "the category that p2 favours, counted from 1": (2.0, 3.0),
        "RPS of p1 = (1/4, 3/4, 0)": (0.125, 0.28125),
        "RPS of p2 = (1/4, 0, 3/4)": (0.25, 0.5625),
        "RPS over Brier for two classes": (1.0, pytest.approx(0.5)),
        "sum of p_asym = (1/10, 5/10, 9/10)": (1.0, 1.5),
        "largest value for three classes": (1.0, 2.0),
        # 11/54 - 1/6, and 12/25 - 2/5.
        "sa-RPS, truth uniform: expected loss of the truth minus that of the middle class": (
            "< 0",
            pytest.approx(1 / 27),
        ),
        "expected distance, truth (3/5, 2/5): loss of the truth minus that of (1, 0)": (
            "<= 0",
            pytest.approx(0.08),
        ),
        "Eyepacs: ranges of RPS and sa-RPS that overlap, by kappa": (0.0, 7.0),
        "networks in Tables 2 to 8": (6.0, 7.0),
        "data sets reported": (3.0, 2.0),
        "grading problems reported": (4.0, 2.0),
    }
    # By hand from Tables 2 to 8: not 19, except for all rows together.
    tmed, eyepacs = found["grid"]
    assert tmed["all_rows"] == pytest.approx(19.06, abs=0.005)
    assert eyepacs["all_rows"] == pytest.approx(18.99, abs=0.005)
    assert 17.2 < min(tmed["by_table"]) < max(tmed["by_table"]) < 18.2
    assert 18.75 < min(eyepacs["by_table"]) < max(eyepacs["by_table"]) < 18.86
    y, p = forecasts(300, 5, ties=False)
    removed = [i / 100 for i in range(20)]
    curve = vx.retention(y, p, rule="rps", metric="ec", removed=removed, area="steps", bootstrap=50)
    assert [c["area"] for c in found["aursc"] if (c["order"], c["metric"]) == ("rps", "ec")] == [curve.area]
    table = verax("reproduce", "galdran", predictions).stdout
    assert f"{curve.areas.mean():.2f} ± {curve.areas.std(ddof=1):.2f}" in table
    assert "cannot certify" in table


def test_galdran_of_named_grades_with_groups_and_figure(tmp_path):
    y, p = forecasts(120, 3, ties=False)
    names, site = np.array(["none", "mild", "severe"]), np.arange(120) // 4
    lines = [f"{names[k]},{g},{','.join(map(str, row))}" for k, g, row in zip(y, site, p, strict=True)]
    path = tmp_path / "grades.csv"
    path.write_text("\n".join(["grade,site,p_none,p_mild,p_severe", *lines]))
    read = ["--target", "grade", "--classes", "none,mild,severe", "--groups", "site"]
    plot = tmp_path / "curves.png"
    result = verax("reproduce", "galdran", path, *read, "--plot", plot, "--json")
    assert result.returncode == 0, result.stderr
    found = {(c["order"], c["metric"]): c for c in json.loads(result.stdout)["aursc"]}
    options = {"removed": [i / 100 for i in range(20)], "area": "steps", "bootstrap": 50, "groups": site}
    for rule in ("brier", "sa_rps"):
        curve = vx.retention(y, p, rule=rule, metric="qwk", **options)
        assert found[rule, "qwk"]["area"] == pytest.approx(curve.area)
        assert found[rule, "qwk"]["interval"] == pytest.approx(curve.interval)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "needs the order of the classes" in verax("reproduce", "galdran", path, "--target", "grade").stderr
    assert "name one" in verax("reproduce", "galdran", "--classes", "a,b").stderr
    assert "--plot needs predictions" in verax("reproduce", "galdran", "--plot", plot).stderr


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
    assert len(numbered) == 5
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
    # Exact rationals; the tables were counted by hand.
    expected = {
        "log score of the right forecast (.33, .34, .33)": (0.4685, 1.0788),
        "log score of the wrong forecast (.51, .49, 0)": (0.3098, 0.7133),
        "penalty for three classes": (2 / 9, 2 / 3),
        "expected PBS of the truth (3/5, 2/5)": (0.48, 17 / 25),
        "PBS with ties counted as right: the truth minus the uniform forecast": ("< 0", 17 / 25 - 1 / 2),
        "PBS with ties counted as wrong, truth (1/2, 1/2): the truth minus (3/5, 2/5)": ("< 0", 1 - 0.77),
        "variance of (.29, .29, .12) minus that of (.31, .195, .195)": ("< 0", 0.00348333),
        "mean PBS of a model right in 2 of 3 rows minus one right in 1 of 3": ("< 0", 11998 / 22500),
        "F1 of the honest decision minus that of always positive, at a share of 0.3": (">= 0", -6 / 13),
        "folds with fewer than three test blocks": (0.0, 4.0),
        "folds without a test block": (0.0, 2.0),
        "share for three classes, any sampler": (0.99996, 1.0),
        "share for three classes, uniform forecasts": (0.63, 37 - 20 * np.pi / np.sqrt(3)),
        "rows of Table 3 where PLL selects a better model than PBS": (0.0, 7.0),
    }
    assert set(differ) == set(expected)
    for what, (printed, computed) in expected.items():
        assert differ[what] == (
            printed if isinstance(printed, str) else pytest.approx(printed),
            pytest.approx(computed, abs=5e-5),
        )
