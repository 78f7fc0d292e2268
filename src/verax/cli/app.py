"""The frame of the command line: what holds for every command, its exit codes, and how errors leave it.

Exit codes: 0 done, 1 a required bound failed, 2 bad input, 3 system error (disk full, no permission, out
of memory, or a bug in verax), 128 + n stopped by signal n.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from verax._version import __version__
from verax.cli.arguments import Piped, Typed, prepare
from verax.cli.panels import HELP_NAMES, arrange, help_of
from verax.cli.presenting import Presentation, log
from verax.cli.progress import name_progress, progress
from verax.cli.words import CommandWords, one_line
from verax.common import wings
from verax.common.urls import without_credentials
from verax.errors import FormerNameWarning, InputError, VeraxError

if TYPE_CHECKING:
    from verax.common.paths import Files
    from verax.inputs.reading import Reading

DONE, FAILED, BAD_INPUT, MACHINE = 0, 1, 2, 3
BROKEN_PIPE = 128 + 13

# The commands of the core in the order in which people meet them, with the first paragraphs of their
# docstrings; wings say after which theirs are listed. A command is a module, of this name in `cli/` or where
# its wing says. It is imported when it is called, so `--help` does not wait for what commands work with.
_CORE = {
    "init": "Show how files are read, and write that into verax.toml.",
    "evaluate": "Score predictions: every rule, confidence intervals, calibration.",
    "merge": "Merge saved results into one scorecard for all rows.",
    "compare": "Compare models on the same rows: which differences are real.",
    "decompose": "Split a score into miscalibration, discrimination, uncertainty.",
    "worst": "Show the rows with the largest loss, and where it comes from.",
    "schema": "Print the JSON schema of a command's --json output.",
    "help": "Explain a command, how files are read, and names of rules.",
}
_ADDED = wings.commands()
COMMANDS = wings.in_order(_CORE, _ADDED)
# Options that have moved to another command, which is run in place of the one that was typed.
MOVED: dict[str, dict[str, str]] = {}
for _added in _ADDED.values():
    for _typed, (_meant, _options) in _added[1].takes.items():
        MOVED.setdefault(_typed, {}).update(dict.fromkeys(_options, _meant))

# The base of all complaints about the command line itself; typer may bring its own copy of click.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


def load(name: str) -> None:
    """Import the module of a command, which adds it to `app`."""
    if name in _ADDED:
        wing, command = _ADDED[name]
        wing.at(command.place)
    else:
        import_module(f"verax.cli.{name}")


class _Commands(TyperGroup):
    """The commands, each imported when it is first needed; lists of commands need none of them."""

    def list_commands(self, context: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: Any, name: str) -> Any:
        if name in COMMANDS and name not in self.commands:
            load(name)
            self.commands[name] = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
        command = super().get_command(context, name)
        if command is not None:
            _ready(command)
        return command

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        name, *typed = args
        if name not in COMMANDS and not context.resilient_parsing and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, n=1)
            meant = f"Did you mean `verax {near[0]}`?" if near else "`verax --help` lists the commands."
            raise VeraxError(f"There is no command {name!r}. {meant}")
        moved = MOVED.get(name, {})
        option = next((text.partition("=")[0] for text in typed if text.partition("=")[0] in moved), None)
        if option is None or "--help" in typed:
            return super().resolve_command(context, args)
        note(f"{option} is an option of `verax {moved[option]}`: type that in place of `verax {name}`.")
        return super().resolve_command(context, [*moved[option].split(), *typed])

    def format_help(self, context: Any, formatter: Any) -> None:
        with self._only_listed():
            formatter.write(help_of(self, context))

    def shell_complete(self, context: Any, incomplete: str) -> Any:
        with self._only_listed():
            return super().shell_complete(context, incomplete)

    @contextmanager
    def _only_listed(self) -> Iterator[None]:
        imported = self.commands
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}
        try:
            yield
        finally:
            self.commands = imported


def _ready(command: Any) -> None:
    """Set the help of a command or of a group of them, and what happens before it runs."""
    if hasattr(command, "commands"):
        for inner in command.commands.values():
            _ready(inner)
    elif not hasattr(command, "prepared"):
        prepare(command)
        parse = command.parse_args

        def parse_args(context: Any, args: list[str]) -> Any:
            shown = (parameter for parameter in command.params if not getattr(parameter, "hidden", False))
            typed = [option for parameter in shown for option in parameter.opts]
            flags = [option[2:] for option in typed if option.startswith("--")]
            Typed.context = context
            _State.words = CommandWords(flags, f"{Typed.path()} {shlex.join(args)}")
            name_progress(Typed.path())
            return parse(context, args)

        command.parse_args = parse_args
    arrange(command)


def note(text: str) -> None:
    """Print a remark on stderr."""
    log("note", one_line(text))


def handed_over(paths: Files, reading: Reading) -> bool:
    """Whether files are in a form that a command of a wing reads, which then ran in place of this one."""
    from verax.cli.opening import form_of

    form = form_of(paths, reading)
    if form is None:
        return False
    _, command = _ADDED[form.command]
    meant = command.takes.get(Typed.context.info_name)
    if meant is not None:
        _hand_over(meant[0], form.says)
    return meant is not None


def _hand_over(path: str, reason: str) -> None:
    """Run another command with what was typed for this one, and say what to type."""
    note(f"{reason}: type `verax {path}` in place of `{Typed.path()}`.")
    old, command = Typed.context, _group()
    parent = old.parent
    for name in path.split():
        command = command.get_command(old, name)
        if hasattr(command, "commands"):
            parent = command.make_context(name, [], parent=parent, resilient_parsing=True)
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    context.resilient_parsing = False
    for parameter in old.command.params:
        name, source = parameter.name, old.get_parameter_source(parameter.name)
        if name in context.params:
            context.params[name] = old.params[name]
            context.set_parameter_source(name, source)
        elif source is not None and source.name == "COMMANDLINE" and name in old.params:
            option = max(parameter.opts, key=len)
            raise VeraxError(f"{option} cannot be used with `verax {path}`.")
    command.invoke(context)


app: typer.Typer = typer.Typer(
    name="verax",
    cls=_Commands,
    help="How good are a classifier's probabilities, which model to keep, what to look at first.",
    invoke_without_command=True,
    context_settings={"help_option_names": list(HELP_NAMES)},
    epilog="Exit codes: 0 done, 1 a required bound failed, 2 bad input, 3 system error (disk full, "
    "no permission, out of memory). `verax COMMAND --help` has examples, `verax help reading` says how files "
    "are read, `man verax` has all of it.",
    pretty_exceptions_enable=False,
)


@cache
def _group() -> Any:
    """All commands, put together once in a process: that takes longer than many a command."""
    return typer.main.get_command(app)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"verax {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Set what holds for every command."""
    _State.debug = debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


