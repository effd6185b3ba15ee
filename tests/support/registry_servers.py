"""A registry in a thread of the test's process, on a free loopback port."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidelog.log.lake import Lake
from tidelog.registry.api.serving import RegistryServer


@dataclass(frozen=True)
class RunningRegistry:
    """`url` for clients, `server` to ask it to stop."""

    url: str
    server: RegistryServer


@contextmanager
def running_registry(folder: Path, **settings: Any) -> Iterator[RunningRegistry]:
    """A registry over the lake in a folder, until the end of the block. `settings`: of the server besides."""
    with Lake(folder) as lake:
        server = RegistryServer(lake, ("127.0.0.1", 0), **settings)
        server.start()
        try:
            yield RunningRegistry(f"{server.scheme}://127.0.0.1:{server.address[1]}", server)
        finally:
            server.stop()
