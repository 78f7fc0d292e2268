"""Records with lists, written from the documented formats of interfaces, classifiers and evaluations."""

from __future__ import annotations

import itertools
import json
import math

# Two questions, the log-probabilities of three tokens each, and what was right.
TOP = [{" A": -0.2, " B": -2.0, " C": -3.5}, {" B": -0.7, " A": -1.2, " D": -2.5}]
TRUTH = [" A", " D"]


def objects(row, value="logprob", **more):
    return [{"token": token, value: v, "bytes": list(token.encode()), **more} for token, v in row.items()]


def chat(row, top=True):
    first, *_ = listed = objects(row)
    content = [{**first, "top_logprobs": listed if top else []}]
    message = {"role": "assistant", "content": first["token"], "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": {"content": content, "refusal": None}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [choice],
        "usage": {"total_tokens": 9},
    }


def completion(row, top=True):
    first = next(iter(row))
    logprobs = {"tokens": [first], "token_logprobs": [row[first]], "text_offset": [16]}
    logprobs["top_logprobs"] = [row] if top else None
    return {"object": "text_completion", "choices": [{"text": first, "index": 0, "logprobs": logprobs}]}


def responses(row, top=True):
    first, *_ = listed = objects(row)
    logprobs = [{**first, "top_logprobs": listed if top else []}]
    text = {"type": "output_text", "text": first["token"], "annotations": [], "logprobs": logprobs}
    reasoning = {"type": "reasoning", "summary": []}
    message = {"type": "message", "role": "assistant", "content": [text]}
    return {"id": "resp_1", "object": "response", "error": None, "output": [reasoning, message]}


def vllm(row):
    tokens = {
        str(100 + i): {"logprob": value, "rank": i + 1, "decoded_token": token}
        for i, (token, value) in enumerate(row.items())
    }
    # A token that the sampler had ruled out.
    tokens["7"] = {"logprob": -math.inf, "rank": 9, "decoded_token": "#"}
    output = {"index": 0, "text": next(iter(row)), "token_ids": [100], "logprobs": [tokens]}
    return {"request_id": "0", "prompt": "?", "outputs": [output], "finished": True}


def llama(row, top=True):
    first, *_ = listed = [{"id": i, **each} for i, each in enumerate(objects(row))]
    token = {**first, "top_logprobs": listed if top else []}
    return {"content": first["token"], "tokens": [], "completion_probabilities": [token], "stop": True}


def llama_sampled(row):
    listed = [{"id": 1, "token": t, "bytes": [], "prob": math.exp(v)} for t, v in row.items()]
    return {"completion_probabilities": [{**listed[0], "top_probs": listed}]}


def llama_old(row):
    listed = [{"tok_str": token, "prob": math.exp(value)} for token, value in row.items()]
    return {"completion_probabilities": [{"content": next(iter(row)), "probs": listed}]}


def gemini(row, top=True, snake=False):
    field, result = ("log_probability", "logprobs_result") if snake else ("logProbability", "logprobsResult")
    listed = [{"token": token, "tokenId": 5, field: value} for token, value in row.items()]
    names = ("top_candidates", "chosen_candidates") if snake else ("topCandidates", "chosenCandidates")
    found = {names[1]: listed[:1], **({names[0]: [{"candidates": listed}]} if top else {})}
    candidate = {
        "content": {"parts": [{"text": "A"}], "role": "model"},
        "finishReason": "STOP",
        result: found,
    }
    return {"candidates": [candidate], "modelVersion": "gemini"}


SHAPES = {
    "chat": chat,
    "batch": lambda row: {"response": {"status_code": 200, "body": chat(row)}, "error": None},
    "in a field": lambda row: {"response": chat(row)},
    "as a text": lambda row: {"raw_response": json.dumps(chat(row))},
    "completion": completion,
    "responses": responses,
    "vllm": vllm,
    "llama.cpp": llama,
    "llama.cpp, sampled": llama_sampled,
    "llama.cpp, old": llama_old,
    "gemini": gemini,
    "gemini, Python": lambda row: gemini(row, snake=True),
    "tokens": lambda row: {"logprobs": [{**objects(row)[0], "top_logprobs": objects(row)}]},
    "mapping": lambda row: {"logprobs": row},
    "flat": lambda row: dict(row),
    "arrays": lambda row: {"tokens": list(row), "logprobs": list(row.values())},
    "pipeline": lambda row: {"out": [{"label": t, "score": math.exp(v)} for t, v in row.items()]},
    "zero-shot": lambda row: {
        "sequence": "?",
        "labels": list(row),
        "scores": [math.exp(v) for v in row.values()],
    },
    "stated": lambda row: {"probabilities": {t: f"about {100 * math.exp(v)!r} %" for t, v in row.items()}},
}
ALONE = {"chat": chat, "completion": completion, "responses": responses, "llama.cpp": llama, "gemini": gemini}


def records_of(shape):
    return [{"id": f"q{i}", "answer": TRUTH[i], **SHAPES[shape](row)} for i, row in enumerate(TOP)]


NUMBERS = itertools.count()


def sample(values, target, texts, **more):
    arguments = {f"gen_args_{i}": {"arg_0": "Q", "arg_1": text} for i, text in enumerate(texts)}
    pairs = [[str(value), "False"] for value in values]
    fields = {"doc_id": next(NUMBERS), "doc": {"answer": 1}, "target": target, "arguments": arguments}
    return {**fields, "resps": [[pair] for pair in pairs], "filtered_resps": pairs, "acc": 1.0, **more}


# ---- responses of several tokens ----


def token(chosen, top):
    listed = [{"token": text, "logprob": value} for text, value in top.items()]
    return {"token": chosen, "logprob": top[chosen], "top_logprobs": listed}


FIRST = token("The", {"The": -0.1, "A": -4.0, "Hm": -5.0})
ANSWERS = [token("B", {"B": -0.2, "A": -2.0, "C": -4.0}), token("A", {"A": -0.3, "B": -1.6, "D": -4.0})]


def chat_of(tokens):
    return {"choices": [{"logprobs": {"content": tokens}}]}


def completion_of(tokens):
    top = [{each["token"]: each["logprob"] for each in t["top_logprobs"]} for t in tokens]
    chosen = [t["token"] for t in tokens]
    values = [t["logprob"] for t in tokens]
    return {"choices": [{"logprobs": {"tokens": chosen, "token_logprobs": values, "top_logprobs": top}}]}


def vllm_of(tokens):
    listed = [
        {
            str(i): {"logprob": each["logprob"], "decoded_token": each["token"]}
            for i, each in enumerate(t["top_logprobs"])
        }
        for t in tokens
    ]
    return {"outputs": [{"logprobs": listed}]}


def gemini_of(tokens):
    listed = [
        [{"token": each["token"], "logProbability": each["logprob"]} for each in t["top_logprobs"]]
        for t in tokens
    ]
    top = [{"candidates": each} for each in listed]
    chosen = [each[0] for each in listed]
    return {"candidates": [{"logprobsResult": {"topCandidates": top, "chosenCandidates": chosen}}]}


OF_TOKENS = {
    "chat": chat_of,
    "completion": completion_of,
    "vllm": vllm_of,
    "gemini": gemini_of,
    "responses": lambda tokens: {
        "output": [{"type": "message", "content": [{"type": "output_text", "logprobs": tokens}]}]
    },
    "llama.cpp": lambda tokens: {"completion_probabilities": tokens},
    "tokens": lambda tokens: {"logprobs": tokens},
}
SAMPLES = {"chat": "choices", "completion": "choices", "vllm": "outputs", "gemini": "candidates"}
