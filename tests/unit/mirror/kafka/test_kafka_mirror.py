"""A mirror from a Kafka that is made up: what is copied, what is refused by name, and every step it may die at."""

import re
from collections.abc import Callable
from itertools import count

from support.crashes import Crash, CrashAt
from support.logs import FakeClock, memory_lake, open_lake, quiet, values
from support.made_up_kafka import MadeUpKafka

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.config.lake_file import Follows
from tidelog.log.lake import Lake
from tidelog.mirror.kafka.kafka_mirror import GROUPS_EVERY_S, TOPICS_EVERY_S, KafkaMirror
from tidelog.mirror.kafka.source import KafkaSourceError, SourceGroups, SourceOffset
from tidelog.operations.mirrors import read_status


def never(_: float) -> bool:
    return False


def once(source: MadeUpKafka, lake: Lake, wanted: str | None = None) -> KafkaMirror:
    mirror = KafkaMirror(source, lake, wanted=None if wanted is None else re.compile(wanted))
    mirror.run_once(never)
    mirror.close()
    return mirror


def rows(lake: Lake, place: tuple[str, int]) -> dict[int, bytes | None]:
    batches = lake.topic(place[0]).read(place[1])
    return {row["offset"]: row["value"] for batch in batches for row in batch.to_pylist()}


def require_equal(source: MadeUpKafka, lake: Lake) -> None:
    for name, partition in source.logs:
        assert rows(lake, (name, partition)) == source.logs[name, partition]
        bounds = (source.starts.get((name, partition), 0), source.last.get((name, partition), 0))
        assert lake.offsets(name)[partition] == bounds


def a_source() -> MadeUpKafka:
    source = MadeUpKafka()
    source.create("t", 3, retention_ms="777")
    source.put(("t", 0), 0, 1, 2, 5, 9, 11, 12, end=14)  # compacted, and a marker at its end
    source.put(("t", 1), *range(100, 110))
    source.trim(("t", 1), 102)
    source.trim(("t", 2), 50)  # all of it expired
    source.create("u")
    source.committed["g"] = {
        ("t", 0): SourceOffset(14, "here"),
        ("t", 1): SourceOffset(103),
        ("gone", 0): SourceOffset(1),
    }
    return source


def test_offsets_gaps_starts_configurations_and_groups_are_those_of_kafka() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    mirror = once(source, lake)
    require_equal(source, lake)
    assert mirror.problems == {}
    assert lake.topic_config("t").overrides == {"retention.ms": "777"}
    offsets = {place: (one.offset, one.metadata) for place, one in GroupLog(lake).offsets("g").items()}
    assert offsets == {("t", 0): (14, "here"), ("t", 1): (103, "")}
    status = read_status(lake.storage)
    assert status is not None
    assert (status.source, status.behind_entries, status.ended) == (source.address, 0, True)


def test_the_next_mirror_goes_on_and_repeats_nothing() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    once(source, lake)
    before = lake.topic("t").state().version
    once(source, lake)
    assert lake.topic("t").state().version == before
    source.put(("t", 0), 20, 21)
    source.put(("t", 2), 50)
    once(source, lake)
    require_equal(source, lake)


def test_a_mirror_may_die_between_any_two_steps() -> None:
    for moment in count():
        source, (_, storage, clock) = a_source(), memory_lake()
        once(source, open_lake(storage, clock))
        source.put(("t", 0), 30, 32, end=34)
        source.put(("t", 1), *range(200, 208))
        source.put(("u", 0), 0, 1)
        source.create("v", 2)
        source.trim(("v", 1), 7)
        source.committed["g"][("t", 0)] = SourceOffset(34)
        storage.hook = hook = CrashAt(moment)
        try:
            once(source, open_lake(storage, clock))
        except Crash:
            pass
        finally:
            storage.hook = quiet
        lake = open_lake(storage, clock)
        for place, one in GroupLog(lake).offsets("g").items():  # never an offset without its records
            assert one.offset <= lake.offsets(place[0])[place[1]][1]
        once(source, lake)
        require_equal(source, lake)
        assert GroupLog(lake).offsets("g")["t", 0].offset == 34
        if not hook.crashed:
            break
    assert moment > 40


