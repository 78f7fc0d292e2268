"""Whether the alarms of `vx.Monitor` keep their word, and how long they take.

    python studies/monitoring.py                   all tables but the last
    python studies/monitoring.py ever delay        some of them
    python studies/monitoring.py peers             the same streams by river, where it is installed

Forecasts are Dirichlet or beta, and outcomes are drawn from them, so that they are calibrated and the mean
loss is known. Every table has fixed seeds. `studies/monitoring.md` has the tables and what they mean.
"""

from __future__ import annotations

import argparse
import math
from datetime import date

import numpy as np
from scipy.special import digamma
from scipy.stats import norm

import verax as vx

ALPHA = 0.05
# The most steps after a change that a test may wait for.
_WINDOWS = 100
# Designs in which only time steps are independent.
TOGETHER = ("steps that depend", "autocorrelated within steps")


def forecasts(rng, n, k, spread=1.2):
    """Forecasts of k classes."""
    return rng.dirichlet(np.full(k, spread), n)


def outcomes(rng, p, u=None):
    """Outcomes with the probabilities of the forecasts; `u` are the uniform numbers behind them."""
    u = rng.random(len(p)) if u is None else u
    return np.minimum((p.cumsum(axis=1) <= u[:, None]).sum(axis=1), p.shape[1] - 1)


def known_loss(rule, k, spread=1.2):
    """The mean loss of the forecasts, exactly: an error of it would be a change after a million rows."""
    total = k * spread
    if rule == "brier":
        return 1 - (spread + 1) / (total + 1)
    if rule == "log_score":
        return float(digamma(total + 1) - digamma(spread + 1))
    below = spread * np.arange(1, k)
    return float(np.mean(below * (total - below)) / (total * (total + 1)))


