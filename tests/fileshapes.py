"""Files of predictions as people have them, each with the rows that made it: what readers are held to.

The data behind every file are drawn here, so the expected score is computed from them by NumPy alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

N = 60


@dataclass(frozen=True)
class FileShape:
    """A file, or several.

    Attributes
    ----------
    name : str
    write : Callable
        Writes the files into a folder; returns (arguments of a command, y, p), with p as the file holds it.
    needs : str
        A package without which the file is neither written nor read.
    """

    name: str
    write: Callable
    needs: str = ""


SHAPES: list[FileShape] = []


def shape(name=None, needs=""):
    def register(write):
        SHAPES.append(FileShape(name or write.__name__, write, needs))
        return write

    return register


def brier(y, p):
    """The Brier score as a sum over classes, by its definition."""
    p = np.asarray(p, float)
    return float(np.mean(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)))


def rows(k, seed=0, n=N):
    """Outcomes and probabilities of k classes."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = np.array([rng.choice(k, p=row) for row in p])
    y[:k] = np.arange(k)
    return y, p


def two(p1):
    return np.stack([1 - p1, p1], axis=1)


@shape()
def sklearn_unnamed_index(folder):
    """pd.DataFrame(model.predict_proba(X)).assign(y=y).to_csv(path)"""
    y, p = rows(3)
    pd.DataFrame(p).assign(y=y).to_csv(folder / "preds.csv")
    return ["preds.csv"], y, p


@shape()
def sklearn_class_names(folder):
    """pd.DataFrame(model.predict_proba(X), columns=model.classes_, index=X.index)"""
    y, p = rows(3, 1)
    names = np.array(["setosa", "versicolor", "virginica"])
    frame = pd.DataFrame(p, columns=names, index=pd.RangeIndex(100, 100 + N))
    frame["species"] = names[y]
    frame["prediction"] = names[p.argmax(axis=1)]
    frame.rename(columns={"species": "y_true", "prediction": "y_pred"}).to_csv(folder / "preds.csv")
    return ["preds.csv"], y, p


@shape()
def y_pred_proba(folder):
    y, p = rows(2, 2)
    pd.DataFrame({"y_true": y, "y_pred": p[:, 1].round().astype(int), "y_pred_proba": p[:, 1]}).to_csv(
        folder / "preds.csv", index=False
    )
    return ["preds.csv"], y, p


@shape()
def y_score(folder):
    y, p = rows(2, 3)
    pd.DataFrame({"y_true": y, "y_score": p[:, 1]}).to_csv(folder / "scores.csv")
    return ["scores.csv"], y, p


@shape()
def probabilities_in_brackets(folder):
    y, p = rows(2, 4)
    names = np.array(["No", "Yes"])
    frame = {"Churn": names[y], "P(No)": p[:, 0], "P(Yes)": p[:, 1], "tenure": np.arange(N)}
    pd.DataFrame(frame).to_csv(folder / "jmp.csv", index=False)
    return ["jmp.csv", "--target", "Churn"], y, p


@shape()
def xgboost_softprob(folder):
    """The matrix of `booster.predict` with multi:softprob, saved beside the labels."""
    y, p = rows(4, 5)
    frame = pd.DataFrame(p.astype(np.float32), columns=[f"class_{j}" for j in range(4)])
    frame.insert(0, "label", y)
    frame.to_parquet(folder / "xgb.parquet")
    return ["xgb.parquet"], y, p.astype(np.float32)


@shape()
def lightgbm_preds(folder):
    y, p = rows(3, 6)
    frame = pd.DataFrame(p, columns=[f"pred_{j}" for j in range(3)])
    frame["target"] = y
    frame.to_csv(folder / "lgb.tsv", sep="\t", index=False)
    return ["lgb.tsv"], y, p


@shape()
def catboost_calc(folder):
    """`catboost calc --prediction-type Probability --output-columns SampleId,Probability,Label`"""
    y, p = rows(3, 7)
    frame = pd.DataFrame({"SampleId": np.arange(N)})
    for j, name in enumerate(["high", "low", "mid"]):
        frame[f"Probability:Class={name}"] = p[:, j]
    frame["Label"] = np.array(["high", "low", "mid"])[y]
    frame.to_csv(folder / "calc.tsv", sep="\t", index=False)
    return ["calc.tsv"], y, p


