"""Make the logs of the tutorial, with the mock models of Inspect and of lm-evaluation-harness.

To run it: `pip install inspect-ai lm-eval`, then `python quiz.py`.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

import inspect_ai
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import choice
from inspect_ai.solver import multiple_choice

SUBJECTS = ("algebra", "anatomy", "astronomy", "law", "logic")
chance = random.Random(0)
QUESTIONS = [
    {
        "id": f"q{i}",
        "subject": SUBJECTS[i % 5],
        "passage": f"passage {i // 4}",
        "question": f"Question {i} of {SUBJECTS[i % 5]}?",
        "answer": chance.randrange(4),
        "ease": chance.random(),
    }
    for i in range(100)
]


def inspect_log(name: str, skill: float, seed: int) -> None:
    """A log of Inspect: its mock model is right more often on easier questions."""
    draw = random.Random(seed)
    said = {}
    for question in QUESTIONS:
        right = draw.random() < question["ease"] + skill
        letter = "ABCD"[(question["answer"] + (0 if right else draw.randrange(1, 4))) % 4]
        said[question["question"]] = f"ANSWER: {letter}"

    def answer(messages, *_):
        text = next(text for asked, text in said.items() if asked in messages[-1].text)
        return ModelOutput.from_content("mockllm/model", text)

    samples = [
        Sample(
            id=question["id"],
            input=question["question"],
            choices=["one", "two", "three", "four"],
            target="ABCD"[question["answer"]],
            metadata={key: question[key] for key in ("subject", "passage")},
        )
        for question in QUESTIONS
    ]
    task = inspect_ai.Task(
        name="quiz", dataset=MemoryDataset(samples, name="quiz"), solver=multiple_choice(), scorer=choice()
    )
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = inspect_ai.eval(
        task, model=model, log_dir="logs", log_format="eval", display="none", log_realtime=False
    )
    log = read_eval_log(log.location)
    for sample in log.samples:
        sample.events, sample.events_data = [], None  # verax does not need them, and the file is small
    write_eval_log(log, f"{name}.eval")


def harness_log(name: str) -> None:
    """A sample log of lm-evaluation-harness, whose dummy model draws log-likelihoods at random."""
    folder = Path("task")
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(question) + "\n" for question in QUESTIONS)
    (folder / "quiz.jsonl").write_text(lines)
    (folder / "quiz.yaml").write_text(
        "task: quiz\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: task/quiz.jsonl\n"
        "test_split: test\noutput_type: multiple_choice\ndoc_to_text: '{{question}}'\n"
        "doc_to_choice: ['one', 'two', 'three', 'four']\ndoc_to_target: answer\n"
        "metric_list:\n  - metric: acc\n"
    )
    command = ["lm_eval", "run", "--model", "dummy", "--tasks", "quiz", "--include_path", "task"]
    command += ["--log_samples", "--output_path", "harness"]
    subprocess.run([str(Path(sys.executable).with_name("lm_eval")), *command[1:]], check=True)
    (log,) = Path("harness").rglob("samples_quiz_*.jsonl")
    log.rename(f"{name}.jsonl")


if __name__ == "__main__":
    inspect_log("new", 0.25, 2)
    inspect_log("old", 0.0, 1)
    harness_log("samples_quiz")
