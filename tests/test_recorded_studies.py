"""Tables of studies are those of stored runs, and the text beside them has their numbers."""

from __future__ import annotations

import re

import pytest

import recording

PAGES = recording.tables()
RECORDS = recording.records()
NUMBER = re.compile(r"(?<![\w.,/])[-+−]?\d+\.\d{2,}(?![\w,]*\d)")
# Numbers of other pages, and shares of two numbers of a table.
QUOTED = {"decomposition": {"0.232", "0.244"}, "llm_calibration": {"0.05"}, "llm_temperature": {"0.009"}}


@pytest.mark.parametrize("study", PAGES)
def test_the_tables_of_a_page_are_the_stored_ones(study):
    """`python studies/recording.py` writes them."""
    text = recording.page(study).read_text()
    assert set(recording.MARKER.findall(text)) <= PAGES[study].keys()
    assert recording.MARKER.findall(text)
    assert recording.written(text, PAGES[study]) == text


@pytest.mark.parametrize("study", RECORDS)
def test_numbers_of_the_text_are_in_the_tables(study):
    """Conclusions change with the tables: every number with two decimals or more is one of them, rounded."""
    text = recording.PLACE.sub("", recording.page(study).read_text())
    kept = [float(n.replace("−", "-")) for n in NUMBER.findall("\n".join(PAGES[study].values()))]
    unknown = []
    for quoted in NUMBER.findall(text):
        value, digits = abs(float(quoted.replace("−", "-"))), len(quoted.partition(".")[2])
        if not any(f"{abs(x):.{digits}f}" == f"{value:.{digits}f}" for x in kept):
            unknown.append(quoted)
    assert set(unknown) <= QUOTED.get(study, set())
