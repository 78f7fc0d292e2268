"""The help of commands: which options are shown, in which panels, and how the text is set.

`--help` shows the options of a command itself, with the first sentence on each, and the columns that most
files need. Options in panels of another name, such as those that say how files are read, are in `--help-all`.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

# Panels that `--help` shows; the others are in `--help-all`.
OPTIONS, COLUMNS, OUTPUT = "Options", "Columns", "Output"
# Options of reading that `--help` shows as well, by the names of their parameters.
_COMMON = ("target", "probs", "classes", "ordered", "id", "weights", "groups", "by")
_WRITTEN = (
    "state",
    "require",
    "require_interval",
    "html",
    "save",
    "plot",
    "out",
    "everything",
    "quiet",
    "as_json",
)
# Options of the commands themselves that hardly anyone needs.
_FINE = ("least", "bootstrap", "seed", "log", "quiet")
HELP_NAMES = ("--help", "--help-all")
_EVERYTHING = "verax.help_all"
# The widest lines, and the widest column of options.
_WIDEST, _NAMES = 100, 26
_SENTENCE = re.compile(r"(?<!\.)\. |; ")
_EXAMPLE = re.compile(r"`(verax [^`]*)`")


def arrange(command: Any) -> None:
    """Give the help of a command the form of this module."""
    if hasattr(command, "arranged"):
        return
    command.arranged = True
    parse = command.parse_args

    def parse_args(context: Any, args: list[str]) -> Any:
        context.meta[_EVERYTHING] = HELP_NAMES[1] in args
        return parse(context, args)

    def format_help(context: Any, formatter: Any) -> None:
        formatter.write(help_of(command, context, everything=context.meta.get(_EVERYTHING, False)))

    command.parse_args, command.format_help = parse_args, format_help


def panel_of(parameter: Any) -> str:
    """The panel of an option."""
    named: str | None = getattr(parameter, "rich_help_panel", None) or (
        "Fine points" if parameter.name in _FINE else None
    )
    is_output = parameter.name in _WRITTEN or HELP_NAMES[0] in parameter.opts
    return named or (OUTPUT if is_output else OPTIONS)


def examples_of(epilog: str | None) -> list[str]:
    """The commands of an epilog, each on one line."""
    known = epilog if epilog and epilog.startswith("Examples:") else ""
    return [" ".join(example.split()) for example in _EXAMPLE.findall(known)]


def path_of(context: Any) -> str:
    """The words typed for a command, such as `verax evals compare`."""
    above = context.parent
    return "verax" if above is None else f"{path_of(above)} {context.info_name}"


def help_of(command: Any, context: Any, *, everything: bool = False) -> str:
    """The help of a command or of a group of commands.

    Parameters
    ----------
    everything : bool
        With the options that are shown rarely, and all that there is to say of each.
    """
    shown = [p for p in command.get_params(context) if not getattr(p, "hidden", False)]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option"]
    named = " ".join(p.metavar or p.name.upper() for p in arguments)
    inner = getattr(command, "commands", {})
    path = path_of(context)
    usage = f"{path} [OPTIONS] {'COMMAND [ARGUMENTS]' if inner else named}".rstrip()
    lines = [f"Usage: {usage}", ""]
    for paragraph in _paragraphs(command):
        lines += [*wrapped(paragraph), ""]
    lines += listed("Arguments", [(p.metavar or p.name.upper(), p.help or "") for p in arguments])
    lines += listed("Commands", [(name, _paragraphs(subcommand)[0]) for name, subcommand in inner.items()])
    lines += option_lines(options, everything=everything)
    examples = examples_of(command.epilog)
    if examples:
        lines += [_heading("Examples"), *(f"  {example}" for example in examples), ""]
    elif command.epilog:
        lines += [*wrapped(command.epilog), ""]
    rest = [] if everything or inner else list(dict.fromkeys(map(panel_of, _folded(options))))
    if rest:
        read = " `verax help reading` says how files are read." if COLUMNS in rest else ""
        lines += [*wrapped(f"`{path} --help-all` adds {', '.join(rest).lower()}.{read}"), ""]
    return "\n".join(lines).rstrip()


def option_lines(options: Iterable[Any], *, everything: bool) -> list[str]:
    """Options in their panels, with all that there is to say of each or its first sentence."""
    given = list(options)
    panels: dict[str, list[Any]] = {OPTIONS: []}
    for parameter in given if everything else [p for p in given if p not in _folded(given)]:
        common = not everything and panel_of(parameter) not in (OPTIONS, OUTPUT)
        panels.setdefault(COLUMNS if common else panel_of(parameter), []).append(parameter)
    written = sorted(panels.pop(OUTPUT, []), key=lambda p: (*_WRITTEN, p.name).index(p.name))
    if not everything:
        panels.get(COLUMNS, []).sort(key=lambda p: _COMMON.index(p.name))
    if len(written) == 1:
        panels[OPTIONS] += written
        written = []
    lines: list[str] = []
    for panel, inside in {**panels, OUTPUT: written}.items():
        lines += listed(panel, [(_typed(p), _help_text(p, everything=everything)) for p in inside])
    return lines


def _paragraphs(command: Any) -> list[str]:
    return re.split(r"\n\s*\n", command.help or "")


def _folded(options: Sequence[Any]) -> list[Any]:
    """The options that `--help` does not show."""
    return [p for p in options if panel_of(p) not in (OPTIONS, OUTPUT) and p.name not in _COMMON]


def _typed(option: Any) -> str:
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag else f"{names} {option.metavar or option.name.upper()}"


def _help_text(option: Any, *, everything: bool) -> str:
    text = " ".join((option.help or "").split())
    if not everything:
        text = f"{_SENTENCE.split(text)[0].removesuffix('.')}."
    default = option.default
    known = default is not None and default is not False and default not in ((), [])
    if not known or callable(default) or not option.show_default or option.is_flag:
        return f"{text} Required." if option.required else text
    return f"{text} [default: {default}]"


def listed(title: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """A heading with names and what they mean, in two columns."""
    if not pairs:
        return []
    names = min(max(len(name) for name, _ in pairs), _NAMES)
    lines = [_heading(title)]
    for name, text in pairs:
        said = wrapped(text, indent=names + 4)
        first = f"  {name}"
        if len(name) > names:
            lines += [first]
        else:
            lines += [first.ljust(names + 4) + said[0].lstrip()] if said else [first]
            said = said[1:]
        lines += said
    return [*lines, ""]


def _heading(title: str) -> str:
    return f"{title}:"


def wrapped(text: str, indent: int = 0) -> list[str]:
    """A text whose lines are as wide as the terminal, without a last line of one word."""
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    words, space = " ".join(text.split()), " " * indent
    how: dict[str, Any] = {"break_on_hyphens": False, "break_long_words": False}
    lines = textwrap.wrap(words, width, initial_indent=space, subsequent_indent=space, **how)
    for narrower in range(width - 1, max(width - 12, indent + 20), -1):
        if len(lines) < 2 or " " in lines[-1].strip():
            break
        other = textwrap.wrap(words, narrower, initial_indent=space, subsequent_indent=space, **how)
        if len(other) == len(lines):
            lines = other
    return lines
