"""AdminClient, brokers, console, command line, metrics and doctor say the same of a topic and of its configuration."""

from collections import defaultdict
from contextlib import contextmanager

import pytest
from support.broker_requests import Requests
from support.cli_calls import answer
from support.console import running_console
from support.faces import DONE, FACES

from tidelog.admin import (
    AdminClient,
    ConfigResource,
    OffsetSpec,
    TopicCollection,
)
from tidelog.broker.wire.apis import ApiKey
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.lake import Lake
from tidelog.log.storage import open_storage
from tidelog.operations import topics
from tidelog.operations.health import gather
from tidelog.server.process.lake_metrics import LakeMetrics

# The topic: a partition whose first records were deleted, one of several files, one that is empty.
OFFSETS = {0: (4, 10), 1: (0, 20), 2: (0, 0)}
FILES = {0: 1, 1: 2, 2: 0}
OWN = {"retention.bytes": "1000000", "segment.bytes": "50000000"}
OF_LAKE = {"log.retention.ms": "7000"}


@pytest.fixture
def address(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        lake.alter_config(OF_LAKE)
        lake.create_topic("orders", 3, OWN)
        for partition in (0, 1, 1):
            lake.topic("orders").append([{"value": str(n), "partition": partition} for n in range(10)])
        lake.delete_records("orders", {0: 4})
    return str(tmp_path / "lake")


@contextmanager
def page_of(address):
    with running_console(address) as running, running.client() as page:
        yield page


@contextmanager
def broker_of(address):
    with Lake(address, create=False) as lake, Requests(lake) as requests:
        yield requests


def of_topic(address, metric):
    """{partition, or None for the topic: the metric}."""
    with Lake(address, create=False) as lake:
        (samples,) = [family.samples for family in LakeMetrics(lake).read() if family.name == metric]
    found = [(labels, value) for labels, value in samples if labels["topic"] == "orders"]
    assert found, f"there is no sample of {metric}"
    return {int(labels["partition"]) if "partition" in labels else None: value for labels, value in found}


def health(address):
    def opened(store):
        return Lake(address, create=False, storage=store)

    facts = gather(address, lambda: open_storage(address), opened, SystemClock(), SystemIds(), try_store=False)
    return facts.topics["orders"]


# --- offsets, files and bytes by partition -----------------------------------------------------------------


def offsets_at_the_console(address):
    with page_of(address) as page:
        return {p["partition"]: (p["start"], p["end"]) for p in page.ok("GET", "/api/topics/orders")["partitions"]}


def offsets_of_the_command(address):
    described = answer("topic", "describe", "orders", "--lake", address)
    return {p["partition"]: (p["start"], p["end"]) for p in described["partitions"]}


def offsets_in_metrics(address):
    starts = of_topic(address, "kafka_topic_partition_oldest_offset")
    ends = of_topic(address, "kafka_topic_partition_current_offset")
    return {partition: (starts[partition], ends[partition]) for partition in ends}


def offsets_by_lag_exporters_names(address):
    starts, ends = (of_topic(address, f"kafka_partition_{which}_offset") for which in ("earliest", "latest"))
    return {partition: (starts[partition], ends[partition]) for partition in ends}


def offsets_of_an_admin_client(address):
    with AdminClient({"lake": address}) as client:
        numbers = [p.id for p in client.describe_topics(TopicCollection(["orders"]))["orders"].result().partitions]
        found = defaultdict(list)
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
            asked = {TopicPartition("orders", number): spec for number in numbers}
            for place, offset in client.list_offsets(asked).items():
                found[place.partition].append(offset.result().offset)
    return {number: tuple(pair) for number, pair in found.items()}


def offsets_of_a_broker(address):
    with broker_of(address) as requests:
        (told,) = requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "orders"}]}).topics
        found = defaultdict(list)
        for timestamp in (-2, -1):
            asked = [{"partition_index": p.partition_index, "timestamp": timestamp} for p in told.partitions]
            body = {"replica_id": -1, "topics": [{"name": "orders", "partitions": asked}]}
            (listed,) = requests.ask(ApiKey.LIST_OFFSETS, 7, body).topics
            for one in listed.partitions:
                found[int(one.partition_index)].append(int(one.offset))
    return {number: tuple(pair) for number, pair in found.items()}