@shape()
def keras_flow_from_directory(folder):
    y, p = rows(3, 8)
    names = np.array(["cat", "dog", "fox"])
    frame = pd.DataFrame(p.astype(np.float32), columns=names)
    frame.insert(0, "filename", [f"{names[c]}/{i:04}.jpg" for i, c in enumerate(y)])
    frame.insert(1, "class", names[y])
    frame.to_csv(folder / "keras.csv", index=False)
    return ["keras.csv"], y, p.astype(np.float32).astype(str).astype(float)


@shape()
def lightning_softmax(folder):
    y, p = rows(5, 9)
    frame = pd.DataFrame(p, columns=[f"softmax_{j}" for j in range(5)])
    frame["targets"], frame["preds"], frame["batch_idx"] = y, p.argmax(axis=1), np.arange(N) // 8
    frame.to_parquet(folder / "lightning.parquet")
    return ["lightning.parquet"], y, p


@shape()
def h2o_binomial(folder):
    y, p = rows(2, 10)
    frame = {"predict": p.argmax(axis=1), "p0": p[:, 0], "p1": p[:, 1], "actual": y}
    pd.DataFrame(frame).to_csv(folder / "h2o.csv", index=False)
    return ["h2o.csv"], y, p


@shape()
def h2o_named(folder):
    y, p = rows(2, 11)
    names = np.array(["no", "yes"])
    frame = {"predict": names[p.argmax(axis=1)], "no": p[:, 0], "yes": p[:, 1], "truth": names[y]}
    pd.DataFrame(frame).to_csv(folder / "h2o.csv", index=False)
    return ["h2o.csv"], y, p


@shape()
def r_tidymodels(folder):
    y, p = rows(2, 12)
    names = np.array(["no", "yes"])
    frame = {
        "id": "Fold01",
        ".pred_no": p[:, 0],
        ".pred_yes": p[:, 1],
        ".row": np.arange(N) + 1,
        ".pred_class": names[p.argmax(axis=1)],
        "Class": names[y],
        ".config": "pre0_mod0_post0",
    }
    pd.DataFrame(frame).to_csv(folder / "tidy.csv", index=False)
    return ["tidy.csv"], y, p


@shape()
def r_mlr3(folder):
    y, p = rows(3, 13)
    names = np.array(["a", "b", "c"])
    frame = {"row_ids": np.arange(N) + 1, "truth": names[y], "response": names[p.argmax(axis=1)]}
    frame |= {f"prob.{name}": p[:, j] for j, name in enumerate(names)}
    pd.DataFrame(frame).to_csv(folder / "mlr3.csv", index=False)
    return ["mlr3.csv"], y, p


@shape()
def r_caret(folder):
    """`train(..., savePredictions=TRUE)$pred`, by write.csv with its row names"""
    y, p = rows(2, 14)
    names = np.array(["No", "Yes"])
    frame = {"pred": names[p.argmax(axis=1)], "obs": names[y], "No": p[:, 0], "Yes": p[:, 1]}
    frame |= {"rowIndex": np.arange(N) + 1, "mtry": 2, "Resample": "Fold1"}
    pd.DataFrame(frame, index=pd.RangeIndex(1, N + 1)).to_csv(folder / "caret.csv", quoting=2)
    return ["caret.csv"], y, p


@shape()
def kaggle_binary(folder):
    """A submission, and the labels in another file in another order."""
    y, p = rows(2, 15)
    ids = np.array([f"{i:04}-ABC" for i in range(N)])
    pd.DataFrame({"customerID": ids, "Churn": p[:, 1]}).to_csv(folder / "submission.csv", index=False)
    truth = pd.DataFrame({"customerID": ids, "Churn": y}).sample(frac=1, random_state=0)
    truth.to_csv(folder / "truth.csv", index=False)
    return ["submission.csv", "--outcomes", folder / "truth.csv"], y, p


@shape()
def kaggle_classes(folder):
    """Otto's submission: Class_1, Class_2, ... and labels called so in another file."""
    y, p = rows(4, 16)
    frame = pd.DataFrame(p, columns=[f"Class_{j}" for j in range(1, 5)])
    frame.insert(0, "id", np.arange(1, N + 1))
    frame.to_csv(folder / "submission.csv", index=False)
    truth = pd.DataFrame({"id": np.arange(1, N + 1), "feat_1": 3, "target": [f"Class_{c + 1}" for c in y]})
    truth.iloc[::-1].to_csv(folder / "solution.csv", index=False)
    return ["submission.csv", "--outcomes", folder / "solution.csv"], y, p


