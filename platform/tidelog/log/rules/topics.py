"""The topic's rules: pure functions from a state and a request to the actions of one entry, or a refusal.

Nothing here does I/O or asks the clock; `now_ms` comes with the request. A refusal is an exception of
`tidelog.log.base.errors`. An outcome without actions is a repeat of what is already there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, Generic, TypeVar

from tidelog.log.base.errors import (
    InvalidPartitionsError,
    OffsetOutOfRangeError,
    TopicChangedError,
    TopicExistsError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Metadata, Remove, Txn
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.delta.table_schema import TOPIC, TableShape
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.state.foreign_entries import take_back
from tidelog.log.state.topic_state import (
    CONFIG_PREFIX,
    DELETED,
    PARTITIONS,
    REPLICATION,
    TOPIC_ID,
    TopicState,
)
from tidelog.log.typed.tables import TypedTable, configured, table_facts

R = TypeVar("R")

MOST_PARTITIONS = 2**31 - 1
# The operation of an entry that takes others back.
REPAIR = "REPAIR"
# The operation of an entry by which a typed topic's table learns schemas that values came with.
GROW = "ADD COLUMNS"


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """The result of a decision: the entry's actions (none: nothing to do) and the answer to the caller.

    `rows` go into the entry's `commitInfo`. `files`, by path below the log's folder, are stored before the entry.
    `synced`: the segments that it adds survive a power loss already. `elsewhere`: another process may have staged them,
    so that the store is asked for them before the entry is put.
    """

    actions: tuple[Action, ...]
    response: R
    operation: str = "WRITE"
    blind_append: bool = False
    parameters: Mapping[str, str] | None = None
    rows: tuple[Mapping[str, Any], ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    synced: bool = False
    elsewhere: bool = False


def require_topic(state: TopicState, topic: str, topic_id: str | None = None) -> Metadata:
    """The topic's metaData; refuse unless it is there and, with `topic_id`, is still the one that the caller opened."""
    if topic_id and state.metadata is not None and (state.topic_id != topic_id or not state.exists):
        what = "deleted and created again" if state.exists else "deleted"
        raise TopicChangedError(
            f"Topic '{topic}' was {what} since it was opened (its id was {topic_id}): offsets and records of"
            " one topic id mean nothing for another. Open the topic again."
        )
    if state.metadata is None or not state.exists:
        raise unknown_topic(topic)
    return state.metadata


def unknown_topic(topic: str) -> UnknownTopicError:
    """What a topic that is not there is refused with."""
    return UnknownTopicError(f"Topic '{topic}' does not exist. Create it (lake.create_topic, 'tidelog topic create').")


def require_partition(state: TopicState, topic: str, partition: int) -> None:
    """Refuse a partition that the topic does not have; what is no whole number is none."""
    if not _is_whole(partition) or not 0 <= partition < state.partitions:
        raise UnknownPartitionError(
            f"Topic '{topic}' has no partition {partition}: it has {state.partitions}, numbered from 0."
        )


def _is_whole(number: object) -> bool:
    """Whether a caller gave an integer, of Python's or of numpy's: another number would break the log's format."""
    return type(number) is int or (hasattr(number, "__index__") and not isinstance(number, bool))


def _check_count(partitions: int, limit: int) -> None:
    if isinstance(partitions, bool) or not isinstance(partitions, int) or not 0 < partitions <= MOST_PARTITIONS:
        raise InvalidPartitionsError(
            f"Number of partitions must be larger than 0, not {partitions!r}: a topic has at least one, and a"
            f" partition's number is an INT. Give a whole number from 1 to {limit}."
        )
    if partitions > limit:
        raise InvalidPartitionsError(
            f"Number of partitions {partitions} is above the lake's topic.max.partitions, {limit}: every process that"
            f" uses a topic keeps something for each of its partitions. Give a number from 1 to {limit}, or raise"
            f" topic.max.partitions ('tidelog lake alter --config topic.max.partitions={partitions}')."
        )


