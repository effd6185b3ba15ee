"""A consumer's statistics."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidelog.clients.consumer.assignment import PartitionState
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.stats import Statistics
from tidelog.clients.traffic import Traffic


@dataclass
class Rebalances:
    """How often partitions were assigned or taken away, when last (on the elapsed clock), and why."""

    count: int = 0
    last_s: float | None = None
    reason: str = ""

    def note(self, now_s: float, reason: str) -> None:
        """One more."""
        self.count, self.last_s, self.reason = self.count + 1, now_s, reason


class ConsumerStatistics(Statistics):
    """A consumer's statistics. `member_id`: in its group, None outside."""

    kind = "consumer"

    def __init__(
        self, shared: ConsumerShared, traffic: Traffic, rebalances: Rebalances, member_id: Callable[[], str | None]
    ) -> None:
        super().__init__(shared.lake, shared.settings, traffic)
        self._shared = shared
        self._rebalances = rebalances
        self._member_id = member_id

    def document(self) -> dict[str, Any]:
        """Return the statistics."""
        with self._shared.lock:
            waiting = self._shared.buffer.by_partition()
            owned = {one.place: _partition(one, *waiting.get(one.place, (0, 0))) for one in self._shared.assignment}
        topics = {topic for topic, _ in owned}
        document = self._head(metadata_cache_cnt=len(topics))
        document["brokers"] = self._broker(owned)
        document["topics"] = {
            topic: self._topic(topic, {p: known for (name, p), known in owned.items() if name == topic})
            for topic in sorted(topics)
        }
        document["cgrp"] = self._group(len(owned))
        return document | self._totals()

    def _group(self, assigned: int) -> dict[str, Any]:
        is_member, rebalances = self._member_id() is not None, self._rebalances
        return {
            "state": "up" if is_member else "init",
            "stateage": self._us_since(self.traffic.began_s) // 1000,
            "join_state": ("steady" if assigned else "wait-assign") if is_member else "init",
            "rebalance_age": 0 if rebalances.last_s is None else self._us_since(rebalances.last_s) // 1000,
            "rebalance_cnt": rebalances.count,
            "rebalance_reason": rebalances.reason,
            "assignment_size": assigned,
        }


def _partition(owned: PartitionState, records: int, size: int) -> dict[str, Any]:
    return {
        "desired": True,
        "fetchq_cnt": records,
        "fetchq_size": size,
        "fetch_state": "stopped" if owned.paused else "offset-query" if owned.cursor is None else "active",
        "query_offset": owned.start,
        "next_offset": owned.start if owned.cursor is None else owned.cursor.position,
        "app_offset": owned.position,
        "stored_offset": owned.stored,
        "commited_offset": owned.committed,
        "committed_offset": owned.committed,
        "eof_offset": owned.eof,
        "lo_offset": owned.log_start,
        "hi_offset": owned.log_end,
        "ls_offset": owned.log_end,
        "consumer_lag": _lag(owned.log_end, owned.committed),
        "consumer_lag_stored": _lag(owned.log_end, owned.stored),
    }


def _lag(end: int, offset: int) -> int:
    return max(0, end - offset) if end >= 0 and offset >= 0 else -1
