"""The rows of a card: what sums say of them, and what needs the rows themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import verax as vx
from cases import forecasts
from verax.analyses.cards.rows import CardSums, MeasuredCard, check_whole
from verax.analyses.cards.stored import card_fields, card_values
from verax.engines.tally import RuleSums
from verax.results import ListCard, Scorecard


def sums(y, p, **options):
    return RuleSums([vx.brier], np.shape(p)[1]).update(vx.Forecasts(y, p, **options))


def test_sums_alone_say_how_many_rows_there_are_and_how_they_were_decided():
    card = CardSums(sums([0, 1, 1], [[0.8, 0.2], [0.3, 0.7], [1.0, 0.0]], weights=[1, 2, 1]))
    assert (card.n_rows, card.n_classes, card.weight, card.n_groups) == (3, 2, 4, None)
    assert card.effective_rows == pytest.approx(16 / 6)
    assert card.accuracy == 0.75
    assert card.confusion.tolist() == [[1, 0], [1, 2]]
    assert card.class_counts.tolist() == [1, 3]
    assert (card.n_zero_probability, card.zero_probability_rows) == (1, (2,))


@pytest.mark.parametrize(
    ("options", "rows", "refused"),
    [
        ({"part": True}, 0, "at least one row"),
        ({"part": True, "weights": [0.0, 0.0]}, 2, "must not all be zero"),
        ({"groups": ["a", "a"]}, 2, "at least two groups"),
    ],
)
def test_what_only_a_part_may_be_is_refused_for_all_rows(options, rows, refused):
    card = CardSums(sums([0, 1][:rows], np.array([[0.8, 0.2], [0.3, 0.7]])[:rows], **options))
    with pytest.raises(vx.InputError, match=refused):
        check_whole(card)


def test_a_card_refers_to_its_rows_but_takes_them_nowhere():
    y, p = forecasts(40, 2)
    card = vx.evaluate(y, p)
    assert copy.copy(card).measures == card.measures
    sent = pickle.loads(pickle.dumps(card))
    with pytest.raises(vx.InputError, match="knows its rows"):
        _ = sent.measures
    assert isinstance(sent, MeasuredCard)
    assert not sent.known_measures


@pytest.mark.parametrize("lists", [False, True])
def test_fields_are_those_that_were_stored(lists):
    y, p = forecasts(40, 4)
    card = vx.evaluate(y, vx.TopLists.from_probabilities(p, 2) if lists else p)
    cls = ListCard if lists else Scorecard
    assert cls(**card_fields(cls, card_values(card, None))) == card


def test_a_card_and_what_it_is_based_on_stay_small():
    """Fields, a table, a verdict, and figures; what else there is to ask is another subject's."""
    cards = [cls for cls in Scorecard.__mro__ if cls.__module__.startswith("verax.analyses.cards")]
    methods = {
        cls.__name__: sum(callable(member) or hasattr(member, "__get__") for member in vars(cls).values())
        for cls in cards
    }
    assert {name: n for name, n in methods.items() if n > 25} == {}
