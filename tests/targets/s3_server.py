"""An S3 server on loopback, in a process of its own: moto's, or a front before one; it can kill itself at an exact request.

Run as `python s3_server.py [--port PORT] [--front PORT] [--die-at N --match REGEX --when before|after]`. It prints its port, and dies
with its parent.
Requests are counted whose `METHOD path` the expression matches; at the N-th it kills itself by SIGKILL, before or after doing it.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable
from typing import Any

from chaosckpt.engine.wire.process_tree import die_with_parent

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


def dying(application: Application, at: int, match: str, when: str) -> Application:
    """The application, which ends the process at the `at`-th request that matches; 0: never."""
    wanted, lock, seen = re.compile(match), threading.Lock(), [0]

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        named = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        with lock:
            seen[0] += bool(wanted.search(named))
            now = bool(wanted.search(named)) and seen[0] == at
        if not now:
            return application(environ, start_response)
        if when == "after":
            list(application(environ, start_response))
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("SIGKILL returned")

    return answer


def front(port: int) -> Application:
    """Hands every request on to the server at this port, and its answer back."""

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        from werkzeug.wsgi import get_input_stream

        body = get_input_stream(environ).read()
        headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        headers.pop("TRANSFER-ENCODING", None)
        headers.pop("EXPECT", None)
        headers["Content-Length"] = str(len(body))
        if environ.get("CONTENT_TYPE"):
            headers["Content-Type"] = environ["CONTENT_TYPE"]
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(environ["REQUEST_METHOD"], environ["REQUEST_URI"], body, headers)
        response = connection.getresponse()
        content = response.read()
        kept = [(name, value) for name, value in response.getheaders() if name.lower() not in _HOP_BY_HOP]
        length = response.getheader("Content-Length") if environ["REQUEST_METHOD"] == "HEAD" else str(len(content))
        start_response(f"{response.status} {response.reason}", [*kept, ("Content-Length", length or "0")])
        connection.close()
        return [content]

    return answer


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--front", type=int, default=0)
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--match", default=".")
    parser.add_argument("--when", default="before")
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    die_with_parent(os.getppid())
    from werkzeug.serving import make_server

    application: Application
    if given.front:
        application = front(given.front)
    else:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        application = DomainDispatcherApplication(create_backend_app)
    application = dying(application, given.die_at, given.match, given.when)
    server = make_server("127.0.0.1", given.port, application, threaded=True)
    os.write(1, b"%d\n" % server.server_port)
    server.serve_forever()


if __name__ == "__main__":
    main()
