"""The ready-made rules by name, and conversion between texts and rules.

To register a rule, create it here and add it to `RULES`.
"""

from __future__ import annotations

import ast
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence, Set
from inspect import signature
from typing import Any

from verax.common.checks import check_flag
from verax.engines.lists import FINE
from verax.errors import FormerNameWarning, InputError, ParseError, VeraxError, show
from verax.scores.base import Rule
from verax.scores.combinators import Padded, Penalized, padded, penalized
from verax.scores.grades import Grade
from verax.scores.naming import metric_hint, suggestions
from verax.scores.ranges import ThresholdBrier
from verax.scores.rules import RPS, AbsRPS, Brier, Log, RankedLog, SaRPS, Spherical, ZeroOne
from verax.scores.sets import LevelSet, SetRule, Winkler

brier: Brier = Brier()
log_score: Log = Log()
spherical: Spherical = Spherical()
zero_one: ZeroOne = ZeroOne()
pbs: Penalized = penalized(brier)
pll: Penalized = penalized(log_score)
rps: RPS = RPS()
ranked_log: RankedLog = RankedLog()
abs_rps: AbsRPS = AbsRPS()
sa_rps: SaRPS = SaRPS()

RULES: dict[str, Rule] = {
    "brier": brier,
    "log_score": log_score,
    "spherical": spherical,
    "zero_one": zero_one,
    "pbs": pbs,
    "pll": pll,
    "rps": rps,
    "ranked_log": ranked_log,
    "abs_rps": abs_rps,
    "sa_rps": sa_rps,
}

# What a text may call to make a rule with other parameters.
_MAKERS: dict[str, Callable[..., Rule]] = {rule.name: type(rule) for rule in RULES.values()}
_MAKERS |= {"penalized": penalized, "padded": padded}
# Scores of sets, which need other rows than all others.
SET_RULES: dict[str, type[SetRule]] = {rule.name: rule for rule in (LevelSet, Winkler)}
_MAKERS |= SET_RULES
_MAKERS |= {rule.name: rule for rule in (Grade, ThresholdBrier)}

# Names that earlier versions wrote: still read, and answered with a warning where they are typed.
_FORMERLY = {"log": "log_score"}

_NAMES = {rule: name for name, rule in reversed(RULES.items())}


def name_of(rule: Rule) -> str:
    """The registered name of a rule, or its text form."""
    known = _NAMES.get(rule) or next((name for name, registered in RULES.items() if registered == rule), None)
    return known or repr(rule)


def constant_bounds(name: str) -> tuple[float, float] | None:
    """The least and the greatest loss by a rule, if they are the same for all numbers of classes.

    >>> constant_bounds("brier"), constant_bounds("log_score"), constant_bounds("rps(normalized=False)")
    ((0.0, 2.0), (0.0, inf), None)
    """
    try:
        rule = stored_rule(name)
        few, many = rule.bounds(2), rule.bounds(1000)
    except VeraxError:
        return None
    return few if few == many else None


def each_of(rules: Rule | str | Sequence[Rule | str]) -> list[Any]:
    """One or several rules or texts as a list."""
    return list(rules) if isinstance(rules, (list, tuple, Set, Iterator)) else [rules]


def as_rules(rules: Rule | str | Sequence[Rule | str], argument: str = "rule") -> list[Rule]:
    """One or several rules, given as rules or as texts, each once."""
    chosen = list(dict.fromkeys(parse(rule) for rule in each_of(rules)))
    if not chosen:
        raise InputError("must name at least one rule", argument=argument)
    names = [name_of(rule) for rule in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            "must have different names",
            argument=argument,
            found=f"two different rules are called {twice!r}",
            values=[twice],
        )
    return chosen


def default_rules(*, ordered: bool) -> tuple[str, ...]:
    """The rules that models are compared by if none is named; the first is for analyses by one rule."""
    return ("rps", "log_score") if check_flag("ordered", ordered) else ("brier", "log_score")


def headline_rule(*, ordered: bool) -> Rule:
    """The rule that cards, reports and recalibrations lead with: RPS for ordered classes, else Brier."""
    return RULES[default_rules(ordered=ordered)[0]]


def fitting_rules(rules: Sequence[Rule | str] | None, ordered: bool) -> list[Rule]:
    """The requested rules; if there are none, all applicable ones."""
    ordered = check_flag("ordered", ordered)
    if rules is None:
        return [rule for rule in RULES.values() if ordered or not rule.ordinal]
    return as_rules(rules, "rules")


def headline_first(rules: Sequence[Rule | str] | None, *, ordered: bool) -> tuple[Rule, ...]:
    """The rules of a result, the one that it leads with first.

    That is the first one that was asked for. If none was, it is RPS for ordered classes, else Brier.
    """
    known = fitting_rules(rules, ordered=ordered)
    first = known[0] if rules is not None else headline_rule(ordered=ordered)
    return (first, *(rule for rule in known if rule != first))


def compared_rules(rules: Sequence[Rule | str] | None, *, ordered: bool) -> list[Rule]:
    """The rules that models are compared by: the requested ones, or the usual two."""
    return as_rules(default_rules(ordered=ordered) if rules is None else rules)


