"""The files that examples speak of: any command's, and those of the documentation."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq

import verax as vx
from evallogs import inspect_sample, write_eval

# Real predictions, where they are at hand.

N = 240
GRADES = ("none", "mild", "severe")
RATERS = ("ann", "bob", "cy")

# A call of every command on these files.
RUNS = {
    "evaluate": ["preds.parquet", "--groups", "site", "--require", "brier<0.1"],
    "merge": ["monday.verax", "tuesday.verax"],
    "compare": ["preds.parquet", "missing.parquet"],
    "decompose": ["preds.parquet", "--bootstrap", 20],
    "plan": ["preds.parquet", "--rule", "accuracy", "--width", 0.02],
    "decide": ["preds.parquet", "--threshold", "youden"],
    "sets": ["preds.parquet", "--level", 0.8],
    "raters": ["rated.csv", "--raters", "ann,bob,cy"],
    "recalibrate": ["preds.parquet", "--method", "temperature"],
    "worst": ["preds.parquet", "-n", 3],
    "retain": ["preds.parquet", "--metric", "accuracy", "--json"],
    "monitor": ["february.parquet", "--time", "day", "--reference", 0.5, "--state", "new.state"],
    "select": ["metrics.csv"],
    "toplist": ["completions.jsonl", "--classes", 50000],
    "certify": ["zero_one", "--n-classes", 2, "--json"],
    "reproduce": ["resin"],
    "schema": ["evaluate"],
}


def _rows(seed: int, k: int):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), N).round(6)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    y = (rng.random((N, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return rng, y, np.clip(p, 0, 1)


def predictions(path, seed=1, caution=0.0):
    """Three animals, with an id, a site and a weight."""
    rng, y, p = _rows(seed, 3)
    p = (1 - caution) * p + caution / 3
    names = np.array(["cat", "dog", "fox"])
    columns = {"id": np.arange(N), "label": names[y], "site": np.where(rng.random(N) < 0.5, "north", "south")}
    columns |= {f"p_{name}": p[:, j] for j, name in enumerate(names)}
    papq.write_table(pa.table({**columns, "w": rng.integers(1, 4, N).astype(float)}), path)


def days(path):
    """The same animals over eight days."""
    _, y, p = _rows(8, 3)
    names = np.array(["cat", "dog", "fox"])
    columns = {"id": np.arange(N), "label": names[y], "site": np.where(np.arange(N) % 2, "north", "south")}
    columns |= {"day": np.repeat(np.arange("2026-02-01", "2026-02-09", dtype="datetime64[D]"), N // 8)}
    papq.write_table(pa.table({**columns, **{f"p_{name}": p[:, j] for j, name in enumerate(names)}}), path)


def late(path, day, *, known=False):
    """The forecasts of one day, whose outcomes are known on the next, or these outcomes."""
    _, y, p = _rows(10 + day, 3)
    names = np.array(["cat", "dog", "fox"])
    columns = {"case": [f"{day}/{i}" for i in range(N)], "day": np.full(N, day + known)}
    columns |= {"label": names[y]} if known else {f"p_{name}": p[:, j] for j, name in enumerate(names)}
    pacsv.write_csv(pa.table(columns), path)


def grades(path, seed=2):
    """Ordered grades, several eyes a patient."""
    rng, y, p = _rows(seed, 3)
    columns = {"patient": rng.integers(0, 80, N), "grade": np.array(GRADES)[y]}
    columns |= {f"prob_{name}": p[:, j] for j, name in enumerate(GRADES)}
    pacsv.write_csv(pa.table(columns), path)


def diagnoses(path):
    """Diagnoses with the sets of those that were considered."""
    considered = ["flu|cold", "covid", "flu", "flu|cold|covid"]
    rows = [
        f"{name},{considered[i % 4]}" for i, name in enumerate(["flu", "covid", "cold", "cold", "flu"] * 8)
    ]
    path.write_text("\n".join(["label,considered", *rows]))


def rated(path):
    """Ordered grades by three raters, of whom the last grades four eyes of five."""
    rng, y, p = _rows(9, 3)
    columns = {"eye": [f"e{i}" for i in range(N)], "patient": rng.integers(0, 80, N)}
    for name in RATERS:
        columns[name] = np.array(GRADES)[np.where(rng.random(N) < 0.7, y, rng.integers(0, 3, N))]
    columns["cy"] = [None if i % 5 == 0 else grade for i, grade in enumerate(columns["cy"].tolist())]
    columns |= {f"prob_{name}": (0.7 * p + 0.1)[:, j] for j, name in enumerate(GRADES)}
    pacsv.write_csv(pa.table(columns), path)


def labels(path):
    """The same with a row for each grade that a rater gave."""
    wide = path.with_name("wide.csv")
    rated(wide)
    table = pacsv.read_csv(wide, convert_options=pacsv.ConvertOptions(strings_can_be_null=True))
    wide.unlink()
    long = [table.drop(RATERS).append_column("rater", pa.array([who] * N)) for who in RATERS]
    long = [part.append_column("grade", table[who]) for part, who in zip(long, RATERS, strict=True)]
    pacsv.write_csv(pa.concat_tables(long), path)


def odds(path):
    """A model and a bookmaker on the same games."""
    rng, y, p = _rows(5, 3)
    names = np.array(["Home", "Draw", "Away"])
    columns = {"result": names[y]}
    for who, forecast in (("Model", p), ("Book", 0.8 * p + 0.2 * rng.dirichlet(np.ones(3), N))):
        columns |= {f"{who} {name}": forecast[:, j] for j, name in enumerate(names)}
    pacsv.write_csv(pa.table(columns), path)


def archive(path):
    _, y, p = _rows(3, 5)
    np.savez(path, probs=p, labels=y)


def logits(path):
    _, y, p = _rows(4, 3)
    np.savez(path, logits=np.log(p + 1e-3), labels=y)


def completions(path):
    lines = [{"outcome": "yes", "top_logprobs": {"yes": -0.2, "no": -2.0}}] * 30
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def batch(path):
    """Lines of a batch of chat completions: three of four were answered."""
    lines = []
    for i in range(40):
        top = [{"token": " Yes", "logprob": -0.2}, {"token": " No", "logprob": -1.9}]
        body = {"choices": [{"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}]}
        failed = {"response": None, "error": {"code": "batch_expired", "message": "not in time"}}
        answered = {"response": {"status_code": 200, "body": body}, "error": None}
        lines.append({"custom_id": f"q{i}", **(failed if i % 4 == 3 else answered)})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def gold(path):
    path.write_text(
        "custom_id,answer\n" + "".join(f"q{i}, {'No' if i % 5 == 0 else 'Yes'}\n" for i in range(40))
    )


def samples(path):
    """Sample logs of lm-evaluation-harness for questions with four choices."""
    rng, lines = np.random.default_rng(6), []
    for i in range(60):
        values = [[str(value), "False"] for value in rng.normal(-3, 1, 4)]
        arguments = {f"gen_args_{j}": {"arg_0": "Question", "arg_1": f" {c}"} for j, c in enumerate("ABCD")}
        lines.append({"doc_id": i, "target": str(i % 4), "arguments": arguments, "filtered_resps": values})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def ranked_run(path):
    """A ranked run of 12 queries with 10 documents each, whose scores are probabilities of relevance."""
    lines = [f"q{q} Q0 d{d} {d + 1} {(10 - d) / 11:.3f} ours" for q in range(12) for d in range(10)]
    path.write_text("\n".join(lines) + "\n")


def judgements(path):
    """Which of these documents are relevant, several to a query; the last of each is not judged."""
    chance = np.random.default_rng(8).random((12, 9)) < (10 - np.arange(9)) / 14
    lines = [f"q{q} 0 d{d} {int(chance[q, d])}" for q in range(12) for d in range(9)]
    path.write_text("\n".join(lines) + "\n")


def quiz(path, model=0):
    """Top log-probabilities of the first token of answers to 240 questions; both models are too sure."""
    rng, lines = np.random.default_rng(30), []
    truth, noise, drawn = rng.normal(0, 1.3, (240, 4)), rng.normal(0, 1 - model, (240, 4)), rng.random(240)
    for i in range(240):
        known = truth[i] + noise[i]
        p, q = (np.exp(z) / np.exp(z).sum() for z in (truth[i], 2 * known))
        top = {name: round(float(np.log(0.98 * t)), 4) for name, t in zip("ABCD", q, strict=True)}
        answer = "ABCD"[int((drawn[i] > np.cumsum(p)[:3]).sum())]
        lines.append({"id": f"q{i}", "subject": f"subject {i % 24}", "answer": answer, "top_logprobs": top})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


HISTORY = {
    "epoch": [0, 1, 2, 3],
    "val_log": [1.0, 0.7, 0.8, 0.9],
    "val_pbs": [1.2, 0.8, 0.7, 0.75],
    "val_f1": [0.3, 0.6, 0.7, 0.72],
    "val_my_metric": [1.0, 3.0, 2.0, 0.0],
}


def log_as_csv(path):
    pacsv.write_csv(pa.table(HISTORY), path)


def log_as_json_lines(path):
    lines = pa.table(HISTORY).to_pylist()
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


# Name: how it is written.
def trainer_state(path):
    """What a Hugging Face Trainer leaves in its checkpoints: training and evaluation at different steps."""
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


def card(path, seed):
    """The saved sums of one day."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([1, 1, 1], 100)
    vx.evaluate(rng.integers(0, 3, 100), p, classes=["cat", "dog", "fox"]).save(path)


