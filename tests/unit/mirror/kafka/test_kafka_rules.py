"""The rules of a mirror from Kafka, as tables."""

import pytest

from tidelog.groups.model import CommittedOffset, Group, GroupView, Member
from tidelog.mirror.kafka.rules import Origin, config_changes, plan_offsets, run_of, translated, why_refused
from tidelog.mirror.kafka.source import SourceOffset, SourceTopic, Taken


def test_configurations_that_tidelog_knows_are_taken_and_the_others_named() -> None:
    found = translated(
        {
            "retention.ms": "1000",
            "cleanup.policy": "compact,delete",
            "preallocate": "true",
            "message.format.version": "3.0",
            "max.message.bytes": "-5",
            "value.columns": "avro",
            "of.a.later.kafka": "1",
        }
    )
    assert found.values == {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    assert found.left_out.keys() == {
        "preallocate", "message.format.version", "max.message.bytes", "value.columns", "of.a.later.kafka"
    }  # fmt: skip
    assert "Parquet files" in found.left_out["preallocate"]
    assert "-5" in found.left_out["max.message.bytes"]


def test_a_key_that_was_reset_at_kafka_is_reset_here_and_tidelogs_own_stay() -> None:
    topic = SourceTopic("t", "id", 1, keys={"retention.ms", "segment.ms"})
    there = {"retention.ms": "5", "segment.ms": "7", "merge.compression.level": "3"}
    assert config_changes(topic, {"retention.ms": "6"}, there) == {"retention.ms": "6", "segment.ms": None}
    assert config_changes(topic, {"retention.ms": "5", "segment.ms": "7"}, there) == {}


TOPIC = SourceTopic("t", "kafka-1", 3)
SAME = Origin("c1", "kafka-1", "here-1")


@pytest.mark.parametrize(
    ("there", "noted", "says"),
    [
        (None, None, ""),
        (("here-1", 3), None, ""),
        (("here-1", 2), SAME, ""),
        (("here-1", 4), SAME, "has 4 partitions here and 3 at the source"),
        (("here-1", 3), Origin("c2", "kafka-1", "here-1"), "a copy of one at the cluster c2, and this is c1"),
        (("here-1", 3), Origin("c1", "kafka-0", "here-1"), "was deleted and created again at the source"),
        (("here-2", 3), Origin("c2", "kafka-0", "here-1"), ""),  # of a topic that was deleted here since
    ],
)
def test_which_topics_are_refused(there: tuple[str, int] | None, noted: Origin | None, says: str) -> None:
    why = why_refused("t", TOPIC, "c1", there, noted)
    assert says in why
    assert bool(says) == bool(why)


def taken(*offsets: int, reached: int | None = None) -> Taken:
    count = len(offsets)
    return Taken(
        list(offsets), [None] * count, [b"v"] * count, [None] * count, [-1] * count, [0] * count, reached=reached
    )


@pytest.mark.parametrize(
    ("came", "base", "wanted"),
    [
        (taken(), 5, None),
        (taken(reached=5), 5, None),
        (taken(reached=6), 5, (5, 6, [])),  # only a transaction's marker
        (taken(5, 6), 5, (5, 7, [5, 6])),
        (taken(7, 9, reached=12), 5, (5, 12, [7, 9])),
        (taken(3, 4, 5), 5, (5, 6, [5])),  # copied before
        (taken(3, 4), 5, None),
        (taken(5, 8, reached=6), 5, (5, 9, [5, 8])),  # records that came after the end was seen
    ],
)
def test_runs(came: Taken, base: int, wanted: tuple[int, int, list[int]] | None) -> None:
    run = run_of(0, base, came)
    assert (run and (run.base, run.end, run.offsets.tolist())) == wanted
    assert run is None or run.records.num_rows == len(run.offsets)


MEMBER = Member("m", "c", "h", 1, 1, ())
PLACES = {("t", 0): SourceOffset(7, "why", 3), ("t", 1): SourceOffset(9), ("other", 0): SourceOffset(1)}
ENDS = {("t", 0): 7, ("t", 1): 8}


def test_an_offset_counts_once_its_records_are_here() -> None:
    plan = plan_offsets(PLACES, GroupView(), ENDS)
    assert plan.commit == {("t", 0): CommittedOffset(7, "why", 3)}
    assert plan.wait == {("t", 1): SourceOffset(9)}


@pytest.mark.parametrize(("own", "wanted"), [(6, [7]), (7, []), (8, [])])
def test_a_group_that_was_here_is_not_put_back(own: int, wanted: list[int]) -> None:
    view = GroupView(offsets={("t", 0): CommittedOffset(own)})
    plan = plan_offsets(PLACES, view, ENDS)
    assert [one.offset for place, one in plan.commit.items() if place == ("t", 0)] == wanted


def test_a_group_with_members_here_has_moved() -> None:
    view = GroupView(group=Group("g", members={"m": MEMBER}))
    plan = plan_offsets(PLACES, view, ENDS)
    assert (plan.commit, plan.wait) == ({}, {})


def test_what_follows_a_problem_is_not_taken() -> None:
    first = taken(1)
    first.problem = "damaged"
    first.extend(taken(3))
    assert first.offsets == [1]
    second = taken(1, reached=2)
    second.extend(taken(4, reached=9))
    assert (second.offsets, second.reached) == ([1, 4], 9)
