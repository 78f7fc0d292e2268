"""Probabilistic top lists: the most likely classes of each row with their probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from verax.common.checks import as_float, check_count, check_flag, check_number, in_digits
from verax.errors import InputError, Remedy, RuleError, show
from verax.inputs.arrays import Bools, Floats, Ints, to_array, to_host
from verax.inputs.lists.ragged import Ragged
from verax.inputs.lists.reading import (
    TOLERANCE,
    Made,
    check_confidences,
    check_positions,
    check_repeats,
    check_size,
    check_totals,
    flat_lists,
    of_arrays,
    of_decisions,
    of_dicts,
    of_label_probabilities,
    of_label_sets,
    of_probabilities,
)
from verax.inputs.lists.rows import NO_ORDER, KeptStatistics, ListRows
from verax.inputs.lists.vocabulary import ClassVocabulary, LabelSets, match_outcomes

# The most probabilities that `padded` writes out.
MOST_PADDED = 2**28
# The sum of a list of log-probabilities may be above 1 by this much: interfaces print few digits.
LOGPROB_TOLERANCE = 1e-4


class TopLists:
    """For each row some of the m classes with their probabilities, most likely first.

    A list may have any length from 0 (no statement) to m (a full distribution), and lengths may
    differ. The probability that a list leaves is divided evenly among the unlisted classes; the share
    of one of them is the `proxy`. A list is `valid` if no listed class has less than that. Otherwise
    it cannot be a list of the most likely classes, and is scored as its largest valid sublist, with a
    fine where the rule has one (`padded(rule)`).

    Lists are made by `from_arrays`, `from_dicts`, `from_decisions`, `from_probabilities`,
    `from_logprobs`, `from_label_probabilities` and `from_label_sets`. These check the lists and copy
    them: changing the arguments afterwards does not change the lists.

    Parameters
    ----------
    classes : array of shape (E,)
        Codes of the listed classes, row after row: class positions unless there is a vocabulary.
    confidences : array of shape (E,)
        Their probabilities.
    offsets : array of shape (N + 1,)
        Where each list begins, and where the last one ends.
    n_classes : int
        The number of classes m, of any size up to 2**900; of label sets up to 2**10,000.
    vocabulary : ClassVocabulary, optional
        The classes behind the codes.
    tolerance : float, default 1e-6
        The confidences of a list may sum to this much more than 1, as for dense rows.
    slack : float, optional
        How far the sums of the distributions that the lists were taken from may differ from 1; by default the
        tolerance. What a list leaves is known no better than that, so the test of validity allows for it.
    choices : array of shape (N,), optional
        The number of classes that each row can have, where questions have fewer choices than there are
        classes: the reference "uniform" gives each of these the same probability. By default `n_classes`.

    Attributes
    ----------
    n_reordered : int
        How many entries stood below a less likely one when the lists were read.
    several : array of bool of shape (N,) or None
        Whether other lists of the same length are as true, because an unlisted class is as likely as a listed
        one; None where the full distributions are not known. `from_probabilities` lists the lowest positions.
    mass : float or None
        The probability at which the lists were cut, if not by length.

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

    # For the outcomes last scored: several rules in a row read the lists once.
    _kept: KeptStatistics | None = None
    choices: Ints | None = None
    several: Bools | None = None
    mass: float | None = None

    def __init__(
        self,
        classes: Ints,
        confidences: Floats,
        offsets: Ints,
        n_classes: int,
        *,
        vocabulary: ClassVocabulary | None = None,
        tolerance: float = TOLERANCE,
        slack: float | None = None,
        choices: Ints | None = None,
    ) -> None:
        self.choices = None if choices is None else _numbers_of_choices(choices)
        if vocabulary is not None and not isinstance(vocabulary, ClassVocabulary):
            raise InputError("must be a ClassVocabulary or None", argument="vocabulary", kind="type")
        self.n_classes: int = check_size(n_classes, vocabulary)
        self.vocabulary = vocabulary
        self.tolerance: float = _amount("tolerance", tolerance)
        self.slack: float = self.tolerance if slack is None else _amount("slack", slack)
        given = flat_lists(classes, confidences, offsets)
        n_codes = self.n_classes if vocabulary is None else len(vocabulary)
        taken = given.taken_in(self.n_classes, n_codes, self.tolerance, self.slack)
        self.n_reordered: int
        if taken is not None:
            self._lists, self._survey, self.n_reordered = taken
            return
        given = given.copied()
        check_confidences(given, self.tolerance)
        check_positions(given, n_codes)
        self.n_reordered = given.rising()
        self._lists = given.ordered()
        check_repeats(self._lists, vocabulary)
        self._survey = self._lists.survey(self.n_classes, self.slack)
        check_totals(self._survey.total, self.lengths, self.n_classes, self.tolerance)

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
        normalize: bool = False,
    ) -> TopLists:
        """Lists from classes and confidences in arrays or columns.

        Parameters
        ----------
        classes : array_like of shape (N, k), or N sequences
            Positions or names of classes: an array, N sequences of different lengths, or a column of lists
            (pandas, polars, pyarrow); with `offsets` a 1-D array of all lists one after the other.
        confidences : array_like of shape (N, k), or N sequences
            Their probabilities, in the same form.
        n_classes : int
            The number of classes m.
        offsets : array_like of shape (N + 1,), optional
            Where each list begins, and where the last one ends.
        names : sequence of m labels, optional
            The names of all m classes, in order, if outcomes will be given by name.
        normalize : bool, default False
            Whether to divide lists that name all classes by their sum. Shorter lists stay as they are.

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_arrays([[7, 2], [2, 5]], [[0.6, 0.3], [0.9, 0.05]], n_classes=10)
        >>> round(vx.brier([7, 3], lists), 4)
        1.0258
        """
        return cls._made(of_arrays(classes, confidences, n_classes, offsets, names, normalize))

    @classmethod
    def from_dicts(
        cls,
        rows: Iterable[Mapping[Any, float]],
        *,
        n_classes: int,
        names: Sequence[Hashable] | None = None,
        tolerance: float = TOLERANCE,
        normalize: bool = False,
    ) -> TopLists:
        """Lists from rows of {class: confidence}.

        Parameters
        ----------
        rows : iterable of mappings
            For each row the confidences by class: positions 0..m-1 or any names.
        n_classes : int
            The number of classes m.
        names : sequence of m labels, optional
            The names of all m classes, in order. Without it the named classes are those in the lists, and any
            other outcome is a class that no list names.
        tolerance : float, default 1e-6
            The confidences of a list may sum to this much more than 1.
        normalize : bool, default False
            Whether to divide lists that name all classes by their sum. Shorter lists stay as they are.

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_dicts([{"cat": 0.6, "dog": 0.3}, {}], n_classes=5)
        >>> vx.log_score.samples(["emu", "cat"], lists).round(4).tolist()
        [3.4012, 1.6094]
        """
        return cls._made(of_dicts(rows, n_classes, names, tolerance, normalize))

    @classmethod
    def from_decisions(
        cls, decisions: object, *, n_classes: int, names: Sequence[Hashable] | None = None
    ) -> TopLists:
        """Lists of the one class decided for, with certainty: what a hard classifier says.

        Parameters
        ----------
        decisions : array_like of shape (N,)
            Positions or names of classes.
        n_classes : int
            The number of classes m.
        names : sequence of m labels, optional
            The names of all m classes, in order, if outcomes will be given by name.

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> vx.brier([0, 1], vx.TopLists.from_decisions([0, 2], n_classes=5))
        1.0
        """
        return cls._made(of_decisions(decisions, n_classes, names))

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
        """The `k` most likely classes of each row of `p`, or those that together reach `mass`.

        Of equally likely classes those with the lowest positions are listed; `several` tells in which rows
        other lists are as true. They have the same expected loss by a padded rule. `padded(rule)` is
        consistent for lists of a fixed length. For a fixed `mass` no consistent score is known, so
        compare models by lists of the same length.

        Parameters
        ----------
        p : array_like of shape (N, m)
            Forecasts: probabilities of the m classes.
        k : int, optional
            The length of the lists, 0 to m.
        mass : float, optional
            Make each list as short as possible with at least this probability.
        classes : sequence of m labels, optional
            Names of the columns of `p`, if outcomes will be given by name.
        normalize : bool, default False
            Whether to divide each row of `p` by its sum first.
        logits : bool, default False
            Whether `p` holds logits; the softmax is applied first.

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> vx.TopLists.from_probabilities([[0.1, 0.6, 0.3]], 2).to_dicts()
        [{1: 0.6, 2: 0.3}]
        >>> vx.TopLists.from_probabilities([[0.1, 0.6, 0.3]], mass=0.5).to_dicts()
        [{1: 0.6}]
        >>> vx.TopLists.from_probabilities([[0.3, 0.4, 0.3]], 2)
        TopLists: 1 lists of 2 out of 3 classes, 1 of several that are as true
        """
        options = {"classes": classes, "normalize": normalize, "logits": logits}
        made, several = of_probabilities(p, k, mass, options)
        lists = cls._made(made)
        lists.several, lists.mass = several, mass
        return lists

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
        rows : iterable, str or path
            Each row is a mapping from token (or token id) to natural log-probability, a `top_logprobs`
            array of objects with `token` and `logprob`, or a whole response of an interface for language
            models (docs/guide/listfiles.md); or the name of a JSON Lines file with one row per line. Tokens
            with a log-probability of -9999, which interfaces write for "too unlikely", are not listed.
            Where `top_logprobs` is empty, the chosen token is listed with its own log-probability. The first
            token of the first sample is read; `files.lists.open_lists` chooses others, and counts samples.
        n_classes : int
            The size of the vocabulary.
        names : sequence of m labels, optional
            All m tokens in order, if known.
        tolerance : float, default 1e-4
            The confidences of a list may sum to this much more than 1, because log-probabilities are rounded.

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> row = [{"token": " yes", "logprob": -0.1054}, {"token": " no", "logprob": -2.5257}]
        >>> vx.TopLists.from_logprobs([row], n_classes=128256).confidences.round(3).tolist()
        [0.9, 0.08]
        """
        # Shapes of responses and logs are many, and few programs need them.
        from verax.inputs.lists.logprobs import confidences_of, read_rows

        lists = (confidences_of(row, number) for number, row in enumerate(read_rows(rows)))
        return cls.from_dicts(lists, n_classes=n_classes, names=names, tolerance=tolerance)

    @classmethod
    def from_label_probabilities(
        cls, q: object, k: int, *, labels: Sequence[Hashable] | None = None
    ) -> TopLists:
        """The `k` most likely label sets of independent labels; the classes are all 2**L sets.

        Sets of probability zero are not listed. Outcomes are (N, L) arrays of 0 and 1, or one
        collection of labels per row.

        Parameters
        ----------
        q : array_like of shape (N, L)
            Probabilities of each label.
        k : int
            The length of the lists.
        labels : sequence of L labels, optional
            Names of the columns of `q`.

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_label_probabilities([[0.9, 0.2, 0.6]], 3, labels=["a", "b", "c"])
        >>> [(set_, round(t, 3)) for set_, t in lists.to_dicts()[0].items()]
        [(('a', 'c'), 0.432), (('a',), 0.288), (('a', 'b', 'c'), 0.108)]
        >>> round(vx.log_score([{"a"}], lists), 4)
        1.2448
        """
        return cls._made(of_label_probabilities(q, k, labels))

    @classmethod
    def from_label_sets(
        cls,
        sets: Sequence[Sequence[Any]],
        confidences: Sequence[Sequence[float]] | None = None,
        *,
        labels: Sequence[Hashable] | int,
    ) -> TopLists:
        """Lists of given label sets.

        Parameters
        ----------
        sets : sequence of sequences
            For each row a sequence of label sets, each a collection of labels.
        confidences : sequence of sequences of floats, optional
            For each row the probabilities of its sets; without it every set is certain, and a row has
            at most one.
        labels : sequence of labels or int
            The labels, or how many there are if they are 0, 1, 2, ...

        Returns
        -------
        TopLists
            The lists.

        Examples
        --------
        >>> import verax as vx
        >>> lists = vx.TopLists.from_label_sets([[{0, 1}, {0}]], [[0.5, 0.25]], labels=3)
        >>> vx.log_score.samples(np.array([[1, 0, 0]]), lists).round(4).tolist()
        [1.3863]
        """
        return cls._made(of_label_sets(sets, confidences, labels))

    @classmethod
    def _made(cls, made: Made) -> TopLists:
        lists, form = made
        return cls(*lists, **form)

    # ---- properties ------------------------------------------------------------------------

    @property
    def classes(self) -> Ints:
        """Codes of the listed classes, row after row, (E,): positions unless there is a vocabulary."""
        return self._lists.classes

    @property
    def confidences(self) -> Floats:
        """The probabilities of the listed classes, row after row, (E,)."""
        return self._lists.confidences

    @property
    def offsets(self) -> Ints:
        """Where each list begins, and where the last one ends, (N + 1,)."""
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
        """The number of classes in each list."""
        return self._lists.lengths

    @property
    def totals(self) -> Floats:
        """The sum of the probabilities of each list."""
        return self._survey.total

    @property
    def unaccounted(self) -> Floats:
        """The probability that each list leaves for all unlisted classes together."""
        return self._survey.unaccounted

    @property
    def proxy(self) -> Floats:
        """The unaccounted probability per unlisted class; 0 if every class is listed."""
        unlisted = as_float(self.n_classes) - self.lengths
        return np.where(unlisted > 0, self.unaccounted / np.maximum(unlisted, 1.0), 0.0)

    @property
    def valid(self) -> Bools:
        """Whether each list gives every listed class at least its proxy probability."""
        valid: Bools = self._survey.kept == self.lengths
        return valid

    @property
    def n_invalid(self) -> int:
        """The number of invalid lists."""
        return int(np.count_nonzero(~self.valid))

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        shortest, longest = (self.lengths.min(), self.lengths.max()) if self.n_rows else (0, 0)
        span = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
        bad = f", {self.n_invalid:,} invalid" if self.n_invalid else ""
        if self.several is not None and self.several.any():
            bad += f", {np.count_nonzero(self.several):,} of several that are as true"
        return f"TopLists: {self.n_rows:,} lists of {span} out of {in_digits(self.n_classes, 3)} classes{bad}"

    def to_dicts(self) -> list[dict[Hashable, float]]:
        """Every list as {class: confidence}, most likely first."""
        codes: list[Any] = self.classes.tolist()
        if self.vocabulary is not None:
            codes = [self.vocabulary.name(code) for code in codes]
        values, starts = self.confidences.tolist(), self.offsets.tolist()
        return [dict(zip(codes[a:b], values[a:b], strict=True)) for a, b in itertools.pairwise(starts)]

    def __getitem__(self, rows: slice | Sequence[int] | np.ndarray[Any, Any]) -> TopLists:
        """Some of the lists: a slice, row numbers or a mask."""
        try:
            chosen = np.arange(self.n_rows)[rows]
        except (IndexError, TypeError, ValueError, OverflowError, RuntimeError):
            chosen = None
        if not isinstance(chosen, np.ndarray) or chosen.ndim != 1:
            raise InputError(
                f"must be a slice, a mask, or row numbers from 0 to {self.n_rows - 1}",
                argument="rows",
                found=f"it is {show(rows)}",
                remedies=[Remedy("For one list, write lists[[i]] or lists.to_dicts()[i].", python_only=True)],
            )
        made = self._with(self._lists.take(chosen))
        made.choices = None if self.choices is None else self.choices[chosen]
        made.several = None if self.several is None else self.several[chosen]
        return made

    def __iter__(self) -> Iterator[dict[Hashable, float]]:
        return iter(self.to_dicts())

    # ---- derived lists ---------------------------------------------------------------------

    def truncate(self, k: int) -> TopLists:
        """The `k` most likely classes of every list; shorter lists stay unchanged.

        Parameters
        ----------
        k : int
            The length of the lists.

        Returns
        -------
        TopLists
            New lists.
        """
        check_count("k", k, least=0)
        longest = int(self.lengths.max(initial=0))
        return self._with(self._lists.heads(np.minimum(self.lengths, min(int(k), longest))))

    def largest_valid(self) -> TopLists:
        """The largest valid sublist of every list: the list itself where it is valid.

        There is only one. Entries with the same confidence stay together: leaving out one that has less than
        the proxy lowers the proxy, but not to that confidence.
        """
        return self._with(self._lists.heads(self._survey.kept))

    def padded(self) -> Floats:
        """Every list as a full distribution, (N, m): unlisted classes share the rest evenly.

        Invalid lists are padded as they are, although they are scored as `largest_valid()`. For small m
        only; scores are computed without this.
        """
        if self.n_rows * self.n_classes > MOST_PADDED:
            raise InputError(
                f"times the number of lists must be at most {MOST_PADDED:,} to write all probabilities out",
                argument="n_classes",
                found=f"there are {self.n_rows:,} lists over {in_digits(self.n_classes, 3)} classes",
                remedies=[Remedy("Scores are computed from the lists themselves.")],
            )
        columns = self.classes
        if self.vocabulary is not None and not self.vocabulary.complete:
            if not isinstance(self.vocabulary, LabelSets):
                raise InputError(
                    "must be known for all classes, because each has a column",
                    argument="names",
                    kind="missing",
                    found="the lists name some of the classes only",
                    remedies=[Remedy("Name all classes when making the lists.")],
                )
            columns = np.array(self.vocabulary.names, np.int64)[columns]
        dense = np.repeat(self.proxy[:, None], self.n_classes, axis=1)
        dense[self._lists.row_of, columns] = self.confidences
        return dense

    def with_outcomes(
        self,
        y: object,
        *,
        classes: object | None = None,
        weights: object | None = None,
        groups: object | None = None,
        normalize: bool = False,
        logits: bool = False,
        ordered: bool = False,
        part: bool = False,
        first_row: int = 0,
    ) -> ListRows:
        """The lists as rows to be scored; called by rules and `evaluate`.

        Parameters
        ----------
        y : array_like of shape (N,) or (N, L)
            Outcomes: class positions, labels of the lists, or label sets.
        classes : sequence of m labels, optional
            The names of all m classes, in order; they may be more than the lists name.
        weights : array_like of shape (N,), optional
            Importance weights of the rows, not negative, not all zero. Only their ratios matter.
        groups : array_like of shape (N,), or two of them, optional
            Labels of clusters (patients, sites) whose rows belong together and are resampled together.
        normalize : bool, default False
            Refused if true: it is stated when the lists are made.
        logits : bool, default False
            Refused if true: it is stated when the lists are made.
        ordered : bool, default False
            Refused if true: lists have no cumulative probabilities.
        part : bool, default False
            Whether these are a part of all rows, which may have no row and no weight.
        first_row : int, default 0
            The number of the first row.

        Returns
        -------
        ListRows
            The lists with their outcomes.
        """
        flags = {"normalize": normalize, "logits": logits, "ordered": ordered, "part": part}
        given = {name: check_flag(name, flag) for name, flag in flags.items()}
        part = given.pop("part")
        if given.pop("ordered"):
            raise RuleError(NO_ORDER)
        for name in (name for name, passed in given.items() if passed):
            raise InputError(
                "does not apply to top lists",
                argument=name,
                remedies=[Remedy("State it when making the lists.", python_only=True)],
            )
        vocabulary, codes = match_outcomes(self.vocabulary, self.n_classes, y, classes)
        kept = None
        if not part:
            kept = self._kept
            if kept is None or not kept.are_of(codes):
                kept = self._kept = KeptStatistics(codes)
            codes = kept.y
        checked = self._lists, self._survey, self.n_classes, codes, weights, groups
        return ListRows(
            *checked,
            part=part,
            vocabulary=vocabulary,
            given=y,
            first_row=first_row,
            n_reordered=self.n_reordered,
            kept=kept,
            choices=self.choices,
            by_mass=self.mass is not None,
        )

    def with_class(self, position: int) -> ListRows:
        """The lists as rows in which the class at this position happened, whatever its name.

        Parameters
        ----------
        position : int
            The position of the class.

        Returns
        -------
        ListRows
            The lists with that outcome in every row.
        """
        check_count("position", position, least=0)
        if position >= self.n_classes:
            raise InputError(
                f"must be below the {in_digits(self.n_classes, 3)} classes, not {show(position)}",
                argument="position",
                values=[position],
            )
        code = position
        if self.vocabulary is not None and not self.vocabulary.complete:
            code = self.vocabulary.code_at(position)
        return ListRows(self._lists, self._survey, self.n_classes, np.full(self.n_rows, code))

    def __getstate__(self) -> dict[str, Any]:
        # Kept statistics can be recomputed and need not travel.
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def _with(self, lists: Ragged) -> TopLists:
        """Other lists over the same classes, known to be ordered and without repeats."""
        made = object.__new__(TopLists)
        made.n_classes, made.vocabulary = self.n_classes, self.vocabulary
        made.tolerance, made.slack, made.n_reordered = self.tolerance, self.slack, 0
        made.choices, made.mass = self.choices, self.mass
        made._lists = lists
        made._survey = lists.survey(self.n_classes, self.slack)
        return made


def _numbers_of_choices(choices: object) -> Ints:
    """The number of classes that each row can have."""
    numbers = to_host(to_array(choices, "choices")[0])
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InputError(
            "must be a whole number for each row",
            argument="choices",
            kind="type",
            found=f"its shape is {numbers.shape} and its type {numbers.dtype}",
        )
    return numbers.astype(np.int64)


def _amount(argument: str, value: object) -> float:
    requirement = "must be a finite number that is not negative"
    return check_number(argument, value, requirement, lambda amount: amount >= 0)