def decide_create(
    state: TopicState,
    topic: str,
    partitions: int,
    overrides: Mapping[str, str],
    properties: Mapping[str, str],
    *,
    topic_id: str,
    table_id: str,
    now_ms: int,
    shape: TableShape = TOPIC,
    most_partitions: int = MOST_PARTITIONS,
    schemas: Sequence[WrittenSchema] = (),
) -> Outcome[str]:
    """Create the topic, or create it again after a delete; the response is its id.

    `shape` of its table. `properties`: Delta's, and further facts about the table. `most_partitions`: the lake's limit.
    `schemas`: those of the subject that `overrides` name. What an earlier life's values were is forgotten: its files
    are gone. Raises also what `tidelog.log.typed.tables.configured` does.
    """
    if state.exists:
        raise TopicExistsError(
            f"Topic '{topic}' already exists. Use it, change it (lake.alter_topic, 'tidelog topic alter'), or choose "
            "another name."
        )
    _check_count(partitions, most_partitions)
    table = configured(None, overrides, schemas)
    configuration = {
        **properties,
        **table_facts(table),
        TOPIC_ID: topic_id,
        PARTITIONS: str(partitions),
        **{CONFIG_PREFIX + k: v for k, v in sorted(overrides.items())},
    }
    old = state.metadata
    metadata = Metadata(
        table_id if old is None else old.table_id,
        topic,
        shape.schema if table is None else table.schema,
        shape.partition_columns,
        configuration,
        now_ms if old is None else old.created_ms,
    )
    actions: list[Action] = [] if state.protocol else [PROTOCOL]
    actions.append(metadata)
    for prefix, offsets in state.offsets_by_prefix:
        actions.extend(Txn(f"{prefix}{p}", 0) for p, offset in sorted(offsets.items()) if offset)
    # What writers noted in an earlier life says nothing about this one: a batch of the same number is not here.
    actions.extend(
        replace(txn, version=-1)
        for txn in sorted((*state.txns.values(), *state.producer_txns()), key=lambda txn: txn.app_id)
        if txn.version >= 0 and txn.app_id != layout.PURGE_TXN
    )
    return Outcome(tuple(actions), topic_id, "CREATE TABLE", parameters={"partitions": str(partitions)})


def decide_alter(
    state: TopicState,
    topic: str,
    partitions: int | None,
    overrides: Mapping[str, str],
    properties: Mapping[str, str],
    *,
    most_partitions: int = MOST_PARTITIONS,
    schemas: Sequence[WrittenSchema] = (),
) -> Outcome[None]:
    """Set the topic's whole configuration, and its number of partitions unless that is None.

    A topic that has more partitions than `most_partitions`, the lake's limit, keeps them and gets no further ones.
    Table properties that other tools set stay. `schemas`: those of the subject that `overrides` name; the table keeps
    those that it knows, and their columns, whatever the configuration. Raises also what
    `tidelog.log.typed.tables.configured` does.
    """
    metadata = require_topic(state, topic)
    if partitions is not None:
        _check_count(partitions, MOST_PARTITIONS if partitions == state.partitions else most_partitions)
    if partitions is not None and partitions < state.partitions:
        raise InvalidPartitionsError(
            f"Topic '{topic}' currently has {state.partitions} partitions, which is higher than the requested"
            f" {partitions}. Partitions only grow: a key's records would change places."
        )
    kept = {k: v for k, v in metadata.configuration.items() if not k.startswith(CONFIG_PREFIX) or k == REPLICATION}
    table = configured(TypedTable.of(metadata), overrides, schemas)
    configuration = {
        **kept,
        **properties,
        **table_facts(table),
        TOPIC_ID: state.topic_id,
        PARTITIONS: str(partitions or state.partitions),
        **{CONFIG_PREFIX + k: v for k, v in sorted(overrides.items())},
    }
    schema = metadata.schema if table is None else table.schema
    if (configuration, schema) == (dict(metadata.configuration), metadata.schema):
        return Outcome((), None)
    return Outcome((replace(metadata, configuration=configuration, schema=schema),), None, "SET TBLPROPERTIES")