class _State:
    """The state of the running command."""

    debug = False
    words = CommandWords()


def words() -> CommandWords:
    """The vocabulary of the command that runs."""
    return _State.words


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; an error is one line on stderr.

    Parameters
    ----------
    arguments : Sequence[str] | None
        The words typed after `verax`; by default those of this process.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    _State.debug, _State.words = False, CommandWords()
    _open_closed_streams()
    Presentation.begin(sys.argv[1:] if arguments is None else arguments)
    try:
        with _signals_exit(), _warnings_are_quiet(), progress():
            typed = sys.argv[1:] if arguments is None else arguments
            return int(_group()([*map(without_credentials, typed)], standalone_mode=False) or DONE)
    except VeraxError as error:
        if isinstance(error, InputError) and Typed.config is not None:
            from verax.cli.config import with_lines

            error = with_lines(error, Typed.config.path)
        return _leave(BAD_INPUT, words().say(error))
    except _UsageError as error:
        return _leave(BAD_INPUT, error.format_message())  # type: ignore[attr-defined]
    except MemoryError as error:
        return _leave(MACHINE, f"Out of memory. {error}".rstrip())
    except OSError as error:
        give_up_stdout()
        if error.errno == errno.EPIPE:
            return BROKEN_PIPE
        return _leave(MACHINE, _in_words(error))
    except Exception as error:
        kind = type(error).__name__
        return _leave(
            MACHINE, f"Internal error, {kind}: {str(error)[:200]}. `verax --debug ...` prints where."
        )


def _open_closed_streams() -> None:
    """Let closed streams lead nowhere; else the next file to be opened would take their place."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _leave(code: int, text: str) -> int:
    with suppress(OSError):
        if _State.debug:
            traceback.print_exc()
    log("error", one_line(Piped.named(text)), code=code)
    return code


def _in_words(error: OSError) -> str:
    reason = error.strerror or str(error)
    return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"


def give_up_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not fail again at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextmanager
def _signals_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exit that runs every `finally`; an ignored signal stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    before = {number: signal.getsignal(number) for number in numbers if number is not None}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, leave)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _warnings_are_quiet() -> Iterator[None]:
    """Warnings are for programmers: shown only on demand, except renamed rules."""
    said: set[str] = set()

    def show(message: Warning | str, *_: object) -> None:
        if str(message) not in said:
            note(str(message))
        said.add(str(message))

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", FormerNameWarning)
            warnings.showwarning = show  # type: ignore[assignment]
        yield
