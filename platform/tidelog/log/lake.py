"""A lake: a root that holds topics. Where a program begins: `tidelog.Lake("/data/lake")`."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar

from tidelog.log.appends.appender import RETRIES, Appender
from tidelog.log.base.clock import Clock, Ids, SystemClock, SystemIds
from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidTopicError,
    NotATopicError,
    PolicyViolationError,
    TidelogError,
    TopicExistsError,
    UnknownTopicError,
)
from tidelog.log.checkpoints.writing import Checkpointer, write_checkpoint
from tidelog.log.config.branch_facts import Branch
from tidelog.log.config.lake_file import Follows, LakeFile
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.contract import Committed
from tidelog.log.door.rate_limit import Throttle
from tidelog.log.door.topic_machine import stored_config, table_properties, topic_door
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rows.state import Fold, RowKind
from tidelog.log.rules import names
from tidelog.log.rules.topics import (
    Outcome,
    decide_alter,
    decide_create,
    decide_delete,
    decide_delete_records,
    require_topic,
)
from tidelog.log.state.descriptions import TopicDescription, TopicSummary, describe, summarize
from tidelog.log.state.topic_state import REPLICATION, TopicState
from tidelog.log.storage import open_storage
from tidelog.log.storage.options import StoreOptions
from tidelog.log.storage.port import Storage
from tidelog.log.storage.store_time import StoreTime
from tidelog.log.topic import Topic
from tidelog.log.typed.descriptions import ValuesDescription, describe_values
from tidelog.log.upkeep.background import Upkeep
from tidelog.log.upkeep.lake_context import Subjects
from tidelog.log.value_schemas import SubjectReader, require_bytes

R = TypeVar("R")
F = TypeVar("F", bound=Fold)


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A topic's log, opened: its door, its upkeep, and what slows its writers down."""

    door: Door[TopicState]
    upkeep: Upkeep
    throttle: Throttle


