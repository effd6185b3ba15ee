"""What must hold at the end of a run, judged by the answers that actors got, the recorded log and the bytes on disk."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from sim_history import PREFIX, TOPIC, Attempt, History
from sim_replay import BrokenLogError, Replay, from_checkpoint, records_of
from sim_storage import Disk

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.lake import Lake

Place = tuple[str, int, int]  # topic id, partition, offset


@dataclass
class Truth:
    """The whole history, entry by entry."""

    final: Replay = field(default_factory=Replay)
    summaries: list[dict] = field(default_factory=list)
    # every record that was ever committed, and the segment that holds it; offsets by value
    records: dict[Place, tuple[str, str]] = field(default_factory=dict)
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))
    committed_at: dict[str, int] = field(default_factory=dict)  # version by segment
    times: dict[tuple[str, int], datetime] = field(default_factory=dict)

    @staticmethod
    def of(history: History) -> "Truth":
        """Replay what the log was given. Raises `BrokenLogError`."""
        truth = Truth()
        for version, data in enumerate(history.entries):
            appended = truth.final.apply(data)
            truth.summaries.append(truth.final.summary())
            life = truth.final.topic_id
            for path, (partition, base, end) in appended.items():
                records = records_of(history.segments[path])
                if len(records) != end - base:
                    raise BrokenLogError(f"entry {version}: {path} has {len(records)} records for [{base}, {end})")
                truth.committed_at[path] = version
                truth._check_times(life, partition, [time for _, time in records])
                for offset, (value, _) in enumerate(records, base):
                    truth.records[life, partition, offset] = (value, path)
                    truth.places[value].append((life, partition, offset))
        return truth

    def _check_times(self, life: str, partition: int, times: list[datetime]) -> None:
        """LogAppendTime never falls within a partition, whatever the writers' clocks say."""
        if self.final.configuration.get("tidelog.message.timestamp.type") == "LogAppendTime":
            last = self.times.get((life, partition), times[0])
            if sorted([last, *times]) != [last, *times]:
                raise BrokenLogError(
                    f"entry {self.final.version}: the times of partition {partition} fall from {last}: {times}"
                )
            self.times[life, partition] = times[-1]


def complaints(history: History, disk: Disk, judge: Lake) -> Iterator[str]:
    """Everything that is wrong. `judge` is a lake opened when all was over."""
    try:
        truth = Truth.of(history)
    except BrokenLogError as e:
        yield f"the log is broken: {e}"
        return
    yield from appends(history, truth)
    yield from senders(history, truth)
    yield from readers(history, truth)
    yield from live_records(history, truth, disk)
    yield from same_state(truth, judge)
    yield from checkpoints(truth, disk)


def appends(history: History, truth: Truth) -> Iterator[str]:
    """Nothing acknowledged is missing or elsewhere, nothing is there twice, nothing refused is there."""
    given: dict[Place, str] = {}
    for attempt in history.attempts:
        for partition, values in attempt.values.items():
            for i, value in enumerate(values):
                everywhere = truth.places.get(value, [])
                # A job's or sender's batch may be there once in each life: a new one begins without markers.
                once_a_life = attempt.actor == "job" or attempt.actor.startswith("sender")
                places = [p for p in everywhere if p[0] == attempt.life] if once_a_life else everywhere
                if len(places) > 1:
                    yield f"{value} is there {len(places)} times: {places}"
                if attempt.outcome == "repeat" and not places:
                    yield f"{value} was said to be there, and is not"
                if attempt.outcome == "refused" and places and not _told_otherwise(history, value):
                    yield f"{value} was refused, and is there"
                if attempt.ranges is not None:
                    first, end = attempt.ranges[partition]
                    place = (attempt.life, partition, first + i)
                    if end - first != len(values) or places[:1] != [place]:
                        yield f"{value} was acknowledged at {place} ({attempt.ranges}), and is at {places}"
                    if given.setdefault(place, value) != value:
                        yield f"{place} was given to {given[place]} and to {value}"


def senders(history: History, truth: Truth) -> Iterator[str]:
    """What idempotent senders sent is there once in each life, and in the order in which they sent it."""
    last: dict[tuple[str, int, str], int] = {}
    for (life, partition, offset), (value, _) in sorted(truth.records.items()):
        name, _, number = value.partition("#")
        if name.startswith("sender"):
            if int(number) <= last.get((life, partition, name), -1):
                yield f"{value} is at {partition}/{offset} of {life}, after number {last[life, partition, name]} of it"
            last[life, partition, name] = int(number)


