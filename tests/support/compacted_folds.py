"""Folds of compacted topics, each with its topic, its records and what a reader of it sees."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidelog.connect.runtime.offsets import OffsetState, offset_record
from tidelog.log.compacted_topic import CompactedTopic, TopicOwner
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.lake import Lake
from tidelog.log.value_schemas import SubjectReader
from tidelog.operations.connector_configs import ConfigRecord, ConfigState
from tidelog.operations.connectors import workers_topic
from tidelog.operations.schemas.records import CONFIG, RegistryRecord
from tidelog.operations.schemas.registry_log import RegistryLog

TOPIC = "plain"
OWNER = TopicOwner("the tests", "a test's log", "what they need would be deleted by its age")
# Rules so small that a minute sees compactions, and tombstones go.
QUICK = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "max.compaction.lag.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "60000",
    "file.delete.delay.ms": "0",
}

Pair = tuple[bytes, bytes | None]
Seen = dict[str, str]


class Texts:
    """The plainest fold: the newest text of each name. `taken`: offsets of all records that came."""

    def __init__(self) -> None:
        self.texts: Seen = {}
        self.taken: list[int] = []

    def take(self, key: bytes | None, value: bytes | None, offset: int, at_ms: int) -> None:
        self.taken.append(offset)
        name = (key or b"").decode()
        if value is None:
            self.texts.pop(name, None)
        else:
            self.texts[name] = value.decode()


@dataclass(frozen=True)
class Kind:
    """A fold: its topic, a reader of it over a lake, what a reader sees, and the record of a name's text."""

    topic: str
    partitions: int
    reader: Callable[[Lake], Any]
    seen: Callable[[Any], Seen]
    pair: Callable[[str, str | None], Pair]


def plain(lake: Lake) -> CompactedTopic[Texts]:
    return CompactedTopic(lake, TOPIC, 1, Texts, OWNER, ordered=True)


def config_pair(field: str) -> Callable[[str, str | None], Pair]:
    def pair(name: str, text: str | None) -> Pair:
        record = RegistryRecord(CONFIG, name, value=None if text is None else {field: text})
        return record.key(), record.payload()

    return pair


def subjects(lake: Lake) -> SubjectReader:
    assert isinstance(lake.value_schemas, SubjectReader)
    return lake.value_schemas


KINDS = {
    "plain": Kind(
        TOPIC, 1, plain, lambda reader: reader.look(lambda fold: dict(fold.texts)),
        lambda name, text: (name.encode(), None if text is None else text.encode()),
    ),
    "registry": Kind(
        SCHEMAS_TOPIC, 1, RegistryLog,
        lambda reader: reader.look(lambda state: {of: one["compatibilityGroup"] for of, one in state.configs.items()}),
        config_pair("compatibilityGroup"),
    ),
    "subjects": Kind(
        SCHEMAS_TOPIC, 1, subjects,
        lambda reader: reader.look(lambda fold: {of: to for of in "abcde" if (to := fold.resolved(of)) != of}),
        config_pair("alias"),
    ),
    "configs": Kind(
        "connect-configs", 1, lambda lake: workers_topic(lake, "connect-configs", 1, ConfigState, ordered=True),
        lambda reader: reader.look(lambda state: {of: one["text"] for of, one in state.connectors.items()}),
        lambda name, text: ConfigRecord(
            f"connector-{name}", None if text is None else {"properties": {"text": text}}
        ).bytes(),
    ),
    "offsets": Kind(
        "connect-offsets", 3, lambda lake: workers_topic(lake, "connect-offsets", 3, OffsetState),
        lambda reader: reader.look(lambda state: {of["name"]: one["text"] for of, one in state.of("c")}),
        lambda name, text: offset_record("c", {"name": name}, None if text is None else {"text": text}),
    ),
}  # fmt: skip


def make(kind: Kind, lake: Lake, config: Mapping[str, str] = QUICK) -> None:
    lake.create_topic(kind.topic, kind.partitions, config)


def write(kind: Kind, lake: Lake, **texts: str | None) -> None:
    """Append records of names, None: a tombstone."""
    pairs = [kind.pair(name, text) for name, text in texts.items()]
    columns = {"key": pa.array([key for key, _ in pairs], pa.binary())}
    lake.topic(kind.topic).append(pa.table(columns | {"value": pa.array([value for _, value in pairs], pa.binary())}))


def records(kind: Kind, lake: Lake) -> list[Pair]:
    """All that the topic holds."""
    topic = lake.topic(kind.topic)
    batches = [batch for partition in topic.offsets() for batch in topic.read(partition)]
    return [(row["key"], row["value"]) for batch in batches for row in batch.to_pylist()]