def stops_after(rounds: int, clock: FakeClock) -> Callable[[float], bool]:
    left = iter(range(rounds))

    def wait(seconds: float) -> bool:
        clock.pass_s(seconds + 0.5)
        return next(left, None) is None

    return wait


def test_a_store_that_fails_at_any_step_is_tried_again() -> None:
    for moment in range(90):  # by then all is copied, and rounds only look
        source, (_, storage, clock) = a_source(), memory_lake()
        failed: list[str] = []

        def fail(method: str, path: str, phase: str, moment: int = moment, failed: list[str] = failed) -> None:
            if phase == "before":
                failed.append(path)
                if len(failed) == moment + 1:
                    raise StorageUnavailableError("away")

        lake = open_lake(storage, clock)
        mirror = KafkaMirror(source, lake)
        storage.hook = fail
        mirror.run(stops_after(40, clock))
        storage.hook = quiet
        require_equal(source, lake)


def test_two_mirrors_bring_each_record_once() -> None:
    source, (lake, storage, clock) = a_source(), memory_lake()
    mirrors = [KafkaMirror(source, lake), KafkaMirror(source, open_lake(storage, clock))]
    consumers = [{}, {}]
    for _ in range(30):
        for number, mirror in enumerate(mirrors):
            source.positions = consumers[number]
            mirror.round()
            consumers[number] = source.positions
            clock.pass_s(1)
    require_equal(source, lake)


def test_a_topic_with_records_of_its_own_is_refused_by_name_and_the_others_go_on() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    lake.create_topic("t", 3)
    lake.topic("t").append(values("own", partition=[1]))
    mirror = once(source, lake)
    assert mirror.problems.keys() == {"t"}
    assert "Topic 't', partition 1 holds records of its own" in mirror.problems["t"]
    assert lake.offsets("t") == {0: (0, 0), 1: (0, 1), 2: (0, 0)}
    assert lake.topic_config("t").overrides == {}
    assert "u" in lake.topics()


def test_producers_of_a_copy_end_it() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    once(source, lake)
    lake.topic("t").append(values("own", partition=[2]))
    source.put(("t", 0), 30)
    mirror = once(source, lake)
    assert "partition 2 was a copy up to offset 50, and got others" in mirror.problems["t"]
    assert 30 not in rows(lake, ("t", 0))


def test_a_topic_that_was_created_again_is_refused_until_its_copy_is_deleted() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    once(source, lake)
    source.create("t", 3, id="id-2")
    for p in range(3):
        source.logs["t", p], source.starts["t", p], source.last["t", p] = {}, 0, 0
    source.put(("t", 0), 0)
    assert "was deleted and created again at the source" in once(source, lake).problems["t"]
    lake.delete_topic("t")
    assert once(source, lake).problems == {}
    require_equal(source, lake)


def test_another_cluster_is_refused() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    once(source, lake)
    source.cluster = "cluster-2"
    assert once(source, lake).problems.keys() == {"t", "u"}


def test_what_the_source_deleted_before_it_was_copied_is_a_gap_and_named() -> None:
    source, (lake, _, clock) = a_source(), memory_lake()
    mirror = KafkaMirror(source, lake)
    for _ in range(6):
        mirror.round()
    source.put(("t", 0), *range(40, 50))
    source.trim(("t", 0), 45)
    source.positions["t", 0] = 14  # what it would ask for next is gone
    for _ in range(8):
        mirror.round()
    clock.pass_s(TOPICS_EVERY_S)
    mirror.round()
    assert mirror.lost == {("t", 0): (14, 45)}
    assert {o for o in rows(lake, ("t", 0)) if o > 14} == {45, 46, 47, 48, 49}
    require_equal(source, lake)


