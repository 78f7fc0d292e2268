"""The small files of the documentation and of the examples in `--help`: simulated, the same at every call."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq

Array = np.ndarray[Any, Any]

N = 240
ANIMALS = ("cat", "dog", "fox")
GRADES = ("none", "mild", "severe")
RATERS = ("ann", "bob", "cy")


def write_files(folder: Path) -> list[Path]:
    """Write every file into a folder."""
    paths = []
    for name, write in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
        paths.append(path)
    return paths


def about(name: str) -> str:
    """The content of a file, in a line."""
    write = FILES[name]
    write = write.func if isinstance(write, partial) else write
    return (write.__doc__ or "").split("\n")[0].removesuffix(".")


def _rows(seed: int, k: int = 3) -> tuple[np.random.Generator, Array, Array]:
    """Forecasts of k classes, and outcomes drawn from them: calibrated."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), N).round(6)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    y = (rng.random((N, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return rng, y, np.clip(p, 0, 1)


def predictions(path: Path, seed: int = 1, caution: float = 0.0) -> None:
    """Probabilities of three animals, with ids, sites and weights."""
    rng, y, p = _rows(seed)
    p = (1 - caution) * p + caution / 3
    names = np.array(ANIMALS)
    site = np.where(rng.random(N) < 0.5, "north", "south")
    columns: dict[str, Any] = {"id": np.arange(N), "label": names[y], "site": site}
    columns |= {f"p_{name}": p[:, j] for j, name in enumerate(names)}
    papq.write_table(pa.table({**columns, "w": rng.integers(1, 4, N).astype(float)}), path)


