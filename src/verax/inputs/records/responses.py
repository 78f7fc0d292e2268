"""Responses of language models: OpenAI's three interfaces and those like them, vLLM, llama.cpp, Gemini."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from verax.errors import Remedy
from verax.inputs.records.record import (
    SKIP,
    Choices,
    Listed,
    RecordError,
    Shape,
    first,
    mapping,
    not_understood,
    sequence,
)

# Interfaces write this for a token that is too unlikely to have a log-probability.
TOO_UNLIKELY = -9999.0
# Part of the text of a token that is a fragment of a character.
REPLACEMENT = "\ufffd"
# The reason for which responses without log-probabilities are left out.
NO_LOGPROBS = "no log-probabilities"
WANTED = (
    "log-probabilities: {token: log-probability}, an array of objects with 'token' and 'logprob', "
    "or a response that contains one"
)


def name_of(token: Any, coded: Any) -> Hashable:
    r"""The name of a token: its text, or its bytes if the text is ambiguous.

    Fragments of characters share one text; interfaces give their bytes.

    >>> name_of("\ufffd", [240, 159]), name_of(" yes", [32, 121, 101, 115])
    ('bytes:\\xf0\\x9f', ' yes')
    """
    if isinstance(token, str):
        if REPLACEMENT in token and isinstance(coded, (list, tuple)) and coded:
            try:
                if bytes(coded) != token.encode("utf-8", "surrogatepass"):
                    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in coded)
            except (TypeError, ValueError):
                pass
        return token
    if isinstance(token, bool) or not isinstance(token, int):
        raise not_understood(token, WANTED)
    return token


def probability_of(value: Any) -> float | None:
    """The probability of a log-probability; None if it is marked as too unlikely."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise not_understood(value, WANTED)
    if value <= TOO_UNLIKELY:
        return None
    # Numbers far above zero are no log-probabilities; the check of the lists refuses them.
    return math.exp(value) if value < 700 else math.exp(700.0)


def of_pairs(pairs: Iterable[tuple[Hashable, Any]]) -> Listed:
    """The list of (token, log-probability) pairs; a log-probability may be an object with a 'logprob'.

    Tokens at TOO_UNLIKELY are not listed: their probability is unknown, and need not be zero.
    """
    labels, values, unlikely = [], [], 0
    exp = math.exp
    for token, number in pairs:
        # The common case, without further checks.
        if type(number) is float and TOO_UNLIKELY < number <= 0:
            labels.append(token)
            values.append(exp(number))
            continue
        p = probability_of(mapping(number).get("logprob", number))
        if p is None:
            unlikely += 1
        else:
            labels.append(token)
            values.append(p)
    return Listed(labels, values, unlikely=unlikely)


def of_objects(
    objects: Sequence[Any], token: str = "token", value: str = "logprob", coded: str = "bytes"
) -> Listed:
    """The list of objects with these fields, as most interfaces write `top_logprobs`."""
    labels, values, unlikely = [], [], 0
    exp = math.exp
    for item in objects:
        try:
            name, number = item.get(token, item.get("id")), item[value]
        except (AttributeError, KeyError, TypeError):
            raise not_understood(item, WANTED) from None
        p = exp(number) if type(number) is float and TOO_UNLIKELY < number <= 0 else probability_of(number)
        if p is None:
            unlikely += 1
            continue
        plain = type(name) is str and REPLACEMENT not in name
        labels.append(name if plain else name_of(name, item.get(coded)))
        values.append(p)
    return Listed(labels, values, unlikely=unlikely)


def of_token(token: Mapping[Any, Any]) -> Listed:
    """The list of a generated token: its `top_logprobs`, or without any the token alone."""
    top = token.get("top_logprobs")
    if isinstance(top, Mapping) and top:
        return of_pairs(top.items())
    if isinstance(top, (list, tuple)) and top:
        return of_objects(top)
    if "logprob" not in token:
        raise no_logprobs("top_logprobs")
    listed = of_objects([token])
    listed.alone = True
    return listed


