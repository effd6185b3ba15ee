"""A gate on loopback before a server: bytes go through while it is open, and stand still while it is shut.

A client behind a gate that is shut sees what one sees that is cut off from a machine: a connection carries nothing, and
no error says so.
"""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_AT_ONCE = 256 * 1024


class TcpGate:
    """A gate to the server at `host` and `port`. `open` and `shut` may be called from any thread."""

    def __init__(self, host: str, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._server_port = port
        self._loop = loop
        self._is_open = asyncio.Event()
        self._is_open.set()
        self.port = 0

    @property
    def url(self) -> str:
        """Where a client is to connect to."""
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Let bytes through, those that have waited first."""
        self._loop.call_soon_threadsafe(self._is_open.set)

    def shut(self) -> None:
        """Hold all bytes."""
        self._loop.call_soon_threadsafe(self._is_open.clear)

    async def listen(self) -> None:
        """Take connections at a free port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._is_open.wait()
            up_reader, up_writer = await asyncio.open_connection(self._host, self._server_port)
            await asyncio.gather(self._carry(reader, up_writer), self._carry(up_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # asyncio would print that the gate's end has cancelled it
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_AT_ONCE):
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            with suppress(OSError, RuntimeError):
                writer.close()


@contextmanager
def tcp_gates(servers: Sequence[tuple[str, int]]) -> Iterator[list[TcpGate]]:
    """A gate before each of these servers, in a thread of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gates", daemon=True)
    thread.start()
    gates = [TcpGate(host, port, loop) for host, port in servers]
    try:
        for gate in gates:
            asyncio.run_coroutine_threadsafe(gate.listen(), loop).result(10)
        yield gates
    finally:
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end_all() -> None:
    """End all connections of this loop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
