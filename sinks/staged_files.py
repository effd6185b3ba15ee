"""What all tasks of a batch staged: put together by topic, or taken away again."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from tidelog.log.base.errors import StorageError
from tidelog.log.segments.writer import Staged
from tidelog.log.storage import Storage
from tidelog.sinks.tasks import StagedTopics

# {topic: segments in their order}
Segments = Mapping[str, Sequence[Staged]]


def merged(staged: Iterable[StagedTopics]) -> Segments:
    """What tasks staged, by topic; topics by name, tasks in their order."""
    found: dict[str, list[Staged]] = {}
    for one in staged:
        for name, segments in one.segments.items():
            found.setdefault(name, []).extend(segments)
    return dict(sorted(found.items()))


def delete(storage: Storage, segments: Segments) -> None:
    """Delete segments that nothing names, and nothing will.

    What can't be deleted now is purged later; what became of the batch is what the caller must learn.
    """
    with suppress(StorageError):
        for topic, staged in segments.items():
            for segment in staged:
                storage.delete(f"{topic}/{segment.path}")
