"""Comparisons over folds of cross-validation and over data sets."""

from __future__ import annotations

from functools import cache

import numpy as np

import verax as vx
from covers.claims import claim, share_of

# ---- folds ---------------------------------------------------------------------------------------


def _probabilities(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Forecasts of linear discriminant analysis: logistic in the features, fitted in closed form."""
    means = np.array([x[y == k].mean(axis=0) for k in (0, 1)])
    spread = np.cov((x - means[y]).T) + 1e-3 * np.eye(x.shape[1])
    slope = np.linalg.solve(spread, means[1] - means[0])
    offset = -means.mean(axis=0) @ slope + np.log(y.mean() / (1 - y.mean()))
    return 1 / (1 + np.exp(-(test @ slope + offset)))


@cache
def folds(n: int, k: int, repeats: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples the difference of two methods that are equally good is not covered.

    Both fit the same model, one to the first half of the features, one to the second half. The features of
    both halves tell as much, so the expected losses of both methods are equal.
    """
    found: dict[str, list[bool]] = {"method": [], "rows": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        y = rng.integers(0, 2, n)
        x = rng.normal(size=(n, 8)) + 0.5 * y[:, None]
        forecasts: dict[str, list[np.ndarray]] = {"a": [], "b": []}
        labels, rows = [], []
        for r in range(repeats):
            fold = rng.permutation(n) % k
            for f in range(k):
                test = np.flatnonzero(fold == f)
                train = np.flatnonzero(fold != f)
                for name, half in (("a", slice(0, 4)), ("b", slice(4, 8))):
                    forecasts[name].append(_probabilities(x[train, half], y[train], x[test, half]))
                labels += [r * k + f] * len(test)
                rows += test.tolist()
        models = {name: np.concatenate(own) for name, own in forecasts.items()}
        compared = vx.compare_folds(y[rows], models, folds=labels, ids=rows, rule="brier")
        assert compared.rows is not None
        for name, own in (("method", compared), ("rows", compared.rows)):
            low, high = own.difference("a", "b").interval
            found[name].append(not low <= 0 <= high)
    return found


def claims_of_folds() -> None:
    """Size of the corrected t test, for the claim that the methods differ."""
    for n, k, repeats in ((100, 5, 1), (100, 10, 1), (300, 10, 1), (100, 5, 5)):

        def measure(
            replications: int, seed: int, own: tuple[int, int, int] = (n, k, repeats)
        ) -> tuple[float, float]:
            return share_of(folds(*own, replications, seed)["method"])

        def of_rows(
            replications: int, seed: int, own: tuple[int, int, int] = (n, k, repeats)
        ) -> tuple[float, float]:
            return share_of(folds(*own, replications, seed)["rows"])

        label = f"{n} rows, {repeats} x {k} folds"
        claim(f"folds: size, corrected t, {label}", 0.0, 0.065, measure, 400)
        # The test of rows is not about methods; how often it would be wrong about them.
        claim(f"folds: methods told apart by rows, {label}", 0.0, 1.0, of_rows, 400)


claims_of_folds()


# ---- data sets -----------------------------------------------------------------------------------


def _scores(n: int, effects: tuple[float, ...], rng: np.random.Generator) -> np.ndarray:
    """Scores of models on n data sets: some data sets are harder, and models differ by effects and chance."""
    spread = rng.gamma(2.0, 0.5, (n, 1))
    return rng.normal(size=(n, 1)) + np.array(effects) + spread * rng.normal(size=(n, len(effects)))


@cache
def expected_ranks(effects: tuple[float, ...]) -> np.ndarray:
    """The expected rank of each model."""
    scores = _scores(200_000, effects, np.random.default_rng(1))
    return np.asarray((scores[:, None, :] < scores[:, :, None]).sum(axis=2).mean(axis=0) + 1)


@cache
def datasets(n: int, effects: tuple[float, ...], replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples of data sets ranks and differences are covered, and tests reject."""
    truth = expected_ranks(effects)
    found: dict[str, list[bool]] = {"mean rank": [], "best rank": [], "difference": [], "friedman": []}
    found["signed ranks"] = []
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        compared = vx.compare_datasets(_scores(n, effects, rng), draws=100, better="lower")
        for model in compared.models:
            covered = model.interval.low <= truth[int(model.name)] <= model.interval.high
            found["mean rank"].append(covered)
            if model.name == "0":
                found["best rank"].append(covered)
        gap = compared.difference("0", "1")
        found["difference"].append(gap.interval.low <= effects[0] - effects[1] <= gap.interval.high)
        found["signed ranks"].append(gap.p_value <= 0.05)
        found["friedman"].append(compared.friedman.p_value <= 0.05)
    return found


def claims_of_datasets() -> None:
    """Coverage of mean ranks and typical differences; sizes of the tests."""
    equal, apart, far = (0.0,) * 4, (0.0, 0.0, 0.5, 1.0, 2.0), (0.0, 2.0, 2.0, 2.5)
    wanted = {"mean rank": (0.92, 0.985), "difference": (0.94, 0.985), "best rank": (0.92, 1.0)}
    wanted |= {"signed ranks": (0.02, 0.06), "friedman": (0.03, 0.07)}
    for n in (6, 12, 30):
        for effects, label, names in (
            (equal, "equal models", ("mean rank", "difference", "signed ranks", "friedman")),
            (apart, "models apart", ("mean rank", "difference")),
            (far, "one far ahead", ("best rank",)),
        ):
            for name in names:

                def measure(
                    replications: int,
                    seed: int,
                    own: tuple[int, tuple[float, ...]] = (n, effects),
                    name: str = name,
                ) -> tuple[float, float]:
                    return share_of(datasets(*own, replications, seed)[name])

                claim(f"data sets: {name}, {n} data sets, {label}", *wanted[name], measure, 1000)


claims_of_datasets()
