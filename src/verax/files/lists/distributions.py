"""Lists that all name all classes, as rows of full distributions."""

from __future__ import annotations

import numpy as np

from verax.files.lists.listfile import ListFile
from verax.files.predictions import Predictions, Roles


def distributions(read: ListFile) -> Predictions:
    """The rows of a file whose lists `are_distributions`: no class is unlisted, so nothing is padded."""
    classes = read.classes
    y = np.array(read.y)
    if classes is not None and not any(isinstance(name, int) for name in classes):
        place = {name: i for i, name in enumerate(classes)}
        y = np.array([place[name] for name in read.y])
    names = tuple(map(str, range(read.lists.n_classes) if classes is None else classes))
    return Predictions(
        read.path,
        y,
        read.probabilities(),
        classes,
        Roles(target=read.outcome, probs=names, id=read.id_field, by=tuple(read.by)),
        read.weights,
        read.groups,
        dict(read.by),
        None if read.ids is None else np.array(read.ids),
        rows=read.places if read.skipped is not None else None,
        skipped=read.skipped,
    )
