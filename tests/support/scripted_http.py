"""An HTTP server that gives the answers of a script, for what an object store's client does with them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Answer(NamedTuple):
    """What the server sends. `status` 0 drops the connection without a word."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class ScriptedServer:
    """Answers requests by `script`, from the front; 599 when it is used up.

    `seen` holds "METHOD path" of each request, `sent` its headers by their names in lower case, `bodies` its bytes.
    """

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.seen: list[str] = []
        self.sent: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self.url = ""


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            scripted.bodies.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
            scripted.sent.append({name.lower(): value for name, value in self.headers.items()})
            scripted.seen.append(f"{self.command} {self.path}")
            answer = scripted.script.pop(0) if scripted.script else Answer(599)
            if answer.status == 0:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            if "content-length" not in dict(answer.headers):
                self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body if self.command != "HEAD" else b"")

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    scripted.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield scripted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
