"""How a source's records and offsets reach the lake, in one transaction or one after the other, and in which topics."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.connect.runtime.conversion import RawRecord
from tidelog.log.appends.appender import AppendBatch, Appender
from tidelog.log.base.backoff import Backoff
from tidelog.log.base.errors import ContendedLogError, OutcomeUnknownError, StorageError, TidelogError, TopicExistsError
from tidelog.log.base.typed_values import listed
from tidelog.log.compacted_topic import Rows
from tidelog.log.delta.schema import HEADERS
from tidelog.log.lake import Lake
from tidelog.log.records.partitioners import assign
from tidelog.log.rules.appends import Ranges
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager

I32 = npt.NDArray[np.int32]
_COLUMNS: Final = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": HEADERS,
        "partition": pa.int32(),
        "timestamp": pa.int64(),
    }
)
# After these the same call may succeed: the store had no room, gave no answer, or others were faster.
_PASSING: Final = (StorageError, OutcomeUnknownError, ContendedLogError)


# Writes a batch: the offset of each record in its topic. Raises tidelog's errors; after one that is retriable it may be
# called again, and writes what is not there yet.
WriteBatch = Callable[[], list[int]]
_OWN = ("replication.factor", "partitions", "include", "exclude")


class SourceWriter(Protocol):
    """Writes batches of a source task, one after another."""

    def begin(self, records: Sequence[RawRecord], offsets: Rows) -> WriteBatch:
        """What writes records, and then, or with them, the rows of connect-offsets. Raises as that does."""

    def close(self) -> None:
        """End; nothing that isn't committed is seen."""


class PlainWriter:
    """Records, then offsets, each by an append that lands once: after a crash between them the records come again."""

    def __init__(self, lake: Lake, offsets_topic: str) -> None:
        self._lake = lake
        self._offsets_topic = offsets_topic
        self._appenders: dict[str, Appender] = {}

    def begin(self, records: Sequence[RawRecord], offsets: Rows) -> WriteBatch:
        """As `SourceWriter.begin`."""
        appends: list[tuple[Sequence[int], I32, AppendBatch]] = []
        for topic, places in by_topic(records).items():
            table, chosen = _rows(self._lake, topic, [records[place] for place in places])
            appends.append((places, chosen, self._append(topic, _with_partitions(table, chosen))))
        after = self._append(self._offsets_topic, _offset_table(offsets)) if offsets else None

        def write() -> list[int]:
            record_offsets = [-1] * len(records)
            for places, chosen, append in appends:
                _spread(record_offsets, places, chosen, append.run())
            if after is not None:
                after.run()
            return record_offsets

        return write

    def _append(self, topic: str, table: pa.Table) -> AppendBatch:
        appender = self._appenders.get(topic)
        if appender is None:
            appender = self._appenders[topic] = self._lake.appender(topic, retries=0)  # the task tries again
        return appender.begin(table)

    def close(self) -> None:
        """Nothing to end."""


class TransactionalWriter:
    """Records and offsets in one transaction: all of a batch is seen, or nothing.

    To make one fences every earlier writer of the transactional id, and finishes what one has committed. `wait`: pauses
    for seconds, True when the task is to stop.
    """

    def __init__(
        self,
        lake: Lake,
        transactional_id: str,
        offsets_topic: str,
        wait: Callable[[float], bool],
        timeout_ms: int = 60_000,
    ) -> None:
        self._lake = lake
        self._offsets_topic = offsets_topic
        self._wait = wait
        self._manager = TransactionManager(lake, transactional_id, timeout_ms=timeout_ms)
        self._turn = 0
        self._manager.init()

    def begin(self, records: Sequence[RawRecord], offsets: Rows) -> WriteBatch:
        """As `SourceWriter.begin`: each try is a transaction of its own, of which nothing is seen unless it commits."""
        return partial(self._write, records, offsets)

    def _write(self, records: Sequence[RawRecord], offsets: Rows) -> list[int]:
        record_offsets = [-1] * len(records)
        staged: dict[str, tuple[Sequence[int], I32]] = {}
        self._turn += 1
        self._manager.begin()
        try:
            for topic, places in by_topic(records).items():
                table, chosen = _rows(self._lake, topic, [records[place] for place in places], self._turn)
                self._manager.stage(topic, table, chosen)
                staged[topic] = places, chosen
            if offsets:
                table = _offset_table(offsets)
                self._manager.stage(self._offsets_topic, table, _chosen(self._lake, self._offsets_topic, table, 0))
        except BaseException:
            self._manager.abort()
            raise
        committed = self._commit()
        for topic, (rows, chosen) in staged.items():
            _spread(record_offsets, rows, chosen, committed.get(topic, {}))
        return record_offsets

    def _commit(self) -> Mapping[str, Ranges]:
        """Commit, for as long as the store gives no answer: only then it is known what became of the batch."""
        backoff = Backoff(0.1, 5.0)
        while True:
            try:
                return self._manager.commit()
            except _PASSING:
                if self._manager.phase is not TransactionPhase.COMMITTING:
                    self._manager.abort()
                    raise
                if self._wait(backoff.next_s()):
                    raise  # a successor finishes it, or aborts it
            except TidelogError:
                if self._manager.phase is TransactionPhase.OPEN:
                    self._manager.abort()
                raise

    def close(self) -> None:
        """Abort what is open."""
        self._manager.close()