@shape()
def one_probability_and_labels(folder):
    """`prob_1` beside texts is about the class called 1."""
    y, p = rows(2, 17)
    pd.DataFrame({"id": np.arange(N), "label": y, "prob_1": p[:, 1]}).to_csv(folder / "one.csv", index=False)
    return ["one.csv"], y, p


@shape()
def spark_probability(folder):
    """Spark ML: columns label, probability (a vector), prediction."""
    y, p = rows(3, 18)
    frame = {"label": y.astype(float), "probability": list(p), "prediction": p.argmax(axis=1).astype(float)}
    pd.DataFrame(frame).to_parquet(folder / "spark.parquet")
    return ["spark.parquet"], y, p


@shape()
def semicolons_and_commas(folder):
    """Written by a European Excel, with its byte order mark."""
    y, p = rows(3, 19)
    names = np.array(["niedrig", "mittel", "hoch"])
    frame = pd.DataFrame(p.round(6), columns=[f"p_{name}" for name in names])
    frame["p_hoch"] = (1 - frame["p_niedrig"] - frame["p_mittel"]).round(6)
    frame.insert(0, "label", names[y])
    frame.to_csv(folder / "export.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig")
    return ["export.csv"], y, frame[[f"p_{name}" for name in names]].to_numpy()


@shape(needs="openpyxl")
def excel(folder):
    y, p = rows(3, 20)
    names = np.array(["low", "mid", "high"])
    frame = pd.DataFrame(p, columns=[f"p_{name}" for name in names])
    frame.insert(0, "label", names[y])
    frame.to_excel(folder / "preds.xlsx", index=False)
    return ["preds.xlsx"], y, p


@shape()
def rounded_to_three(folder):
    y, p = rows(7, 21)
    p = p.round(3)
    assert (np.abs(p.sum(axis=1) - 1) > 5e-4).any()
    frame = pd.DataFrame(p, columns=[f"prob_{j}" for j in range(7)])
    frame["label"] = y
    frame.to_csv(folder / "rounded.csv", index=False)
    return ["rounded.csv"], y, p / p.sum(axis=1, keepdims=True)


@shape()
def percentages(folder):
    y, p = rows(3, 22)
    names = np.array(["home", "draw", "away"])
    percent = (100 * p).round(1)
    frame = pd.DataFrame(percent, columns=[f"prob_{name}" for name in names])
    frame["outcome"] = names[y]
    frame.to_csv(folder / "percent.csv", index=False)
    return ["percent.csv"], y, percent / percent.sum(axis=1, keepdims=True)


@shape()
def json_lines_of_lists(folder):
    y, p = rows(4, 23)
    lines = [json.dumps({"id": i, "label": int(y[i]), "probs": p[i].tolist()}) for i in range(N)]
    (folder / "preds.jsonl").write_text("\n".join(lines) + "\n")
    return ["preds.jsonl"], y, p


@shape()
def json_lines_of_scores(folder):
    """The pipeline of transformers with top_k=None: every class with its score."""
    y, p = rows(3, 24)
    names = ["negative", "neutral", "positive"]
    lines = []
    for i in range(N):
        scores = [{"label": names[j], "score": float(p[i, j])} for j in np.argsort(-p[i])]
        lines.append(json.dumps({"text": f"review {i}", "label": names[y[i]], "predictions": scores}))
    (folder / "hf.jsonl").write_text("\n".join(lines) + "\n")
    return ["hf.jsonl"], y, p


@shape()
def ordered_grades(folder):
    y, p = rows(5, 25)
    frame = pd.DataFrame(p, columns=[f"proba_{j}" for j in range(5)])
    frame.insert(0, "image_id", [f"img{i:03}" for i in range(N)])
    frame["grade"] = y
    frame.to_csv(folder / "grades.csv", index=False)
    return ["grades.csv", "--id", "image_id"], y, p


@shape()
def weights_and_ids(folder):
    y, p = rows(2, 26)
    frame = {"row_id": np.arange(N), "sample_weight": 1.0, "y": y, "probability": p[:, 1]}
    pd.DataFrame(frame).to_csv(folder / "w.csv", index=False)
    return ["w.csv", "--weights", "sample_weight", "--id", "row_id"], y, p


@shape()
def numpy_arrays(folder):
    y, p = rows(3, 27)
    np.savez(folder / "preds.npz", y_true=y, y_prob=p)
    return ["preds.npz"], y, p
