"""Random monitors: however the rows of a step arrive, they say the same; refused calls change nothing."""

from __future__ import annotations

import math
from datetime import date, timedelta

import numpy as np

import verax as vx

THOROUGH = False


def attempt(rng):
    """One monitor fed in two ways, with calls between that must be refused."""
    k, unit = int(rng.integers(2, 5)), rng.choice([None, "row", "group", "time"])
    by = ("site",) if rng.random() < 0.4 else ()
    grouped = unit == "group" or (unit != "row" and rng.random() < 0.3)
    weighted = unit == "time" and rng.random() < 0.5
    kind = int(rng.integers(4))
    told = {
        "unit": unit,
        "period": _period(rng, kind),
        "by": by,
        "ordered": bool(rng.random() < 0.3),
        "false_alarms": str(rng.choice(["ever", "rate"])),
        "alpha": float(rng.choice([0.05, 0.3])),
    }
    reference = _reference(rng, k, told)
    plain, other = (vx.Monitor(reference, **told) for _ in range(2))
    days, late = _times(rng, kind, int(rng.integers(2, 16))), rng.random() < 0.4
    said, n = f"{told}, {k} classes, grouped={grouped}, late={late}", 0
    for day in days:
        # The first rows tell whether they have times of their own, here in each of up to three parts.
        size = int(rng.integers(1 if n else 6, 40))
        y, p = _rows(rng, size, k)
        more = {"by": {"site": np.where(rng.random(size) < 0.5, "a", "b")}} if by else {}
        beside = {"groups": rng.integers(0, 9, size)} if grouped else {}
        beside |= {"weights": rng.random(size) + 0.1} if weighted else {}
        ids = np.array([f"{n + i}" for i in range(size)])
        plain.update(y, p, time=day, ids=ids, **more, **beside)
        order = rng.permutation(size)
        _refused(rng, other, days[0], k, said)
        if late:
            _late(rng, other, (y, p, day, ids, order), more, beside)
        else:
            _in_parts(rng, other, (y, p, day, ids, order), more, beside)
        n += size
        if rng.random() < 0.3:
            other = vx.Monitor.from_bytes(other.to_bytes())
        if rng.random() < 0.3 and not late:
            _known(other, y, p, day, ids, more, beside, said)
        if plain.alarm is not None and rng.random() < 0.5:
            plain.acknowledge()
            other.acknowledge()
    assert plain.n_rows == other.n_rows == n, f"{plain.n_rows} and {other.n_rows} of {n} rows: {said}"
    _alike(plain, other, said)
    _sound(plain, said)


def _reference(rng, k, told):
    """No reference, a number, or a card of few rows, unless that is refused for having too few."""
    kind = rng.integers(3)
    if kind < 2:
        return None if kind == 0 else float(rng.uniform(0.1, 0.9))
    try:
        card = vx.evaluate(*_rows(rng, int(rng.integers(2, 80)), k), ordered=told["ordered"])
        vx.Monitor(card, **told)
    except vx.InputError:
        return None
    return card


def _period(rng, kind):
    """A period that times of this kind may have; most have none."""
    return [float(rng.uniform(0.5, 9)), "week", None, 2.5][kind] if rng.random() < 0.4 else None


def _times(rng, kind, n):
    """Times of one kind, in order."""
    steps = np.cumsum(rng.integers(1, 4, n)).tolist()
    if kind == 0:
        return steps
    if kind == 1:
        return [date(2026, 1, 1) + timedelta(days=step) for step in steps]
    return [f"{step:05}" if kind == 2 else step + 0.5 for step in steps]


def _rows(rng, n, k):
    """Forecasts and outcomes, calibrated or not."""
    p = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])), n)
    y = np.minimum((p.cumsum(axis=1) <= rng.random((n, 1))).sum(axis=1), k - 1)
    return np.where(rng.random(n) < rng.choice([0.0, 0.5]), 0, y), p


def _some(given, rows):
    return {
        name: {c: v[rows] for c, v in own.items()} if name == "by" else own[rows]
        for name, own in given.items()
    }


