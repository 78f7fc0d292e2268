"""Scores on real predictions, against values computed independently (in each data set's README)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from cases import card_of_file
from realdata import load
from verax import files


def check(card, **expected):
    for name, value in expected.items():
        got = card.accuracy if name == "accuracy" else card[name]
        assert got == pytest.approx(value, abs=0.6e-4), name


def test_retinopathy_grades():
    z = load("dr-aptos", "dr_aptos5.npz")
    card = vx.evaluate(z["labels"], z["probs"], ordered=True)
    check(card, accuracy=0.8373, log_score=0.4840, brier=0.2380, rps=0.0406)
    assert card.class_counts.tolist() == [542, 111, 300, 58, 89]


def test_cifar_10():
    z = load("cifar10-vgg16", "cifar10_vgg16.npz")
    card = vx.evaluate(z["labels"], z["probs"], ordered=True)
    check(card, accuracy=0.9359, log_score=0.2571, brier=0.1054, rps=0.0201)


@pytest.mark.parametrize(
    ("file", "accuracy", "brier", "log_score"),
    [("cifar100_vgg19_bn.npz", 0.7387, 0.4449, 1.8048), ("cifar100_resnet-20.npz", 0.6883, 0.4453, 1.2253)],
)
def test_cifar_100_logits(file, accuracy, brier, log_score):
    z = load("cifar100", file)
    check(
        vx.evaluate(z["labels"], z["logits"], logits=True),
        accuracy=accuracy,
        brier=brier,
        log_score=log_score,
    )


def test_rows_that_sum_to_1_00002():
    z = load("label-errors", "imdb.npz")
    p, y = z["probs"], z["labels"]
    check(vx.evaluate(y, p, ordered=True), accuracy=0.8958, log_score=0.3006, brier=0.1590, rps=0.0795)
    with pytest.raises(vx.InputError, match=r"sum to 1\.0000"):
        vx.evaluate(y, p.astype(np.float64))


def test_human_labels_with_zero_probabilities():
    z = load("cifar10h-human", "cifar10h.npz")
    card = vx.evaluate(z["labels"], z["counts"], normalize=True, ordered=True)
    check(card, accuracy=0.9921, brier=0.0203, rps=0.0036)
    assert (card["log_score"] == np.inf) == (card.n_zero_probability > 0)


def test_bookmakers():
    frame = pd.read_parquet(load("football-odds", "odds_6bookmakers.parquet"))
    p = 1 / frame[["B365H", "B365D", "B365A"]].to_numpy(float)
    card = vx.evaluate(frame["FTR"], p, normalize=True, ordered=True, classes=["H", "D", "A"])
    check(card, accuracy=0.4949, log_score=1.0137, brier=0.6075, rps=0.2069)


def test_label_sets_of_electrocardiograms():
    z = load("multilabel-ecg-6", "ecg6.npz")
    lists = vx.TopLists.from_label_probabilities(z["probs"][0].astype(float), 64)
    card = vx.evaluate(z["labels"], lists)
    assert card.accuracy == pytest.approx(0.9347, abs=0.6e-4)
    # Every set is listed, so the log score is the sum of the six labels' (0.02706 a label in the README).
    q = np.clip(z["probs"][0].astype(float), 0, 1)
    exact = -np.log(np.where(z["labels"], q, 1 - q)).sum(axis=1).mean()
    assert card["log_score"] == pytest.approx(exact, rel=1e-9)
    assert card["log_score"] == pytest.approx(6 * 0.02706, abs=1e-4)
    rater = [[set(np.flatnonzero(row))] for row in z["rater_cardiologist2"]]
    assert vx.brier(z["labels"], vx.TopLists.from_label_sets(rater, labels=6)) == pytest.approx(
        2 * (1 - 0.9807), abs=1.2e-4
    )


def test_label_sets_out_of_2_to_the_71():
    z = load("multilabel-ptbxl-71", "ptbxl_test.npz")
    lists = vx.TopLists.from_label_probabilities(z["probs_xresnet1d101"].astype(float), 50)
    card = vx.evaluate(z["labels"], lists)
    assert card.n_classes == 2**71
    assert card.accuracy == pytest.approx(0.3736, abs=0.6e-4)


def test_cifar_100_as_lists():
    z = load("cifar100", "cifar100_resnet-20.npz")
    comparison = vx.compare_lengths(
        z["labels"], z["logits"], logits=True, k=[*range(1, 6), 99], rule=["brier"]
    )
    assert comparison["brier"][-1] == pytest.approx(0.4453, abs=0.6e-4)
    assert comparison.length_within("brier") == 3


def test_columns_of_any_name_with_a_few_broken_rows(tmp_path):
    z = load("dr-aptos", "dr_aptos5.npz")
    frame = pd.DataFrame(z["probs"].astype(float), columns=[f"dr{i}" for i in range(5)])
    frame["gt"] = z["labels"]
    frame.loc[[17, 400], "dr2"] = np.nan
    frame.to_csv(tmp_path / "aptos.csv", index=False)
    source = files.open(tmp_path / "aptos.csv", ordered=True, normalize=True, invalid="skip")
    assert (source.roles.found_by, source.classes) == ("sums", (0, 1, 2, 3, 4))
    card = card_of_file(source, ordered=True)
    assert card.skipped.rows == (17, 400)
    left = np.delete(np.arange(len(frame)), [17, 400])
    expected = vx.evaluate(z["labels"][left], z["probs"][left], ordered=True)
    check(card, **{name: expected[name] for name in ("accuracy", "log_score", "brier", "rps")})


def test_several_bookmakers_in_one_file(tmp_path):
    frame = pd.read_parquet(load("football-odds", "odds_6bookmakers.parquet"))
    houses = {"bet365": "B365", "bwin": "BW"}
    for short in houses.values():
        odds = 1 / frame[[f"{short}{side}" for side in "HDA"]].to_numpy(float)
        frame[[f"p {short} {side}" for side in "HDA"]] = odds / odds.sum(axis=1, keepdims=True)
    frame[["FTR", *(c for c in frame if c.startswith("p "))]].to_parquet(tmp_path / "odds.parquet")
    probs = {name: f"p {short}*" for name, short in houses.items()}
    joined = files.read_together(
        dict.fromkeys(houses, tmp_path / "odds.parquet"), probs=probs, target="FTR", invalid="skip"
    )
    assert joined.classes == ("H", "D", "A")
    assert joined.skipped.count == int(frame.filter(like="p ").isna().any(axis=1).sum())
    valid = frame.filter(like="p ").notna().all(axis=1).to_numpy()
    p = frame[[f"p B365 {side}" for side in "HDA"]].to_numpy()[valid]
    expected = vx.brier(frame["FTR"].to_numpy()[valid], p, classes=["H", "D", "A"])
    assert vx.brier(joined.y, joined.models["bet365"]) == pytest.approx(expected, rel=1e-12)


def test_sets_of_answers_of_a_language_model():
    """LLaMA on MMLU (Kumar et al. 2023): conformal sets reach the level on average, not for every subject."""
    z = load("llm-mmlu-conformal", "mmlu_llama.npz")
    p, y, half = z["probs"][0], z["labels"], np.arange(2886) % 2 == 0
    made = vx.conformal(y[half], p[half], level=0.9)
    scores = np.sort(1 - p[half, y[half]].astype(float))
    assert made.threshold == scores[int(np.ceil(1444 * 0.9)) - 1]
    found = vx.evaluate_sets(y[~half], made.apply(p[~half]), by={"subject": z["subject"][~half]})
    mask = 1 - p[~half].astype(float) <= made.threshold
    assert found.coverage.value == mask[np.arange(1443), y[~half]].mean()
    assert found.size.value == pytest.approx(mask.sum(axis=1).mean())
    low, high = made.expected_coverage
    assert low - 0.02 < found.coverage.value < high + 0.02
    assert len(found.by["subject"]) == 16
