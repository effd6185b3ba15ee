"""The rules of a mirror from Kafka, as pure functions: topics, configurations, runs of records, groups' offsets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tidelog.groups.model import CommittedOffset, GroupView
from tidelog.log.appends.mirrored import CopiedRun
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import schema
from tidelog.mirror.kafka.source import Place, SourceOffset, SourceTopic, Taken

_RECORDS = schema.SEGMENT.remove(0)
_NO_RECORDS = _RECORDS.empty_table()


@dataclass(frozen=True, slots=True)
class TranslatedConfig:
    """A topic's configuration here: what is set, and what is left out, each with the reason."""

    values: Mapping[str, str]
    left_out: Mapping[str, str]


def translated(config: Mapping[str, str]) -> TranslatedConfig:
    """What tidelog makes of a topic's configuration at Kafka.

    >>> translated({"retention.ms": "5", "preallocate": "true"}).values
    {'retention.ms': '5'}
    """
    values, left_out = {}, {}
    for key, value in sorted(config.items()):
        if key.startswith("value.") or key == "topic.validate":
            left_out[key] = "a copy holds bytes; give the topic columns when the copy has ended"
            continue
        try:
            values.update(TopicConfig.stored({key: value}).overrides)
        except InvalidConfigError as e:
            left_out[key] = str(e)
    return TranslatedConfig(values, left_out)


def config_changes(topic: SourceTopic, wanted: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str | None]:
    """The changes that give the copy its source's configuration; keys that only tidelog has stay as they are.

    >>> topic = SourceTopic("t", "", 1, keys=("a", "b", "c"))
    >>> config_changes(topic, {"a": "1", "b": "2"}, {"b": "3", "c": "4", "own": "5"})
    {'a': '1', 'b': '2', 'c': None}
    """
    changes: dict[str, str | None] = {k: v for k, v in wanted.items() if there.get(k) != v}
    return changes | {k: None for k in there if k in topic.keys and k not in wanted}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a topic was copied from: the cluster's id and the topic's there, and the id of the copy."""

    cluster: str
    source_id: str
    topic_id: str


def why_refused(
    name: str, topic: SourceTopic, cluster: str, there: tuple[str, int] | None, noted: Origin | None
) -> str:
    """Why a topic is not copied, "" if it may be.

    `there`: id and partitions of the topic of that name in the lake. `noted`: what an earlier copy noted. Partitions
    with records of their own are refused by the log itself.
    """
    if there is None:
        return ""
    topic_id, partitions = there
    if partitions > topic.partitions:
        return (
            f"Topic '{name}' has {partitions} partitions here and {topic.partitions} at the source: a copy has as many,"
            " so that keys stay where they are. Copy to another lake, or delete the topic here."
        )
    if noted is None or noted.topic_id != topic_id:
        return ""
    if noted.cluster != cluster:
        return (
            f"Topic '{name}' is a copy of one at the cluster {noted.cluster}, and this is {cluster}: their offsets have"
            " nothing to do with one another. Copy to another lake, or delete the topic here."
        )
    if noted.source_id != topic.id:
        return (
            f"Topic '{name}' was deleted and created again at the source: its offsets began again there, and this is a"
            " copy of the one before. Delete it here, and the new one is copied."
        )
    return ""


def run_of(partition: int, base: int, taken: Taken) -> CopiedRun | None:
    """What came of a partition that is copied up to `base`, as a run; None for nothing new.

    Offsets below `base` were copied before. It ends after the last record, or where the consumer is.
    """
    first = int(np.searchsorted(np.array(taken.offsets, np.int64), base)) if taken.offsets else 0
    offsets = np.array(taken.offsets[first:], np.int64)
    end = max(base, int(offsets[-1]) + 1 if len(offsets) else base, taken.reached or 0)
    if end == base:
        return None
    return CopiedRun(partition, base, end, offsets, _table(taken, first) if len(offsets) else _NO_RECORDS)


def gap(partition: int, base: int, end: int) -> CopiedRun:
    """A run without records; with `base` equal to `end`, where a log without records begins."""
    return CopiedRun(partition, base, end, np.empty(0, np.int64), _NO_RECORDS)


def _table(taken: Taken, first: int) -> pa.Table:
    headers = taken.headers[first:]
    if any(headers):
        pairs = (None if one is None else [{"key": k, "value": v} for k, v in one] for one in headers)
        made = pa.array(pairs, schema.HEADERS)
    else:
        made = pa.nulls(len(headers), schema.HEADERS)
    micros = np.array(taken.timestamps[first:], np.int64) * 1000
    arrays = [
        pa.array(taken.keys[first:], pa.binary()),
        pa.array(taken.values[first:], pa.binary()),
        made,
        pa.array(micros).cast(schema.TIMESTAMP),
        pa.array(taken.kinds[first:], pa.int32()),
    ]
    return pa.Table.from_arrays(arrays, schema=_RECORDS)


@dataclass(frozen=True, slots=True)
class OffsetsPlan:
    """What of a group's offsets is committed now, and what waits until its records are here."""

    commit: dict[Place, CommittedOffset] = field(default_factory=dict)
    wait: dict[Place, SourceOffset] = field(default_factory=dict)


def plan_offsets(source: Mapping[Place, SourceOffset], here: GroupView, ends: Mapping[Place, int]) -> OffsetsPlan:
    """A group's offsets at Kafka that count here, too. `ends`: how far each partition is copied.

    A group with members here has moved: its offsets are its own. So are those that are ahead of Kafka's, as a consumer
    that was here for a while leaves them. An offset without its records waits.
    """
    if here.group is not None and here.group.members:
        return OffsetsPlan()
    plan = OffsetsPlan()
    for place, committed in source.items():
        own = here.offsets.get(place)
        if place not in ends or (own is not None and own.offset >= committed.offset):
            continue
        if committed.offset > ends[place]:
            plan.wait[place] = committed
        else:
            plan.commit[place] = CommittedOffset(committed.offset, committed.metadata, committed.leader_epoch)
    return plan
