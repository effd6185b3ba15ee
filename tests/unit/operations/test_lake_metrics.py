"""What Prometheus reads of a lake, compared with what was produced, committed and left open."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.admin_groups import stable_group
from support.logs import FakeClock

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import LeadersChange, RegisteredBroker, TopicLeaders
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import LakeNotFoundError
from tidelog.log.lake import Lake
from tidelog.log.storage import MemoryStorage
from tidelog.operations.snapshots import SHARED_AGE_S, UPKEEP_AGE_S, SnapshotReader
from tidelog.retention.maintenance import maintain
from tidelog.server.process.lake_metrics import LakeMetrics
from tidelog.server.process.metrics_text import rendered
from tidelog.transactions.part_rules import ProducerIdentity
from tidelog.transactions.transaction_log import TransactionLog


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def lake(clock):
    with Lake("memory://metrics", storage=MemoryStorage("memory://metrics", clock), clock=clock) as opened:
        opened.create_topic("orders", 2)
        yield opened


def append(lake, count, partition=0, topic="orders"):
    lake.topic(topic).append([{"value": str(n), "partition": partition} for n in range(count)])


def scraped(lake, reader=None, **options):
    """{(name, {label: value} as sorted pairs): value} of one answer."""
    text = rendered(LakeMetrics(lake, reader, **options).read()).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(found, name, **labels):
    return found[name, tuple(sorted(labels.items()))]


def test_topics_that_several_brokers_lead(lake):
    log = ClusterLog(lake)
    log.register(RegisteredBroker(1, "r"), any_id=False)
    log.lead("r", [LeadersChange(None, TopicLeaders(lake.topic("orders").id, "orders", 3, 5))])
    assert of(scraped(lake), "tidelog_topic_leaders", topic="orders") == 3


def test_partitions_by_the_names_of_both_exporters(lake):
    append(lake, 7, partition=1)
    lake.delete_records("orders", {1: 3})
    found = scraped(lake, cluster="prod")
    place = {"topic": "orders", "partition": "1"}
    assert of(found, "kafka_topic_partitions", topic="orders") == 2
    assert of(found, "kafka_topic_partition_current_offset", **place) == 7
    assert of(found, "kafka_topic_partition_oldest_offset", **place) == 3
    assert of(found, "kafka_partition_latest_offset", cluster_name="prod", **place) == 7
    assert of(found, "kafka_partition_earliest_offset", cluster_name="prod", **place) == 3
    assert of(found, "tidelog_topic_records_total", topic="orders") == 7
    assert of(found, "tidelog_topic_files", topic="orders") == 1
    assert of(found, "tidelog_topic_small_files", topic="orders") == 1
    assert of(found, "tidelog_topic_bytes", topic="orders") > 100


def test_the_cluster_is_named_by_the_lakes_address(lake):
    found = scraped(lake)
    assert of(found, "kafka_partition_latest_offset", cluster_name=lake.uri, topic="orders", partition="0") == 0


def test_lag_in_records_and_in_seconds(lake, clock):
    append(lake, 5)
    clock.pass_s(30)
    append(lake, 5)
    clock.pass_s(12)
    LoggedPositions(GroupLog(lake)).publish("billing", {"orders": {0: 5, 1: 0}})
    found = scraped(lake, cluster="c")
    each = {"consumergroup": "billing", "topic": "orders"}
    assert of(found, "kafka_consumergroup_lag", partition="0", **each) == 5
    assert of(found, "kafka_consumergroup_lag_sum", **each) == 5
    assert of(found, "kafka_consumergroup_current_offset_sum", **each) == 5
    group = {"cluster_name": "c", "group": "billing"}
    nobody = {"member_host": "", "consumer_id": "", "client_id": ""}
    assert of(found, "kafka_consumergroup_group_lag_seconds", topic="orders", partition="0", **group, **nobody) == 12
    assert of(found, "kafka_consumergroup_group_lag_seconds", topic="orders", partition="1", **group, **nobody) == 0
    assert of(found, "kafka_consumergroup_group_max_lag", **group) == 5
    assert of(found, "kafka_consumergroup_group_max_lag_seconds", **group) == 12
    assert of(found, "kafka_consumergroup_group_sum_lag", **group) == 5
    assert of(found, "kafka_consumergroup_group_topic_sum_lag", topic="orders", **group) == 5


def test_who_reads_a_partition(lake):
    append(lake, 5)
    LoggedPositions(GroupLog(lake)).publish("billing", {"orders": {0: 1, 1: 0}})
    stable_group(lake, "billing", {"m-1": [("orders", 0)]})
    found = scraped(lake, cluster="c")
    named = [dict(labels) for name, labels in found if name == "kafka_consumergroup_group_lag"]
    lags = {labels["partition"]: labels for labels in named}
    assert lags["0"]["consumer_id"] == "m-1"
    assert lags["0"]["client_id"]
    assert lags["1"]["consumer_id"] == ""
    assert of(found, "kafka_consumergroup_members", consumergroup="billing") == 1
    assert of(found, "kafka_coordinator_group_groupmetadatamanager_numgroupsstable") == 1


def test_a_topic_that_is_gone_hides_no_group(lake):
    lake.create_topic("old", 1)
    LoggedPositions(GroupLog(lake)).publish("billing", {"orders": {0: 0}, "old": {0: 0}})
    lake.delete_topic("old")
    found = scraped(lake)
    assert of(found, "kafka_consumergroup_lag", consumergroup="billing", topic="orders", partition="0") == 0
    assert not any("old" in dict(labels).values() for _, labels in found)


def test_a_topic_that_cannot_be_read_hides_no_other(lake):
    append(lake, 5)
    lake.create_topic("broken", 1)
    lake.storage.put("broken/_delta_log/00000000000000000001.json", b"no entry")
    found = scraped(lake)
    assert of(found, "tidelog_lake_broken_topics") == 1
    assert of(found, "kafka_topic_partition_current_offset", topic="orders", partition="0") == 5


def test_an_open_transaction_and_its_age(lake, clock):
    log = TransactionLog(lake)
    log.init("copier", 60_000)
    assert of(scraped(lake), "tidelog_transactions_open") == 0
    begun = log.begin("copier", 60_000)
    log.add(
        ProducerIdentity("copier", begun.one.producer_id, begun.one.kafka_epoch),
        [("orders", (lake.topic("orders").id, 0))],
    )
    clock.pass_s(40)
    found = scraped(lake)
    assert of(found, "tidelog_transactions_open") == 1
    assert of(found, "tidelog_transactions_oldest_seconds") == 40


def test_an_object_store_is_looked_at_as_often_as_it_was_said(lake, clock):
    other = Lake(lake.uri, storage=lake.storage, clock=clock)
    with other, SnapshotReader(lake, SHARED_AGE_S) as reader:
        scraped(lake, reader)
        append(other, 5)
        clock.pass_s(SHARED_AGE_S - 1)
        found = scraped(lake, reader)
        assert of(found, "kafka_topic_partition_current_offset", topic="orders", partition="0") == 0
        assert of(found, "tidelog_lake_looks_total") == 1
        clock.pass_s(1)
        found = scraped(lake, reader)
        assert of(found, "kafka_topic_partition_current_offset", topic="orders", partition="0") == 5
        assert of(found, "tidelog_lake_looks_total") == 2


def test_the_age_of_a_checkpoint(lake, clock):
    with SnapshotReader(lake, 0) as reader:
        assert not any(name == "tidelog_topic_checkpoint_age_seconds" for name, _ in scraped(lake, reader))
        append(lake, 1)
        lake.log("orders").upkeep.checkpoint(1)
        clock.pass_s(UPKEEP_AGE_S)
        found = scraped(lake, reader)
        assert of(found, "tidelog_topic_checkpoint_age_seconds", topic="orders") == UPKEEP_AGE_S


def test_maintenance_and_what_failed_in_it(lake, clock):
    assert not any(name.startswith("tidelog_maintenance") for name, _ in scraped(lake))
    maintain(lake)
    clock.pass_s(90)
    found = scraped(lake)
    assert of(found, "tidelog_maintenance_age_seconds") == 90
    assert of(found, "tidelog_maintenance_failures") == 0
    maintain(lake, topics=["none"])
    found = scraped(lake)
    assert of(found, "tidelog_maintenance_age_seconds") == 90  # that was not all of the lake
    assert of(found, "tidelog_maintenance_failures") == 1


def test_the_disk_of_a_lake_in_a_folder(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        found = scraped(lake)
    assert 0 < of(found, "tidelog_lake_disk_free_bytes") <= of(found, "tidelog_lake_disk_bytes")


def test_a_lake_that_is_not_there():
    with Lake("memory://none", create=None) as lake, SnapshotReader(lake) as reader, pytest.raises(LakeNotFoundError):
        reader.read()
