"""Hostile command lines, run in this process.

Whatever is typed: the exit code is 0, 1 or 2, never 3 (which is for failures of the machine); an error is
one line on stderr; no control character reaches the terminal.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

from verax.cli.commands import run

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TEXTS = (
    *(
        "",
        "0",
        "1",
        "-1",
        "1e400",
        "nan",
        "inf",
        "0.5",
        "9" * 400,
        "0.9999999999999999",
        "a,b",
        "a,b,c",
        ",",
        "p_*",
    ),
    *(
        "label",
        "p_a",
        "w",
        "who",
        "x" * 300,
        "\x1b[31mred",
        "\u202eabc",
        "[red]",
        "**x.csv",
        "../..",
        ".",
    ),
    *(
        "é",
        "\x00",
        "a\nb",
        "brier",
        "rps",
        "log(base=" + "9" * 400 + ")",
        "penalized(brier)",
        "(" * 300,
        "brier<0.5",
    ),
    *(
        "accuracy>0.1",
        "brier<nan",
        "0,5,10",
        "nan,5",
        "mean",
        "steps",
        "entropy",
        "qwk",
        "ec",
        "\\t",
        ";",
        "--",
        "-n",
    ),
    *(
        "a",
        "b",
        "min",
        "x=min",
        "=",
        "moments",
        "bootstrap",
        "permutation",
        "frequencies",
        "1,0",
        "outcome",
        "a.b.c",
    ),
)
OPTIONS = {
    "evaluate": (
        *(
            "--target",
            "--probs",
            "--classes",
            "--positive",
            "--weights",
            "--groups",
            "--by",
            "--id",
            "--least",
        ),
        *("--rule", "--require", "--confidence", "--seed", "--delimiter", "--decimal"),
        *("--ordered!", "--logits!", "--normalize!", "--skip-invalid!", "--require-interval!", "--json!"),
    ),
    "compare": (
        *(
            "--rule",
            "--id",
            "--target",
            "--classes",
            "--method",
            "--bootstrap",
            "--reference",
            "--confidence",
        ),
        *(
            "--seed",
            "--weights",
            "--groups",
            "--ordered!",
            "--logits!",
            "--normalize!",
            "--skip-invalid!",
            "--shared-ids!",
            "--probs",
            "--time-ordered!",
            "--json!",
        ),
    ),
    "worst": (
        "-n",
        "--rule",
        "--id",
        "--target",
        "--probs",
        "--classes",
        "--ordered!",
        "--logits!",
        "--skip-invalid!",
        "--json!",
    ),
    "retain": (
        *("--rule", "--doubt", "--metric", "--removed", "--area", "--confidence", "--seed", "--target"),
        *("--classes", "--ordered!", "--json!"),
    ),
    "select": ("--rule", "--against", "--direction", "--json!"),
    "toplist": (
        *(
            "--classes",
            "--outcome",
            "--position",
            "--after",
            "--last-match!",
            "--samples",
            "-k",
            "--invalid-penalty",
            "--json!",
            "--outcomes",
            "--id",
        ),
        *("--merge-variants", "--shape", "--require", "--weights", "--groups", "--skip-invalid!"),
        *("--normalize!", "--omit-missing!", "--omit-others!", "--per-length!"),
    ),
}


def attempt(rng: np.random.Generator) -> None:
    """One hostile command line."""
    command = str(rng.choice(list(OPTIONS)))
    arguments = [command, *(file_for(command, rng) for _ in range(2 if command == "compare" else 1))]
    if command == "toplist" and rng.random() < 0.9:
        arguments += ["--classes", "100"]
    for option in rng.choice(OPTIONS[command], int(rng.integers(0, 4))):
        name = str(option)
        arguments += (
            [name[:-1]] if name.endswith("!") else [name, str(TEXTS[int(rng.integers(0, len(TEXTS)))])]
        )
    code, out, err = call(arguments)
    where = f"{arguments!r}"[:600]
    assert code in (0, 1, 2), f"exit {code} for {where}: {err[-400:]!r}"
    assert "Traceback" not in err, f"a traceback for {where}"
    assert not CONTROL.search(out + err), f"control characters for {where}: {(out + err)[:300]!r}"
    lines = err.count("\n")
    assert lines == (1 if code == 2 else 0), f"{lines} lines on stderr for {where}: {err[:400]!r}"
    assert len(err) < 1200, f"{len(err)} characters on stderr for {where}"
    if code != 2 and "--json" in arguments:
        json.loads(out, parse_constant=lambda name: _refuse(name, where))


def _refuse(name: str, where: str) -> None:
    raise AssertionError(f"{name} in the JSON for {where}")


def call(arguments: list[str]) -> tuple[object, str, str]:
    """The exit code of a command line, what it printed, and what it complained of."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run(arguments)
        except SystemExit as leaving:
            code = leaving.code
    return code, out.getvalue(), err.getvalue()