def at(tokens: Any, position: int) -> Any:
    """The generated token at a position; negative positions count from the end."""
    if not isinstance(tokens, (list, tuple)):
        raise not_understood(tokens, WANTED)
    if not -len(tokens) <= position < len(tokens):
        raise RecordError(
            f"must be the number of a token in every record, counted from 0 or -1, not {position}",
            f"has {len(tokens)} tokens",
            reason="too few tokens",
            kind="value",
            argument="position",
            values=[position],
            remedies=[SKIP],
        )
    return tokens[position]


def no_logprobs(name: str) -> RecordError:
    """The error about a response that was requested without log-probabilities."""
    return RecordError(
        "must hold log-probabilities",
        f"holds a response without {name!r}",
        reason=NO_LOGPROBS,
        kind="missing",
        remedies=[Remedy("Ask the interface for logprobs and top_logprobs."), SKIP],
    )


def _sampled(response: Any, field: str, sample: int = 0) -> Mapping[Any, Any]:
    """One of the sampled answers of a response."""
    answers = sequence(mapping(response).get(field))
    return mapping(answers[sample]) if sample < len(answers) else {}


def n_samples(response: Any, field: str) -> int:
    """The number of sampled answers."""
    return len(sequence(mapping(response).get(field)))


def answer_text_in(response: Any, sample: int, field: str = "choices") -> str | None:
    """The whole text of a sampled answer, whichever interface wrote it."""
    answer = _sampled(response, field, sample)
    message = mapping(answer.get("message", answer.get("content")))
    parts = [mapping(part).get("text") for part in sequence(message.get("parts", message.get("content")))]
    texts = [answer.get("text"), message.get("content"), "".join(p for p in parts if isinstance(p, str))]
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _logprobs(response: Any, sample: int = 0) -> Any:
    """The log-probabilities of an answer of a chat or a completion."""
    return _sampled(response, "choices", sample).get("logprobs")


def _is_completion(response: Any) -> bool:
    return "choices" in mapping(response) and "tokens" in mapping(_logprobs(response))


def _read_completion(response: Any, choices: Choices) -> Listed:
    return _of_completion(mapping(_logprobs(response, choices.sample)), choices.position)


def _of_completion(logprobs: Mapping[Any, Any], position: int) -> Listed:
    """The list in the older form, with a mapping per generated token beside the tokens."""
    top = sequence(logprobs.get("top_logprobs"))
    listed = at(top, position) if top else None
    if listed:
        return of_pairs(mapping(listed).items())
    tokens, values = logprobs.get("tokens"), logprobs.get("token_logprobs")
    alone = of_pairs([(name_of(at(tokens, position), None), at(values, position))])
    alone.alone = True
    return alone


def _is_chat(response: Any) -> bool:
    # Samples of evaluation logs also have choices, which are texts.
    fields = mapping(response)
    return "choices" in fields and not isinstance(first(fields["choices"]), str)


def read_chat(response: Any, choices: Choices) -> Listed:
    """The list of a token of a chat completion."""
    if not sequence(mapping(response).get("choices")):
        raise not_understood(response, WANTED)
    logprobs = _logprobs(response, choices.sample)
    if not logprobs:
        raise no_logprobs("logprobs")
    return of_logprobs(logprobs, choices.position)


def texts_of(logprobs: Any) -> list[str]:
    """The generated tokens in a field `logprobs` of any interface."""
    if isinstance(logprobs, (list, tuple)):
        return [_text_of(token) for token in logprobs]
    fields = mapping(logprobs)
    named = ("content", "tokens", "top_logprobs")
    return texts_of(max((sequence(fields.get(name)) for name in named), key=len))


def _text_of(token: Any) -> str:
    """The text of a generated token; that of the likeliest alternative if none is marked."""
    if isinstance(token, str):
        return token
    fields = mapping(token)
    if isinstance(fields.get("token"), str):
        return str(fields["token"])
    ranked = [(_rank(value), mapping(value).get("decoded_token", name)) for name, value in fields.items()]
    return str(min(ranked, key=lambda pair: pair[0])[1]) if ranked else ""


def _rank(alternative: Any) -> float:
    """The rank of an alternative: lower is likelier."""
    value = mapping(alternative).get("logprob", alternative)
    return -value if isinstance(value, (int, float)) and value == value else 0.0


