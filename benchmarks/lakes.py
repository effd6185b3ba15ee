"""Lakes and topics for the benchmarks."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import tidelog
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.segments.staging import stage_records
from tidelog.log.segments.writer import Staged

RECORDS_PER_APPEND = 100
VALUE_BYTES = 100

_ADDS_PER_ENTRY = 2_500
# ext4 gives one file at most 65,000 names.
_NAMES_PER_FILE = 50_000


def small_batch(seed: int = 1) -> pa.Table:
    """100 records with keys and values of 100 random bytes, as a producer hands them in."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "key": [f"key-{i:06d}".encode() for i in random.integers(0, 100_000, RECORDS_PER_APPEND)],
            "value": [random.bytes(VALUE_BYTES) for _ in range(RECORDS_PER_APPEND)],
        }
    )


def topic_of_many_files(
    lake: tidelog.Lake, name: str, files: int, *, per_entry: int = _ADDS_PER_ENTRY, checkpoint: bool = True
) -> None:
    """A topic of one partition with `files` live segments of 100 records: names of few files, `per_entry` at a time.

    With `checkpoint` one of the whole topic is written at the end.
    """
    lake.create_topic(name, partitions=1)
    topic = lake.topic(name)
    root = Path(lake.uri.removeprefix("file://")) / topic.folder
    source: Staged | None = None
    for first in range(0, files, per_entry):
        if first % _NAMES_PER_FILE == 0:
            stager = topic.stager()
            stage_records(stager, small_batch(), name, topic.config(), "murmur2", 0, lake.clock.now_ms())
            (source,) = stager.finish()
        assert source is not None  # the first round stages it
        topic.commit(_linked(root, source, topic.known.version, range(first, min(files, first + per_entry))), acks=1)
    if checkpoint:
        write_checkpoint(lake.storage, topic.folder, topic.state().version, lake.clock.now_ms())


def _linked(root: Path, source: Staged, known_version: int, numbers: range) -> list[Staged]:
    """Names of one file, as of writers that had just seen the log at `known_version`."""
    linked = []
    for number in numbers:
        path = layout.segment_path(0, known_version, f"{number:032x}")
        os.link(root / source.path, root / path)
        linked.append(replace(source, path=path, known_version=known_version))
    return linked
