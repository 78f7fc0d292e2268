"""TensorBoard's event files as records with a row per run, tag and step."""

from __future__ import annotations

from pathlib import Path

from verax.common.packages import needed
from verax.common.paths import check_regular
from verax.errors import InputError
from verax.selection.trainers import Record

_MARK = "tfevents"
_LOADER = "tensorboard.backend.event_processing.event_file_loader"


def are_events(path: Path) -> bool:
    """Whether this is an event file, or a folder, in which event files are looked for."""
    return _MARK in path.name or path.is_dir()


def read_events(path: Path) -> list[Record]:
    """The scalars of an event file, or of all in a folder, whose subfolders are runs."""
    files = sorted(path.rglob(f"*{_MARK}*")) if path.is_dir() else [path]
    if not files:
        raise InputError(
            "The folder must hold event files of TensorBoard",
            argument="path",
            kind="file",
            found=f"no name in {path} contains {_MARK}",
        )
    for file in files:
        check_regular(file)
    loader = needed(_LOADER, f"Reading {files[0].name}", "tensorboard").EventFileLoader
    array_of = needed("tensorboard.util.tensor_util", "Reading it", "tensorboard").make_ndarray
    records: list[Record] = []
    for file in files:
        run = file.parent.relative_to(path).as_posix() if path.is_dir() else "."
        for event in loader(str(file)).Load():
            for value in event.summary.value:
                array = array_of(value.tensor)
                if array.size == 1 and array.dtype.kind in "fiu":
                    row = {"tag": value.tag, "step": event.step, "value": float(array.item())}
                    records.append({"run": run, **row})
    return records
