"""A topic's log: the door to it, what a checkpoint of it must say, and its table properties."""

from tidelog.log import names
from tidelog.log.actions import Entry
from tidelog.log.config import TopicConfig
from tidelog.log.door import Machine
from tidelog.log.errors import CorruptLogError, NotATopicError
from tidelog.log.state import FORMAT, TopicState
from tidelog.log.verify import verify_entry, verify_metadata, verify_protocol

_HOUR_MS = 3_600_000
# Producers are forgotten after twice Kafka's `transactional.id.expiration.ms` (7 days).
_PRODUCERS_DAYS = 14


def topic_machine(topic: str) -> Machine[TopicState]:
    """The machine of a topic's log."""

    def verify(state: TopicState, entry: Entry) -> None:
        if state.version < 0:
            require_format(entry, topic)
        verify_entry(state, entry, topic)

    def verify_checkpoint(state: TopicState, version: int) -> None:
        verify_restored(state, version, topic)

    return Machine(TopicState, verify, verify_checkpoint, TopicState.holds)


def require_format(entry: Entry, topic: str) -> None:
    """Refuse a table whose first entry does not make it a topic."""
    if entry.info.request_id is None:
        raise NotATopicError(
            f"'{topic}' is a Delta table but not a topic: its first entry has no property {FORMAT}. Give the lake"
            " another folder, or copy the table's rows to a topic (a Spark batch with format('tidelog'))."
        )


def verify_restored(state: TopicState, version: int, topic: str) -> None:
    """Refuse what a checkpoint says when it can't be this topic's."""
    metadata = state.metadata
    if metadata is None or state.protocol is None:
        raise CorruptLogError(
            f"Topic '{topic}': the checkpoint of version {version} has no metaData or protocol. Delete it and"
            " _delta_log/_last_checkpoint: the topic is then opened without it.",
            version=version,
        )
    if FORMAT not in metadata.configuration:
        raise NotATopicError(
            f"'{topic}' is a Delta table but not a topic: it has no property {FORMAT}. Give the lake another folder,"
            " or copy the table's rows to a topic (a Spark batch with format('tidelog'))."
        )
    if metadata.name != topic:
        raise CorruptLogError(
            f"Topic '{topic}': the checkpoint of version {version} belongs to topic '{metadata.name}'. Somebody"
            " copied it here; delete it and _delta_log/_last_checkpoint, and the topic is opened without it.",
            version=version,
        )
    verify_protocol(state.protocol, topic)
    verify_metadata(metadata, topic)


def table_properties(config: TopicConfig) -> dict[str, str]:
    """Delta's properties of a topic's table.

    A checkpoint keeps every removed file until `deletedFileRetentionDuration`, so that is hours, and never less
    than files stay after removal.
    """
    kept_ms = max(config.file_delete_delay_ms, config.log_min_age_ms)
    return {
        "delta.enableExpiredLogCleanup": "false",
        "delta.deletedFileRetentionDuration": f"interval {max(1, -(-kept_ms // _HOUR_MS))} hours",
        "delta.setTransactionRetentionDuration": f"interval {_PRODUCERS_DAYS} days",
    }


def check_name(topic: str) -> None:
    """Refuse a name that breaks Kafka's rule (`InvalidTopicError`)."""
    names.validate(topic)