def test_a_source_that_lost_records_stops_the_topic() -> None:
    source, (lake, _, _) = a_source(), memory_lake()
    mirror = KafkaMirror(source, lake)
    for _ in range(6):
        mirror.round()
    source.last["t", 0] = 4
    source.logs["t", 0] = {0: b"v0"}
    mirror.round()
    assert "ends at offset 4 at the source, and was copied up to 14" in mirror.problems["t"]
    assert len(rows(lake, ("t", 0))) == 7


def test_a_damaged_partition_stops_its_topic_until_the_next_look() -> None:
    source, (lake, _, clock) = a_source(), memory_lake()
    source.problems["t", 1] = "CRC"
    mirror = KafkaMirror(source, lake)
    mirror.round()
    assert mirror.problems == {"t": "CRC"}
    source.problems.clear()
    clock.pass_s(TOPICS_EVERY_S)
    for _ in range(8):
        mirror.round()
    require_equal(source, lake)


def test_new_topics_and_partitions_come_within_an_interval_and_configurations_follow() -> None:
    source, (lake, _, clock) = a_source(), memory_lake()
    mirror = KafkaMirror(source, lake, wanted=re.compile("t|n.*"))
    for _ in range(6):
        mirror.round()
    source.create("t", 5, cleanup_policy="compact")
    source.put(("t", 4), 3)
    source.create("new")
    source.put(("new", 0), 8)
    mirror.round()
    assert lake.topics() == ["t"]
    clock.pass_s(TOPICS_EVERY_S)
    for _ in range(6):
        mirror.round()
    assert lake.topics() == ["new", "t"]
    assert rows(lake, ("t", 4)) == {3: b"v3"}
    assert rows(lake, ("new", 0)) == {8: b"v8"}
    assert lake.topic_config("t").overrides == {"cleanup.policy": "compact"}


def test_what_the_source_trims_leaves_the_copy() -> None:
    source, (lake, _, clock) = a_source(), memory_lake()
    mirror = KafkaMirror(source, lake)
    for _ in range(6):
        mirror.round()
    source.trim(("t", 1), 108)
    clock.pass_s(TOPICS_EVERY_S)
    mirror.round()
    require_equal(source, lake)


def test_groups_that_may_not_be_read_hold_no_record_up() -> None:
    source, (lake, _, _) = a_source(), memory_lake()

    def refused() -> SourceGroups:
        raise KafkaSourceError("Group authorization failed.")

    source.groups = refused  # type: ignore[method-assign]
    mirror = once(source, lake)
    assert mirror.problems == {"group *": "Group authorization failed."}
    require_equal(source, lake)


def test_a_group_that_may_not_be_read_is_named_and_holds_up_no_other_one() -> None:
    source, (lake, _, clock) = a_source(), memory_lake()
    source.refused["h"] = "Not for you."
    mirror = KafkaMirror(source, lake)
    for _ in range(6):
        mirror.round()
    assert mirror.problems == {"group h": "Not for you."}
    assert mirror.groups_committed > 0
    source.refused.clear()
    clock.pass_s(GROUPS_EVERY_S)
    mirror.round()
    assert mirror.problems == {}


def test_a_limit_is_kept() -> None:
    source, (lake, _, clock) = a_source(), memory_lake()
    began_s = clock.elapsed_s()
    mirror = KafkaMirror(source, lake, bytes_per_s=10)
    mirror.run_once(never)
    assert clock.elapsed_s() - began_s > mirror.bytes / 10 - 2
    assert mirror.bytes == 10 * 15


def test_a_follower_of_a_lake_takes_nothing() -> None:
    source, (lake, storage, clock) = a_source(), memory_lake()
    lake.ensure_lake()
    lake.follow(Follows("memory://elsewhere"))
    mirror = KafkaMirror(source, open_lake(storage, clock))
    mirror.run_once(never)
    assert mirror.problems.keys() == {"t", "u"}
    assert "follows memory://elsewhere" in mirror.problems["t"]
