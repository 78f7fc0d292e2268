"""`open_lists`: any file of lists, by its content."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Unpack

from verax.common.checks import is_whole
from verax.common.paths import files_named
from verax.errors import InputError, show
from verax.files.lists.listfile import ListFile
from verax.files.lists.reading import RecordReader
from verax.files.lists.recognising import has_lists, open_shaped
from verax.files.lists.several import read_several
from verax.inputs.reading import Keywords, Reading


def open_lists(
    path: str | Path | Sequence[str | Path],
    *,
    outcome: str | None = None,
    outcomes: str | Path | None = None,
    id: str | Sequence[str] | None = None,  # noqa: A002
    classes: int | Iterable[Hashable] | None = None,
    weights: str | None = None,
    groups: str | Sequence[str] | None = None,
    by: Sequence[str] = (),
    shape: str | None = None,
    position: int | None = None,
    after: str | None = None,
    last_match: bool = False,
    samples: Literal["first", "pool", "repeats"] = "first",
    per_length: bool = False,
    normalize: bool = False,
    invalid: Literal["raise", "skip"] = "raise",
    missing: Literal["raise", "omit"] = "raise",
    others: Literal["raise", "omit"] = "raise",
    merge_variants: str | None = None,
    delimiter: str | None = None,
) -> ListFile:
    r"""Read a file with a list per record; its shape is recognised by its content.

    Parameters
    ----------
    path : str, Path or sequence
        JSON Lines (also .gz, .bz2, .zst), a JSON document, Parquet or Arrow with columns of lists, CSV with a
        line per row and class, a run in TREC's format, predictions of fastText. Or a pattern such as
        `"answers/*.jsonl"` that several files fit, or a list of files.
    outcome : str, optional
        The field that holds what happened, in the records or in the file `outcomes`; dots lead into nested
        fields. By default the only one with a usual name (outcome, target, label, answer, ...).
    outcomes : str or Path, optional
        Another file that holds what happened: CSV, JSON Lines, Parquet, or text with one outcome per line.
    id : str or sequence of str, optional
        The field that identifies records, or several that do together. Outcomes of another file are matched
        by it; without it by order.
    classes : int or iterable of hashable, optional
        The number of classes, such as the size of a vocabulary, or the names of all. Needed where lists do
        not name all classes.
    weights : str, optional
        The field of importance weights.
    groups : str or sequence of two str, optional
        The field of clusters whose records belong together; two where they belong together in two ways.
    by : sequence of str
        Fields of subgroups.
    shape : str, optional
        The name of a shape, instead of recognising it.
    position : int, optional
        Which generated token to read, counted from 0; -1 is the last. By default the first, which is refused
        where most records answer in a later token, as after reasoning.
    after : str, optional
        A regular expression, in place of a position: the token with the first word after its first match is
        read, or the token with its group, as in r"Answer:\s*\(?([A-D])".
    last_match : bool
        Read the token at the last match of `after`, not the first.
    samples : {"first", "pool", "repeats"}
        Use of several sampled answers to a request: read the first, average them into one list, or keep each
        as a row; rows of one request form a group. Without log-probabilities, "pool" lists the share of each
        answer: the whole text, or what `after` finds in it.
    per_length : bool
        Divide log-likelihoods of choices by their numbers of characters before the softmax (lm-eval).
    normalize : bool
        Divide by their sums lists that name all classes; with `others="omit"` also those that lack some. They
        are counted.
    invalid : {"raise", "skip"}
        Refuse records that are invalid, failed or incomplete, or leave them out; they are counted.
    missing : {"raise", "omit"}
        Refuse entries without a number, or leave them out of their lists; they are counted.
    others : {"raise", "omit"}
        Refuse entries that are none of the named `classes`, or leave them out of their lists; they are
        counted, with their probability.
    merge_variants : {"same", "space", "case", "punctuation"}, optional
        Add the probabilities of entries with the same text; of texts that differ in white space around them;
        also in case; also in punctuation around them. Outcomes are changed in the same way.
    delimiter : str, optional
        Of CSV files.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from verax.files.lists import open_lists
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.jsonl")
    >>> top = [{"token": " yes", "logprob": -0.1}, {"token": "Yes", "logprob": -3}]
    >>> record = {"outcome": "yes", "choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]}
    >>> _ = path.write_text(json.dumps(record))
    >>> read = open_lists(path, classes=128256, merge_variants="case")
    >>> [{token: round(p, 4) for token, p in row.items()} for row in read.lists], read.y
    ([{'yes': 0.9546}], ['yes'])
    """
    settings = Reading(
        lists=True,
        target=outcome,
        outcomes=outcomes,
        id=id,
        classes=classes if classes is None or is_whole(classes) else tuple(classes),  # type: ignore[arg-type]
        weights=weights,
        groups=groups,
        by=by,
        shape=shape,
        position=position,
        after=after,
        last_match=last_match,
        samples=samples,
        per_length=per_length,
        normalize=normalize,
        invalid=invalid,
        missing=missing,
        others=others,
        merge_variants=merge_variants,
        delimiter=delimiter,
    )
    return read_lists(*_named(path), settings)


def open_forecasts(path: str | Path, reading: Reading) -> ListFile:
    """Read lists whose outcomes come later; `y` is empty."""
    return read_lists(*_named(path), replace(reading, target="", outcomes=None))


def read_lists(paths: Sequence[Path], name: str, settings: Reading) -> ListFile:
    """The lists of all files, which are called `name` together; of no file, those of standard input."""
    if len(paths) > 1:
        return read_several(paths, name, settings)
    return RecordReader(*open_shaped(paths[0], settings)).read()


def _named(path: object) -> tuple[list[Path], str]:
    named = files_named(path)
    if named is None:
        raise InputError("must be the name of a file", argument="path", kind="type", found=show(path))
    return named


def holds_lists(
    path: str | Path | Sequence[str | Path], reading: Reading | None = None, **keywords: Unpack[Keywords]
) -> bool:
    """Whether a file, or the first of several, holds a list per record, by a look at its content.

    The keywords are the fields of `Reading`. Flat log-probabilities may be logits, if these are asked for.
    """
    return has_lists(_named(path)[0][0], Reading.of(reading, keywords))
