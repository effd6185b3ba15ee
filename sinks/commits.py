"""What the sink's driver does: the tasks' segments become one entry per topic, or go away."""

from collections.abc import Iterable

from tidelog.log.appends import Marker
from tidelog.log.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.log.layout import SINK_PREFIX, TXN_PREFIX
from tidelog.log.segments import Staged
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
    """Commit what the tasks staged, one entry a topic; a topic that has seen the marker is left as it is."""
    for name, segments in sorted(_merged(staged).items()):
        topic = lake.topic(name)
        if not topic.commit(segments, acks=options.acks, marker=marker):
            _delete(lake, topic.folder, segments)


def abort(lake: Lake, staged: Iterable[StagedTopics]) -> None:
    """Delete what the tasks staged."""
    for name, segments in _merged(staged).items():
        _delete(lake, lake.topic(name).folder, segments)


def _merged(staged: Iterable[StagedTopics]) -> dict[str, list[Staged]]:
    """{topic: segments}, tasks in their order."""
    merged: dict[str, list[Staged]] = {}
    for one in staged:
        for name, segments in one.segments.items():
            merged.setdefault(name, []).extend(segments)
    return merged


def _delete(lake: Lake, folder: str, segments: Iterable[Staged]) -> None:
    for segment in segments:
        lake.storage.delete(f"{folder}/{segment.path}")
