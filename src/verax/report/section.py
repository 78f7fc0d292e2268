"""Sections that wings add to the report: what each asks of the rows, what it says and draws on the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from verax.common.wings import all_of
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle, Recipe, Summaries
from verax.report.contents import Contents, Findings
from verax.report.problem import Problem
from verax.report.vega import Spec

T = TypeVar("T")
X = TypeVar("X")
# A place among items of the page, and what stands after it.
Placed = tuple[str, X]


@dataclass(frozen=True)
class Asked:
    """Whose rows a section may ask about, and for what page."""

    handle: Handle
    problem: Problem
    plan: Resampling

    def known(self, recipes: Mapping[str, Recipe[Any]]) -> dict[str, Recipe[Any]]:
        """Those that the rows can answer: files of older versions lack what was not asked then."""
        return {name: recipe for name, recipe in recipes.items() if self.handle.knows(recipe)}


@dataclass(frozen=True)
class Answered(Asked):
    """What a section reads its results from.

    Attributes
    ----------
    answers : Mapping[str, Any]
        The summaries that it asked for, by its names; those of the rows, as far as they answered.
    summaries : Summaries
        Everything that the page has asked for.
    """

    answers: Mapping[str, Any]
    summaries: Summaries


class Section(Generic[T]):
    """A section by the place on the page that it fills. It holds nothing of a page itself.

    Attributes
    ----------
    key : str
        Its anchor on the page, what it is called in its template, and the key of its results.
    title : str
        What the list of sections calls it.
    after : str
        The section of the core that it stands after.
    template : str
        Its template, such as "raters/section.html.j2": the name of the wing, and a file in its folder.
    """

    key: ClassVar[str]
    title: ClassVar[str] = ""
    after: ClassVar[str] = "parts"
    template: ClassVar[str] = ""

    # ---- what it asks, and reads from the answers --------------------------------------------------

    def recipes(self, asked: Asked) -> Mapping[str, Recipe[Any]]:
        """What it asks of the rows, by names of its own; nothing where it has nothing to say."""
        return {}

    def read(self, found: Answered) -> T | None:
        """Its results; None where there are none."""
        return None

    def found(self, contents: Contents) -> T | None:
        """Its results on a page."""
        found: T | None = contents.found.get(self.key)
        return found

    # ---- what it shows -----------------------------------------------------------------------------

    def exhibit(self, contents: Contents) -> Mapping[str, Any] | None:
        """What its template shows; None where the page has no such section."""
        return None

    def charts(self, contents: Contents) -> Mapping[str, Spec]:
        """Charts by the names of their places."""
        return {}

    def facts(self, contents: Contents, whose: str) -> Sequence[Placed[tuple[str, str]]]:
        """Numbers for the head of the page about the best model, named by `whose` where there are others."""
        return ()

    # ---- what it notes elsewhere -------------------------------------------------------------------

    def conventions(self, contents: Contents) -> Sequence[Placed[str]]:
        """Sentences about its methods, for the end of the page."""
        return ()

    def methods(self, contents: Contents) -> Sequence[Placed[str]]:
        """Sentences about its methods, for papers."""
        return ()

    def of_model(self, contents: Contents, model: Findings) -> Mapping[str, Any]:
        """Its results on one model as plain Python values."""
        return {}


def sections() -> tuple[Section[Any], ...]:
    """The sections of all wings."""
    return tuple(all_of("sections"))


def section_recipes(asked: Asked) -> dict[str, Recipe[Any]]:
    """What all sections ask, by the names that `answers_to` knows."""
    return {
        f"{section.key}: {name}": recipe
        for section in sections()
        for name, recipe in section.recipes(asked).items()
    }


def answers_to(section: Section[Any], summaries: Summaries) -> dict[str, Any]:
    """The summaries that a section has asked for, by its own names."""
    mark = f"{section.key}: "
    return {
        name.removeprefix(mark): summary
        for name, summary in summaries.by_name.items()
        if name.startswith(mark)
    }


def facts_of(contents: Contents) -> dict[str, Any]:
    """Everything on a page as plain Python values."""
    of_models = {
        model.name: {
            name: value for section in sections() for name, value in section.of_model(contents, model).items()
        }
        for model in contents.findings
    }
    return contents.to_dict(of_models)


def in_place(core: Mapping[str, Iterable[X]], added: Iterable[Placed[X]]) -> list[X]:
    """Items of the core by their places, each place followed by what is added after it; the rest at the end.

    >>> in_place({"rows": ["600 rows"], "skill": ["skill 0.5"]}, [("rows", "30% rain"), ("", "AUC 0.8")])
    ['600 rows', '30% rain', 'skill 0.5', 'AUC 0.8']
    """
    more = list(added)
    known = [*core, ""]
    return [
        item
        for place in known
        for item in (
            *core.get(place, ()),
            *(item for after, item in more if (after if after in core else "") == place),
        )
    ]
