"""A mirror from Kafka: one process that copies topics and groups' offsets into a lake, round after round.

A round takes what came from Kafka and appends it, a topic's in one entry that also says how far the copy is. So it may
stop anywhere, and another process goes on where the partitions end.
"""

import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from tidelog.log.appends.mirrored import CopiedRun
from tidelog.log.base.errors import CopyPositionError, OutcomeUnknownError, StorageError, TidelogError
from tidelog.log.base.rate import Rate
from tidelog.log.lake import Lake
from tidelog.mirror.kafka.copies import KafkaGroups, KafkaTopics
from tidelog.mirror.kafka.rules import run_of
from tidelog.mirror.kafka.source import KafkaSource, Place, Taken
from tidelog.operations.mirrors import MirrorStatus, TableStatus, write_status

logger = logging.getLogger("tidelog.mirror.kafka")

# How often topics, partitions and configurations are looked at, and groups' offsets.
TOPICS_EVERY_S: Final = 5.0
GROUPS_EVERY_S: Final = 2.0
STATUS_EVERY_S: Final = 1.0
# What a round takes at most, and how long it waits for the first of it.
MOST_BYTES: Final = 32 * 1024 * 1024
_MOST_RECORDS: Final = 20_000
_WAIT_S: Final = 0.05
_AGAIN_S: Final = 1.0
_DELAYS: Final = 1_000


