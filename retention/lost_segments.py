"""Giving up the records of lost segments: each is replaced by an empty one over the same offsets.

Readers then pass over these offsets as over records that compaction took. Producers go on meanwhile: it is a rewrite
like any other (docs/format.md, 5.4).
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass

from tidelog.log.base.errors import CorruptSegmentError
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.log.segments.reader import read_segment
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.port import Storage
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.value_typing import Typing
from tidelog.retention.rewrites.commit import rewrite
from tidelog.retention.rewrites.execute import KeepNothing
from tidelog.retention.rewrites.executors import LocalExecutor, Task
from tidelog.retention.rewrites.units import rewrite_codec, unit_of

OPERATION = "GIVE UP"
# A node of a replicated store that has just come back may miss an object for some seconds, which others have.
LOOKS_AGAIN_AFTER_S = 10.0


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A lost segment of a topic: its offsets [base_offset, end), how many records the log says it held (None: it does
    not say), why it can't be read, and whether an empty one has taken its place.
    """

    topic: str
    path: str
    partition: int
    base_offset: int
    end: int
    records: int | None
    why: str
    done: bool

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


def give_up(lake: Lake, topic: str, paths: Collection[str], *, execute: bool) -> list[GivenUp]:
    """Give up those of a topic's live segments, by path, that can't be read; one that can be read is left as it is.

    Without `execute` nothing is written. With it, what can't be read in a shared store is looked at twice. A segment
    that was rewritten or deleted meanwhile is not `done`. Raises `StorageError` when the store does not say whether a
    segment is there, and as `rewrite` does.
    """
    opened = lake.topic(topic)
    state, config = opened.state(), opened.config()
    typing = typing_of(state.metadata)
    live = [segment for segment in state.all_segments() if segment.path in paths]
    lost = [(segment, why) for segment in live if (why := _why_lost(lake.storage, topic, segment, typing))]
    if execute and lost and lake.storage.is_shared:
        lake.clock.sleep(LOOKS_AGAIN_AFTER_S)
        lost = [(segment, why) for segment, _ in lost if (why := _why_lost(lake.storage, topic, segment, typing))]
    done: set[str] = set()
    if execute and lost:
        units = [unit_of(state, topic, [segment], config, rewrite_codec(config)) for segment, _ in lost]
        tasks = [Task(unit, KeepNothing()) for unit in units]
        rewriting = rewrite(
            lake, topic, tasks, LocalExecutor(lake.storage, lake.ids), operation=OPERATION, parameters={}
        )
        done = {segment.path for landed in rewriting.landed for segment in landed.unit.inputs}
    return [_given_up(topic, segment, why, segment.path in done) for segment, why in lost]


def _why_lost(storage: Storage, topic: str, segment: Segment, typing: Typing | None) -> str:
    """Why a segment can't be read, or its values not derived; "" when all of it can."""
    names = (schema.SEGMENT if typing is None else typing.segment).names
    try:
        for _ in read_segment(storage, topic, segment, segment.base_offset, segment.end, names, typing=typing):
            pass
    except CorruptSegmentError as e:
        return str(e)
    return ""


def _given_up(topic: str, segment: Segment, why: str, done: bool) -> GivenUp:
    return GivenUp(
        topic,
        segment.path,
        segment.partition,
        segment.base_offset,
        segment.end,
        segment.stats.records,
        why,
        done,
    )
