"""What the process of a query gets of a topic: its live segments by number, and where its partitions begin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tidelog.log.delta import schema
from tidelog.log.state.topic_state import TopicState
from tidelog.log.typed.facts import typing_of

# The columns by which the table's rows find their partitions and offsets; no file holds them.
PLACES = pa.schema([pa.field("partition", pa.int32()), pa.field("base_offset", pa.int64())])


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A live segment: its path below the lake's root, and its bytes."""

    path: str
    size: int
    partition: int
    base_offset: int


@dataclass(frozen=True, slots=True)
class TopicTable:
    """A topic as of one moment. `cuts`: the log start offsets of partitions whose first segment begins before it."""

    name: str
    files: tuple[SegmentFile, ...]
    cuts: Mapping[int, int]
    columns: pa.Schema

    def document(self, first: int) -> dict[str, Any]:
        """What the process gets. `first`: the number of the first file."""
        return {
            "name": self.name,
            "first": first,
            "files": [(one.size, one.partition, one.base_offset) for one in self.files],
            "cuts": list(self.cuts.items()),
            "schema": self.columns.serialize().to_pybytes().hex(),
        }


def topic_table(name: str, state: TopicState) -> TopicTable:
    """A topic's table. Its files are those of the state, whatever is written meanwhile."""
    files, cuts = [], {}
    for partition in range(state.partitions):
        start = state.start(partition)
        for segment in state.live(partition):
            if segment.base_offset < start:
                cuts[partition] = start
            path = f"{name}/{unquote(segment.path)}"
            files.append(SegmentFile(path, segment.size, partition, segment.base_offset))
    typing = typing_of(state.metadata)
    given = schema.SEGMENT if typing is None else typing.segment
    return TopicTable(name, tuple(files), cuts, pa.schema([*given, *PLACES]))
