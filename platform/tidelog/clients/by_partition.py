"""Offsets by time: one request for many partitions of a topic, with an answer or an error for each."""

from collections.abc import Iterable, Mapping

from tidelog.clients.values.errors import kafka_error
from tidelog.clients.values.partitions import OFFSET_END, OFFSET_INVALID, TopicPartition
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.operations.topics import ask_together


def offsets_by_time(lake: Lake, wanted: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The first offset at or after the ms since the epoch in each `offset`; OFFSET_END where there is none."""
    answers = left = [TopicPartition(p.topic, p.partition, p.offset) for p in wanted]
    while left:  # more than once only where a partition is asked for twice
        asked = {(p.topic, p.partition): p for p in reversed(left)}
        left = [p for p in left if asked[p.topic, p.partition] is not p]
        for topic in {topic for topic, _ in asked}:
            _find_by_time(lake, topic, {p.partition: p for p in asked.values() if p.topic == topic})
    return answers


def _find_by_time(lake: Lake, topic: str, asked: Mapping[int, TopicPartition]) -> None:
    """Put in place of each time the offset that was found, or the partition's error."""
    times = {partition: p.offset for partition, p in asked.items()}
    found = ask_together(lambda wanted: lake.offsets_for_times(topic, wanted), times)
    for partition, p in asked.items():
        offset = found[partition]
        if isinstance(offset, TidelogError):
            p.offset, p.error = OFFSET_INVALID, kafka_error(offset)
        else:
            p.offset = OFFSET_END if offset is None else offset