@pytest.mark.parametrize(
    "face",
    [
        offsets_at_the_console,
        offsets_of_the_command,
        offsets_in_metrics,
        offsets_by_lag_exporters_names,
        offsets_of_an_admin_client,
        offsets_of_a_broker,
    ],
)
def test_the_offsets_of_each_partition(face, address):
    assert face(address) == OFFSETS


def files_at_the_console(address):
    with page_of(address) as page:
        return {p["partition"]: p["segments"] for p in page.ok("GET", "/api/topics/orders")["partitions"]}


def files_of_the_command(address):
    described = answer("topic", "describe", "orders", "--lake", address)
    return {p["partition"]: p["segments"] for p in described["partitions"]}


def files_in_metrics(address):
    return of_topic(address, "tidelog_topic_partition_files")


@pytest.mark.parametrize("face", [files_at_the_console, files_of_the_command, files_in_metrics])
def test_the_files_of_each_partition(face, address):
    assert face(address) == FILES


def bytes_at_the_console(address):
    with page_of(address) as page:
        return {p["partition"]: p["bytes"] for p in page.ok("GET", "/api/topics/orders")["partitions"]}


def bytes_of_the_command(address):
    described = answer("topic", "describe", "orders", "--lake", address)
    return {p["partition"]: p["bytes"] for p in described["partitions"]}


def bytes_of_a_broker(address):
    with broker_of(address) as requests:
        (directory,) = requests.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
    (told,) = directory.topics
    return {int(p.partition_index): int(p.partition_size) for p in told.partitions}


@pytest.mark.parametrize("face", [bytes_at_the_console, bytes_of_the_command, bytes_of_a_broker])
def test_the_bytes_of_each_partition(face, address):
    with Lake(address, create=False) as lake:
        described = lake.describe_topic("orders").partitions
    assert face(address) == {p.partition: p.bytes for p in described}
    assert described[1].bytes > 0


# --- in all ------------------------------------------------------------------------------------------------


def totals(address):
    """Partitions, files and bytes, by the log itself."""
    with Lake(address, create=False) as lake:
        described = lake.describe_topic("orders").partitions
    return len(described), sum(p.segments for p in described), sum(p.bytes for p in described)


def totals_at_the_console(address):
    with page_of(address) as page:
        page.ok("GET", "/api/groups")  # a whole snapshot is taken
        (row,) = page.ok("GET", "/api/topics")["topics"]
    return row["partitions"], row["files"], row["bytes"]


def totals_in_the_overview(address):
    with page_of(address) as page:
        page.ok("GET", "/api/groups")  # a whole snapshot is taken
        told = page.ok("GET", "/api/overview")
    return told["partitions"], told["files"], told["bytes"]


def totals_of_the_command(address):
    (row,) = answer("topic", "list", "--lake", address)
    return row["partitions"], row["segments"], row["bytes"]


def totals_in_metrics(address):
    names = ("kafka_topic_partitions", "tidelog_topic_files", "tidelog_topic_bytes")
    return tuple(of_topic(address, name)[None] for name in names)


@pytest.mark.parametrize(
    "face", [totals_at_the_console, totals_in_the_overview, totals_of_the_command, totals_in_metrics]
)
def test_what_a_topic_holds_in_all(face, address):
    assert face(address) == totals(address)


def small_files_in_the_overview(address):
    with page_of(address) as page:
        page.ok("GET", "/api/groups")  # a whole snapshot is taken
        return page.ok("GET", "/api/overview")["small_files"]


def small_files_in_metrics(address):
    return of_topic(address, "tidelog_topic_small_files")[None]


def small_files_of_the_doctor(address):
    return health(address).small


