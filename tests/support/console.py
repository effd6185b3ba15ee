"""A console in a thread of the test's process, on a free loopback port, and a client as a page is one."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tidelog.console.base.console import ConsoleSettings
from tidelog.console.server import ConsoleServer
from tidelog.log.lake import Lake


@dataclass(frozen=True)
class RunningConsole:
    """`url` for clients without a slash at its end; `lake` as the console has it open."""

    url: str
    lake: Lake
    server: ConsoleServer

    def client(self, user: tuple[str, str] | None = None) -> "PageClient":
        """A client with the token that changes need. `user`: name and password."""
        return PageClient(self.url, user)


class PageClient(httpx.Client):
    """A client that sends the token of the session with each request, from the beginning of its `with` block."""

    def __init__(self, url: str, user: tuple[str, str] | None) -> None:
        super().__init__(base_url=url, auth=user, timeout=60)

    def __enter__(self) -> "PageClient":
        super().__enter__()
        answer = self.get("/api/session")
        if answer.status_code == 200:
            self.headers["x-tidelog-csrf"] = answer.json()["csrf"]
        return self

    def ok(self, method: str, path: str, body: Any = None, /, **query: Any) -> Any:
        """The JSON of a request that must succeed."""
        answer = self.request(method, path, json=body, params=query or None)
        assert answer.status_code == 200, (answer.status_code, answer.text[:2000])
        return answer.json()

    def refused(self, status: int, method: str, path: str, body: Any = None, /, **query: Any) -> str:
        """What a request that must be refused with a status is answered."""
        answer = self.request(method, path, json=body, params=query or None)
        assert answer.status_code == status, (answer.status_code, answer.text[:2000])
        return str(answer.json()["message"])


@contextmanager
def running_console(
    folder: Path | str,
    *,
    read_only: bool = False,
    host_names: frozenset[str] = frozenset(),
    options: Mapping[str, str] | None = None,
    **settings: Any,
) -> Iterator[RunningConsole]:
    """A console over the lake at an address, which is made, until the end of the block.

    `options`: of the lake's store. `settings`: of the server.
    """
    with Lake(folder, options=options) as lake:
        given = ConsoleSettings(read_only, host_names)
        server = ConsoleServer(lake, ("127.0.0.1", 0), settings=given, **settings)
        server.start()
        try:
            yield RunningConsole(f"http://127.0.0.1:{server.address[1]}", lake, server)
        finally:
            server.stop()
