"""Servers of tests: an S3-compatible store (moto's), and a web server."""

from __future__ import annotations

import base64
import os
import threading
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIATESTING",
    "AWS_SECRET_ACCESS_KEY": "verysecretkey",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@contextmanager
def store(*buckets):
    """The address of an S3-compatible server with these buckets; libraries find it in the environment."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        for bucket in buckets:
            urllib.request.urlopen(urllib.request.Request(f"{address}/{bucket}", method="PUT")).close()
        # Nothing of this machine or its role is asked for.
        with mock.patch.dict(
            os.environ, {**KEYS, "AWS_ENDPOINT_URL": address, "AWS_EC2_METADATA_DISABLED": "true"}
        ):
            yield address
    finally:
        server.stop()


class Web:
    """A web server with files by name; some need a user, or a signature in the query."""

    def __init__(self):
        self.files, self.users, self.signed, self.asked = {}, {}, {}, []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                name, _, query = self.path.lstrip("/").partition("?")
                web.asked.append(self.path)
                user = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
                content = web.files.get(f"{name}?{query}", web.files.get(name))
                code = 200 if content is not None else 404
                if web.users.get(name, user) != user or web.signed.get(name, query) != query:
                    code, content = 403, None
                self.send_response(code)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.address = f"http://{self.host}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
