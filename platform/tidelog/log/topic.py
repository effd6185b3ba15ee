"""A topic: append, read, offsets. The handle is bound to one topic id."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from tidelog.log.appends.joint import JointAppend
from tidelog.log.appends.staged import StagedAppend
from tidelog.log.base.errors import SegmentTooOldError
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.schema import LOG_APPEND_TIME
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.rate_limit import Throttle
from tidelog.log.door.topic_machine import stored_config
from tidelog.log.read_on import read_on
from tidelog.log.records import partitioners
from tidelog.log.records.checks import check_columns
from tidelog.log.records.frames import as_table
from tidelog.log.rules.appends import LogAppendTimeError, Marker, Ranges, StagedShare, parse_acks
from tidelog.log.rules.topics import Outcome, decide_grow, require_partition, require_topic
from tidelog.log.segments import fetch
from tidelog.log.segments.restage import restage
from tidelog.log.segments.staging import Stager, Target
from tidelog.log.segments.writer import ROW_GROUP_RECORDS, Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.topic_growth import Growth
from tidelog.log.topic_tables import TopicTables
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.value_typing import Typing
from tidelog.log.upkeep.background import Upkeep
from tidelog.log.upkeep.lake_context import LakeContext

logger = logging.getLogger("tidelog.log")

R = TypeVar("R")

# Appends with acks=0 that may wait for the background; the next one waits with its caller.
QUIET_APPENDS = 100


class Topic(TopicTables):
    """One topic of a lake, from `Lake.topic`. All methods may be called from many threads. `joint` commits to it."""

    def __init__(
        self, lake: LakeContext, name: str, door: Door[TopicState], upkeep: Upkeep, throttle: Throttle
    ) -> None:
        self._lake = lake
        self._name = name
        self._door = door
        self._upkeep = upkeep
        self._throttle = throttle
        self.joint = JointAppend(self, lake.clock)
        self._quiet = threading.BoundedSemaphore(QUIET_APPENDS)
        self._configured: tuple[Metadata | None, LakeConfig, TopicConfig] | None = None
        self._turn = int(lake.ids.fraction() * 2**31)
        state = door.refresh()
        self._topic_id = state.topic_id if state.exists else ""

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._name

    @property
    def storage(self) -> Storage:
        """The store that the topic is in."""
        return self._lake.storage

    @property
    def folder(self) -> str:
        """The topic's folder below the lake's root."""
        return self._door.folder

    @property
    def id(self) -> str:
        """The id of the life of the topic that this handle is bound to; "" before it is created."""
        return self._topic_id

    @property
    def known(self) -> TopicState:
        """The topic's state as of the last look at its log. Not to be changed."""
        return self._door.state

    def state(self) -> TopicState:
        """The topic's state at the head of its log. Not to be changed.

        Raises `UnknownTopicError`, or `TopicChangedError` when it is not the topic that was opened any more.
        """
        state = self._door.refresh()
        if not state.exists:
            self._lake.require_lake()
        require_topic(state, self._name, self._topic_id)
        return state

    def config(self) -> TopicConfig:
        """The topic's configuration over the lake's defaults."""
        metadata, defaults, memo = self._door.state.metadata, self._lake.config(), self._configured
        if memo is None or memo[0] is not metadata or memo[1] is not defaults:
            config = stored_config(self._name, self._door.state.overrides, defaults)
            memo = self._configured = (metadata, defaults, config)
        return memo[2]

    def typing(self) -> Typing | None:
        """What the topic's table says of its values, as of the last look at its log; None for a plain topic."""
        return typing_of(self._door.state.metadata)

    def grow_for(self, table: pa.Table) -> None:
        """Let the table of a typed topic know the schemas that the values of `table` have, before they are staged.

        Nothing for a plain topic, and next to nothing where all are known. A schema that the topic's subject has is
        added by an entry of its own; writers that staged before that stage again. `table` as
        `tidelog.log.records.checks.to_records` takes it. Raises as a commit does.
        """
        typing = self.typing()
        subject = "" if typing is None or typing.kind is None else self.config().value_schema_subject
        if typing is None or not subject:
            return

        def commit(found: list[WrittenSchema]) -> None:
            self.commit_decided(lambda state, *_: decide_grow(state, self._name, self._topic_id, found), durable=True)

        Growth(self._name, typing, subject, self._lake.value_schemas, commit).run(table)

    def now_ms(self) -> int:
        """The time by which records are judged, and stamped under LogAppendTime: the wall clock, as the store sets it.

        Asks the store for its time where that is due. Raises `InvalidTimestampError` for a clock that is an hour off.
        """
        self._lake.time.keep(self._lake.storage, self.folder)
        return self._lake.time.judged_ms()

    # --- append --------------------------------------------------------------------------------------------

    def append(
        self,
        table: Any,
        acks: int | str = "all",
        *,
        partitioner: str | partitioners.Partitioner = "murmur2",
        compression: str | None = None,
        marker: Marker | None = None,
    ) -> Ranges:
        """Append records; returns {partition: (first offset, end offset)} of what was appended.

        `table`: an Arrow Table or RecordBatch, a pandas or Polars DataFrame, or a list of dicts (see `as_table`).
        Columns: `value` (binary or string; a typed topic takes the struct `columns` instead), `key`, `headers`,
        `partition` (int; null: by key), `timestamp` (ms as int64, or any Arrow timestamp; null: now). `acks` 0 returns
        {} at once, unless `QUIET_APPENDS` of them wait, and reports nothing; 1 returns when the records are committed,
        "all" (-1) when they survive a power loss.
        No records change nothing. Creates the topic when it is missing and the
        lake's `auto.create.topics.enable` allows it.
        Raises `InvalidRecordError`, `RecordTooLargeError`, `InvalidTimestampError`, `UnknownPartitionError`,
        `UnknownTopicError`, `TopicChangedError`, `StorageError`, `OutcomeUnknownError`.
        """
        level = parse_acks(acks)
        table = as_table(table, self._name)
        if not table.num_rows and marker is None:
            check_columns(table.schema, self._name, or_typed=True)
            return {}
        if not self._topic_id:
            self._lake.permit(self._name)()
            self._topic_id = self._lake.ensure_topic(self._name)
            self._door.refresh()
        if level == 0:
            self._quiet.acquire()
            try:
                self._lake.background.submit(self._append_quietly, table, partitioner, compression, marker)
            except BaseException:
                self._quiet.release()
                raise
            return {}
        return self._append(table, level, partitioner, compression, marker)

    def _append_quietly(
        self, table: pa.Table, partitioner: Any, compression: str | None, marker: Marker | None
    ) -> None:
        try:
            self._append(table, 1, partitioner, compression, marker)
        except Exception:
            logger.warning(
                "An append with acks=0 to topic '%s' failed; its records are lost.", self._name, exc_info=True
            )
        finally:
            self._quiet.release()

    def _append(
        self, table: pa.Table, level: int, partitioner: Any, compression: str | None, marker: Marker | None
    ) -> Ranges:
        self._turn += 1
        append = StagedAppend(
            self.joint,
            table,
            acks=level,
            partitioner=partitioner,
            compression=compression,
            turn=self._turn,
            marker=marker,
        )
        return append.attempt()

    def stager(
        self, compression: str | None = None, compression_level: int | None = None, helpers: Executor | None = None
    ) -> Stager:
        """A stager for this topic as of now; `compression` is the producer's codec, `helpers` write beside it."""
        return Stager(self._lake.storage, self.target(compression, compression_level), self._lake.ids, helpers)

    def target(self, compression: str | None = None, compression_level: int | None = None) -> Target:
        """What a writer elsewhere (a Spark task) needs to stage segments for this topic.

        The level counts where the topic leaves the codec to the producer.
        """
        state, config = self._door.state, self.config()
        return Target(
            self.folder,
            self._topic_id,
            state.version,
            state.partitions,
            config.segment_bytes,
            config.codec(compression, compression_level),
            self.typing(),
        )

    def commit(
        self,
        staged: Sequence[Staged],
        *,
        acks: int | str = "all",
        marker: Marker | None = None,
        request_id: str | None = None,
        synced: bool = False,
    ) -> Ranges:
        """Commit staged segments as one entry; returns {partition: (first offset, end offset)}.

        `synced`: the segments survive a power loss already, so the commit need not sync them.

        A segment is committed once. The same segments again, under this `request_id` or another, here or in another
        process, change nothing and return what they got first, for as long as the topic holds them. When maintenance
        has rewritten or removed them, a `request_id` is looked for in the kept log (`log.min.age.ms`).
        A repeat of `marker` with other segments changes nothing and returns {}.
        Another process may have staged them: each is looked up in the store before the entry is put, whatever `acks`.
        Raises `MissingSegmentError` when one is not there, or not whole: then nothing was committed.
        Raises `RequestForgottenError` when the log no longer says whether the request was committed, and
        `DuplicateSegmentError` for a segment that was committed with others than now.
        """
        level = parse_acks(acks)
        if not staged and marker is None:
            return {}
        share = StagedShare(
            tuple(staged),
            acks=level,
            new_until=None if request_id is None else -1,
            marker=marker,
            by_others=True,
            synced=synced,
        )
        while True:
            answer = self.joint.commit(share, request_id=request_id)
            if not isinstance(answer.error, LogAppendTimeError | SegmentTooOldError):
                return answer.required()
            at_least_ms = answer.at_least_ms
            timestamp_ms = max(self._lake.time.now_ms(), at_least_ms) if at_least_ms else None
            again = tuple(self.restage(share.segments, timestamp_ms))
            share = replace(share, segments=again, by_others=False, synced=False)

    def commit_decided(
        self,
        decide: Callable[[TopicState, int, bool], Outcome[R]],
        *,
        durable: bool,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> R:
        """Commit what `decide` chooses of (state, now in ms, whether the topic has LogAppendTime), as `Door.commit`."""
        door, clock = self._door, self._lake.clock
        wait_s = self._throttle.wait_s(door.state.version, clock.elapsed_s())
        if wait_s:
            clock.sleep(wait_s)
        by_committer = self.config().timestamp_type == LOG_APPEND_TIME
        self._lake.time.keep(self._lake.storage, self.folder)
        now_ms = self._lake.time.now_ms()
        committed = door.commit(
            lambda state: decide(state, now_ms, by_committer),
            durable=durable,
            request_id=request_id,
            timeout_s=timeout_s,
        )
        if committed.written:
            self._upkeep.after_commit(committed.version)
        return committed.response

    def restage(self, staged: Sequence[Staged], timestamp_ms: int | None = None) -> list[Staged]:
        """The same records in new segments, known at the version of the last look at the log; raises as `restage`."""
        return restage(
            self._lake.storage,
            self.folder,
            staged,
            version=self._door.state.version,
            codec=self.config().codec(),
            ids=self._lake.ids,
            timestamp_ms=timestamp_ms,
            typing=self.typing(),
        )

    # --- read ----------------------------------------------------------------------------------------------

    def read(
        self,
        partition: int,
        start: int | None = None,
        end: int | None = None,
        *,
        include_headers: bool = False,
        include_columns: bool = False,
        batch_records: int = ROW_GROUP_RECORDS,
    ) -> Iterator[pa.RecordBatch]:
        """The records with offsets in [start, end) as Arrow batches, in offset order.

        Columns key, value, topic, partition, offset, timestamp (UTC, us), timestampType, and where asked for headers,
        and the struct `columns` that a typed topic's values have.
        None means the log start and the log end offset as of this call. Compacted offsets are
        missing, and what is deleted or compacted while the read goes on, within a second.
        Raises `UnknownPartitionError`, `OffsetOutOfRangeError`, `CorruptSegmentError`.
        """
        with self._door.lock:  # no other thread changes the state between two looks at it
            state = self.state()
            require_partition(state, self._name, partition)
            plan = fetch.plan_fetch(state, self._name, partition, start, end)
        return self.read_plan(
            plan, include_headers=include_headers, include_columns=include_columns, batch_records=batch_records
        )

    def read_plan(
        self,
        plan: fetch.FetchPlan,
        *,
        include_headers: bool = False,
        include_columns: bool = False,
        batch_records: int = ROW_GROUP_RECORDS,
    ) -> Iterator[pa.RecordBatch]:
        """The records of a plan of this topic, as `read` gives them."""
        read = partial(
            fetch.fetch,
            self._lake.storage,
            self.folder,
            self._name,
            include_headers=include_headers,
            include_columns=include_columns,
            batch_records=batch_records,
        )
        return read_on(plan, read, self._renewed, self._lake.clock)

    def _renewed(self, plan: fetch.FetchPlan) -> fetch.FetchPlan | None:
        with self._door.lock:
            return fetch.renewed(self.state(), self._name, plan)

    def plan(self, partition: int, start: int | None = None, end: int | None = None) -> fetch.FetchPlan:
        """The segments for [start, end) as of the last look at the log; no new look is taken.

        For engines that tail the log themselves. Raises as `state` and `read` do.
        """
        with self._door.lock:
            state = self._door.state
            require_topic(state, self._name, self._topic_id)
            require_partition(state, self._name, partition)
            return fetch.plan_fetch(state, self._name, partition, start, end)

    def offsets(self) -> dict[int, tuple[int, int]]:
        """{partition: (log start offset, log end offset)}."""
        with self._door.lock:
            state = self.state()
            return {p: (state.start(p), state.end(p)) for p in range(state.partitions)}

    def offsets_for_times(self, times: Mapping[int, int]) -> dict[int, int | None]:
        """{partition: ms since the epoch} -> {partition: first offset at or after that time, or None}."""
        with self._door.lock:
            state = self.state()
            for partition in times:
                require_partition(state, self._name, partition)
            plans = {p: fetch.plan_fetch(state, self._name, p, None, None) for p in sorted(times)}
        return {p: fetch.find_by_time(self._lake.storage, self.folder, plan, times[p]) for p, plan in plans.items()}
