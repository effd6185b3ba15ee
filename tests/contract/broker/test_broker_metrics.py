"""Metrics of a broker's process, as Prometheus reads them."""

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from support.broker_processes import api_versions, broker_command, connect, metrics
from support.cluster_processes import ask

from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as opened:
        opened.create_topic("orders", 2)
        records = {"value": [str(n) for n in range(5)], "partition": pa.array([1] * 5, pa.int32())}
        opened.topic("orders").append(pa.table(records))
        LoggedPositions(GroupLog(opened)).publish("billing", {"orders": {0: 0, 1: 2}})
        yield opened


def test_requests_connections_topics_groups_and_lag(lake):
    with broker_command(lake.uri, "--listener", "127.0.0.1:0", "--id", "3", "--metrics", "127.0.0.1:0") as command:
        ready = command.ready()
        with connect(ready["listener"]) as client:
            api_versions(client)
            producer = Producer({"bootstrap.servers": ready["listener"]})
            for number in range(7):
                producer.produce("orders", str(number), partition=0)
            assert producer.flush(60) == 0
            port = int(ready["listener"].rpartition(":")[2])
            ask(port, ApiKey.DELETE_TOPICS, 1, {"topic_names": ["no", "none"]})
            wrong = {"name": "orders", "partition_data": [{"index": -1, "records": b""}]}
            ask(port, ApiKey.PRODUCE, 9, {"acks": 1, "topic_data": [wrong]})
            found = metrics(ready["metrics"])
    assert found["kafka_network_requestmetrics_requests_total", ("ApiVersions", "0")] == 1
    assert found["kafka_network_requestmetrics_errors_total", ("NONE", "ApiVersions")] >= 2
    assert found["kafka_network_requestmetrics_errors_total", ("UNKNOWN_TOPIC_OR_PARTITION", "Produce")] == 1
    assert found["kafka_network_requestmetrics_errors_total", ("NONE", "Produce")] >= 1
    assert found["kafka_network_requestmetrics_errors_total", ("UNKNOWN_TOPIC_OR_PARTITION", "DeleteTopics")] == 2
    assert found["kafka_network_requestmetrics_errors_total", ("NONE", "Metadata")] >= 2
    assert found["kafka_server_brokertopicmetrics_messagesin_total", ("orders",)] == 7
    assert found["kafka_server_brokertopicmetrics_bytesin_total", ("orders",)] > 7
    assert found["kafka_server_brokertopicmetrics_totalproducerequests_total", ("orders",)] >= 1
    assert found["kafka_server_brokertopicmetrics_failedproducerequests_total", ("orders",)] == 0
    assert found["kafka_network_requestmetrics_requestbytes_total", ("ApiVersions",)] > 10
    assert found["kafka_network_requestmetrics_totaltimems_count", ("ApiVersions",)] >= 2
    assert 0 < found["kafka_network_requestmetrics_totaltimems", ("0.99", "ApiVersions")] < 60_000
    assert found["kafka_server_socket_server_metrics_connection_count", ()] >= 2
    assert found["kafka_network_requestchannel_requestqueuesize", ()] == 0
    assert found["tidelog_broker_connections_opened_total", ()] >= 2
    assert found["kafka_server_kafkaserver_brokerstate", ()] == 3
    assert found["tidelog_broker_handed_over_parts_total", ("committed",)] == 0
    assert found["kafka_brokers", ()] == 1
    assert found["kafka_broker_info", (ready["listener"], "3")] == 1
    assert found["kafka_topic_partitions", ("orders",)] == 2
    assert found["kafka_topic_partition_current_offset", ("1", "orders")] == 5
    assert found["kafka_topic_partition_oldest_offset", ("1", "orders")] == 0
    assert found["tidelog_topic_partition_files", ("1", "orders")] == 1
    assert found["tidelog_topic_entries_total", ("orders",)] >= 2
    assert found["kafka_consumergroup_current_offset", ("billing", "1", "orders")] == 2
    assert found["kafka_consumergroup_lag", ("billing", "1", "orders")] == 3
    assert found["kafka_consumergroup_lag_sum", ("billing", "orders")] == 10
    assert found["kafka_coordinator_group_groupmetadatamanager_numgroups", ()] == 1
    assert found["process_resident_memory_bytes", ()] > 0


def test_a_port_for_metrics_that_is_taken(tmp_path, lake):
    with (
        broker_command(lake.uri, "--listener", "127.0.0.1:0", "--metrics", "127.0.0.1:0") as first,
        broker_command(lake.uri, "--listener", "127.0.0.1:0", "--metrics", first.ready()["metrics"]) as second,
    ):
        assert second.ended() == 1
        assert "another process has port" in "\n".join(second.log)
