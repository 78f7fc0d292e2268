"""Sections that wings add to the report: what each asks of the rows, what it says and draws on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from verax.common.wings import all_of
from verax.inference.findings import Finding
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle, Recipe, Summaries
from verax.inputs.rows import Rows
from verax.report.contents import Contents, Findings
from verax.report.figures import Shown
from verax.report.problem import Problem
from verax.scores.base import Rule

T = TypeVar("T")
Turn: TypeAlias = Literal["first", "beside", "last"]
X = TypeVar("X")
# A place among items of the page, and what stands after it.
Placed = tuple[str, X]
# How many rows are worse than one of a loss by a rule at least, and how many more there may be.
Rank = Callable[[str, float], tuple[int, int]]


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
    recipes : Mapping[str, Recipe]
        What it asked, by its own names.
    summaries : Summaries
        Everything that the page has asked for.
    full : Mapping[str, Rows]
        Distributions that lists were cut from, by model.
    answers : Mapping[str, Any]
        The summaries that it asked for, by its own names.
    """

    recipes: Mapping[str, Recipe[Any]]
    summaries: Summaries
    full: Mapping[str, Rows]
    answers: Mapping[str, Any]


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
        Its own template, such as "raters/section.html.j2": the name of the wing, and a file in its folder.
    inside : Mapping[str, str]
        Templates that fill places in other sections, by these places.
    turn : {"first", "beside", "last"}
        When it reads its results: before calibration is judged, after which its summaries are let go; at the
        same time; or at the end, when passes over the rows take the memory that others have let go.
    """

    key: ClassVar[str]
    title: ClassVar[str] = ""
    after: ClassVar[str] = "parts"
    template: ClassVar[str] = ""
    inside: ClassVar[Mapping[str, str]] = {}
    turn: ClassVar[Turn] = "last"

    # ---- what it asks, and reads from the answers --------------------------------------------------

    def recipes(self, asked: Asked) -> Mapping[str, Recipe[Any]]:
        """What it asks of the rows, by names of its own; nothing where it has nothing to say."""
        return {}

    def kept(self, asked: Asked, model: str) -> Sequence[Rule]:
        """Rules whose losses of all rows its summaries are made of, so that nobody computes them again."""
        return ()

    def ranked(self, asked: Asked, model: str) -> Sequence[Rule]:
        """Rules by which `rank` knows ranks."""
        return ()

    def rank(self, answers: Mapping[str, Any], model: str) -> Rank | None:
        """What ranks a loss among those of all rows, from its summaries."""
        return None

    def read(self, found: Answered) -> Any:
        """What it reads from the answers; None where there is nothing."""
        return None

    def concluded(self, read: Any, problem: Problem, findings: Sequence[Findings]) -> T | None:
        """Its results, from what it has read and what is known about each model."""
        results: T | None = read
        return results

    def found(self, contents: Contents) -> T | None:
        """Its results on a page."""
        found: T | None = contents.found.get(self.key)
        return found

    # ---- what it shows -----------------------------------------------------------------------------

    def exhibit(self, contents: Contents) -> Mapping[str, Any] | None:
        """What its template shows; None where the page has no such section."""
        return None

    def figures(self, contents: Contents) -> Mapping[str, Shown]:
        """Figures by the names of their places."""
        return {}

    def facts(self, contents: Contents, whose: str) -> Sequence[Placed[tuple[str, str]]]:
        """Numbers for the head of the page about the best model, named by `whose` where there are others."""
        return ()

    # ---- what it notes elsewhere -------------------------------------------------------------------

    def remedies(self, contents: Contents) -> Iterable[Finding]:
        """Findings for the verdict about what would help the best model."""
        return ()

    def scored(self, contents: Contents) -> Iterable[str]:
        """Metrics that it shows itself, so that the card leaves them out."""
        return ()

    def sampled(self, contents: Contents) -> str:
        """Which of its figures are of a part of the rows; empty where none is."""
        return ""

    def precision(self, contents: Contents) -> str:
        """How exact its figures are where the rows were read once; empty where they are exact."""
        return ""

    def conventions(self, contents: Contents) -> Sequence[Placed[str]]:
        """Sentences about its methods, for the end of the page."""
        return ()

    def methods(self, contents: Contents) -> Sequence[Placed[str]]:
        """Sentences about its methods, for papers."""
        return ()

    def of_model(self, contents: Contents, model: Findings) -> Mapping[str, Any]:
        """Its results on one model as plain Python values."""
        return {}

    def of_all(self, contents: Contents) -> Mapping[str, Any]:
        """Its results on all models together as plain Python values."""
        return {}


def sections() -> tuple[Section[Any], ...]:
    """The sections of all wings."""
    return tuple(all_of("sections"))


def section_recipes(asked: Asked) -> dict[str, Recipe[Any]]:
    """What all sections ask, by names that `of_section` knows."""
    return {
        f"{section.key}: {name}": recipe
        for section in sections()
        for name, recipe in section.recipes(asked).items()
    }


def of_section(section: Section[Any], by_name: Mapping[str, X]) -> dict[str, X]:
    """What belongs to a section, by its own names."""
    mark = f"{section.key}: "
    return {name.removeprefix(mark): value for name, value in by_name.items() if name.startswith(mark)}


def facts_of(contents: Contents) -> dict[str, Any]:
    """Everything on a page as plain Python values."""
    of_models = {
        model.name: {
            name: value for section in sections() for name, value in section.of_model(contents, model).items()
        }
        for model in contents.findings
    }
    of_all = {name: value for section in sections() for name, value in section.of_all(contents).items()}
    return {**contents.to_dict(of_models), **of_all}


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