def decide_delete(state: TopicState, topic: str, topic_id: str | None = None, *, now_ms: int) -> Outcome[None]:
    """Delete the topic, which may have to have an id: all segments leave, and it is marked deleted."""
    metadata = require_topic(state, topic, topic_id)
    gone = replace(metadata, configuration={**metadata.configuration, DELETED: "true"})
    removes = (Remove(s.path, s.partition, s.base_offset, s.size, now_ms, False) for s in state.all_segments())
    return Outcome((gone, *removes), None, "DROP TABLE")


def decide_delete_records(
    state: TopicState, topic: str, before: Mapping[int, int], *, now_ms: int
) -> Outcome[dict[int, int]]:
    """Move the log start offsets up to `before` (-1: to the end); whole segments below leave at once.

    The response is {partition: log start offset} (Kafka's DeleteRecords: an offset below the start changes
    nothing, one above the end is out of range).
    """
    require_topic(state, topic)
    for partition in before:
        require_partition(state, topic, partition)
    starts: dict[int, int] = {}
    for partition, asked in sorted((index(p), offset) for p, offset in before.items()):
        start, end = state.start(partition), state.end(partition)
        target = end if asked == -1 else asked
        if not _is_whole(asked) or target > end or target < 0:
            raise OffsetOutOfRangeError(
                f"Topic '{topic}', partition {partition}: records before offset {asked} can't be deleted, the"
                f" partition has offsets {start} to {end}. Give an offset in that range, or -1 for all."
            )
        starts[partition] = max(start, index(target))
    return Outcome(move_starts(state, starts, now_ms), starts, "DELETE", parameters={"before": str(starts)})


def move_starts(state: TopicState, starts: Mapping[int, int], now_ms: int) -> tuple[Action, ...]:
    """The actions that move log start offsets up to `starts`, where they are lower, and drop the segments below."""
    actions: list[Action] = []
    for partition, start in sorted(starts.items()):
        if start <= state.start(partition):
            continue
        actions.append(Txn(f"{layout.START_PREFIX}{partition}", start))
        if start == state.end(partition):
            # The newest record leaves, and LogAppendTime still must not fall below it.
            actions.append(Txn(f"{layout.TIMESTAMP_PREFIX}{partition}", state.last_timestamp_ms(partition)))
        actions.extend(
            Remove(s.path, s.partition, s.base_offset, s.size, now_ms, False)
            for s in state.live(partition)
            if s.end <= start
        )
    return tuple(actions)


def decide_take_back(state: TopicState, now_ms: int) -> Outcome[None]:
    """Take back what the entries at the head that tidelog did not write have changed; nothing when there is none."""
    parameters = {"entries": ", ".join(str(entry.version) for entry in state.foreign)}
    # The segments that come back are as durable as they were before.
    return Outcome(take_back(state, now_ms), None, REPAIR, parameters=parameters, synced=True)


def decide_grow(state: TopicState, topic: str, topic_id: str, schemas: Sequence[WrittenSchema]) -> Outcome[None]:
    """Let the table know schemas that values came with; nothing where it knows them, or the topic isn't typed (now).

    The entry changes the property, the table's schema and nothing else. Of two writers that see one schema at once, the
    second finds it there. Raises `SchemaError` for one that no codec takes.
    """
    metadata = require_topic(state, topic, topic_id)
    table, own = TypedTable.of(metadata), metadata.configuration
    kind, subject = (own.get(f"{CONFIG_PREFIX}{key}", "") for key in ("value.columns", "value.schema.subject"))
    wanted = [one for one in schemas if one.kind == kind and one.subject == subject]
    if table is None or not wanted:
        return Outcome((), None)
    after = table.with_schemas(wanted)
    if after == table:
        return Outcome((), None)
    changed = replace(metadata, schema=after.schema, configuration={**own, **after.properties})
    ids = ", ".join(str(one.id) for one in wanted)
    return Outcome((changed,), None, GROW, parameters={"schemas": ids})
