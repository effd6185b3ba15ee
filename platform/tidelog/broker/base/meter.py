"""What a broker counts while it works: plain numbers, which cost next to nothing."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.broker.base.client_meter import ClientMeter
from tidelog.server.telemetry.tracing import Tracing

# Durations are kept in classes that grow by a sixth, from 10 us on: a quantile is off by less than that.
_SHORTEST_MS = 0.01
_STEP = 1.1665
_CLASSES = 120
_PER_STEP = 1 / math.log(_STEP)
# A quantile is of one to two such stretches of time: what was slow an hour ago is no news.
STRETCH_S = 60.0
# What requests of all versions are counted as that the broker does not offer.
NOT_OFFERED = -1


class Durations:
    """How long something took, of late: how often in all, and quantiles in ms."""

    __slots__ = ("_before", "_now", "_since_s", "count")

    def __init__(self) -> None:
        self.count = 0
        self._now = [0] * _CLASSES
        self._before = [0] * _CLASSES
        self._since_s = 0.0

    def add(self, took_s: float, now_s: float) -> None:
        """Note one that took so long, and ended `now_s` on the elapsed clock."""
        if now_s - self._since_s > STRETCH_S:
            stale = now_s - self._since_s > 2 * STRETCH_S
            self._before = [0] * _CLASSES if stale else self._now
            self._now, self._since_s = [0] * _CLASSES, now_s
        self.count += 1
        ms = took_s * 1000
        at = 0 if ms <= _SHORTEST_MS else int(math.log(ms / _SHORTEST_MS) * _PER_STEP) + 1
        self._now[min(at, _CLASSES - 1)] += 1

    def quantiles(self, of: Sequence[float]) -> dict[float, float]:
        """{quantile: ms}, of the last minute or two; {} when there was none."""
        counts = [a + b for a, b in zip(self._now, self._before, strict=True)]
        total = sum(counts)
        by_quantile: dict[float, float] = {}
        for quantile in of if total else ():
            rank, seen = max(1, math.ceil(quantile * total)), 0
            for at, count in enumerate(counts):
                seen += count
                if seen >= rank:
                    by_quantile[quantile] = _SHORTEST_MS * _STEP**at
                    break
        return by_quantile


@dataclass(slots=True)
class RequestMeter:
    """Requests of one API: how many of each version, bytes of both directions, how long each stage took.

    `requests`: {version, or `NOT_OFFERED`: how many}, of those that were answered.
    `errors`: {error code: how often}, of answers and of requests that ended their connection; 0 is for none.
    """

    requests: Counter[int] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0
    errors: Counter[int] = field(default_factory=Counter)
    queued: Durations = field(default_factory=Durations)  # until its handler began
    handled: Durations = field(default_factory=Durations)  # by its handler
    total: Durations = field(default_factory=Durations)  # from its last byte to the answer's hand-over to the socket

    def single(self, version: int, bytes_in: int, bytes_out: int, took_s: float, now_s: float) -> None:
        """Count one that began when it had come, and is answered as soon as it is through."""
        self.requests[version] += 1
        self.bytes_in += bytes_in
        self.bytes_out += bytes_out
        self.queued.add(0.0, now_s)
        self.handled.add(took_s, now_s)
        self.total.add(took_s, now_s)


@dataclass(slots=True)
class TopicMeter:
    """What clients sent to a topic and took from it. Bytes are those of record batches as they travel."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    produce_requests: int = 0
    fetch_requests: int = 0
    failed_produce_requests: int = 0
    failed_fetch_requests: int = 0


class BrokerMeter:
    """All that a broker counts. Written by the loop's thread; read by any."""

    def __init__(self) -> None:
        self.requests: dict[str, RequestMeter] = {}
        self._topics: dict[str, TopicMeter] = {}
        # Where requests become traces; None: nowhere.
        self.tracing: Tracing | None = None
        # The metrics that clients push.
        self.clients = ClientMeter()
        self.connections_opened = 0
        self.connections_refused = 0
        self.connections_dropped = 0
        # The share of a core that each topic took of late, where several brokers serve.
        self.topic_shares: Mapping[str, float] = {}
        self.hand_overs: Counter[str] = Counter()  # parts handed over to topics' committers, by outcome
        # Log-ins by SASL: the first of a connection, those after, and those that failed.
        self.logins = 0
        self.logins_again = 0
        self.logins_failed = 0

    def api(self, name: str) -> RequestMeter:
        """The counts of an API."""
        meter = self.requests.get(name)
        if meter is None:
            meter = self.requests[name] = RequestMeter()
        return meter

    def topic(self, name: str) -> TopicMeter:
        """The counts of a topic: `meter.topic(name).messages_in += count`."""
        meter = self._topics.get(name)
        if meter is None:
            meter = self._topics[name] = TopicMeter()
        return meter

    def topics(self) -> Mapping[str, TopicMeter]:
        """{topic: its counts}, of those that clients have used here."""
        return dict(self._topics)
