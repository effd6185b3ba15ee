"""AdminClient, console, command line, metrics and doctor give the same lag of one lake: that of `operations.groups`."""

from dataclasses import replace

import pytest
from support.admin_groups import stable_group
from support.cli_calls import answer
from support.console import running_console

from tidelog.admin import AdminClient, ConsumerGroupTopicPartitions, OffsetSpec
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.model import CommittedOffset, Decision
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.lake import Lake
from tidelog.log.storage import open_storage
from tidelog.operations import groups
from tidelog.operations.health import gather
from tidelog.server.process.lake_metrics import LakeMetrics

# The group is past the end of the second partition, as its topic was created again; retention took records of the third
# that it had yet to read; it has an offset of a partition that is not there, and reads one without an offset.
COMMITTED = {("orders", 0): 4, ("orders", 1): 25, ("orders", 2): 3, ("orders", 9): 1}
LAGS = {("orders", 0): 6, ("orders", 1): 0, ("orders", 2): 7}
READ = [("orders", 0), ("orders", 3), ("gone", 0)]


@pytest.fixture
def address(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("orders", 4)
        for partition in range(4):
            lake.topic("orders").append([{"value": str(n), "partition": partition} for n in range(10)])
        lake.delete_records("orders", {2: 8})
        log = stable_group(lake, "billing", {"m": READ})
        offsets = {place: CommittedOffset(offset) for place, offset in COMMITTED.items()}
        log.decide("billing", lambda view: Decision(response=None, offsets=offsets))
    return str(tmp_path / "lake")


# --- by partition ------------------------------------------------------------------------------------------


def from_the_console(address):
    with running_console(address) as running, running.client() as page:
        rows = page.ok("GET", "/api/groups/billing")["partitions"]
    return {(row["topic"], row["partition"]): row["lag"] for row in rows if row["lag"] is not None}


def from_the_command(address):
    (described,) = answer("group", "describe", "billing", "--lake", address)
    rows = described["partitions"]
    return {(row["topic"], row["partition"]): row["lag"] for row in rows if row["lag"] is not None}


def by_kafka_exporters_name(address):
    return measured(address, "kafka_consumergroup_lag")


def by_lag_exporters_name(address):
    return measured(address, "kafka_consumergroup_group_lag")


def measured(address, metric):
    with Lake(address, create=False) as lake:
        (samples,) = [family.samples for family in LakeMetrics(lake).read() if family.name == metric]
    return {(labels["topic"], int(labels["partition"])): value for labels, value in samples}


BY_PARTITION = [from_the_console, from_the_command, by_kafka_exporters_name, by_lag_exporters_name]


@pytest.mark.parametrize("face", BY_PARTITION)
def test_the_lag_of_each_partition(face, address):
    assert face(address) == LAGS


def test_an_admin_client_gives_the_same_offsets_and_readers(address):
    with AdminClient({"lake": address}) as client:
        listed = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions("billing")])["billing"].result()
        asked = {TopicPartition("orders", partition): OffsetSpec.latest() for partition in range(4)}
        ends = {place.partition: end.result().offset for place, end in client.list_offsets(asked).items()}
        described = client.describe_consumer_groups(["billing"])["billing"].result()
    assert {(p.topic, p.partition): p.offset for p in listed.topic_partitions} == COMMITTED
    # A client takes the difference itself.
    committed = {(p.topic, p.partition): p.offset for p in listed.topic_partitions if p.partition in ends}
    assert {place: max(0, ends[place[1]] - offset) for place, offset in committed.items()} == LAGS
    (member,) = described.members
    assert [(p.topic, p.partition) for p in member.assignment.topic_partitions] == sorted(READ)


# --- of the group ------------------------------------------------------------------------------------------


def from_the_list_of_groups(address):
    with running_console(address) as running, running.client() as page:
        (row,) = page.ok("GET", "/api/groups")["groups"]
    return row["lag"]


def from_the_topics_page(address):
    with running_console(address) as running, running.client() as page:
        (row,) = page.ok("GET", "/api/topics/orders/consumers")["groups"]
    return row["lag"]


def from_the_overview(address):
    with running_console(address) as running, running.client() as page:
        page.ok("GET", "/api/groups")  # a whole snapshot is taken
        return page.ok("GET", "/api/overview")["lag"]


def from_the_doctor(address):
    def opened(store):
        return Lake(address, create=False, storage=store)

    facts = gather(address, lambda: open_storage(address), opened, SystemClock(), SystemIds(), try_store=False)
    return facts.groups["billing"].records


def from_the_metrics(address):
    with Lake(address, create=False) as lake:
        families = {family.name: family.samples for family in LakeMetrics(lake).read()}
    ((_, total),) = families["kafka_consumergroup_group_sum_lag"]
    return total


IN_ALL = [from_the_list_of_groups, from_the_topics_page, from_the_overview, from_the_doctor, from_the_metrics]


@pytest.mark.parametrize("face", IN_ALL)
def test_the_lag_in_all(face, address):
    assert face(address) == sum(LAGS.values())


# --- of no formula but that --------------------------------------------------------------------------------


@pytest.fixture
def other_formula(monkeypatch):
    """Has a known lag be 1,000 records more: a face that computes its own says another one."""
    right = groups.lag_in_partition

    def wrong(*args):
        lag = right(*args)
        return lag if lag.records is None else replace(lag, records=lag.records + 1_000)

    monkeypatch.setattr(groups, "lag_in_partition", wrong)


@pytest.mark.usefixtures("other_formula")
@pytest.mark.parametrize("face", BY_PARTITION)
def test_no_face_computes_the_lag_of_a_partition(face, address):
    assert face(address) == {place: records + 1_000 for place, records in LAGS.items()}


@pytest.mark.usefixtures("other_formula")
@pytest.mark.parametrize("face", IN_ALL)
def test_no_face_computes_the_lag_in_all(face, address):
    assert face(address) == sum(LAGS.values()) + 1_000 * len(LAGS)
