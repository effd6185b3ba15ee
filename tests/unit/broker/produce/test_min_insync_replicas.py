"""`min.insync.replicas`: records with acks=all are taken while enough brokers run, all others always."""

import pytest
from kio.schema.errors import ErrorCode
from support.group_commits import entries, lake_with
from support.produce_requests import batch, read_back, with_broker

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.cluster.cluster import Cluster
from tidelog.broker.produce.leader_hints import too_few_in_sync


def view(running):
    return ClusterView("c", 1, [BrokerNode(at, {}) for at in range(running)])


@pytest.mark.parametrize(
    ("running", "least", "factor", "taken"),
    [
        (1, 1, 1, True),
        (1, 1, 3, True),
        (1, 2, 3, False),
        (2, 2, 3, True),
        (2, 3, 3, False),
        (3, 3, 3, True),
        (1, 2, 1, True),  # more than the factor can't be in sync
        (1, 3, 2, False),
        (2, 3, 2, True),
    ],
)
def test_records_are_taken_while_as_many_brokers_run_as_the_minimum_asks_for(running, least, factor, taken):
    error = too_few_in_sync(view(running), "t", least, factor)
    assert (error is None) is taken
    if error is not None:
        assert (error.kafka_code, error.retriable) == (19, True)
        assert f"{running} of its {factor} replicas" in str(error)
        assert f"min.insync.replicas={least}" in str(error)


@pytest.mark.parametrize(("acks", "code"), [(-1, ErrorCode.not_enough_replicas), (1, ErrorCode.none)])
@pytest.mark.parametrize("level", ["topic", "lake"])
def test_too_few_brokers_refuse_acks_all_and_nothing_else(acks, code, level):
    lake, _, _ = lake_with(1)
    if level == "topic":
        lake.alter_topic("t", config={"min.insync.replicas": "2"})
    else:
        lake.alter_config({"min.insync.replicas": "2"})

    async def act(asked):
        return await asked.one(batch(b"a"), acks=acks)

    before = entries(lake)
    found = with_broker(lake, act, default_replication_factor=3)
    assert found.error_code == code
    assert entries(lake) - before == (acks == 1)
    assert read_back(lake) == {0: [b"a"] if acks == 1 else []}


def test_records_of_both_kinds_wait_together_and_each_gets_its_own_answer():
    lake, _, _ = lake_with(1, min_insync_replicas="2")

    async def act(asked):
        first = asked.one(batch(b"all"), acks=-1)
        second = asked.one(batch(b"one"), acks=1)
        return await first, await second

    refused, taken = with_broker(lake, act, default_replication_factor=2)
    assert refused.error_code == ErrorCode.not_enough_replicas
    assert "min.insync.replicas=2" in refused.error_message
    assert taken.error_code == ErrorCode.none
    assert read_back(lake) == {0: [b"one"]}


def test_they_are_taken_again_when_enough_brokers_run(monkeypatch):
    lake, _, _ = lake_with(1, min_insync_replicas="2")

    async def act(asked):
        before = await asked.one(batch(b"a"))
        monkeypatch.setattr(Cluster, "view", view(2))
        return before, await asked.one(batch(b"b"))

    refused, taken = with_broker(lake, act, default_replication_factor=3)
    assert (refused.error_code, taken.error_code) == (ErrorCode.not_enough_replicas, ErrorCode.none)
    assert read_back(lake) == {0: [b"b"]}
