"""Models that answered different questions: coverage of joint estimates, and of mean grades."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, roots_hermitenorm

import verax as vx
from covers.claims import Measure, claim, share_of

# How much better model b is than model a, and c than b, in the chance of a right answer.
_STEP = 0.05


def joint(n: int, share: float, groups: int = 0, *, difference: bool = True) -> Measure:
    """Three models, each asked a random share of n questions; model a more often where they are easy.

    With `groups`, questions of a group are alike in which model does well. The truth is the mean over
    questions and draws of answers.
    """

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            ease = rng.uniform(0.2, 0.8, n)
            group = np.arange(n) % groups if groups else np.arange(n)
            own = 0.15 * rng.normal(size=(groups, 3)).clip(-1, 1)[group] if groups else np.zeros((n, 3))
            chance = (ease[:, None] + _STEP * np.arange(3) + own).clip(0, 1)
            asked = rng.random((n, 3)) < np.column_stack([share * (0.5 + ease), np.full((n, 2), share)])
            right = (rng.random((n, 3)) < chance).astype(float)
            ids = {name: np.flatnonzero(asked[:, j]) for j, name in enumerate("abc")}
            grades = {name: right[ids[name], j] for j, name in enumerate("abc")}
            labels = {name: group[known] for name, known in ids.items()} if groups else None
            found = vx.compare_grades(grades, ids=ids, groups=labels, missing="joint")
            if difference:
                low, high = found.difference("a", "c").interval
                hits.append(low <= -2 * _STEP <= high)
            else:
                low, high = next(m.interval for m in found.models["grade"] if m.name == "c")
                hits.append(low <= 0.5 + 2 * _STEP <= high)
        return share_of(hits)

    return measure


Asked = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def hard_set(ease: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two models are asked everything, the third mostly hard questions."""
    third = rng.random(len(ease)) < expit(-2 * ease - 1)
    return np.column_stack([np.ones((len(ease), 2), bool), third])


