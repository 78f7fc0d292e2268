"""Evaluation logs as Inspect, lm-evaluation-harness, HELM, OLMES and OpenAI's evals write them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa

STORED, DEFLATED, ZSTD = 0, 8, 93


def archive(members: dict[str, bytes], method: int = DEFLATED, *, flags: int = 0, claim: Any = None) -> bytes:
    """A zip archive; `claim` replaces the size that the directory states. zipfile cannot write zstd."""
    body, directory = bytearray(), bytearray()
    for name, content in members.items():
        if method == DEFLATED:
            packer = zlib.compressobj(9, zlib.DEFLATED, -15)
            packed = packer.compress(content) + packer.flush()
        else:
            packed = pa.compress(content, "zstd", asbytes=True) if method == ZSTD else content
        size = len(content) if claim is None else claim
        about = struct.pack(
            "<HHHHHIIIHH", 20, flags, method, 0, 33, zlib.crc32(content), len(packed), size, len(name), 0
        )
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + about
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + about + name.encode() + packed
    n = len(members)
    end = struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(body), 0)
    return bytes(body + directory + b"PK\x05\x06" + end)


def inspect_header(
    model: str = "openai/gpt-4o", task: str = "mmlu", status: str = "success", **about: Any
) -> dict:
    named = {"task": task, "model": model, "dataset": {"samples": 4}, "config": {"epochs": 1}, **about}
    return {"version": 2, "status": status, "eval": {"eval_id": "e1", "run_id": "r1", **named}}


def inspect_sample(
    key: Any, value: Any = "C", *, epoch: int = 1, said: str = "ANSWER: B", **more: Any
) -> dict:
    """A sample; `value` None has no score."""
    message = {"id": "m1", "content": said, "source": "generate", "role": "assistant"}
    sample = {
        "id": key,
        "epoch": epoch,
        "input": f"Question {key}?",
        "choices": ["w", "x", "y", "z"],
        "target": "B",
        "messages": [message],
        "output": {
            "model": "openai/gpt-4o",
            "choices": [{"message": message, "stop_reason": "stop"}],
            "completion": said,
        },
        "scores": {} if value is None else {"choice": {"value": value, "answer": "B", "explanation": said}},
        "metadata": {"subject": "law" if len(str(key)) % 2 else "math"},
        "events": [{"event": "model", "output": {"completion": said}}],
    }
    return {**sample, **more}


def write_eval(path: Path, samples: list[dict], method: int = ZSTD, **header: Any) -> Path:
    """An .eval archive, compressed by zstd as newer versions do, or by deflate."""
    members: dict[str, Any] = {"_journal/start.json": inspect_header(**header)}
    members |= {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in samples}
    members["summaries.json"] = [{"id": s["id"], "epoch": s["epoch"]} for s in samples]
    members["header.json"] = inspect_header(**header)
    path.write_bytes(archive({name: json.dumps(value).encode() for name, value in members.items()}, method))
    return path


def write_lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def generative(doc: int, said: str, right: float, kind: str = "strict-match", **more: Any) -> dict:
    """A sample of lm-evaluation-harness of a task such as gsm8k: one record per filter."""
    return {
        "doc_id": doc,
        "doc": {"question": f"How much is {doc} + 2?", "subject": "sums"},
        "target": str(doc + 2),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {doc} + 2\nA:", "arg_1": {"until": ["Q:"]}}},
        "resps": [[f"It is {doc + 2}."]],
        "filtered_resps": [said],
        "filter": kind,
        "metrics": ["exact_match"],
        "doc_hash": f"hash{doc}",
        "exact_match": right,
        **more,
    }


def chosen(doc: int, values: list[float], target: int, **more: Any) -> dict:
    """A sample of lm-evaluation-harness of a task of choices."""
    texts = [" A", " B", " C", " D"][: len(values)]
    best = values.index(max(values))
    return {
        "doc_id": doc,
        "doc": {"question": "?", "answer": target},
        "target": str(target),
        "arguments": {f"gen_args_{i}": {"arg_0": "Q", "arg_1": text} for i, text in enumerate(texts)},
        "resps": [[[str(value), "False"]] for value in values],
        "filtered_resps": [[str(value), "False"] for value in values],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": f"hash{doc}",
        "acc": float(best == target),
        "acc_norm": 1.0,
        **more,
    }


def olmes(doc: int, logits: list[float], label: int) -> dict:
    best = logits.index(max(logits))
    outputs = [
        {
            "sum_logits": v,
            "num_tokens": 3,
            "num_chars": 10 + i,
            "is_greedy": False,
            "sum_logits_uncond": -40.0,
        }
        for i, v in enumerate(logits)
    ]
    metrics = {
        "predicted_index_raw": best,
        "correct_choice": label,
        "acc_raw": int(best == label),
        "acc_per_char": 0,
    }
    return {
        "doc_id": doc,
        "native_id": f"Mercury_{doc}",
        "metrics": metrics,
        "model_output": outputs,
        "label": label,
    }


def write_helm(folder: Path, rows: list[tuple[str, str, float]], model: str = "openai/gpt2") -> Path:
    """A run of HELM: (id, what was said, exact_match) each; the first instance is also there perturbed."""
    folder.mkdir(parents=True)
    states, stats = [], []
    for key, said, right in rows:
        references = [
            {"output": {"text": "law"}, "tags": ["correct"]},
            {"output": {"text": "lore"}, "tags": []},
        ]
        states.append(
            {
                "instance": {"input": {"text": "?"}, "references": references, "split": "test", "id": key},
                "train_trial_index": 0,
                "output_mapping": {"A": "law", "B": "lore"},
                "result": {
                    "success": said != "!",
                    "completions": [{"text": said, "logprob": -1, "tokens": []}],
                },
            }
        )
        names = [("num_prompt_tokens", 99.0), ("exact_match", right), ("quasi_exact_match", right)]
        values = [{"name": {"name": n, "split": "test"}, "count": 1, "sum": v, "mean": v} for n, v in names]
        stats.append({"instance_id": key, "train_trial_index": 0, "stats": values})
    stats.append({**stats[0], "perturbation": {"name": "typos"}})
    state = {"adapter_spec": {"method": "multiple_choice_joint", "model": model}, "request_states": states}
    (folder / "scenario_state.json").write_text(json.dumps(state))
    (folder / "per_instance_stats.json").write_text(json.dumps(stats))
    return folder


def openai_events(rows: list[tuple[str, bool | None]], model: str = "gpt-4") -> list[dict]:
    """The events of OpenAI's evals: of each sample one of sampling and one of matching; None failed."""
    events: list[dict] = [
        {"spec": {"completion_fns": [model], "eval_name": "test-match.s1.simple-v0", "run_id": "2304"}},
        {"final_report": {"accuracy": 0.5}},
    ]
    for key, right in rows:
        head = {"run_id": "2304", "event_id": len(events), "sample_id": key, "created_by": ""}
        events.append({**head, "type": "sampling", "data": {"prompt": "?", "sampled": ["2015"]}})
        if right is not None:
            data = {"correct": right, "expected": "15", "picked": "15" if right else None, "sampled": "2015"}
            events.append({**head, "type": "match", "data": data})
    return events
