"""The table `__cluster` in a lake: written, read, checked, and in the way of no topic."""

from base64 import urlsafe_b64decode
from dataclasses import replace
from uuid import UUID

import pytest
from support.logs import memory_lake, open_lake

from tidelog.check.lake import check_lake
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import (
    BrokerState,
    LeadersChange,
    Listener,
    RegisteredBroker,
    StaleRegistrationError,
    TopicLeaders,
)
from tidelog.cluster.rows import KIND, LATER
from tidelog.cluster.rules import decide_register
from tidelog.log.base.errors import InvalidTopicError
from tidelog.log.delta.layout import CLUSTER_TABLE
from tidelog.log.lake import Lake
from tidelog.log.rows.schema import RowSchema
from tidelog.log.state.topic_state import TOPIC_ID


def broker(registration: str, port: int = 1) -> RegisteredBroker:
    return RegisteredBroker(-1, registration, (Listener("PLAINTEXT", "h", port),), "eu", 5)


@pytest.fixture
def lake() -> Lake:
    made, _, _ = memory_lake()
    return made


def test_there_are_no_brokers_before_the_first(lake):
    log = ClusterLog(lake)
    assert (log.look().brokers, log.cluster_id(), log.tables()) == ({}, None, [])
    assert lake.storage.list_folders("") == []


def test_other_processes_see_what_is_decided(lake):
    one, other = ClusterLog(lake), ClusterLog(open_lake(lake.storage, lake.clock))
    assert one.register(broker("a"), any_id=True).id == 1
    assert other.register(broker("b", 2), any_id=True).id == 2
    one.drain("b")
    assert other.gone("a")
    assert {n: x.state for n, x in one.look().brokers.items()} == {1: BrokerState.GONE, 2: BrokerState.DRAINING}
    with pytest.raises(StaleRegistrationError):
        one.drain("a")
    other.unregister(1)
    assert list(one.look().brokers) == [2]


def test_the_clusters_id_is_the_tables_in_kafkas_form(lake):
    log = ClusterLog(lake)
    log.register(broker("a"), any_id=True)
    cluster_id = log.cluster_id()
    assert cluster_id is not None
    assert len(cluster_id) == 22
    [table] = log.tables()
    assert UUID(bytes=urlsafe_b64decode(cluster_id + "==")) == UUID(table.fact(TOPIC_ID))
    assert ClusterLog(open_lake(lake.storage, lake.clock)).cluster_id() == cluster_id


def test_a_log_with_a_checkpoint_says_the_same(lake):
    log = ClusterLog(lake)
    for n in range(150):
        log.register(broker(f"r{n}"), any_id=True)
        log.gone(f"r{n}")
    lake.close()
    assert any("checkpoint" in o.path for o in lake.storage.list_after("__cluster/_delta_log"))
    assert ClusterLog(open_lake(lake.storage, lake.clock)).look() == log.look()
    assert log.look().epoch == 300


@pytest.mark.parametrize("deep", [False, True])
def test_check_knows_the_table(lake, deep):
    log = ClusterLog(lake)
    log.register(broker("a"), any_id=True)
    report = check_lake(lake, deep=deep)
    assert report.green
    assert [topic.topic for topic in report.topics] == ["__cluster"]


def test_check_finds_a_row_that_is_no_broker(lake):
    log = ClusterLog(lake)
    log.register(broker("a"), any_id=True)
    path = next(o.path for o in lake.storage.list_after("__cluster/_delta_log") if o.path.endswith("1.json"))
    lake.storage.put(path, lake.storage.get(path).replace(b'"running"', b'"walking"'))
    assert any("walking" in finding.what for finding in check_lake(lake).findings)


@pytest.mark.parametrize("deep", [False, True])
def test_a_table_that_was_made_before_topics_had_numbers_of_leaders_goes_on(lake, deep):
    columns = {field.name: field.type for field in KIND.schema.file if field.name not in {"position", *LATER}}
    before = lake.row_log(CLUSTER_TABLE, replace(KIND, schema=RowSchema(columns)))
    before.commit(lambda fold: decide_register(fold.state, broker("a"), any_id=True))
    log = ClusterLog(open_lake(lake.storage, lake.clock))
    assert log.look().leaders == {}
    assert log.lead("a", [LeadersChange(None, TopicLeaders("t", "name", 2, 5))])
    for n in range(150):
        log.register(broker(f"r{n}"), any_id=True)
        log.gone(f"r{n}")
    lake.close()
    assert ClusterLog(open_lake(lake.storage, lake.clock)).look().leaders["t"] == TopicLeaders("t", "name", 2, 5)
    assert check_lake(lake, deep=deep).green


def test_no_topic_takes_the_tables_name(lake):
    with pytest.raises(InvalidTopicError, match="tidelog keeps a table of its own under that name"):
        lake.create_topic("__cluster")
