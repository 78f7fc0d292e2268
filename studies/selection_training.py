"""Many small 1-D convolutional networks at once: every fold and seed of a data set in one batch of matrices.

    python studies/selection_training.py windows.npz trajectories.npz [--device cuda] [--seeds 5] ...

Reads what `selection.py --prepare` wrote and writes, for every fold, seed and epoch, the scores on the
validation and on the test windows, as they are and after temperature scaling. Needs torch and verax's rules,
no data frames.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

import verax as vx
from verax.scores.metrics import macro_f1_of

TRAIN, VALIDATION, TEST = 1, 2, 3
PARTS = {"validation": VALIDATION, "test": TEST}
# PBS and PLL are these and the zero-one loss, added; keeping the parts lets any penalty be tried later.
RULES = {"brier": vx.brier, "log": vx.log_score, "zero_one": vx.zero_one}
METRICS = (*RULES, "f1", "accuracy")
# Losses that are measured again after temperature scaling. On validation windows the temperature of a window
# is fitted without its fold, as in `vx.refinement`; that of test windows is fitted to all validation windows.
SCALED = ("brier", "log")
FOLDS = 5
GRID = np.linspace(-2.0, 3.0, 21)  # logarithms of the inverse temperature
HALVINGS = 25
STEP = 0.02  # for curvature by differences
FILTERS = (32, 64)
WIDTHS = (5, 3)
DROPOUT = 0.3
RATE = 1e-3
EVALUATED_AT_ONCE = 4_000_000  # rows in windows, over all networks


@dataclass(frozen=True)
class Problem:
    """Windows of a data set: the rows, where windows start, their classes, and their part in each fold."""

    rows: np.ndarray
    starts: np.ndarray
    y: np.ndarray
    folds: np.ndarray
    length: int
    n_classes: int
    batch: int
    epochs: int

    def save(self) -> dict[str, np.ndarray]:
        return {name: np.asarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def load(cls, arrays: dict[str, np.ndarray]) -> Problem:
        return cls(**{k: v if v.ndim else v.item() for k, v in arrays.items()})


def load_problems(path: Path) -> dict[str, Problem]:
    with np.load(path) as archive:
        names = dict.fromkeys(key.partition("/")[0] for key in archive.files)
        return {
            name: Problem.load(
                {k.partition("/")[2]: archive[k] for k in archive.files if k.startswith(f"{name}/")}
            )
            for name in names
        }


def save_problems(path: Path, problems: dict[str, Problem]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **{f"{n}/{k}": v for n, p in problems.items() for k, v in p.save().items()})


class Windows:
    """The windows of a problem on a device, standardised for each network by its own training windows."""

    def __init__(self, problem: Problem, seeds: int, device: str) -> None:
        self.device, self.problem = device, problem
        self.rows = torch.as_tensor(problem.rows, dtype=torch.float32, device=device)
        self.offsets = torch.arange(problem.length, device=device)
        self.starts = torch.as_tensor(problem.starts, device=device)
        self.y = torch.as_tensor(problem.y, device=device)
        self.n_folds = len(problem.folds)
        self.n_models = self.n_folds * seeds
        self.fold = torch.arange(self.n_folds, device=device).repeat_interleave(seeds)
        moments = [self._moments(np.flatnonzero(fold == TRAIN)) for fold in problem.folds]
        self.mean = torch.stack([m for m, _ in moments])[self.fold]
        self.scale = torch.stack([s for _, s in moments])[self.fold]

    def _moments(self, windows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        starts = self.starts[torch.as_tensor(windows, device=self.device)]
        seen = self.rows[(starts[:, None] + self.offsets).unique()].double()
        mean = seen.nanmean(dim=0)
        scale = (seen - mean).square().nanmean(dim=0).sqrt()
        return mean.float(), torch.where(scale > 0, scale, 1.0).float()

    def inputs(self, windows: torch.Tensor) -> torch.Tensor:
        """The values of windows (M, B), as (M, B, T, C); a missing value is the training mean."""
        values = self.rows[self.starts[windows][..., None] + self.offsets]
        return ((values - self.mean[:, None, None]) / self.scale[:, None, None]).nan_to_num(0.0)

    def members(self, part: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The windows of a part, (M, n) with the last repeated where folds are shorter, and their number."""
        lists = [np.flatnonzero(fold == part) for fold in self.problem.folds]
        most = max(map(len, lists))
        padded = np.stack([np.pad(x, (0, most - len(x)), mode="edge") for x in lists])
        sizes = torch.as_tensor([len(x) for x in lists], device=self.device)
        return torch.as_tensor(padded, device=self.device)[self.fold], sizes[self.fold]


def initial_weights(n_models: int, n_channels: int, length: int, n_classes: int, device: str) -> list:
    """Weights of `n_models` networks, He-normal; one tensor a layer, networks along the first axis."""
    sizes = [
        (min(WIDTHS[0], length) * n_channels, FILTERS[0]),
        (WIDTHS[1] * FILTERS[0], FILTERS[1]),
        (2 * FILTERS[1], n_classes),
    ]
    weights = []
    for i, (fan_in, fan_out) in enumerate(sizes):
        gain = 2.0 if i < len(FILTERS) else 1.0
        matrix = torch.randn(n_models, fan_in, fan_out, device=device) * (gain / fan_in) ** 0.5
        weights += [
            matrix.requires_grad_(),
            torch.zeros(n_models, 1, fan_out, device=device).requires_grad_(),
        ]
    return weights