def hardest(ease: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """The first is asked the harder 80 %, the second everything, the third the hardest 40 %."""
    rank = np.argsort(np.argsort(ease)) / len(ease)
    return np.column_stack([rank < 0.8, np.ones(len(ease), bool), rank < 0.4])


def opposite(ease: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The second is asked easy questions, the third hard ones, the first the rest and half of these."""
    drawn = rng.random((len(ease), 3))
    second, third = drawn[:, 1] < expit(1.5 * ease), drawn[:, 2] < expit(-1.5 * ease)
    return np.column_stack([(drawn[:, 0] < 0.5) | ~(second | third), second, third])


def half(ease: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each is asked half of the questions at random; what nobody was asked goes to the first."""
    asked = rng.random((len(ease), 3)) < 0.5
    asked[:, 0] |= ~asked.any(axis=1)
    return asked


def logistic(n: int, spread: float, asked: Asked, *, difference: bool, rubric: bool = False) -> Measure:
    """Three models whose logit of a right answer is ability plus ease, which is normal.

    The abilities are 0, 0.5 and 2. Who is asked depends on ease. With `rubric`, grades are beta distributed
    about the same means. The truth is the mean over questions and draws of answers.
    """
    ability = np.array([0.0, 0.5, 2.0])
    nodes, weights = roots_hermitenorm(60)
    truth = weights @ expit(ability + spread * nodes[:, None]) / weights.sum()

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            ease = spread * rng.normal(size=n)
            known, chance = asked(ease, rng), expit(ability + ease[:, None])
            given = rng.beta(8 * chance, 8 * (1 - chance)) if rubric else rng.random((n, 3)) < chance
            ids = {name: np.flatnonzero(known[:, j]) for j, name in enumerate("abc")}
            grades = {name: given[ids[name], j].astype(float) for j, name in enumerate("abc")}
            found = vx.compare_grades(grades, ids=ids, missing="joint")
            if difference:
                low, high = found.difference("a", "c").interval
                hits.append(low <= truth[0] - truth[2] <= high)
            else:
                low, high = next(m.interval for m in found.models["grade"] if m.name == "c")
                hits.append(low <= truth[2] <= high)
        return share_of(hits)

    return measure


def repeats(n: int, once: int, often: int) -> Measure:
    """The difference of two models on n questions, asked a different number of times; b is better by 0.05.

    The models differ from question to question beside that. The truth is the mean over questions and draws.
    """

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            ease, own = rng.uniform(0.25, 0.7, n), rng.uniform(-0.15, 0.15, (2, n))
            ids, grades, epochs = {}, {}, {}
            for name, times, chance in (("a", once, ease + own[0]), ("b", often, ease + _STEP + own[1])):
                ids[name], epochs[name] = np.repeat(np.arange(n), times), np.tile(np.arange(times), n)
                grades[name] = (rng.random(n * times) < chance[ids[name]]).astype(float)
            low, high = vx.compare_grades(grades, ids=ids, epochs=epochs).difference("a", "b").interval
            hits.append(low <= -_STEP <= high)
        return share_of(hits)

    return measure


def skill_of_guesses(n: int) -> Measure:
    """How often lists that know nothing of their questions are better than guessing among the choices.

    Questions have 2 to 5 choices. The lists name all choices of a question with random probabilities.
    """

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            sizes = rng.integers(2, 6, n)
            ends = np.cumsum(sizes)
            weights = np.exp(0.2 * rng.normal(size=ends[-1]))
            p = weights / np.repeat(np.add.reduceat(weights, ends - sizes), sizes)
            places = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
            lists = vx.TopLists(places, p, np.r_[0, ends], 5, choices=sizes)
            y = (rng.random(n) * sizes).astype(int)
            found = vx.compare(y, {"model": lists}, rule="brier", reference="uniform")
            hits.append(found.models["brier"][0].skill_interval.low > 0)
        return share_of(hits)

    return measure


def accuracy(n: int, chance: float) -> Measure:
    """The mean grade of n independent answers."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        rng = np.random.default_rng(seed)
        found = (vx.evaluate_grades(rng.random(n) < chance).interval for _ in range(replications))
        return share_of([low <= chance <= high for low, high in found])

    return measure


def claims_of_questions() -> None:
    """Differences and means of joint estimates, and mean grades."""
    for n, share in ((60, 0.5), (200, 0.5), (200, 0.2), (1000, 0.2)):
        # Of 200 questions with a fifth asked, two models share eight.
        least = 0.93 if n * share**2 > 10 else 0.91
        claim(f"questions: joint difference, {n} questions, {share:g} asked", least, 0.97, joint(n, share))
    claim("questions: joint mean, 200 questions, 0.5 asked", 0.93, 0.97, joint(200, 0.5, difference=False))
    designs: list[tuple[str, int, float, Asked]] = [
        ("hard set", 300, 2.0, hard_set),
        ("hard set", 1000, 2.0, hard_set),
        ("hardest 40 %", 400, 2.0, hardest),
        ("opposite sets", 200, 1.5, opposite),
        ("random halves", 200, 1.5, half),
    ]
    for name, n, spread, asked in designs:
        for difference in (False, True):
            what = f"questions: joint {'difference' if difference else 'mean'}, logistic, {name} of {n}"
            claim(what, 0.91, 0.98, logistic(n, spread, asked, difference=difference))
    rubric = logistic(200, 1.5, hard_set, difference=True, rubric=True)
    claim("questions: joint difference, logistic, rubric, hard set of 200", 0.91, 0.98, rubric)
    for n, once, often in ((60, 1, 4), (200, 2, 5)):
        name = f"questions: difference, {n} questions asked {once} and {often} times"
        claim(name, 0.92, 0.97, repeats(n, once, often))
    claim("questions: skill of guesses, 200 questions with 2 to 5 choices", 0, 0.05, skill_of_guesses(200))
    for groups in (20, 50):
        name = f"questions: joint difference, {groups} groups of 10 questions, 0.5 asked"
        claim(name, 0.92, 0.97, joint(10 * groups, 0.5, groups))
    for n, chance in ((30, 0.97), (100, 0.6)):
        claim(f"questions: mean grade, {n} answers, {chance:g} right", 0.92, 0.98, accuracy(n, chance), 4000)


claims_of_questions()
