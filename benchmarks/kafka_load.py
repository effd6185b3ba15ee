"""The load on a broker that costs little itself: requests made once, sent again over plain sockets.

As a program: runs the loads that it reads from stdin, a line of JSON each (`Load`). For each it answers two lines: an
empty one when all is warm and answered, and then, when all is answered again, what it did (`Done`) as JSON.
"""

import json
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice
from typing import Any

import kafka_frames
from confluent_kafka.admin import AdminClient
from figures import percentile

_LENGTH = struct.Struct(">i")
_BUFFER_BYTES = 1 << 16
_PATIENCE_S = 60.0
_MOST_SAMPLES = 20_000


@dataclass(frozen=True)
class Load:
    """What to do to a topic of `partitions`.

    `kind`: "window" (each of `clients` has `window` requests open at every leader, each with a batch of `records` for
    each of its partitions), "single" (each of `clients` has a partition and one record on its way), "paced" (the same,
    but `rate` requests a second over all, whatever is open), "read" (`clients` read all from the beginning, again and
    again) or "follow" (`rate` records a second into partition 0, read by a client that waits for them).
    It lasts `seconds`, or until `most_records` were sent, after `warm_s` of the same.
    """

    kind: str
    address: str
    topic: str
    seconds: float
    warm_s: float = 0.3
    partitions: int = 12
    clients: int = 2
    window: int = 5
    records: int = 1
    codec: str = "none"
    mixed: bool = False
    rate: float = 0.0
    most_records: int = 1 << 62


@dataclass(frozen=True)
class Done:
    """Records taken or read, how long it took, the load's own processor time, and times of answers in ms."""

    records: int
    seconds: float
    own_s: float
    times_ms: list[float] = field(default_factory=list)

    def percentile(self, q: float) -> float:
        """Of the times."""
        return percentile(self.times_ms, q)


class Pace:
    """When requests are due that come at a `rate` a second from `began_s` on, whatever becomes of them."""

    def __init__(self, rate: float, began_s: float) -> None:
        self._rate = rate
        self._began_s = began_s
        self._taken = 0

    def due(self, now_s: float) -> Iterator[float]:
        """When each request was due that is due by now and was not yet taken."""
        while (at_s := self.next_s) <= now_s:
            self._taken += 1
            yield at_s

    @property
    def next_s(self) -> float:
        """When the next one is due."""
        return self._began_s + self._taken / self._rate


class Link:
    """A connection: what is to be sent, when each open request was sent, and the answers as they come."""

    def __init__(
        self, address: str, frames: Iterator[tuple[bytes, int]], took: Callable[["Link", memoryview], None]
    ) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), _PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.open: deque[tuple[float, int]] = deque()
        self._frames = frames
        self._took = took
        self.left: deque[memoryview] = deque()
        self._buffer, self._filled = bytearray(_BUFFER_BYTES), 0

    def send(self, now_s: float) -> int:
        """The next request; the records in it. `now_s`: from when its time counts."""
        frame, records = next(self._frames)
        self.open.append((now_s, records))
        self.left.append(memoryview(frame))
        self.flush()
        return records

    def flush(self) -> None:
        """Send what the socket takes."""
        while self.left:
            try:
                sent = self.socket.send(self.left[0])
            except BlockingIOError:
                return
            if sent == len(self.left[0]):
                self.left.popleft()
            else:
                self.left[0] = self.left[0][sent:]

    def receive(self) -> None:
        """Take all that has come, and hand each whole answer on. Raises `ConnectionError` at the connection's end."""
        try:
            while got := self.socket.recv_into(memoryview(self._buffer)[self._filled :]):
                self._filled += got
                self._hand_on()
        except BlockingIOError:
            return
        raise ConnectionError("the broker closed a connection")

    def _hand_on(self) -> None:
        """The whole answers of the buffer, which then has room for what follows."""
        at = 0
        while self._filled - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._buffer, at)
            end = at + _LENGTH.size + size
            if self._filled < end:
                if size + _LENGTH.size > len(self._buffer):
                    self._buffer = self._buffer + bytearray(2 * size)
                break
            self._took(self, memoryview(self._buffer)[at + _LENGTH.size : end])
            at = end
        if at:
            rest = bytes(memoryview(self._buffer)[at : self._filled])
            self._buffer[: len(rest)] = rest
            self._filled = len(rest)


