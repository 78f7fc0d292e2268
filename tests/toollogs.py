"""Results as promptfoo, DeepEval, Braintrust, LangSmith, MLflow, Ragas and OpenAI's interface write them."""

from __future__ import annotations

from typing import Any


def promptfoo_result(
    said: str, right: str, score: float | None, *, test: int = 0, model: str = "m", **more: Any
) -> dict:
    """A result; a score of None is an error, which promptfoo writes as 0."""
    asserted = {"type": "equals", "value": right, "metric": "exact"}
    parts = [{"pass": score == 1, "score": score, "reason": "", "assertion": asserted}]
    graded = {"pass": score == 1, "score": score, "namedScores": {"exact": score}, "componentResults": parts}
    return {
        "provider": {"id": f"custom:{model}", "label": model},
        "prompt": {"raw": f"Say {right}", "label": "Say {{expected}}"},
        "vars": {"expected": right},
        "response": {"error": "429"} if score is None else {"output": said, "finishReason": "stop"},
        "success": score == 1,
        "failureReason": 2 if score is None else int(score < 1),
        "score": score or 0,
        "namedScores": {} if score is None else {"exact": score},
        "promptIdx": 0,
        "testIdx": test,
        "testCase": {"vars": {"expected": right}, "assert": [asserted], "metadata": {}},
        "gradingResult": None if score is None else graded,
        **({"error": "429"} if score is None else {}),
        **more,
    }


def promptfoo_document(results: list[dict]) -> dict:
    return {"evalId": "eval-1", "results": {"version": 3, "prompts": [], "results": results}}


def deepeval_case(name: str, asked: str, said: str, scores: dict[str, float | None]) -> dict:
    """A test case; a score of None is a metric that failed, which has no score, and no success either."""
    metrics = []
    for metric, score in scores.items():
        data = {"name": metric, "threshold": 0.5, "success": (score or 0) >= 0.5, "evaluationModel": "gpt"}
        metrics.append({**data, **({"error": "timed out"} if score is None else {"score": score})})
    return {"name": name, "input": asked, "actualOutput": said, "success": False, "metricsData": metrics}


def mlflow_trace(asked: str, said: str, *assessed: tuple[str, Any, str]) -> dict:
    """A trace with assessments: name, value and who made it; a value of None is a scorer that failed."""
    listed = []
    for name, value, source in assessed:
        feedback = {"value": value} if value is not None else {"value": None, "error": {"error_code": "E"}}
        about = {"source_type": source, "source_id": "x"}
        listed.append({"assessment_name": name, "source": about, "feedback": feedback, "valid": True})
    expected = {"source": {"source_type": "HUMAN"}, "expectation": {"value": "2"}, "valid": True}
    listed.append({"assessment_name": "expected_response", **expected})
    columns = {f"{name}/value": value for name, value, _ in assessed}
    request = {"question": asked}
    return {"trace_id": f"tr-{asked}", "state": "OK", "request": request, "response": said} | columns | {
        "assessments": listed
    }  # fmt: skip


def output_item(key: int, said: str, scores: dict[str, float], **sample: Any) -> dict:
    """An item of OpenAI's interface for evals."""
    return {
        "object": "eval.run.output_item",
        "datasource_item_id": key,
        "datasource_item": {"question": f"{key}+1", "reference": "2", "subject": "sums"},
        "results": [{"name": name, "passed": score >= 0.5, "score": score} for name, score in scores.items()],
        "sample": {"model": "gpt-4o", "output": [{"role": "assistant", "content": said}], **sample},
    }
