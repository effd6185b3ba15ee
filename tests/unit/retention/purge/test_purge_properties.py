"""Whatever happened to a topic, and whenever it is purged: what can be read is there, nothing acknowledged is lost."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from support.logs import memory_lake, open_lake, read, stage, values
from support.purges import HOUR_S, MIN_AGE_MS, data_files, missing_files, purge_once
from support.rewrites import merge

from tidelog.log.base.errors import MissingSegmentError, TopicChangedError
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.segments.writer import Staged
from tidelog.log.upkeep.holds import LASTS_MS, Holder

WAITS_S = st.sampled_from([1.0, 4.0, 8.0, 11.0, 60.0, 2 * HOUR_S])
CHANGES = ["delete_records", "delete_records", "merge", "stage", "stage", "commit", "commit", "hold", "release"]
STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 2)),
    st.tuples(st.sampled_from([*CHANGES, "checkpoint", "recreate"]), st.integers(1, 2)),
    st.tuples(st.just("pass"), WAITS_S),
    st.tuples(st.just("purge"), st.sampled_from([0, 0, 0, 5, 7200, -60])),
)


@dataclass
class World:
    """A topic, what it should hold, segments that slow writers have staged, and a running job's hold."""

    expected: list[str] = field(default_factory=list)
    staged: list[tuple[str, list[Staged]]] = field(default_factory=list)
    held: int | None = None
    count: int = 0

    def __post_init__(self) -> None:
        self.lake, self.storage, self.clock = memory_lake()
        self.job = Holder(self.storage, self.clock, self.lake.ids, "export")
        self.create()

    def create(self) -> None:
        self.lake.create_topic("t", 1, config={"log.min.age.ms": str(MIN_AGE_MS), "file.delete.delay.ms": "3000"})

    def text(self) -> str:
        self.count += 1
        return f"{self.count}"

    def step(self, what: str, how: float) -> None:
        getattr(self, f"_{what}")(how)
        if self.held is not None and not self.job.is_valid("t"):
            self._release(0)

    def _append(self, how: float) -> None:
        texts = [self.text() for _ in range(int(how))]
        self.lake.topic("t").append(values(*texts))
        self.expected += texts

    def _pass(self, how: float) -> None:
        for _ in range(10):  # a running job renews its hold on the way
            self.clock.pass_s(how / 10)
            if how / 10 * 1000 < LASTS_MS:
                self.job.renew()

    def _delete_records(self, how: float) -> None:
        self.expected = self.expected[int(how) :]
        start, end = self.lake.offsets("t")[0]
        self.lake.delete_records("t", {0: min(start + int(how), end)})

    def _merge(self, _: float) -> None:
        live = self.lake.topic("t").state().live(0)
        if len(live) > 1 and live[0].base_offset == self.lake.offsets("t")[0][0]:
            merge(self.lake, "t")

    def _stage(self, _: float) -> None:
        text = self.text()
        self.staged.append((text, stage(self.lake.topic("t"), text)))

    def _commit(self, _: float) -> None:
        """A writer that was frozen since it staged its segment wakes up."""
        if self.staged:
            text, segments = self.staged.pop(0)
            try:
                self.lake.topic("t").commit(segments)
                self.expected.append(text)
            except (TopicChangedError, MissingSegmentError):
                pass  # the error said that nothing was written

    def _checkpoint(self, _: float) -> None:
        write_checkpoint(self.storage, "t", self.lake.topic("t").state().version, self.clock.ms)

    def _recreate(self, _: float) -> None:
        self.lake.delete_topic("t")
        self._purge(0)
        self.create()
        self.expected = []

    def _hold(self, _: float) -> None:
        if self.held is None:
            self.held = self.job.hold("t", lambda: self.lake.log("t").door.refresh().version)

    def _release(self, _: float) -> None:
        self.job.release()
        self.held = None

    def _purge(self, how: float) -> None:
        shift_ms = int(how * 1000)
        entries = {
            layout.version_of(o.path) or 0: o.modified_ms
            for o in self.storage.list_after(f"t/{layout.LOG_FOLDER}")
            if o.path.endswith(".json")
        }
        began_ms = self.clock.ms
        purge_once(open_lake(self.storage, self.clock), now_ms=began_ms + shift_ms if how else None)
        oldest = newest_floor(self.storage, "t") + 1
        young = {v for v, ms in entries.items() if ms > began_ms - MIN_AGE_MS + shift_ms}
        assert all(v - 1 >= oldest for v in young if v - 1 in entries)  # what was the head in the last 10 s
        assert self.held is None or oldest <= self.held


@given(st.lists(STEPS, min_size=8, max_size=30))
def test_what_can_be_read_is_there(steps: list[tuple[str, float]]) -> None:
    world = World()
    for what, how in steps:
        world.step(what, how)
        assert missing_files(world.storage) == set()
    assert read(open_lake(world.storage, world.clock), "t") == world.expected
    # Left alone for long, nothing but what the head names is left.
    world.job.release()
    for _ in range(2):
        world.clock.pass_s(2 * HOUR_S)
        lake = open_lake(world.storage, world.clock)
        purge_once(lake)
    assert data_files(world.storage) == {s.path for s in lake.log("t").door.refresh().all_segments()}
    assert read(lake, "t") == world.expected
