"""Where `tidelog group reset-offsets` sets offsets to: the plan."""

import pytest
from support.logs import Calls, memory_lake, values

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut
from tidelog.operations.offset_resets import Reset, Scenario, Standing, plan_reset, reset_to_cut

PLACE = ("t", 0)
# offsets:  0 ... [10 ........ 20)   committed: 15, or what the row says
AT_15 = Standing(10, 20, 15)
NEVER = Standing(10, 20)
BEFORE = Standing(10, 20, 3)
EMPTY = Standing(10, 10, 10)


@pytest.mark.parametrize(
    ("scenario", "standing", "offset", "noted"),
    [
        (Scenario("earliest"), AT_15, 10, ""),
        (Scenario("latest"), AT_15, 20, ""),
        (Scenario("current"), AT_15, 15, ""),
        (Scenario("current"), NEVER, 20, "no committed offset"),
        (Scenario("current"), BEFORE, 10, "begins at offset 10"),
        (Scenario("offset", 12), AT_15, 12, ""),
        (Scenario("offset", 9), AT_15, 10, "begins at offset 10: 9 is before it"),
        (Scenario("offset", 20), AT_15, 20, ""),
        (Scenario("offset", 21), AT_15, 20, "ends at offset 20: 21 is behind it"),
        (Scenario("offset", 0), EMPTY, 10, "begins"),
        (Scenario("shift", 4), AT_15, 19, ""),
        (Scenario("shift", -4), AT_15, 11, ""),
        (Scenario("shift", -6), AT_15, 10, "begins"),
        (Scenario("shift", 6), AT_15, 20, "ends"),
        (Scenario("time", 1), Standing(10, 20, 15, 13), 13, ""),
        (Scenario("time", 1), AT_15, 20, "no record at or after that time"),
        (Scenario("file", offsets={PLACE: 17}), AT_15, 17, ""),
        (Scenario("file", offsets={PLACE: 5}), AT_15, 10, "begins"),
    ],
)
def test_where_an_offset_goes(scenario, standing, offset, noted):
    reset = plan_reset(scenario, {PLACE: standing})[PLACE]
    assert reset.offset == offset
    assert noted in reset.note
    assert bool(noted) == bool(reset.note)


def test_nothing_is_shifted_from_nowhere():
    with pytest.raises(ValueError, match="Partition 0 of t has no committed offset"):
        plan_reset(Scenario("shift", 1), {PLACE: NEVER})


def test_a_plan_goes_by_topic_and_partition():
    plan = plan_reset(Scenario("earliest"), {("u", 0): NEVER, ("t", 10): NEVER, ("t", 2): NEVER})
    assert list(plan) == [("t", 2), ("t", 10), ("u", 0)]
    assert plan["u", 0] == Reset(10)


@pytest.mark.parametrize(
    ("scope", "looked_at"),
    [(None, {"t", "since"}), ({"t": None}, {"t"}), ({"other": frozenset({0})}, {"other"})],
)
def test_a_reset_to_a_cut_looks_at_no_other_topics(scope, looked_at):
    lake, storage, _ = memory_lake()
    for topic in ("t", "other", "since", "more"):
        lake.create_topic(topic, 1)
        lake.topic(topic).append(values("a"))
    log = GroupLog(lake)
    log.commit_offsets("g", {("t", 0): CommittedOffset(1)})
    cut = create_cut(lake, "friday")
    log.commit_offsets("g", {("since", 0): CommittedOffset(1)})
    storage.hook = calls = Calls()
    scenario = reset_to_cut(lake, log, cut, "g", scope)
    assert {path.partition("/")[0] for _, path in calls.seen} - {"__consumer_offsets"} == looked_at
    assert set(scenario.ends) == {(topic, 0) for topic in looked_at}
    assert scenario.offsets == ({("t", 0): 1} if "t" in looked_at else {})
