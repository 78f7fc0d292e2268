"""Probabilistic top lists: the most likely classes of each row with their probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from verax.arrays import kind_of, to_array, to_host
from verax.errors import InputError, RuleError, show
from verax.forecasts import Forecasts
from verax.labelsets import LabelSets, most_likely_sets
from verax.listed import NO_ORDER, Listed
from verax.listforms import (
    TOLERANCE,
    check_confidences,
    check_n_classes,
    check_positions,
    check_repeats,
    check_same_lists,
    check_totals,
    complete_vocabulary,
    encode,
    flatten,
    read_label_probabilities,
    to_floats,
    top_of_rows,
)
from verax.logprobs import confidences_of, read_rows
from verax.ragged import Bools, Floats, Ints, Ragged, offsets_of
from verax.validity import Unity
from verax.vocabulary import Vocabulary, positions

# The most probabilities that `padded` writes out.
MOST_PADDED = 2**28
# How far a list of log-probabilities may sum above one: interfaces print few digits.
LOGPROB_TOLERANCE = 1e-4


class TopLists:
    """For each row some of the m classes with their probabilities, most likely first.

    A list may have any length from 0 (no statement) to m (a full distribution), and lengths may
    differ. What it leaves of the probability is thought of as shared evenly by the unlisted classes;
    its share for one of them is the `proxy`. A list is `valid` if no listed class has less than that:
    otherwise it cannot be a list of the most likely classes, and is scored as its largest valid
    sublist, with a fine where the rule has one (`padded(rule)`).

    Lists are made by `from_arrays`, `from_dicts`, `from_decisions`, `from_probabilities`,
    `from_logprobs`, `from_label_probabilities` and `from_label_sets`, and checked there.

    Attributes
    ----------
    classes : (E,) codes of the listed classes, row after row; class positions unless there is a
        vocabulary.
    confidences : (E,) their probabilities.
    offsets : (N + 1,) where each list begins, and where the last one ends.
    n_classes : m, a Python integer of any size.
    vocabulary : what the codes stand for, or None.
    tolerance : how far above one the confidences of a list may sum.
    slack : how far from one the distributions sum that the lists were taken from; the test of
        validity allows for it.

    References
    ----------
    Resin (2023), https://jmlr.org/papers/v24/23-0106.html

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.5, 3: 0.1}, {2: 0.7, 0: 0.2}], n_classes=4)
    >>> lists.valid.tolist(), lists.proxy.round(3).tolist()
    ([False, True], [0.2, 0.05])
    >>> lists.largest_valid().to_dicts()
    [{0: 0.5}, {2: 0.7, 0: 0.2}]
    """

    def __init__(
        self,
        classes: Ints,
        confidences: Floats,
        offsets: Ints,
        n_classes: int,
        *,
        vocabulary: Vocabulary | None = None,
        tolerance: float = TOLERANCE,
        slack: float = 0.0,
    ) -> None:
        self.n_classes = check_n_classes(n_classes, vocabulary)
        self.vocabulary = vocabulary
        self.tolerance, self.slack = tolerance, slack
        plain = Ragged(classes, confidences, offsets)
        check_confidences(plain, tolerance)
        if vocabulary is None:
            check_positions(plain, self.n_classes)
        self._lists = Ragged.ordered(classes, confidences, offsets)
        check_repeats(self._lists, vocabulary)
        self._survey = self._lists.survey(self.n_classes, slack)
        check_totals(self._survey.total, self.lengths, self.n_classes, tolerance)

    # ---- constructors ----------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        classes: object,
        confidences: object,
        *,
        n_classes: int,
        offsets: object | None = None,
        names: Sequence[Hashable] | None = None,
    ) -> TopLists:
        """Lists from class positions and confidences.

        Parameters
        ----------
        classes, confidences : (N, k) arrays, or N sequences of different lengths; with `offsets`
            1-D arrays of all lists one after the other.
        n_classes : the number of classes m.
        offsets : (N + 1,) where each list begins, and where the last one ends.
        names : the names of all m classes, in order, if outcomes will be given by name.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_arrays([[7, 2], [2, 5]], [[0.6, 0.3], [0.9, 0.05]], n_classes=10)
        >>> round(vx.brier([7, 3], lists), 4)
        1.0258
        """
        flat, starts = flatten(classes, offsets, "classes")
        values, value_starts = flatten(confidences, offsets, "confidences")
        check_same_lists(starts, value_starts)
        vocabulary = None if names is None else complete_vocabulary(names, n_classes)
        if kind_of(flat) == "object" or (flat.dtype.kind == "u" and flat.dtype.itemsize == 8):
            vocabulary, codes = encode(flat.tolist(), n_classes, vocabulary)
        elif kind_of(flat) != "integer" and flat.size:
            raise InputError(
                f"`classes` must hold class positions (integers); its type is {flat.dtype}. "
                "Lists of names are read by from_dicts.",
                argument="classes",
            )
        else:
            codes = np.ascontiguousarray(flat, np.int64)
        tolerance = max(TOLERANCE, Unity.of(values).tolerance) if values.dtype.itemsize < 8 else TOLERANCE
        return cls(codes, to_floats(values), starts, n_classes, vocabulary=vocabulary, tolerance=tolerance)

    @classmethod
    def from_dicts(
        cls,
        rows: Iterable[Mapping[Any, float]],
        *,
        n_classes: int,
        names: Sequence[Hashable] | None = None,
        tolerance: float = TOLERANCE,
    ) -> TopLists:
        """Lists from rows of {class: confidence}.

        Classes are positions 0..m-1 or any names. `names` gives all m of them; without it the classes
        are those met in the lists, and every other outcome counts as one that no list names.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_dicts([{"cat": 0.6, "dog": 0.3}, {}], n_classes=5)
        >>> vx.log_score.samples(["emu", "cat"], lists).round(4).tolist()
        [3.4012, 1.6094]
        """
        keys: list[Hashable] = []
        values: list[float] = []
        lengths = []
        for number, row in enumerate(rows):
            if not isinstance(row, Mapping):
                raise InputError(
                    f"`rows` must hold mappings from class to confidence; row {number} holds {show(row)}.",
                    argument="rows",
                    rows=(number,),
                )
            keys.extend(row)
            values.extend(row.values())
            lengths.append(len(row))
        starts = offsets_of(np.array(lengths, np.int64))
        vocabulary = None if names is None else complete_vocabulary(names, n_classes)
        vocabulary, codes = encode(keys, n_classes, vocabulary)
        try:
            confidences = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "`rows` must give every class a number as confidence.", argument="rows"
            ) from None
        return cls(codes, confidences, starts, n_classes, vocabulary=vocabulary, tolerance=tolerance)

    @classmethod
    def from_decisions(
        cls, decisions: object, *, n_classes: int, names: Sequence[Hashable] | None = None
    ) -> TopLists:
        """Lists of the one class decided for, with certainty: what a hard classifier says.

        >>> import verax as vx
        >>> vx.brier([0, 1], vx.TopLists.from_decisions([0, 2], n_classes=5))
        1.0
        """
        vocabulary = None if names is None else complete_vocabulary(names, n_classes)
        codes = positions(decisions, n_classes, None if names is None else tuple(names))
        return cls(codes, np.ones(codes.size), np.arange(codes.size + 1), n_classes, vocabulary=vocabulary)

    @classmethod
    def from_probabilities(
        cls,
        p: object,
        k: int | None = None,
        *,
        mass: float | None = None,
        classes: Sequence[Hashable] | None = None,
        normalize: bool = False,
        logits: bool = False,
    ) -> TopLists:
        """The `k` most likely classes of each row of `p`, or as many as it takes to reach `mass`.

        Of equally likely classes those with the lowest positions are listed. `padded(rule)` is
        consistent for lists of a fixed length; for a fixed `mass` no consistent score is known, so
        compare models by lists of the same length.

        Parameters
        ----------
        p : (N, m) probabilities.
        k : the length of the lists, 0 to m.
        mass : lists that are as short as they can be and have at least this probability.
        classes : names of the columns of `p`, if outcomes will be given by name.
        normalize, logits : as for rules.

        Examples
        --------
        >>> import verax as vx
        >>> vx.TopLists.from_probabilities([[0.1, 0.6, 0.3]], 2).to_dicts()
        [{1: 0.6, 2: 0.3}]
        >>> vx.TopLists.from_probabilities([[0.1, 0.6, 0.3]], mass=0.5).to_dicts()
        [{1: 0.6}]
        """
        raw, columns = to_array(p, "p")
        n = int(raw.shape[0]) if raw.ndim else 0
        options: dict[str, Any] = {"classes": classes, "normalize": normalize, "logits": logits}
        forecasts = Forecasts(np.zeros(n, np.int64), p, **options)
        names = columns if classes is None else classes
        forecasts.check()
        m = forecasts.n_classes
        if (k is None) == (mass is None):
            raise InputError("Pass either `k`, the length of the lists, or `mass`.", argument="k")
        if k is not None and not 0 <= k <= m:
            raise InputError(f"`k` must lie between 0 and the {m} classes; it is {k}.", argument="k")
        if mass is not None and not 0 <= mass <= 1:
            raise InputError(f"`mass` must lie between 0 and 1; it is {mass}.", argument="mass")
        parts = [
            top_of_rows(to_host(batch.p).astype(np.float64, copy=False), k, mass)
            for batch in forecasts.batches(max(1, 2**20 // m))
        ]
        codes, values, lengths, totals = (np.concatenate(part) for part in zip(*parts, strict=True))
        return cls(
            codes,
            values,
            offsets_of(lengths),
            m,
            vocabulary=None if names is None else complete_vocabulary(names, m),
            tolerance=1e-6 if normalize or logits else forecasts.unity.tolerance,
            slack=float(abs(totals - 1).max()),
        )

    @classmethod
    def from_logprobs(
        cls,
        rows: object,
        *,
        n_classes: int,
        names: Sequence[Hashable] | None = None,
        tolerance: float = LOGPROB_TOLERANCE,
    ) -> TopLists:
        """Lists from log-probabilities, as language models and their interfaces return them.

        Parameters
        ----------
        rows : a row is a mapping from token (or token id) to natural log-probability, a `top_logprobs`
            array of objects with `token` and `logprob`, or a whole response of a chat-completion
            interface. The name of a JSON Lines file holds one row a line. A log-probability of
            -9999, by which interfaces say that a token is too unlikely, counts as not listed.
        n_classes : the size of the vocabulary.
        names : all m tokens in order, if known.
        tolerance : how far a list may sum above one, by the rounding of the log-probabilities.

        Examples
        --------
        >>> import verax as vx
        >>> row = [{"token": " yes", "logprob": -0.1054}, {"token": " no", "logprob": -2.5257}]
        >>> vx.TopLists.from_logprobs([row], n_classes=128256).confidences.round(3).tolist()
        [0.9, 0.08]
        """
        lists = (confidences_of(row, number) for number, row in enumerate(read_rows(rows)))
        return cls.from_dicts(lists, n_classes=n_classes, names=names, tolerance=tolerance)

    @classmethod
    def from_label_probabilities(
        cls, q: object, k: int, *, labels: Sequence[Hashable] | None = None
    ) -> TopLists:
        """The `k` most likely label sets of independent labels; the classes are all 2**L sets.

        Sets of probability zero are not listed. Outcomes are (N, L) arrays of 0 and 1, or one
        collection of labels a row.

        Parameters
        ----------
        q : (N, L) probabilities of each label.
        k : the length of the lists; at most 2**L.
        labels : names of the columns of `q`.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_label_probabilities([[0.9, 0.2, 0.6]], 3, labels=["a", "b", "c"])
        >>> [(set_, round(t, 3)) for set_, t in lists.to_dicts()[0].items()]
        [(('a', 'c'), 0.432), (('a',), 0.288), (('a', 'b', 'c'), 0.108)]
        >>> round(vx.log_score([{"a"}], lists), 4)
        1.2448
        """
        values, names = read_label_probabilities(q, labels)
        if k < 0:
            raise InputError(f"`k` must not be negative; it is {k}.", argument="k")
        numbers, confidences, lengths = most_likely_sets(values, k)
        known = LabelSets(dict.fromkeys(numbers), names)
        codes = known.outcomes(numbers)
        m = 2 ** values.shape[1]
        return cls(codes, confidences, offsets_of(lengths), m, vocabulary=known)

    @classmethod
    def from_label_sets(
        cls,
        sets: Sequence[Sequence[Any]],
        confidences: Sequence[Sequence[float]] | None = None,
        *,
        labels: Sequence[Hashable] | int,
    ) -> TopLists:
        """Lists of label sets given as they are.

        Parameters
        ----------
        sets : for each row a sequence of label sets, each a collection of labels.
        confidences : for each row their probabilities; None for one set a row, with certainty.
        labels : the labels, or how many there are if they are 0, 1, 2, ...

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_label_sets([[{0, 1}, {0}]], [[0.5, 0.25]], labels=3)
        >>> vx.log_score.samples(np.array([[1, 0, 0]]), lists).round(4).tolist()
        [1.3863]
        """
        known = LabelSets((), labels)
        numbers = known.numbers([each for row in sets for each in row], "sets")
        lengths = np.array([len(row) for row in sets], np.int64)
        if confidences is None:
            values = np.ones(len(numbers))
        else:
            values, starts = flatten(confidences, None, "confidences")
            check_same_lists(offsets_of(lengths), starts)
        vocabulary = LabelSets(dict.fromkeys(numbers), known.labels)
        codes = vocabulary.outcomes(numbers)
        m = 2 ** len(known.labels)
        return cls(codes, to_floats(values), offsets_of(lengths), m, vocabulary=vocabulary)

    # ---- what they are ---------------------------------------------------------------------

    @property
    def classes(self) -> Ints:
        return self._lists.classes

    @property
    def confidences(self) -> Floats:
        return self._lists.confidences

    @property
    def offsets(self) -> Ints:
        return self._lists.offsets

    @property
    def n_rows(self) -> int:
        """The number of lists."""
        return self._lists.n_rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of lists and the number of classes."""
        return self.n_rows, self.n_classes

    @property
    def lengths(self) -> Ints:
        """How many classes each list has."""
        return self._lists.lengths

    @property
    def unaccounted(self) -> Floats:
        """The probability that each list leaves for all unlisted classes together."""
        return self._survey.unaccounted

    @property
    def proxy(self) -> Floats:
        """What that is for one unlisted class; 0 where every class is listed."""
        unlisted = float(self.n_classes) - self.lengths
        return np.where(unlisted > 0, self.unaccounted / np.maximum(unlisted, 1.0), 0.0)

    @property
    def valid(self) -> Bools:
        """Whether each list gives every listed class at least its proxy probability."""
        valid: Bools = self._survey.kept == self.lengths
        return valid

    @property
    def n_invalid(self) -> int:
        """How many lists are not valid."""
        return int(np.count_nonzero(~self.valid))

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        shortest, longest = (self.lengths.min(), self.lengths.max()) if self.n_rows else (0, 0)
        span = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
        of = f"{self.n_classes:,}" if self.n_classes < 10**15 else f"{float(self.n_classes):.3g}"
        bad = f", {self.n_invalid:,} invalid" if self.n_invalid else ""
        return f"TopLists: {self.n_rows:,} lists of {span} out of {of} classes{bad}"

    def to_dicts(self) -> list[dict[Hashable, float]]:
        """Every list as {class: confidence}, most likely first."""
        codes: list[Any] = self.classes.tolist()
        if self.vocabulary is not None:
            codes = [self.vocabulary.name(code) for code in codes]
        values, starts = self.confidences.tolist(), self.offsets.tolist()
        return [dict(zip(codes[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(starts)]

    def __getitem__(self, rows: slice | Sequence[int] | np.ndarray[Any, Any]) -> TopLists:
        """Some of the lists: a slice, row numbers or a mask."""
        if isinstance(rows, (int, np.integer)):
            raise TypeError("lists[[i]] is the list of row i, lists.to_dicts()[i] what it says")
        return self._with(self._lists.take(np.arange(self.n_rows)[rows]))

    def __iter__(self) -> Iterator[dict[Hashable, float]]:
        return iter(self.to_dicts())

    # ---- what can be made of them ----------------------------------------------------------

    def truncate(self, k: int) -> TopLists:
        """The `k` most likely classes of every list; shorter lists stay as they are."""
        if k < 0:
            raise InputError(f"`k` must not be negative; it is {k}.", argument="k")
        return self._with(self._lists.heads(np.minimum(self.lengths, k)))

    def largest_valid(self) -> TopLists:
        """The largest valid sublist of every list: the list itself where it is valid."""
        return self._with(self._lists.heads(self._survey.kept))

    def padded(self) -> Floats:
        """Every list as a full distribution, (N, m): what is left is shared evenly by the unlisted.

        Lists are taken as they are; an invalid one is scored as `largest_valid()`. For small m only:
        no score needs this.
        """
        if self.n_rows * self.n_classes > MOST_PADDED:
            raise InputError(
                f"{self.n_rows:,} lists over {self.n_classes:,} classes are too many to write out. "
                "Every score is computed from the lists themselves.",
                argument="n_classes",
            )
        columns = self.classes
        if self.vocabulary is not None and not self.vocabulary.complete:
            if not isinstance(self.vocabulary, LabelSets):
                raise InputError(
                    "The lists name some of the classes only, so the others have no columns. "
                    "Pass names=[...] for all of them to the constructor.",
                    argument="names",
                )
            columns = np.array(self.vocabulary.names, np.int64)[columns]
        dense = np.repeat(self.proxy[:, None], self.n_classes, axis=1)
        dense[self._lists.row_of, columns] = self.confidences
        return dense

    def with_outcomes(
        self,
        y: object,
        *,
        weights: object | None = None,
        groups: object | None = None,
        ordered: bool = False,
        **options: object,
    ) -> Listed:
        """The lists as rows to be scored. Rules and `evaluate` call this; users need not."""
        if ordered:
            raise RuleError(NO_ORDER)
        for name in ("classes", "normalize", "logits"):
            if options.get(name):
                where = "the constructor of the lists" if name == "classes" else "from_probabilities"
                raise InputError(f"`{name}` does not apply to top lists: pass it to {where}.", argument=name)
        codes = positions(y, self.n_classes) if self.vocabulary is None else self.vocabulary.outcomes(y)
        return Listed(self._lists, self._survey, self.n_classes, codes, weights, groups)

    def with_class(self, position: int) -> Listed:
        """The lists as rows in which the class at this position happened, whatever its name."""
        code = position
        if self.vocabulary is not None and not self.vocabulary.complete:
            code = self.vocabulary.code_at(position)
        return Listed(self._lists, self._survey, self.n_classes, np.full(self.n_rows, code))

    def _with(self, lists: Ragged) -> TopLists:
        """Other lists over the same classes, known to be in order and free of repeats."""
        made = object.__new__(TopLists)
        made.n_classes, made.vocabulary = self.n_classes, self.vocabulary
        made.tolerance, made.slack = self.tolerance, self.slack
        made._lists = lists
        made._survey = lists.survey(self.n_classes, self.slack)
        return made
