"""What the sink's driver does: the tasks' segments become one entry per topic, or go away."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from tidelog.log.appends import Marker
from tidelog.log.errors import InvalidOptionError, OutcomeUnknownError, StorageError, TidelogError
from tidelog.log.lake import Lake
from tidelog.log.layout import SINK_PREFIX, TXN_PREFIX
from tidelog.log.segments import Staged
from tidelog.log.shared import shared_storage
from tidelog.log.storage import Storage
from tidelog.sinks.options import SinkOptions, Txn
from tidelog.sinks.tasks import StagedTopics


def batch_marker(txn: Txn | None) -> Marker | None:
    """The marker of a batch write whose caller gave `txnAppId` and `txnVersion` (Delta's rule: newer counts)."""
    if txn is None:
        return None
    if txn.app_id.startswith(TXN_PREFIX):
        raise InvalidOptionError(
            f"Option 'txnAppId' begins with '{TXN_PREFIX}', which is the log's own. Give the application another name."
        )
    return Marker(txn.app_id, txn.version, strict=False)


def stream_marker(query_id: str, batch_id: int) -> Marker:
    """The marker of a streaming query's batch."""
    return Marker(f"{SINK_PREFIX}{query_id}", batch_id, strict=True)


def commit(lake: Lake, staged: Iterable[StagedTopics], options: SinkOptions, marker: Marker | None) -> None:
    """Commit what the tasks staged, one entry a topic; a topic that has seen the marker is left as it is.

    When a topic refuses its entry, what was staged for it and for the topics after it is deleted. Raises what
    `Topic.commit` raises.
    """
    waiting = dict(sorted(_merged(staged).items()))
    for name in list(waiting):
        try:
            taken = lake.topic(name).commit(
                waiting[name], acks=options.acks, marker=marker, request_id=options.request_id
            )
        except OutcomeUnknownError:
            raise  # the entry may be there, and then it needs its segments
        except TidelogError:
            _delete(lake.storage, waiting)
            raise
        segments = waiting.pop(name)
        if not taken:
            _delete(lake.storage, {name: segments})


def abort(lake: str, messages: Sequence[StagedTopics | None]) -> None:
    """Delete what the tasks of a failed job staged; `messages` has None for a task that failed.

    Spark aborts as well when a commit failed, and then every task has its message: the entry may be there, so its
    segments stay. `commit` has deleted those that were refused; others are nobody's and are purged later. Never
    raises `StorageError`: Spark would show that instead of what went wrong.
    """
    if all(message is not None for message in messages):
        return
    with suppress(StorageError):
        _delete(shared_storage(lake), _merged(message for message in messages if message is not None))


def _merged(staged: Iterable[StagedTopics]) -> dict[str, list[Staged]]:
    """{topic: segments}, tasks in their order."""
    merged: dict[str, list[Staged]] = {}
    for one in staged:
        for name, segments in one.segments.items():
            merged.setdefault(name, []).extend(segments)
    return merged


def _delete(storage: Storage, segments: dict[str, list[Staged]]) -> None:
    # What can't be deleted now is nobody's and is purged later; the batch's outcome is what the caller must learn.
    with suppress(StorageError):
        for topic, staged in segments.items():
            for segment in staged:
                storage.delete(f"{topic}/{segment.path}")
