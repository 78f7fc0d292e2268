"""`verax evaluate`: numbers, bounds, exit codes, and how it refuses."""

from __future__ import annotations

import html
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as papq
import pytest
from scipy.stats import binomtest

import demofiles
import verax as vx
from commandline import COLUMNS, verax
from installing import installing
from realdata import DATA
from verax.cli import progress
from verax.cli.require import read_bounds
from verax.cli.words import CommandWords, one_line
from verax.common.strictjson import plain
from verax.common.texts import visible
from verax.errors import Remedy, passing
from verax.wings.demo import tour

ENVIRONMENT = {**os.environ, **COLUMNS}


def quickly(*arguments):
    """The exit code, the output and the error of a command, which is one line."""
    result = verax(*arguments)
    assert result.stderr.count("\n") == (result.returncode >= 2)
    return result.returncode, result.stdout, result.stderr.removeprefix("verax: ").rstrip("\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    demofiles.write_all(path)
    return path


def test_a_card_as_a_table(folder):
    result = verax("evaluate", folder / "preds.parquet", "--groups", "site")
    assert (result.returncode, result.stderr) == (0, "")
    verdict, first, heading, *_ = filter(None, result.stdout.splitlines())
    assert verdict.startswith("The model is not significantly better than predicting class frequencies: its")
    taken = "outcomes: label; probabilities: p_cat (cat), p_dog (dog), p_fox (fox); groups: site"
    assert first == f"{folder / 'preds.parquet'}: {taken}"
    assert heading == "verax scorecard: 240 rows, 2 groups, 3 classes"


def test_json_is_what_the_library_says(folder):
    result = verax("evaluate", folder / "preds.parquet", "--weights", "w", "--json", "--seed", 5)
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    table = papq.read_table(folder / "preds.parquet")
    p = np.stack([table[f"p_{name}"].to_numpy() for name in ("cat", "dog", "fox")], axis=1)
    names = ["cat", "dog", "fox"]
    card = vx.evaluate(table["label"].to_pylist(), p, classes=names, weights=table["w"].to_numpy(), seed=5)
    expected = plain(card.to_dict(stored=False))
    measures = expected.pop("measures")
    assert expected.pop("findings") == found["findings"]
    assert expected.pop("verdict") == found["verdict"]
    assert found["card"] == expected
    assert {name: found["calibration"][name] for name in measures} == {
        name: line["mean"] for name, line in measures.items()
    }
    assert found["verax"] == vx.__version__
    assert found["taken"] == {
        "target": "label",
        "probs": ["p_cat", "p_dog", "p_fox"],
        "logits": False,
        "weights": "w",
        "groups": None,
        "by": [],
        "id": None,
        "outcomes_are": "names",
        "not_taken": [],
        "found_by": "name",
    }


# Two rows, by hand: p_true 0.5 and 0, so brier (0.5 + 2) / 2 and an infinite log score.
VERDICT = (
    "All rows have the same outcome, so they do not show whether the model beats predicting class "
    "frequencies. It has a Brier score of 0.6250 (1.2500 summed over both classes). Its probabilities of b "
    "are too high on average (75% forecast, 0% observed, O:E 0.00). Next: collect rows with other "
    "outcomes before you recalibrate."
)
GOLDEN = """
{"verax": "VERSION", "command": "evaluate", "file": "two.csv",
 "verdict": "VERDICT",
 "taken": {"target": "label", "probs": ["p_a", "p_b"], "logits": false, "weights": null, "groups": null,
           "by": [], "id": null, "outcomes_are": "names", "not_taken": [], "found_by": "name"},
 "normalize": false, "logits": false,
 "card": {"verax": "VERSION", "n_rows": 2, "weight": 2.0, "n_groups": null, "n_classes": 2,
  "classes": ["a", "b"], "ordered": false,
  "intervals": {"confidence": 0.95, "replicates": 1000, "seed": 0,
   "method": "means: gamma; shares: mid-P; other metrics: bootstrap of the confusion matrix",
   "weights_are": "importance"},
  "scores": {
   "brier": {"mean": 1.25, "interval": [0.0, 2.0], "std": 0.75, "range": [0.0, 2.0],
    "orientation": "lower is better", "proper": "strictly", "summary": "squared error over the classes",
    "caution": "only 2 rows",
    "rule": "brier", "finite_mean": 1.25, "infinite_weight": 0.0, "reference": "REFERENCE"},
   "log_score": {"mean": "inf", "interval": [null, null], "std": null, "range": [0.0, "inf"],
    "orientation": "lower is better", "proper": "strictly",
    "summary": "minus the log probability of the outcome", "caution": "the mean is infinite",
    "rule": "log_score", "finite_mean": 0.6931471805599453, "infinite_weight": 1.0,
    "reference": "REFERENCE"}},
  "metrics": {
   "accuracy": {"mean": 0.5, "interval": [0.025, 0.975], "std": null,
    "range": [0.0, 1.0], "orientation": "higher is better", "proper": "",
    "summary": "share of right decisions"},
   "sensitivity": {"mean": null, "interval": [null, null], "std": null,
    "range": [0.0, 1.0], "orientation": "higher is better", "proper": "",
    "summary": "share of events acted on (recall)", "caution": "sensitivity is undefined"},
   "specificity": {"mean": 0.5, "interval": [0.025, 0.975], "std": null,
    "range": [0.0, 1.0], "orientation": "higher is better", "proper": "",
    "summary": "share of non-events left alone"},
   "ppv": {"mean": 0.0, "interval": [0.0, 0.95], "std": null,
    "range": [0.0, 1.0], "orientation": "higher is better", "proper": "",
    "summary": "share of events among rows acted on (precision)"},
   "npv": {"mean": 1.0, "interval": [0.05, 1.0], "std": null,
    "range": [0.0, 1.0], "orientation": "higher is better", "proper": "",
    "summary": "share of non-events among rows left alone"},
   "f1": {"mean": 0.0, "interval": [0.0, 0.97435897435897], "std": null,
    "range": [0.0, 1.0], "orientation": "higher is better", "proper": "",
    "summary": "harmonic mean of sensitivity and ppv"}},
  "class_counts": [2.0, 0.0], "confusion": [[1.0, 1.0], [0.0, 0.0]],
  "zero_probability": {"count": 1, "rows": [1]}},
 "calibration": {"rule": "brier", "quantity": "brier", "reference": "REFERENCE", "skill": -9.0,
  "miscalibration": 1.25, "discrimination": 0.0, "ece": 0.75, "auc": null, "average_precision": null,
  "slope": null, "intercept": null, "in_the_large": null, "uncertainty": 0.0, "intervals": {}},
 "subgroups": {},
 "require": [{"require": "brier.high<2.5", "score": "brier", "of": "high", "value": 2.0, "sign": "<",
              "bound": 2.5, "met": true}],
 "met": true, "html": null, "save": null, "notes": []}
"""


def test_golden_json(tmp_path, monkeypatch):
    (tmp_path / "two.csv").write_text("label,p_a,p_b\na,0.5,0.5\na,0,1\n")
    monkeypatch.chdir(tmp_path)
    rules = ["--rule", "brier", "--rule", "log_score", "--require", "brier.high<2.5"]
    code, out, _ = quickly("evaluate", "two.csv", *rules, "--json")
    numbers = {"parse_constant": pytest.fail, "parse_float": lambda text: round(float(text), 13)}
    found = json.loads(re.sub(r'("reference": )"[^"]+"', r'\1"REFERENCE"', out), **numbers)
    expected = json.loads(GOLDEN.replace("VERSION", vx.__version__).replace("VERDICT", VERDICT), **numbers)
    assert code == 0
    # A forecast of 1 that failed is miscalibrated for sure.
    claims = [(each["claim"], each["p_value"]) for each in found.pop("findings")]
    assert claims == [("not_better_than_reference", None), ("risks_too_high", pytest.approx(0, abs=1e-9))]
    assert found.pop("next_step")["text"] == "collect rows with other outcomes before you recalibrate"
    assert found == expected
    assert list(found) == list(expected)
    # Class a always happens, so frequencies of the other row and half a case more are (3/4, 1/4): a loss of
    # 1/8 against 5/4. In confidence bins, 1/2 was right and 1 was wrong.
    # Of 1 out of 2 the mid-P chance of at most a share is that share; of 0 out of 1 half of it.
    assert found["card"]["metrics"]["accuracy"]["interval"] == [0.025, 0.975]
    assert found["card"]["metrics"]["ppv"]["interval"] == [0.0, 0.95]


def test_two_kinds_of_groups(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(2), 300)
    y, league, date = rng.integers(0, 2, 300), rng.integers(0, 12, 300), rng.integers(0, 20, 300)
    columns = [y, *p.T.tolist(), league, date]
    lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path = tmp_path / "games.csv"
    path.write_text("\n".join(["y,p_0,p_1,league,date", *lines]))
    result = verax("evaluate", path, "--groups", "league,date", "--json")
    found = json.loads(result.stdout)
    assert found["taken"]["groups"] == ["league", "date"]
    assert found["card"]["n_groups"] == [12, 20]
    card = vx.evaluate(y, p, groups=[league, date])
    expected = card.scores["brier"].interval
    assert found["card"]["scores"]["brier"]["interval"] == pytest.approx(expected, rel=1e-6)
    shown = " ".join(verax("evaluate", path, "--groups", "league,date").stdout.split())
    assert "Intervals: over 12 and 20 groups: means: gamma; shares: mid-P (each of one kind" in shown
    text = verax("compare", path, f"b={path}", "--groups", "league,date").stdout
    assert "12 and 20 groups; paired t test (the more cautious of Student's and Hall's), independent" in text
    # Subgroups have the kind with fewer groups.
    both, one = (
        json.loads(verax("evaluate", path, "--by", "date:2", "--groups", given, "--json").stdout)["subgroups"]
        for given in ("league,date", "league")
    )
    assert both == one
    refused = verax("retain", path, "--groups", "league,date")
    assert refused.returncode == 2
    assert "the groups must be of one kind for curves" in refused.stderr.lower()


@pytest.mark.long
def test_the_page_has_the_subgroups_of_the_terminal(tmp_path):
    """Also by a rule that the page would not choose, and with other numbers of draws."""
    rng = np.random.default_rng(2)
    p = np.round(rng.uniform(0.1, 0.9, 400), 3)
    site = rng.integers(0, 8, 400)
    y = rng.random(400) < np.clip(p + rng.normal(0, 0.15, 8)[site], 0.02, 0.98)
    lines = [f"{int(a)},{b},s{c}" for a, b, c in zip(y, p, site, strict=True)]
    (tmp_path / "a.csv").write_text("label,p_1,site\n" + "\n".join(lines) + "\n")
    for options in ([], ["--rule", "log_score", "--bootstrap", 40]):
        asked = ("evaluate", tmp_path / "a.csv", "--by", "site", "--html", tmp_path / "a.html", *options)
        code, out, _ = quickly(*asked)
        said = next(line for line in out.splitlines() if "significantly miscalibrated" in line.lower())
        assert code == 0
        assert html.escape(said) in (tmp_path / "a.html").read_text()


def test_subgroups(folder):
    code, out, _ = quickly("evaluate", folder / "preds.parquet", "--by", "site", "--json")
    assert code == 0
    (parts,) = json.loads(out)["subgroups"].values()
    assert [part["label"] for part in parts["subgroups"]] == ["north", "south"]
    assert sum(part["card"]["n_rows"] for part in parts["subgroups"]) == demofiles.N
    assert "verax subgroups by site" in quickly("evaluate", folder / "preds.parquet", "--by", "site")[1]
    code, _, error = quickly("evaluate", folder / "preds.parquet", "--by", "site", "--least", 200)
    assert code == 2
    assert "200 rows" in error


def test_logits_and_normalize(folder, tmp_path):
    code, out, _ = quickly("evaluate", folder / "logits.npz", "--logits", "--json")
    z = np.load(folder / "logits.npz")
    expected = vx.log_score(z["labels"], z["logits"], logits=True)
    assert (code, json.loads(out)["card"]["scores"]["log_score"]["mean"]) == (
        0,
        pytest.approx(expected, rel=1e-12),
    )
    np.savez(tmp_path / "counts.npz", probs=np.array([[3.0, 1.0], [1.0, 1.0]]), labels=[0, 1])
    error = quickly("evaluate", tmp_path / "counts.npz")[2]
    assert error.startswith(f"{tmp_path / 'counts.npz'}: ")
    assert error.endswith("Pass --normalize if these are counts or weights, or --logits if these are logits.")
    code, out, _ = quickly("evaluate", tmp_path / "counts.npz", "--normalize", "--json")
    assert json.loads(out)["card"]["scores"]["brier"]["mean"] == (0.125 + 0.5) / 2


# ---- bounds --------------------------------------------------------------------------------------


def test_bounds_decide_the_exit_code(folder):
    file = folder / "preds.parquet"
    met = verax("evaluate", file, "--require", "brier<0.9", "--require", "accuracy>=0.1")
    assert met.returncode == 0, met.stderr
    assert re.search(r"^met     brier<0.9: brier is 0\.\d+$", met.stdout, re.MULTILINE)
    failed = verax("evaluate", file, "--require", "brier<0.9", "--require", "log_score<0.1", "--json")
    assert (failed.returncode, failed.stderr) == (1, "")
    found = json.loads(failed.stdout)
    assert [line["met"] for line in found["require"]] == [True, False]
    assert found["met"] is False
    assert found["require"][1]["value"] == found["card"]["scores"]["log_score"]["mean"]


def test_bounds_on_the_worse_end_of_the_interval(folder):
    file = folder / "preds.parquet"
    card = json.loads(quickly("evaluate", file, "--json")[1])["card"]
    (_, high), mean = card["scores"]["brier"]["interval"], card["scores"]["brier"]["mean"]
    between = (mean + high) / 2
    assert quickly("evaluate", file, "--require", f"brier<{between}")[0] == 0
    assert quickly("evaluate", file, "--require", f"brier.high<{between}")[0] == 1
    assert quickly("evaluate", file, "--require", f"brier<{between}", "--require-interval")[0] == 1
    # A gate takes the limit of Clopper and Pearson, a little below that of the card.
    shown = card["metrics"]["accuracy"]["interval"][0]
    code, out, _ = quickly("evaluate", file, "--require", f"accuracy.low>={shown}")
    assert (code, "low end of accuracy (Clopper-Pearson) is" in out) == (1, True)
    worse = binomtest(round(card["metrics"]["accuracy"]["mean"] * 240), 240).proportion_ci(method="exact").low
    assert shown - 0.005 < worse < shown
    assert quickly("evaluate", file, "--require", f"accuracy>={worse - 1e-9}", "--require-interval")[0] == 0
    assert quickly("evaluate", file, "--require", f"accuracy.low>{worse + 1e-9}")[0] == 1


def test_what_is_assumed_of_groups_can_be_stated(tmp_path):
    rng = np.random.default_rng(0)
    y, site = rng.integers(0, 2, 2400), np.arange(2400) // 200
    p = np.where(rng.random(2400) < 0.99, y, 1 - y) * 0.8 + 0.1
    path = tmp_path / "sites.csv"
    path.write_text("y,p,site\n" + "\n".join(f"{a},{b:.1f},{c}" for a, b, c in zip(y, p, site, strict=True)))
    gate = ("evaluate", path, "--groups", "site", "--require", "accuracy.low>0.98")
    assert quickly(*gate)[0] == 1
    code, out, _ = quickly(*gate, "--few-groups", "0.05")
    assert (code, "errors of a group alike up to 0.05" in " ".join(out.split())) == (0, True)
    code, out, _ = quickly(*gate, "--few-groups", "unseen")
    assert (code, "a quarter of a group may be unlike" in " ".join(out.split())) == (1, True)
    code, _, err = quickly(*gate, "--few-groups", "many")
    assert (code, "must be a correlation from 0 to 1" in err) == (2, True)


def test_the_interval_of_a_loss_holds_its_mean(folder):
    file = folder / "preds.parquet"
    card = json.loads(quickly("evaluate", file, "--json")[1])["card"]
    (low, high), mean = card["scores"]["brier"]["interval"], card["scores"]["brier"]["mean"]
    assert low < mean < high


def test_a_bound_brings_its_rule_along(folder):
    file = folder / "preds.parquet"
    code, out, _ = quickly(
        "evaluate", file, "--rule", "log_score", "--require", "brier(scale='half')<1", "--json"
    )
    assert code == 0
    assert list(json.loads(out)["card"]["scores"]) == ["log_score", "brier(scale='half')"]


def test_bounds_on_metrics_that_are_not_on_the_card(folder):
    file = folder / "preds.parquet"
    code, out, _ = quickly("evaluate", file, "--require", "balanced_accuracy>0.1", "--json")
    assert code == 0
    found = json.loads(out)
    counts = np.array(found["card"]["confusion"])
    recall = np.diag(counts) / counts.sum(axis=1)
    assert found["require"][0]["value"] == pytest.approx(recall.mean(), rel=1e-12)
    code, _, error = quickly("evaluate", file, "--require", "macro_mae<1")
    assert code == 2
    assert "macro_mae is for ordered classes. Pass --ordered." in error


def test_what_cannot_be_known_is_not_kept(tmp_path):
    (tmp_path / "one.csv").write_text("label,p_a,p_b\na,0.5,0.5\n")
    code, out, _ = quickly("evaluate", tmp_path / "one.csv", "--require", "brier.high<2")
    assert code == 1
    assert "FAILED  brier.high<2: high end of brier has no interval" in out


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("brierr<1", "there is no score called 'brierr'. Did you mean 'brier'?"),
        ("accurcy>0.5", "there is no score called 'accurcy'. Did you mean 'accuracy'?"),
        ("nll<1", "Did you mean 'log_score'?"),
        ("brier>0.3", "lower is better for brier, so a bound reads 'brier<0.3'"),
        ("accuracy<0.3", "higher is better for accuracy, so a bound reads 'accuracy>0.3'"),
        ("brier.low<0.3", "the high end of the interval is the one to bound"),
        ("rps<0.3", "rps is for ordered classes. Pass --ordered."),
        ("qwk>0.3", "qwk is for ordered classes. Pass --ordered."),
        ("brier", "is not a bound, such as 'rps<0.06'"),
        ("brier<low", "'low' is not a number"),
        ("brier<nan", "'nan' is not a number"),
    ],
)
def test_bounds_that_make_no_sense(bound, words, folder):
    code, out, error = quickly("evaluate", folder / "preds.parquet", "--require", bound)
    assert (code, out) == (2, "")
    assert words in error