def one_day(path: Path, half: int) -> None:
    """Half the rows of a.parquet."""
    predictions(path)
    papq.write_table(papq.read_table(path).slice(half * N // 2, N // 2), path)


def days(path: Path, month: int = 2, *, changed: bool = False) -> None:
    """Probabilities of three animals over eight days.

    If something has changed, half of the animals are foxes from the third day on.
    """
    rng, y, p = _rows(6 + month)
    names = np.array(ANIMALS)
    if changed:
        y = np.where((np.arange(N) >= N // 4) & (rng.random(N) < 0.5), 2, y)
    columns = {"id": np.arange(N), "label": names[y], "site": np.where(np.arange(N) % 2, "north", "south")}
    columns |= {"day": np.repeat(np.datetime64(f"2026-{month:02}-01") + np.arange(8), N // 8)}
    papq.write_table(pa.table({**columns, **{f"p_{name}": p[:, j] for j, name in enumerate(names)}}), path)


def late(path: Path, day: int, *, known: bool = False) -> None:
    """Forecasts of one day, or the outcomes, which are known a day later."""
    _, y, p = _rows(10 + day)
    names = np.array(ANIMALS)
    columns = {"case": [f"{day}/{i}" for i in range(N)], "day": np.full(N, day + known)}
    columns |= {"label": names[y]} if known else {f"p_{name}": p[:, j] for j, name in enumerate(names)}
    pacsv.write_csv(pa.table(columns), path)


def grades(path: Path, seed: int = 2) -> None:
    """Probabilities of three ordered grades, several eyes per patient."""
    rng, y, p = _rows(seed)
    columns = {"patient": rng.integers(0, 80, N), "grade": np.array(GRADES)[y]}
    columns |= {f"prob_{name}": p[:, j] for j, name in enumerate(GRADES)}
    pacsv.write_csv(pa.table(columns), path)


def diagnoses(path: Path) -> None:
    """Diagnoses, with the set that was considered for each."""
    considered = ["flu|cold", "covid", "flu", "flu|cold|covid"]
    rows = [
        f"{name},{considered[i % 4]}" for i, name in enumerate(["flu", "covid", "cold", "cold", "flu"] * 8)
    ]
    path.write_text("\n".join(["label,considered", *rows]))


def rated(path: Path) -> None:
    """Ordered grades by three raters, with probabilities."""
    rng, y, p = _rows(9)
    columns: dict[str, Any] = {"eye": [f"e{i}" for i in range(N)], "patient": rng.integers(0, 80, N)}
    for name in RATERS:
        columns[name] = np.array(GRADES)[np.where(rng.random(N) < 0.7, y, rng.integers(0, 3, N))]
    columns["cy"] = [None if i % 5 == 0 else grade for i, grade in enumerate(columns["cy"].tolist())]
    columns |= {f"prob_{name}": (0.7 * p + 0.1)[:, j] for j, name in enumerate(GRADES)}
    pacsv.write_csv(pa.table(columns), path)


def labels(path: Path) -> None:
    """Ordered grades by three raters, one row per rater and eye."""
    wide = path.with_name("wide.csv")
    rated(wide)
    table = pacsv.read_csv(wide, convert_options=pacsv.ConvertOptions(strings_can_be_null=True))
    wide.unlink()
    long = [table.drop(RATERS).append_column("rater", pa.array([who] * N)) for who in RATERS]
    long = [part.append_column("grade", table[who]) for part, who in zip(long, RATERS, strict=True)]
    pacsv.write_csv(pa.concat_tables(long), path)


def risks(path: Path) -> None:
    """Risks of death at six hospitals."""
    rng = np.random.default_rng(12)
    hospital, n = rng.integers(0, 6, 3000), 3000
    odds = rng.normal(-2, 1, n)
    died = rng.random(n) < 1 / (1 + np.exp(-odds - rng.normal(0, 0.3, 6)[hospital]))
    columns = {"patient": rng.integers(0, 2000, n), "hospital": np.array(list("ABCDEF"))[hospital]}
    risk = np.round(1 / (1 + np.exp(-odds)), 4)
    pacsv.write_csv(pa.table({**columns, "died": died.astype(int), "risk": risk}), path)


def judged(path: Path) -> None:
    """Grades of 400 answers by a judge, and of every sixth by a person."""
    rng = np.random.default_rng(13)
    right = rng.random(400) < 0.7
    judge = np.where(rng.random(400) < 0.85, right, ~right).astype(int)
    human = [int(grade) if i % 6 == 0 else None for i, grade in enumerate(right.tolist())]
    pacsv.write_csv(pa.table({"id": np.arange(400), "judge": judge, "human": human}), path)


def repeated(path: Path) -> None:
    """Ten answers to each of 40 tasks, right or wrong."""
    rng = np.random.default_rng(14)
    ease = rng.beta(0.7, 0.9, 40)
    task, sample = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    right = (rng.random(400) < ease[task]).astype(int)
    pacsv.write_csv(pa.table({"task": task, "sample": sample, "correct": right}), path)


def odds(path: Path) -> None:
    """Probabilities of a model and a bookmaker for the same games."""
    rng, y, p = _rows(5)
    names = np.array(["Home", "Draw", "Away"])
    columns = {"result": names[y]}
    for who, forecast in (("Model", p), ("Book", 0.8 * p + 0.2 * rng.dirichlet(np.ones(3), N))):
        columns |= {f"{who} {name}": forecast[:, j] for j, name in enumerate(names)}
    pacsv.write_csv(pa.table(columns), path)


def submission(path: Path, *, truth: bool = False) -> None:
    """Probabilities that customers leave, or, in another file, who left."""
    _, y, p = _rows(12, 2)
    ids = [f"{i:04}" for i in range(N)]
    columns = {"customerID": ids[::-1], "Churn": y[::-1]} if truth else {"customerID": ids, "Churn": p[:, 1]}
    pacsv.write_csv(pa.table(columns), path)


def archive(path: Path) -> None:
    """Five numbered classes in a NumPy archive."""
    _, y, p = _rows(3, 5)
    np.savez(path, probs=p, labels=y)


def logits(path: Path) -> None:
    """Logits of three classes in a NumPy archive."""
    _, y, p = _rows(4)
    np.savez(path, logits=np.log(p + 1e-3), labels=y)


def completions(path: Path) -> None:
    """Top log-probabilities of yes-or-no answers."""
    lines = [{"outcome": "yes", "top_logprobs": {"yes": -0.2, "no": -2.0}}] * 30
    _json_lines(path, lines)


def batch(path: Path) -> None:
    """A batch of chat completions, of which a quarter failed."""
    lines = []
    for i in range(40):
        top = [{"token": " Yes", "logprob": -0.2}, {"token": " No", "logprob": -1.9}]
        body = {"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}
        failed = {"response": None, "error": {"code": "batch_expired", "message": "not in time"}}
        answered = {"response": {"status_code": 200, "body": body}, "error": None}
        lines.append({"custom_id": f"q{i}", **(failed if i % 4 == 3 else answered)})
    _json_lines(path, lines)


def gold(path: Path) -> None:
    """The right answers of batch.jsonl."""
    path.write_text(
        "custom_id,answer\n" + "".join(f"q{i}, {'No' if i % 5 == 0 else 'Yes'}\n" for i in range(40))
    )


def samples(path: Path) -> None:
    """A sample log of lm-evaluation-harness, four choices per question."""
    rng, lines = np.random.default_rng(6), []
    for i in range(60):
        values = [[str(value), "False"] for value in rng.normal(-3, 1, 4)]
        arguments = {f"gen_args_{j}": {"arg_0": "Question", "arg_1": f" {c}"} for j, c in enumerate("ABCD")}
        lines.append({"doc_id": i, "target": str(i % 4), "arguments": arguments, "filtered_resps": values})
    _json_lines(path, lines)


def ranked_run(path: Path) -> None:
    """A TREC run whose scores are probabilities of relevance."""
    lines = [f"q{q} Q0 d{d} {d + 1} {(10 - d) / 11:.3f} ours" for q in range(12) for d in range(10)]
    path.write_text("\n".join(lines) + "\n")


def judgements(path: Path) -> None:
    """Relevance judgements of run.trec."""
    chance = np.random.default_rng(8).random((12, 9)) < (10 - np.arange(9)) / 14
    lines = [f"q{q} 0 d{d} {int(chance[q, d])}" for q in range(12) for d in range(9)]
    path.write_text("\n".join(lines) + "\n")


def quiz(path: Path, model: int = 0) -> None:
    """Top log-probabilities of answers to 240 questions, overconfident."""
    rng, lines = np.random.default_rng(30), []
    truth, noise, drawn = rng.normal(0, 1.3, (240, 4)), rng.normal(0, 1 - model, (240, 4)), rng.random(240)
    for i in range(240):
        known = truth[i] + noise[i]
        p, q = (np.exp(z) / np.exp(z).sum() for z in (truth[i], 2 * known))
        top = {name: round(float(np.log(0.98 * t)), 4) for name, t in zip("ABCD", q, strict=True)}
        answer = "ABCD"[int((drawn[i] > np.cumsum(p)[:3]).sum())]
        lines.append({"id": f"q{i}", "subject": f"subject {i % 24}", "answer": answer, "top_logprobs": top})
    _json_lines(path, lines)


def _json_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))


HISTORY: dict[str, list[float]] = {
    "epoch": [0, 1, 2, 3],
    "val_log": [1.0, 0.7, 0.8, 0.9],
    "val_pbs": [1.2, 0.8, 0.7, 0.75],
    "val_f1": [0.3, 0.6, 0.7, 0.72],
    "val_my_metric": [1.0, 3.0, 2.0, 0.0],
}


def log_as_csv(path: Path) -> None:
    """Validation metrics of four epochs."""
    pacsv.write_csv(pa.table(HISTORY), path)


def log_as_json_lines(path: Path) -> None:
    """Validation metrics of four epochs, a line each."""
    _json_lines(path, pa.table(HISTORY).to_pylist())


def trainer_state(path: Path) -> None:
    """The state of a Hugging Face Trainer."""
    log = []
    for step in range(50, 501, 50):
        log.append({"epoch": step / 400, "step": step, "loss": 2 / (1 + step / 100), "learning_rate": 1e-5})
        if step % 100 == 0:
            log.append(
                {
                    "epoch": step / 400,
                    "step": step,
                    "eval_loss": 1 / (1 + step / 100) + step / 2000,
                    "eval_accuracy": 0.5 + step / 2000,
                    "eval_runtime": 2.0,
                }
            )
    path.write_text(json.dumps({"epoch": 1.25, "global_step": 500, "log_history": log}))


def card(path: Path, seed: int) -> None:
    """Saved results of one day."""
    from verax.analyses.cards.evaluation import evaluate

    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1, 1, 1], 100)
    evaluate(rng.integers(0, 3, 100), p, classes=ANIMALS).save(path)


def answers(path: Path, model: int | None = 0) -> None:
    """Graded answers with confidences.

    Of two models, stacked in rows, where `model` is None.
    """
    frames = []
    for place, name in enumerate(("old", "new")):
        rng = np.random.default_rng(20)
        ease, drawn = rng.random(N), np.random.default_rng(21 + place).random(N)
        right = drawn < np.clip(ease + 0.1 * place, 0, 1)
        columns = {
            "qid": [f"q{i}" for i in range(N)],
            "subject": np.arange(N) // 6,
            "confidence": ease.round(3),
        }
        columns |= {"correct": pa.array(right, mask=drawn > 0.99), "model": [name] * N}
        table = pa.table(columns)
        frames.append(table.slice(0, N - 40) if model is None and place else table)
    pacsv.write_csv(pa.concat_tables(frames) if model is None else frames[model].drop(["model"]), path)


def folds(path: Path) -> None:
    """Probabilities of two models on the test rows of five folds."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, N)
    columns: dict[str, Any] = {"y": y, "fold": np.arange(N) % 5, "case": np.arange(N)}
    for name, noise in (("new", 0.3), ("old", 0.4)):
        columns[f"{name}_1"] = np.clip(0.5 + 0.3 * (y - 0.5) + noise * (rng.random(N) - 0.5), 0, 1).round(4)
        columns[f"{name}_0"] = 1 - columns[f"{name}_1"]
    pacsv.write_csv(pa.table(columns), path)


def scores(path: Path) -> None:
    """Scores of three models on eight data sets."""
    rng = np.random.default_rng(9)
    hard = rng.uniform(0.1, 0.4, 8)
    columns: dict[str, Any] = {"dataset": [f"data {i}" for i in range(8)]}
    columns |= {
        name: (hard + more + 0.01 * rng.random(8)).round(4)
        for name, more in zip("abc", (0, 0.005, 0.05), strict=True)
    }
    pacsv.write_csv(pa.table(columns), path)


def eval_log(path: Path) -> None:
    """An Inspect log: 60 questions of three subjects, two answers each."""
    rng = np.random.default_rng(30)
    subjects = ("law", "maths", "history")
    about = {"task": "mmlu", "model": "openai/gpt-4o", "dataset": {"samples": 60}, "config": {"epochs": 2}}
    members: dict[str, Any] = {"header.json": {"version": 2, "status": "success", "eval": about}}
    for i in range(60):
        ease, subject = rng.random(), subjects[i % 3]
        for epoch in (1, 2):
            sample: dict[str, Any] = {"id": f"q{i}", "epoch": epoch, "metadata": {"subject": subject}}
            sample |= {"input": f"Question {i} of {subject}?", "target": "B", "scores": {}}
            if i == 7:
                sample["error"] = {"message": "timeout"}
            else:
                right = rng.random() <= 0.3 + 0.6 * ease
                sample["scores"]["choice"] = {"value": "C" if right else "I", "answer": "B"}
            members[f"samples/q{i}_epoch_{epoch}.json"] = sample
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            # A date of its own, so that the file is the same at every call.
            archive.writestr(zipfile.ZipInfo(name), json.dumps(content))


def tournament(path: Path) -> None:
    """A tournament: forecasters of yes-or-no questions, with updates."""
    rng = np.random.default_rng(31)
    day = np.datetime64("2026-01-01")
    rows = []
    for q in range(40):
        truth = rng.random()
        resolved = int(rng.random() < truth)
        for name, noise, share in (("ann", 0.05, 1.0), ("bob", 0.35, 0.8), ("cy", 0.15, 0.6)):
            if rng.random() > share:
                continue
            for k in range(rng.integers(1, 4)):
                p = round(float(np.clip(truth + rng.normal(0, noise), 0.02, 0.98)), 2)
                rows.append((f"q{q}", name, p, resolved, str(day + 9 * k), str(day + 30)))
    names = ("question", "forecaster", "probability", "resolution", "made", "closes")
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]))


FILES: dict[str, Callable[[Path], None]] = {
    "preds.parquet": predictions,
    "a.parquet": partial(predictions, seed=1),
    "b.parquet": partial(predictions, caution=0.3),
    "grades.csv": grades,
    "held-out.csv": partial(grades, seed=7),
    "test.parquet": partial(predictions, seed=5),
    "calibration.parquet": partial(predictions, seed=6),
    "predictions.npz": archive,
    "logits.npz": logits,
    "odds.csv": odds,
    "submission.csv": submission,
    "truth.csv": partial(submission, truth=True),
    "folds.csv": folds,
    "scores.csv": scores,
    "diagnoses.csv": diagnoses,
    "rated.csv": rated,
    "risks.csv": risks,
    "judged.csv": judged,
    "passk.csv": repeated,
    "labels.csv": labels,
    "days/monday.parquet": partial(one_day, half=0),
    "days/tuesday.parquet": partial(one_day, half=1),
    "january.parquet": partial(days, month=1),
    "february.parquet": days,
    "march.parquet": partial(days, month=3, changed=True),
    "today.csv": partial(late, day=1),
    "next.csv": partial(late, day=2),
    "known.csv": partial(late, day=1, known=True),
    "monday.verax": partial(card, seed=1),
    "tuesday.verax": partial(card, seed=2),
    "old_answers.csv": partial(answers, model=0),
    "new_answers.csv": partial(answers, model=1),
    "answers.csv": partial(answers, model=None),
    "log.eval": eval_log,
    "tour.csv": tournament,
    "small.jsonl": quiz,
    "large.jsonl": partial(quiz, model=1),
    "completions.jsonl": completions,
    "batch.jsonl": batch,
    "gold.csv": gold,
    "samples.jsonl": samples,
    "run.trec": ranked_run,
    "qrels.txt": judgements,
    "metrics.csv": log_as_csv,
    "log.jsonl": log_as_json_lines,
    "trainer_state.json": trainer_state,
    "epochs/1.parquet": partial(predictions, caution=0.6),
    "epochs/2.parquet": partial(predictions, caution=0.2),
    "epochs/3.parquet": predictions,
}
