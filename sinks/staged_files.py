"""What all tasks of a batch staged: put together by topic, or taken away again."""

from collections.abc import Iterable, Mapping, Sequence

from tidelog.log.segments.writer import Staged
from tidelog.log.storage import Storage
from tidelog.log.storage.orphans import discard
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
    """Discard segments that no log entry names, and none will name."""
    discard(storage, (f"{topic}/{segment.path}" for topic, staged in segments.items() for segment in staged))