def convolve(x: torch.Tensor, kernel: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Each network's own convolution over time: (M, B, T, C) to (M, B, T, filters), zero-padded."""
    n_models, batch, length, channels = x.shape
    width = kernel.shape[1] // channels
    x = F.pad(x, (0, 0, (width - 1) // 2, width // 2))
    patches = torch.cat([x[:, :, i : i + length] for i in range(width)], dim=-1)
    patches = patches.reshape(n_models, batch * length, width * channels)
    return torch.baddbmm(bias, patches, kernel).reshape(n_models, batch, length, -1)


def logits_of(weights: list, x: torch.Tensor, *, training: bool) -> torch.Tensor:
    """Two convolutions, a halving between them where there is length for it, mean and maximum over time."""
    x = convolve(x, *weights[0:2]).relu()
    if x.shape[2] >= 8:
        x = x[:, :, : x.shape[2] // 2 * 2].unflatten(2, (-1, 2)).amax(dim=3)
    x = convolve(x, *weights[2:4]).relu()
    x = F.dropout(torch.cat([x.mean(dim=2), x.amax(dim=2)], dim=-1), DROPOUT, training)
    return torch.baddbmm(weights[5], x, weights[4])


def batches(members: torch.Tensor, sizes: torch.Tensor, batch: int) -> Iterator[torch.Tensor]:
    """Each network's training windows in an order of its own; smaller folds begin again to fill the epoch."""
    order = torch.rand(members.shape, device=members.device)
    order[torch.arange(members.shape[1], device=members.device) >= sizes[:, None]] = 2.0
    order = order.argsort(dim=1)
    steps = -(-members.shape[1] // batch)
    places = torch.arange(steps * batch, device=members.device) % sizes[:, None]
    yield from members.gather(1, order.gather(1, places)).split(batch, dim=1)


def training_loss(logits: torch.Tensor, y: torch.Tensor, loss: str) -> torch.Tensor:
    """The sum over networks of their mean losses: the networks do not see one another."""
    k = logits.shape[-1]
    if loss == "log":
        return F.cross_entropy(logits.reshape(-1, k), y.reshape(-1), reduction="sum") / y.shape[1]
    return (logits.softmax(-1) - F.one_hot(y, k)).square().sum() / y.shape[1]


def loss_at(t: torch.Tensor, z: torch.Tensor, y: torch.Tensor, rule: str) -> torch.Tensor:
    """The loss of every window, (M, n), with its logits (M, n, K) times exp(t); t is (M, 1) or (M, n)."""
    scaled = z * t.exp()[..., None]
    own = scaled.gather(-1, y[..., None])[..., 0]
    if rule == "log":
        return scaled.logsumexp(-1) - own
    p = scaled.softmax(-1)
    return p.square().sum(-1) - 2 * p.gather(-1, y[..., None])[..., 0] + 1


def best_scale(z: torch.Tensor, y: torch.Tensor, real: torch.Tensor, rule: str) -> torch.Tensor:
    """The t of each network that loses least, (M, 1): the best of a grid, then golden sections around it."""

    def total(t: torch.Tensor) -> torch.Tensor:
        return (loss_at(t, z, y, rule) * real).sum(dim=1, keepdim=True)

    grid = torch.as_tensor(GRID, dtype=z.dtype, device=z.device)
    found = torch.cat([total(t.expand(len(z), 1)) for t in grid], dim=1)
    middle, gap = grid[found.argmin(dim=1, keepdim=True)], float(GRID[1] - GRID[0])
    low, high = middle - gap, middle + gap
    golden = (5**0.5 - 1) / 2
    for _ in range(HALVINGS):
        a, b = high - golden * (high - low), low + golden * (high - low)
        left = total(a) < total(b)
        low, high = torch.where(left, low, a), torch.where(left, b, high)
    return (low + high) / 2


def without_folds(
    t: torch.Tensor, z: torch.Tensor, y: torch.Tensor, real: torch.Tensor, rule: str
) -> torch.Tensor:
    """The t of each window, (M, n), fitted without its fold: a Newton step away from that of all windows."""
    generator = torch.Generator().manual_seed(0)
    fold = torch.randperm(z.shape[1], generator=generator).to(z.device) % FOLDS
    of_fold = F.one_hot(fold, FOLDS).to(z.dtype)
    below, at, above = ((loss_at(t + d, z, y, rule) * real) @ of_fold for d in (-STEP, 0.0, STEP))
    slope, bend = (above - below) / (2 * STEP), (above - 2 * at + below) / STEP**2
    slope, bend = (x.sum(dim=1, keepdim=True) - x for x in (slope, bend))
    step = torch.where(bend > 0, -slope / bend, 0.0).clamp(-1.0, 1.0)
    return (t + step)[:, fold]


@torch.no_grad()
def all_logits(weights: list, windows: Windows, members: torch.Tensor) -> torch.Tensor:
    """The logits of every network on its part, (M, n, K)."""
    step = max(1, EVALUATED_AT_ONCE // (windows.n_models * windows.problem.length))
    some = [logits_of(weights, windows.inputs(m), training=False) for m in members.split(step, dim=1)]
    return torch.cat(some, dim=1).double()


@torch.no_grad()
def scaled_scores(weights: list, windows: Windows, parts: dict) -> dict:
    """Losses after temperature scaling, by part and rule: held out on validation, as deployed on test."""
    given = {}
    for part, (members, sizes) in parts.items():
        real = torch.arange(members.shape[1], device=windows.device) < sizes[:, None]
        given[part] = all_logits(weights, windows, members), windows.y[members], real.double()
    found = {}
    for rule in SCALED:
        t = best_scale(*given["validation"], rule)
        scales = {"validation": without_folds(t, *given["validation"], rule), "test": t}
        for part, (z, y, real) in given.items():
            losses = loss_at(scales[part], z, y, rule) * real
            found[f"{part}_scaled_{rule}"] = (losses.sum(dim=1) / real.sum(dim=1)).cpu().numpy()
    return found


@torch.no_grad()
def scores(weights: list, windows: Windows, members: torch.Tensor, sizes: torch.Tensor) -> dict:
    """Mean losses, macro F1 and accuracy of every network on its part, by verax's rules."""
    k, n_models = windows.problem.n_classes, windows.n_models
    sums = {name: torch.zeros(n_models, dtype=torch.float64, device=windows.device) for name in RULES}
    counts = torch.zeros(n_models * k * k, device=windows.device)
    columns = torch.arange(members.shape[1], device=windows.device)
    step = max(1, EVALUATED_AT_ONCE // (n_models * windows.problem.length))
    for some, at in zip(members.split(step, dim=1), columns.split(step), strict=True):
        logits = logits_of(weights, windows.inputs(some), training=False)
        y, p = windows.y[some], logits.double().softmax(-1)
        real = (at < sizes[:, None]).to(p.dtype)
        for name, rule in RULES.items():
            sums[name] += (rule.samples(y.reshape(-1), p.reshape(-1, k)).reshape(y.shape) * real).sum(dim=1)
        cells = (torch.arange(n_models, device=windows.device)[:, None] * k + y) * k + p.argmax(-1)
        counts += torch.bincount(cells.reshape(-1), real.reshape(-1), minlength=len(counts)).to(counts.dtype)
    tables = counts.reshape(n_models, k, k).cpu().numpy().astype(float)
    accuracy = np.trace(tables, axis1=1, axis2=2) / tables.sum(axis=(1, 2))
    means = {name: (total / sizes).cpu().numpy() for name, total in sums.items()}
    return {**means, "f1": macro_f1_of(tables), "accuracy": accuracy}


def train(problem: Problem, *, loss: str, seeds: int, epochs: int, seed: int, device: str) -> dict:
    """Train every fold and seed; arrays (folds, seeds, epochs) of each metric on each part."""
    torch.manual_seed(seed)
    windows = Windows(problem, seeds, device)
    weights = initial_weights(
        windows.n_models, problem.rows.shape[1], problem.length, problem.n_classes, device
    )
    optimizer = torch.optim.NAdam(weights, lr=RATE)
    parts = {name: windows.members(code) for name, code in PARTS.items()}
    members, sizes = windows.members(TRAIN)
    columns = (*METRICS, *(f"scaled_{rule}" for rule in SCALED))
    seen: dict[str, list] = {f"{part}_{metric}": [] for part in PARTS for metric in columns}
    for _ in range(epochs):
        for some in batches(members, sizes, problem.batch):
            optimizer.zero_grad(set_to_none=True)
            logits = logits_of(weights, windows.inputs(some), training=True)
            training_loss(logits, windows.y[some], loss).backward()
            optimizer.step()
        for part, (where, sizes_of_part) in parts.items():
            for metric, values in scores(weights, windows, where, sizes_of_part).items():
                seen[f"{part}_{metric}"].append(values)
        for name, values in scaled_scores(weights, windows, parts).items():
            seen[name].append(values)
    return {k: np.stack(v, axis=-1).reshape(windows.n_folds, seeds, epochs) for k, v in seen.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("windows", type=Path)
    parser.add_argument("trajectories", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--sets", nargs="*", default=None, help="names of data sets; all of them if not given"
    )
    parser.add_argument("--losses", nargs="*", default=["log", "brier"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="instead of each data set's own number")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    results: dict[str, np.ndarray] = {}
    problems = load_problems(args.windows)
    for loss, name in product(args.losses, args.sets or problems):
        begun, problem = time.perf_counter(), problems[name]
        epochs = args.epochs or problem.epochs
        trained = train(
            problem, loss=loss, seeds=args.seeds, epochs=epochs, seed=args.seed, device=args.device
        )
        results |= {f"{name}/{loss}/{key}": values for key, values in trained.items()}
        np.savez_compressed(args.trajectories, **results)  # after each, so that an interruption costs one
        print(f"{name}, trained by {loss}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