SMALL_FILES = [small_files_in_the_overview, small_files_in_metrics, small_files_of_the_doctor]


@pytest.mark.parametrize("face", SMALL_FILES)
def test_the_small_files(face, address):
    assert face(address) == health(address).files == sum(FILES.values())


@pytest.mark.parametrize("face", SMALL_FILES)
def test_no_face_has_a_rule_of_its_own_for_small_files(face, address, monkeypatch):
    monkeypatch.setattr(topics, "_SMALL_FILE", 1 << 40)
    assert face(address) == 0


# --- a topic's configuration -------------------------------------------------------------------------------


def keys_at_the_console(address):
    with page_of(address) as page:
        rows = page.ok("GET", "/api/topics/orders/config")["configs"]
    return {row["name"]: (row["value"], row["source"]) for row in rows}


def keys_of_the_command(address):
    rows = answer("topic", "describe", "orders", "--all", "--lake", address)["settings"]
    return {row["name"]: (row["value"], row["source"]) for row in rows}


def keys_of_an_admin_client(address):
    sources = {"DYNAMIC_TOPIC_CONFIG": "topic", "DYNAMIC_DEFAULT_BROKER_CONFIG": "lake", "DEFAULT_CONFIG": "default"}
    resource = ConfigResource("topic", "orders")
    with AdminClient({"lake": address}) as client:
        entries = client.describe_configs([resource])[resource].result()
    assert all(entry.is_default == (entry.source.name == "DEFAULT_CONFIG") for entry in entries.values())
    return {name: (entry.value, sources[entry.source.name]) for name, entry in entries.items()}


def keys_of_a_broker(address):
    resource = {"resource_type": 2, "resource_name": "orders", "configuration_keys": None}
    with broker_of(address) as requests:
        (told,) = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]}).results
    sources = {1: "topic", 3: "lake", 5: "default"}
    return {one.name: (one.value, sources[int(one.config_source)]) for one in told.configs}


CONFIGS = [keys_at_the_console, keys_of_the_command, keys_of_an_admin_client, keys_of_a_broker]


@pytest.mark.parametrize("face", CONFIGS)
def test_every_key_of_a_topic(face, address):
    found = face(address)
    assert sorted(found) == sorted(TopicConfig.KEYS)
    assert {name: value for name, (value, source) in found.items() if source == "topic"} == OWN
    assert {name: value for name, (value, source) in found.items() if source == "lake"} == {"retention.ms": "7000"}
    unset = TopicConfig.KEYS.keys() - OWN.keys() - {"retention.ms"}
    keys = {name: TopicConfig.KEYS[name] for name in unset}
    assert {name: found[name][0] for name in unset} == {name: k.kind.text(k.default) for name, k in keys.items()}


# --- changes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("face", FACES)
def test_a_topic_that_is_made_changed_and_deleted_by_any_face_is_the_same(face, address):
    at = face(address)
    assert at.create_topic("new", 2, {"retention.ms": "5"}) == DONE
    assert at.add_partitions("new", 3) == DONE
    assert at.set_key("new", "segment.bytes", "100000") == DONE
    with Lake(address, create=False) as lake:
        described = lake.describe_topic("new")
        assert (len(described.partitions), described.config) == (3, {"retention.ms": "5", "segment.bytes": "100000"})
        assert lake.offsets("new") == {0: (0, 0), 1: (0, 0), 2: (0, 0)}
    assert at.delete_topic("new") == DONE
    with Lake(address, create=False) as lake:
        assert lake.topics() == ["orders"]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize(("key", "value"), [("retention.ms", "soon"), ("no.such.key", "1"), ("flush.ms", "1")])
def test_a_wrong_value_is_refused_in_the_same_words(face, key, value, address):
    with Lake(address, create=False) as lake:
        with pytest.raises(Exception, match=key) as refusal:
            lake.alter_topic("orders", config={key: value})
        assert face(address).set_key("orders", key, value).sentence == str(refusal.value)
        assert lake.describe_topic("orders").config == OWN
