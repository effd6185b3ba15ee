"""What the console knows of topics and groups over time: computed again where something is new, and only there."""

import pytest

from tidelog.console.base.console import Console
from tidelog.console.sampler import Sampler
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as found:
        for name in ("orders", "quiet"):
            found.create_topic(name, 1)
            found.topic(name).append([{"value": "1"}] * 10)
        groups = GroupLog(found)
        groups.commit_offsets("billing", {("orders", 0): CommittedOffset(4)})
        groups.commit_offsets("idle", {("quiet", 0): CommittedOffset(7)})
        yield found


@pytest.fixture
def sampler(lake):
    with Console(lake, age_s=0) as console:
        yield console.part(Sampler)


def test_lag_follows_what_is_appended_and_what_is_committed(lake, sampler):
    assert (sampler.sample().groups["billing"].by_topic, sampler.sample().groups["idle"].by_topic) == (
        {"orders": 6},
        {"quiet": 3},
    )
    lake.topic("orders").append([{"value": "2"}] * 5)
    assert sampler.sample().groups["billing"].by_topic == {"orders": 11}
    GroupLog(lake).commit_offsets("billing", {("orders", 0): CommittedOffset(14)})
    found = sampler.sample().groups["billing"]
    assert (found.by_topic, found.records) == ({"orders": 1}, 1)
    assert found.seconds(found.oldest_ms + 2_500) == 2.5
    GroupLog(lake).commit_offsets("billing", {("orders", 0): CommittedOffset(15)})
    found = sampler.sample().groups["billing"]
    assert (found.by_topic, found.oldest_ms, found.seconds(0)) == ({"orders": 0}, None, 0.0)
    assert sampler.history()[1]["records"][-1] == 25


def test_what_is_as_it_was_is_not_computed_again(lake, sampler):
    before = sampler.sample()
    lake.topic("orders").append([{"value": "2"}])
    after = sampler.sample()
    assert after.groups["idle"] is before.groups["idle"]
    assert after.topics["quiet"] is before.topics["quiet"]
    assert after.groups["billing"] is not before.groups["billing"]


def test_a_topic_that_is_deleted_takes_its_lag_with_it(lake, sampler):
    assert sampler.sample().groups["idle"].records == 3
    lake.delete_topic("quiet")
    assert sampler.sample().groups["idle"].by_topic == {}
    lake.create_topic("quiet", 1)
    lake.topic("quiet").append([{"value": "1"}] * 2)
    assert sampler.sample().groups["idle"].by_topic == {}  # its offset is of the topic that is gone
