"""How long the command line takes to answer, beside the interpreter and NumPy alone.

Every time is the best of several processes. The last column is the ratio to `python -c "import numpy"`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from machine import describe

REPEATS = 15
ROWS = 2000


def best(arguments: list[str]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def write(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), ROWS)
    y = (rng.random((ROWS, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    path = folder / "predictions.csv"
    np.savetxt(path, np.column_stack([y, p]), "%.17g", ",", header="label,p_0,p_1,p_2,p_3,p_4", comments="")
    return path


def main() -> None:
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        path = str(write(Path(folder)))
        base = best(["-c", "import numpy"])
        for name, arguments in {
            "python": ["-c", "pass"],
            "import numpy": ["-c", "import numpy"],
            "import verax": ["-c", "import verax"],
            "verax --help": ["-m", "verax", "--help"],
            f"verax evaluate, {ROWS:,} rows": ["-m", "verax", "evaluate", path, "--ordered"],
        }.items():
            taken = best(arguments)
            print(f"{name:<32}{taken:7.3f} s{taken / base:7.1f}", flush=True)


if __name__ == "__main__":
    main()
