"""Web servers that answer wrongly: each a function of the connection, after the request was read."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time

CSV = b"label,p_0,p_1\n" + b"0,0.75,0.25\n1,0.25,0.75\n" * 40
# What no answer may lead to.
SECRET = "a local secret"


def head(status="200 OK", *fields, length=None):
    """The first lines of an answer."""
    fields = [*fields, *([] if length is None else [f"Content-Length: {length}"])]
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode()


def chunks(*pieces, end=b"0\r\n\r\n"):
    """An answer in chunks."""
    sent = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return head("200 OK", "Transfer-Encoding: chunked") + sent + end


def says(answer):
    """A server that says this and closes the connection."""
    return lambda connection, request: connection.sendall(answer)


def moved(place, status="302 Found"):
    """A server that names another place."""
    return says(head(status, f"Location: {place}", length=0))


def slowly(start, piece, every=0.1, count=10_000):
    """A server that sends little at a time, for a long while."""

    def serve(connection, request):
        connection.sendall(start)
        for _ in range(count):
            connection.sendall(piece)
            time.sleep(every)

    return serve


def endless(start, piece):
    """A server that never stops."""
    return slowly(start, piece * (2**16 // len(piece) + 1), every=0.0, count=10**9)


def reset(start=b""):
    """A server that breaks the connection off."""

    def serve(connection, request):
        connection.sendall(start)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return serve


def silent(start=b"", seconds=20):
    """A server that says no more, and keeps the connection."""

    def serve(connection, request):
        connection.sendall(start)
        time.sleep(seconds)

    return serve


def growing(connection, request):
    """A server that redirects from each place to a longer one."""
    connection.sendall(head("302 Found", f"Location: {request.split()[1].decode()}x", length=0))


def _gzipped(bytes_):
    return gzip.compress(bytes_)


def _bomb():
    """A megabyte that becomes a gigabyte."""
    return gzip.compress(bytes(2**20), mtime=0) * 1024


_TEXT = f"<html><body>{'Sign in, please. ' * 40}</body></html>".encode()

# By name: the server, and the ending of the file that is asked for.
SERVERS = {
    "nothing": (says(b""), "csv"),
    "no status": (says(b"\r\n\r\n"), "csv"),
    "a greeting of another protocol": (says(b"SSH-2.0-OpenSSH_9.6\r\n"), "csv"),
    "an answer of HTTP 0.9": (says(CSV), "csv"),
    "a status that is no number": (says(b"HTTP/1.1 ok fine\r\n\r\n" + CSV), "csv"),
    "a status of a thousand": (says(head("1000 Great", length=len(CSV)) + CSV), "csv"),
    "a status below 100": (says(head("42 Answer", length=len(CSV)) + CSV), "csv"),
    "a status line that never ends": (endless(b"HTTP/1.1 200 ", b"O" * 4096), "csv"),
    "a header line that never ends": (endless(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 4096), "csv"),
    "headers that never end": (endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), "csv"),
    "headers that trickle": (slowly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), "csv"),
    "headers without end": (says(b"HTTP/1.1 200 OK\r\nX: y"), "csv"),
    "headers of bytes": (says(b"HTTP/1.1 200 OK\r\n\xff\xfe\x00: \x80\r\n\r\n" + CSV), "csv"),
    "continue, again and again": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "csv"),
    "a short body": (says(head(length=2 * len(CSV)) + CSV), "csv"),
    "a body of one byte of a terabyte": (says(head(length=10**12) + b"l"), "csv"),
    "a length above all limits": (silent(head(length=10**18) + b"l"), "csv"),
    "a length with a sign": (says(head("200 OK", "Content-Length: -5") + CSV), "csv"),
    "a length that is no number": (says(head("200 OK", "Content-Length: many") + CSV), "csv"),
    "a length of many digits": (says(head("200 OK", f"Content-Length: {'9' * 5000}") + CSV), "csv"),
    "two lengths": (says(head("200 OK", "Content-Length: 3", f"Content-Length: {len(CSV)}") + CSV), "csv"),
    "a length and chunks": (
        says(head("200 OK", "Transfer-Encoding: chunked", "Content-Length: 3") + b"zz\r\nabc\r\n0\r\n\r\n"),
        "csv",
    ),
    "a longer body than it says": (says(head(length=30) + CSV), "csv"),
    "chunks without end": (says(chunks(CSV, end=b"")), "csv"),
    "a chunk cut short": (says(chunks(end=b"ffff\r\nlabel,p_0")), "csv"),
    "a chunk of no hexadecimal length": (says(chunks(end=b"zz\r\nabc\r\n0\r\n\r\n")), "csv"),
    "a chunk of negative length": (says(chunks(end=b"-5\r\nabc\r\n0\r\n\r\n")), "csv"),
    "a chunk of huge length": (says(chunks(end=b"f" * 40 + b"\r\nabc\r\n0\r\n\r\n")), "csv"),
    "a chunk line that never ends": (endless(chunks(end=b""), b"1" * 4096), "csv"),
    "endless chunks": (endless(chunks(end=b""), b"1000\r\n" + b"1" * 4096 + b"\r\n"), "csv"),
    "endless body": (endless(head(), CSV), "csv"),
    "trickling chunks": (slowly(chunks(end=b""), b"1\r\n1\r\n"), "csv"),
    "a trickling body": (slowly(head(length=10**6), b"1"), "csv"),
    "trailers that never end": (endless(chunks(CSV, end=b"0\r\n"), b"X: y\r\n"), "csv"),
    "reset at once": (reset(), "csv"),
    "reset in the headers": (reset(b"HTTP/1.1 200 OK\r\nX"), "csv"),
    "reset in the body": (reset(head(length=2 * len(CSV)) + CSV), "csv"),
    "reset in a chunk": (reset(chunks(end=b"ffff\r\nlabel,p_0")), "csv"),
    "silence": (silent(), "csv"),
    "silence in the headers": (silent(b"HTTP/1.1 200 OK\r\nX"), "csv"),
    "silence in the body": (silent(head(length=2 * len(CSV)) + CSV), "csv"),
    "a redirect to a file": (moved("file:///etc/hostname"), "csv"),
    "a redirect to ftp": (moved("ftp://127.0.0.1:1/a.csv"), "csv"),
    "a redirect to data": (moved("data:text/csv,label"), "csv"),
    "a redirect to a bucket": (moved("s3://bucket/a.csv"), "csv"),
    "a redirect to itself": (moved("/a.csv"), "csv"),
    "a redirect to ever longer places": (growing, "csv"),
    "a redirect to a closed port": (moved("http://127.0.0.1:1/a.csv"), "csv"),
    "a redirect to no port": (moved("http://127.0.0.1:port/a.csv"), "csv"),
    "a redirect to a port of many digits": (moved("http://127.0.0.1:99999999/a.csv"), "csv"),
    "a redirect to half an address": (moved("http://[::1/a.csv"), "csv"),
    "a redirect to no host": (moved("http:///a.csv"), "csv"),
    "a redirect to a host of control characters": (moved("http://a\x01b/\x7f.csv"), "csv"),
    "a redirect to a host that is none": (moved("http://" + "a" * 300 + ".invalid/a.csv"), "csv"),
    "a redirect to a user": (moved("http://me:hidden@127.0.0.1:1/a.csv?sig=hidden"), "csv"),
    "a redirect to nowhere": (says(head("302 Found", length=0)), "csv"),
    "choices": (says(head("300 Multiple Choices", length=0)), "csv"),
    "not modified": (says(head("304 Not Modified")), "csv"),
    "no content": (says(head("204 No Content")), "csv"),
    "a part": (
        says(head("206 Partial Content", "Content-Range: bytes 0-9/900", length=10) + CSV[:10]),
        "csv",
    ),
    "authentication of an unknown kind": (
        says(head("401 Unauthorized", "WWW-Authenticate: \x01", length=0)),
        "csv",
    ),
    "a proxy that asks": (says(head("407 Proxy Authentication Required", length=0)), "csv"),
    "too many requests": (says(head("429 Too Many Requests", "Retry-After: 99999999", length=0)), "csv"),
    "an error with a short body": (says(head("500 Sorry", length=10**9) + b"x"), "csv"),
    "an error of another language": (says(head("503 \xa7\xa7\x1b[31m", length=0)), "csv"),
    "a page to sign in": (says(head("200 OK", "Content-Type: text/html", length=len(_TEXT)) + _TEXT), "csv"),
    "a page in place of Parquet": (says(head(length=len(_TEXT)) + _TEXT), "parquet"),
    "a page in place of an archive": (says(head(length=len(_TEXT)) + _TEXT), "npz"),
    "a page in place of a compressed file": (says(head(length=len(_TEXT)) + _TEXT), "csv.gz"),
    "nothing in place of Parquet": (says(head(length=0)), "parquet"),
    "an encoding that was not asked for": (
        says(head("200 OK", "Content-Encoding: gzip", length=len(_gzipped(CSV))) + _gzipped(CSV)),
        "csv",
    ),
    "an unknown encoding": (says(head("200 OK", "Content-Encoding: br", length=4) + b"\x0b\x02\x80h"), "csv"),
    "half of a compressed file": (says(head() + _gzipped(CSV)[:30]), "csv.gz"),
    "a compressed bomb": (says(head(length=len(_bomb())) + _bomb()), "csv.gz"),
    "zeros": (says(head(length=2**20) + bytes(2**20)), "csv"),
    "an encoding on the way": (says(head("200 OK", "Transfer-Encoding: gzip, chunked") + CSV), "csv"),
}


class Hostile:
    """A server that answers every request in one wrong way."""

    def __init__(self, serve):
        self._serve = serve
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.requests = 0

    def __enter__(self):
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._socket.close()

    def _run(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        self.requests += 1
        request = b""
        try:
            while b"\r\n\r\n" not in request and (piece := connection.recv(2**16)):
                request += piece
            self._serve(connection, request)
        except OSError:
            # The client has left, as it should.
            return
        finally:
            connection.close()