def test_signs_are_what_they_say():
    card = vx.evaluate([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    for text, met in (
        ("brier<0.5", False),
        ("brier<=0.5", True),
        ("accuracy>0.5", False),
        ("accuracy>=0.5", True),
    ):
        (bound,) = read_bounds([text], strictly=False, ordered=False)
        assert bound.hold(card).met is met


# ---- how it leaves -------------------------------------------------------------------------------


def test_bad_input_is_one_line_and_exit_2(tmp_path):
    (tmp_path / "a.csv").write_text("label;p_a;p_b\na;0.5;0.5\n")
    result = verax("evaluate", tmp_path / "a.csv")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"verax: {tmp_path / 'a.csv'}: ")
    assert result.stderr.endswith("Pass --delimiter ';'.\n")
    result = verax("--debug", "evaluate", tmp_path / "a.csv")
    assert (result.returncode, "Traceback" in result.stderr) == (2, True)
    assert verax("evaluate", tmp_path / "a.csv", "--nonsense").returncode == 2
    assert quickly("evaluate", tmp_path / "a.csv", "--delimiter", ";")[0] == 0


def test_a_number_of_rows_that_sum_to_1_00002(tmp_path):
    """Single precision cannot tell; double precision can, and says what to do."""
    lines = "".join("a,0.60001,0.40001\n" for _ in range(3))
    (tmp_path / "a.csv").write_text("label,p_a,p_b\n" + lines)
    code, _, error = quickly("evaluate", tmp_path / "a.csv")
    assert code == 2
    assert error.endswith("the columns used are p_a, p_b. Pass --normalize to rescale.")
    assert quickly("evaluate", tmp_path / "a.csv", "--normalize")[0] == 0


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A file that takes a few seconds."""
    path = tmp_path_factory.mktemp("slow") / "slow.csv"
    block = "".join(f"{i % 3},0.2,0.3,0.5\n" for i in range(30_000))
    with path.open("w") as file:
        file.write("label,p_0,p_1,p_2\n")
        for _ in range(100):
            file.write(block)
    return path


def wait_until_open(path, process):
    """Wait until a process reads a file, however busy the machine is."""
    folder = f"/proc/{process.pid}/fd"
    while process.poll() is None:
        for number in os.listdir(folder):
            try:
                if os.readlink(f"{folder}/{number}") == str(path):
                    return
            except FileNotFoundError:  # closed meanwhile
                continue
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interrupt_is_exit_130(slow):
    with subprocess.Popen(
        [sys.executable, "-m", "verax", "evaluate", str(slow)],
        env=ENVIRONMENT,
        stdout=-1,
        stderr=-1,
        text=True,
    ) as process:
        wait_until_open(slow, process)
        # Arrow handles signals itself while it opens a file.
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_a_closed_pipe_is_quiet(folder):
    with subprocess.Popen(
        [sys.executable, "-m", "verax", "evaluate", str(folder / "preds.parquet"), "--json"],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        error = process.stderr.read()
    assert (process.returncode, error) == (128 + signal.SIGPIPE, "")


def test_progress_is_for_terminals_that_wait(change, capsys):
    change(progress_after=0.0)
    with progress.progress():
        progress.advance(5)
    assert capsys.readouterr().err == ""
    master, slave = pty.openpty()
    code = "\n".join(
        [
            "from verax._settings import settings",
            "from verax.cli import progress",
            "settings.progress_after = PATIENCE_HERE",
            "with progress.progress():",
            "    progress.name_progress('verax evaluate')",
            "    progress.advance(5000); progress.advance(5000); input()",
        ]
    )
    shown = b"verax evaluate, 10,000 rows read"
    for patience, expected in (("0.01", True), ("60.0", False)):
        command = [sys.executable, "-c", code.replace("PATIENCE_HERE", patience)]
        options = {"stdin": subprocess.PIPE, "stderr": slave, "env": {**ENVIRONMENT, "TERM": "xterm"}}
        with subprocess.Popen(command, **options) as waiting:
            seen = b""
            # A busy machine may need a while to show it.
            while expected and shown not in seen and select.select([master], [], [], 60)[0]:
                seen += os.read(master, 65536)
            waiting.communicate(b"go on\n")
        assert waiting.returncode == 0
        os.write(slave, b"end")
        while b"end" not in seen:
            seen += os.read(master, 65536)
        assert (shown in seen) is expected
    os.close(master)
    os.close(slave)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    # The shell is given, so nothing looks at the processes around.
    environment = {**ENVIRONMENT, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "verax", "--show-completion", shell]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    assert "complet" in result.stdout.lower()


def test_completion_knows_the_commands():
    environment = {
        **ENVIRONMENT,
        "_VERAX_COMPLETE": "complete_bash",
        "COMP_WORDS": "verax ev",
        "COMP_CWORD": "1",
    }
    code = "import sys; sys.argv = ['verax']; from verax.cli.commands import run; run()"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert result.stdout.split() == ["evaluate", "evals"]


def test_errors_are_said_in_options():
    words = CommandWords(["normalize", "classes", "target", "direction", "number", "seed"])
    error = vx.InputError(
        "must be x",
        argument="p",
        remedies=[
            passing("to rescale", normalize=True),
            passing(classes=["a b", "c"]),
            passing("to choose", target=...),
            passing(directions={"f": "max"}),
            passing(costs="linear"),
            Remedy("Pass p.T.", python_only=True),
            Remedy("Look at it."),
        ],
        source="a.csv",
    )
    assert words.say(error) == (
        "a.csv: the probabilities must be x. "
        "Pass --normalize to rescale, or --classes 'a b,c', or --target COLUMN to choose, "
        "or --direction f=max. Look at it."
    )
    subjects = [words.subject(name) for name in ("y", "n", "seed", "n_classes", "some_thing")]
    assert subjects == ["the outcomes", "--number", "--seed", "--classes", "some thing"]


@pytest.mark.parametrize(
    "text", ["\x1b[31m", "\x9b31m", "\x7f", "\u202eabc", "\u2066", "\u2028", "\ud800", "\r"]
)
def test_nothing_controls_the_terminal(text, tmp_path):
    assert visible(text).isascii()
    assert "\\" in visible(text)
    assert one_line(f"a\n{text}").isascii()
    assert visible("plain é ±\n\tnext") == "plain é ±\n\tnext"


def test_names_from_files_are_escaped_everywhere(tmp_path):
    evil = "\x1b[31m"
    path = tmp_path / f"{evil}.csv"
    path.write_text(f"label,p_{evil},p_b,who\n{evil},0.5,0.5,{evil}\nb,0.5,0.5,b\n")
    for options in (["--by", "who", "--least", 1], ["--target", evil], ["--json"]):
        result = verax("evaluate", path, *options)
        assert evil not in result.stdout + result.stderr
        assert "\\x1b" in result.stdout + result.stderr or "\\u001b" in result.stdout
    assert json.loads(verax("evaluate", path, "--json").stdout)["card"]["classes"] == [evil, "b"]


# ---- exit codes ------------------------------------------------------------------------------------


def test_a_failure_of_the_machine_is_exit_3(folder, monkeypatch):
    from verax.scans.batches import TableHandle

    def fails(error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr(TableHandle, "_summarise", fail)
        return quickly("evaluate", folder / "preds.parquet")

    assert fails(OSError(28, "No space left on device", "x"))[::2] == (3, "x: No space left on device")
    assert fails(PermissionError(13, "Permission denied"))[::2] == (3, "Permission denied")
    assert fails(MemoryError("Unable to allocate 7 GiB"))[::2] == (
        3,
        "Out of memory. Unable to allocate 7 GiB",
    )
    code, _, error = fails(ZeroDivisionError("oops"))
    assert (code, "Internal error, ZeroDivisionError: oops" in error, "--debug" in error) == (3, True, True)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_full_disk_is_exit_3(folder):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "verax", "evaluate", str(folder / "preds.parquet")],
            env=ENVIRONMENT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (result.returncode, result.stderr) == (3, "verax: No space left on device\n")


@pytest.mark.parametrize(
    "arguments", [["--seed", -1], ["--confidence", "0.9999999999999999"], ["--nonsense"], ["--seed", "x"]]
)
def test_wrong_options_are_one_line_and_exit_2(arguments, folder):
    assert quickly("evaluate", folder / "preds.parquet", *arguments)[0] == 2


def test_without_a_command_there_is_help():
    result = verax()
    assert (result.returncode, result.stderr) == (0, "")
    assert "Exit codes: 0 done" in " ".join(result.stdout.split())


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_signal_leaves_no_temporary_file(name, tmp_path):
    code = (
        "import sys, time, typer\n"
        "from verax.cli.commands import app, run\n"
        "from verax.display.writing import written\n"
        "@app.command('demo')\n"
        "def wait():\n"
        "    with written(sys.argv.pop()) as new:\n"
        "        new.write_text('half'); print('ready', flush=True); time.sleep(60)\n"
        "run(['demo'])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "r.html")]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        assert len(os.listdir(tmp_path)) == 1
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=300)
    assert process.returncode == 128 + getattr(signal, name)
    assert os.listdir(tmp_path) == []


# ---- what a newcomer runs into ----------------------------------------------------------------------


def test_positions_are_said_and_doubted(tmp_path):
    rows = "".join(f"{label},0.2,0.3,0.5\n" for label in (1, 2, 1))
    (tmp_path / "a.csv").write_text("label,p_C1,p_C2,p_C3\n" + rows)
    code, out, _ = quickly("evaluate", tmp_path / "a.csv")
    assert code == 0
    assert "outcomes: label (positions: 0 = C1, 1 = C2, 2 = C3); probabilities" in out
    assert "\nNote: Class 0 (C1) never occurs and all others do" in out
    found = json.loads(quickly("evaluate", tmp_path / "a.csv", "--json")[1])
    assert found["taken"]["outcomes_are"] == "positions"
    assert found["notes"][0].endswith("Pass --classes 1,2,... if they do.")
    found = json.loads(quickly("evaluate", tmp_path / "a.csv", "--classes", "1,2,3", "--json")[1])
    assert (found["notes"], found["card"]["class_counts"]) == ([], [2, 1, 0])


@pytest.mark.parametrize(
    ("header", "row", "words"),
    [
        ("p_a,p_b,p_value", "a,0.5,0.5,0.1", "the columns used are p_a, p_b, p_value. Is a column missing"),
        ("p_a,p_b", "a,50,50", "These are percentages. Pass --normalize to divide every row by its sum."),
    ],
)
def test_sums_are_explained(header, row, words, tmp_path):
    (tmp_path / "a.csv").write_text(f"label,{header}\n{row}\n")
    for command in ("evaluate", "worst"):
        code, _, error = quickly(command, tmp_path / "a.csv")
        assert (code, words in error) == (2, True), error
        assert "to rescale" not in error


def test_columns_not_taken_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("label,p_a,p_b,prob_a\na,0.5,0.5,0.4\n")
    assert "not taken: prob_a" in quickly("evaluate", tmp_path / "a.csv")[1]
    (tmp_path / "b.csv").write_text("label,prob1,probtie,prob2\n1,0.5,0.2,0.3\n2,0.5,0.2,0.3\n")
    out = quickly("evaluate", tmp_path / "b.csv")[1]
    assert "probabilities: prob1 (1), probtie (tie), prob2 (2)" in out


# Home, Draw and Away, and no draw among the outcomes: one of two most likely classes is the outcome.
SHARD = "result,Home,Draw,Away\nHome,0.5,0.3,0.2\nAway,0.3,0.5,0.2\nHome,0.6,0.2,0.2\nAway,0.1,0.5,0.4\n"


@pytest.mark.parametrize("options", [[], ["--normalize"]])
def test_a_class_that_never_happens_keeps_its_column(options, tmp_path):
    (tmp_path / "a.csv").write_text(SHARD)
    code, out, _ = quickly("evaluate", tmp_path / "a.csv", "--target", "result", "--json", *options)
    found = json.loads(out)
    assert (code, found["card"]["classes"]) == (0, ["Home", "Draw", "Away"])
    assert found["card"]["metrics"]["accuracy"]["mean"] == 0.5
    assert found["taken"]["found_by"] == "sums"
    # Of numbers that are not probabilities yet, nothing says that Draw belongs to them.
    (tmp_path / "b.csv").write_text("result,Home,Draw,Away\nHome,5,1,2\nAway,3,5,1\nHome,6,2,2\n")
    code, _, error = quickly("evaluate", tmp_path / "b.csv", "--target", "result", *options)
    assert (code, "never occurred (Draw)?" in error) == (2, bool(options)), error
    code, out, _ = quickly(
        "evaluate", tmp_path / "b.csv", "--target", "result", "--probs", "Home,Draw,Away", "--normalize"
    )
    assert (code, "3 classes" in out) == (0, True)


def test_columns_that_may_be_a_class_are_listed(tmp_path):
    (tmp_path / "a.csv").write_text("label,p_a,p_b,c,age\na,0.5,0.3,0.1,40\nb,0.2,0.5,0.1,30\n")
    code, out, _ = quickly("evaluate", tmp_path / "a.csv", "--normalize")
    assert (code, "not taken: c, age" in out) == (0, True)
    code, out, _ = quickly(
        "evaluate", tmp_path / "a.csv", "--normalize", "--json", "--html", tmp_path / "a.html"
    )
    assert json.loads(out)["taken"]["not_taken"] == ["c", "age"]
    assert "not taken: c, age" in (tmp_path / "a.html").read_text()


def test_the_right_file_is_blamed(tmp_path):
    (tmp_path / "a.csv").write_text("label,p_a,p_b\na,0.5,0.5\nb,0.5,0.5\n")
    (tmp_path / "b.csv").write_text("label,p_a,p_b\na,0.5,0.5\nb,0.5,0.6\n")
    error = quickly("compare", tmp_path / "a.csv", tmp_path / "b.csv")[2]
    assert error.startswith(f"{tmp_path / 'b.csv'}: The probabilities of a row must sum to 1")
    error = quickly("evaluate", tmp_path / "a.csv", "--confidence", 95)[2]
    assert error.startswith("--confidence must lie between 0 and 1")
    error = quickly("evaluate", tmp_path / "a.csv", "--delimiter", ";;")[2]
    assert error.startswith("--delimiter must be one character")
    assert quickly("worst", tmp_path / "a.csv", "-n", 0)[0] == 2


@pytest.mark.slow
def test_the_tour_needs_no_report(tmp_path, monkeypatch):
    # The package is imported once more below; its first copy is the one that other tests have.
    monkeypatch.setattr(vx, "report", vx.report)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    # The other problem takes longer, and the examples of the command have it.
    monkeypatch.setattr("verax.wings.demo.tour.digits", tour.progression)
    for name in [name for name in sys.modules if name.startswith("verax.report")]:
        monkeypatch.delitem(sys.modules, name)
    code, out, _ = quickly("demo", "--out", tmp_path)
    assert code == 0
    assert out.startswith("== ")
    assert installing("report") in " ".join(out.split())
    assert "(open it in a browser)" not in out
    found = json.loads(quickly("demo", "--out", tmp_path, "--json")[1])["problems"]
    assert [problem["report"] for problem in found] == [None, None]


def test_an_interrupt_while_importing_is_exit_130():
    code = (
        "import sys, runpy, importlib.abc\n"
        "class Finder(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['verax', 'demo']\n"
        "runpy.run_module('verax', run_name='__main__')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


# ---- real files ----------------------------------------------------------------------------------


@pytest.mark.skipif(not DATA.is_dir(), reason="the real predictions are not here")
@pytest.mark.parametrize(
    ("arguments", "scores"),
    [
        (["dr-aptos/dr_aptos5.npz", "--ordered"], {"rps": 0.0406, "log_score": 0.4840, "brier": 0.2380}),
        (["label-errors/imdb.npz"], {"log_score": 0.3006, "brier": 0.1590}),
        (["cifar10-vgg16/cifar10_vgg16.npz"], {"log_score": 0.2571, "brier": 0.1054}),
        (["cifar100/cifar100_vgg19_bn.npz", "--logits"], {"log_score": 1.8048, "brier": 0.4449}),
        (["cifar10h-human/cifar10h.npz", "--probs", "counts", "--normalize"], {"brier": 0.0203}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_real_files(arguments, scores):
    file, *rest = arguments
    result = verax("evaluate", DATA / file, *rest, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    found = json.loads(result.stdout)["card"]["scores"]
    # The readme of each file prints these, computed elsewhere.
    assert {name: round(found[name]["mean"], 4) for name in scores} == scores


@pytest.mark.skipif(not DATA.is_dir(), reason="the real predictions are not here")
def test_real_files_that_need_a_word():
    odds = [
        "evaluate",
        DATA / "football-odds" / "odds_6bookmakers.parquet",
        "--target",
        "FTR",
        "--probs",
        "B365?",
    ]
    code, _, error = quickly(*odds)
    assert code == 2
    assert "must sum to 1" in error
    code, _, error = quickly("evaluate", DATA / "cifar100" / "cifar100_resnet-20.npz")
    assert (code, error.endswith("Pass --logits to use it.")) == (2, True)
    matches = DATA / "soccer-538-spi" / "spi_matches_2016_2019.csv.gz"
    probs = ["--probs", "prob1,probtie,prob2", "--classes", "home,draw,away", "--ordered", "--normalize"]
    code, out, _ = quickly("evaluate", matches, *probs, "--json")
    assert code == 0
    assert json.loads(out)["card"]["classes"] == ["home", "draw", "away"]


def test_a_former_name_of_a_rule_is_noted_once(folder):
    result = verax("evaluate", folder / "preds.parquet", "--rule", "log", "--require", "log<9")
    assert result.stderr == "verax: Note: The rule 'log' is now called 'log_score'.\n"
    assert re.search(r"^met     log<9: log_score is", result.stdout, re.MULTILINE)
