"""Label sets as classes: networks and people scored as top lists on electrocardiograms.

`python studies/label_sets.py FOLDER` prints the tables of label_sets.md; FOLDER holds the data sets.
"""

from __future__ import annotations

import numpy as np

import verax as vx
from recording import Data, run

RULES = {"brier": vx.brier, "log_score": vx.log_score, "spherical": vx.spherical, "pbs": vx.pbs}


def table(header: list[str], rows: list[list[str]]) -> None:
    print(f"| {' | '.join(header)} |")
    print(f"|---|{'---:|' * (len(header) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print()


def scores(y: object, lists: vx.TopLists) -> list[str]:
    card = vx.evaluate(y, lists)
    return [f"{card[name]:.4f}" for name in RULES] + [f"{card.accuracy:.4f}", f"{card.coverage:.4f}"]


def difference(a: np.ndarray, b: np.ndarray) -> str:
    """The mean of paired differences with a 95 percent interval."""
    d = a - b
    half = 1.96 * d.std(ddof=1) / np.sqrt(len(d))
    return f"{d.mean():+.4f} ({d.mean() - half:+.4f} to {d.mean() + half:+.4f})"


def ecg_6(data: Data) -> None:
    z = np.load(data.file("multilabel-ecg-6/ecg6.npz"))
    y, names = z["labels"], [str(name) for name in z["model_names"]]
    labels = [str(name) for name in z["label_names"]]
    networks = {
        name: vx.TopLists.from_label_probabilities(q.astype(float), 2 ** len(labels), labels=labels)
        for name, q in zip(names, z["probs"], strict=True)
    }
    networks["all 14 combined"] = vx.combine(list(networks.values()))
    print(f"### Six findings, 64 label sets, {len(y)} exams\n")
    header = ["network, full distribution", *RULES, "set accuracy", "coverage"]
    order = sorted(networks, key=lambda name: vx.brier(y, networks[name]))
    table(header, [[name, *scores(y, networks[name])] for name in order])
    raters = {key.removeprefix("rater_"): z[key] for key in z.files if key.startswith("rater_")}
    rows, losses = [], {}
    for name, sets in raters.items():
        hard, honest = rater_lists(y, sets, labels)
        rows.append([f"{name}, hard", *scores(y, hard)])
        rows.append([f"{name}, with its hit rate as confidence", *scores(y, honest)])
        losses[name] = vx.brier.samples(y, honest)
    best = order[0] if order[0] != "all 14 combined" else order[1]
    rows += [[f"network {best}, top-{k}", *scores(y, networks[best].truncate(k))] for k in (1, 2, 3, 5)]
    table(["rater", *RULES, "set accuracy", "coverage"], rows)
    print(f"Paired differences in Brier, rater with confidence minus network `{best}` (full distribution):\n")
    network = vx.brier.samples(y, networks[best])
    table(
        ["rater", "difference (95 %)"], [[name, difference(loss, network)] for name, loss in losses.items()]
    )
    print(f"Paired differences in Brier from network `{best}`:\n")
    others = [name for name in order if name != best]
    table(
        ["network", "difference (95 %)"],
        [[name, difference(vx.brier.samples(y, networks[name]), network)] for name in others],
    )
    q = z["probs"][names.index("model")]
    accuracy = [f"{t}: {((q > t) == y).all(axis=1).mean():.4f}" for t in (0.5, 0.4, 0.3, 0.2, 0.1)]
    print(f"Set accuracy of `model` by the threshold that makes a finding: {', '.join(accuracy)}.\n")


def rater_lists(y: np.ndarray, sets: np.ndarray, labels: list[str]) -> tuple[vx.TopLists, vx.TopLists]:
    """A rater's sets with certainty, and with the rater's hit rate on all other exams."""
    hits = (sets == y).all(axis=1)
    rate = (hits.sum() - hits) / (len(hits) - 1)
    chosen = [[{labels[i] for i in np.flatnonzero(row)}] for row in sets]
    hard = vx.TopLists.from_label_sets(chosen, labels=labels)
    return hard, vx.TopLists.from_label_sets(chosen, [[r] for r in rate], labels=labels)


def ptbxl(data: Data) -> None:
    train, test = (np.load(data.file(f"multilabel-ptbxl-71/ptbxl_{part}.npz")) for part in ("val", "test"))
    y, labels = test["labels"], [str(name) for name in test["label_names"]]

    def network(z: np.lib.npyio.NpzFile, k: int) -> vx.TopLists:
        return vx.TopLists.from_label_probabilities(z["probs_xresnet1d101"].astype(float), k, labels=labels)

    def prior(z: np.lib.npyio.NpzFile, k: int) -> vx.TopLists:
        q = np.repeat(z["probs_naive"].astype(float)[None], len(z["labels"]), axis=0)
        return vx.TopLists.from_label_probabilities(q, k, labels=labels)

    def frequent(z: np.lib.npyio.NpzFile, k: int) -> vx.TopLists:
        """The k most frequent sets of the validation fold, with their frequencies."""
        sets, counts = np.unique(train["labels"], axis=0, return_counts=True)
        top = np.argsort(-counts, kind="stable")[:k]
        chosen = [{labels[i] for i in np.flatnonzero(sets[j])} for j in top]
        share = (counts[top] / counts.sum()).tolist()
        n = len(z["labels"])
        return vx.TopLists.from_label_sets([chosen] * n, [share] * n, labels=labels)

    def mixture(z: np.lib.npyio.NpzFile, k: int, weight: float) -> vx.TopLists:
        return vx.combine([network(z, k), frequent(z, k)], weights=[1 - weight, weight])

    grid = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3]
    # The frequencies come from the same fold, so the weight is if anything too large.
    weight = min(grid, key=lambda w: vx.brier(train["labels"], mixture(train, 50, w)))
    print(f"### 71 statements, 2^71 label sets, {len(y)} records\n")
    rows = [[f"xresnet1d101, top-{k}", *scores(y, network(test, k))] for k in (1, 2, 5, 10, 50)]
    for k in (1, 50):
        rows.append([f"independent priors, top-{k}", *scores(y, prior(test, k))])
        rows.append([f"frequencies of whole sets, top-{k}", *scores(y, frequent(test, k))])
    mixed = mixture(test, 50, weight)
    rows.append([f"network and frequencies, {1 - weight:.2f} : {weight:.2f}", *scores(y, mixed)])
    hard = vx.TopLists.from_label_sets([[s] for row in network(test, 1) for s in row], labels=labels)
    rows.append(["xresnet1d101, hard", *scores(y, hard)])
    table(["prediction", *RULES, "set accuracy", "coverage"], rows)
    full = network(test, 50)
    likelihood = np.where(y, test["probs_xresnet1d101"], 1 - test["probs_xresnet1d101"].astype(float))
    exact = -np.log(np.maximum(likelihood, 1e-300)).sum(axis=1)
    print(
        f"Log score of the whole product distribution of the network: {exact.mean():.4f}; of its top-50\n"
        f"list: {vx.log_score(y, full):.4f}. Lists of 50 hold {1 - full.unaccounted.mean():.3f} of the "
        "probability on average.\n"
    )
    difference_of = [vx.brier.samples(y, each) for each in (mixed, full)]
    print(f"Brier, network and frequencies minus network: {difference(*difference_of)}.")


if __name__ == "__main__":
    run(__file__, {"six-findings": ecg_6, "statements": ptbxl})
