"""Where there is no compiler, all is built and works, and says why; test_distributions.py builds the native part."""

import os
import subprocess
import sys

import confluent_kafka
from support.broker_processes import broker_command
from support.distributions import BUILT, distributions, said_by_the_reader


def test_without_a_compiler_there_is_a_reader_in_python_and_brokers_take_and_give_records(tmp_path, monkeypatch):
    """The wheel is built of the sdist, as pip builds it."""
    monkeypatch.delenv(BUILT, raising=False)  # whatever `make dist` has built
    monkeypatch.setenv("CC", "/bin/false")
    site = tmp_path / "site"
    read, reader = said_by_the_reader(distributions(tmp_path)["wheel"], site)
    assert read == "[300] b'v' AiokafkaRecords"
    assert reader.startswith("Python: native code was not built")
    env = {"PYTHONPATH": str(site)}
    version = subprocess.check_output([sys.executable, "-m", "tidelog", "--version"], env=os.environ | env, text=True)
    assert version.splitlines()[1] == f"Record batches are read in {reader}"
    values = [b"%d" % n * 50 for n in range(200)]
    with broker_command(tmp_path / "lake", "--listener", "127.0.0.1:0", env=env, start=subprocess.Popen) as command:
        address = {"bootstrap.servers": command.ready()["listener"]}
        producer = confluent_kafka.Producer({**address, "compression.type": "lz4"})
        for value in values:
            producer.produce("t", value, partition=0)
        assert producer.flush(60) == 0
        consumer = confluent_kafka.Consumer({**address, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        got = []
        while len(got) < len(values):
            got += [message.value() for message in consumer.consume(len(values), 10)]
        consumer.close()
    assert got == values
    assert any(f"Record batches are read in {reader}" in line for line in command.log)
