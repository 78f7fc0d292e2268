"""
How do I score predictions spread over many machines?
=====================================================

Each machine sums its own rows in a ``Tally`` and sends it as bytes. Its size depends on the number
of patients, not of rows. Tallies can be added in any order. The scorecard of the sum is the
scorecard of all rows, confidence intervals included, even if rows of one patient are on several
machines.

Here every day of a week has its own machine. The data are generated, and on Friday something went
wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

import verax as vx

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


def predictions(day):
    """Outcomes, forecasts and patients of a day."""
    rng = np.random.default_rng(day)
    truth = rng.dirichlet([1, 1, 1], 2000)
    y = (rng.random((2000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    noise = 0.8 if DAYS[day] == "Fri" else 0.2
    p = (1 - noise) * truth + noise * rng.dirichlet([1, 1, 1], 2000)
    return y, p, rng.integers(0, 300, 2000)


sent = []
for day in range(7):  # on seven machines
    y, p, patients = predictions(day)
    sent.append(vx.Tally.of(y, p, groups=patients, rules=["brier", "log_score"]).to_bytes())
print("bytes sent:", [len(part) for part in sent])

tallies = [vx.Tally.from_bytes(part) for part in sent]
week = sum(tallies).card()
print(week)

# %%
# These are the numbers of all rows at once, which were never in one place.

y, p, patients = (np.concatenate(parts) for parts in zip(*map(predictions, range(7)), strict=True))
whole = vx.evaluate(y, p, groups=patients, rules=["brier", "log_score"])
assert abs(whole["brier"] - week["brier"]) < 1e-12
assert np.allclose(whole.scores["brier"].interval, week.scores["brier"].interval)

# %%
# The tallies of the parts show what happened when.

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for day, tally in zip(DAYS, tallies, strict=True):
    score = tally.card().scores["brier"]
    ax.plot([day, day], score.interval, color="#0072B2", linewidth=2)
    ax.plot(day, score.mean, "o", color="#0072B2")
ax.axhspan(*week.scores["brier"].interval, color="grey", alpha=0.3, linewidth=0, label="the week")
ax.set(ylabel="Brier score (lower is better)")
ax.legend(frameon=False)
