"""Evaluation logs with something wrong in them: each is read, or refused with its reason."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import verax as vx
from evallogs import (
    archive,
    chosen,
    generative,
    inspect_header,
    inspect_sample,
    olmes,
    openai_events,
    write_helm,
)
from fuzz.records import spoiled
from verax.files.lists import holds_lists
from verax.files.logs import COLUMNS, read_log

_METHODS = (0, 8, 93)


_TEXTS = ("no", "yes, it is", "perhaps", "é", "never in all of the years", "B")


def attempt(rng: np.random.Generator) -> None:
    """One log, most of its records spoiled, or some of its bytes; or one of choices as it should be."""
    if rng.random() < 0.2:
        _choices(rng)
        return
    path, about = _log(rng)
    try:
        holds_lists(path)
        log = read_log(path)
        assert tuple(log.table.schema.names[: len(COLUMNS)]) == COLUMNS
        assert len(log.table) > 0
    except vx.InputError:
        pass
    except Exception as error:
        raise AssertionError(f"{error!r} for {about[:800]}") from error


def _choices(rng: np.random.Generator) -> None:
    """Grade, answer and confidence are of one choice, whatever the metric chooses by."""
    metric = ("acc", "acc_norm", "acc_bytes", "acc_mutual_info")[int(rng.integers(4))]
    k, records, best = int(rng.integers(2, 6)), [], []
    for doc in range(int(rng.integers(1, 6))):
        texts = list(rng.permutation(_TEXTS)[:k])
        given, alone = -rng.exponential(9, (2, k))
        by = {
            "acc": given,
            "acc_norm": given / [len(text) for text in texts],
            "acc_bytes": given / [len(text.encode()) for text in texts],
            "acc_mutual_info": given - alone,
        }[metric]
        target, both = int(rng.integers(k)), metric == "acc_mutual_info"
        values, contexts = ([*given, *alone], ["Q"] * k + [""] * k) if both else (given, ["Q"] * k)
        pairs = zip(contexts, texts * (1 + both), strict=True)
        record = {"doc_id": doc, "target": (target, str(target))[int(rng.integers(2))], "filter": "none"}
        record |= {
            "arguments": [[context, f" {text}"] for context, text in pairs],
            "metrics": ["acc", metric],
        }
        record |= {"filtered_resps": [[float(value), False] for value in values], "resps": []}
        records.append(record | {"acc": 0.0, metric: float(by.argmax() == target)})
        best.append((str(texts[by.argmax()]), str(texts[target]), np.exp(by - by.max()).sum()))
    path = _folder() / "samples_c_2025-01-01T00-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    found = read_log(path, grade=metric).table.select(["answer", "gold", "grade", "confidence"]).to_pylist()
    for (answer, gold, total), row in zip(best, found, strict=True):
        assert (row["answer"], row["gold"], row["grade"]) == (answer, gold, float(answer == gold)), records
        assert abs(row["confidence"] * total - 1) < 1e-9, records


def _log(rng: np.random.Generator) -> tuple[Path, str]:
    kind = int(rng.integers(5))
    if kind == 0:
        return _inspect(rng)
    if kind == 1:
        whole = Path(tempfile.mkdtemp(dir=_folder())) / "run"
        write_helm(whole, [("a", " A", 1.0), ("b", "", 0.0)])
        name = ("scenario_state.json", "per_instance_stats.json")[int(rng.integers(2))]
        changed = spoiled(json.loads((whole / name).read_text()), rng)
        (whole / name).write_text(json.dumps(changed))
        return whole / name, json.dumps(changed)
    records: list[Any] = {
        2: [generative(0, "2", 1.0), generative(1, "3", 0.0), generative(1, "3", 1.0, "other")],
        3: [*(chosen(i, [-1.0, -2.0], 0) for i in range(2)), olmes(3, [-1.0, -2.0], 1)],
        4: openai_events([("a", True), ("b", False), ("c", None)]),
    }[kind]
    if kind == 3 and rng.random() < 0.5:
        records = [olmes(i, [-1.0, -2.0], 1) for i in range(3)]
    records = [spoiled(record, rng) if rng.random() < 0.5 else record for record in records]
    path = _folder() / "samples_t_2025-01-01T00-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return path, json.dumps(records)


def _inspect(rng: np.random.Generator) -> tuple[Path, str]:
    samples: list[Any] = [inspect_sample(i, value) for i, value in enumerate(("C", "I", 0.5))]
    samples = [spoiled(sample, rng) if rng.random() < 0.6 else sample for sample in samples]
    header = spoiled(inspect_header(), rng) if rng.random() < 0.3 else inspect_header()
    if rng.random() < 0.3:
        path = _folder() / "log.json"
        path.write_text(json.dumps({**(header if isinstance(header, dict) else {}), "samples": samples}))
        return path, json.dumps([header, samples])
    members = {f"samples/{i}.json": json.dumps(sample).encode() for i, sample in enumerate(samples)}
    members["header.json"] = json.dumps(header).encode()
    content = bytearray(archive(members, _METHODS[int(rng.integers(3))]))
    for _ in range(int(rng.integers(4)) if rng.random() < 0.5 else 0):
        content[int(rng.integers(len(content)))] = int(rng.integers(256))
    if rng.random() < 0.1:
        content = content[: int(rng.integers(1, len(content)))]
    path = _folder() / "log.eval"
    path.write_bytes(content)
    return path, json.dumps([header, samples])


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp())
