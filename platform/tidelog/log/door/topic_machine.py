"""A topic's log: the door to it, what a checkpoint of it must say, and its table properties."""

from collections.abc import Callable, Mapping
from typing import Any

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import CorruptLogError, InvalidConfigError, NotATopicError
from tidelog.log.config.key_type import Key
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.delta.actions import Entry, Metadata
from tidelog.log.delta.table_schema import TOPIC, TableShape
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.contract import Machine
from tidelog.log.door.fairness import FairnessBackoff
from tidelog.log.state.foreign_entries import verify_none_is_foreign
from tidelog.log.state.topic_state import FORMAT, ROWS, TopicState, beginning_up_to
from tidelog.log.state.txn_expiry import PRODUCER_EXPIRATION, TXN_RETENTION
from tidelog.log.state.verify import fact_problems, verify_entry, verify_format, verify_protocol, verify_table
from tidelog.log.storage.port import Distant, Storage
from tidelog.log.storage.store_time import StoreTime

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def topic_door(
    storage: Storage,
    topic: str,
    clock: Clock,
    ids: Ids,
    time: StoreTime | None = None,
    permit: Callable[[], None] | None = None,
) -> Door[TopicState]:
    """The door to a topic's log; its writers back off for fairness where the store is distant."""
    fairness = FairnessBackoff() if isinstance(storage, Distant) else None
    return Door(storage, topic, topic_machine(topic), clock, ids, fairness=fairness, time=time, permit=permit)


def topic_machine(topic: str) -> Machine[TopicState]:
    """The machine of a topic's log."""

    def verify(state: TopicState, entry: Entry) -> None:
        if state.version < 0:
            require_format(entry, topic)
        verify_entry(state, entry, topic)

    def verify_checkpoint(state: TopicState, version: int) -> None:
        verify_restored(state, version, topic)

    return Machine(
        TopicState, verify, verify_checkpoint, head_check(topic, lambda _: TOPIC), TopicState.proves_committed
    )


def head_check(topic: str, shape: Callable[[Metadata], TableShape]) -> Callable[[TopicState], None]:
    """A check that refuses a head of the log that tidelog did not write, or a table that it does not implement.

    `shape`: what the columns of a table with that metaData must be.
    """
    passed: Metadata | None = None  # asked at every look, and rarely changed

    def verify_head(state: TopicState) -> None:
        nonlocal passed
        verify_none_is_foreign(state, topic)
        if state.metadata is not None and state.metadata is not passed:
            verify_table(state.metadata, topic, shape(state.metadata))
            passed = state.metadata

    return verify_head


def require_format(entry: Entry, topic: str, rows: str | None = None) -> None:
    """Refuse a table whose first entry does not make it a topic, or a table of that kind of rows."""
    made = [a for a in entry.actions if isinstance(a, Metadata)]
    _require_kind(made[0].configuration if made else {}, topic, rows)


def _require_kind(configuration: Mapping[str, str], topic: str, rows: str | None) -> None:
    if FORMAT not in configuration:
        raise NotATopicError(
            f"'{topic}' is a Delta table but not a topic: it has no property {FORMAT}. Give the lake another folder,"
            " or copy the table's rows to a topic (a Spark batch with format('tidelog'))."
        )
    kind = configuration.get(ROWS)
    if kind != rows:
        is_not = "a topic" if rows is None else f"a table of '{rows}'"
        raise NotATopicError(
            f"'{topic}' is {'a topic' if kind is None else f'a table of {kind!r}'}, not {is_not}: it holds other"
            " columns, for another use. Open it as what it is; SQL reads either."
        )


def verify_restored(state: TopicState, version: int, topic: str, rows: str | None = None) -> None:
    """Refuse what a checkpoint says when it can't be this topic's, or this table's of that kind of rows."""
    metadata = state.metadata
    if metadata is None or state.protocol is None:
        raise CorruptLogError(
            f"Topic '{topic}': the checkpoint of version {version} has no metaData or protocol. Delete it and"
            " _delta_log/_last_checkpoint: the topic is then opened without it.",
            version=version,
        )
    _require_kind(metadata.configuration, topic, rows)
    verify_protocol(state.protocol, topic)
    verify_format(metadata, topic)
    problems = [*fact_problems(metadata, topic)]
    if any(p < 0 or beginning_up_to(live, -1) for p, live in state.segments.items()):
        problems.append("it has a segment without partition or base_offset")
    if problems:
        raise CorruptLogError(
            f"Topic '{topic}': the checkpoint of version {version} can't be this topic's: {'; '.join(problems)}. Delete"
            " it and _delta_log/_last_checkpoint, and the topic is opened without it; or give a copied folder back its"
            " name.",
            version=version,
        )


def stored_config(topic: str, overrides: Mapping[str, str], lake: LakeConfig, *keys: Key[Any]) -> TopicConfig:
    """The configuration that a topic's log holds, over the lake's defaults; with `keys`, only these are looked at.

    Raises `InvalidConfigError` for what this tidelog does not take. Whatever does not need it goes on.
    """
    asked = {k.name for k in keys} or overrides.keys()
    try:
        return TopicConfig.stored({k: v for k, v in overrides.items() if k in asked}, defaults=lake)
    except InvalidConfigError as e:
        raise InvalidConfigError(
            f"Topic '{topic}' holds a configuration that this tidelog does not take. {e} Set it right or reset it:"
            f" lake.alter_topic('{topic}', config={{key: None}}), 'tidelog topic alter'."
        ) from e


def table_properties(config: TopicConfig, lake: LakeConfig) -> dict[str, str]:
    """Delta's properties of a topic's table.

    A checkpoint keeps every removed file until `deletedFileRetentionDuration`, so that is hours, and never less
    than files stay after removal. Another engine's checkpoints, which go by a clock and know one time for all
    transaction ids, keep them twice as long as any is remembered.
    """
    ids_days = -(-2 * max(lake.transactional_id_expiration_ms, lake.producer_id_expiration_ms) // _DAY_MS)
    kept_ms = max(config.file_delete_delay_ms, config.log_min_age_ms)
    return {
        "delta.enableExpiredLogCleanup": "false",
        # An engine that cleans up all the same finds no entry that is old enough: it would publish no floor.
        "delta.logRetentionDuration": "interval 36500 days",
        # An engine that passes over the protocol must not write checkpoints: it would not sync segments first.
        "delta.checkpointInterval": "1000000000",
        "delta.deletedFileRetentionDuration": f"interval {max(1, -(-kept_ms // _HOUR_MS))} hours",
        TXN_RETENTION: f"interval {ids_days} days",
        PRODUCER_EXPIRATION: str(lake.producer_id_expiration_ms),
    }