def by_topic(records: Sequence[RawRecord]) -> dict[str, list[int]]:
    """The places of each topic's records, in order."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        places[record.topic].append(place)
    return places


def raw_table(records: Sequence[RawRecord]) -> pa.Table:
    """Records as `Topic.append` takes them."""
    columns = {
        "key": [one.key for one in records],
        "value": [one.value for one in records],
        "headers": [[{"key": name, "value": data} for name, data in one.headers] for one in records],
        "partition": [one.partition for one in records],
        "timestamp": [one.timestamp_ms for one in records],
    }
    return pa.table({name: pa.array(column, _COLUMNS.field(name).type) for name, column in columns.items()})


def _rows(lake: Lake, topic: str, records: Sequence[RawRecord], turn: int = 0) -> tuple[pa.Table, I32]:
    table = raw_table(records)
    return table.drop_columns(["partition"]), _chosen(lake, topic, table, turn)


def _chosen(lake: Lake, topic: str, table: pa.Table, turn: int) -> I32:
    """The partition of each row."""
    explicit = table.column("partition") if "partition" in table.column_names else None
    return assign(table.column("key"), explicit, lake.topic(topic).state().partitions, sticky=turn)


def _with_partitions(table: pa.Table, chosen: I32) -> pa.Table:
    return table.append_column("partition", pa.array(chosen, pa.int32()))


def _offset_table(offsets: Rows) -> pa.Table:
    keys, values = [key for key, _ in offsets], [value for _, value in offsets]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def _spread(record_offsets: list[int], places: Sequence[int], chosen: I32, ranges: Ranges) -> None:
    """The offset of each record: those of a partition follow each other."""
    following = {partition: first for partition, (first, _) in ranges.items()}
    for place, partition in zip(places, chosen.tolist(), strict=True):
        if partition in following:
            record_offsets[place] = following[partition]
            following[partition] += 1


@dataclass(frozen=True, slots=True)
class CreationGroup:
    """How the topics of a group are made. `partitions`: None for the lake's default."""

    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = ()
    partitions: int | None = None
    config: Mapping[str, str] = field(default_factory=dict)

    def has(self, topic: str) -> bool:
        """Whether a topic is in the group."""
        matches = any(re.fullmatch(one, topic) for one in self.include)
        return matches and not any(re.fullmatch(one, topic) for one in self.exclude)


def creation_groups(config: Mapping[str, str]) -> list[CreationGroup]:
    """The groups of a connector's configuration, the default one last; [] where it names none."""
    named = listed(config.get("topic.creation.groups", ""))
    if not named and not any(key.startswith("topic.creation.default.") for key in config):
        return []
    groups = []
    for name in [*named, "default"]:
        prefix = f"topic.creation.{name}."
        below = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
        partitions = int(below.get("partitions", "-1"))
        groups.append(
            CreationGroup(
                (".*",) if name == "default" else tuple(listed(below.get("include", ""))),
                () if name == "default" else tuple(listed(below.get("exclude", ""))),
                None if partitions < 0 else partitions,
                {key: value for key, value in below.items() if key not in _OWN},
            )
        )
    return groups


def ensure_source_topic(lake: Lake, topic: str, groups: Sequence[CreationGroup]) -> None:
    """Have a topic by the first group that it is in; without groups, as producers make topics, if they may.

    Raises `UnknownTopicError` where topics are not made on the way, `InvalidConfigError`, `InvalidTopicError`.
    """
    for group in groups:
        if lake.peek(topic) is None and group.has(topic):
            try:
                lake.create_topic(topic, group.partitions or lake.config().num_partitions, group.config)
            except TopicExistsError:
                return
    lake.ensure_topic(topic)
