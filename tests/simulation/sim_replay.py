"""The log's meaning by code of its own: JSON lines in, offsets and segments out. Knows nothing of the product."""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow.parquet as pq


class BrokenLogError(Exception):
    """The log breaks an invariant."""


@dataclass
class Replay:
    """What the log says after entry `version`."""

    version: int = -1
    topic_id: str = ""
    exists: bool = False
    partitions: int = 0
    configuration: dict[str, str] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    # (partition, base offset, end) by path
    segments: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    markers: dict[str, int] = field(default_factory=dict)
    modified_ms: dict[str, int] = field(default_factory=dict)  # by path

    def apply(self, data: bytes) -> dict[str, tuple[int, int, int]]:
        """Move on by one entry; returns the segments it appended. Raises `BrokenLogError`."""
        actions = [json.loads(line) for line in data.splitlines()]
        self.version += 1
        if not actions or "commitInfo" not in actions[-1]:
            raise BrokenLogError(f"entry {self.version} is torn")
        said_ends, said_starts = dict(self.ends), dict(self.starts)
        new_life = False
        for body in _of(actions, "metaData"):
            new_life = self._metadata(body["configuration"])
        for body in _of(actions, "remove"):
            if self.segments.pop(body["path"], None) is None:
                raise BrokenLogError(f"entry {self.version} removes {body['path']}, which is not there")
        if new_life:
            self._begin_life()
        for body in _of(actions, "txn"):
            self._txn(body["appId"], body["version"], said_ends, said_starts)
        appended = {body["path"]: _range(body) for body in _of(actions, "add")}
        for path, (partition, base, end) in appended.items():
            expected = self.ends.get(partition, 0)
            if path in self.segments:
                raise BrokenLogError(f"entry {self.version} adds {path} again")
            if base != expected or end <= base:
                raise BrokenLogError(
                    f"entry {self.version} appends [{base}, {end}) to partition {partition}, which ends at {expected}"
                )
            self.ends[partition] = end
            self.segments[path] = (partition, base, end)
        self._check_order({body["path"]: body["modificationTime"] for body in _of(actions, "add")})
        self._check_offsets(said_ends, said_starts)
        self._check_coverage()
        return appended

    def _txn(self, app: str, version: int, ends: dict[int, int], starts: dict[int, int]) -> None:
        partition = int(app.rpartition("/")[2]) if app.startswith(("tidelog/end/", "tidelog/start/")) else -1
        if app.startswith("tidelog/end/"):
            ends[partition] = version
        elif app.startswith("tidelog/start/"):
            starts[partition] = version
        elif version < self.markers.get(app, version):
            raise BrokenLogError(f"entry {self.version} takes {app} back to {version}")
        else:
            self.markers[app] = version

    def _metadata(self, configuration: dict[str, str]) -> bool:
        """Returns whether a new life of the topic begins."""
        new_life = configuration["tidelog.topic.id"] != self.topic_id
        self.topic_id = configuration["tidelog.topic.id"]
        self.exists = configuration.get("tidelog.deleted") != "true"
        self.partitions = int(configuration["tidelog.partitions"])
        self.configuration = configuration
        return new_life

    def _begin_life(self) -> None:
        if self.segments:
            raise BrokenLogError(f"entry {self.version} begins a life on the last one's segments")
        self.starts, self.ends, self.markers = {}, {}, {}

    def _check_order(self, appended_ms: dict[str, int]) -> None:
        """Delta streams read live files by modification time: what comes later is never older."""
        last_ms = max((ms for path, ms in self.modified_ms.items() if path in self.segments), default=0)
        if min(appended_ms.values(), default=last_ms) < last_ms:
            raise BrokenLogError(f"entry {self.version} appends at {appended_ms}, after {last_ms}")
        self.modified_ms.update(appended_ms)

    def _check_offsets(self, said_ends: dict[int, int], said_starts: dict[int, int]) -> None:
        if _positive(said_ends) != _positive(self.ends):
            raise BrokenLogError(f"entry {self.version} says ends {said_ends}, its segments {self.ends}")
        for partition, start in self.starts.items():
            if said_starts.get(partition, 0) < start:
                raise BrokenLogError(f"entry {self.version} moves the start of partition {partition} back to {start}")
        self.starts = said_starts

    def _check_coverage(self) -> None:
        if not self.exists and self.segments:
            raise BrokenLogError(f"entry {self.version}: a deleted topic has segments")
        for partition in range(self.partitions if self.exists else 0):
            start, end = self.starts.get(partition, 0), self.ends.get(partition, 0)
            at = None
            for base, stop in sorted((b, e) for p, b, e in self.segments.values() if p == partition):
                follows = base == at if at is not None else base <= start < stop
                if not follows:
                    raise BrokenLogError(f"entry {self.version}: partition {partition}: [{base}, {stop}) after {at}")
                at = stop
            if start > end or end != (start if at is None else at):
                raise BrokenLogError(
                    f"entry {self.version}: partition {partition} is [{start}, {end}), covered to {at}"
                )

    def summary(self) -> dict[str, Any]:
        """What two ways to the same version must agree on."""
        return {
            "version": self.version,
            "topic_id": self.topic_id,
            "exists": self.exists,
            "partitions": self.partitions,
            "configuration": self.configuration,
            "starts": _positive(self.starts),
            "ends": _positive(self.ends),
            "segments": sorted((*where, path) for path, where in self.segments.items()),
            "markers": {a: v for a, v in sorted(self.markers.items()) if v >= 0},
        }


def request_of(data: bytes) -> str:
    """The request's id in an entry's last line."""
    return str(json.loads(data.splitlines()[-1])["commitInfo"]["tidelog"]["request"])


def is_durable(data: bytes) -> bool:
    """Whether an entry promises that everything up to it survives a power loss."""
    return bool(json.loads(data.splitlines()[-1])["commitInfo"]["tidelog"]["durable"])


def records_of(segment: bytes) -> list[tuple[str, datetime]]:
    """(value, timestamp) of the records in a segment, in the order of their positions."""
    table = pq.ParquetFile(io.BytesIO(segment)).read(columns=["position", "value", "timestamp"], use_threads=False)
    rows = sorted(zip(*(table[name].to_pylist() for name in ("position", "value", "timestamp")), strict=True))
    if [position for position, _, _ in rows] != list(range(len(rows))):
        raise BrokenLogError("a segment's positions are not 0, 1, 2 ...")
    return [(value.decode(), timestamp) for _, value, timestamp in rows]


def from_checkpoint(data: bytes, version: int) -> Replay:
    """What a checkpoint's rows say."""
    replay = Replay(version)
    rows = pq.read_table(io.BytesIO(data)).to_pylist()
    for body in _of(rows, "metaData"):
        replay._metadata(dict(body["configuration"]))
    for body in _of(rows, "txn"):
        replay._txn(body["appId"], body["version"], replay.ends, replay.starts)
    for body in _of(rows, "add"):
        values, tags = dict(body["partitionValues"]), dict(body["tags"])
        replay.segments[body["path"]] = _range({"partitionValues": values, "tags": tags})
    return replay


def _of(actions: Iterable[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    return (action[kind] for action in actions if action.get(kind) is not None)


def _positive(offsets: dict[int, int]) -> dict[int, int]:
    return {p: o for p, o in sorted(offsets.items()) if o}


def _range(body: dict[str, Any]) -> tuple[int, int, int]:
    values = body["partitionValues"]
    return int(values["partition"]), int(values["base_offset"]), int(body["tags"]["tidelog.end"])
