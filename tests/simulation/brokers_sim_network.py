"""Connections between simulated processes: bytes in order, which are late, lost with their connection, or never come.

A process that is frozen still has what its kernel took for it; one that is killed has its connections reset, and one
whose machine is gone leaves its peers without a word.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from brokers_sim_loop import SimLoop
from sim_scheduler import Process, Scheduler

Address = tuple[str, int]


@dataclass(slots=True)
class Weather:
    """How likely a message fares badly."""

    late: float = 0.0  # it comes seconds later, and all behind it
    reset_before: float = 0.0  # it is lost, and the connection with it
    reset_after: float = 0.0  # it arrives, and then the connection is gone
    silent: float = 0.0  # it is lost, and so is all behind it: neither side hears of it


@dataclass(eq=False)
class Host:
    """A process at its place in the network."""

    process: Process
    loop: SimLoop
    name: str


class SimTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: "SimNetwork", host: Host, other: Address) -> None:
        super().__init__()
        self._network = network
        self.host = host
        self.peer: SimTransport | None = None
        self.protocol: Any = None
        self._address = other
        self.is_open = True
        self._paused = False
        self._held: deque[bytes] = deque()
        # When the last message to the other end arrives there: the next one does not overtake it.
        self.arrives_s = 0.0
        self.is_silent = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._address if name == "peername" else default

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return not self.is_open

    def is_reading(self) -> bool:
        return not self._paused

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes | memoryview) -> None:  # type: ignore[override]
        if self.is_open:
            self._network.send(self, bytes(data))

    def writelines(self, pieces: Sequence[bytes | memoryview]) -> None:  # type: ignore[override]
        self.write(b"".join(pieces))

    def close(self) -> None:
        if self.is_open and not self.host.process.dead:
            self._network.end(self)
            self.lost(None)

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self.host.loop.call_soon(self._take_held)

    # --- what arrives --------------------------------------------------------------------------------------

    def arrived(self, data: bytes) -> None:
        """Bytes have come."""
        if self._paused:
            self._held.append(data)
        elif self.is_open:
            self._give(data)

    def lost(self, error: Exception | None) -> None:
        """The connection is over."""
        if self.is_open:
            self.is_open = False
            self.host.loop.call_soon(self.protocol.connection_lost, error)

    def _take_held(self) -> None:
        while self._held and not self._paused and self.is_open:
            self._give(self._held.popleft())

    def _give(self, data: bytes) -> None:
        if not isinstance(self.protocol, asyncio.BufferedProtocol):
            self.protocol.data_received(data)
            return
        while data and self.is_open:
            space = self.protocol.get_buffer(-1)
            size = min(len(space), len(data))
            space[:size] = data[:size]
            data = data[size:]
            self.protocol.buffer_updated(size)


class SimNetwork:
    """All connections of a world."""

    def __init__(self, scheduler: Scheduler, rng: Random) -> None:
        self.weather = Weather()
        self._scheduler = scheduler
        self._rng = rng
        self._listening: dict[Address, tuple[Host, Callable[[], Any]]] = {}
        self._hosts: dict[SimLoop, Host] = {}
        self._open: dict[SimTransport, None] = {}
        # Pairs of hosts whose messages wait until then.
        self._cut: dict[frozenset[str], float] = {}

    def join(self, host: Host) -> None:
        """A process has a place in the network."""
        self._hosts[host.loop] = host

    def listen(self, loop: SimLoop, address: Address, protocol: Callable[[], Any]) -> None:
        """Connections to this address are this process'. Raises `OSError` while another one listens there."""
        before = self._listening.get(address)
        if before is not None and not before[0].process.dead:
            raise OSError(f"{address} is taken")
        self._listening[address] = (self._hosts[loop], protocol)

    def close(self, loop: SimLoop) -> None:
        """A process listens no more."""
        self._listening = {where: one for where, one in self._listening.items() if one[0].loop is not loop}

    def cut(self, one: str, other: str, seconds: float) -> None:
        """Messages between two hosts wait for so long."""
        self._cut[frozenset((one, other))] = self._scheduler.now + seconds

    def heal(self) -> None:
        """Nothing goes wrong any more; what was swallowed stays so until a client notices."""
        self.weather = Weather()
        self._cut.clear()

    def gone(self, process: Process, *, silently: bool) -> None:
        """A process is dead: its peers hear of it, unless its machine is gone, too."""
        for transport in [one for one in self._open if one.host.process is process]:
            if silently:
                transport.is_silent = True
            self.end(transport)
            transport.is_open = False

    # --- connections ---------------------------------------------------------------------------------------

    async def connect(self, loop: SimLoop, factory: Callable[[], Any], address: Address) -> Any:
        """A new connection. Raises `ConnectionRefusedError` where no process listens."""
        host = self._hosts[loop]
        found = self._listening.get(address)
        await asyncio.sleep(self._latency(host.name, found[0].name if found else ""))
        found = self._listening.get(address)
        if found is None or found[0].process.dead:
            raise ConnectionRefusedError(f"no process listens at {address}")
        server, protocol = found
        near, far = SimTransport(self, host, address), SimTransport(self, server, (host.name, 1))
        near.peer, far.peer = far, near
        self._open[near] = self._open[far] = None
        near.protocol = factory()
        near.arrives_s = self._scheduler.now
        server.loop.deliver(0.0, self._accept, far, protocol)
        near.protocol.connection_made(near)
        return near, near.protocol

    def _accept(self, transport: SimTransport, factory: Callable[[], Any]) -> None:
        transport.protocol = factory()
        transport.protocol.connection_made(transport)

    def send(self, sender: SimTransport, data: bytes) -> None:
        """Have bytes arrive at the other end, or not."""
        if sender.host.process.dead or sender.peer is None:
            return
        weather, chance = self.weather, self._rng.random()
        delay = self._latency(sender.host.name, sender.peer.host.name)
        if chance < weather.late:
            delay += self._rng.choice([0.3, 1.0, 4.0, 8.0]) * self._rng.uniform(0.5, 1.5)
        chance -= weather.late
        if 0 <= chance < weather.silent:
            sender.is_silent = True
        chance -= weather.silent
        if sender.is_silent:
            return
        if 0 <= chance < weather.reset_before:
            self._reset(sender)
            return
        chance -= weather.reset_before
        at = 0 if self._rng.random() < 0.95 else self._rng.randrange(len(data))
        for part in (data[:at], data[at:]):
            if part:
                self._later(sender, delay, sender.peer.arrived, part)
        if 0 <= chance < weather.reset_after:
            self._reset(sender)

    def end(self, transport: SimTransport) -> None:
        """One end is closed: the other hears of it, behind all that was sent."""
        self._open.pop(transport, None)
        if transport.peer is not None and not transport.is_silent and transport.peer.is_open:
            error = ConnectionResetError("the other end is closed")
            self._later(transport, self._latency(transport.host.name, transport.peer.host.name), self._end, error)

    def _end(self, transport: SimTransport, error: Exception) -> None:
        self._open.pop(transport, None)
        if transport.protocol is not None:
            transport.lost(error)

    def _reset(self, sender: SimTransport) -> None:
        assert sender.peer is not None
        error = ConnectionResetError("the connection broke")
        self._later(sender, 0.001, self._end, error)
        sender.host.loop.call_soon(self._end, sender, error)

    def _later(self, sender: SimTransport, delay: float, call: Any, what: Any) -> None:
        peer = sender.peer
        assert peer is not None
        if peer.host.process.dead:
            return
        sender.arrives_s = max(sender.arrives_s + 1e-6, self._scheduler.now + delay)
        args = (peer, what) if call == self._end else (what,)
        peer.host.loop.deliver(sender.arrives_s - self._scheduler.now, call, *args)

    def _latency(self, one: str, other: str) -> float:
        until_s = self._cut.get(frozenset((one, other)), 0.0)
        return max(0.0, until_s - self._scheduler.now) + 0.0001 * 10 ** (self._rng.random() * 1.3)


class SimServer:
    """Stands for a listening `asyncio.Server`."""

    def __init__(self, network: SimNetwork, loop: SimLoop, address: Address, protocol: Callable[[], Any]) -> None:
        self._network = network
        self._loop = loop
        self._address = address
        self._protocol = protocol

    async def start_serving(self) -> None:
        self._network.listen(self._loop, self._address, self._protocol)

    def close(self) -> None:
        self._network.close(self._loop)


async def listen(protocol: Callable[[], Any], address: Address) -> tuple[SimServer, Address]:
    """Stands for `tidelog.server.base.listeners.listen`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return SimServer(loop.network, loop, address, protocol), address