def file_for(command: str, rng: np.random.Generator) -> str:
    """A file that fits the command, or now and then one that does not."""
    folder = files()
    if rng.random() < 0.15:
        names = sorted(path.name for path in folder.iterdir())
        return str(rng.choice([*(str(folder / name) for name in names), *TEXTS]))
    prefix = {"select": "log", "toplist": "list"}.get(command, "pred")
    return str(folder / str(rng.choice(sorted(p.name for p in folder.glob(f"{prefix}*")))))


@cache
def files() -> Path:
    """Small files, good and hostile, for all commands."""
    folder = Path(tempfile.mkdtemp(prefix="verax-fuzz-"))
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 30)
    columns = {"label": np.array(["a", "b", "c"])[rng.integers(0, 3, 30)], "w": rng.random(30)}
    columns |= {"who": np.arange(30) // 3, "id": np.arange(30)} | {
        f"p_{c}": p[:, j] for j, c in enumerate("abc")
    }
    papq.write_table(pa.table(columns), folder / "pred.parquet")
    header = ",".join(columns)
    rows = "\n".join(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
    (folder / "pred.csv").write_text(f"{header}\n{rows}\n")
    odd = {"\x1b[31m": columns["label"], "label": columns["label"], "p_\u202ea": p[:, 0], "p_b": p[:, 1]}
    papq.write_table(pa.table(odd), folder / "pred-\x1b[31m.parquet")
    np.savez(folder / "pred.npz", probs=p, labels=rng.integers(0, 3, 30))
    np.savez(folder / "pred-f16.npz", probs=p.astype(np.float16), labels=rng.integers(0, 3, 30))
    np.savez(folder / "pred-logits.npz", logits=p, labels=rng.integers(0, 3, 30))
    (folder / "pred-empty.csv").write_text("")
    (folder / "pred-header.csv").write_text("label,p_a,p_b\n")
    (folder / "pred-latin.csv").write_bytes(b"label,p_\xe9\n1,2\n")
    (folder / "pred.arrow").write_bytes(b"\xff" * 40)
    with pa.ipc.new_stream(
        folder / "pred-none.arrow", pa.schema([("label", pa.string()), ("p_a", pa.float64())])
    ):
        pass
    negative = folder / "pred-negative.npy"
    np.save(negative, p)
    negative.write_bytes(negative.read_bytes().replace(b"(30, 3)", b"(-9, 3)"))
    papq.write_table(
        pa.table({"label": pa.array([2**63 + 1], pa.uint64()), "p_0": [0.5], "p_1": [0.5]}),
        folder / "pred-u.parquet",
    )
    for name, text in {
        "log.csv": "epoch,val_log,val_f1,x\n0,1,0.5,1\n1,0.5,0.6,2\n2,0.7,0.9,3\n",
        "log-huge.csv": "epoch,val_log\n0," + "9" * 140_000 + "\n",
        "log.json": '{"a": 1}',
        "log-deep.json": "[" * 100_000,
        "log-digits.jsonl": '{"val_log": ' + "9" * 400 + '}\n{"val_log": 1}\n',
        "log-digits.json": "[" + "9" * 5000 + "]",
        "log-text.json": '"abc"',
        "log-nested.jsonl": '{"a": {"b": 1}}\n[1]\n',
        "log-e.csv": "epoch,val_log\n1e308,1e308\n-1e308,-1e308\n0,5\n",
        "list.jsonl": '{"outcome": "yes", "top_logprobs": {"yes": -0.2, "no": -2.0}}\n' * 5,
        "list-run.txt": "q1 Q0 d1 1 0.5 x\nq1 Q0 d2 2 0.2 x\nq2 Q0 d1 1 0.9 x\n",
        "list-labels.jsonl": '{"y": "a", "out": [{"label": "a", "score": 1}, {"label": "b", "score": 0}]}\n'
        * 4,
        "list-stated.csv": "answer,A,B\nA,70%,about 30%\nB,,1\n",
        "list-escape.jsonl": '{"outcome": "\\u001b[31m", "top_logprobs": {"\\u001b[31m": -0.2, "no": -2.0}}\n'
        * 3,
    }.items():
        (folder / name).write_text(text)
    (folder / "log-latin.csv").write_bytes(b"epoch,\xe9\n0,1\n")
    (folder / "log-nul.csv").write_bytes(b"epoch,a\n0,\x00\n")
    return folder


if __name__ == "__main__":
    print(call(sys.argv[1:]))