def padded_rules(invalid_penalty: float = FINE) -> list[Padded]:
    """Every registered rule that top lists can be scored by, with the fine for invalid lists."""
    return [
        padded(rule, invalid_penalty)
        for rule in RULES.values()
        if rule.properties.symmetric.at(3) and rule.properties.proper.at(3)
    ]


def parse(text: Rule | str) -> Rule:
    """Parse a rule from text: "rps", "brier(scale='half')", "penalized(rps, penalty='minimal')".

    Only rule names and literal parameters are accepted; nothing is evaluated.

    Parameters
    ----------
    text : str or Rule
        Rule name, with parameters if any. A rule is returned unchanged.

    Returns
    -------
    Rule
        The rule.

    Raises
    ------
    ParseError
        If the text names no rule; the message suggests similar names.

    Examples
    --------
    >>> import verax as vx
    >>> vx.parse("penalized(brier)") == vx.pbs
    True
    >>> vx.parse(repr(vx.rules.Log(base=10)))
    log_score(base=10)
    """
    rule = stored_rule(text)
    former = former_name(text)
    if former is not None:
        warnings.warn(
            f"The rule {former!r} is now called {_FORMERLY[former]!r}.",
            FormerNameWarning,
            stacklevel=_levels_up(),
        )
    return rule


def former_name(text: Rule | str) -> str | None:
    """A name of earlier versions in a text that names a rule; None without one.

    >>> former_name("penalized(log)"), former_name("log_score")
    ('log', None)
    """
    names = re.findall(r"[a-z_]+", text) if isinstance(text, str) else []
    return next((name for name in names if name in _FORMERLY and name not in RULES), None)


def _levels_up() -> int:
    """The stack level of the caller outside verax, where a name was typed."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "verax":
        level, frame = level + 1, frame.f_back
    return level


def stored_rule(text: Rule | str) -> Rule:
    """The rule that a text names, as `parse` finds it, without warnings: for texts that nobody typed."""
    if isinstance(text, Rule):
        return text
    given: Any = text
    if isinstance(given, type) and issubclass(given, Rule):
        raise ParseError(
            f"{given.__name__} is a class of rules; pass a rule of it, such as {given.__name__}()."
        )
    if not isinstance(given, str):
        several = isinstance(given, (list, tuple)) and given
        such_as = show(given[0]) if several else "'rps'"
        raise ParseError(
            f"A rule is given as a rule or as its name, such as {such_as}, not as a {type(given).__name__}."
        )
    if text in RULES:
        return RULES[text]
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _rule(tree.body, text)
    except (SyntaxError, UnicodeError, RecursionError, MemoryError):
        raise _no_rule(text) from None
    except ValueError as error:
        # Null characters, and whole numbers with thousands of digits.
        if isinstance(error, VeraxError):
            raise
        raise _no_rule(text) from None


def _rule(node: ast.expr, text: str) -> Rule:
    if isinstance(node, ast.Name):
        name = _today(node.id)
        return RULES[name] if name in RULES else _make(name, [], {}, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        named = {k.arg: _argument(k.value, text) for k in node.keywords if k.arg is not None}
        if len(named) < len(node.keywords):
            raise ParseError(f"{show(text)}: ** is not allowed.")
        return _make(_today(node.func.id), [_argument(a, text) for a in node.args], named, text)
    raise _no_rule(text)


def _today(name: str) -> str:
    """The current name of a rule; a rule registered by a user under a former name keeps it."""
    return name if name in RULES else _FORMERLY.get(name, name)


def _no_rule(text: str) -> ParseError:
    return ParseError(f"{show(text)} is not the name of a rule, such as 'rps' or 'penalized(brier)'.")


def _make(name: str, positional: list[Any], named: dict[str, Any], text: str) -> Rule:
    if name not in _MAKERS and name in RULES:
        raise ParseError(f"{show(text)}: {name} takes no parameters; it is {RULES[name]!r}, which does.")
    if name not in _MAKERS:
        raise _unknown(name)
    maker = _MAKERS[name]
    try:
        signature(maker).bind(*positional, **named)
    except TypeError as error:
        raise ParseError(f"{show(text)}: {error}.") from None
    return maker(*positional, **named)


def _argument(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    if isinstance(node, (ast.Name, ast.Call)):
        return _rule(node, text)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise ParseError(f"{show(text)}: parameters must be rules or literals.") from None


# Metrics of decisions, which are no losses of rows.
_OF_DECISIONS = ("accuracy", "error")


def _unknown(name: str) -> ParseError:
    hint = metric_hint(name)
    if hint is not None:
        return ParseError(f"{hint} Rules are {', '.join(RULES)}.")
    *near, known = suggestions(name, sorted({*RULES, *_MAKERS}))
    if name.lower() in _OF_DECISIONS:
        near = [
            "Did you mean 'zero_one'? It is the share of wrong answers, one minus the accuracy but for ties, "
            "which are shared."
        ]
    return ParseError(" ".join([f"There is no rule called {show(name)}.", *near, known]))
