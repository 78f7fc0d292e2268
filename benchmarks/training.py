"""What a call of a loss or a metric costs in a training loop, beside cross entropy, accuracy and Keras's own.

    python benchmarks/training.py [backend of Keras]
    python benchmarks/training.py classes [threads]

Small batches on a CPU show the fixed cost of a call, many classes that of a number (`classes`, with the least
times, which a busy machine changes less). All rows are of one run, and the calls of a
table take turns, so that a busy machine slows all of them alike. Medians, in microseconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = sys.argv[1] if sys.argv[1:2] not in ([], ["classes"]) else "torch"

import keras
import numpy as np
import torch
import torchmetrics

from machine import describe
from verax._settings import changed
from verax.adapters import keras as adapter
from verax.adapters.torch import Card, Loss, Score
from verax.adapters.training import is_differentiable

Call = Callable[[], object]
CLASSES = sys.argv[1:2] == ["classes"]
# After this many calls loops are compiled.
SETTLED = 1100


def in_turns(
    calls: dict[str, Call], rounds: int, warmup: int, pick: Callable[[list[float]], Any] = np.median
) -> dict[str, float]:
    """The median time of each call, or another that is picked."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(warmup + rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if round_ >= warmup:
                times[name].append(time.perf_counter() - start)
    return {name: 1e6 * float(pick(own)) for name, own in times.items()}


def show(title: str, found: dict[str, float]) -> None:
    print(title)
    first = next(iter(found.values()))
    for name, value in found.items():
        print(f"  {name:<40}{value:9.0f}{value / first:8.2f} x")


def losses(n: int, k: int) -> None:
    z, y = torch.randn(n, k, requires_grad=True), torch.randint(0, k, (n,))
    soft = torch.softmax(torch.randn(n, k), dim=1)

    def step(loss: Callable[[Any, Any], Any], target: torch.Tensor) -> Call:
        def run() -> None:
            z.grad = None
            loss(z, target).backward()

        return run

    ce = torch.nn.CrossEntropyLoss
    calls = {"cross entropy": step(ce(), y)}
    calls |= {f"Loss({rule!r})": step(Loss(rule), y) for rule in ("log_score", "brier", "rps", "ranked_log")}
    calls |= {
        "cross entropy, soft targets": step(ce(), soft),
        "Loss('rps'), soft targets": step(Loss("rps"), soft),
    }
    calls |= {"cross entropy, smoothing": step(ce(label_smoothing=0.1), y)}
    calls |= {"Loss('rps'), smoothing": step(Loss("rps", label_smoothing=0.1), y)}
    emd = dlordinal_emd(k)
    if emd is not None:
        calls["EMDLoss of dlordinal"] = step(emd, y)
    show(f"loss and gradient of {n} x {k} logits, first calls", in_turns(calls, 150, 20))
    show(f"loss and gradient of {n} x {k} logits, in a loop", in_turns(calls, 400, SETTLED))


def many_classes() -> None:
    """Losses of all rules by compiled loops, of few and of many classes."""
    from verax.rules import RULES

    names = [name for name, rule in RULES.items() if is_differentiable(rule)]
    for n, k in ((64, 5), (256, 100), (64, 1000), (4096, 100)):
        z, y = torch.randn(n, k, requires_grad=True), torch.randint(0, k, (n,))

        def run(loss: Callable[[Any, Any], Any], z: Any = z, y: Any = y) -> None:
            z.grad = None
            loss(z, y).backward()

        losses = {"cross entropy": torch.nn.CrossEntropyLoss()} | {name: Loss(name) for name in names}
        calls: dict[str, Call] = {name: (lambda loss=loss: run(loss)) for name, loss in losses.items()}
        with changed(loss_compiled_after=0):
            found = in_turns(calls, 300 if n * k < 10**5 else 50, 10, min)
        show(f"loss and gradient of {n} x {k} logits, {torch.get_num_threads()} threads", found)


def dlordinal_emd(k: int) -> Callable[[Any, Any], Any] | None:
    """The earth mover's distance of dlordinal, where it is installed."""
    try:
        from dlordinal.losses import EMDLoss
    except ImportError:
        print("dlordinal is not installed: its EMDLoss is left out")
        return None
    loss: Callable[[Any, Any], Any] = EMDLoss(num_classes=k)
    return loss


def metrics(n: int, k: int) -> None:
    p, y = torch.softmax(torch.randn(n, k), dim=1), torch.randint(0, k, (n,))
    accuracy = torchmetrics.classification.MulticlassAccuracy(k)
    peers = {"MulticlassAccuracy of torchmetrics": accuracy, "Score('rps')": Score("rps")}
    peers |= {"Card, unordered": Card(k), "Card, ordered": Card(k, ordered=True)}
    calls = {name: (lambda metric=metric: metric.update(p, y)) for name, metric in peers.items()}
    show(f"update with {n} x {k} probabilities", in_turns(calls, 300, 50))


def steps(n: int, k: int) -> None:
    x, y = np.random.default_rng(0).normal(size=(n, 8)).astype("float32"), np.arange(n) % k

    def model(loss: Any, metrics: list[Any]) -> Call:
        network = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(k)])
        network.compile("sgd", loss=loss, metrics=metrics)
        return lambda: network.train_on_batch(x, y)

    own = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    crossentropy = keras.metrics.SparseCategoricalCrossentropy(from_logits=True)
    ours = adapter.Loss("rps", from_logits=True)
    calls = {
        "cross entropy": model(own, []),
        "Loss('rps')": model(ours, []),
        "cross entropy, as loss and metric": model(own, [crossentropy]),
        "Loss('rps') and Score('rps')": model(ours, [adapter.Score("rps", from_logits=True)]),
    }
    show(f"step of Keras on {keras.backend.backend()}, {n} x {k}", in_turns(calls, 300, SETTLED))


def main() -> None:
    torch.set_num_threads(int(sys.argv[2]) if CLASSES and len(sys.argv) > 2 else 1)
    torch.manual_seed(0)
    print(describe())
    if CLASSES:
        many_classes()
        return
    losses(128, 5)
    metrics(64, 5)
    steps(128, 5)


if __name__ == "__main__":
    main()
