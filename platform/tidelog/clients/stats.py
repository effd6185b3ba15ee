"""What a client's `stats_cb` gets: librdkafka's statistics, as of the call.

The form is that of librdkafka 2.16 (STATISTICS.md). The lake is the one broker. What needs brokers' connections
is 0, and what is not known is librdkafka's -1 or -1001, as there.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Final

from tidelog.clients.cluster import BROKER_ID, BROKER_PORT, BrokerMetadata
from tidelog.clients.settings import ConsumerSettings, ProducerSettings
from tidelog.clients.traffic import Traffic, Window
from tidelog.clients.values.partitions import OFFSET_INVALID
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake

_instances = count(1)


def traffic_of(settings: ProducerSettings | ConsumerSettings, clock: Clock) -> Traffic | None:
    """What counts a client's traffic; None where the client reports no statistics."""
    return Traffic(clock) if settings.stats_cb is not None and settings.statistics_interval_ms else None


_NONE: Final = Window().take()


class Ticker:
    """Calls `tell` every `statistics.interval.ms` from a thread of its own, until `halt`."""

    def __init__(self, settings: ProducerSettings | ConsumerSettings, tell: Callable[[], None]) -> None:
        self._interval_s = settings.statistics_interval_ms / 1000
        self._tell = tell
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidelog-statistics", daemon=True)
        self._thread.start()

    def halt(self) -> None:
        """End, and wait for it."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._tell()


class Statistics:
    """A client's statistics: what producers and consumers have in common. `kind`: "producer" or "consumer"."""

    kind = ""

    def __init__(self, lake: Lake, settings: ProducerSettings | ConsumerSettings, traffic: Traffic) -> None:
        self._lake = lake
        self._tell = settings.stats_cb
        self._client_id = settings.client_id
        self._name = f"{settings.client_id}#{self.kind}-{next(_instances)}"
        self.traffic = traffic

    def __call__(self) -> None:
        """Call `stats_cb`."""
        if self._tell is not None:
            self._tell(json.dumps(self.document()))

    def document(self) -> dict[str, Any]:
        """Return the statistics."""
        raise NotImplementedError

    def _head(self, **own: int) -> dict[str, Any]:
        clock, now_s = self._lake.clock, self._lake.clock.elapsed_s()
        return {
            "name": self._name,
            "client_id": self._client_id,
            "type": self.kind,
            "ts": int(now_s * 1e6),
            "time": clock.now_ms() // 1000,
            "age": int((now_s - self.traffic.began_s) * 1e6),
            "replyq": 0,
            **dict.fromkeys(("msg_cnt", "msg_size", "msg_max", "msg_size_max"), 0),
            "simple_cnt": 0,
            "metadata_cache_cnt": 0,
            **own,
        }

    def _broker(self, places: Iterable[tuple[str, int]], **own: int) -> dict[str, Any]:
        """{name: the lake as a broker}."""
        traffic, name = self.traffic, str(BrokerMetadata(BROKER_ID, self._lake.uri, BROKER_PORT))
        total, produces = traffic.total(), self.kind == "producer"
        asked = sum(traffic.requests.values())
        broker = {
            "name": name,
            "nodeid": BROKER_ID,
            "nodename": f"{self._lake.uri}:{BROKER_PORT}",
            "source": "configured",
            "state": "UP",
            "stateage": self._us_since(traffic.began_s),
            "outbuf_cnt": 0,
            "outbuf_msg_cnt": 0,
            "waitresp_cnt": traffic.pending,
            "waitresp_msg_cnt": traffic.pending_records,
            "tx": asked,
            "txbytes": total.size if produces else 0,
            "txerrs": traffic.failed,
            "txretries": 0,
            "txidle": self._us_since(traffic.sent_s),
            "req_timeouts": traffic.timed_out,
            "rx": traffic.answered,
            "rxbytes": 0 if produces else total.size,
            "rxerrs": 0,
            "rxcorriderrs": 0,
            "rxpartial": 0,
            "rxidle": self._us_since(traffic.answered_s),
            **dict.fromkeys(("zbuf_grow", "buf_grow", "wakeups", "connects", "disconnects"), 0),
            "int_latency": traffic.waits_us.take(),
            "outbuf_latency": _NONE,
            "rtt": traffic.round_trips_us.take(),
            "throttle": _NONE,
            "req": dict(traffic.requests),
            "toppars": {f"{topic}-{p}": {"topic": topic, "partition": p} for topic, p in places},
            **own,
        }
        return {name: broker}

    def _us_since(self, then_s: float | None) -> int:
        return -1 if then_s is None else int((self._lake.clock.elapsed_s() - then_s) * 1e6)

    def _topic(self, topic: str, partitions: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
        """A topic with its partitions: {number: the fields that are known}."""
        sizes, counts = self.traffic.batches.get(topic, (Window(), Window()))
        age_ms = self._us_since(self.traffic.topics_began_s.get(topic, self._lake.clock.elapsed_s())) // 1000
        return {
            "topic": topic,
            "age": age_ms,
            "metadata_age": 0,
            "batchsize": sizes.take(),
            "batchcnt": counts.take(),
            "partitions": {str(p): self._partition(topic, p, known) for p, known in partitions.items()},
        }

    def _partition(self, topic: str, partition: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        moved, produces = self.traffic.partitions.get((topic, partition)), self.kind == "producer"
        records, size = (0, 0) if moved is None else (moved.records, moved.size)
        leader = BROKER_ID if partition >= 0 else -1
        return {
            "partition": partition,
            "broker": leader,
            "leader": leader,
            "desired": False,
            "unknown": False,
            **dict.fromkeys(
                ("msgq_cnt", "msgq_bytes", "xmit_msgq_cnt", "xmit_msgq_bytes", "fetchq_cnt", "fetchq_size"), 0
            ),
            "fetch_state": "none",
            "query_offset": OFFSET_INVALID,
            "next_offset": 0,
            **dict.fromkeys(("app_offset", "stored_offset", "commited_offset", "committed_offset"), OFFSET_INVALID),
            **dict.fromkeys(("eof_offset", "lo_offset", "hi_offset", "ls_offset"), OFFSET_INVALID),
            **dict.fromkeys(("stored_leader_epoch", "committed_leader_epoch", "leader_epoch"), -1),
            "consumer_lag": -1,
            "consumer_lag_stored": -1,
            "txmsgs": records if produces else 0,
            "txbytes": size if produces else 0,
            "rxmsgs": 0 if produces else records,
            "rxbytes": 0 if produces else size,
            "msgs": records,
            **dict.fromkeys(("rx_ver_drops", "msgs_inflight", "next_ack_seq", "next_err_seq", "acked_msgid"), 0),
            **fields,
        }

    def _totals(self) -> dict[str, int]:
        total, produces = self.traffic.total(), self.kind == "producer"
        sent, read = ((total.records, total.size), (0, 0))[:: 1 if produces else -1]
        return {
            "tx": sum(self.traffic.requests.values()),
            "tx_bytes": sent[1],
            "rx": self.traffic.answered,
            "rx_bytes": read[1],
            "txmsgs": sent[0],
            "txmsg_bytes": sent[1],
            "rxmsgs": read[0],
            "rxmsg_bytes": read[1],
        }
