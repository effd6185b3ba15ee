"""`import tidelog`: everything is there, and nothing is loaded before it is used."""

import subprocess
import sys
from importlib.metadata import version

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
        "import tidelog; tidelog.version(), tidelog.libversion()",
    ],
)
def test_the_door_loads_nothing_heavy(statement):
    heavy = ["pyarrow", "numpy", "pyspark", "deltalake", "obstore"]
    code = f"import sys\n{statement}\nprint([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
