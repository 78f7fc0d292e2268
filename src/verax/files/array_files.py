"""Files of NumPy arrays: an .npz file, or two .npy files."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from verax.common.paths import as_path, check_exists
from verax.errors import InputError, Remedy, passing
from verax.files import arrow
from verax.files.arrow import ValueOrigin, both_classes, by_class_from, is_probability, shares
from verax.files.followed import impossible, refuse_impossible, refuse_unfollowed
from verax.files.formats.npy import Stored, find_arrays, stored_arrays, stored_classes
from verax.files.formats.several import Places, piece_name
from verax.files.labels import INTEGER, TEXT, Target, find_labels
from verax.files.predictions import Array, Followup, Predictions, Roles, together, together_ids
from verax.files.source import Source
from verax.inputs.reading import Reading, named_columns
from verax.inputs.reading_checks import PROBABILITIES
from verax.inputs.skipping import REASONS, InvalidRows

# The number of rows whose times are looked at.
_LOOK = 64


class ArrayFile(Source):
    """An .npz file, or two .npy files."""

    def __init__(self, path: Path, request: Reading) -> None:
        self.path: str = str(path)
        self._request = request
        if request.raters or request.rater_column:
            raise InputError(
                "must be columns of a table, not arrays", argument="raters", kind="file", source=self.path
            )
        arrays = stored_arrays(path)
        if path.suffix.lower() == ".npy":
            arrays, self.roles = _pair_of_files(path, arrays, request)
        else:
            self.roles = find_arrays(arrays, request, path)
            self._refuse_unfollowed(arrays)
        self.roles = replace(self.roles, outputs=request.outputs)
        self._arrays = arrays
        p, y = arrays[self.roles.probs[0]], arrays[self.roles.target]
        self._check_shapes(p)
        self.n_rows: int | None = p.shape[0]
        n_columns = 1 if len(p.shape) == 1 or p.shape[1] == 1 else p.shape[1]
        n_columns += request.outputs != PROBABILITIES
        self.width: int = max(2, n_columns)
        self._single, self._logits = n_columns == 1, request.logits
        given = request.names
        if given is None and path.suffix.lower() == ".npz":
            given = stored_classes(arrays, self.width)
        target = self._look(y)
        self._kind = target.kind
        self._labels = find_labels(target, None, n_columns, replace(request, classes=given), self.path)
        self.classes: tuple[Hashable, ...] | None = self._labels.classes
        one_hot = len(y.shape) == 2 and y.shape[1] > 1
        self.roles: Roles = replace(
            self.roles, outcomes_are="one-hot" if one_hot else self._labels.outcomes_are
        )

    def _refuse_unfollowed(self, arrays: dict[str, Stored]) -> None:
        """Refuse outcomes of two classes beside a time up to which rows were followed."""
        roles, request = self.roles, self._request
        if request.complete or request.time is not None or (*arrays[roles.probs[0]].shape[1:], 2)[0] > 2:
            return
        lines = [
            name
            for name, array in arrays.items()
            if array.dtype.kind in "fiu" and len(array.shape) == 1 and name not in roles.columns
        ]

        def first(names: Sequence[str]) -> Array:
            return np.column_stack([next(arrays[name].slices(_LOOK), np.zeros(0)) for name in names])

        stated = request.target is not None
        refuse_unfollowed(roles.target, lines, first, stated=stated, where=self.path)

    def _look(self, y: Stored) -> Target:
        """What the outcomes are, from their type and the first of them."""
        if y.dtype.kind in "biuf":
            return Target(self.roles.target, INTEGER, boolean=y.dtype.kind == "b")
        if y.dtype.kind not in "US" or len(y.shape) > 2 or (len(y.shape) == 2 and y.shape[1] != 1):
            raise y.refusal(
                "must hold positions, names of classes, or one-hot rows; "
                f"its shape is {y.shape} and its type {y.dtype}",
                "target",
            )
        first: Array = next(y.slices(2**16), np.zeros(0, "U"))
        seen = dict.fromkeys(_texts(first.ravel(), self._place("target")))
        return Target(self.roles.target, TEXT, tuple(seen))

    def _place(self, argument: str, start: int = 0) -> ValueOrigin:
        name = self.roles.probs[0] if argument == "probs" else self.roles.target
        return ValueOrigin(self.path, name, argument, start)

    def _check_shapes(self, p: Stored) -> None:
        if len(p.shape) not in (1, 2) or 0 in p.shape[1:] or p.dtype.kind not in "fiu":
            raise p.refusal(
                f"must hold probabilities of shape (N, K); its shape is {p.shape} and its type {p.dtype}",
                "probs",
            )
        for name in self.roles.columns:
            stored = self._arrays[name]
            if not stored.shape or stored.shape[0] != p.shape[0]:
                raise stored.refusal(
                    f"must have {p.shape[0]} rows, like the probabilities; its shape is {stored.shape}"
                )
            if name == self.roles.time and stored.dtype.kind not in "fiu":
                raise stored.refusal(f"must hold times as numbers; its type is {stored.dtype}", "time")
            single = len(stored.shape) == 1 or stored.shape[1:] == (1,)
            if name not in (self.roles.probs[0], self.roles.target) and not single:
                raise stored.refusal(f"must have one value per row; its shape is {stored.shape}")

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        streams = {name: self._arrays[name].slices(rows) for name in self.roles.columns}
        start = 0
        for parts in zip(*streams.values(), strict=True):
            arrays = dict(zip(streams, parts, strict=True))
            n = len(arrays[self.roles.probs[0]])
            if self._request.invalid == "skip":
                survey = self._unusable(arrays)
                usable = {name: values[survey.kept] for name, values in arrays.items()}
                batch = self._predictions(usable, start)
                yield replace(batch, rows=start + survey.kept, skipped=survey.skipped(start))
            else:
                yield self._predictions(arrays, start)
            start += n

    def _unusable(self, arrays: dict[str, Array]) -> InvalidRows:
        """The rows with an invalid outcome, or an invalid probability in a single column."""
        p, y = arrays[self.roles.probs[0]], arrays[self.roles.target]
        survey = InvalidRows(len(p))
        if self._single and not self._logits:
            numbers = shares(p.reshape(-1), self._request)
            odd = np.flatnonzero(~is_probability(numbers))
            survey.add_numbers(odd, numbers[odd])
        if self.roles.time is not None:
            survey.add(impossible(arrays[self.roles.time].reshape(-1)), REASONS["time", "sign"])
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if self._kind == TEXT:
            texts, codes = np.unique(y, return_inverse=True)
            survey.add(
                self._labels.positions(codes, _texts(texts, self._place("target"))) < 0, REASONS["y", "label"]
            )
        elif y.ndim == 1:
            survey.add(self._labels.positions_where_whole(y) < 0, REASONS["y", "label"])
        return survey

    def _predictions(self, arrays: dict[str, Array], start: int) -> Predictions:
        roles = self.roles

        def column(name: str | None) -> Array | None:
            return None if name is None else arrays[name].reshape(-1)

        p = shares(arrays[roles.probs[0]], self._request)
        p = by_class_from(p, self._request, start, self.path)
        if self._single:
            p = both_classes(p.reshape(-1), self._place("probs", start), self._logits)
        return Predictions(
            self.path,
            self._outcomes(arrays[roles.target], start),
            _floating(p),
            self.classes,
            roles,
            column(roles.weights),
            together([column(name) for name in named_columns(roles.groups)]),
            {name: arrays[name].reshape(-1) for name in roles.by},
            together_ids([arrays[name].reshape(-1) for name in named_columns(roles.id)]),
            times=self._times(column(roles.time), start),
        )

    def _times(self, times: Array | None, start: int) -> Array | None:
        """The times up to which rows were followed."""
        if times is None:
            return None
        refuse_impossible(times, ValueOrigin(self.path, self.roles.time or "", "time", start))
        return times

    def _outcomes(self, y: Array, start: int) -> Array:
        place = self._place("target", start)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if self._kind == TEXT:
            texts, codes = np.unique(y, return_inverse=True)
            return self._labels.encode_texts(codes, _texts(texts, place), place)
        if y.ndim > 1 or self.classes is None:
            return y
        whole = arrow.integers(pa.chunked_array([pa.array(np.ascontiguousarray(y))]), place)
        return self._labels.encode_integers(whole, place)


class ArrayFiles(Source):
    """Files of arrays, one after the other. Their batches are called by the file that they are from."""

    def __init__(self, paths: Sequence[Path], request: Reading, name: str) -> None:
        self.path: str = name
        self._request = request
        self._files = [ArrayFile(path, request) for path in paths]
        first = self._files[0]
        for file in self._files[1:]:
            if (file.classes, file.width) != (first.classes, first.width):
                raise InputError(
                    "All files must have the same classes",
                    argument="path",
                    kind="length" if file.width != first.width else "label",
                    found=f"{first.path} has {first.width:,} others or in another order",
                    source=file.path,
                )
        self.n_rows: int | None = sum(file.n_rows or 0 for file in self._files)
        self.classes: tuple[Hashable, ...] | None = first.classes
        self.width: int = first.width
        self.roles: Roles = first.roles
        self._places = Places()

    @property
    def followup(self) -> Followup | None:
        """How outcomes are judged at a horizon."""
        return self.roles.followup

    @followup.setter
    def followup(self, followup: Followup | None) -> None:
        for source in (self, *self._files):
            source.roles = replace(source.roles, followup=followup)

    def heads(self, rows: int) -> Iterator[tuple[str, list[Hashable], list[Hashable] | None]]:
        """The first rows of each of several files: its name, their outcomes, and their ids if it has any."""
        for file in self._files if len(self._files) > 1 else ():
            for batch in islice(file.given(rows, coded=True), 1) if file.n_rows else ():
                outcomes = [tuple(row) if isinstance(row, list) else row for row in batch.y.tolist()]
                yield file.path, outcomes, None if batch.ids is None else batch.ids.tolist()

    def place_of(self, row: int) -> str:
        """The file that a row is in."""
        return self._places.of(row)

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        start = 0
        for file in self._files:
            # Files may be empty where others are not.
            self._places.note(start, file.path)
            for batch in file.given(rows, coded=coded) if file.n_rows else ():
                yield replace(batch.moved(start), path=piece_name(file.path, start))
            start += file.n_rows or 0


def _texts(values: Array, place: ValueOrigin) -> list[str]:
    """Texts of an array; bytes must be UTF-8."""
    try:
        return [v.decode() if isinstance(v, bytes) else str(v) for v in values.tolist()]
    except UnicodeDecodeError:
        raise place.refusal("must hold texts", "it holds bytes that are not UTF-8") from None


def _pair_of_files(
    path: Path, arrays: dict[str, Stored], request: Reading
) -> tuple[dict[str, Stored], Roles]:
    if request.target is None:
        raise InputError(
            f"{path} holds one array, the probabilities; the outcomes are in another .npy file",
            argument="target",
            kind="missing",
            remedies=[passing("(that file)", target=...)],
        )
    other = as_path(request.target)
    beside = path.parent / other
    other = beside if beside.exists() and not other.exists() else other
    check_exists(other)
    if other.suffix.lower() != ".npy":
        raise InputError(f"{other} must be a .npy file, like {path.name}", argument="target", kind="file")
    if request.weights or request.groups or request.by or request.id or request.time:
        raise InputError(
            f"{path} has no columns for weights, groups, subgroups, ids or times",
            argument="path",
            kind="missing",
            remedies=[Remedy("Put everything into one .npz file.")],
        )
    name = other.name if other.name != path.name else str(other)
    (stored,) = stored_arrays(other).values()
    return {**arrays, name: stored}, Roles(name, (path.name,), logits=request.logits)


def _floating(p: Array) -> Array:
    return p if p.dtype in (np.float16, np.float32, np.float64) else p.astype(np.float64)