class Links:
    """Connections that are served together, until none has anything open."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._by_number: dict[int, Link] = {}

    def add(self, link: Link) -> Link:
        """Serve it, too. A socket that takes more is a reason to wake up once, when it did not before (edge)."""
        number = link.socket.fileno()
        self._by_number[number] = link
        self._epoll.register(number, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        return link

    def serve(self, until_s: float) -> None:
        """Send and take what can be, having waited for that until then at most."""
        # select() waits by the microsecond, and epoll by the millisecond.
        select.select([self._epoll.fileno()], [], [], max(0.0, until_s - time.monotonic()))
        for number, events in self._epoll.poll(0):
            link = self._by_number[number]
            if events & select.EPOLLOUT and link.left:
                link.flush()
            if events & ~select.EPOLLOUT:
                link.receive()

    def drain(self) -> None:
        """Until all is answered. Raises `TimeoutError`."""
        until_s = time.monotonic() + _PATIENCE_S
        while any(link.open for link in self._by_number.values()):
            if time.monotonic() > until_s:
                raise TimeoutError("requests were not answered")
            self.serve(until_s)

    def close(self) -> None:
        """All of them."""
        for link in self._by_number.values():
            link.socket.close()
        self._epoll.close()


class Runner:
    """One load. `run` may be called again: what is connected stays."""

    def __init__(self, load: Load, leaders: Sequence[str]) -> None:
        """`leaders`: the address of each partition's."""
        self._load = load
        self._topic = load.topic
        self._links = Links()
        self._records, self._sent, self._until_s = 0, 0, 0.0
        self._times_ms: list[float] = []
        led = {address: [p for p, own in enumerate(leaders) if own == address] for address in dict.fromkeys(leaders)}
        self._own: list[Link] = []
        self._places: dict[Link, dict[int, int]] = {}
        if load.kind == "window":
            for _ in range(load.clients):
                for address, partitions in led.items():
                    self._add(address, partitions)
        elif load.kind in ("single", "paced"):
            for number in range(load.clients):
                partition = number % load.partitions
                self._add(leaders[partition], [partition])
        elif load.kind == "follow":
            self._add(leaders[0], [0])
            self._reader(leaders[0], [0])
        else:
            for address, partitions in led.items():
                for first in range(min(load.clients, len(partitions))):
                    self._reader(address, partitions[first :: load.clients])

    def run(self, seconds: float) -> Done:
        """The load for so long, and until all is answered."""
        self._records, self._sent, self._times_ms = 0, 0, []
        began, own_s = time.monotonic(), time.process_time()
        self._until_s = began + seconds
        if self._load.kind in ("paced", "follow"):
            self._paced(Pace(self._load.rate, began))
        else:
            for link in [*self._own, *self._places]:
                for _ in range(self._load.window if self._load.kind == "window" else 1):
                    self._sent += link.send(began)
        self._links.drain()
        took, used_s = time.monotonic() - began, time.process_time() - own_s
        step = len(self._times_ms) // _MOST_SAMPLES + 1
        return Done(self._records, took, used_s, [round(one, 3) for one in islice(self._times_ms, None, None, step)])

    def close(self) -> None:
        """Its connections."""
        self._links.close()

    def _add(self, address: str, partitions: Sequence[int]) -> None:
        load = self._load
        batches = {p: kafka_frames.batch(load.records, load.codec, mixed=load.mixed, seed=p) for p in partitions}
        frame = kafka_frames.produce(load.topic, batches), load.records * len(batches)
        self._own.append(self._links.add(Link(address, cycle([frame]), self._produced)))

    def _reader(self, address: str, partitions: Sequence[int]) -> None:
        places = dict.fromkeys(partitions, 0)
        frames = ((kafka_frames.fetch(self._topic, places), 0) for _ in cycle([0]))
        link = self._links.add(Link(address, frames, self._read if self._load.kind == "read" else self._followed))
        self._places[link] = places

    def _produced(self, link: Link, answer: memoryview) -> None:
        sent_s, records = link.open.popleft()
        now = time.monotonic()
        partitions = kafka_frames.taken(answer, self._topic)
        self._records += records if partitions else 0
        if self._load.kind != "follow":
            self._times_ms.append((now - sent_s) * 1e3)
        more = self._load.kind in ("window", "single")
        if more and now < self._until_s and self._sent < self._load.most_records:
            self._sent += link.send(now)

    def _read(self, link: Link, answer: memoryview) -> None:
        """On to the next offsets; from the beginning again once all of the link's are at their ends."""
        link.open.popleft()
        places, ended = self._places[link], True
        for part in kafka_frames.fetched(answer):
            if part.code:
                raise kafka_frames.AnswerError(f"a Fetch was refused with the code {part.code}")
            after = part.next_offset(places[part.partition])
            self._records += after - places[part.partition]
            places[part.partition] = after
            ended = ended and after >= part.end
        if ended:
            places.update(dict.fromkeys(places, 0))
        now = time.monotonic()
        if now < self._until_s:
            link.send(now)

    def _followed(self, link: Link, answer: memoryview) -> None:
        link.open.popleft()
        places, now = self._places[link], time.monotonic()
        for part in kafka_frames.fetched(answer):
            after = part.next_offset(places[part.partition])
            for _ in range(after - places[part.partition]):
                self._times_ms.append((now - self._due.popleft()) * 1e3)
            places[part.partition] = after
        if now < self._until_s or self._due:
            link.send(now)

    def _paced(self, pace: Pace) -> None:
        """Each request when it is due; its time counts from then."""
        self._due: deque[float] = deque()
        for link in self._places:
            link.send(time.monotonic())
        links = cycle(self._own)
        while (now := time.monotonic()) < self._until_s:
            for due_s in pace.due(now):
                if self._load.kind == "follow":
                    self._due.append(due_s)
                next(links).send(due_s)
            self._links.serve(min(pace.next_s, self._until_s))


def leaders(address: str, topic: str) -> list[str]:
    """The address of each partition's leader."""
    found = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(topic, timeout=_PATIENCE_S)
    partitions = found.topics[topic].partitions
    nodes = {number: f"{node.host}:{node.port}" for number, node in found.brokers.items()}
    return [nodes[partitions[number].leader] for number in range(len(partitions))]


def main() -> None:
    """Loads, until stdin ends."""
    for line in sys.stdin:
        load = Load(**json.loads(line))
        runner = Runner(load, leaders(load.address, load.topic))
        if load.warm_s:
            runner.run(load.warm_s)
        print(flush=True)
        done = runner.run(load.seconds)
        runner.close()
        print(json.dumps(asdict(done)), flush=True)


def as_line(load: Load) -> str:
    """What `main` reads."""
    return json.dumps(asdict(load)) + "\n"


def from_line(line: str) -> Done:
    """What `main` says."""
    told: dict[str, Any] = json.loads(line)
    return Done(**told)


if __name__ == "__main__":
    main()
