"""Files of web servers, copied whole and within limits, whatever a server answers."""

from __future__ import annotations

import errno
import http.client
import io
import os
import re
import shutil
import tempfile
import time
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urljoin, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from verax._settings import settings
from verax.common.urls import WEB, Address, scheme_of
from verax.errors import show

# Bytes that a server must send in `settings.remote_wait` seconds, and those of everything before the file.
_LEAST, _MOST_HEADERS = 1024, 2**20
_BLOCK = 2**20
# The user and the query of a URL.
_CREDENTIALS = re.compile(r"(?<=//)[^/@]*@|[?#].*", re.DOTALL)
_LENGTH = re.compile(r"\s*(\d{1,18})\s*")
_AGAIN = "Try again later, or download the file by other means and name the copy."
_COPY = "Download the file by other means and name the copy."
_SEE = "Open the address in a browser: it may ask to sign in, or name another place."
# What tells a server which version is known, and the header that it came in.
_VERSIONS = {"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"}


class WrongAnswerError(Exception):
    """What a server did in place of sending the file, and what to do."""

    def __init__(self, what: str, remedy: str = _AGAIN) -> None:
        super().__init__(f"The server {what}. {remedy}")


class UnreachableError(Exception):
    """There is no connection to the server."""


class DeniedError(Exception):
    """The server wants credentials."""


class Copy(NamedTuple):
    """A copied file, what tells the server which version it is, and when it was looked at."""

    path: Path
    version: dict[str, str]
    looked: float


def fetch(place: Address, known: Copy | None = None) -> Copy:
    """The copy of a file of a web server: `known` itself if the server says that it is the same still.

    It raises `FileNotFoundError` where the server has no such file.
    """
    request = _request(place, {} if known is None else known.version)
    try:
        # Not `urlopen`, which reads files and FTP.
        with closing(_opener().open(request, timeout=settings.remote_wait)) as answer:
            return _copied(answer, place)
    except HTTPError as error:
        error.close()
        if error.code == 304 and known is not None:
            return known._replace(looked=time.monotonic())
        if error.code in (404, 410):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place)) from None
        if error.code in (401, 403, 407):
            raise DeniedError from None
        raise WrongAnswerError(f"answers {error.code} {show(error.reason)}") from None
    except URLError as error:
        raise _of(error.reason if isinstance(error.reason, Exception) else error) from None
    except (WrongAnswerError, MemoryError):
        raise
    except (OSError, http.client.HTTPException, ValueError, ArithmeticError) as error:
        raise _of(error) from None


def _of(error: Exception) -> Exception:
    """What went wrong on the way."""
    if isinstance(error, OSError) and error.filename is not None:
        return error
    if isinstance(error, TimeoutError):
        return WrongAnswerError(f"sent less than {_LEAST:,} bytes in {settings.remote_wait:g} seconds")
    if isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError):
        return WrongAnswerError("broke the connection off")
    if isinstance(error, http.client.IncompleteRead):
        return WrongAnswerError("broke the file off, or sent chunks of wrong lengths")
    if isinstance(error, http.client.InvalidURL | UnicodeError):
        return WrongAnswerError(f"has no valid address ({show(str(error))})", _SEE)
    if isinstance(error, http.client.HTTPException | ValueError):
        return WrongAnswerError(f"answers what is no HTTP ({show(f'{type(error).__name__}: {error}')})", _SEE)
    return UnreachableError(str(error))


def _request(place: Address, version: dict[str, str]) -> Request:
    user, query = place.access
    names = quote("/".join(place.names), safe="/%:@!$&'()*+,;=~")
    url = f"{place.scheme}://{place.server}/{names}" + (f"?{query}" if query else "")
    request = Request(url, headers={"User-Agent": "verax", **version})
    if user:
        # Not sent on to another server that this one names.
        credentials = b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {credentials}")
    return request


class _Paced(io.RawIOBase):
    """The bytes of a connection, which must keep coming, and be no more than allowed."""

    def __init__(self, raw: Any) -> None:
        self._raw, self._most = raw, _MOST_HEADERS
        self._total = self._lately = 0
        self._since = time.monotonic()

    def allow(self, most: int) -> None:
        """Bytes that may come from now on."""
        self._total, self._most = 0, most

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        n = int(self._raw.readinto(into) or 0)
        self._total += n
        self._lately += n
        if self._total > self._most:
            of = "headers" if self._most == _MOST_HEADERS else "the file"
            raise WrongAnswerError(f"sends more than {self._most:,} bytes of {of}", _COPY)
        if self._lately >= _LEAST:
            self._lately, self._since = 0, time.monotonic()
        elif n and time.monotonic() - self._since > settings.remote_wait:
            raise TimeoutError
        return n

    def close(self) -> None:
        super().close()
        self._raw.close()


class _Answer(http.client.HTTPResponse):
    """An answer whose bytes are paced."""

    def __init__(self, sock: Any, *given: Any, **more: Any) -> None:
        super().__init__(sock, *given, **more)
        self._paced = _Paced(self.fp.detach())
        self.fp = io.BufferedReader(self._paced)

    def begin(self) -> None:
        super().begin()
        self._paced.allow(settings.most_fetched)

    def _read_and_discard_trailer(self) -> None:
        self._paced.allow(_MOST_HEADERS)
        super()._read_and_discard_trailer()  # type: ignore[misc]


