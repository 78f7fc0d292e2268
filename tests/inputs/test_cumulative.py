"""Probabilities at thresholds of ordered classes: as heads return them, in memory and in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import verax as vx
from commandline import verax

RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(4), 60)
Y = (RNG.random((60, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
UP_TO = np.minimum(np.cumsum(P, axis=1)[:, :-1], 1)
# By the definition of conditional probability.
GIVEN = (1 - UP_TO) / np.column_stack([np.ones(60), 1 - UP_TO[:, :-1]])
KINDS = {"cumulative": UP_TO, "exceedance": 1 - UP_TO, "conditional": GIVEN}


@pytest.mark.parametrize("outputs", KINDS)
def test_class_probabilities_come_back(outputs):
    c = KINDS[outputs]
    np.testing.assert_allclose(vx.from_cumulative(c, outputs=outputs), P, atol=1e-12)
    logits = np.log(c) - np.log1p(-c)
    np.testing.assert_allclose(vx.from_cumulative(logits, outputs=outputs, logits=True), P, atol=1e-12)
    single = vx.from_cumulative(c.astype(np.float32), outputs=outputs)
    assert single.dtype == np.float32
    assert vx.rps(Y, single) == pytest.approx(vx.rps(Y, P), rel=1e-5)


@pytest.mark.parametrize("outputs", KINDS)
def test_gradients_pass_through_tensors(outputs):
    torch = pytest.importorskip("torch")
    z = torch.logit(torch.tensor(KINDS[outputs][:5])).requires_grad_()
    convert = lambda z: vx.from_cumulative(z, outputs=outputs, logits=True)  # noqa: E731
    assert torch.autograd.gradcheck(convert, (z,))
    # Where the logistic function is flat, the gradient is zero and not NaN.
    rising = torch.tensor([[-900.0, 0.0, 900.0]])
    far = (rising if outputs == "cumulative" else -rising).requires_grad_()
    vx.rps.samples(torch.tensor([0]), vx.from_cumulative(far, outputs=outputs, logits=True)).sum().backward()
    assert torch.isfinite(far.grad).all()


def test_heads_of_coral_pytorch_are_read_as_it_reads_them():
    torch = pytest.importorskip("torch")
    dataset = pytest.importorskip("coral_pytorch.dataset")
    z = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    corn = vx.from_cumulative(z, outputs="conditional", logits=True)
    # CORN predicts the number of thresholds whose exceedance is above a half: the median.
    median = (torch.cumsum(corn, dim=1)[:, :-1] < 0.5).sum(dim=1)
    assert torch.equal(dataset.corn_label_from_logits(z), median)
    z = z.sort(dim=1, descending=True).values
    coral = vx.from_cumulative(z, outputs="exceedance", logits=True)
    median = (torch.cumsum(coral, dim=1)[:, :-1] < 0.5).sum(dim=1)
    assert torch.equal(dataset.proba_to_label(torch.sigmoid(z)).long(), median)


def test_crossing_thresholds_are_refused_and_sorting_mends_them():
    crossed = UP_TO[:, [0, 2, 1]]
    with pytest.raises(vx.InputError, match=r"thresholds that cross: P\(Y <= k\) must not fall.*np\.sort"):
        vx.from_cumulative(crossed)
    rises = r"P\(Y > k\) must not rise.*-np\.sort\(-c, axis=1\)"
    with pytest.raises(vx.InputError, match=rises):
        vx.from_cumulative(1 - crossed, outputs="exceedance")
    # The other kind is recognised, and rounding is no crossing.
    with pytest.raises(vx.InputError, match="Pass outputs='exceedance'"):
        vx.from_cumulative(1 - UP_TO)
    assert vx.from_cumulative([[0.5, 0.5 - 1e-8, 1.0]]).min() == 0
    # Sorted rows lose no more than the crossed ones, row by row and for every outcome.
    mended = np.sort(crossed, axis=1)
    for outcome in range(4):
        happened = outcome <= np.arange(3)
        before, after = (((c - happened) ** 2).sum(axis=1) for c in (crossed, mended))
        assert (after <= before + 1e-15).all()


def test_rows_that_are_no_distributions_are_recognised():
    with pytest.raises(
        vx.InputError, match=r"if it holds P\(Y <= k\).*pass vx.from_cumulative\(p\)"
    ) as caught:
        vx.rps(Y % 3, UP_TO)
    assert "normalize" not in str(caught.value)
    with pytest.raises(vx.InputError, match=r'vx.from_cumulative\(p, outputs="exceedance"\)'):
        vx.rps(Y % 3, 1 - UP_TO)
    # Rows in no order are as before.
    with pytest.raises(vx.InputError, match="normalize=True"):
        vx.rps(Y, 1.3 * P)


@pytest.mark.parametrize(
    ("c", "options", "said"),
    [
        (UP_TO[:, 0], {}, r"shape \(N, K - 1\)"),
        (2 * UP_TO, {}, "between 0 and 1.*logits=True"),
        (UP_TO, {"outputs": "corn"}, "must be one of 'cumulative', 'exceedance' and 'conditional'|`outputs`"),
    ],
)
def test_refusals(c, options, said):
    with pytest.raises(vx.InputError, match=said):
        vx.from_cumulative(c, **options)


@pytest.mark.parametrize("outputs", KINDS)
def test_files_hold_outputs_by_name(outputs, tmp_path):
    frame = pd.DataFrame(KINDS[outputs], columns=["t0", "t1", "t2"]).assign(y=Y)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    lists = pd.DataFrame({"p": KINDS[outputs].tolist(), "y": Y})
    lists.to_parquet(tmp_path / "lists.parquet")
    np.savez(tmp_path / "a.npz", p=KINDS[outputs], y=Y)
    expected = vx.rps(Y, P)
    for name, probs in (("a.parquet", "t*"), ("a.csv", "t*"), ("lists.parquet", "p"), ("a.npz", "p")):
        handle = vx.scan(tmp_path / name, target="y", probs=probs, outputs=outputs)
        assert vx.rps(handle) == pytest.approx(expected, rel=1e-12)
    assert vx.rps(vx.scan(frame, target="y", probs="t*", outputs=outputs)) == pytest.approx(
        expected, rel=1e-12
    )
    grades = np.array(["none", "mild", "moderate", "severe"])
    frame.assign(y=grades[Y]).to_csv(tmp_path / "named.csv", index=False)
    asked = ["--target", "y", "--probs", "t0,t1,t2", "--outputs", outputs, "--classes", ",".join(grades)]
    ran = verax("evaluate", str(tmp_path / "named.csv"), *asked, "--ordered")
    assert ran.returncode == 0
    assert f"{expected:.4f}" in ran.stdout


def test_files_with_crossings_are_refused_or_skipped(tmp_path):
    crossed = UP_TO.copy()
    crossed[7] = crossed[7, ::-1]
    pd.DataFrame(crossed, columns=["t0", "t1", "t2"]).assign(y=Y).to_csv(tmp_path / "a.csv", index=False)
    how = {"target": "y", "probs": "t*", "outputs": "cumulative"}
    with pytest.raises(vx.InputError, match=r"thresholds that cross.*row 7 holds"):
        vx.rps(vx.scan(tmp_path / "a.csv", **how))
    kept = np.arange(60) != 7
    skipped = vx.scan(tmp_path / "a.csv", **how, invalid="skip")
    assert vx.rps(skipped) == pytest.approx(vx.rps(Y[kept], P[kept]), rel=1e-12)
    for wrong, said in (({"probs": None}, "must name the columns"), ({"normalize": True}, "does not apply")):
        with pytest.raises(vx.InputError, match=said):
            vx.scan(tmp_path / "a.csv", **{**how, **wrong})
