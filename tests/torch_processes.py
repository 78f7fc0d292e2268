"""Two processes that score their own rows and report what they come to together; run as a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch


def uneven_parts():
    """Rows of the first process and of the second, with weights: probabilities, outcomes, weights."""
    generator = torch.Generator().manual_seed(0)
    parts = []
    for n in (34, 70):
        p = torch.softmax(2 * torch.randn(n, 4, generator=generator, dtype=torch.float64), dim=1)
        y = torch.randint(0, 4, (n,), generator=generator)
        parts.append((p, y, torch.rand(n, generator=generator, dtype=torch.float64)))
    return parts


def in_torch(rank: int, folder: Path) -> None:
    import torch.distributed as dist

    from verax.adapters.torch import Card, Score

    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    p, y, w = uneven_parts()[rank]
    pbs, card, broken = Score("pbs"), Card(4, ordered=True), Score("brier")
    for part in torch.arange(len(y)).split(20):
        pbs.update(p[part], y[part], w[part])
        card.update(p[part], y[part], w[part])
    # One process has a row that is no forecast, and both must hear of it.
    broken.update(p[:1] * (1 - 0.5 * rank), y[:1])
    try:
        broken.compute()
        error = ""
    except ValueError as complaint:
        error = str(complaint)
    made = card.scorecard()
    report = {
        "pbs": pbs.compute().item(),
        "card": {name: value.item() for name, value in card.compute().items()},
        "rows": made.n_rows,
        "stds": [score.std for score in made.scores.values()],
        "confusion": made.confusion.tolist(),
        "error": error,
    }
    (folder / f"rank{rank}.json").write_text(json.dumps(report))
    dist.destroy_process_group()


def in_lightning(folder: Path) -> None:
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    from verax.adapters.torch import Card, Score

    class Scorer(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.val_pbs, self.card = Score("pbs"), Card(4, ordered=True, prefix="card_")

        def validation_step(self, batch):
            self.val_pbs.update(*batch)
            self.card.update(*batch)
            self.log("val_pbs", self.val_pbs)

        def on_validation_epoch_end(self):
            self.log_dict(self.card.compute())
            self.card.reset()

    rows = TensorDataset(*(torch.cat(parts) for parts in zip(*uneven_parts(), strict=True)))
    trainer = lightning.Trainer(
        accelerator="cpu",
        strategy="ddp_fork",
        devices=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        default_root_dir=folder,
    )
    (report,) = trainer.validate(Scorer(), DataLoader(rows, batch_size=16), verbose=False)
    (folder / "lightning.json").write_text(json.dumps(report))


def main(what: str, folder: Path) -> None:
    if what == "lightning":
        in_lightning(folder)
        return
    torch.multiprocessing.start_processes(in_torch, (folder,), nprocs=2, start_method="fork")
    reports = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]
    (folder / "torch.json").write_text(json.dumps(reports))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
