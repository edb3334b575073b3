"""A server that answers as the REST interface of Kafka Connect does, with the states that a test gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def connect_rest(answers: Sequence[int | Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    """Serve `answers` one by one to GETs, and yield the address and the list of paths that were asked for.

    An answer is an HTTP status that is an error, or the states of a connector and its tasks. The last one stays.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers[min(len(asked), len(answers) - 1)]
            asked.append(self.path)
            body = b""
            if isinstance(answer, int):
                self.send_response(answer)
            else:
                connector, *tasks = ({"state": state} for state in answer)
                body = json.dumps({"connector": connector, "tasks": tasks}).encode()
                self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="connect-rest", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