def _told_otherwise(history: History, value: str) -> bool:
    """Whether another attempt at the same value was not refused (a job repeats its batch)."""
    same = [a for a in history.attempts if any(value in values for values in a.values.values())]
    return any(a.outcome != "refused" for a in same)


def readers(history: History, truth: Truth) -> Iterator[str]:
    """What readers saw is what was committed there."""
    for (life, partition), seen in history.reads.items():
        for offset, value in seen.items():
            committed = truth.records.get((life, partition, offset), ("nothing", ""))[0]
            if committed != value:
                yield f"a reader saw {value} at {partition}/{offset} of {life}, where {committed} was committed"


def live_records(history: History, truth: Truth, disk: Disk) -> Iterator[str]:
    """Every live segment is on disk, but those that acks=1 left to a power loss, and no reader missed others."""
    missing = {p for p in truth.final.segments if _content(disk, f"{TOPIC}/{p}") != history.segments[p]}
    for path in sorted(missing):
        if not _may_be_lost(history, truth, path):
            yield f"{path} {truth.final.segments[path]} is gone or torn, and nothing may have lost it"
    for place in sorted(history.lost):
        path = truth.records[place][1]
        if _content(disk, f"{TOPIC}/{path}") == history.segments[path]:
            yield f"a reader could not read {place}, which is there"
    durable = {p for a in history.attempts for p in _durable_paths(a, truth)}
    for path in sorted(missing & durable):
        yield f"{path} {truth.final.segments[path]} was acknowledged with acks=all, and is gone or torn"


def _may_be_lost(history: History, truth: Truth, path: str) -> bool:
    """A power loss after its entry, and no entry up to that power loss that promised it."""
    version = truth.committed_at[path]
    return any(loss.durable < version <= loss.head for loss in history.power_losses)


def _durable_paths(attempt: Attempt, truth: Truth) -> Iterator[str]:
    if attempt.acks == "all" and attempt.ranges is not None:
        for partition, (first, _) in attempt.ranges.items():
            found = truth.records.get((attempt.life, partition, first))
            if found:
                yield found[1]


def _content(disk: Disk, path: str) -> bytes | None:
    try:
        return disk.get(path)
    except ObjectNotFoundError:
        return None


def same_state(truth: Truth, judge: Lake) -> Iterator[str]:
    """A checkpoint and the entries after it say what the whole history says."""
    state = judge.log(TOPIC).door.refresh()
    txns = [*state.txns.values(), *state.producer_txns()]
    found = {
        "version": state.version,
        "topic_id": state.topic_id,
        "exists": state.exists,
        "partitions": state.partitions,
        "configuration": dict(state.metadata.configuration) if state.metadata else {},
        "starts": {p: o for p, o in sorted(state.starts.items()) if o},
        "ends": {p: o for p, o in sorted(state.ends.items()) if o},
        "segments": sorted((s.partition, s.base_offset, s.end, s.path) for s in state.all_segments()),
        "markers": {t.app_id: t.version for t in sorted(txns, key=lambda t: t.app_id) if t.version >= 0},
    }
    for what, value in truth.final.summary().items():
        if found[what] != value:
            yield f"opened anew, {what} is {found[what]}, and the history says {value}"


def checkpoints(truth: Truth, disk: Disk) -> Iterator[str]:
    """Each checkpoint that can be read says what the history says up to its version; old ones are gone."""
    names = [p.removeprefix(PREFIX) for p in disk.paths(f"{TOPIC}/_delta_log")]
    floors = [int(p.rpartition("/")[2]) for p in disk.paths(f"{TOPIC}/_tidelog/floor")]
    floor = max(floors, default=-1)
    for name in names:
        if name[:20].isdigit() and int(name[:20]) <= floor:
            yield f"{name} lies at or below the floor {floor}, and was not swept"
        if ".checkpoint." not in name:
            continue
        version = int(name[:20])
        found = from_checkpoint(disk.get(PREFIX + name), version).summary()
        for what, value in truth.summaries[version].items():
            if found[what] != value:
                yield f"checkpoint {version}: {what} is {found[what]}, and the history says {value}"
    head = truth.final.version
    entries = sum(name.endswith(".json") for name in names)
    if entries > 40:
        yield f"the log folder holds {entries} entries of {head}: trimming does not keep up"