def answers(path, model=0):
    """Graded answers of a model; of two, stacked in rows, where `model` is None."""
    frames = []
    for own, name in enumerate(("old", "new")):
        rng = np.random.default_rng(20)
        ease, drawn = rng.random(N), np.random.default_rng(21 + own).random(N)
        right = drawn < np.clip(ease + 0.1 * own, 0, 1)
        columns = {
            "qid": [f"q{i}" for i in range(N)],
            "subject": np.arange(N) // 6,
            "confidence": ease.round(3),
        }
        columns |= {"correct": pa.array(right, mask=drawn > 0.99), "model": [name] * N}
        table = pa.table(columns)
        frames.append(table.slice(0, N - 40) if model is None and own else table)
    pacsv.write_csv(pa.concat_tables(frames) if model is None else frames[model].drop(["model"]), path)


def folds(path):
    """Two models on the test rows of five folds."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, N)
    columns = {"y": y, "fold": np.arange(N) % 5, "case": np.arange(N)}
    for name, noise in (("new", 0.3), ("old", 0.4)):
        columns[f"{name}_1"] = np.clip(0.5 + 0.3 * (y - 0.5) + noise * (rng.random(N) - 0.5), 0, 1).round(4)
        columns[f"{name}_0"] = 1 - columns[f"{name}_1"]
    pacsv.write_csv(pa.table(columns), path)


def scores(path):
    """The scores of three models on eight data sets."""
    rng = np.random.default_rng(9)
    hard = rng.uniform(0.1, 0.4, 8)
    columns = {"dataset": [f"data {i}" for i in range(8)]}
    columns |= {
        name: (hard + more + 0.01 * rng.random(8)).round(4)
        for name, more in zip("abc", (0, 0.005, 0.05), strict=True)
    }
    pacsv.write_csv(pa.table(columns), path)


def eval_log(path):
    """An Inspect log: two answers to each of 60 questions of three subjects, one question with an error."""
    rng = np.random.default_rng(30)
    subjects = ("law", "maths", "history")
    drawn = []
    for i in range(60):
        ease = rng.random()
        for epoch in (1, 2):
            about = {"metadata": {"subject": subjects[i % 3]}, "input": f"Question {i} of {subjects[i % 3]}?"}
            about |= {"error": {"message": "timeout"}} if i == 7 else {}
            value = None if i == 7 else "CI"[int(rng.random() > 0.3 + 0.6 * ease)]
            drawn.append(inspect_sample(f"q{i}", value, epoch=epoch, **about))
    write_eval(path, drawn)


def tournament(path):
    """Forecasters of yes-or-no questions, who may change a forecast and skip questions."""
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


FILES = {
    "log.eval": eval_log,
    "tour.csv": tournament,
    "preds.parquet": predictions,
    "february.parquet": days,
    "today.csv": lambda path: late(path, 1),
    "next.csv": lambda path: late(path, 2),
    "known.csv": lambda path: late(path, 1, known=True),
    "a.parquet": lambda path: predictions(path, 1),
    "b.parquet": lambda path: predictions(path, 1, caution=0.3),
    "test.parquet": lambda path: predictions(path, 5),
    "calibration.parquet": lambda path: predictions(path, 6),
    "epochs/1.parquet": lambda path: predictions(path, 1, caution=0.6),
    "epochs/2.parquet": lambda path: predictions(path, 1, caution=0.2),
    "epochs/3.parquet": predictions,
    "grades.csv": grades,
    "held-out.csv": lambda path: grades(path, 7),
    "rated.csv": rated,
    "diagnoses.csv": diagnoses,
    "answers.csv": lambda path: answers(path, None),
    "old_answers.csv": lambda path: answers(path, 0),
    "new_answers.csv": lambda path: answers(path, 1),
    "folds.csv": folds,
    "scores.csv": scores,
    "labels.csv": labels,
    "odds.csv": odds,
    "predictions.npz": archive,
    "logits.npz": logits,
    "completions.jsonl": completions,
    "batch.jsonl": batch,
    "gold.csv": gold,
    "samples.jsonl": samples,
    "run.trec": ranked_run,
    "qrels.txt": judgements,
    "small.jsonl": quiz,
    "large.jsonl": lambda path: quiz(path, 1),
    "metrics.csv": log_as_csv,
    "log.jsonl": log_as_json_lines,
    "trainer_state.json": trainer_state,
    "monday.verax": lambda path: card(path, 1),
    "tuesday.verax": lambda path: card(path, 2),
}


def write_all(folder):
    """Write every demo file into a folder."""
    for name, write in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name)


def write_demo(folder):
    """Write the predictions of the ordered problem of `verax demo`, which the page Start is about."""
    from verax.cli.demo import write_predictions
    from verax.cli.tour import progression

    write_predictions(progression(), folder)