def _in_parts(rng, monitor, rows, more, beside):
    """A step in shards that are merged in some order."""
    y, p, day, ids, order = rows
    shards = [own for own in np.array_split(order, int(rng.integers(1, 4))) if len(own)]
    found = [monitor.observe(y[own], p[own], time=day, **_some({**more, **beside}, own)) for own in shards]
    steps = found[0]
    for shard in found[1:]:
        steps = shard.merge(steps)
    monitor.add(steps)
    monitor._state.pending.note(ids.tolist(), y)


def _late(rng, monitor, rows, more, beside):
    """The same with forecasts that come first, some of them twice."""
    y, p, day, ids, order = rows
    for own in (order, order[: int(rng.integers(0, len(order) + 1))]):
        if len(own):
            monitor.predict(p[own], ids[own], time=day, **_some({**more, **beside}, own))
    if rng.random() < 0.5:
        monitor = _replaced(monitor)
    mixed = rng.permutation(len(ids))
    monitor.outcomes(ids[mixed], y[mixed], time=day)


def _replaced(monitor):
    """The monitor with a state that was stored and read."""
    monitor._state = vx.Monitor.from_bytes(monitor.to_bytes())._state
    return monitor


def _known(monitor, y, p, day, ids, more, beside, said):
    """Rows that are known change nothing."""
    before = monitor.to_bytes()
    monitor.update(
        y[::-1], p[::-1], time=day, ids=ids[::-1], **_some({**more, **beside}, slice(None, None, -1))
    )
    assert monitor.to_bytes() == before, f"known rows were taken in: {said}"


def _refused(rng, monitor, first, k, said):
    """Calls that must be refused, and change nothing."""
    before, p = monitor.to_bytes(), np.full((2, k), 1 / k)
    time = [None, math.nan, True, math.inf, np.datetime64("NaT", "D"), "31.12.2025", {}, [1, None]][
        rng.integers(8)
    ]
    calls = [
        lambda: monitor.update([0, 1], p, time=time, by=_labels(monitor)),
        lambda: monitor.update([0, 1], p, time=first, by=np.array(["a", "b"])),
        lambda: monitor.update([0, 1], p, time=first, by={"other": ["a", "b"]}),
        lambda: monitor.update([0, k], p, time=first, by=_labels(monitor)),
        lambda: monitor.outcomes(["nobody"], [0], time=first),
        lambda: monitor.predict(p, ["x", "x"], by=_labels(monitor)),
    ]
    call = int(rng.integers(len(calls)))
    try:
        calls[call]()
    except vx.InputError:
        assert monitor.to_bytes() == before, f"call {call} was refused and changed the monitor: {said}"
    else:
        raise AssertionError(f"call {call} at {time!r} was not refused: {said}")


def _labels(monitor):
    return {"site": ["a", "b"]} if monitor.settings.by else None


def _alike(plain, other, said):
    """Both monitors have seen the same."""
    ours, theirs = plain.history.lines, other.history.lines
    assert len(ours) == len(theirs), said
    for a, b in zip(ours, theirs, strict=True):
        assert (a.time, a.n_rows) == (b.time, b.n_rows), said
        pair = [(a.loss, a.evidence, *a.interval), (b.loss, b.evidence, *b.interval)]
        assert np.allclose(*pair, rtol=1e-6, equal_nan=True), f"{pair}: {said}"
    assert (plain.alarm is None) == (other.alarm is None), said
    assert plain.cautions == other.cautions, said


def _sound(monitor, said):
    """Numbers are in their ranges, and alarms where the evidence is."""
    for line in monitor.history.lines:
        assert line.evidence >= 0, said
        assert (
            not line.interval.defined or line.interval.low <= line.loss + 1e-9 <= line.interval.high + 2e-9
        ), said
    if monitor.alarm is not None:
        at = next(line for line in monitor.history.lines if line.time == monitor.alarm.time)
        assert at.evidence >= monitor.threshold * (1 - 1e-9), said
        assert monitor.alarm.located == (
            not any("none by itself" in each for each in monitor.alarm.reasons)
        ), said
    assert monitor.verdict.startswith("Alarm" if monitor.alarm else "No alarm"), said
