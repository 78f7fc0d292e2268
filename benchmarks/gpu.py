"""How fast on a GPU: verax against PyTorch's operations, compiled ones, cross entropy and reading the data.

All figures of one run, in milliseconds, the median of several. Needs a GPU of NVIDIA; without one it says so.
"kernels": what the device works for default and ordered cards. "and table": with a look at the confusion
table, which `evaluate` leaves on the GPU if it is large.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

import verax as vx
from verax.adapters.torch import Card, Loss, Score
from verax.wings.gpu import places

SIZES = [(50_000_000, 5), (4_000_000, 100), (500_000, 1000)]
LOSS_SIZES = [(5_000_000, 5), (400_000, 100), (50_000, 1000)]
LOSSES = ["rps", "brier", "log_score", "spherical", "ranked_log", "pbs"]


def on_device(call: Callable[[], object], rounds: int = 15) -> float:
    """Milliseconds between two marks on the device."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[rounds // 2]


def of_kernels(call: Callable[[], object], rounds: int = 15) -> float:
    """Milliseconds that the device works for a call, whatever the host does meanwhile."""
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(rounds):
            call()
        torch.cuda.synchronize()
    return sum(event.device_time for event in found.events()) / rounds / 1e3


def by_clock(call: Callable[[], object], rounds: int = 51) -> float:
    """Milliseconds that the caller waits."""
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return sorted(times)[rounds // 2]


def rows(n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(0)
    p = -torch.log(torch.rand(n, k, generator=generator, device="cuda").clamp_min_(1e-7))
    p /= p.sum(dim=1, keepdim=True)
    return torch.randint(0, k, (n,), generator=generator, device="cuda"), p


def seven_rules(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What one would write: seven rules, a check of the rows and the confusion counts."""
    k = p.shape[1]
    p_true = p.gather(1, y[:, None])[:, 0]
    rest = (p * p).sum(dim=1) - p_true * p_true
    brier = (1 - p_true) ** 2 + rest
    log = -p_true.log()
    spherical = 1 - p_true / (p_true * p_true + rest).sqrt()
    error = p.cumsum(dim=1)[:, :-1] - (torch.arange(k - 1, device=p.device) >= y[:, None]).to(p.dtype)
    rps = (error * error).sum(dim=1) / (k - 1)
    absolute = (error.abs().sum(dim=1) / (k - 1)) ** 2
    decision = p.argmax(dim=1)
    wrong = (decision != y).to(p.dtype)
    losses = [brier, log, spherical, rps, absolute, brier + (k - 1) / k * wrong, log + wrong]
    valid = ((p.sum(dim=1) - 1).abs() < 1e-4).all() & (p >= 0).all()
    cells = torch.zeros(k * k, device=p.device).index_add(0, y * k + decision, torch.ones_like(wrong))
    return torch.cat([torch.stack([x.double().mean() for x in losses]), valid[None].double(), cells.double()])


def evaluation(n: int, k: int) -> None:
    y, p = rows(n, k)

    def with_table() -> object:
        counts = vx.evaluate(y, p, ordered=True).tally.counts
        assert counts is not None
        return counts.confusion

    compiled = torch.compile(seven_rules)
    calls = [lambda: vx.evaluate(y, p), lambda: vx.evaluate(y, p, ordered=True)]
    print(
        f"{f'{n:,} x {k}':<20}{''.join(f'{by_clock(card):>10.2f}' for card in calls)}"
        f"{' / '.join(f'{of_kernels(card):.2f}' for card in calls):>14}{by_clock(with_table):>12.2f}"
        f"{by_clock(lambda: vx.rps(y, p)):>12.2f}"
        f"{by_clock(lambda: seven_rules(p, y), 3):>12.1f}{by_clock(lambda: compiled(p, y)):>12.2f}"
        f"{on_device(lambda: p.sum()):>12.2f}"
    )


def losses(n: int, k: int) -> None:
    y, p = rows(n, k)
    z = p.log().requires_grad_()

    def both(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> float:
        def step() -> None:
            z.grad = None
            loss(z, y).backward()

        return on_device(step)

    line = "".join(f"{both(Loss(name).cuda()):>12.2f}" for name in LOSSES)
    eager = both(lambda z, y: vx.rps.samples(y, z, logits=True).mean()) if k < 1000 else float("nan")
    print(f"{f'{n:,} x {k}':<20}{line}{both(torch.nn.functional.cross_entropy):>15.2f}{eager:>12.1f}")


def metrics(n: int, k: int) -> None:
    y, p = rows(n, k)

    def on_host(metric: Card | Score) -> float:
        metric.update(p, y)
        torch.cuda.synchronize()
        start = time.perf_counter()
        metric.update(p, y)
        return 1e3 * (time.perf_counter() - start)

    for metric in (Card(k, ordered=True), Score("rps")):
        metric = metric.cuda()
        waits = sorted(on_host(metric) for _ in range(15))[7]
        whole = by_clock(lambda metric=metric: metric.update(p, y))
        name = type(metric).__name__
        print(f"{name}.update of {n:,} x {k}: {whole:.2f} ms; the host goes on after {waits:.2f}")


def cards(n: int, k: int, ordered: bool) -> None:
    """What a card of a training loop costs: the first batch, another one, and all numbers at the end."""
    y, p = rows(n, k)

    def timed(call: Callable[[], object]) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start)

    card = Card(k, ordered=ordered).cuda()
    first, *later = [timed(lambda: card.update(p, y)) for _ in range(16)]

    def compute() -> float:
        card._computed = None
        return timed(card.compute)

    first_compute, *computes = [compute() for _ in range(16)]
    print(
        f"Card of {k} classes, ordered={ordered}, batches of {n:,}: update {sorted(later)[7]:.2f} ms "
        f"(first {first:.1f}), compute {sorted(computes)[7]:.2f} ms (first {first_compute:.1f})"
    )


def main() -> None:
    if not torch.cuda.is_available():
        print("Nothing to time: PyTorch sees no GPU of NVIDIA.")
        return
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    place = places.locate(torch.zeros(1, device="cuda"))
    print("kernels are", "compiled" if place is not None else "missing: everything runs by array calls")
    print("cards, float32 rows, float64 arithmetic; against seven rules in PyTorch")
    titles = ("and table", "rps alone", "operations", "compiled", "p.sum()")
    print(
        f"{'':<20}{'default':>10}{'ordered':>10}{'kernels':>14}" + "".join(f"{title:>12}" for title in titles)
    )
    for size in SIZES:
        evaluation(*size)
    small_y, small_p = rows(200_000, 5)
    fixed = by_clock(lambda: vx.evaluate(small_y, small_p, ordered=True), 101)
    print(f"of which fixed: {fixed:.2f} ms (200,000 x 5)")
    print("losses of float32 logits, forward and backward")
    print(f"{'':<20}" + "".join(f"{name:>12}" for name in LOSSES) + f"{'cross_entropy':>15}{'rps eager':>12}")
    for size in LOSS_SIZES:
        losses(*size)
    metrics(5_000_000, 5)
    for ordered in (False, True):
        cards(50_000, 1000, ordered)


if __name__ == "__main__":
    main()
