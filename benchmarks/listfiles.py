"""Files of lists: how long reading takes against parsing the same JSON, and how much memory it needs.

Every file has 200,000 records (`--quick`: 20,000) with lists of 20 tokens, every evaluation log half as many.
Times are those of the processor, and ratios compare with `json.loads` of every line or sample, or with
pyarrow reading the same columns. `--logs` reads evaluation logs only.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

from machine import describe
from verax.files.lists import open_lists
from verax.files.logs import read_log

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


def inspect_sample(i: int) -> bytes:
    """A sample as short as Inspect writes them, some 7 KiB: a question, an answer, and events between."""
    text = {"role": "user", "content": "Answer the following question. " * 12, "source": "input", "id": "m0"}
    said = {"role": "assistant", "content": "ANSWER: B", "source": "generate", "id": "m1"}
    output = {"model": "m", "choices": [{"message": said, "stop_reason": "stop"}], "completion": "ANSWER: B"}
    events = [
        {"event": kind, "timestamp": "2026-01-01T00:00:00+00:00", "span_id": "s" * 22, "working_start": 1.5}
        | {"uuid": f"{i}{k}", "changes": [{"op": "add", "path": f"/messages/{k}", "value": {"role": "user"}}]}
        | {"output": output, "config": {"temperature": 0.5, "max_tokens": 64}, "id": f"{k}", "metadata": {}}
        for k, kind in enumerate(("span_begin", "state", "model", "tool", "score", "span_end") * 2)
    ]
    record = {"id": i, "epoch": 1, "input": text["content"], "choices": list("wxyz"), "target": "B"}
    record |= {"messages": [text, said], "output": output, "events": events, "store": {}, "error": None}
    record |= {"scores": {"choice": {"value": "CI"[i % 2], "answer": "B", "explanation": "ANSWER: B"}}}
    return json.dumps({**record, "metadata": {"subject": f"s{i % 57}"}}).encode()


def harness_sample(i: int) -> bytes:
    """A sample of lm-evaluation-harness with four choices."""
    values = [-1.0 - (i + k) % 4 for k in range(4)]
    question = (
        'Which of these, in the year 1900, was "right"?\nA. one\nB. two\nC. three\nD. four\nAnswer: B\n\n'
        * 12
    )
    record = {"doc_id": i, "target": str(i % 4), "doc": {"question": question, "subject": f"s{i % 57}"}}
    record |= {
        "arguments": {f"gen_args_{k}": {"arg_0": question, "arg_1": f" {'ABCD'[k]}"} for k in range(4)}
    }
    record |= {"resps": [[[str(v), "False"]] for v in values], "filter": "none", "metrics": ["acc"]}
    record |= {"filtered_resps": [[str(v), "False"] for v in values], "acc": float(i % 4 == 0)}
    return json.dumps({**record, "doc_hash": f"{i:064x}"}).encode()


def logs(folder: Path, n: int) -> None:
    """Reading evaluation logs against `json.loads` of every sample."""
    header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    contents = {
        "inspect": [inspect_sample(i) for i in range(n)],
        "lm-eval": [harness_sample(i) for i in range(n)],
    }
    paths = {"inspect": folder / "log.eval", "lm-eval": folder / "samples.jsonl"}
    with zipfile.ZipFile(paths["inspect"], "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i, sample in enumerate(contents["inspect"]):
            archive.writestr(f"samples/{i}_epoch_1.json", sample)
        archive.writestr("header.json", json.dumps(header))
    paths["lm-eval"].write_bytes(b"\n".join(contents["lm-eval"]))
    for shape, samples in contents.items():
        # What is imported and compiled on the way is done before.
        read_log(paths[shape])
        least = seconds(lambda samples=samples: [json.loads(sample) and None for sample in samples])
        read = seconds(lambda shape=shape: read_log(paths[shape]))
        size = sum(map(len, samples)) / 2**20
        print(
            f"{shape:10} {n:,} samples, {size:6.0f} MiB: {read:6.1f} s, {read / least:4.2f} times json.loads"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--logs", action="store_true")
    asked = parser.parse_args()
    n = 20_000 if asked.quick else 200_000
    print(describe())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs(folder, n // 2)
        if asked.logs:
            return
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
