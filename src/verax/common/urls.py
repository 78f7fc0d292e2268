"""URLs of places: objects in stores and files of web servers.

The text of a place holds no credentials. What a URL says beside its place (a user, a password, a query such
as the signature of a signed URL) is kept in this process alone, and is nowhere shown or written.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import unquote

# One letter before the colon is a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
# In the names of stores a question mark is a pattern unless options follow.
_OPTIONS = re.compile(r"\?(?=\w+=)")
# Several ways into one place are told apart by their numbers.
_NUMBERED = re.compile(r"(.*)~(\d+)")
WEB = ("http", "https")
# In these URLs the name before @ is that of a container.
_CONTAINERS = ("abfs", "abfss")


class Access(NamedTuple):
    """The user and the query of a URL."""

    user: str = ""
    query: str = ""


# By scheme and host or bucket; on web servers, where a query may choose the file, also by path.
_ACCESS: dict[tuple[str, ...], list[Access]] = {}


class Address(NamedTuple):
    """The scheme of a place, its host or bucket, and the names below."""

    scheme: str
    host: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.scheme}://{'/'.join((self.host, *self.names))}"

    @property
    def top(self) -> Address:
        """The bucket or host."""
        return self._replace(names=())

    @property
    def server(self) -> str:
        """The bucket or host as its URL has it."""
        return _unnumbered(self.host)[0]

    @property
    def access(self) -> Access:
        """The user and the query of its URL."""
        host, number = _unnumbered(self.host)
        known = _ACCESS.get(_key(self._replace(host=host)), [])
        return known[number - 1] if number <= len(known) else Access()


# Hosts that serve the objects of stores by HTTP: the bucket may come first.
_SERVED = re.compile(r"(?:(.+)\.)?(?:s3[.-](?:[\w-]+\.)?amazonaws\.com|storage\.googleapis\.com)")
_S3, _GOOGLE = ("s3", "s3a", "s3n"), ("gs", "gcs")


def object_of(address: Address) -> tuple[str, ...]:
    """What an address leads to, whoever asks and by whatever way: a server, and the names there.

    >>> object_of(address_of("s3://key:secret@scores/a.csv")) == object_of(address_of("s3a://scores//a.csv"))
    True
    >>> object_of(address_of("https://scores.s3.eu-west-1.amazonaws.com/a.csv?sig=x"))
    ('amazon', 'scores', 'a.csv')
    """
    host, names = address.server, address.names
    if address.scheme in WEB:
        served = _SERVED.fullmatch(host)
        if served is None:
            return (host, *names)
        bucket = () if served.group(1) is None else (served.group(1),)
        return ("google" if host.endswith("googleapis.com") else "amazon", *bucket, *names)
    if address.scheme in _S3:
        stated = re.search(r"(?:^|&)endpoint_override=([^&]+)", address.access.query)
        known = stated.group(1) if stated else os.environ.get("AWS_ENDPOINT_URL", "")
        server = unquote(known).rpartition("://")[2].rstrip("/")
        return (server if server and not _SERVED.fullmatch(server) else "amazon", host, *names)
    return ("google" if address.scheme in _GOOGLE else address.scheme, host, *names)


def _unnumbered(host: str) -> tuple[str, int]:
    match = _NUMBERED.fullmatch(host)
    return (match.group(1), int(match.group(2))) if match else (host, 1)


def _key(address: Address) -> tuple[str, ...]:
    return (address.scheme, address.host, *(address.names if address.scheme in WEB else ()))


def scheme_of(text: str) -> str:
    """The scheme of a URL; empty for other texts."""
    match = _URL.fullmatch(text)
    return match.group(1).lower() if match else ""


def address_of(url: str) -> Address:
    """The address of a URL; its user and query are remembered.

    >>> str(address_of("s3://key:secret@scores/preds.csv?region=eu-west-1"))
    's3://scores/preds.csv'
    """
    scheme, rest = scheme_of(url), url.partition("://")[2]
    rest, *query = rest.split("?", 1) if scheme in WEB else _OPTIONS.split(rest, maxsplit=1)
    host, _, name = rest.partition("/")
    user, _, host = host.rpartition("@")
    container = user.partition(":")[0] if scheme in _CONTAINERS else ""
    # The name before @ is shown where it is part of the place, and is no credential.
    shown = f"{container}@{host}" if container else host or "default"
    access = Access("" if user == container else user, "".join(query))
    address = Address(scheme, shown, tuple(filter(None, name.split("/"))))
    known = _ACCESS.setdefault(_key(address._replace(host=_unnumbered(shown)[0])), [])
    if access == Access() and known:
        return address
    if access not in known:
        known.append(access)
    number = known.index(access) + 1
    return address if number == 1 else address._replace(host=f"{shown}~{number}")


def without_credentials(argument: str) -> str:
    """An argument of a command in which a URL, alone or behind `=`, is the text of its place.

    >>> without_credentials("--html=https://me:secret@reports/a.html?sig=x"), without_credentials("a=b")
    ('--html=https://reports/a.html', 'a=b')
    """
    before, equals = "", "="
    while equals:
        if scheme_of(argument) not in ("", "file"):
            return before + str(address_of(argument))
        name, equals, argument = argument.partition("=")
        before += name + equals
    return before
