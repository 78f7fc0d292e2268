"""
My test set is not representative: what do weights do?
======================================================

To include enough cases of a rare disease, half of a test set was sampled from the ill, who are one
in twenty in the population. Scores of such a set are not those of the population. Weights correct
this: the ill count 0.1, the healthy 1.9, their share in the population divided by that in the test
set.

The data are generated, so the population values are known.
"""

import matplotlib.pyplot as plt
import numpy as np

import verax as vx

rng = np.random.default_rng(0)


def people(n):
    """Whether they are ill, and the risk that a model states for them."""
    marker = rng.normal(size=n)
    risk = 1 / (1 + np.exp(4.1 - 1.8 * marker))
    return (rng.random(n) < risk).astype(int), risk


world_y, world_p = people(400_000)
rate = world_y.mean()
ill, healthy = np.flatnonzero(world_y == 1), np.flatnonzero(world_y == 0)
chosen = np.concatenate([rng.choice(ill, 500, replace=False), rng.choice(healthy, 500, replace=False)])
y, p = world_y[chosen], world_p[chosen]
weights = np.where(y == 1, rate / 0.5, (1 - rate) / 0.5)

cards = {
    "population": vx.evaluate(world_y, world_p, rules=["brier", "log_score"]),
    "test set, weighted": vx.evaluate(y, p, rules=["brier", "log_score"], weights=weights),
    "test set, as it is": vx.evaluate(y, p, rules=["brier", "log_score"]),
}
print(f"ill in the population: {rate:.3f}")
print(
    f"1,000 rows of unequal weight are worth {cards['test set, weighted'].effective_rows:.0f} of equal weight"
)

# %%
# The weighted scores agree with those of the population, within their confidence intervals. Without
# weights the model looks far worse.

figure, axes = plt.subplots(1, 2, figsize=(7, 2.4), sharey=True, layout="constrained")
for ax, rule in zip(axes, ("brier", "log_score"), strict=True):
    for place, card in enumerate(cards.values()):
        score = card.scores[rule]
        ax.plot(score.interval, [place, place], color="#0072B2", linewidth=2)
        ax.plot(score.mean, place, "o", color="#0072B2")
    ax.axvline(cards["population"][rule], color="grey", linestyle="--", linewidth=0.8)
    ax.set_yticks(range(3), list(cards))
    ax.set(xlabel=f"{rule} (lower is better)", ylim=(2.5, -0.5), xlim=(0, None))
