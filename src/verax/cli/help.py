"""`verax help`: commands, how files are read, and names, such as those of rules."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli.app import app
from verax.cli.options import reads_files
from verax.cli.output import Json, show
from verax.cli.panels import arrange, help_of, listed, option_lines, wrapped
from verax.common.wings import Wing, wings
from verax.errors import VeraxError, join
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds


@app.command("help", epilog="Examples: `verax help reading`, `verax help compare`, `verax help rules`")
def help_(
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND|TOPIC]", help=f"A command, or one of {join(_TOPICS)}."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain a command, how files are read, and names of rules."""
    words = topic or []
    text = _TOPICS[words[0]]() if len(words) == 1 and words[0] in _TOPICS else _of_command(words)
    show({"topic": " ".join(words), "text": text}, [text], as_json=as_json)


def _of_command(path: list[str]) -> str:
    """The text of `--help-all` of a command, or of `--help` without one."""
    command: Any = typer.main.get_command(app)
    context: Any = command.make_context("verax", [], resilient_parsing=True)
    for name in path:
        known = command.list_commands(context) if hasattr(command, "commands") else []
        if name not in known:
            near = get_close_matches(name, [*known, *_TOPICS], n=1)
            hint = f" Did you mean `verax help {near[0]}`?" if near else ""
            raise VeraxError(
                f"There is no command and no topic {name!r}.{hint} Topics: {', '.join(_TOPICS)}."
            )
        command = command.get_command(context, name)
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    return context.get_help() if not path else help_of(command, context, everything=True)


def _reading() -> str:
    """All options that say how files are read."""
    apart = typer.Typer(add_completion=False)

    @apart.command()
    @reads_files(lists=True, sets=True, grades=True)
    def read(reading: Reading) -> None: ...

    command: Any = typer.main.get_command(apart)
    arrange(command)
    shown = [p for p in command.params if p.param_type_name == "option"]
    intro = (
        "How files are read. Commands on files of predictions take these options where they make sense; the "
        "columns that most files need are in the --help of each command, the others in --help-all. Columns "
        "are found by their usual names where no option names them, and each command prints how it read them."
    )
    return "\n".join([*wrapped(intro), "", *option_lines(shown, everything=True)])


def _rules() -> str:
    from verax.scores.registry import RULES

    pairs = [(name, (type(rule).__doc__ or "").strip().split("\n")[0]) for name, rule in RULES.items()]
    return "\n".join([*listed("Rules, for --rule", pairs), "Others are made of them: 'penalized(rps)'."])


def _metrics() -> str:
    from verax.analyses.measures import MEASURES
    from verax.scores.metrics import METRICS

    metrics = [(name, metric.summary) for name, metric in METRICS.items()]
    measures = [(name, measure[1]) for name, measure in MEASURES.items()]
    return "\n".join(
        [
            *listed("Metrics of decisions, for --metric of `verax retain` and --require", metrics),
            *listed("Measures of calibration and ranking, for --require", measures),
        ]
    )


def _of_wing(wing: Wing, place: str) -> str:
    """What a wing explains: a heading, and names with their meanings."""
    return "\n".join(listed(*wing.at(place)()))


# What is explained, by name; wings add their words.
_TOPICS: dict[str, Callable[[], str]] = {
    "reading": _reading,
    "rules": _rules,
    "metrics": _metrics,
    **{topic: partial(_of_wing, wing, place) for wing in wings() for topic, place in wing.words.items()},
}


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import TEXT

    return {"topic": TEXT, "text": TEXT}