def _watched(http_class: Any) -> Any:
    """A connection of this class whose answers are paced."""

    def connect(*given: Any, **more: Any) -> Any:
        connection = http_class(*given, **more)
        connection.response_class = _Answer
        return connection

    return connect


class _Http(HTTPHandler):
    def do_open(self, http_class: Any, req: Any, **more: Any) -> Any:
        return super().do_open(_watched(http_class), req, **more)


class _Https(HTTPSHandler):
    def do_open(self, http_class: Any, req: Any, **more: Any) -> Any:
        return super().do_open(_watched(http_class), req, **more)


class _Redirects(HTTPRedirectHandler):
    """Redirects to web servers only; where others lead is said."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        place = headers.get("Location")
        if place is None:
            raise WrongAnswerError(f"answers {code} and names no other place", _SEE)
        try:
            url = urljoin(req.full_url, place)
            host = urlsplit(url).hostname
        except ValueError:
            raise WrongAnswerError("redirects to what is no address", _SEE) from None
        shown = show(_CREDENTIALS.sub("", url))
        if scheme_of(url) not in WEB or not host:
            raise WrongAnswerError(
                f"redirects to {shown}, which is no file of a web server",
                "Name that file if it is the one that is meant.",
            )
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except HTTPError as error:
            if error.code != code:
                raise
            raise WrongAnswerError(f"redirects again and again, at last to {shown}", _SEE) from None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


@cache
def _opener() -> OpenerDirector:
    opener = OpenerDirector()
    for handler in (ProxyHandler, _Http, _Https, _Redirects, HTTPErrorProcessor, HTTPDefaultErrorHandler):
        opener.add_handler(handler())
    return opener


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="verax-")


def _copied(answer: Any, place: Address) -> Copy:
    """The content of an answer in a file; anything that may not be all of the file is refused."""
    if answer.status != 200:
        raise WrongAnswerError(f"answers {answer.status} {show(answer.reason)} and no file", _SEE)
    folder = Path(_folder().name)
    _check_length(answer, shutil.disk_usage(folder).free)
    handle, name = tempfile.mkstemp(dir=folder)
    try:
        with open(handle, "wb", buffering=0) as file:
            for block in _decoded(answer, place):
                _write(file, block, place)
        version = {mine: answer.headers[its] for mine, its in _VERSIONS.items() if answer.headers[its]}
        return Copy(Path(name), version, time.monotonic())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(file: Any, block: bytes, place: Address) -> None:
    try:
        rest = memoryview(block)
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        reason = f"{error.strerror} in {tempfile.gettempdir()}, where it is copied to"
        raise OSError(error.errno, reason, str(place)) from None


def _check_length(answer: Any, free: int) -> None:
    if (answer.headers.get("Transfer-Encoding") or "chunked").lower() != "chunked":
        raise WrongAnswerError("sends the file in an encoding that was not asked for", _COPY)
    lengths = set(answer.headers.get_all("Content-Length", []))
    if len(lengths) > 1:
        raise WrongAnswerError(f"announces {len(lengths)} different lengths")
    for length in lengths:
        known = _LENGTH.fullmatch(length)
        if known is None:
            raise WrongAnswerError(f"announces a length of {show(length)}")
        most = min(settings.most_fetched, free)
        if int(known.group(1)) > most:
            raise WrongAnswerError(
                f"announces {int(known.group(1)):,} bytes, and {most:,} may be copied here", _COPY
            )


def _blocks(answer: Any) -> Iterator[bytes]:
    """The bytes of an answer; fewer than it announced are refused."""
    # Chunks have no length.
    announced, n = answer.length, 0
    is_page = answer.headers.get_content_type() == "text/html"
    while block := answer.read(_BLOCK):
        if not n and is_page and block.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<":
            raise WrongAnswerError("sends a page in place of the file", _SEE)
        n += len(block)
        yield block
    if announced is not None and n != announced:
        raise WrongAnswerError(f"sent a part of the file only, {n:,} of {announced:,} bytes")


def _decoded(answer: Any, place: Address) -> Iterator[bytes]:
    """The bytes of the file, expanded where the server compressed them unasked."""
    encoding = (answer.headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding == "identity" or (encoding in ("gzip", "x-gzip") and str(place).endswith(".gz")):
        yield from _blocks(answer)
        return
    if encoding not in ("gzip", "x-gzip"):
        raise WrongAnswerError(
            f"sends the file in an encoding that was not asked for, {show(encoding)}", _COPY
        )
    expand = zlib.decompressobj(31)
    given = made = 0
    try:
        for block in _blocks(answer):
            given += len(block)
            while block:
                content = expand.decompress(block, _BLOCK)
                made += len(content)
                if made > settings.large_member and made > settings.most_ratio * given:
                    raise WrongAnswerError(
                        f"sends bytes that expand to more than {settings.most_ratio} times their number",
                        _COPY,
                    )
                yield content
                block = expand.unconsumed_tail
    except zlib.error:
        raise WrongAnswerError("sends damaged bytes: they cannot be expanded") from None
    if not expand.eof:
        raise WrongAnswerError("sent a part of the file only: its compressed bytes have no end")