class KafkaMirror:
    """Copies topics from Kafka into a lake, those whose whole name `wanted` matches or all. For one thread.

    `bytes_per_s` limits what is copied.
    """

    def __init__(
        self,
        source: KafkaSource,
        lake: Lake,
        *,
        wanted: re.Pattern[str] | None = None,
        bytes_per_s: float | None = None,
    ) -> None:
        self._source = source
        self._lake = lake
        self._clock = lake.clock
        self._run_id = lake.ids.new()
        self._topics = KafkaTopics(source, lake, wanted)
        self._groups = KafkaGroups(source, lake)
        self._rate = Rate(self._clock, bytes_per_s)
        self._writers = ThreadPoolExecutor(4, thread_name_prefix="tidelog-mirror")
        self._topics_s = self._groups_s = self._status_s = float("-inf")
        # Whether the consumer reads from where the partitions end: not after a failure between reading and appending.
        self._follows = False
        self._looked_ms = 0
        self._whole_ms: int | None = None
        self._delays_ms: deque[int] = deque(maxlen=_DELAYS)
        # What it said last; other threads may read it.
        self.said: MirrorStatus | None = None
        self.rounds = self.records = self.bytes = 0

    def close(self) -> None:
        """Say that the mirror has ended, and end its threads."""
        self._writers.shutdown(wait=True)
        self._say(ended=True)

    # --- rounds --------------------------------------------------------------------------------------------

    def run(self, wait: Callable[[float], bool]) -> None:
        """Rounds until `wait`, which waits for its number of seconds, says that it is to stop.

        While Kafka or the store gives no answer it is tried again. Raises what no later round can mend.
        """
        while True:
            pause_s = 0.0
            try:
                self.round()
                self._say_now_and_then()
            except TidelogError as e:
                self._try_again(e)
                pause_s = _AGAIN_S
            if wait(pause_s):
                return

    def run_once(self, stopped: Callable[[float], bool]) -> None:
        """Copy what is committed now, and the groups' offsets of before; return then, or when `stopped` says so.

        Raises `KafkaSourceError`, `StorageError`.
        """
        self._look_at_groups()
        self._groups_s = float("inf")  # their records are among those that the topics end with from now on
        self._look_at_topics()
        goals = {place: end for place, (_, end) in self._topics.ends.items()}
        while not stopped(0.0) and any(at < goals.get(place, 0) for place, at in self._topics.at.items()):
            self.round()
        self._groups.commit(self._topics.at)

    def round(self) -> int:
        """Copy what came; how many records. Raises `KafkaSourceError`, `StorageError`."""
        try:
            copied = self._round()
        except BaseException:
            self._follows = False  # what was taken is taken again
            raise
        self.rounds += 1
        self.records += copied
        return copied

    def _round(self) -> int:
        now_s = self._clock.elapsed_s()
        if now_s - self._topics_s >= TOPICS_EVERY_S:
            self._look_at_topics()
        if now_s - self._groups_s >= GROUPS_EVERY_S:
            self._look_at_groups()
        if not self._follows:
            self._source.follow(self._topics.at)
            self._follows = True
        taken = {place: one for place, one in self._take().items() if place in self._topics.at}
        copied = self._append(taken)
        for place, batch in taken.items():
            if batch.out_of_range and place in self._topics.at:
                self._topics.jump(place)
                self._follows = False
            elif batch.problem:
                self._topics.stop(place[0], batch.problem)
                self._follows = False
        self._groups.commit(self._topics.at)
        if not self.problems and all(self._topics.at.get(p, 0) >= end for p, (_, end) in self._topics.ends.items()):
            self._whole_ms = self._looked_ms
        return copied

    def _look_at_topics(self) -> None:
        self._topics_s, now_ms = self._clock.elapsed_s(), self._clock.now_ms()
        if self._topics.look():
            self._follows = False
        self._looked_ms = now_ms

    def _look_at_groups(self) -> None:
        self._groups_s = self._clock.elapsed_s()
        self._groups.look()

    def _take(self) -> dict[Place, Taken]:
        """What came, up to a number of bytes."""
        taken = self._source.take(_MOST_RECORDS, _WAIT_S)
        size = sum(one.size for one in taken.values())
        while size < MOST_BYTES and sum(len(one.offsets) for one in taken.values()) >= _MOST_RECORDS:
            more = self._source.take(_MOST_RECORDS, 0.0)
            if not more:
                break
            size += sum(one.size for one in more.values())
            for place, batch in more.items():
                if place in taken:
                    taken[place].extend(batch)
                else:
                    taken[place] = batch
        self._rate.take(size)
        return taken

    def _append(self, taken: dict[Place, Taken]) -> int:
        """Append what came of each topic, topics beside one another."""
        runs: dict[str, list[CopiedRun]] = {}
        for (name, partition), one in taken.items():
            run = run_of(partition, self._topics.at[name, partition], one)
            if run is not None:
                runs.setdefault(name, []).append(run)
        errors = [*self._writers.map(lambda item: self._append_topic(*item), runs.items())]
        copied = 0
        for (name, of_topic), error in zip(runs.items(), errors, strict=True):
            if error is None:
                copied += sum(len(run.offsets) for run in of_topic)
                self._note(name, of_topic)
        for name, error in zip(runs, errors, strict=True):
            if error is not None:
                self._recover(name, error)
        self.bytes += sum(one.size for one in taken.values())
        return copied

    def _append_topic(self, name: str, runs: Sequence[CopiedRun]) -> TidelogError | None:
        try:
            self._topics.opened(name).append(runs)
        except TidelogError as e:
            return e
        return None

    def _note(self, name: str, runs: Sequence[CopiedRun]) -> None:
        now_ms = self._clock.now_ms()
        for run in runs:
            self._topics.at[name, run.partition] = run.end
            if len(run.offsets):
                newest_ms = run.records.column("timestamp")[-1].value // 1000
                self._delays_ms.append(max(0, now_ms - newest_ms))

    def _recover(self, name: str, error: TidelogError) -> None:
        """Go on after an append that failed: what was taken of the topic is taken again."""
        self._follows = False
        if isinstance(error, CopyPositionError | OutcomeUnknownError):
            logger.warning("Topic '%s': %s", name, error)
            self._topics.renew(name)
        elif error.retriable or isinstance(error, StorageError):
            raise error
        else:
            self._topics.stop(name, str(error))

    def _try_again(self, error: TidelogError) -> None:
        if not (error.retriable or isinstance(error, StorageError)):
            raise error
        logger.warning("A round of the mirror failed, and is tried again. %s", error)
        self._topics_s = float("-inf")
        with suppress(TidelogError):
            self._say_now_and_then(str(error))

    # --- status --------------------------------------------------------------------------------------------

    @property
    def problems(self) -> dict[str, str]:
        """Topics and groups that are not copied, and why."""
        groups = {f"group {name}": why for name, why in self._groups.problems.items()}
        return self._topics.problems | groups

    @property
    def left_out(self) -> dict[str, dict[str, str]]:
        """{topic: {key of its configuration: why it is not set here}}."""
        return {name: dict(keys) for name, keys in self._topics.left_out.items() if keys}

    @property
    def lost(self) -> dict[Place, tuple[int, int]]:
        """Offsets that the source deleted before they were copied, by partition."""
        return dict(self._topics.lost)

    @property
    def groups_committed(self) -> int:
        """How many offsets of groups were committed here."""
        return self._groups.committed

    def status(self, problem: str = "", *, ended: bool = False) -> MirrorStatus:
        """What there is to say now; of each topic the sums of its partitions' ends."""
        now_ms = self._clock.now_ms()
        names = {name for name, _ in self._topics.ends} | self._topics.problems.keys()
        tables = {name: self._table(name) for name in sorted(names)}
        behind = sum(max(0, one.source - one.follower) for one in tables.values())
        delays = sorted(self._delays_ms)
        since = self._whole_ms if behind and self._whole_ms is not None else now_ms
        return MirrorStatus(
            self._source.address,
            self._run_id,
            now_ms,
            self._whole_ms,
            behind,
            0,
            max(0, now_ms - since),
            (delays[len(delays) // 2], delays[-1]) if delays else (0, 0),
            self.rounds,
            self.records,
            self.bytes,
            0,
            ended,
            problem,
            tables,
        )

    def _table(self, name: str) -> TableStatus:
        places = [place for place in self._topics.ends if place[0] == name]
        copied = sum(self._topics.at.get(place, 0) for place in places)
        there = sum(max(self._topics.ends[place][1], self._topics.at.get(place, 0)) for place in places)
        return TableStatus(there, copied, problem=self._topics.problems.get(name, ""))

    def _say_now_and_then(self, problem: str = "") -> None:
        now_s = self._clock.elapsed_s()
        if now_s - self._status_s >= STATUS_EVERY_S:
            self._status_s = now_s
            self._say(problem)

    def _say(self, problem: str = "", *, ended: bool = False) -> None:
        self.said = self.status(problem, ended=ended)
        write_status(self._lake.storage, self.said)
