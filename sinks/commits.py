"""What the sink's driver does: it commits the tasks' segments as an entry or an intent, or discards them."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from tidelog.log.base.errors import (
    DuplicateSegmentError,
    InvalidOptionError,
    OutcomeUnknownError,
    RequestForgottenError,
    StorageError,
    TidelogError,
)
from tidelog.log.delta.layout import TXN_PREFIX
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Marker
from tidelog.log.shared import shared_storage
from tidelog.log.topic import Topic
from tidelog.sinks.intents import (
    PRODUCERS,
    IdleProducers,
    commit_numbered,
    commit_unnumbered,
    complete_interrupted,
    query_transactional_id,
    txn_transactional_id,
)
from tidelog.sinks.markers import goes_by_intents, marker_id, newest_by_markers
from tidelog.sinks.options import SinkOptions, WriteId
from tidelog.sinks.tasks import Segments, discard_segments, merged


def batch_marker(txn: WriteId | None) -> Marker | None:
    """The marker of a batch write whose caller gave `txnAppId` and `txnVersion` (Delta's rule: newer counts)."""
    if txn is None:
        return None
    if txn.app_id.startswith(TXN_PREFIX):
        raise InvalidOptionError(
            f"Option 'txnAppId' begins with '{TXN_PREFIX}', which is the log's own. Give the application another name."
        )
    return Marker(txn.app_id, txn.version, strict=False)


def commit_stream(lake: Lake, staged: Iterable[Segments], options: SinkOptions, query_id: str, batch_id: int) -> None:
    """Commit a streaming query's batch, once: the same batch again changes nothing, wherever its rows go by then.

    With option `topic` it is one entry with the query's marker, else one intent. An empty batch leaves no trace.
    Raises `StaleBatchError` for a batch before the newest one, and what `Topic.commit` and `commit_numbered` raise.
    """
    segments, transactional_id = merged(staged), query_transactional_id(query_id)
    if not segments:
        if options.topic is None:
            complete_interrupted(lake, transactional_id)
        return
    if options.topic is not None:
        topic = lake.topic(options.topic)
        if not goes_by_intents(lake, topic.known, query_id):
            marker = Marker(marker_id(query_id), batch_id, strict=True)
            _commit_entry(lake, topic, segments, options, marker)
            return
    commit_numbered(
        lake,
        transactional_id,
        batch_id,
        segments,
        PRODUCERS,
        strict=True,
        counted_before=lambda: newest_by_markers(lake, query_id, batch_id),
    )


def commit_batch(lake: Lake, staged: Iterable[Segments], options: SinkOptions) -> None:
    """Commit a batch write: all of it or nothing; a write to several topics is an intent.

    With `txnAppId` and `txnVersion` a repeat, or an older version, changes nothing. With option `topic` the pair is
    looked up in that topic, else in the log of transactions, for the whole lake. Raises as `commit_stream`, but for
    `StaleBatchError`.
    """
    segments = merged(staged)
    if segments and options.topic is None and options.txn is not None:
        app_id, version = options.txn.app_id, options.txn.version
        commit_numbered(lake, txn_transactional_id(app_id), version, segments, IdleProducers(), strict=False)
    elif len(segments) > 1:
        commit_unnumbered(lake, segments)
    else:
        for name in segments:
            _commit_entry(lake, lake.topic(name), segments, options, batch_marker(options.txn))


def _commit_entry(lake: Lake, topic: Topic, segments: Segments, options: SinkOptions, marker: Marker | None) -> None:
    """Commit the only topic's segments as one entry; discard them where the commit is refused or a repeat."""
    try:
        taken = topic.commit(
            segments[topic.name],
            acks=options.acks,
            marker=marker,
            request_id=options.request_id,
            synced=options.acks == "all",  # by each task
        )
    except (OutcomeUnknownError, DuplicateSegmentError, RequestForgottenError):
        raise  # an entry may be there, and then it needs its segments
    except TidelogError:
        discard_segments(lake.storage, segments)
        raise
    if not taken:
        discard_segments(lake.storage, segments)


def abort(options: SinkOptions, messages: Sequence[Segments | None]) -> None:
    """Discard what the tasks of a failed job staged; `messages` has None for a task that failed.

    Spark aborts as well when a commit failed, and then every task has its message. The entry or intent may be in the
    log, so its segments stay; those of a refused commit are discarded already, and purging finds the rest.
    Never raises `StorageError`: Spark would show that error instead of the first one.
    """
    if all(message is not None for message in messages):
        return
    with suppress(StorageError):
        found = merged(message for message in messages if message is not None)
        discard_segments(shared_storage(options.lake, options.store), found)
