"""What verax must do whatever is done to it.

A call gives a result, or an error of verax that says in few words what is wrong. It raises no error of
another library, it ends in time, and it leaves files as they were or as they should be. An error of the
operating system, such as that of a full disk, names the file.
"""

from __future__ import annotations

import os
import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np

import verax as vx
from verax.errors import Kind

SECONDS = 10
MEMORY = 3 * 2**30
LONGEST = 1200
_HERE = str(Path(__file__).parent)


class UnlawfulError(AssertionError):
    """What verax must not do."""


class TooLongError(BaseException):
    """A call that does not end in time; no handler of verax may catch it."""


class HostileError(Exception):
    """What objects of the attacker raise."""


def lawful(call: Callable[[], Any], said: str, *, seconds: int = SECONDS) -> Any:
    """What a call returns, or the error by which it refuses; anything else is unlawful."""
    try:
        with limited(seconds), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return call()
    except (Exception, TooLongError) as error:
        complaint = against(error)
        if complaint:
            raise UnlawfulError(f"{said}: {complaint}") from error
        return error


def against(error: BaseException) -> str:
    """What is wrong with an error that a caller gets; nothing if it is one that verax may raise."""
    if isinstance(error, TooLongError):
        return f"it did not end in time, in {_place(error)}"
    if isinstance(error, vx.VeraxError):
        return _badly_told(error)
    if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
        return ""
    # Lookups by name or place, as those of Python's mappings and sequences; the error says what there is.
    if isinstance(error, LookupError) and error.args and " " in str(error.args[0]) and _own(error):
        return ""
    # What an object of the attacker raises, and what Python says of the form of the call itself.
    if isinstance(error, HostileError) or (isinstance(error, TypeError) and _outside(error)):
        return ""
    return f"{type(error).__name__}: {str(error)[:200]}, in {_place(error)}"


def _badly_told(error: vx.VeraxError) -> str:
    text = str(error)
    if len(text) > LONGEST:
        return f"the error has {len(text):,} characters: {text[:200]}"
    if not text.strip():
        return "the error says nothing"
    if isinstance(error, vx.InputError) and error.kind not in get_args(Kind):
        return f"the error is of a kind that there is not, {error.kind!r}"
    return ""


def _frames(error: BaseException) -> list[tuple[str, str, int]]:
    frames, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append((code.co_filename, code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return frames


def _own(error: BaseException) -> bool:
    """Whether verax itself raised an error."""
    return f"{os.sep}verax{os.sep}" in _frames(error)[-1][0]


def _outside(error: BaseException) -> bool:
    """Whether the interpreter refused the call itself: no frame after those of the attacker."""
    return _frames(error)[-1][0].startswith(_HERE)


def _place(error: BaseException) -> str:
    """The last function of verax on the way, and the last of all."""
    frames = _frames(error)
    own = [frame for frame in frames if f"{os.sep}verax{os.sep}" in frame[0]] or frames
    name, function, line = own[-1]
    last = f", from {frames[-1][1]}" if frames[-1] != own[-1] else ""
    return f"{'/'.join(Path(name).parts[-3:])}:{line} {function}{last}"


def _memory() -> int:
    """The bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """End what is done inside after some seconds of the processor, or ten times as many that pass.

    It may take some more memory than there is now.
    """

    def give_up(_number: int, _frame: object) -> None:
        raise TooLongError

    most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_memory() + MEMORY, most[1]))
    before = [(number, signal.signal(number, give_up)) for number in (signal.SIGALRM, signal.SIGPROF)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(10 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_AS, most)
        for number, handler in before:
            signal.signal(number, handler)