def generated_texts(response: Any, sample: int = 0) -> list[str]:
    """The generated tokens of an answer of a chat or a completion."""
    return texts_of(_logprobs(response, sample))


def of_logprobs(logprobs: Any, position: int) -> Listed:
    """The list in a field `logprobs` of any interface."""
    if isinstance(logprobs, (list, tuple)):
        token = at(logprobs, position)
        return of_token(token) if "token" in mapping(token) else _of_vllm(token)
    fields = mapping(logprobs)
    if fields.get("content") is not None:
        return of_token(mapping(at(fields["content"], position)))
    if "tokens" in fields:
        return _of_completion(fields, position)
    if "top_logprobs" in fields:
        return _of_top(fields["top_logprobs"], position)
    if "content" in fields:
        raise no_logprobs("content")
    raise not_understood(logprobs, WANTED)


def _of_top(top: Any, position: int) -> Listed:
    """The list in `top_logprobs` alone: an array of objects, a mapping, or a mapping per generated token."""
    if isinstance(top, Mapping):
        return of_pairs(top.items())
    objects = sequence(top)
    if objects and not any("logprob" in mapping(item) for item in objects):
        listed = at(top, position)
        return of_pairs(listed.items()) if isinstance(listed, Mapping) else of_objects(sequence(listed))
    return of_objects(objects)


def _output_text(response: Any) -> Any:
    """The first text in the output of the Responses interface, after any reasoning."""
    for item in sequence(mapping(response).get("output")):
        for content in sequence(mapping(item).get("content")):
            if mapping(content).get("type") == "output_text":
                return content
    return None


def _read_responses(response: Any, choices: Choices) -> Listed:
    tokens = mapping(_output_text(response)).get("logprobs")
    if not tokens:
        raise no_logprobs("logprobs")
    return of_token(mapping(at(tokens, choices.position)))


def _vllm_logprobs(response: Any, sample: int = 0) -> Any:
    return _sampled(response, "outputs", sample).get("logprobs")


def _vllm_texts(response: Any, sample: int = 0) -> list[str]:
    """The generated tokens, by their ids if these are present, otherwise the likeliest ones."""
    logprobs = sequence(_vllm_logprobs(response, sample))
    ids = sequence(_sampled(response, "outputs", sample).get("token_ids"))
    texts = texts_of(logprobs)
    for place, (alternatives, number) in enumerate(zip(logprobs, ids, strict=False)):
        text = mapping(mapping(alternatives).get(str(number))).get("decoded_token")
        texts[place] = text if isinstance(text, str) else texts[place]
    return texts


def _is_vllm(response: Any) -> bool:
    return "logprobs" in mapping(first(mapping(response).get("outputs")))


def _read_vllm(response: Any, choices: Choices) -> Listed:
    logprobs = _vllm_logprobs(response, choices.sample)
    if not logprobs:
        raise no_logprobs("logprobs")
    return _of_vllm(at(logprobs, choices.position))


def _of_vllm(token: Any) -> Listed:
    """The list in {token id: {"logprob", "rank", "decoded_token"}}, named by text if all have one."""
    alternatives = mapping(token)
    if not alternatives:
        raise not_understood(token, WANTED)
    texts = [mapping(value).get("decoded_token") for value in alternatives.values()]
    told_apart = all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts)
    listed = of_pairs(alternatives.items())
    if told_apart:
        called = dict(zip(alternatives, texts, strict=True))
        listed.labels = [called[name] for name in listed.labels]
    return listed


def _is_llama(response: Any) -> bool:
    return "completion_probabilities" in mapping(response)


def _read_llama(response: Any, choices: Choices) -> Listed:
    """The list of llama.cpp: `top_logprobs`, `top_probs` after sampling, or `probs` in old versions."""
    token = mapping(at(mapping(response).get("completion_probabilities"), choices.position))
    if "top_probs" in token or "prob" in token:
        listed = sequence(token.get("top_probs"))
        return _of_probabilities(listed or [token], "token", alone=not listed)
    if "probs" in token:
        return _of_probabilities(sequence(token["probs"]), "tok_str", alone=False)
    return of_token(token)


