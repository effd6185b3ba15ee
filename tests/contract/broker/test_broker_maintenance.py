"""Maintenance where brokers run: what Kafka's clients configure takes effect without anyone doing more."""

import subprocess

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from support.broker_processes import broker_command, children
from support.cli_calls import done
from support.waiting import eventually

from tidelog.log.lake import Lake

FREE = ("--listener", "127.0.0.1:0")
OFTEN = {"TIDELOG_BROKER_LOG_RETENTION_CHECK_INTERVAL_MS": "100"}
WAIT_S = 30


def produced(address, count):
    """Have `orders` with that many records, each acknowledged."""
    admin = AdminClient({"bootstrap.servers": address})
    (made,) = admin.create_topics([NewTopic("orders", 1, 1)]).values()
    made.result(WAIT_S)
    producer = Producer({"bootstrap.servers": address})
    for number in range(count):
        producer.produce("orders", str(number))
    assert producer.flush(WAIT_S) == 0


def watermarks(address):
    """Where `orders` starts and ends."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none"})
    try:
        return consumer.get_watermark_offsets(TopicPartition("orders", 0), WAIT_S)
    finally:
        consumer.close()


def test_retention_that_a_client_sets_takes_effect(tmp_path):
    with broker_command(tmp_path, *FREE, env=OFTEN, as_usual=True, start=subprocess.Popen) as command:
        ready = command.ready()
        assert ready["maintains"] is True
        address = ready["listener"]
        produced(address, 5)
        assert watermarks(address) == (0, 5)
        topic = ConfigResource(
            ResourceType.TOPIC,
            "orders",
            incremental_configs=[ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)],
        )
        admin = AdminClient({"bootstrap.servers": address})
        (altered,) = admin.incremental_alter_configs([topic]).values()
        altered.result(WAIT_S)
        eventually(lambda: watermarks(address) == (5, 5), "the records expire")
        said = "broker=maintenance Maintained: topic=orders part=retention"
        eventually(lambda: any(said in line for line in command.log), "the broker's log says so")
        assert command.stop() == 0


def test_without_maintenance_nothing_runs_beside_the_broker(tmp_path):
    with broker_command(tmp_path, *FREE, "--no-maintain", env=OFTEN, as_usual=True) as command:
        assert command.ready()["maintains"] is False
        assert children(command.process.pid) == []


def test_of_several_processes_each_says_who_maintains_and_one_more_does(tmp_path):
    with broker_command(tmp_path, *FREE, "--processes", "2", as_usual=True) as command:
        assert [command.ready()["maintains"] for _ in range(2)] == [True, True]
        forked = [pid for process in children(command.process.pid) for pid in children(process)]
        assert len(forked) == 3


def test_a_scheduled_job_and_a_broker_may_both_maintain(tmp_path):
    with broker_command(tmp_path, *FREE, env=OFTEN, as_usual=True) as command:
        address = command.ready()["listener"]
        produced(address, 200)
        for _ in range(3):
            assert "failed" not in done("--lake", str(tmp_path), "maintain").stdout
        assert watermarks(address) == (0, 200)
        assert command.stop() == 0
    assert not [line for line in command.log if "failed=true" in line]
    with Lake(tmp_path, create=False) as lake:
        values = [value for batch in lake.topic("orders").read(0) for value in batch.column("value").to_pylist()]
    assert values == [str(number).encode() for number in range(200)]
