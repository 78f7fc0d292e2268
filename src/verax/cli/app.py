"""The frame of the command line: what holds for every command, its exit codes, and how errors leave it.

Exit codes: 0 done, 1 a required bound failed, 2 bad input, 3 system error (disk full, no permission, out
of memory, or a bug in verax), 128 + n stopped by signal n.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from verax._version import __version__
from verax.cli.arguments import Piped, prepare
from verax.cli.panels import arrange
from verax.cli.progress import name_progress, progress
from verax.cli.words import CommandWords, one_line
from verax.common.urls import without_credentials
from verax.errors import FormerNameWarning, VeraxError

DONE, FAILED, BAD_INPUT, MACHINE = 0, 1, 2, 3
BROKEN_PIPE = 128 + 13

# The commands in the order in which people meet them, with the first paragraphs of their docstrings. Stated
# here because importing a command imports what it works with: `--help` does not wait for that.
COMMANDS = {
    "demo": "Train four models on two problems, judge their probabilities, and write the reports.",
    "evaluate": "Score predictions with every applicable rule, confidence intervals and calibration.",
    "merge": "Merge saved results into one scorecard, with confidence intervals for all rows.",
    "compare": "Compare models on the same rows: which differences are significant, pair by pair.",
    "plan": "Say how many rows would show a difference, keep to a margin, or make an interval narrow.",
    "decompose": "Split a mean score into miscalibration, discrimination and uncertainty, class by class.",
    "decide": "Show rates at a threshold, decision curves, and what deferring doubtful cases saves.",
    "worst": "Show the rows with the largest loss, how other rules rank them, and where the loss comes from.",
    "retain": "Show how metrics change as the hardest rows are dropped, with the area under the curve.",
    "recalibrate": "Find the best recalibration method, its cross-validated gain, and write recalibrated "
    "files.",
    "sets": "Judge prediction sets: coverage, sizes and proper scores; or make them by conformal prediction.",
    "raters": "Show how much raters disagree, the excess loss of forecasts, and their worth in raters.",
    "monitor": "Watch losses and calibration over time, with alarms that hold however often you look.",
    "select": "Name the epoch to keep by each rule, with all metrics there and correlations with F1 and "
    "accuracy.",
    "toplist": "Score top lists: language-model responses, classifier outputs, ranked runs, long tables.",
    "certify": "Search for counterexamples to a rule's promised properties: proper, local, superior "
    "and so on.",
    "reproduce": "Recompute a paper's published numbers and show them beside what was printed.",
    "schema": "Print the JSON schema of a command's --json output.",
}

# The base of all complaints about the command line itself; typer may bring its own copy of click.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]


class _Commands(TyperGroup):
    """The commands, each imported when it is first needed; lists of commands need none of them."""

    def list_commands(self, context: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: Any, name: str) -> Any:
        if name in COMMANDS and name not in self.commands:
            import_module(f"verax.cli.{name}")
            self.commands[name] = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
        command = super().get_command(context, name)
        if command is not None:
            arrange(command)
            prepare(command)
        return command

    def format_help(self, context: Any, formatter: Any) -> None:
        arrange(self)
        with self._only_listed():
            super().format_help(context, formatter)

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


app: typer.Typer = typer.Typer(
    name="verax",
    cls=_Commands,
    help="How good are a classifier's probabilities, which model to keep, what to look at first.",
    invoke_without_command=True,
    epilog="Exit codes: 0 done, 1 a required bound failed, 2 bad input, 3 system error (disk full, "
    "no permission, out of memory). Every command has examples in its --help; `man verax` has all of them.",
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
    command = context.command.get_command(context, context.invoked_subcommand)  # type: ignore[attr-defined]
    shown = (parameter for parameter in command.params if not getattr(parameter, "hidden", False))
    typed = [option for parameter in shown for option in parameter.opts]
    _State.words = CommandWords([option[2:] for option in typed if option.startswith("--")])
    name_progress(f"verax {context.invoked_subcommand}")


class _State:
    """What is known of the command that runs."""

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
        What was typed after `verax`; by default that of this process.
    """
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    _State.debug, _State.words = False, CommandWords()
    _open_closed_streams()
    try:
        with _signals_exit(), _warnings_are_quiet(), progress():
            typed = sys.argv[1:] if arguments is None else arguments
            return int(_group()([*map(without_credentials, typed)], standalone_mode=False) or DONE)
    except VeraxError as error:
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
        print(f"verax: {one_line(Piped.named(text))}", file=sys.stderr, flush=True)
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

    def note(message: Warning | str, *_: object) -> None:
        if str(message) not in said:
            print(f"verax: Note: {message}", file=sys.stderr)
        said.add(str(message))

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", FormerNameWarning)
            warnings.showwarning = note  # type: ignore[assignment]
        yield
