"""`import tidelog`: everything is there under confluent-kafka's names, and nothing is loaded before it is used."""

import json
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import tidelog


@pytest.mark.parametrize("name", tidelog.__all__)
def test_every_name_is_there(name):
    found = getattr(tidelog, name)
    assert found is getattr(tidelog, name)
    assert getattr(found, "__name__", name).rpartition(".")[2] == name


@pytest.mark.parametrize("name", tidelog.clients.__all__)
def test_the_clients_are_there_too(name):
    assert getattr(tidelog.clients, name) is getattr(tidelog, name)


def test_the_version_is_that_of_the_distribution():
    assert tidelog.__version__ == version("tidelog")


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'Producr'"):
        _ = tidelog.clients.Producr
    assert dir(tidelog.clients) == sorted(tidelog.clients.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Producr'"):
        _ = tidelog.Producr
    assert dir(tidelog) == sorted(tidelog.__all__)


@pytest.mark.parametrize(
    "statement",
    [
        "import tidelog, tidelog.clients",
        "from tidelog import KafkaError, TopicPartition, OFFSET_END, KafkaException",
        "from tidelog.serialization import StringSerializer",
        "from tidelog.error import ConsumeError",
    ],
)
def test_the_door_loads_nothing_heavy(statement):
    heavy = ["pyarrow", "numpy", "pyspark", "deltalake", "obstore"]
    code = f"import sys\n{statement}\nprint([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


# --- confluent-kafka's names -------------------------------------------------------------------------------

# `vectors/confluent_names.json`: class or module -> its public names, from confluent-kafka 2.16.
NAMES = json.loads((Path(__file__).parent / "vectors" / "confluent_names.json").read_text())
NOT_HERE = {
    "confluent_kafka": {
        # share groups
        *("AcknowledgeType", "DeserializingShareConsumer", "Messages", "ShareConsumer"),
        *("ConcurrentModificationException", "IllegalStateException"),
        # librdkafka's own, and parts of the package that are none of its interface
        *("aio", "consistent", "fnv1a", "kafkatest", "libversion", "murmur2", "version"),
    },
    "confluent_kafka.serialization": {"DeserializerBuilder", "SerializerBuilder"},
    "Message": {"delivery_count", "deserialized_key", "deserialized_value"},
    "Producer": {"produce_batch"},
    "SerializingProducer": {"produce_batch"},
}


@pytest.mark.parametrize("where", NAMES)
def test_what_confluent_kafka_calls_by_a_name_is_called_so_here(where):
    module = where.replace("confluent_kafka", "tidelog")
    found = import_module(module) if module != where else getattr(tidelog, where)
    if where == "TopicPartition":
        found = found("t")  # its attributes are an object's
    assert {name for name in NAMES[where] if not hasattr(found, name)} <= NOT_HERE.get(where, set())
