"""A Kafka in memory, for a mirror's engine: logs with gaps, groups, and a consumer that loses what it had fetched."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from tidelog.mirror.kafka.source import Place, SourceGroups, SourceOffset, SourceTopic, Taken


@dataclass
class MadeUpKafka:
    """`logs`: {partition: {offset: value}}, `starts` and `ends` of them; topics are changed by tests."""

    address: str = "kafka://made-up:9092"
    cluster: str = "cluster-1"
    found: dict[str, SourceTopic] = field(default_factory=dict)
    logs: dict[Place, dict[int, bytes | None]] = field(default_factory=dict)
    starts: dict[Place, int] = field(default_factory=dict)
    last: dict[Place, int] = field(default_factory=dict)
    committed: dict[str, dict[Place, SourceOffset]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    positions: dict[Place, int] = field(default_factory=dict)
    problems: dict[Place, str] = field(default_factory=dict)
    follows: int = 0

    def create(self, name: str, partitions: int = 1, *, id: str = "id-1", **config: str) -> None:  # noqa: A002
        values = {k.replace("_", "."): v for k, v in config.items()}
        self.found[name] = SourceTopic(name, id, partitions, values, {*values, "retention.ms", "cleanup.policy"})
        for p in range(partitions):
            self.logs.setdefault((name, p), {})

    def put(self, place: Place, *offsets: int, end: int | None = None) -> None:
        """Records at these offsets; `end` may be behind the last one, as after a marker."""
        self.logs[place].update({o: None if o % 5 == 4 else f"v{o}".encode() for o in offsets})
        self.last[place] = max([self.last.get(place, 0), end or 0, *(o + 1 for o in offsets)])

    def trim(self, place: Place, start: int) -> None:
        self.starts[place] = start
        self.last[place] = max(self.last.get(place, 0), start)
        self.logs[place] = {o: v for o, v in self.logs[place].items() if o >= start}

    # --- the port ------------------------------------------------------------------------------------------

    def cluster_id(self) -> str:
        return self.cluster

    def topics(self) -> dict[str, SourceTopic]:
        return dict(self.found)

    def ends(self, places: Collection[Place]) -> dict[Place, tuple[int, int]]:
        return {p: (self.starts.get(p, 0), self.last.get(p, 0)) for p in places if p in self.logs}

    def follow(self, positions: Mapping[Place, int]) -> None:
        self.follows += 1
        self.positions = dict(positions)

    def take(self, most: int, timeout_s: float) -> dict[Place, Taken]:
        taken: dict[Place, Taken] = {}
        for place, at in self.positions.items():
            one = taken[place] = Taken(problem=self.problems.get(place, ""))
            if not self.starts.get(place, 0) <= at <= self.last.get(place, 0):
                one.out_of_range = True
                continue
            for offset in sorted(o for o in self.logs[place] if o >= at)[: min(most, 3)]:
                one.offsets.append(offset)
                one.keys.append(b"k" if offset % 2 else None)
                one.values.append(self.logs[place][offset])
                one.headers.append([("h", None), ("h", b"x")] if offset % 3 == 0 else None)
                one.timestamps.append(1_700_000_000_000 + offset)
                one.kinds.append(offset % 2)
                one.size += 10
            self.positions[place] = one.offsets[-1] + 1 if one.offsets else at
            if not [o for o in self.logs[place] if o >= self.positions[place]]:
                one.reached = self.positions[place] = self.last.get(place, 0)
        return taken

    def groups(self) -> SourceGroups:
        return SourceGroups({name: dict(offsets) for name, offsets in self.committed.items()}, dict(self.refused))

    def close(self) -> None: ...