def batch(rng, n, k, design):
    """Rows of one time step, and what else `update` is told."""
    p = forecasts(rng, n, k)
    if design == "groups of 5, dependent":
        groups = np.repeat(np.arange(n // 5), 5)
        shared = rng.random(n // 5)[groups]
        return outcomes(rng, p, np.where(rng.random(n) < 0.6, shared, rng.random(n))), p, {"groups": groups}
    if design == "steps that depend":
        return outcomes(rng, p, np.full(n, rng.random())), p, {}
    return outcomes(rng, p), p, {}


def monitor_of(rng, rule, k, design, **more):
    """A monitor with a known reference, or one that was estimated."""
    if design == "reference from 500 rows":
        p = forecasts(rng, 500, k)
        reference = vx.evaluate(outcomes(rng, p), p, ordered=rule == "rps", rules=[rule])
    else:
        reference = known_loss(rule, k)
    more.setdefault("unit", unit_of(design))
    return vx.Monitor(reference, rule=rule, ordered=rule == "rps", **more)


def unit_of(design):
    """What is independent, which is stated; time steps are the default."""
    return None if design in TOGETHER else "group" if design.startswith("groups") else "row"


def percent(hits, n):
    """A share with its Monte Carlo error."""
    share = hits / n
    return f"{100 * share:.1f} ± {100 * math.sqrt(max(share * (1 - share), 1 / n) / n):.1f}"


def ever(runs):
    """How many runs ever raise a false alarm."""
    print(
        "\n| design | rule | K | alpha | steps x rows | false alarms ever, % |\n|---|---|---:|---:|---:|---:|"
    )
    designs = [
        ("independent rows", "brier", 2, 0.05, 50, 100),
        ("independent rows", "log_score", 3, 0.05, 50, 100),
        ("independent rows", "rps", 4, 0.05, 50, 100),
        ("independent rows", "brier", 2, 0.3, 50, 100),
        ("independent rows", "brier", 3, 0.05, 100, 10_000),
        ("reference from 500 rows", "brier", 3, 0.1, 50, 100),
        ("groups of 5, dependent", "brier", 3, 0.05, 50, 100),
        ("steps that depend", "brier", 3, 0.05, 50, 100),
    ]
    for design, rule, k, alpha, steps, rows in designs:
        own = max(10, runs // 10) if rows > 1000 else runs
        hits = 0
        for run in range(own):
            rng = np.random.default_rng([1, run])
            monitor = monitor_of(rng, rule, k, design, alpha=alpha)
            for step in range(steps):
                y, p, more = batch(rng, rows, k, design)
                if monitor.update(y, p, time=step, **more) is not None:
                    hits += 1
                    break
        print(
            f"| {design} | {rule} | {k} | {alpha} | {steps} x {rows:,} | {percent(hits, own)} |", flush=True
        )


def rate(runs):
    """How many time steps pass before a detector that restarts raises a false alarm."""
    print("\n| alpha | wanted, steps | mean of runs of at most 150 steps | without an alarm, % |")
    print("|---:|---:|---:|---:|")
    for alpha in (0.1, 0.02):
        lengths = []
        for run in range(max(10, runs // 4)):
            rng = np.random.default_rng([2, run])
            monitor = monitor_of(rng, "brier", 2, "", alpha=alpha, false_alarms="rate")
            for step in range(150):
                y, p, _ = batch(rng, 50, 2, "")
                if monitor.update(y, p, time=step) is not None:
                    break
            lengths.append(step + 1)
        without = np.mean(np.array(lengths) == 150)
        print(f"| {alpha} | {1 / alpha:.0f} | {np.mean(lengths):.0f} | {100 * without:.0f} |", flush=True)


def changed(rng, n, k, how):
    """Rows after a change."""
    p = forecasts(rng, n, k)
    y = outcomes(rng, p)
    if how.startswith("one class"):
        share = float(how.rpartition(" ")[2].rstrip("%")) / 100
        return np.where(rng.random(n) < share, k - 1, y), p
    sharp = p ** float(how.rpartition(" ")[2])
    return y, sharp / sharp.sum(axis=1, keepdims=True)


def delay(runs):
    """How many steps of 100 rows pass between a change and the alarm."""
    print(
        "\n| change after 20 steps of 100 rows, K = 3 | ever, steps | rate, steps | ever, rows stated "
        "| rate, rows stated | z test after every step | best fixed window, steps "
        "| began within the interval, % |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )
    for how in ("one class 10%", "one class 20%", "sharper by 1.5", "sharper by 2.5"):
        found = {(kind, unit): [] for unit in (None, "row") for kind in ("ever", "rate")}
        tests, inside, dated = [], 0, 0
        for run in range(max(10, runs // 5)):
            for (kind, unit), delays in found.items():
                rng = np.random.default_rng([3, run])
                monitor = monitor_of(rng, "brier", 3, "", alpha=ALPHA, false_alarms=kind, unit=unit)
                for step in range(120):
                    y, p = batch(rng, 100, 3, "")[:2] if step < 20 else changed(rng, 100, 3, how)
                    if monitor.update(y, p, time=step) is not None:
                        break
                delays.append(step - 19)
                if monitor.began is not None and step >= 20:
                    _, low, high = monitor.began
                    dated += 1
                    inside += low <= 20 <= high
            tests.append(_oracle(run, how))
        rejects = np.array(tests) > 1.645
        first = np.where(rejects.any(axis=1), rejects.argmax(axis=1) + 1, _WINDOWS)
        strong = np.flatnonzero(rejects.mean(axis=0) >= 0.5)
        window = str(strong[0] + 1) if len(strong) else f"> {_WINDOWS}"
        mid = {kind: np.median([d for d in delays if d > 0]) for kind, delays in found.items()}
        steps = f"{' | '.join(f'{each:.0f}' for each in mid.values())} | {np.median(first):.0f} | {window}"
        print(f"| {how} | {steps} | {percent(inside, dated)} |", flush=True)


def _oracle(run, how):
    """The z value of all losses since the change, after each step: tests that know when the change came."""
    rng = np.random.default_rng([3, run])
    for _ in range(20):
        batch(rng, 100, 3, "")
    reference, losses, found = known_loss("brier", 3), [], []
    for _ in range(_WINDOWS):
        losses.append(vx.brier.samples(*changed(rng, 100, 3, how)))
        every = np.concatenate(losses)
        found.append((every.mean() - reference) / (every.std() / math.sqrt(len(every))))
    return found


# ---- days that are not alike -----------------------------------------------------------------------

_DAY_ONE = date(2026, 1, 1)
# The number of steps of a stream, and where its forecasts begin to be wrong.
_STEPS, _CHANGE = 150, 70
SIZES = {
    "100 rows": [100],
    "200 rows": [200],
    "12, 75, 1200 in turn": [12, 75, 1200],
    "25, 700 in turn": [25, 700],
    "4 rows": [4],
    "1 row": [1],
    "geometric, mean 10": lambda rng, n: rng.geometric(0.1, n),
    "lognormal, 3 to 500": lambda rng, n: np.clip(rng.lognormal(3, 1.2, n), 3, 500).astype(int),
}


def normal_days(rho, memory=0.0):
    """Outcomes that share a normal number within a day, which may resemble that of the day before."""

    def happened(rng, p, day):
        effects, own = rng.normal(size=day[-1] + 1), rng.normal(size=len(p))
        for t in range(1, len(effects)):
            effects[t] = memory * effects[t - 1] + math.sqrt(1 - memory * memory) * effects[t]
        return norm.cdf(math.sqrt(rho) * effects[day] + math.sqrt(1 - rho) * own) < p

    return happened


def factor_days(a, b):
    """Outcomes whose chances are multiplied, day by day, by a beta variable of mean 1."""
    return lambda rng, p, day: rng.random(len(p)) < p * (rng.beta(a, b, day[-1] + 1) * (a + b) / a)[day]


# The forecasts (beta), the sizes of steps, the outcomes, and how they are told to the monitor.
DAYS = {
    "independent": ((1.2, 3), "100 rows", normal_days(0.0), {}),
    "correlation .03": ((1.2, 3), "100 rows", normal_days(0.03), {}),
    "correlation .03, unequal": ((1.2, 3), "12, 75, 1200 in turn", normal_days(0.03), {}),
    "correlation .15, unequal": ((1.2, 3), "25, 700 in turn", normal_days(0.15), {}),
    "correlation .1, tiny": ((1.2, 3), "4 rows", normal_days(0.1), {}),
    "single rows": ((1.2, 3), "1 row", normal_days(0.0), {"period": 1}),
    "event of 1.6%": ((1, 60), "geometric, mean 10", normal_days(0.0), {}),
    "event of 1.6%, right-skewed days": ((1, 60), "lognormal, 3 to 500", factor_days(0.6, 2.4), {}),
    "left-skewed days": ((1, 9), "200 rows", factor_days(4, 0.8), {}),
    "own times, correlation .05": ((1.2, 3), "200 rows", normal_days(0.05), {"own": True}),
    "own times, hours": ((1.2, 3), "200 rows", normal_days(0.05), {"own": True, "period": "hour"}),
    "days alike (.6), correlation .1": ((1.2, 3), "100 rows", normal_days(0.1, 0.6), {}),
}


def stream(rng, design, change=None, less=1.0):
    """Forecasts, outcomes and times; from a step on, outcomes have other chances than the forecasts."""
    shape, sizes, happened, told = DAYS[design]
    how = SIZES[sizes]
    n = how(rng, _STEPS) if callable(how) else np.resize(how, _STEPS)
    day = np.repeat(np.arange(_STEPS), n)
    p = rng.beta(*shape, len(day))
    chance = p if change is None else np.where(day < change, p, less * p)
    y = happened(rng, chance, day).astype(int)
    if not told.get("own"):
        return y, p, day
    within = np.concatenate([np.sort(rng.choice(86_400, own, replace=False)) for own in n.tolist()])
    return y, p, np.datetime64("2026-01-01", "s") + 86_400 * day + within


def beta_brier(shape):
    """The mean Brier loss of calibrated beta forecasts."""
    a, b = shape
    return 2 * a * b / ((a + b) * (a + b + 1))


def watched(rng, design, unit=None, **changed):
    """A monitor that has seen a stream."""
    shape, _, _, told = DAYS[design]
    y, p, time = stream(rng, design, **changed)
    monitor = vx.Monitor(beta_brier(shape), rule="brier", unit=unit, period=told.get("period"))
    monitor.update(y, p, time=time)
    return monitor


def days(runs):
    """How many streams without a change have a false alarm: time steps and, stated, rows as units."""
    print(
        f"\n| {_STEPS} steps without a change | rows in a step | false alarms ever, % | without a caution, % "
        "| rows stated, % |\n|---|---|---:|---:|---:|"
    )
    for design in DAYS:
        print(false_alarms(design, runs), flush=True)


def false_alarms(design, runs):
    """A line of that table."""
    false, silent, stated, few, place = 0, 0, 0, max(10, runs // 4), list(DAYS).index(design)
    for run in range(runs):
        monitor = watched(np.random.default_rng([11, place, run]), design)
        if monitor.alarm is not None:
            false += 1
            silent += not monitor.alarm.cautions and monitor.settings.period != "hour"
        if run < few:
            rows = watched(np.random.default_rng([11, place, run]), design, unit="row")
            stated += rows.alarm is not None
    cells = percent(false, runs), percent(silent, runs), percent(stated, few)
    return f"| {design} | {DAYS[design][1]} | {' | '.join(cells)} |"


def found(runs):
    """How many streams have an alarm after the change, and after how many steps."""
    print(
        f"\n| chances change after {_CHANGE} of {_STEPS} steps | times | before it, % | found, % "
        "| median steps where found |\n|---|---:|---:|---:|---:|"
    )
    designs = [
        *(
            (name, less)
            for name in ("independent", "correlation .03", "correlation .03, unequal")
            for less in (0.9, 0.7)
        ),
        ("single rows", 0.3),
        ("event of 1.6%", 3.0),
        ("event of 1.6%, right-skewed days", 3.0),
        ("own times, correlation .05", 0.7),
    ]
    for place, (design, less) in enumerate(designs):
        delays, early = [], 0
        for run in range(max(10, runs // 2)):
            rng = np.random.default_rng([12, place, run])
            alarm = watched(rng, design, change=_CHANGE, less=less).alarm
            if alarm is not None:
                step = (alarm.time - _DAY_ONE).days if isinstance(alarm.time, date) else int(alarm.time)
                early += step < _CHANGE
                delays += [step - _CHANGE + 1] if step >= _CHANGE else []
        n = max(10, runs // 2)
        median = f"{np.median(delays):.0f}" if delays else "never"
        print(
            f"| {design} | {less:g} | {percent(early, n)} | {percent(len(delays), n)} | {median} |",
            flush=True,
        )


def rows_of_stream(rng, n, k, design, carried):
    """Rows of one step of a long stream; `carried` is what the step before has left behind."""
    p = forecasts(rng, n, k)
    if design == "autocorrelated within steps":
        # Neighbours share the uniform number behind their outcomes with probability 0.8.
        fresh = rng.random(n) > 0.8
        fresh[0] = True
        u = rng.random(n)[np.maximum.accumulate(np.where(fresh, np.arange(n), 0))]
        return outcomes(rng, p, u), p, {}
    if design == "groups of 5, dependent":
        return batch(rng, n, k, design)
    y = outcomes(rng, p)
    if design == "late outcomes":
        # A third of the outcomes of each step come one step later.
        late = rng.random(n) < 1 / 3
        before, carried[:] = list(carried), [(y[late], p[late])]
        parts = [(y[~late], p[~late]), *before]
        y, p = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return y, p, {}


def long(runs):
    """The largest evidence in streams of 10^6 rows without a change, and its mean at their end."""
    alphas = (0.01, 0.05, 0.2, 0.5)
    print(
        "\n| design | rule | K | runs | mean evidence at the end | "
        + " | ".join(f"alarms ever, alpha {a}, %" for a in alphas)
        + " |"
    )
    print("|---|---|---:|---:|---:|" + "---:|" * len(alphas))
    designs = [
        ("independent rows", "brier", 2),
        ("independent rows", "log_score", 3),
        ("independent rows", "rps", 5),
        ("groups of 5, dependent", "brier", 3),
        ("autocorrelated within steps", "brier", 3),
        ("late outcomes", "brier", 3),
        ("late outcomes, by id", "brier", 3),
    ]
    for design, rule, k in designs:
        largest, last = [], []
        own = max(5, runs // 10) if design.endswith("by id") else runs
        for run in range(own):
            rng, carried, most = np.random.default_rng([4, run]), [], 0.0
            monitor = monitor_of(rng, rule, k, design)
            for step in range(100):
                if design.endswith("by id"):
                    _take_late(rng, monitor, step, carried)
                else:
                    y, p, more = rows_of_stream(rng, 10_000, k, design, carried)
                    monitor.update(y, p, time=step, **more)
                most = max(most, monitor.evidence)
            largest.append(most)
            last.append(monitor.evidence)
        shares = " | ".join(percent(sum(e >= 1 / a for e in largest), own) for a in alphas)
        error = np.std(last) / math.sqrt(own)
        print(
            f"| {design} | {rule} | {k} | {own} | {np.mean(last):.2f} ± {error:.2f} | {shares} |", flush=True
        )


def _take_late(rng, monitor, step, carried):
    """Note forecasts, and take in two thirds of their outcomes now and the others one step later."""
    p = forecasts(rng, 10_000, 3)
    y, ids = outcomes(rng, p), 10_000 * step + np.arange(10_000)
    monitor.predict(p, ids, time=step)
    late = rng.random(10_000) < 1 / 3
    before, carried[:] = list(carried), [(ids[late], y[late])]
    parts = [(ids[~late], y[~late]), *before]
    monitor.outcomes(*(np.concatenate([part[i] for part in parts]) for i in (0, 1)), time=step)


def step_losses(rng, steps, how, change, rows=100, k=3):
    """(steps,) mean Brier losses of a stream that changes."""
    p = forecasts(rng, steps * rows, k)
    y = outcomes(rng, p)
    if change < steps:
        y[change * rows :], p[change * rows :] = changed(rng, (steps - change) * rows, k, how)
    return vx.brier.samples(y, p).reshape(steps, rows).mean(axis=1)


def cusum(losses, reference, drift):
    """The statistic of Page after each step, for streams in rows."""
    found, now = np.empty_like(losses), np.zeros(len(losses))
    for step in range(losses.shape[1]):
        now = np.maximum(0.0, now + losses[:, step] - reference - drift / 2)
        found[:, step] = now
    return found


def page(runs):
    """Delay against a CUSUM that knows the size of the change and has the same run length without one."""
    reference, length = known_loss("brier", 3), 1 / ALPHA
    print(
        "\n| change after 20 steps of 100 rows, K = 3 | rate, steps | CUSUM tuned to it, steps "
        "| run length without change: rate | CUSUM |\n|---|---:|---:|---:|---:|"
    )
    calm = np.stack([step_losses(np.random.default_rng([5, run]), 400, "", 400) for run in range(100)])
    quiet = [_first_alarm(np.random.default_rng([6, run]), "", 999, 200) for run in range(runs)]
    for how in ("one class 10%", "one class 20%", "sharper by 1.5", "sharper by 2.5"):
        far = step_losses(np.random.default_rng(7), 200, how, 0).mean()
        statistic = cusum(calm, reference, far - reference)
        # The threshold at which streams without a change last as long as alpha asks for.
        limits = np.quantile(statistic, np.linspace(0.5, 0.9999, 400))
        lengths = np.array(
            [
                np.where((statistic >= h).any(axis=1), (statistic >= h).argmax(axis=1) + 1, 400).mean()
                for h in limits
            ]
        )
        h = limits[int(np.argmax(lengths >= length))]
        delays, tuned = [], []
        for run in range(runs):
            delays.append(_first_alarm(np.random.default_rng([8, run]), how, 20, 120) - 20)
            own = cusum(
                step_losses(np.random.default_rng([9, run]), 120, how, 20)[None, 20:],
                reference,
                far - reference,
            )
            tuned.append(int((own[0] >= h).argmax()) + 1 if (own[0] >= h).any() else 100)
        print(
            f"| {how} | {np.median([d for d in delays if d > 0]):.0f} | {np.median(tuned):.0f} "
            f"| {np.mean(quiet):.0f} | {length:.0f} |",
            flush=True,
        )


def _first_alarm(rng, how, change, steps):
    """The number of steps until the restarting monitor raises an alarm."""
    monitor = monitor_of(rng, "brier", 3, "", alpha=ALPHA, false_alarms="rate")
    for step in range(steps):
        y, p = batch(rng, 100, 3, "")[:2] if step < change else changed(rng, 100, 3, how)
        if monitor.update(y, p, time=step) is not None:
            return step + 1
    return steps


def peers(runs):
    """Detectors of river on the losses of the same streams: alarms without a change, and delays."""
    from river import drift

    made = {
        "ADWIN, default": lambda: drift.ADWIN(),
        "Page-Hinkley, default": lambda: drift.PageHinkley(),
        "Page-Hinkley, up": lambda: drift.PageHinkley(mode="up"),
        "DDM, errors": lambda: drift.binary.DDM(),
        "verax, ever": lambda: monitor_of(None, "brier", 3, ""),
        "verax, rate 1/200": lambda: monitor_of(None, "brier", 3, "", alpha=1 / 200, false_alarms="rate"),
    }
    hows = ("", "one class 20%", "sharper by 2.5")
    print(
        "\n| detector | alarms in 20,000 rows without a change, % of runs | "
        + " | ".join(f"{how}: rows until an alarm (found, %)" for how in hows[1:])
        + " |"
    )
    print("|---|---:|" + "---:|" * (len(hows) - 1))
    for name, make in made.items():
        cells = []
        for how in hows:
            found = []
            for run in range(runs):
                rng = np.random.default_rng([10, run])
                detector, alarm = make(), None
                for step in range(200):
                    after = how and step >= 50
                    y, p = changed(rng, 100, 3, how) if after else batch(rng, 100, 3, "")[:2]
                    if name.startswith("verax"):
                        hit = 100 * (step + 1) if detector.update(y, p, time=step) is not None else None
                    else:
                        wrong = p.argmax(axis=1) != y
                        values = wrong if name.startswith("DDM") else vx.brier.samples(y, p)
                        hit = None
                        for i, value in enumerate(values.tolist()):
                            detector.update(value)
                            if detector.drift_detected:
                                hit = 100 * step + i + 1
                                break
                    if hit is not None and (not how or hit > 5000):
                        alarm = hit
                        break
                    if hit is not None and name.startswith("verax"):
                        break
                found.append(alarm)
            seen = [each for each in found if each is not None]
            if how:
                delay = f"{np.median(seen) - 5000:,.0f}" if seen else "never"
                cells.append(f"{delay} ({100 * len(seen) / runs:.0f})")
            else:
                cells.append(f"{100 * len(seen) / runs:.0f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


TABLES = {
    "ever": ever,
    "rate": rate,
    "days": days,
    "found": found,
    "delay": delay,
    "long": long,
    "page": page,
    "peers": peers,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], default=[])
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    for name in asked.tables or [name for name in TABLES if name != "peers"]:
        TABLES[name](asked.runs)
