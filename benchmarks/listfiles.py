"""Files of lists: how long reading takes against parsing the same JSON, and how much memory it needs.

Every file has 200,000 records (`--quick`: 20,000) with lists of 20 tokens. Times are those of the processor,
and ratios compare with `json.loads` of every line, or with pyarrow reading the same columns.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

from machine import describe
from verax.files.lists import open_lists

M, K = 128_256, 20


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def lists(n: int) -> Iterator[tuple[list[str], list[float]]]:
    """Random tokens with log-probabilities."""
    rng = np.random.default_rng(0)
    tokens = np.array([f" token{i}" for i in range(20_000)])
    for _ in range(0, n, 1000):
        codes = rng.integers(0, 1000, (1000, K)) + 1000 * np.arange(K)
        values = np.log(rng.dirichlet(np.full(K + 1, 0.3), 1000)[:, :K] + 1e-12)
        yield from zip(tokens[codes].tolist(), values.tolist(), strict=True)


def write(folder: Path, n: int) -> None:
    """The same lists as chat completions, flat, in Parquet and as a long table."""
    rows = list(lists(n))
    with (folder / "chat.jsonl").open("w") as chat, (folder / "flat.jsonl").open("w") as flat:
        for tokens, values in rows:
            top = [{"token": t, "logprob": v} for t, v in zip(tokens, values, strict=True)]
            content = [{**top[0], "top_logprobs": top}]
            record = {"answer": tokens[0], "choices": [{"index": 0, "logprobs": {"content": content}}]}
            chat.write(json.dumps(record) + "\n")
            flat.write(json.dumps({"answer": tokens[0], **dict(zip(tokens, values, strict=True))}) + "\n")
    columns = {"answer": [tokens[0] for tokens, _ in rows], "tokens": [tokens for tokens, _ in rows]}
    columns["probs"] = [[math.exp(v) for v in values] for _, values in rows]
    papq.write_table(pa.table(columns), folder / "lists.parquet")
    long = {
        "row_id": np.repeat(np.arange(n), K),
        "class": [token for tokens, _ in rows for token in tokens],
        "probability": np.exp([value for _, values in rows for value in values]),
        "truth": np.repeat(columns["answer"], K),
    }
    papq.write_table(pa.table(long), folder / "long.parquet")


def parse(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if json.loads(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    n = 20_000 if parser.parse_args().quick else 200_000
    print(describe())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, n)
        for file, shape in (("chat.jsonl", "chat"), ("flat.jsonl", "logprobs"), ("lists.parquet", "arrays")):
            path = folder / file
            read = seconds(lambda path=path: open_lists(path, classes=M))
            least = seconds(
                lambda path=path: parse(path) if path.suffix == ".jsonl" else papq.read_table(path)
            )
            size = path.stat().st_size / 2**20
            times = f"{read:6.1f} s, {read / least:4.1f} times parsing alone"
            print(f"{shape:10} {n:,} lists, {size:6.0f} MiB: {times}")
        merged = seconds(lambda: open_lists(folder / "chat.jsonl", classes=M, merge_variants="case"))
        print(f"chat, variants merged: {merged:.1f} s")
        long = seconds(lambda: open_lists(folder / "long.parquet", classes=M))
        print(f"long       {n:,} lists of {K} lines each: {long:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"most memory: {peak:.0f} MiB, with the rows that were written")


if __name__ == "__main__":
    main()
