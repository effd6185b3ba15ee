"""Topics with something to purge, and what must hold whatever is purged."""

from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, stage, values
from support.rewrites import merge

from tidelog.log.checkpoints.reading import newest_floor, read_checkpoint, whole_checkpoints
from tidelog.log.delta import layout
from tidelog.log.delta.actions import decode_entry
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage import Storage
from tidelog.log.upkeep.holds import Holder
from tidelog.retention.purge.run import Purged, Purger

MIN_AGE_MS = 10_000
HOUR_S = 3600.0
LEFT = ["2", "3", "4", "5"]
STRANGER = "partition=0/base_offset=0/notes.parquet"
REFUSED = "partition=0/base_offset=0/part-00000-6992039f-e942-4398-bfae-e4fb7893cd64.c000.snappy.parquet"


def purge_once(lake: Lake, topic: str = "t", by: str = "purge", **options: object) -> Purged:
    """One run of a job that only purges."""
    holder = Holder(lake.storage, lake.clock, lake.ids, by)
    try:
        return Purger(lake, holder, "run-1").purge(topic, **options)  # type: ignore[arg-type]
    finally:
        holder.release()


def resting_topic() -> tuple[Lake, FaultyStorage, FakeClock]:
    """Topic "t", two hours at rest: records `LEFT` of "0" to "5", merged; an orphan; a file of a stranger's."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1, config={"log.min.age.ms": str(MIN_AGE_MS), "file.delete.delay.ms": "1000"})
    topic = lake.topic("t")
    for i in range(6):
        topic.append(values(f"{i}"))
        clock.pass_s(1)
    stage(topic, "of a writer that was killed")
    storage.put(f"t/{STRANGER}", b"a stranger's")
    storage.sync([f"t/{STRANGER}"])
    lake.delete_records("t", {0: 2})
    merge(lake, "t")
    clock.pass_s(2 * HOUR_S)
    return open_lake(storage, clock), storage, clock


def everything_in(storage: Storage, folder: str = "") -> dict[str, bytes]:
    """{path: bytes} of all objects in a folder and below it."""
    found = {one.path: storage.get(one.path) for one in storage.list_after(folder)}
    for name in storage.list_folders(folder):
        found |= everything_in(storage, f"{folder}/{name}".lstrip("/"))
    return found


def data_files(storage: Storage, topic: str = "t") -> set[str]:
    """The topic's data files, by path below its folder."""
    folders = [f"{topic}/{name}" for name in storage.list_folders(topic) if name[0] != "_"]
    folders += [f"{folder}/{name}" for folder in folders for name in storage.list_folders(folder)]
    return {o.path.removeprefix(f"{topic}/") for folder in folders for o in storage.list_after(folder)}


def readable_states(storage: Storage, topic: str = "t") -> dict[int, TopicState]:
    """{version: state} of every version that an engine can still read: from the checkpoint past the floor on."""
    listing = list(storage.list_after(f"{topic}/{layout.LOG_FOLDER}"))
    floor = newest_floor(storage, topic)
    state = TopicState()
    if floor >= 0:
        first = next(c for c in whole_checkpoints(listing) if c.version == floor + 1)
        state.restore(first.version, read_checkpoint(storage, topic, first))
    states = {} if floor < 0 else {floor + 1: state}
    entries = {layout.version_of(o.path): o.path for o in listing if o.path.endswith(".json")}
    while state.version + 1 in entries:
        version = state.version + 1
        state = _copy(state)
        state.apply(decode_entry(version, storage.get(entries[version]), entries[version]))
        states[version] = state
    return states


def _copy(state: TopicState) -> TopicState:
    return TopicState(
        state.version,
        state.metadata,
        state.protocol,
        {p: list(live) for p, live in state.segments.items()},
        dict(state.ends),
        dict(state.starts),
        dict(state.cleans),
        dict(state.txns),
        last_modification_ms=state.last_modification_ms,
    )


def missing_files(storage: Storage, topic: str = "t") -> set[tuple[int, str]]:
    """(version, file) of files that a version which can be read names, and that are not there."""
    there = data_files(storage, topic)
    states = readable_states(storage, topic)
    return {(v, s.path) for v, state in states.items() for s in state.all_segments() if s.path not in there}