def _llama_texts(response: Any) -> list[str]:
    """The generated tokens: `token`, or in old versions `content`."""
    tokens = sequence(mapping(response).get("completion_probabilities"))
    return texts_of([mapping(token).get("content", token) for token in tokens])


def _of_probabilities(objects: Any, name: str, alone: bool) -> Listed:
    labels, values = [], []
    for item in objects:
        fields = mapping(item)
        value = fields.get("prob")
        if name not in fields or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise not_understood(item, "probabilities: objects with a token and 'prob'")
        labels.append(name_of(fields[name], fields.get("bytes")))
        values.append(float(value))
    return Listed(labels, values, alone=alone)


def _is_gemini(response: Any) -> bool:
    return bool(_sampled(response, "candidates"))


def _gemini_tokens(response: Any, sample: int = 0) -> tuple[Any, Any]:
    """The alternatives of every generated token, and the chosen tokens."""
    candidate = _sampled(response, "candidates", sample)
    result = mapping(candidate.get("logprobsResult") or candidate.get("logprobs_result"))
    top = result.get("topCandidates") or result.get("top_candidates")
    return top, result.get("chosenCandidates") or result.get("chosen_candidates")


def _gemini_texts(response: Any, sample: int = 0) -> list[str]:
    top, chosen = _gemini_tokens(response, sample)
    likeliest = [first(mapping(token).get("candidates")) for token in sequence(top)]
    return texts_of(sequence(chosen) or likeliest)


def _read_gemini(response: Any, choices: Choices) -> Listed:
    """The list in `logprobsResult`, in the spelling of the interface or of its Python client."""
    top, chosen = _gemini_tokens(response, choices.sample)
    if not top and not chosen:
        raise no_logprobs("logprobsResult")
    listed = mapping(at(top, choices.position)).get("candidates") if top else None
    objects = sequence(listed) or [at(chosen, choices.position)]
    camel = any("logProbability" in mapping(item) for item in objects)
    result = of_objects(objects, value="logProbability" if camel else "log_probability")
    result.alone = not listed
    return result


RESPONSES = (
    Shape(
        "completion",
        "completions with top_logprobs (OpenAI's older form, vLLM's server)",
        "choices[0].logprobs with tokens, token_logprobs and top_logprobs",
        _is_completion,
        _read_completion,
        samples=lambda response: n_samples(response, "choices"),
        generated=generated_texts,
        answer_text=answer_text_in,
    ),
    Shape(
        "chat",
        "chat completions with top_logprobs (OpenAI, vLLM, llama.cpp and others)",
        "choices[0].logprobs.content[i] with token, logprob and top_logprobs",
        _is_chat,
        read_chat,
        samples=lambda response: n_samples(response, "choices"),
        generated=generated_texts,
        answer_text=answer_text_in,
    ),
    Shape(
        "responses",
        "OpenAI Responses with top_logprobs",
        "output[].content[] of type output_text with logprobs[i]",
        lambda response: _output_text(response) is not None,
        _read_responses,
        generated=lambda response, _=0: texts_of(mapping(_output_text(response)).get("logprobs")),
    ),
    Shape(
        "vllm",
        "offline vLLM outputs",
        "outputs[0].logprobs[i] of {token id: {logprob, decoded_token}}",
        _is_vllm,
        _read_vllm,
        samples=lambda response: n_samples(response, "outputs"),
        generated=_vllm_texts,
        answer_text=lambda response, sample: answer_text_in(response, sample, "outputs"),
    ),
    Shape(
        "llama.cpp",
        "completions of llama.cpp's server",
        "completion_probabilities[i] with top_logprobs, top_probs or probs",
        _is_llama,
        _read_llama,
        generated=lambda response, _=0: _llama_texts(response),
    ),
    Shape(
        "gemini",
        "Gemini responses with logprobsResult",
        "candidates[0].logprobsResult with topCandidates[i].candidates and chosenCandidates[i]",
        _is_gemini,
        _read_gemini,
        samples=lambda response: n_samples(response, "candidates"),
        generated=_gemini_texts,
        answer_text=lambda response, sample: answer_text_in(response, sample, "candidates"),
    ),
)
