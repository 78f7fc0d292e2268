"""How many classes must be listed: CIFAR-100 networks cut to top lists of every length.

`python studies/list_lengths.py FOLDER` prints the tables of list_lengths.md; FOLDER holds the data sets.
"""

from __future__ import annotations

import numpy as np

import verax as vx
from recording import Data, run

SHOWN = (1, 2, 3, 5, 10, 20, 50)


def lengths(data: Data) -> None:
    for name in ("vgg19_bn", "resnet-20"):
        z = np.load(data.file(f"cifar100/cifar100_{name}.npz"))
        y, logits = z["labels"], z["logits"].astype(np.float64)
        comparison = vx.compare_lengths(y, logits, logits=True, k=range(1, 100))
        full = vx.TopLists.from_probabilities(logits, 100, logits=True)
        names = list(comparison.means)
        print(f"### {name}, {len(y):,} images, 100 classes\n")
        print(f"| prediction | {' | '.join(names)} | coverage | unaccounted |")
        print(f"|---|{'---:|' * (len(names) + 2)}")
        for i, prediction in enumerate(comparison.predictions):
            k = int(prediction.removeprefix("top-")) if prediction.startswith("top-") else None
            if k is not None and k not in SHOWN:
                continue
            losses = " | ".join(f"{comparison[rule][i]:.4f}" for rule in names)
            length = {"hard": 1, "full": 100}.get(prediction, k)
            lists = full.truncate(length)
            covered = 1 - vx.top_k_error(y, lists, length)
            left = 0.0 if prediction == "hard" else lists.unaccounted.mean()
            print(f"| {prediction} | {losses} | {covered:.4f} | {left:.4f} |")
        print("\n| | " + " | ".join(names) + " |")
        print(f"|---|{'---:|' * len(names)}")
        for share in (0.05, 0.01, 0.001):
            near = " | ".join(str(comparison.length_within(rule, share)) for rule in names)
            print(f"| classes to list for {100 * share:g} % | {near} |")
        print()
        for text in comparison.words():
            print(f"- {text}")
        print()


if __name__ == "__main__":
    run(__file__, {"lengths": lengths})