class Lake:
    """A lake, opened. All methods may be called from many threads.

    `uri`: a plain path, `file://`, `memory://`, `s3://`, `gs://`, `az://` or `abfss://`. A lake that is not there is
    created; with `create=False`, for what only reads, it is refused, and with None it is created by the first thing
    that is written into it: until then whatever looks into it raises `LakeNotFoundError`. `options` say how to reach an
    object store (`lake.s3.endpoint` ..., see docs/configuration.md); what they leave open, the environment does.
    `may_change_follower` is for what makes a follower or a branch a lake of its own. Use it as a context manager, or
    call `close` at the end: that waits for what goes on in the background.
    """

    def __init__(
        self,
        uri: str | PathLike[str],
        create: bool | None = True,
        *,
        options: Mapping[str, Any] | None = None,
        storage: Storage | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        checkpointer: Checkpointer | None = None,
        may_change_follower: bool = False,
    ) -> None:
        self.options = StoreOptions(options)
        self.storage = storage or open_storage(uri, self.options)
        self.clock = clock or SystemClock()
        self.ids = ids or SystemIds()
        self.time = StoreTime(self.clock)
        self.checkpointer = checkpointer or partial(write_checkpoint, self.storage)
        self._logs: dict[str, OpenLog] = {}
        self._row_logs: dict[str, RowLog[Any]] = {}
        self._lock = threading.Lock()
        self._may_change_follower = may_change_follower
        self.background: Executor = ThreadPoolExecutor(1, thread_name_prefix="tidelog")
        self._file = LakeFile(self.storage, self.clock, self.ids, create)
        self.value_schemas: Subjects = SubjectReader(self._schemas_topic, self.clock)

    @property
    def uri(self) -> str:
        """The lake's address."""
        return self.storage.uri

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the background (appends with acks=0, checkpoints), and write checkpoints that are overdue."""
        self.background.shutdown(wait=True)
        for upkeep in [*(g.upkeep for g in self._logs.values()), *(g.upkeep for g in self._row_logs.values())]:
            upkeep.catch_up()

    # --- the lake itself -----------------------------------------------------------------------------------

    def ensure_lake(self) -> None:
        """Create the lake unless it is there, before something is written into it. Raises `UnsafeStoreError`."""
        self._file.ensure()

    def require_lake(self) -> None:
        """Refuse to look into a lake that is not there. Raises `LakeNotFoundError`."""
        self._file.require()

    def config(self) -> LakeConfig:
        """The lake's configuration as it was at most 10 s ago, or as `alter_config` or `reload_config` left it."""
        return self._file.config()

    def reload_config(self) -> LakeConfig:
        """The lake's configuration as it is now. Raises `LakeNotFoundError`."""
        return self._file.reload()

    def follows(self) -> Follows | None:
        """Which lake this one follows, None for none; as it was at most 10 s ago, or `reload_config` left it."""
        return self._file.follows()

    def follow(self, follows: Follows | None) -> None:
        """Have the lake follow another one, or none. Processes that have it open go by it within 10 s."""
        self._file.follow(follows)

    def branch_facts(self) -> Branch | None:
        """Which lake this one is a branch of, None for none; as old as what `follows` says."""
        return self._file.branch()

    def begin_branch(self, branch: Branch, overrides: Mapping[str, str]) -> bool:
        """Create the lake as a branch that is being made; False where a lake is there. Raises `UnsafeStoreError`."""
        return self._file.begin_branch(branch, overrides)

    def note_branch(self, branch: Branch) -> None:
        """Store how far a branch is made, or that it goes. Processes that have it open go by it within 10 s."""
        self._file.note_branch(branch)

    def permit(self, name: str) -> Callable[[], None]:
        """What refuses changes of the table `name` where the lake follows another one, or is no whole branch.

        It raises `LakeFollowsError`. The brokers of a follower are its own, and so is their table.
        """
        if self._may_change_follower:
            return lambda: None
        return self._file.require_whole if name == layout.CLUSTER_TABLE else self._file.require_own

    def alter_config(self, changes: Mapping[str, str | None]) -> LakeConfig:
        """Change the lake's configuration; None resets a key to its default. Raises `InvalidConfigError`.

        Processes that have the lake open go by it within 10 s. A follower's is its source's, but for `access.root`.
        """
        self.ensure_lake()
        before = self.reload_config()
        if not changes.keys() <= {LakeConfig.access_root.name}:
            self.permit(layout.LAKE_FILE)()
        changed = before.merged(changes)
        tables = changed.offsets_topic_num_partitions
        if tables != before.offsets_topic_num_partitions and self._is_table(layout.OFFSETS_TABLE):
            raise InvalidConfigError(
                f"Invalid value {tables} for configuration offsets.topic.num.partitions: it is fixed at"
                f" {before.offsets_topic_num_partitions} since the first group committed, because a group's offsets are"
                " found by that number. Leave it; a new lake may have another."
            )
        self._file.replace(changed)
        return changed

    # --- topics --------------------------------------------------------------------------------------------

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of the lake's topics, sorted; internal ones (`__...`) where asked for.

        A topic that can't be opened is among them: whatever looks at it says why.
        """
        self.require_lake()
        folders = self.storage.list_folders("")
        return [n for n in folders if (internal or not names.is_internal(n)) and self._exists(n)]

    def _exists(self, name: str) -> bool:
        """Whether a topic has the name, even one that can't be opened: it must not hide, nor hide the others."""
        try:
            return self.log(name).door.refresh().exists
        except (InvalidTopicError, NotATopicError):
            return False
        except TidelogError as e:
            if e.retriable:  # the store is away, say
                raise
            return True

    def _is_table(self, folder: str) -> bool:
        return layout.LOG_FOLDER in self.storage.list_folders(folder)

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        config: Mapping[str, str] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> TopicDescription:
        """Create a topic; `partitions` defaults to the lake's `num.partitions`.

        `replication_factor`: how many brokers shall serve each partition, where brokers run.
        Raises `InvalidTopicError`, `TopicExistsError`, `InvalidPartitionsError`, `InvalidConfigError`.
        """
        decide = self._creation(name, partitions, config or {}, replication_factor)
        self.ensure_lake()
        self.commit(name, decide)
        return self.describe_topic(name)

    def check_new_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, str] | None = None
    ) -> None:
        """Refuse what `create_topic` would refuse; nothing is created."""
        self._creation(name, partitions, config or {}, None)(self.peek(name) or TopicState())

    def _creation(
        self, name: str, partitions: int | None, config: Mapping[str, str], replication_factor: int | None
    ) -> Callable[[TopicState], Outcome[str]]:
        names.validate(name)
        lake = self.config()
        parsed = TopicConfig.parse(config, defaults=lake)
        names.check_new(name, [n for n in self.storage.list_folders("") if names.collides(n, name) and self._exists(n)])
        count = lake.num_partitions if partitions is None else partitions
        topic_id, table_id = self.ids.new(), self.ids.new()
        now_ms = self.clock.now_ms()
        facts = {} if replication_factor is None else {REPLICATION: str(replication_factor)}
        require_bytes(name, parsed)
        schemas = self._subjects_schemas(parsed)
        return lambda state: decide_create(
            state,
            name,
            count,
            parsed.overrides,
            {**table_properties(parsed, lake), **facts},
            topic_id=topic_id,
            table_id=table_id,
            now_ms=now_ms,
            most_partitions=lake.topic_max_partitions,
            schemas=schemas,
        )

    def _subjects_schemas(self, config: TopicConfig) -> list[WrittenSchema]:
        """The newest schema of the subject that a typed topic's configuration names, if there is one already."""
        subject = config.value_schema_subject if config.value_columns != "none" else ""
        newest = self.value_schemas.newest(subject, now=True) if subject else None
        return [] if newest is None else [newest]

    def _schemas_topic(self) -> Topic | None:
        """The topic where a registry keeps its schemas, None while it is not there."""
        return self.topic(SCHEMAS_TOPIC) if self.log(SCHEMAS_TOPIC).door.refresh().exists else None

    def ensure_topic(self, name: str) -> str:
        """The topic's id; creates it when it is missing and `auto.create.topics.enable` allows it."""
        state = self.log(name).door.refresh()
        if not state.exists and self.config().auto_create_topics_enable:
            try:
                return self.create_topic(name).id
            except TopicExistsError:  # another process created it meanwhile
                state = self.log(name).door.refresh()
        if not state.exists:
            raise UnknownTopicError(
                f"Topic '{name}' does not exist, and the lake's auto.create.topics.enable is false. Create it"
                " (lake.create_topic, 'tidelog topic create')."
            )
        return state.topic_id

    def describe_topic(self, name: str) -> TopicDescription:
        """The topic's id, configuration and partitions. Raises `UnknownTopicError`."""
        return describe(self._state(name), name)

    def describe_values(self, name: str) -> ValuesDescription | None:
        """The columns of a typed topic's values, and what is no column and why; None for a plain topic.

        Raises `UnknownTopicError`.
        """
        return describe_values(self._state(name).metadata)

    def summarize_topic(self, name: str) -> TopicSummary:
        """What the topic holds in all, at a cost that partitions without records add nothing to.

        Raises `UnknownTopicError`.
        """
        return summarize(self._state(name), name)

    def alter_topic(
        self, name: str, partitions: int | None = None, config: Mapping[str, str | None] | None = None
    ) -> TopicDescription:
        """Grow the number of partitions and change the configuration; a value of None resets its key.

        Raises `UnknownTopicError`, `InvalidPartitionsError` (partitions only grow), `InvalidConfigError`.
        """
        self.commit(name, self._alteration(name, partitions, config or {}))
        return self.describe_topic(name)

    def check_altered_topic(self, name: str, config: Mapping[str, str | None], partitions: int | None = None) -> None:
        """Refuse what `alter_topic` would refuse; nothing is changed."""
        self._alteration(name, partitions, config)(self._state(name))

    def _alteration(
        self, name: str, partitions: int | None, changes: Mapping[str, str | None]
    ) -> Callable[[TopicState], Outcome[None]]:
        lake = self.config()

        def merged(state: TopicState) -> TopicConfig:
            """The configuration after the changes; what another tidelog set may be set right or reset on the way."""
            kept = {k: v for k, v in state.overrides.items() if k not in changes}
            strange = {k for k in changes if changes[k] is None and k in state.overrides and k not in TopicConfig.KEYS}
            wanted = {k: v for k, v in changes.items() if k not in strange}
            return stored_config(name, kept, lake).merged(wanted)

        wanted = merged(self._state(name))
        require_bytes(name, wanted)
        schemas = self._subjects_schemas(wanted) if any(key.startswith("value.") for key in changes) else []

        def decide(state: TopicState) -> Outcome[None]:
            """Change what is there now, so that two changes at once both count."""
            parsed = merged(state)
            return decide_alter(
                state,
                name,
                partitions,
                parsed.overrides,
                table_properties(parsed, lake),
                most_partitions=lake.topic_max_partitions,
                schemas=[one for one in schemas if one.subject == parsed.value_schema_subject],
            )

        return decide

    def delete_topic(self, name: str, topic_id: str | None = None) -> None:
        """Delete the topic and its records; `topic_id`: only if it is still the one of that id.

        Raises `UnknownTopicError`, `TopicChangedError`.
        """
        self._state(name)
        now_ms = self.clock.now_ms()
        self.commit(name, lambda state: decide_delete(state, name, topic_id, now_ms=now_ms))

    def delete_records(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records below an offset of each partition (-1: all); returns the new log start offsets.

        Raises `OffsetOutOfRangeError`, `UnknownPartitionError`, and `PolicyViolationError` for a topic that is
        only compacted.
        """
        self._state(name)
        lake, now_ms = self.config(), self.clock.now_ms()

        def decide(state: TopicState) -> Outcome[dict[int, int]]:
            policy = stored_config(name, state.overrides, lake, TopicConfig.cleanup_policy).cleanup_policy
            if policy == ("compact",):
                raise PolicyViolationError(
                    f"Topic '{name}' has cleanup.policy=compact: its records are deleted by compaction only (produce"
                    " tombstones). Set cleanup.policy=compact,delete to delete by offset."
                )
            return decide_delete_records(state, name, before, now_ms=now_ms)

        return self.commit(name, decide).response

    def topic(self, name: str) -> Topic:
        """The topic to append to and read from. It need not exist yet: the first append may create it."""
        log = self.log(name)
        return Topic(self, name, log.door, log.upkeep, log.throttle)

    def appender(self, name: str, *, retries: int = RETRIES) -> Appender:
        """What appends to a topic now and then, and each batch once. It is created as by `ensure_topic`."""

        def opened() -> Topic:
            self.ensure_topic(name)
            return self.topic(name)

        return Appender(name, opened, self.clock, self.ids, retries)

    def offsets(self, name: str) -> dict[int, tuple[int, int]]:
        """{partition: (log start offset, log end offset)}."""
        return self.topic(name).offsets()

    def offsets_for_times(self, name: str, times: Mapping[int, int]) -> dict[int, int | None]:
        """{partition: ms since the epoch} -> {partition: first offset at or after that time, or None}."""
        return self.topic(name).offsets_for_times(times)

    def topic_config(self, name: str) -> TopicConfig:
        """The topic's configuration over the lake's defaults. Raises `UnknownTopicError`."""
        return stored_config(name, self._state(name).overrides, self.config())

    def peek(self, name: str) -> TopicState | None:
        """The topic's state at the head of its log, None when there is no such topic. Not to be changed."""
        state = self.log(name).door.refresh()
        if not state.exists:
            self.require_lake()
            return None
        return state

    def oldest_version(self, name: str) -> int:
        """The oldest version of the topic's log that is kept: how far time travel reaches back."""
        self._state(name)
        return self.log(name).door.oldest_version()

    def row_log(self, name: str, kind: RowKind[F], facts: Mapping[str, str] | None = None) -> RowLog[F]:
        """The table of rows of that name, which need not be there yet; `facts`: properties to create it with."""
        with self._lock:
            log = self._row_logs.get(name)
            if log is None:
                log = self._row_logs[name] = RowLog(self, name, kind, facts or {})
        return log

    def drop_absent(self, name: str) -> None:
        """Keep nothing in memory of a topic's log that was looked at and has no entry: a client chooses its name.

        A caller that has it open goes on with it, as another process would.
        """
        with self._lock:
            log = self._logs.get(name)
            if log is not None and log.door.state.version < 0:
                del self._logs[name]

    def _state(self, name: str) -> TopicState:
        state = self.log(name).door.refresh()
        if not state.exists:
            self.require_lake()
        require_topic(state, name)
        return state

    def commit(self, name: str, decide: Callable[[TopicState], Outcome[R]], *, durable: bool = True) -> Committed[R]:
        """Commit what `decide` chooses through the topic's door, as maintenance does; see `Door.commit`."""
        log = self.log(name)
        committed = log.door.commit(decide, durable=durable)
        if committed.written:
            log.upkeep.after_commit(committed.version)
        return committed

    def log(self, name: str) -> OpenLog:
        """The log of a topic, also of one that is deleted, or not there yet. Raises `InvalidTopicError`."""
        names.validate(name)
        with self._lock:
            log = self._logs.get(name)
            if log is None:
                door = topic_door(self.storage, name, self.clock, self.ids, self.time, self.permit(name))
                log = self._logs[name] = OpenLog(door, Upkeep(door, self), Throttle())
        return log
